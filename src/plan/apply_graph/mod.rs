//! The order in which a run applies objects, as a graph: step by step, each object after what it depends on, and after
//! the namespace and the CRD that it needs.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::graph::{Barrier, EdgeKind, Graph, NodeId};
use super::{Apply, Plan, is_not_yet_served};
use crate::manifest::desired::{Desired, DesiredObject, kind_defined_by_crd, role_of_binding};
use crate::model::containers::Containers;
use crate::model::identity::{GroupKind, ObjectKey};

/// One action of a run that applies objects.
#[derive(Debug, Clone)]
pub enum ApplyAction<'p> {
    /// Applies an object.
    Apply(&'p Apply),
    /// Waits until the server serves the kind of this object. The run applies the CRD of the kind.
    AwaitKind(&'p DesiredObject),
    /// Waits until this object is Current, because objects of the manifests depend on it.
    AwaitCurrent(&'p ObjectKey),
}

impl Plan {
    /// Returns the graph that applies these steps. `current` are the objects that were Current before the run, and
    /// `namespaces` has the namespaces that existed as keys.
    pub fn build_apply_graph<'p, T>(
        &'p self,
        steps: impl IntoIterator<Item = &'p Vec<Apply>>,
        desired: &'p Desired,
        current: BTreeSet<ObjectKey>,
        namespaces: &'p BTreeMap<String, T>,
    ) -> Graph<ApplyAction<'p>> {
        let members = self.all_applies().map(|apply| &desired.members[apply.index]);
        let crds = members.filter_map(|member| Some((kind_defined_by_crd(member)?, &member.key)));
        let mut builder = Builder {
            current_before_run: current,
            namespaces_before_run: namespaces,
            desired,
            crds: crds.collect(),
            graph: Graph::default(),
            last_barrier: None,
            applies: HashMap::new(),
            waits_until_current: BTreeMap::new(),
            waits_until_served: BTreeMap::new(),
        };
        for step in steps {
            builder.add_step(step);
        }
        builder.graph
    }
}

/// Builds an apply graph step by step. Each map holds the actions that the graph has so far.
struct Builder<'p, T> {
    /// The objects that were Current before the run.
    current_before_run: BTreeSet<ObjectKey>,
    /// The namespaces that existed before the run, as keys.
    namespaces_before_run: &'p BTreeMap<String, T>,
    desired: &'p Desired,
    /// The CRDs that the run applies, by the kind that they define.
    crds: HashMap<GroupKind, &'p ObjectKey>,
    graph: Graph<ApplyAction<'p>>,
    /// The barrier at the end of the previous step; `None` in the first step.
    last_barrier: Option<NodeId>,
    /// The applies, by their objects.
    applies: HashMap<&'p ObjectKey, NodeId>,
    /// The [`ApplyAction::AwaitCurrent`] actions, by their objects.
    waits_until_current: BTreeMap<&'p ObjectKey, NodeId>,
    /// The [`ApplyAction::AwaitKind`] actions, by kind and version.
    waits_until_served: BTreeMap<(GroupKind, &'p str), NodeId>,
}

impl<'p, T> Builder<'p, T> {
    fn add_step(&mut self, step: &'p [Apply]) {
        // A binding has an edge to the apply of its role, so the roles of the step have to be in the graph first.
        let (bindings, others): (Vec<&Apply>, Vec<&Apply>) = step
            .iter()
            .partition(|apply| role_of_binding(&self.desired.members[apply.index]).is_some());
        let ordered = others.into_iter().chain(bindings);
        let added: Vec<NodeId> = ordered.map(|apply| self.add_apply(apply)).collect();
        // An apply is postponed while a webhook does not answer. The Pods of the webhook may be applied in a later
        // step, so the next step must not wait for postponed applies.
        let barrier = Barrier::EndedOrPostponed;
        self.last_barrier = Some(self.graph.add_barrier(barrier, added));
    }

