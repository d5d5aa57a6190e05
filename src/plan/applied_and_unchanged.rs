//! The members that the manifests hold: which are applied, in which order, and which are unchanged.

use std::collections::{BTreeSet, HashMap};

use super::{Apply, LiveMembership, Observed, Policy, Unchanged, UnchangedMembers, apply_steps};
use crate::compare::changes::Verdict;
use crate::manifest::desired::{Desired, DesiredObject, kind_defined_by_crd, must_exist_before_parent};
use crate::model::identity::{GroupKind, ObjectKey};
use crate::model::live::{Live, Presence};
use crate::model::resource::Origin;
use crate::model::set::Set;

/// Members to apply, one step after the other.
type Steps = Vec<Vec<Apply>>;

/// The members that the manifests hold, by what the run does with them.
pub(super) struct AppliedAndUnchanged {
    /// Members to apply before the parent is written.
    pub(super) prerequisites: Steps,
    /// The other members to apply.
    pub(super) waves: Steps,
    /// Members that are not sent, in the order of the manifests.
    pub(super) unchanged: Vec<Unchanged>,
}

/// Divides the members that the manifests hold by what the run does with them.
pub(super) fn divide_desired_members(
    set: &Set,
    desired: &Desired,
    observed: &Observed,
    policy: &Policy,
) -> AppliedAndUnchanged {
    let members: HashMap<&ObjectKey, &Live> = observed.members.iter().map(|live| (&live.key, live)).collect();
    let others: HashMap<&ObjectKey, &Live> = observed.others.iter().map(|live| (&live.key, live)).collect();
    let redefined = find_redefined_kinds(desired, observed);
    let mut applies = Vec::new();
    let mut prerequisites = Vec::new();
    let mut unchanged = Vec::new();
    for (index, object) in desired.members.iter().enumerate() {
        let namespace = object.key.namespace.as_ref();
        let is_namespace_terminating =
            namespace.is_some_and(|name| observed.terminating_namespaces.contains(name));
        if let Some(live) = members.get(&object.key)
            && !is_namespace_terminating
            && !redefined.contains(&object.key.group_kind)
            && needs_no_apply(live, observed.comparisons.get(&index), policy)
        {
            unchanged.push(Unchanged {
                index,
                uid: live.uid.clone(),
            });
            continue;
        }
        let apply = Apply {
            index,
            live_membership: match (members.get(&object.key), others.get(&object.key)) {
                _ if is_namespace_terminating => LiveMembership::Terminating,
                (None, Some(other)) => LiveMembership::for_member_of_another_set(other),
                (live, _) => classify_live_membership(live.copied(), observed.comparisons.get(&index)),
            },
        };
        if must_exist_before_parent(object, &set.parent) {
            prerequisites.push(apply);
        } else {
            applies.push(apply);
        }
    }
    AppliedAndUnchanged {
        prerequisites: apply_steps::sort_into_steps(desired, prerequisites),
        waves: apply_steps::sort_into_steps(desired, applies),
        unchanged,
    }
}

/// Returns whether the server does not serve the kind of this object yet.
pub fn is_not_yet_served(object: &DesiredObject) -> bool {
    object.resource.origin == Origin::NotYetServed
}

/// Returns the kinds whose CRDs this run may change. Their objects count as changed: they were compared with their
/// manifests under the old schema, and the new schema may have other defaults.
fn find_redefined_kinds(desired: &Desired, observed: &Observed) -> BTreeSet<GroupKind> {
    (0..desired.members.len())
        .filter(|index| observed.comparisons.get(index) != Some(&Verdict::Unchanged))
        .filter_map(|index| kind_defined_by_crd(&desired.members[index]))
        .collect()
}

/// Returns whether the member need not be sent. A member with fields of client-side apply is always sent: such a field
/// may have left the manifest, and only an apply that takes the field over removes it.
fn needs_no_apply(live: &Live, verdict: Option<&Verdict>, policy: &Policy) -> bool {
    policy.unchanged == UnchangedMembers::LeftAlone
        && live.presence == Presence::Present
        && !live.client_side_apply
        && verdict == Some(&Verdict::Unchanged)
}

/// Returns the membership of an object whose namespace is not being deleted. `member` is `None` if the object is not
/// among the members of the set.
fn classify_live_membership(member: Option<&Live>, verdict: Option<&Verdict>) -> LiveMembership {
    match member {
        None => LiveMembership::NotAMember,
        Some(member) if member.presence == Presence::Terminating => LiveMembership::Terminating,
        Some(member) => {
            let reason = match verdict {
                Some(Verdict::Send(reason)) => Some(reason.clone()),
                Some(Verdict::Unchanged) | None => None,
            };
            LiveMembership::for_member(member, reason)
        }
    }
}
