//! The Pods of the newest revision of a workload: only their problems are about its latest manifest.

use serde_json::Value;

use super::object::ObjectView;

/// The annotation of a Deployment and its ReplicaSets with the number of the revision.
const REVISION: &str = "/metadata/annotations/deployment.kubernetes.io~1revision";
/// The annotation of a `DaemonSet` with the number of its template. In contrast to a `StatefulSet`, its status does not
/// name the newest revision.
const TEMPLATE_GENERATION: &str = "/metadata/annotations/deprecated.daemonset.template.generation";

/// The Pods of the newest revision of a workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewestPods {
    /// The UID of their controller.
    controller: String,
    /// The label and the value that they have.
    label: Option<(&'static str, String)>,
}

impl NewestPods {
    /// Returns the newest Pods of a workload; `None` if they cannot be told from others: the kind has no Pods, or its
    /// controller has not seen the latest manifest. A Deployment also needs its ReplicaSets.
    pub fn find(workload: &Value, kind: &str, replica_sets: &[Value]) -> Option<Self> {
        let view = ObjectView(workload);
        let label = match kind {
            "Job" => None,
            _ if view.number("/status/observedGeneration") != view.number("/metadata/generation") => {
                return None;
            }
            "Deployment" => {
                let newest = newest_replica_set(view, replica_sets)?;
                return Some(Self {
                    controller: newest.to_owned(),
                    label: None,
                });
            }
            "ReplicaSet" => None,
            "StatefulSet" => Some(("controller-revision-hash", view.text("/status/updateRevision")?)),
            "DaemonSet" => Some(("pod-template-generation", view.text(TEMPLATE_GENERATION)?)),
            _ => return None,
        };
        Some(Self {
            controller: view.text("/metadata/uid")?.to_owned(),
            label: label.map(|(label, value)| (label, value.to_owned())),
        })
    }

    /// Returns whether the Pod is one of them.
    pub fn contains(&self, pod: &Value) -> bool {
        let view = ObjectView(pod);
        let has_label = self.label.as_ref().is_none_or(|(label, value)| {
            let labels = pod.pointer("/metadata/labels");
            labels.and_then(|labels| labels[label].as_str()) == Some(value)
        });
        has_label && controller_uid(view) == Some(&self.controller)
    }
}

/// Returns the UID of the `ReplicaSet` of the latest revision of a Deployment.
fn newest_replica_set<'a>(deployment: ObjectView, replica_sets: &'a [Value]) -> Option<&'a str> {
    let revision = deployment.text(REVISION)?;
    let uid = deployment.text("/metadata/uid")?;
    let mut owned = replica_sets.iter().map(ObjectView);
    owned
        .find(|set| controller_uid(*set) == Some(uid) && set.text(REVISION) == Some(revision))?
        .text("/metadata/uid")
}

fn controller_uid(object: ObjectView<'_>) -> Option<&str> {
    let owners = object.array("/metadata/ownerReferences").iter();
    let controller = owners.map(ObjectView).find(|owner| owner.0["controller"] == true);
    controller?.text("/uid")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn owned(uid: &str, owner: &str, labels: &Value) -> Value {
        json!({"metadata": {
            "uid": uid, "labels": labels,
            "ownerReferences": [{"uid": "other"}, {"uid": owner, "controller": true}],
        }})
    }

    fn workload(annotations: &Value, status: &Value) -> Value {
        json!({"metadata": {"uid": "w", "generation": 3, "annotations": annotations}, "status": status})
    }

    #[test]
    fn pods_of_older_revisions_do_not_count() {
        let replica_set = |uid: &str, owner: &str, revision: &str| {
            let mut set = owned(uid, owner, &json!({}));
            set["metadata"]["annotations"] = json!({"deployment.kubernetes.io/revision": revision});
            set
        };
        let sets = [
            replica_set("foreign", "x", "8"),
            replica_set("old", "w", "7"),
            replica_set("new", "w", "8"),
        ];
        let seen = json!({"observedGeneration": 3, "updateRevision": "web-2"});
        let revision = json!({"deployment.kubernetes.io/revision": "8"});
        let template = json!({"deprecated.daemonset.template.generation": "2"});
        let none = json!({});
        // The workload, its kind, a Pod, and whether the Pod is one of the newest.
        let table = [
            (
                "Deployment",
                workload(&revision, &seen),
                "new",
                none.clone(),
                true,
            ),
            (
                "Deployment",
                workload(&revision, &seen),
                "old",
                none.clone(),
                false,
            ),
            ("Deployment", workload(&revision, &seen), "w", none.clone(), false),
            ("Deployment", workload(&none, &seen), "new", none.clone(), false),
            (
                "StatefulSet",
                workload(&none, &seen),
                "w",
                json!({"controller-revision-hash": "web-2"}),
                true,
            ),
            (
                "StatefulSet",
                workload(&none, &seen),
                "w",
                json!({"controller-revision-hash": "web-1"}),
                false,
            ),
            (
                "DaemonSet",
                workload(&template, &seen),
                "w",
                json!({"pod-template-generation": "2"}),
                true,
            ),
            (
                "DaemonSet",
                workload(&template, &seen),
                "w",
                json!({"pod-template-generation": "1"}),
                false,
            ),
            ("DaemonSet", workload(&none, &seen), "w", none.clone(), false),
            ("ReplicaSet", workload(&none, &seen), "w", none.clone(), true),
            ("ReplicaSet", workload(&none, &seen), "x", none.clone(), false),
            ("Job", workload(&none, &none), "w", none.clone(), true),
            ("Widget", workload(&none, &seen), "w", none.clone(), false),
        ];
        for (kind, workload, owner, labels, expected) in table {
            let newest = NewestPods::find(&workload, kind, &sets);
            let pod = owned("p", owner, &labels);
            let is_newest = newest.as_ref().is_some_and(|newest| newest.contains(&pod));
            assert_eq!(is_newest, expected, "{kind} {workload} {pod}");
        }
    }

    #[test]
    fn a_manifest_that_the_controller_has_not_seen_has_no_pods() {
        for kind in ["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"] {
            let status = json!({"observedGeneration": 2, "updateRevision": "web-2"});
            assert_eq!(NewestPods::find(&workload(&json!({}), &status), kind, &[]), None);
        }
    }
}
