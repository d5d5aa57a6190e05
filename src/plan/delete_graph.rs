//! The order in which a run deletes objects, as a graph: wave by wave, and each object once its dependents are gone.

use std::collections::HashMap;

use super::Plan;
use super::containers::is_namespace_or_crd;
use super::graph::{Barrier, EdgeKind, Graph, NodeId};
use crate::model::identity::ObjectKey;
use crate::model::live::Live;

/// One action of a run that deletes objects.
#[derive(Debug, Clone)]
pub enum DeleteAction<'p> {
    /// Waits until this object is gone, because it depends on objects that are deleted later.
    AwaitGone(&'p Live),
    /// Lists again what these namespaces and CRDs contain, right before they are deleted.
    ListContents(Vec<&'p Live>),
    /// Deletes this object.
    Delete(&'p Live),
}

impl Plan {
    /// Returns the graph that deletes these waves of objects.
    pub fn build_delete_graph<'p>(
        &'p self,
        waves: impl IntoIterator<Item = Vec<&'p Live>>,
    ) -> Graph<DeleteAction<'p>> {
        let mut graph = Graph::default();
        let mut deletes: HashMap<&ObjectKey, NodeId> = HashMap::new();
        let mut waits: HashMap<&str, NodeId> = HashMap::new();
        let mut barrier: Option<NodeId> = None;
        for wave in waves {
            let previous_wave = barrier.map(|barrier| (barrier, EdgeKind::Follows));
            let mut new_waits = Vec::new();
            for dependent in wave.iter().flat_map(|live| self.dependents_to_await(live)) {
                if !waits.contains_key(&*dependent.uid) {
                    // `None` if the run does not delete the dependent: it was being deleted before the run.
                    let delete = deletes.get(&dependent.key).map(|id| (*id, EdgeKind::Needs));
                    let before = previous_wave.into_iter().chain(delete);
                    let wait = graph.add(DeleteAction::AwaitGone(dependent), before);
                    waits.insert(&dependent.uid, wait);
                    new_waits.push((wait, EdgeKind::Follows));
                }
            }
            let mut before = Vec::from_iter(previous_wave);
            let containers: Vec<&Live> = wave
                .iter()
                .copied()
                .filter(|live| is_namespace_or_crd(live))
                .collect();
            if !containers.is_empty() {
                // The contents are listed after the waits, so that they are read as late as possible.
                new_waits.splice(0..0, previous_wave);
                let list = graph.add(DeleteAction::ListContents(containers), new_waits);
                before.push((list, EdgeKind::Follows));
            }
            let mut added = Vec::new();
            for live in wave {
                let waits_for_dependents = self
                    .dependents_to_await(live)
                    .map(|dependent| (waits[&*dependent.uid], EdgeKind::Needs));
                let delete = graph.add(
                    DeleteAction::Delete(live),
                    before.iter().copied().chain(waits_for_dependents),
                );
                added.push((&live.key, delete));
            }
            // Not `EndedOrPostponed`: a postponed delete has deleted nothing yet. If the next wave began before that
            // delete, it could delete the object's namespace or CRD, and the object with it.
            barrier = Some(graph.add_barrier(Barrier::Ended, added.iter().map(|(_, id)| *id)));
            deletes.extend(added);
        }
        graph
    }

    /// Returns the objects that have to be gone before this one is deleted.
    fn dependents_to_await(&self, live: &Live) -> impl Iterator<Item = &Live> {
        self.edges.prune_after.get(&live.key).into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::desired::Desired;
    use crate::plan::fixtures::{live, policy, set};
    use crate::plan::graph::safety_page_tests;
    use crate::plan::{Observed, Policy, Risk, plan};

    fn lines(members: Vec<Live>) -> Vec<String> {
        with_graph(members, |graph| {
            graph.lines(|action| match action {
                DeleteAction::Delete(live) => live.key.name.clone(),
                DeleteAction::AwaitGone(live) => format!("gone {}", live.key.name),
                DeleteAction::ListContents(containers) => {
                    let names: Vec<&str> = containers.iter().map(|live| &*live.key.name).collect();
                    format!("list {}", names.join(" "))
                }
            })
        })
    }

    fn with_graph<T>(members: Vec<Live>, use_graph: impl FnOnce(Graph<DeleteAction<'_>>) -> T) -> T {
        let observed = Observed {
            members,
            ..Observed::default()
        };
        let policy = Policy {
            prune_all: Risk::Allowed,
            data_loss: Risk::Allowed,
            ..policy()
        };
        let plan = plan(&set(), &Desired::default(), &observed, &policy);
        let waves = plan.prune_waves().map(|wave| wave.iter().collect());
        use_graph(plan.build_delete_graph(waves))
    }

    #[test]
    fn containers_are_looked_into_right_before_they_are_deleted() {
        let members = vec![
            live("Namespace", None, "other"),
            live("ConfigMap", Some("shop"), "settings"),
            live("Deployment.apps", Some("shop"), "web"),
        ];
        assert_eq!(
            lines(members),
            [
                "web <-  |",
                "settings <-  | [web]",
                "list other <-  | [settings]",
                "other <-  | [settings], list other",
            ]
        );
    }

    #[test]
    fn an_object_is_deleted_once_what_depends_on_it_is_gone() {
        let database = live("StatefulSet.apps", Some("shop"), "db");
        let mut web = live("Deployment.apps", Some("shop"), "web");
        web.dependencies.objects.push(database.key.clone());
        let other = live("Deployment.apps", Some("shop"), "other");
        assert_eq!(
            lines(vec![database, web, other]),
            [
                "other <-  |",
                "web <-  |",
                "gone web <- web | [other web]",
                "db <- gone web | [other web]",
            ]
        );
    }

    #[test]
    fn the_safety_page_shows_these_edges() {
        let namespace = live("Namespace", None, "other");
        let mut web = live("Deployment.apps", Some("shop"), "web");
        web.dependencies.objects.push(namespace.key.clone());
        let first = live(
            "ValidatingWebhookConfiguration.admissionregistration.k8s.io",
            None,
            "first",
        );
        let last = live("Namespace", None, "last");
        let mut other = live("ConfigMap", Some("shop"), "settings");
        other.dependencies.objects.push(last.key.clone());
        with_graph(vec![namespace, web, first, last, other], |graph| {
            safety_page_tests::assert_page_has_exactly_the_edges(
                &[graph],
                &[
                    "a delete",
                    "the wait until an object is gone",
                    "the second LIST of what a namespace or CustomResourceDefinition holds",
                ],
                |action| match action {
                    DeleteAction::Delete(_) => "a delete",
                    DeleteAction::AwaitGone(_) => "the wait until an object is gone",
                    DeleteAction::ListContents(_) => {
                        "the second LIST of what a namespace or CustomResourceDefinition holds"
                    }
                },
                |action, before| match (action, before) {
                    (_, None) => "all deletes of the step before",
                    (_, Some(DeleteAction::Delete(_))) => "the delete of that object",
                    (DeleteAction::Delete(_), Some(DeleteAction::AwaitGone(_))) => {
                        "the wait until an object is gone, if that depends on it"
                    }
                    (_, Some(DeleteAction::AwaitGone(_))) => "the waits until what needs this step is gone",
                    (_, Some(DeleteAction::ListContents(_))) => {
                        "the second LIST of what a namespace or CustomResourceDefinition holds"
                    }
                },
                |_, edge| match edge {
                    EdgeKind::Needs => "it is skipped",
                    EdgeKind::Follows => "it begins anyway",
                },
            );
        });
    }
}
