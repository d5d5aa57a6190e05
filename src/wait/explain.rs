//! Looks up why an object is not Current: in its Pods, and in the events about it. Pods that do not recover by
//! themselves are a failure of their workload.
//!
//! A failed read is no error: the object then has no reason, or its Pods do not count as failed.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream;
use serde_json::Value;
use tokio::time::{Instant, timeout};

use super::Target;
use super::tracker::{Goal, WaitTracker};
use crate::cluster::apiserver::{ApiServer, encode_query};
use crate::compare::status::{
    ContainerInstance, Crash, NewestPods, Outlook, PodFailureRule, PodTrouble, Sighting, age_of,
    crash_of_pod, troubles_of_pod,
};
use crate::read::WHOLE_OBJECTS;

/// Limit of objects whose reasons are looked up at once.
pub(super) const MAX_OBJECTS: usize = 20;
/// Time limit of looking up reasons once.
const EXPLAINING: Duration = Duration::from_secs(5);
/// Limit of Pods of one workload, and of events about one object, that are read.
const MAX_LISTED: &str = "100";
/// Limit of lines at the end of a log that are shown.
const LOG_LINES: &str = "5";
/// Limit of bytes of a log that are shown.
const LOG_BYTES: usize = 600;
/// The reasons of events that announce a node for a Pod: of the cluster autoscaler, and of Karpenter.
const NODE_COMES: [&str; 2] = ["TriggeredScaleUp", "Nominated"];

/// The reason why an object is not Current.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Explanation {
    /// The reason in words.
    pub(super) reason: String,
    /// A text that stays the same while the reason does: the words have times and counts that change.
    pub(super) key: String,
    /// Whether the object has failed because of a Pod.
    pub(super) verdict: Verdict,
}

/// What the Pods of an object say about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    MayRecover,
    Failed,
}

/// A trouble of a Pod: the index of its workload among the targets, the UID of the Pod, and the key of the trouble.
type TroubleId = (usize, String, String);

/// The first time that a wait has seen a trouble of a Pod.
struct FirstSeen {
    at: Instant,
    age_of_pod: Duration,
}

/// Looks up reasons for one wait, and remembers since when Pods are in trouble.
pub(super) struct Explainer<'a> {
    server: &'a ApiServer,
    concurrency: usize,
    /// When a Pod counts as failed; `None` if never.
    rule: Option<PodFailureRule>,
    seen: BTreeMap<TroubleId, FirstSeen>,
}

/// The answer for one object: the reason, if there is one, and the troubles of its Pods with the age of each Pod.
#[derive(Default)]
struct LookedUp {
    explanation: Option<Explanation>,
    troubles: Vec<(TroubleId, Duration)>,
}

/// A Pod that is in trouble.
struct TroubledPod<'p> {
    pod: &'p Value,
    uid: &'p str,
    trouble: PodTrouble,
    sighting: Sighting,
}

impl TroubledPod<'_> {
    /// Returns whether the Pod of a workload of this kind recovers by itself.
    fn outlook(&self, rule: PodFailureRule, kind: &str) -> Outlook {
        // The limit of a Job is its own (`backoffLimit`), and it has failed then.
        if kind == "Job" && self.trouble.is_crash_loop() {
            return Outlook::MayRecover;
        }
        self.trouble.outlook(rule, self.sighting)
    }
}

impl<'a> Explainer<'a> {
    pub(super) fn new(server: &'a ApiServer, concurrency: usize, rule: Option<PodFailureRule>) -> Self {
        Self {
            server,
            concurrency,
            rule,
            seen: BTreeMap::new(),
        }
    }

    /// Looks up the reasons for these targets, in the same order; `None` for a target without a reason. The list is
    /// empty if that takes too long.
    pub(super) async fn find_reasons(
        &mut self,
        tracker: &WaitTracker,
        indexes: &[usize],
    ) -> Vec<Option<Explanation>> {
        let lookups = indexes.iter().enumerate().map(|(position, index)| {
            let target = &tracker.targets()[*index];
            let is_looked_up = position < MAX_OBJECTS && target.goal != Goal::Gone;
            let lookup = is_looked_up.then(|| self.look_up(*index, target));
            async { lookup?.await }
        });
        let lookups = stream::iter(lookups).buffered(self.concurrency).collect();
        let Ok(found): Result<Vec<Option<LookedUp>>, _> = timeout(EXPLAINING, lookups).await else {
            return Vec::new();
        };
        let (explanations, troubles): (Vec<_>, Vec<_>) = found
            .into_iter()
            .map(Option::unwrap_or_default)
            .map(|found| (found.explanation, found.troubles))
            .unzip();
        self.remember(indexes, troubles.into_iter().flatten());
        explanations
    }

