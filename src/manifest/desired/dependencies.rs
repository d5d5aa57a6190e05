//! Which objects of the manifests come before which: by the annotation
//! `config.kubernetes.io/depends-on`, and because a namespace or CRD has to exist before what it holds.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::{Desired, DesiredObject, InvalidObject, InvalidObjectProblem};
use crate::model::applyset::ParentIdentity;
use crate::model::dependency_ranks::DependencyGraph;
use crate::model::depends_on::{self, DEPENDS_ON};
use crate::model::identity::{GroupKind, ObjectKey};

/// Reads what an object depends on from its metadata.
pub(super) fn parse(
    key: &ObjectKey,
    metadata: &Map<String, Value>,
) -> Result<Vec<ObjectKey>, Box<InvalidObjectProblem>> {
    let annotation = metadata
        .get("annotations")
        .and_then(|annotations| annotations.get(DEPENDS_ON));
    let Some(text) = annotation.and_then(Value::as_str) else {
        return Ok(Vec::new());
    };
    let objects = depends_on::parse(text).map_err(|fault| {
        Box::new(InvalidObjectProblem::MalformedDependency {
            key: key.clone(),
            fault,
        })
    })?;
    if objects.contains(key) {
        let path = vec![key.clone(), key.clone()];
        return Err(Box::new(InvalidObjectProblem::DependencyCycle { path }));
    }
    Ok(objects)
}

/// Finds members that have to exist before the parent of the set, and depend on others that do not.
pub(super) fn find_misplaced(desired: &Desired, parent: &ParentIdentity) -> Vec<InvalidObject> {
    desired
        .members
        .iter()
        .filter(|member| !member.depends_on.is_empty() && must_exist_before_parent(member, parent))
        .filter_map(|member| {
            let later = member.depends_on.iter().find_map(|key| {
                let dependency = desired.members.iter().find(|other| other.key == *key)?;
                (!must_exist_before_parent(dependency, parent)).then_some(dependency)
            })?;
            Some(InvalidObject {
                position: member.position.clone(),
                problem: InvalidObjectProblem::NeededByParent {
                    key: member.key.clone(),
                    dependency: later.key.clone(),
                },
            })
        })
        .collect()
}

/// Returns whether the object has to exist before the parent: it is the parent's namespace, or the CRD of
/// its kind. Both may be members of the parent's set.
pub fn must_exist_before_parent(object: &DesiredObject, parent: &ParentIdentity) -> bool {
    let key = &object.key;
    let is_parent_namespace =
        key.group_kind == GroupKind::new("", "Namespace") && Some(&key.name) == parent.namespace.as_ref();
    is_parent_namespace || defined_kind(object).as_ref() == Some(&parent.group_kind)
}

/// Finds a cycle of dependencies.
pub(super) fn find_cycle(desired: &Desired) -> Option<InvalidObject> {
    let graph = graph(&desired.members, |_| 0)?;
    let cycle = graph.ranks().err()?;
    let keys = cycle.iter().chain(cycle.first());
    Some(InvalidObject {
        position: desired.members[*cycle.first()?].position.clone(),
        problem: InvalidObjectProblem::DependencyCycle {
            path: keys.map(|place| desired.members[*place].key.clone()).collect(),
        },
    })
}

/// Returns the order of members, each in its wave; `None` if none depends on another.
pub fn graph(members: &[DesiredObject], wave: impl Fn(&DesiredObject) -> usize) -> Option<DependencyGraph> {
    if members.iter().all(|member| member.depends_on.is_empty()) {
        return None;
    }
    let places: HashMap<&ObjectKey, usize> = members.iter().map(|member| &member.key).zip(0..).collect();
    let kinds: HashMap<GroupKind, usize> = members
        .iter()
        .enumerate()
        .filter_map(|(place, member)| Some((defined_kind(member)?, place)))
        .collect();
    let mut graph = DependencyGraph::new(members.iter().map(wave));
    for (place, member) in members.iter().enumerate() {
        let namespace = member.key.namespace.as_ref().map(|namespace| ObjectKey {
            group_kind: GroupKind::new("", "Namespace"),
            namespace: None,
            name: namespace.clone(),
        });
        let named = member.depends_on.iter().chain(&namespace);
        let before = named.filter_map(|key| places.get(key));
        for earlier in before.chain(kinds.get(&member.key.group_kind)) {
            graph.add_edge(*earlier, place);
        }
    }
    Some(graph)
}

/// Returns the kind that a CRD defines; `None` for any other object.
pub fn defined_kind(object: &DesiredObject) -> Option<GroupKind> {
    if object.key.group_kind.kind != "CustomResourceDefinition" {
        return None;
    }
    let value = object.object.value();
    let text = |pointer| value.pointer(pointer).and_then(Value::as_str);
    Some(GroupKind::new(text("/spec/group")?, text("/spec/names/kind")?))
}
