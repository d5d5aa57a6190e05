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
    ContainerInstance, Crash, NewestPods, PodFailureRule, PodProblem, Sighting, age_of, crash_of_pod,
    has_unseen_manifest, problems_before_start,
};
use crate::read::WHOLE_OBJECTS;

/// Limit of objects whose reasons are looked up at once. Each takes two to five requests.
pub(super) const MAX_OBJECTS: usize = 5;
/// Time limit of looking up reasons once.
const EXPLAINING: Duration = Duration::from_secs(5);
/// Limit of Pods of one workload, and of events about one object, that are read.
const MAX_LISTED: &str = "100";
/// Limit of lines at the end of a log that are shown.
const LOG_LINES: &str = "5";
/// Limit of bytes of a log that are shown.
const LOG_BYTES: usize = 600;

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
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verdict {
    Failed,
    MayRecover,
}

/// A problem of a Pod: the index of its workload among the targets, the UID of the Pod, and the key of the problem.
type ProblemId = (usize, String, String);

/// The first time that a wait has seen a problem of a Pod.
struct FirstSeen {
    at: Instant,
    age_of_pod: Duration,
}

/// Looks up reasons for one wait, and remembers since when Pods have problems.
pub(super) struct Explainer<'a> {
    server: &'a ApiServer,
    concurrency: usize,
    /// When a Pod counts as failed; `None` if never.
    rule: Option<PodFailureRule>,
    seen: BTreeMap<ProblemId, FirstSeen>,
}

/// The answer for one object: the reason, if there is one, and the problems of its Pods with the age of each Pod.
#[derive(Default)]
struct LookedUp {
    explanation: Option<Explanation>,
    problems: Vec<(ProblemId, Duration)>,
}

/// The revision of a Pod. The problem of the first one explains the workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Revision {
    Newest,
    /// The newest revision is not known.
    Unknown,
    Older,
}

/// A problem of a Pod that is to stay.
struct PodWithProblem<'p> {
    pod: &'p Value,
    uid: &'p str,
    problem: PodProblem,
    sighting: Sighting,
    revision: Revision,
}

impl PodWithProblem<'_> {
    /// Returns what the Pod says about its workload, which has this kind. Without a rule, Pods never count as failed.
    fn verdict(&self, rule: Option<PodFailureRule>, kind: &str) -> Verdict {
        // The limit of a Job is its own (`backoffLimit`), and it has failed then.
        let is_left_to_job = kind == "Job" && self.problem.is_crash_loop();
        let is_failure = rule.is_some_and(|rule| self.problem.is_failure(rule, self.sighting));
        if self.revision == Revision::Newest && is_failure && !is_left_to_job {
            Verdict::Failed
        } else {
            Verdict::MayRecover
        }
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
        let (explanations, problems): (Vec<_>, Vec<_>) = found
            .into_iter()
            .map(Option::unwrap_or_default)
            .map(|found| (found.explanation, found.problems))
            .unzip();
        self.remember(indexes, problems.into_iter().flatten());
        explanations
    }

    /// Remembers the problems that were seen now, and forgets others of the same workloads.
    fn remember(&mut self, indexes: &[usize], problems: impl Iterator<Item = (ProblemId, Duration)>) {
        let now = Instant::now();
        let mut former = std::mem::take(&mut self.seen);
        for (id, age_of_pod) in problems {
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
                problems: Vec::new(),
            });
        }
        let selector = pod_selector(&object).filter(|_| !has_unseen_manifest(&object));
        let pods = match selector {
            Some(selector) => {
                self.list(namespace, "/api/v1", "pods", ("labelSelector", &selector))
                    .await
            }
            None => Vec::new(),
        };
        let kind = target.key.group_kind.kind.as_str();
        let failing = self.list_problems(index, (&object, kind), namespace, &pods).await;
        let judged = failing
            .iter()
            .map(|failing| (failing, failing.verdict(self.rule, kind)));
        let worst = judged.min_by_key(|(failing, verdict)| (failing.revision, *verdict));
        let explanation = match worst {
            Some((failing, verdict)) => Some(self.explain_pod(namespace, failing, verdict).await),
            None => match self.explain_by_failed_pod(namespace, &pods).await {
                Some(explanation) => Some(explanation),
                None => self.explain_by_event(namespace, &object).await,
            },
        };
        let problems = failing.iter().map(|failing| {
            let id = (index, failing.uid.to_owned(), failing.problem.key());
            (id, failing.sighting.age_of_pod)
        });
        Some(LookedUp {
            explanation,
            problems: problems.collect(),
        })
    }

    /// Returns the Pod with the time since when the wait has seen its problem.
    fn sight<'p>(&self, index: usize, pod: &'p Value, problem: PodProblem) -> Option<PodWithProblem<'p>> {
        let uid = pod.pointer("/metadata/uid")?.as_str()?;
        let first = self.seen.get(&(index, uid.to_owned(), problem.key()));
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
        Some(PodWithProblem {
            pod,
            uid,
            problem,
            sighting,
            revision: Revision::Unknown,
        })
    }

    /// Returns the problems of Pods that are to stay. Which revision is the newest is asked only if there are any.
    async fn list_problems<'p>(
        &self,
        index: usize,
        (workload, kind): (&Value, &str),
        namespace: &str,
        pods: &'p [Value],
    ) -> Vec<PodWithProblem<'p>> {
        let staying = pods
            .iter()
            .filter(|pod| pod.pointer("/metadata/deletionTimestamp").is_none());
        let mut found: Vec<PodWithProblem> = staying
            .flat_map(|pod| problems_before_start(pod).filter_map(|problem| self.sight(index, pod, problem)))
            .collect();
        if found.is_empty() {
            return found;
        }
        let replica_sets = match (kind, pod_selector(workload)) {
            ("Deployment", Some(selector)) => {
                let selector = ("labelSelector", &*selector);
                self.list(namespace, "/apis/apps/v1", "replicasets", selector)
                    .await
            }
            _ => Vec::new(),
        };
        if let Some(newest) = NewestPods::find(workload, kind, &replica_sets) {
            for failing in &mut found {
                failing.revision = if newest.contains(failing.pod) {
                    Revision::Newest
                } else {
                    Revision::Older
                };
            }
        }
        found
    }

    async fn explain_pod(
        &self,
        namespace: &str,
        failing: &PodWithProblem<'_>,
        verdict: Verdict,
    ) -> Explanation {
        let name = pod_name(failing.pod).unwrap_or_default();
        let problem = &failing.problem.reason;
        let of_revision = match failing.revision {
            Revision::Newest | Revision::Unknown => "",
            Revision::Older => " of an older revision",
        };
        let log = self.read_crash_log(namespace, failing.pod).await;
        let log = log.map_or_else(String::new, |log| format!("; {log}"));
        Explanation {
            // A terminal shows only the first words.
            reason: format!("{problem} (pod/{name}{of_revision}){log}"),
            // The Pods of a revision differ only in their names.
            key: format!("{:?} {}", failing.revision, failing.problem.key()),
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
        let events = self
            .list(namespace, "/api/v1", "events", ("fieldSelector", &selector))
            .await;
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

    /// Lists objects by a selector, which comes with the name of its parameter; none if they cannot be read.
    async fn list(&self, namespace: &str, version: &str, plural: &str, selector: (&str, &str)) -> Vec<Value> {
        let parameters = encode_query(&[selector, ("limit", MAX_LISTED)]);
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

/// Returns a reason that is not about the problems of Pods.
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
