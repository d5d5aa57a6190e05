//! The order between objects of the manifests: by the annotation `config.kubernetes.io/depends-on`, and because a
//! namespace has to exist before its objects, a CRD before the objects of its kind, and a role before its bindings.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::invalid_objects_by_kind::InvalidObject;
use super::{Desired, DesiredObject};
use crate::model::applyset::ParentIdentity;
use crate::model::containers::Containers;
use crate::model::depends_on::{self, DEPENDS_ON};
use crate::model::identity::{GroupKind, ObjectKey};
use crate::model::message::Message;
use crate::model::topological_ranks::DependencyGraph;

/// Reads what an object depends on from its metadata.
pub(super) fn parse_depends_on_annotation(
    key: &ObjectKey,
    metadata: &Map<String, Value>,
) -> Result<Vec<ObjectKey>, Message> {
    let Some(text) = metadata
        .get("annotations")
        .and_then(|annotations| annotations.get(DEPENDS_ON)?.as_str())
    else {
        return Ok(Vec::new());
    };
    let objects = depends_on::parse(text).map_err(|fault| {
        Message::new(format!("{key}: annotation {DEPENDS_ON}: {fault}")).with_hint(
            "write group/Kind/name or group/namespaces/NAMESPACE/Kind/name, with an empty group for core kinds: /namespaces/shop/Secret/login",
        )
    })?;
    if objects.contains(key) {
        return Err(cycle_message([key, key]));
    }
    Ok(objects)
}

/// Finds members that must exist before the parent of the set, and depend on members that are applied after the parent.
pub(super) fn find_misordered_prerequisites(
    desired: &Desired,
    parent: &ParentIdentity,
) -> Vec<InvalidObject> {
    desired
        .members
        .iter()
        .filter(|member| !member.depends_on.is_empty() && must_exist_before_parent(member, parent))
        .filter_map(|member| {
            let dependency = member.depends_on.iter().find_map(|key| {
                let dependency = desired.members.iter().find(|other| other.key == *key)?;
                (!must_exist_before_parent(dependency, parent)).then_some(dependency)
            })?;
            let key = &member.key;
            let text = format!(
                "{key}: depends on {}, which is applied after it: the set's parent needs {key} first",
                dependency.key
            );
            let problem = Message::new(text).with_hint(dependency_removal_hint());
            Some(InvalidObject::new(member.position.clone(), problem))
        })
        .collect()
}

/// Finds a dependency of the parent itself. The parent is written before the members, and is not ordered among them.
pub(super) fn find_dependency_of_parent(desired: &Desired) -> Option<InvalidObject> {
    let parent = desired.parent.as_ref()?;
    let dependency = parent.depends_on.first()?;
    let text = format!(
        "{}: depends on {dependency}, but the set's parent is written before all other objects",
        parent.key
    );
    let problem = Message::new(text).with_hint(format!(
        "remove the annotation {DEPENDS_ON} from its manifest, or name another object as the parent"
    ));
    Some(InvalidObject::new(parent.position.clone(), problem))
}

/// Returns whether the object has to exist before the parent: it is the parent's namespace, or the CRD of
/// its kind. Both may be members of the parent's set.
pub fn must_exist_before_parent(object: &DesiredObject, parent: &ParentIdentity) -> bool {
    let key = &object.key;
    let is_parent_namespace =
        key.group_kind == GroupKind::for_namespaces() && Some(&key.name) == parent.namespace.as_ref();
    is_parent_namespace || kind_defined_by_crd(object).as_ref() == Some(&parent.group_kind)
}

/// Finds a cycle of dependencies.
pub(super) fn find_cycle_error(desired: &Desired) -> Option<InvalidObject> {
    let graph = build_dependency_graph_if_annotated(&desired.members, |_| 0)?;
    let cycle = graph.ranks().err()?;
    let first = *cycle.first()?;
    let path = cycle.iter().chain([&first]);
    Some(InvalidObject::new(
        desired.members[first].position.clone(),
        cycle_message(path.map(|index| &desired.members[*index].key)),
    ))
}

/// Returns the message about objects that each depend on the next one. The last object of the path is the first one
/// again.
fn cycle_message<'k>(path: impl IntoIterator<Item = &'k ObjectKey>) -> Message {
    let names: Vec<String> = path.into_iter().map(ToString::to_string).collect();
    Message::new(format!("dependencies form a cycle: {}", names.join(" -> ")))
        .with_hint(dependency_removal_hint())
}

fn dependency_removal_hint() -> String {
    format!("remove one of them from the annotation {DEPENDS_ON}")
}

/// Returns the graph that orders the members in their waves; `None` if no member has the annotation. Without it, the
/// waves alone bring namespaces and CRDs before other objects.
///
/// A cycle of the graph consists of dependencies that the user wrote and of namespaces and CRDs, but not of roles.
pub fn build_dependency_graph_if_annotated(
    members: &[DesiredObject],
    wave: impl Fn(&DesiredObject) -> usize,
) -> Option<DependencyGraph> {
    if members.iter().all(|member| member.depends_on.is_empty()) {
        return None;
    }
    let indexes: HashMap<&ObjectKey, usize> = members.iter().map(|member| &member.key).zip(0..).collect();
    let crds: HashMap<GroupKind, usize> = members
        .iter()
        .enumerate()
        .filter_map(|(index, member)| Some((kind_defined_by_crd(member)?, index)))
        .collect();
    let mut graph = DependencyGraph::new(members.iter().map(wave));
    for (index, member) in members.iter().enumerate() {
        let namespace = member.key.namespace.as_deref().map(Containers::namespace_key);
        let dependencies = member
            .depends_on
            .iter()
            .chain(&namespace)
            .filter_map(|key| indexes.get(key));
        for dependency in dependencies.chain(crds.get(&member.key.group_kind)) {
            graph.add_edge(*dependency, index);
        }
    }
    for (index, member) in members.iter().enumerate() {
        let role = role_of_binding(member).and_then(|key| indexes.get(&key).copied());
        // Without dependencies of its own, the role is in the step of the binding or in an earlier one. A role that
        // depends on its binding comes after it.
        if let Some(role) = role
            && !members[role].depends_on.is_empty()
            && !graph.has_path(index, role)
        {
            graph.add_edge(role, index);
        }
    }
    Some(graph)
}

/// Returns the kind that a CRD defines; `None` for any other object.
pub fn kind_defined_by_crd(object: &DesiredObject) -> Option<GroupKind> {
    if object.key.group_kind != GroupKind::custom_resource_definition() {
        return None;
    }
    GroupKind::defined_by_crd(&object.object.value())
}

/// Returns the role that a `RoleBinding` or `ClusterRoleBinding` refers to; `None` for any other object. The role has
/// to be applied first: to a user without the verb `bind`, the server permits a binding only if its role exists.
pub fn role_of_binding(object: &DesiredObject) -> Option<ObjectKey> {
    const GROUP: &str = "rbac.authorization.k8s.io";
    let kind = &object.key.group_kind;
    if kind.group != GROUP || !["RoleBinding", "ClusterRoleBinding"].contains(&&*kind.kind) {
        return None;
    }
    let binding = object.object.value();
    let [role_kind, role_name] = ["kind", "name"].map(|field| binding["roleRef"][field].as_str());
    let namespace = object.key.namespace.clone().filter(|_| role_kind == Some("Role"));
    Some(ObjectKey {
        group_kind: GroupKind::new(GROUP, role_kind?),
        namespace,
        name: role_name?.to_owned(),
    })
}