    /// Remembers the troubles that were seen now, and forgets others of the same workloads.
    fn remember(&mut self, indexes: &[usize], troubles: impl Iterator<Item = (TroubleId, Duration)>) {
        let now = Instant::now();
        let mut former = std::mem::take(&mut self.seen);
        for (id, age_of_pod) in troubles {
            let first = former.remove(&id);
            let first = first.unwrap_or(FirstSeen { at: now, age_of_pod });
            self.seen.insert(id, first);
        }
        former.retain(|(index, ..), _| !indexes.contains(index));
        self.seen.append(&mut former);
    }

    async fn look_up(&self, index: usize, target: &Target) -> Option<LookedUp> {
        let namespace = target.key.namespace.as_deref()?;
        let path = target.resource.path(Some(namespace), Some(&target.key.name));
        let object = self.read(&path).await?;
        if target.key.group_kind.kind == "Pod" {
            let log = self.read_crash_log(namespace, &object).await;
            return Some(LookedUp {
                explanation: log.map(|log| explain("log".to_owned(), log)),
                troubles: Vec::new(),
            });
        }
        let pods = match pod_selector(&object) {
            Some(selector) => self.list(namespace, "/api/v1", "pods", &selector).await,
            None => Vec::new(),
        };
        let troubled: Vec<TroubledPod> = pods
            .iter()
            .flat_map(|pod| troubles_of_pod(pod).filter_map(|trouble| self.sight(index, pod, trouble)))
            .collect();
        let failed = self.find_failed_pod(&object, target, &troubled).await;
        let explanation = match failed.or(troubled.first()) {
            Some(troubled) => {
                let verdict = match failed {
                    Some(_) => Verdict::Failed,
                    None => Verdict::MayRecover,
                };
                Some(self.explain_pod(namespace, troubled, verdict).await)
            }
            None => match self.explain_by_failed_pod(namespace, &pods).await {
                Some(explanation) => Some(explanation),
                None => self.explain_by_event(namespace, &object).await,
            },
        };
        let troubles = troubled.iter().map(|troubled| {
            let id = (index, troubled.uid.to_owned(), troubled.trouble.key());
            (id, troubled.sighting.age_of_pod)
        });
        Some(LookedUp {
            explanation,
            troubles: troubles.collect(),
        })
    }