    fn add_apply(&mut self, apply: &'p Apply) -> NodeId {
        let object = &self.desired.members[apply.index];
        let mut before = self.edges_to_step_before_and(None);
        for dependency in &object.depends_on {
            let wait = self.find_or_add_wait_until_current(dependency);
            before.extend(wait.map(|id| (id, EdgeKind::Needs)));
        }
        let namespace_key = object.key.namespace.as_deref().map(Containers::namespace_key);
        let namespace = namespace_key.and_then(|key| self.applies.get(&key)).copied();
        let crd = self.find_apply_of_crd(&object.key.group_kind);
        let role = role_of_binding(object)
            .and_then(|key| self.applies.get(&key))
            .copied();
        for earlier in [namespace, crd, role].into_iter().flatten() {
            before.push((earlier, self.choose_edge_to_object_of(earlier)));
        }
        if is_not_yet_served(object) {
            before.push((self.find_or_add_wait_until_served(object), EdgeKind::Needs));
        }
        let id = self.graph.add(ApplyAction::Apply(apply), before);
        self.applies.insert(&object.key, id);
        id
    }

    /// Returns the edge from an object to `earlier`, the apply of its namespace, CRD or role.
    ///
    /// If that apply fails, the object is sent anyway: the namespace, CRD or role may exist from an earlier run. But the
    /// object is skipped if the namespace did not exist before the run. It is skipped, too, if the namespace, CRD or
    /// role has dependencies of its own, because of which it may be skipped.
    fn choose_edge_to_object_of(&self, earlier: NodeId) -> EdgeKind {
        let Some(ApplyAction::Apply(apply)) = self.graph.action(earlier) else {
            return EdgeKind::Follows;
        };
        let DesiredObject { key, depends_on, .. } = &self.desired.members[apply.index];
        let is_new_namespace =
            key.group_kind.is_namespace() && !self.namespaces_before_run.contains_key(&key.name);
        if is_new_namespace || !depends_on.is_empty() {
            EdgeKind::Needs
        } else {
            EdgeKind::Follows
        }
    }

    /// Returns the apply of the CRD that defines this kind, if the run applies it and it is in the graph already.
    fn find_apply_of_crd(&self, kind: &GroupKind) -> Option<NodeId> {
        self.applies.get(*self.crds.get(kind)?).copied()
    }

    /// Returns the wait until this dependency of other objects is Current, which is added if the graph lacks it. `None`
    /// if no wait is needed, because the dependency was Current before the run and is not applied.
    fn find_or_add_wait_until_current(&mut self, dependency: &'p ObjectKey) -> Option<NodeId> {
        if let Some(wait) = self.waits_until_current.get(dependency) {
            return Some(*wait);
        }
        let apply = self.applies.get(dependency).copied();
        if apply.is_none() && self.current_before_run.contains(dependency) {
            return None;
        }
        let before = self.edges_to_step_before_and(apply.map(|id| (id, EdgeKind::Needs)));
        let wait = self.graph.add(ApplyAction::AwaitCurrent(dependency), before);
        self.waits_until_current.insert(dependency, wait);
        Some(wait)
    }

    /// Returns the wait until the kind of this object is served in the object's version.
    fn find_or_add_wait_until_served(&mut self, object: &'p DesiredObject) -> NodeId {
        let kind_and_version = (object.key.group_kind.clone(), &*object.resource.version);
        if let Some(wait) = self.waits_until_served.get(&kind_and_version) {
            return *wait;
        }
        let crd = self.find_apply_of_crd(&object.key.group_kind);
        let before = self.edges_to_step_before_and(crd.map(|id| (id, EdgeKind::Needs)));
        let wait = self.graph.add(ApplyAction::AwaitKind(object), before);
        self.waits_until_served.insert(kind_and_version, wait);
        wait
    }

    /// Returns the edge to the barrier of the step before, followed by `other`.
    fn edges_to_step_before_and(&self, other: Option<(NodeId, EdgeKind)>) -> Vec<(NodeId, EdgeKind)> {
        let step = self.last_barrier.map(|barrier| (barrier, EdgeKind::Follows));
        step.into_iter().chain(other).collect()
    }
}

#[cfg(test)]
mod tests;
