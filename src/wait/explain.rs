//! Looks up why an object is not ready: in its Pods, and in the events about it.
//!
//! Everything here is for people. What cannot be read is left out.

use futures_util::StreamExt as _;
use futures_util::stream;
use serde_json::Value;

use super::Target;
use super::tracker::{Goal, WaitTracker};
use crate::cluster::apiserver::{ApiServer, query};
use crate::compare::status::trouble_of_pod;
use crate::read::WHOLE_OBJECTS;

/// More than so many objects are not looked into.
const OBJECTS: usize = 20;
/// Pods of one workload that are looked at.
const PODS: &str = "100";

/// Looks up the reasons for these targets, where there are any.
pub(super) async fn reasons(
    server: &ApiServer,
    tracker: &WaitTracker,
    indexes: &[usize],
    concurrency: usize,
) -> Vec<Option<String>> {
    let looks = indexes.iter().enumerate().map(|(place, index)| async move {
        let target = &tracker.targets()[*index];
        if place >= OBJECTS || target.goal != Goal::Ready {
            return None;
        }
        reason(server, target).await
    });
    stream::iter(looks).buffered(concurrency).collect().await
}

async fn reason(server: &ApiServer, target: &Target) -> Option<String> {
    let namespace = target.key.namespace.as_deref()?;
    let path = target.resource.path(Some(namespace), Some(&target.key.name));
    let object = read(server, &path).await?;
    if let Some(selector) = pod_selector(&object)
        && let Some(trouble) = trouble_of_pods(server, namespace, &selector).await
    {
        return Some(trouble);
    }
    let uid = object.pointer("/metadata/uid")?.as_str()?;
    last_warning(server, namespace, uid).await
}

/// The label selector of a workload's Pods; `None` for what has none.
fn pod_selector(object: &Value) -> Option<String> {
    object.pointer("/spec/template/spec/containers")?;
    let labels = object.pointer("/spec/selector/matchLabels")?.as_object()?;
    let pairs = labels.iter();
    let pairs: Vec<String> = pairs
        .filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?)))
        .collect();
    (!pairs.is_empty()).then(|| pairs.join(","))
}

async fn trouble_of_pods(server: &ApiServer, namespace: &str, selector: &str) -> Option<String> {
    let query = query(&[("labelSelector", selector), ("limit", PODS)]);
    let list = read(server, &format!("/api/v1/namespaces/{namespace}/pods?{query}")).await?;
    list["items"].as_array()?.iter().find_map(|pod| {
        let name = pod.pointer("/metadata/name")?.as_str()?;
        Some(format!("pod/{name}: {}", trouble_of_pod(pod)?))
    })
}

/// The latest event of type Warning about an object.
async fn last_warning(server: &ApiServer, namespace: &str, uid: &str) -> Option<String> {
    let fields = format!("involvedObject.uid={uid},type=Warning");
    let query = query(&[("fieldSelector", fields.as_str()), ("limit", PODS)]);
    let list = read(server, &format!("/api/v1/namespaces/{namespace}/events?{query}")).await?;
    let time = |event: &Value| {
        let fields = ["/lastTimestamp", "/eventTime", "/metadata/creationTimestamp"];
        let times = fields
            .into_iter()
            .filter_map(|field| event.pointer(field)?.as_str());
        times.map(str::to_owned).next().unwrap_or_default()
    };
    let events = list["items"].as_array()?;
    let last = events.iter().max_by_key(|event| time(event))?;
    let text = |field: &str| last[field].as_str().unwrap_or_default();
    Some(format!("{}: {}", text("reason"), text("message")))
}

async fn read(server: &ApiServer, path: &str) -> Option<Value> {
    let reply = server.get(path, WHOLE_OBJECTS).await.ok()?;
    serde_json::from_slice(&reply.body).ok()
}
