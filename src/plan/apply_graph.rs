//! The order in which a run applies objects, as a graph: step by step, each object after what it depends on, and after
//! the namespace and the CRD that it needs.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::graph::{ActionId, Barrier, Edge, Graph};
use super::{Apply, Plan, is_not_yet_served};
use crate::manifest::desired::{Desired, DesiredObject, defined_kind};
use crate::model::containers::Containers;
use crate::model::identity::{GroupKind, ObjectKey};

/// One action of a run that applies objects.
#[derive(Debug, Clone)]
pub enum ApplyAction<'p> {
    /// Applies an object.
    Apply(&'p Apply),
    /// Waits until the server serves the kind of this object, which the run defines.
    AwaitKind(&'p DesiredObject),
    /// Waits until the server uses the changed CRD of these objects.
    AwaitSchema(Vec<&'p Apply>),
    /// Waits until this object is Current, because others depend on it.
    AwaitCurrent(&'p ObjectKey),
}

impl Plan {
    /// Returns the graph that applies these steps. `current` are the objects that are Current already.
    pub fn apply_graph<'p>(
        &'p self,
        steps: impl IntoIterator<Item = &'p Vec<Apply>>,
        desired: &'p Desired,
        current: BTreeSet<ObjectKey>,
    ) -> Graph<ApplyAction<'p>> {
        let members = self.all_applies().map(|apply| &desired.members[apply.index]);
        let definitions = members.filter_map(|member| Some((defined_kind(member)?, &member.key)));
        let mut builder = Builder {
            known_current: current,
            desired,
            definitions: definitions.collect(),
            graph: Graph::default(),
            barrier: None,
            applied: HashMap::new(),
            current: BTreeMap::new(),
            served: BTreeMap::new(),
            typed: BTreeMap::new(),
        };
        for step in steps {
            builder.add_step(step);
        }
        builder.graph
    }
}

struct Builder<'p> {
    /// The objects that are Current before the first step.
    known_current: BTreeSet<ObjectKey>,
    desired: &'p Desired,
    /// The CRDs that the run applies, by the kind that they define.
    definitions: HashMap<GroupKind, &'p ObjectKey>,
    graph: Graph<ApplyAction<'p>>,
    /// The end of the step before.
    barrier: Option<ActionId>,
    applied: HashMap<&'p ObjectKey, ActionId>,
    /// The waits for objects that others depend on.
    current: BTreeMap<&'p ObjectKey, ActionId>,
    /// The waits for new kinds, by kind and version.
    served: BTreeMap<(GroupKind, &'p str), ActionId>,
    /// The waits for changed CRDs.
    typed: BTreeMap<&'p GroupKind, ActionId>,
}

impl<'p> Builder<'p> {
    fn add_step(&mut self, step: &'p [Apply]) {
        let mut by_kind: BTreeMap<&GroupKind, Vec<&Apply>> = BTreeMap::new();
        for apply in step {
            let object = &self.desired.members[apply.index];
            if self.definitions.contains_key(&object.key.group_kind) && !is_not_yet_served(object) {
                by_kind.entry(&object.key.group_kind).or_default().push(apply);
            }
        }
        for (kind, applies) in by_kind {
            if !self.typed.contains_key(kind) {
                let before = self.after_step(self.definition(kind).map(|id| (id, Edge::Follows)));
                let wait = self.graph.add(ApplyAction::AwaitSchema(applies), before);
                self.typed.insert(kind, wait);
            }
        }
        let (bindings, others): (Vec<&Apply>, Vec<&Apply>) = step
            .iter()
            .partition(|apply| bound_role(&self.desired.members[apply.index]).is_some());
        let ordered = others.into_iter().chain(bindings);
        let added: Vec<ActionId> = ordered.map(|apply| self.add_apply(apply)).collect();
        // The Pods of a webhook may come with a later step.
        let barrier = Barrier::EndedOrPostponed;
        self.barrier = Some(self.graph.add_barrier(barrier, added));
    }

    fn add_apply(&mut self, apply: &'p Apply) -> ActionId {
        let object = &self.desired.members[apply.index];
        let mut before = self.after_step(None);
        for dependency in &object.depends_on {
            before.extend(self.wait_for(dependency).map(|id| (id, Edge::Needs)));
        }
        let namespace_key = object.key.namespace.as_deref().map(Containers::namespace_key);
        let namespace = namespace_key.and_then(|key| self.applied.get(&key)).copied();
        let definition = self.definition(&object.key.group_kind);
        let role = bound_role(object).and_then(|key| self.applied.get(&key)).copied();
        for earlier in [namespace, definition, role].into_iter().flatten() {
            before.push((earlier, self.edge_to(earlier)));
        }
        if is_not_yet_served(object) {
            before.push((self.wait_until_served(object), Edge::Needs));
        }
        let typed = self.typed.get(&object.key.group_kind);
        before.extend(typed.map(|id| (*id, Edge::Follows)));
        let id = self.graph.add(ApplyAction::Apply(apply), before);
        self.applied.insert(&object.key, id);
        id
    }

    /// Returns the edge from an object to the apply of its namespace, CRD or role. The object is sent even if that apply
    /// fails, because the other may exist. If that has dependencies of its own, the object is skipped with it.
    fn edge_to(&self, earlier: ActionId) -> Edge {
        let depends = match self.graph.action(earlier) {
            Some(ApplyAction::Apply(apply)) => !self.desired.members[apply.index].depends_on.is_empty(),
            _ => false,
        };
        if depends { Edge::Needs } else { Edge::Follows }
    }

    fn definition(&self, kind: &GroupKind) -> Option<ActionId> {
        self.applied.get(*self.definitions.get(kind)?).copied()
    }

    /// Returns the wait for an object that others depend on; `None` if it is Current and is not applied.
    fn wait_for(&mut self, dependency: &'p ObjectKey) -> Option<ActionId> {
        if let Some(wait) = self.current.get(dependency) {
            return Some(*wait);
        }
        let applied = self.applied.get(dependency).copied();
        if applied.is_none() && self.known_current.contains(dependency) {
            return None;
        }
        let before = self.after_step(applied.map(|id| (id, Edge::Needs)));
        let wait = self.graph.add(ApplyAction::AwaitCurrent(dependency), before);
        self.current.insert(dependency, wait);
        Some(wait)
    }

    /// Returns the wait for the kind of this object in its version.
    fn wait_until_served(&mut self, object: &'p DesiredObject) -> ActionId {
        let version = (object.key.group_kind.clone(), &*object.resource.version);
        if let Some(wait) = self.served.get(&version) {
            return *wait;
        }
        let definition = self.definition(&version.0);
        let before = self.after_step(definition.map(|id| (id, Edge::Needs)));
        let wait = self.graph.add(ApplyAction::AwaitKind(object), before);
        self.served.insert(version, wait);
        wait
    }

    /// Returns the edge to the step before, and this other one.
    fn after_step(&self, other: Option<(ActionId, Edge)>) -> Vec<(ActionId, Edge)> {
        let step = self.barrier.map(|barrier| (barrier, Edge::Follows));
        step.into_iter().chain(other).collect()
    }
}

/// Returns the role of a binding: without the verb `bind`, the server admits a binding only if its role exists.
fn bound_role(object: &DesiredObject) -> Option<ObjectKey> {
    const GROUP: &str = "rbac.authorization.k8s.io";
    let kind = &object.key.group_kind;
    if kind.group != GROUP || !["RoleBinding", "ClusterRoleBinding"].contains(&&*kind.kind) {
        return None;
    }
    let binding = object.object.value();
    let [kind, name] = ["kind", "name"].map(|field| binding["roleRef"][field].as_str());
    let namespace = object.key.namespace.clone().filter(|_| kind == Some("Role"));
    Some(ObjectKey {
        group_kind: GroupKind::new(GROUP, kind?),
        namespace,
        name: name?.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::model::object::Object;
    use crate::model::resource::{Origin, Resource};
    use crate::plan::fixtures::{desired as object, policy, set};
    use crate::plan::graph::documentation;
    use crate::plan::{Observed, plan};

    /// Returns a line for each action of the graph for these members. Those named in `current` are Current already.
    fn lines(members: Vec<DesiredObject>, current: &[&str]) -> Vec<String> {
        with_graph(members, current, |graph, desired| {
            graph.lines(|action| match action {
                ApplyAction::Apply(apply) => desired.members[apply.index].key.name.clone(),
                ApplyAction::AwaitKind(object) => format!("served {}", object.key.group_kind.kind),
                ApplyAction::AwaitSchema(applies) => {
                    let object = &desired.members[applies[0].index];
                    format!("typed {}", object.key.group_kind.kind)
                }
                ApplyAction::AwaitCurrent(key) => format!("current {}", key.name),
            })
        })
    }

    fn with_graph<T>(
        members: Vec<DesiredObject>,
        current: &[&str],
        use_graph: impl FnOnce(Graph<ApplyAction<'_>>, &Desired) -> T,
    ) -> T {
        let is_current = |member: &&DesiredObject| current.contains(&&*member.key.name);
        let current: BTreeSet<ObjectKey> = members
            .iter()
            .filter(is_current)
            .map(|member| member.key.clone())
            .collect();
        let outside = members.iter().flat_map(|member| &member.depends_on);
        let outside = outside.filter(|key| key.name == "current").cloned();
        let mut observed = Observed::default();
        observed.dependencies.current = current.into_iter().chain(outside).collect();
        let desired = Desired {
            members,
            ..Desired::default()
        };
        let plan = plan(&set(), &desired, &observed, &policy());
        let steps = plan.prerequisites.iter().chain(&plan.waves);
        use_graph(
            plan.apply_graph(steps, &desired, plan.edges.known.current.clone()),
            &desired,
        )
    }

    fn after(object: DesiredObject, before: &[&DesiredObject]) -> DesiredObject {
        DesiredObject {
            depends_on: before.iter().map(|before| before.key.clone()).collect(),
            ..object
        }
    }

    fn definition_of_widgets() -> DesiredObject {
        let definition = json!({"spec": {"group": "example.com", "names": {"kind": "Widget"}}});
        DesiredObject {
            object: Object::from(&definition),
            ..object("CustomResourceDefinition.apiextensions.k8s.io", None, "widgets")
        }
    }

    #[test]
    fn steps_follow_each_other_and_objects_the_namespace_that_they_are_in() {
        let members = vec![
            object("Deployment.apps", Some("other"), "web"),
            object("ConfigMap", Some("other"), "settings"),
            object("Namespace", None, "other"),
        ];
        assert_eq!(
            lines(members, &[]),
            [
                "other <-  |",
                "settings <-  | [other], other",
                "web <-  | [settings], other",
            ]
        );
    }

    #[test]
    fn bindings_follow_their_roles() {
        let binding = |kind: &str, namespace: Option<&str>, role: &str| DesiredObject {
            object: Object::from(&json!({"roleRef": {"kind": role, "name": "role"}})),
            ..object(&format!("{kind}.rbac.authorization.k8s.io"), namespace, "binding")
        };
        let role =
            |kind: &str, namespace| object(&format!("{kind}.rbac.authorization.k8s.io"), namespace, "role");
        let (namespaced, cluster) = (role("Role", Some("shop")), role("ClusterRole", None));
        for (binding, role, edge) in [
            (
                binding("RoleBinding", Some("shop"), "Role"),
                &namespaced,
                "binding <-  | role",
            ),
            (
                binding("RoleBinding", Some("shop"), "ClusterRole"),
                &cluster,
                "binding <-  | role",
            ),
            (
                binding("ClusterRoleBinding", None, "ClusterRole"),
                &cluster,
                "binding <-  | role",
            ),
            (
                binding("RoleBinding", Some("other"), "Role"),
                &namespaced,
                "binding <-  |",
            ),
        ] {
            let lines = lines(vec![binding, role.clone()], &[]);
            assert!(lines.iter().any(|line| line == edge), "{lines:?}");
        }
    }

    #[test]
    fn an_object_needs_what_it_depends_on_to_be_current() {
        let database = object("StatefulSet.apps", Some("shop"), "db");
        let outside = object("Deployment.apps", Some("far"), "outside");
        let current = object("Deployment.apps", Some("far"), "current");
        let web = after(
            object("Deployment.apps", Some("shop"), "web"),
            &[&database, &current],
        );
        let late = after(object("ConfigMap", Some("shop"), "late"), &[&outside, &database]);
        assert_eq!(
            lines(vec![database.clone(), web.clone(), late], &["db"]),
            [
                "db <-  |",
                "current db <- db | [db]",
                "web <- current db | [db]",
                "current outside <-  | [db]",
                "late <- current outside, current db | [db]",
            ]
        );
    }

    #[test]
    fn what_is_in_a_skipped_namespace_is_skipped_with_it() {
        let gate = object("Deployment.apps", Some("far"), "gate");
        let namespace = after(object("Namespace", None, "other"), &[&gate]);
        let inside = object("ConfigMap", Some("other"), "inside");
        assert_eq!(
            lines(vec![gate, namespace, inside], &[]),
            [
                "gate <-  |",
                "current gate <- gate | [gate]",
                "other <- current gate | [gate]",
                "inside <- other | [other]",
            ]
        );
    }

    fn widget(name: &str) -> DesiredObject {
        object("Widget.example.com", Some("shop"), name)
    }

    /// A widget whose kind is not served yet.
    fn promised_widget(name: &str) -> DesiredObject {
        let object = widget(name);
        let resource = Resource {
            origin: Origin::NotYetServed,
            ..(*object.resource).clone()
        };
        DesiredObject {
            resource: Arc::new(resource),
            ..object
        }
    }

    #[test]
    fn a_kind_is_waited_for_once_it_is_defined_or_changed() {
        assert_eq!(
            lines(vec![definition_of_widgets(), widget("one")], &[]),
            [
                "widgets <-  |",
                "typed Widget <-  | [widgets], widgets",
                "one <-  | [widgets], widgets, typed Widget",
            ]
        );
        let promised = ["one", "two"].map(promised_widget);
        assert_eq!(
            lines([vec![definition_of_widgets()], promised.into()].concat(), &[]),
            [
                "widgets <-  |",
                "served Widget <- widgets | [widgets]",
                "one <- served Widget | [widgets], widgets",
                "two <- served Widget | [widgets], widgets",
            ]
        );
    }

    /// These objects produce every kind of edge.
    #[test]
    fn the_safety_page_shows_these_edges() {
        let first = object("ConfigMap", Some("shop"), "first");
        let gate = object("Deployment.apps", Some("far"), "gate");
        let outside = object("Deployment.apps", Some("far"), "outside");
        let namespace = after(object("Namespace", None, "other"), &[&gate]);
        let late = after(object("ConfigMap", Some("other"), "late"), &[&outside]);
        let last = after(object("ConfigMap", Some("shop"), "last"), &[&late]);
        let ordered = [&first, &gate, &namespace, &late, &last];
        let ordered: Vec<DesiredObject> = ordered.into_iter().cloned().collect();
        let plain = object("Namespace", None, "plain");
        let inside = object("ConfigMap", Some("plain"), "inside");
        let members = |widget| {
            let own = vec![definition_of_widgets(), widget, plain.clone(), inside.clone()];
            [ordered.clone(), own].concat()
        };
        with_graph(members(widget("one")), &[], |changed, _| {
            with_graph(members(promised_widget("one")), &[], |new, _| {
                documentation::assert_shows(
                    &[changed, new],
                    &[
                        "an apply",
                        "the wait until an object is Current",
                        "the wait until a new kind is served",
                        "the wait until a changed CustomResourceDefinition is in use",
                    ],
                    |action| match action {
                        ApplyAction::Apply(_) => "an apply",
                        ApplyAction::AwaitKind(_) => "the wait until a new kind is served",
                        ApplyAction::AwaitSchema(_) => {
                            "the wait until a changed CustomResourceDefinition is in use"
                        }
                        ApplyAction::AwaitCurrent(_) => "the wait until an object is Current",
                    },
                    |action, before| match (action, before) {
                        (_, None) => "all applies of the step before",
                        (ApplyAction::Apply(_), Some(ApplyAction::Apply(_))) => {
                            "the apply of its namespace, CustomResourceDefinition or role"
                        }
                        (ApplyAction::AwaitCurrent(_), Some(ApplyAction::Apply(_))) => {
                            "the apply of that object"
                        }
                        (_, Some(ApplyAction::Apply(_))) => "the apply of its CustomResourceDefinition",
                        (_, Some(ApplyAction::AwaitCurrent(_))) => {
                            "the wait until an object is Current, if it depends on it"
                        }
                        (_, Some(ApplyAction::AwaitKind(_))) => "the wait until its new kind is served",
                        (_, Some(ApplyAction::AwaitSchema(_))) => {
                            "the wait until its changed CustomResourceDefinition is in use"
                        }
                    },
                    |_, edge| match edge {
                        Edge::Needs => "it is skipped",
                        Edge::Follows => "it begins anyway",
                    },
                );
            });
        });
    }
}
