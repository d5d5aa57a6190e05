//! Graphs of applies, as lines, and the table in docs/safety.md.

use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::model::object::Object;
use crate::model::resource::{Origin, Resource};
use crate::plan::fixtures::{desired as object, policy, set};
use crate::plan::graph::safety_page_tests;
use crate::plan::{Observed, plan};

/// Returns a line for each action of the graph for these members. Those named in `current` are Current already. All
/// namespaces exist, except `new`.
fn lines(members: Vec<DesiredObject>, current: &[&str]) -> Vec<String> {
    with_graph(members, current, |graph, desired| lines_of(&graph, desired))
}

fn lines_of(graph: &Graph<ApplyAction<'_>>, desired: &Desired) -> Vec<String> {
    graph.lines(|action| match action {
        ApplyAction::Apply(apply) => desired.members[apply.index].key.name.clone(),
        ApplyAction::AwaitKind(object) => format!("served {}", object.key.group_kind.kind),
        ApplyAction::AwaitCurrent(key) => format!("current {}", key.name),
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
    let namespaces = ["shop", "other", "plain", "far"].map(|name| (name.to_owned(), ()));
    let steps = plan.prerequisites.iter().chain(&plan.waves);
    use_graph(
        plan.build_apply_graph(
            steps,
            &desired,
            plan.edges.known.current.clone(),
            &namespaces.into(),
        ),
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
    definition_in("apiextensions.k8s.io")
}

fn definition_in(group: &str) -> DesiredObject {
    let definition = json!({"spec": {"group": "example.com", "names": {"kind": "Widget"}}});
    DesiredObject {
        object: Object::from(&definition),
        ..object(&format!("CustomResourceDefinition.{group}"), None, "widgets")
    }
}

#[test]
fn a_kind_of_the_same_name_in_another_group_defines_no_kind() {
    let widget = GroupKind::new("example.com", "Widget");
    assert_eq!(kind_defined_by_crd(&definition_of_widgets()), Some(widget));
    assert_eq!(kind_defined_by_crd(&definition_in("example.com")), None);
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

fn binding(kind: &str, namespace: Option<&str>, role: &str) -> DesiredObject {
    DesiredObject {
        object: Object::from(&json!({"roleRef": {"kind": role, "name": "role"}})),
        ..object(&format!("{kind}.rbac.authorization.k8s.io"), namespace, "binding")
    }
}

#[test]
fn bindings_follow_their_roles() {
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
fn a_binding_is_skipped_with_a_role_that_waits() {
    let gate = object("Deployment.apps", Some("far"), "gate");
    let role = object("ClusterRole.rbac.authorization.k8s.io", None, "role");
    let role = after(role, &[&gate]);
    for binding in [
        binding("RoleBinding", Some("shop"), "ClusterRole"),
        binding("ClusterRoleBinding", None, "ClusterRole"),
    ] {
        assert_eq!(
            lines(vec![binding, role.clone(), gate.clone()], &[]),
            [
                "gate <-  |",
                "current gate <- gate | [gate]",
                "role <- current gate | [gate]",
                "binding <- role | [role]",
            ]
        );
    }
}

#[test]
fn a_binding_comes_before_a_role_that_depends_on_it() {
    let binding = binding("RoleBinding", Some("shop"), "Role");
    let gate = after(object("Deployment.apps", Some("shop"), "gate"), &[&binding]);
    let role = object("Role.rbac.authorization.k8s.io", Some("shop"), "role");
    let role = after(role, &[&gate]);
    assert_eq!(
        lines(vec![role, gate, binding], &[]),
        [
            "binding <-  |",
            "current binding <- binding | [binding]",
            "gate <- current binding | [binding]",
            "current gate <- gate | [gate]",
            "role <- current gate | [gate]",
        ]
    );
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
fn what_is_in_a_new_namespace_needs_it() {
    let members = vec![
        object("ConfigMap", Some("new"), "settings"),
        object("Namespace", None, "new"),
    ];
    assert_eq!(lines(members, &[]), ["new <-  |", "settings <- new | [new]"]);
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
        ["widgets <-  |", "one <-  | [widgets], widgets",]
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

#[test]
fn dry_runs_wait_only_for_what_they_need() {
    let gate = object("Deployment.apps", Some("far"), "gate");
    let namespace = after(object("Namespace", None, "other"), &[&gate]);
    let inside = object("ConfigMap", Some("other"), "inside");
    let members = vec![
        gate,
        namespace,
        inside,
        definition_of_widgets(),
        promised_widget("one"),
    ];
    let lines = with_graph(members, &[], |graph, desired| {
        lines_of(&graph.with_needs_only(), desired)
    });
    assert_eq!(
        lines,
        [
            "widgets <-  |",
            "gate <-  |",
            "served Widget <- widgets |",
            "one <- served Widget |",
            "current gate <- gate |",
            "other <- current gate |",
            "inside <- other |",
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
            safety_page_tests::assert_page_has_exactly_the_edges(
                &[changed, new],
                &[
                    "an apply",
                    "the wait until an object is Current",
                    "the wait until a new kind is served",
                ],
                |action| match action {
                    ApplyAction::Apply(_) => "an apply",
                    ApplyAction::AwaitKind(_) => "the wait until a new kind is served",
                    ApplyAction::AwaitCurrent(_) => "the wait until an object is Current",
                },
                |action, before| match (action, before) {
                    (_, None) => "all applies of the step before",
                    (ApplyAction::Apply(_), Some(ApplyAction::Apply(_))) => {
                        "the apply of its namespace, CustomResourceDefinition or role"
                    }
                    (ApplyAction::AwaitCurrent(_), Some(ApplyAction::Apply(_))) => "the apply of that object",
                    (_, Some(ApplyAction::Apply(_))) => "the apply of its CustomResourceDefinition",
                    (_, Some(ApplyAction::AwaitCurrent(_))) => {
                        "the wait until an object is Current, if it depends on it"
                    }
                    (_, Some(ApplyAction::AwaitKind(_))) => "the wait until its new kind is served",
                },
                |_, edge| match edge {
                    EdgeKind::Needs => "it is skipped",
                    EdgeKind::Follows => "it begins anyway",
                },
            );
        });
    });
}
