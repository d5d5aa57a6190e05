//! The containers of objects that are desired or kept: their namespaces and CRDs. If the garbage
//! collector deletes one, it deletes these objects too.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::super::{Plan, Skip};
use crate::manifest::desired::Desired;
use crate::model::built_in_kinds::is_built_in;
use crate::model::containers::Containers;
use crate::model::identity::ObjectKey;
use crate::model::live::Live;
use crate::model::resource::Resource;
use crate::model::set::Set;

/// Returns the containers of the parent, of desired and of kept objects, if the plan may delete owners of
/// them. `parent` is the resource of the parent, if there is a parent.
pub fn containers_of_plan(
    set: &Set,
    parent: Option<&Arc<Resource>>,
    desired: &Desired,
    plan: &Plan,
) -> Containers {
    containers_of_kept_objects(set, parent, desired, plan.all_prunes(), &plan.skips)
}

/// Returns the containers for a run that deletes `prunes` and keeps `skips`. There are none unless a
/// cluster-scoped object is deleted: only that can own a namespace or a CRD.
pub(in super::super) fn containers_of_kept_objects<'p>(
    set: &Set,
    parent: Option<&Arc<Resource>>,
    desired: &Desired,
    prunes: impl Iterator<Item = &'p Live> + Clone,
    skips: &[Skip],
) -> Containers {
    let mut found = Containers::default();
    if prunes.clone().all(|live| live.key.namespace.is_some()) {
        return found;
    }
    let mut staying: Vec<(&ObjectKey, &Arc<Resource>)> = Vec::new();
    staying.extend(
        desired
            .members
            .iter()
            .map(|object| (&object.key, &object.resource)),
    );
    let kept = skips.iter().filter(|skip| skip.stays_in_cluster());
    staying.extend(kept.map(|skip| (&skip.live.key, &skip.live.resource)));
    staying.extend(parent.map(|resource| (&set.parent, resource)));
    // A container that is pruned itself is refused or kept for that already.
    let pruned: BTreeSet<&ObjectKey> = prunes.map(|live| &live.key).collect();
    for (key, resource) in staying {
        if let Some(name) = &key.namespace
            && !pruned.contains(&Containers::namespace_key(name))
        {
            found.namespaces.insert(name.clone());
        }
        if may_be_defined(resource) {
            let key = Containers::definition_key(resource);
            if !pruned.contains(&key) {
                found
                    .definitions
                    .entry(key)
                    .or_insert_with(|| Arc::clone(resource));
            }
        }
    }
    found
}

fn may_be_defined(resource: &Resource) -> bool {
    !resource.group.is_empty() && !is_built_in(&resource.api_version(), &resource.kind)
}