    /// Returns the Pod with the time since when the wait has seen its trouble.
    fn sight<'p>(&self, index: usize, pod: &'p Value, trouble: PodTrouble) -> Option<TroubledPod<'p>> {
        let uid = pod.pointer("/metadata/uid")?.as_str()?;
        let first = self.seen.get(&(index, uid.to_owned(), trouble.key()));
        let sighting = match first {
            Some(first) => Sighting {
                lasts_for: first.at.elapsed(),
                age_of_pod: first.age_of_pod,
            },
            None => Sighting {
                lasts_for: Duration::ZERO,
                age_of_pod: age_of(pod, self.server.now()),
            },
        };
        Some(TroubledPod {
            pod,
            uid,
            trouble,
            sighting,
        })
    }

    /// Returns the first Pod that does not recover by itself, of the newest revision of the workload.
    async fn find_failed_pod<'t, 'p>(
        &self,
        workload: &Value,
        target: &Target,
        troubled: &'t [TroubledPod<'p>],
    ) -> Option<&'t TroubledPod<'p>> {
        let rule = self.rule?;
        let kind = target.key.group_kind.kind.as_str();
        let mut candidates: Vec<(&TroubledPod, Outlook)> = troubled
            .iter()
            .map(|troubled| (troubled, troubled.outlook(rule, kind)))
            .filter(|(_, outlook)| *outlook != Outlook::MayRecover)
            .collect();
        if candidates.is_empty() {
            return None;
        }
        let namespace = target.key.namespace.as_deref()?;
        let replica_sets = match (kind, pod_selector(workload)) {
            ("Deployment", Some(selector)) => {
                self.list(namespace, "/apis/apps/v1", "replicasets", &selector)
                    .await
            }
            _ => Vec::new(),
        };
        let newest = NewestPods::find(workload, kind, &replica_sets)?;
        candidates.retain(|(troubled, _)| newest.contains(troubled.pod));
        // Looks for events only if no Pod has failed without them.
        candidates.sort_by_key(|(_, outlook)| *outlook == Outlook::NeedsNode);
        for (troubled, outlook) in candidates {
            if outlook == Outlook::Failed || !self.may_get_node(namespace, troubled.uid).await {
                return Some(troubled);
            }
        }
        None
    }

    /// Returns whether an autoscaler has announced a node for the Pod, or may have: events cannot be read.
    async fn may_get_node(&self, namespace: &str, uid: &str) -> bool {
        let events = self
            .list_events(namespace, &format!("involvedObject.uid={uid}"))
            .await;
        events.is_none_or(|events| {
            let mut reasons = events.iter().filter_map(|event| event["reason"].as_str());
            reasons.any(|reason| NODE_COMES.contains(&reason))
        })
    }

    async fn explain_pod(
        &self,
        namespace: &str,
        troubled: &TroubledPod<'_>,
        verdict: Verdict,
    ) -> Explanation {
        let name = pod_name(troubled.pod).unwrap_or_default();
        let trouble = &troubled.trouble.reason;
        let log = self.read_crash_log(namespace, troubled.pod).await;
        let log = log.map_or_else(String::new, |log| format!("; {log}"));
        Explanation {
            reason: format!("pod/{name}: {trouble}{log}"),
            // The Pods of a workload differ only in their names.
            key: troubled.trouble.key(),
            verdict,
        }
    }

    /// Explains a workload by the log of the Pod that failed last: a Job does not restart its Pods but creates new ones.
    async fn explain_by_failed_pod(&self, namespace: &str, pods: &[Value]) -> Option<Explanation> {
        let failed = pods.iter().filter(|pod| crash_of_pod(pod).is_some());
        let last =
            failed.max_by_key(|pod| pod.pointer("/metadata/creationTimestamp").map(Value::to_string))?;
        let log = self.read_crash_log(namespace, last).await?;
        let name = pod_name(last)?;
        Some(explain(format!("log of {name}"), format!("pod/{name}: {log}")))
    }

    /// Explains an object by the latest event of type Warning about it.
    async fn explain_by_event(&self, namespace: &str, object: &Value) -> Option<Explanation> {
        let uid = object.pointer("/metadata/uid")?.as_str()?;
        let selector = format!("involvedObject.uid={uid},type=Warning");
        let events = self.list_events(namespace, &selector).await?;
        let last = events.iter().max_by_key(|event| event_time(event))?;
        let [reason, message] = ["reason", "message"].map(|field| last[field].as_str().unwrap_or_default());
        Some(explain(reason.to_owned(), format!("{reason}: {message}")))
    }

    /// Returns the end of the log of a crashed container, if the user may read it.
    async fn read_crash_log(&self, namespace: &str, pod: &Value) -> Option<String> {
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
        let text = self.server.get_text(&path).await.ok()?;
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

    /// Returns the events about an object; `None` if they cannot be read.
    async fn list_events(&self, namespace: &str, field_selector: &str) -> Option<Vec<Value>> {
        let parameters = encode_query(&[("fieldSelector", field_selector), ("limit", MAX_LISTED)]);
        let list = self
            .read(&format!("/api/v1/namespaces/{namespace}/events?{parameters}"))
            .await?;
        list["items"].as_array().cloned()
    }

    /// Lists objects by labels; none if they cannot be read.
    async fn list(&self, namespace: &str, version: &str, plural: &str, label_selector: &str) -> Vec<Value> {
        let parameters = encode_query(&[("labelSelector", label_selector), ("limit", MAX_LISTED)]);
        let path = format!("{version}/namespaces/{namespace}/{plural}?{parameters}");
        let list = self.read(&path).await;
        let items = list.and_then(|list| list["items"].as_array().cloned());
        items.unwrap_or_default()
    }

    /// Reads an object or a list; `None` if that fails.
    async fn read(&self, path: &str) -> Option<Value> {
        let reply = self.server.get_list(path, WHOLE_OBJECTS).await.ok()?;
        reply.json().ok()
    }
}

/// Returns a reason that is not about the troubles of Pods.
fn explain(key: String, reason: String) -> Explanation {
    Explanation {
        reason,
        key,
        verdict: Verdict::MayRecover,
    }
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

fn pod_name(pod: &Value) -> Option<&str> {
    pod.pointer("/metadata/name")?.as_str()
}

fn event_time(event: &Value) -> &str {
    ["/lastTimestamp", "/eventTime", "/metadata/creationTimestamp"]
        .into_iter()
        .find_map(|field| event.pointer(field)?.as_str())
        .unwrap_or_default()
}
