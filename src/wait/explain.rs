//! Looks up why an object is not Current: in its Pods, and in the events about it.
//!
//! The reasons are for people only, so a failed read is no error: the object then has no reason.

use futures_util::StreamExt as _;
use futures_util::stream;
use serde_json::Value;

use super::Target;
use super::tracker::{Goal, WaitTracker};
use crate::cluster::apiserver::{ApiServer, encode_query};
use crate::compare::status::{ContainerInstance, Crash, crash_of_pod, trouble_of_pod};
use crate::read::WHOLE_OBJECTS;

/// Limit of objects whose reasons are looked up.
const MAX_OBJECTS: usize = 20;
/// Limit of Pods of one workload, and of events about one object, that are read.
const MAX_LISTED: &str = "100";
/// Limit of lines at the end of a log that are shown.
const LOG_LINES: &str = "5";
/// Limit of bytes of a log that are shown.
const LOG_BYTES: usize = 600;

/// Looks up the reasons for these targets, in the same order; `None` for a target without a reason.
pub(super) async fn find_reasons(
    server: &ApiServer,
    tracker: &WaitTracker,
    indexes: &[usize],
    concurrency: usize,
) -> Vec<Option<String>> {
    let lookups = indexes.iter().enumerate().map(|(position, index)| async move {
        let target = &tracker.targets()[*index];
        if position >= MAX_OBJECTS || target.goal == Goal::Gone {
            return None;
        }
        find_reason(server, target).await
    });
    stream::iter(lookups).buffered(concurrency).collect().await
}

async fn find_reason(server: &ApiServer, target: &Target) -> Option<String> {
    let namespace = target.key.namespace.as_deref()?;
    let path = target.resource.path(Some(namespace), Some(&target.key.name));
    let object = read(server, &path).await?;
    if target.key.group_kind.kind == "Pod" {
        return read_crash_log(server, namespace, &object).await;
    }
    if let Some(selector) = pod_selector(&object)
        && let Some(trouble) = find_trouble_of_pods(server, namespace, &selector).await
    {
        return Some(trouble);
    }
    let uid = object.pointer("/metadata/uid")?.as_str()?;
    read_last_warning(server, namespace, uid).await
}

/// Returns the label selector of a workload's Pods; `None` for other kinds.
fn pod_selector(object: &Value) -> Option<String> {
    object.pointer("/spec/template/spec/containers")?;
    let labels = object.pointer("/spec/selector/matchLabels")?.as_object()?;
    let pairs: Vec<String> = labels
        .iter()
        .filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?)))
        .collect();
    (!pairs.is_empty()).then(|| pairs.join(","))
}

/// Returns the trouble of the first of these Pods that has some; else the log of the Pod that failed last.
async fn find_trouble_of_pods(server: &ApiServer, namespace: &str, selector: &str) -> Option<String> {
    let parameters = encode_query(&[("labelSelector", selector), ("limit", MAX_LISTED)]);
    let list = read(
        server,
        &format!("/api/v1/namespaces/{namespace}/pods?{parameters}"),
    )
    .await?;
    let pods = list["items"].as_array()?;
    let troubled = pods
        .iter()
        .find_map(|pod| Some((pod, pod_name(pod)?, trouble_of_pod(pod)?)));
    if let Some((pod, name, trouble)) = troubled {
        return Some(match read_crash_log(server, namespace, pod).await {
            Some(log) => format!("pod/{name}: {trouble}; {log}"),
            None => format!("pod/{name}: {trouble}"),
        });
    }
    // A Job does not restart its Pods but creates new ones, so the Pod that failed last tells most.
    let failed = pods.iter().filter(|pod| crash_of_pod(pod).is_some());
    let last = failed.max_by_key(|pod| pod.pointer("/metadata/creationTimestamp").map(Value::to_string))?;
    let log = read_crash_log(server, namespace, last).await?;
    Some(format!("pod/{}: {log}", pod_name(last)?))
}

fn pod_name(pod: &Value) -> Option<&str> {
    pod.pointer("/metadata/name")?.as_str()
}

/// Returns the end of the log of a crashed container, if the user may read it.
async fn read_crash_log(server: &ApiServer, namespace: &str, pod: &Value) -> Option<String> {
    let Crash { container, instance } = crash_of_pod(pod)?;
    let name = pod_name(pod)?;
    let previous = match instance {
        ContainerInstance::Last => "false",
        ContainerInstance::Previous => "true",
    };
    let parameters = [
        ("container", container.as_str()),
        ("previous", previous),
        ("tailLines", LOG_LINES),
        ("limitBytes", "65536"),
    ];
    let path = format!(
        "/api/v1/namespaces/{namespace}/pods/{name}/log?{}",
        encode_query(&parameters)
    );
    let text = server.get_text(&path).await.ok()?;
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let text = lines.join(" | ");
    let start = text.len().saturating_sub(LOG_BYTES);
    let start = (start..=text.len()).find(|start| text.is_char_boundary(*start))?;
    let shown = text[start..].trim();
    (!shown.is_empty()).then(|| format!("log of container {container}: {shown}"))
}

/// Returns the latest event of type Warning about an object.
async fn read_last_warning(server: &ApiServer, namespace: &str, uid: &str) -> Option<String> {
    let fields = format!("involvedObject.uid={uid},type=Warning");
    let parameters = encode_query(&[("fieldSelector", fields.as_str()), ("limit", MAX_LISTED)]);
    let list = read(
        server,
        &format!("/api/v1/namespaces/{namespace}/events?{parameters}"),
    )
    .await?;
    let events = list["items"].as_array()?;
    let last = events.iter().max_by_key(|event| event_time(event))?;
    let [reason, message] = ["reason", "message"].map(|field| last[field].as_str().unwrap_or_default());
    Some(format!("{reason}: {message}"))
}

fn event_time(event: &Value) -> &str {
    ["/lastTimestamp", "/eventTime", "/metadata/creationTimestamp"]
        .into_iter()
        .find_map(|field| event.pointer(field)?.as_str())
        .unwrap_or_default()
}

/// Reads a list; `None` if that fails: the wait is explained by the rest.
async fn read(server: &ApiServer, path: &str) -> Option<Value> {
    let reply = server.get_list(path, WHOLE_OBJECTS).await.ok()?;
    reply.json().ok()
}
