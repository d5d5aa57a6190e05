//! The members that the manifests hold: which are applied, in which order, and which are unchanged.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::{Apply, LiveMembership, Observed, Policy, Unchanged, UnchangedMembers, dependencies};
use crate::compare::changes::Verdict;
use crate::manifest::desired::{Desired, DesiredObject, defined_kind, must_exist_before_parent};
use crate::model::identity::{GroupKind, ObjectKey};
use crate::model::live::{Live, Presence};
use crate::model::resource::Origin;
use crate::model::set::Set;

/// Members to apply, one step after the other.
type Steps = Vec<Vec<Apply>>;

/// Divides the members that the manifests hold: those that have to exist before the parent, the others to apply, and those
/// that are not sent, in the order of the manifests.
pub(super) fn divide(
    set: &Set,
    desired: &Desired,
    observed: &Observed,
    policy: &Policy,
) -> (Steps, Steps, Vec<Unchanged>) {
    let members: HashMap<&ObjectKey, &Live> = observed.members.iter().map(|live| (&live.key, live)).collect();
    let others: HashSet<&ObjectKey> = observed.others.iter().map(|live| &live.key).collect();
    let redefined = redefined_kinds(desired, observed);
    let mut applies = Vec::new();
    let mut prerequisites = Vec::new();
    let mut unchanged = Vec::new();
    for (index, object) in desired.members.iter().enumerate() {
        let namespace = object.key.namespace.as_ref();
        let is_doomed = namespace.is_some_and(|name| observed.terminating_namespaces.contains(name));
        if let Some(live) = members.get(&object.key)
            && !is_doomed
            && !redefined.contains(&object.key.group_kind)
            && is_unchanged(live, observed.comparisons.get(&index), policy)
        {
            unchanged.push(Unchanged {
                index,
                uid: live.uid.clone(),
            });
            continue;
        }
        let apply = Apply {
            index,
            live_membership: match members.get(&object.key) {
                _ if is_doomed => LiveMembership::Terminating,
                None if others.contains(&object.key) => LiveMembership::OfAnotherSet,
                live => live_membership(live.copied(), observed.comparisons.get(&index)),
            },
        };
        if must_exist_before_parent(object, &set.parent) {
            prerequisites.push(apply);
        } else {
            applies.push(apply);
        }
    }
    (
        dependencies::steps(desired, prerequisites),
        dependencies::steps(desired, applies),
        unchanged,
    )
}

/// Returns whether the server does not serve the kind of this object yet.
pub fn is_not_yet_served(object: &DesiredObject) -> bool {
    object.resource.origin == Origin::NotYetServed
}

/// Returns the kinds whose CRDs this run may change. Comparisons under the old CRD say nothing about the
/// new one.
fn redefined_kinds(desired: &Desired, observed: &Observed) -> BTreeSet<GroupKind> {
    (0..desired.members.len())
        .filter(|index| observed.comparisons.get(index) != Some(&Verdict::Unchanged))
        .filter_map(|index| defined_kind(&desired.members[index]))
        .collect()
}

/// Returns whether the member need not be sent. A member with fields of client-side apply is always sent:
/// these fields may have left the manifest, and would be kept.
fn is_unchanged(live: &Live, verdict: Option<&Verdict>, policy: &Policy) -> bool {
    policy.unchanged == UnchangedMembers::LeftAlone
        && live.presence == Presence::Present
        && !live.client_side_apply
        && verdict == Some(&Verdict::Unchanged)
}

fn live_membership(live: Option<&Live>, verdict: Option<&Verdict>) -> LiveMembership {
    match live {
        None => LiveMembership::NotAMember,
        Some(live) if live.presence == Presence::Terminating => LiveMembership::Terminating,
        Some(live) => LiveMembership::Member {
            uid: live.uid.clone(),
            resource_version: live.resource_version.clone(),
            reason: match verdict {
                Some(Verdict::Send(reason)) => Some(reason.clone()),
                Some(Verdict::Unchanged) | None => None,
            },
            client_side_apply: live.client_side_apply,
            is_parent: live.parent_of.is_some(),
        },
    }
}
