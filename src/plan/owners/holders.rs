//! What holds objects that stay: their namespaces, and the definitions of their kinds. The garbage
//! collector would delete these objects with it.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::super::{Plan, Skip};
use crate::compare::changes;
use crate::manifest::desired::Desired;
use crate::model::identity::ObjectKey;
use crate::model::live::Live;
use crate::model::resource::Resource;
use crate::model::set::Set;
use crate::read::Holders;

/// What a run deletes and keeps, and for whom.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Division<'a> {
    pub(in super::super) prunes: &'a [Live],
    pub(in super::super) skips: &'a [Skip],
}

/// The holders of the parent, of desired and of kept objects whose owners may be deleted by what a
/// plan prunes. `parent` is the resource of the parent, if there is a parent.
pub fn holders_of_plan(set: &Set, parent: Option<&Arc<Resource>>, desired: &Desired, plan: &Plan) -> Holders {
    let prunes: Vec<Live> = plan.prunes.iter().flatten().cloned().collect();
    let division = Division {
        prunes: &prunes,
        skips: &plan.skips,
    };
    holders(set, parent, desired, division)
}

/// Finds them. There are none unless something in no namespace is deleted: nothing else can own
/// a namespace or a definition.
pub(in super::super) fn holders(
    set: &Set,
    parent: Option<&Arc<Resource>>,
    desired: &Desired,
    division: Division<'_>,
) -> Holders {
    let mut found = Holders::default();
    let Division { prunes, skips } = division;
    if prunes.iter().all(|live| live.key.namespace.is_some()) {
        return found;
    }
    let desired = desired.members.iter();
    let desired = desired.map(|object| (object.key.namespace.as_ref(), &object.resource));
    let kept = skips.iter().filter(|skip| skip.is_kept());
    let kept = kept.map(|skip| (skip.live.key.namespace.as_ref(), &skip.live.resource));
    let parent = parent.map(|resource| (set.parent.namespace.as_ref(), resource));
    // What holds something that stays and is deleted itself is refused for that already.
    let pruned: BTreeSet<&ObjectKey> = prunes.iter().map(|live| &live.key).collect();
    for (namespace, resource) in desired.chain(kept).chain(parent) {
        if let Some(name) = namespace.filter(|name| !pruned.contains(&Holders::namespace_key(name))) {
            found.namespaces.insert(name.clone());
        }
        if may_be_defined(resource) {
            let key = Holders::definition_key(resource);
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
    !resource.group.is_empty() && !changes::is_built_in(&resource.api_version(), &resource.kind)
}
