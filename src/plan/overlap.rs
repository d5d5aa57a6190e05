//! Overlaps: objects of the manifests that are members of another set.
//!
//! An object belongs to one set at most (KEP-3659, "ApplySet member objects"): of two sets that apply it,
//! each would prune what the other one needs.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::{Observed, Refusal};
use crate::manifest::desired::{Desired, DesiredObject};
use crate::model::applyset::ParentIdentity;
use crate::model::identity::ObjectKey;
use crate::model::list_targets::ListTargets;
use crate::model::live::Live;
use crate::model::resource::{Origin, Resource, Scope};
use crate::model::set::Set;

/// Returns the kinds and namespaces of objects that are not members yet: these may be in another set.
pub fn scope_of_newcomers(desired: &Desired, members: &[Live]) -> ListTargets {
    let known: HashSet<&ObjectKey> = members.iter().map(|live| &live.key).collect();
    let mut resources: BTreeMap<_, Arc<Resource>> = BTreeMap::new();
    let mut places = ListTargets::default();
    for member in &desired.members {
        if member.resource.origin == Origin::NotYetServed || known.contains(&member.key) {
            continue;
        }
        resources
            .entry(member.key.group_kind.clone())
            .or_insert_with(|| Arc::clone(&member.resource));
        if member.resource.scope == Scope::Namespaced {
            places.namespaces.extend(member.key.namespace.clone());
        }
    }
    places.resources = resources.into_values().collect();
    places
}

/// The parents of other sets, as far as they could be found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OtherParents {
    /// Parents by the id of their set.
    pub found: BTreeMap<String, ParentIdentity>,
    /// `true` if namespaces or kinds that may hold parents could not be listed.
    pub some_unseen: bool,
}

/// The parent of another set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OtherParent {
    /// It exists.
    Found(ParentIdentity),
    /// It does not exist anywhere in the cluster.
    Gone,
    /// It is not in the namespaces and kinds that this user may list.
    Unlisted,
}

impl OtherParents {
    /// Returns the parent of the set with this id.
    pub fn get(&self, id: &str) -> OtherParent {
        match self.found.get(id) {
            Some(parent) => OtherParent::Found(parent.clone()),
            None if self.some_unseen => OtherParent::Unlisted,
            None => OtherParent::Gone,
        }
    }
}

/// Returns a refusal for each object of the manifests that is in another set.
pub(super) fn refusals(set: &Set, desired: &Desired, observed: &Observed) -> Vec<Refusal> {
    let held: HashMap<&ObjectKey, &Live> = observed.others.iter().map(|live| (&live.key, live)).collect();
    let overlaps: Vec<(&DesiredObject, String)> = desired
        .members
        .iter()
        .filter_map(|member| {
            let id = held.get(&member.key)?.part_of.clone()?;
            Some((member, id))
        })
        .collect();
    let sets: BTreeSet<&String> = overlaps.iter().map(|(_, id)| id).collect();
    let all_in_one = sets.len() == 1 && overlaps.len() == desired.members.len();
    let mut refusals = Vec::new();
    for (member, id) in overlaps {
        let parent = observed.other_parents.get(&id);
        let has_our_name = matches!(&parent, OtherParent::Found(parent) if parent.name == set.parent.name);
        refusals.push(Refusal::Overlap {
            position: member.position.clone(),
            object: member.key.clone(),
            parent,
            id,
            is_target_likely: has_our_name || all_in_one,
        });
    }
    refusals
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{desired, live, policy, set};
    use super::super::{LiveMembership, Policy, Risk, plan};
    use super::*;

    fn overlapping() -> (Desired, Observed) {
        let manifests = Desired {
            members: vec![
                desired("ConfigMap", Some("shop"), "a"),
                desired("ConfigMap", Some("shop"), "b"),
            ],
            ..Desired::default()
        };
        let mut other = live("ConfigMap", Some("shop"), "a");
        other.part_of = Some("applyset-other-v1".to_owned());
        let mut undesired = live("ConfigMap", Some("shop"), "c");
        undesired.part_of = Some("applyset-other-v1".to_owned());
        let observed = Observed {
            others: vec![other, undesired],
            ..Observed::default()
        };
        (manifests, observed)
    }

    #[test]
    fn an_object_of_another_set_is_refused_and_others_are_not() {
        let (manifests, observed) = overlapping();
        let refusals = plan(&set(), &manifests, &observed, &policy()).refusals;
        assert_eq!(refusals.len(), 1);
        assert!(matches!(&refusals[0], Refusal::Overlap { object, .. } if object.name == "a"));
    }

    #[test]
    fn taking_ownership_is_advised_after_the_safer_way() {
        const TAKE: &str = "or move the objects to this set with --take-ownership";
        let (manifests, mut observed) = overlapping();
        let hint = |manifests: &Desired, observed: &Observed| {
            plan(&set(), manifests, observed, &policy()).refusals[0].hint()
        };
        assert!(hint(&manifests, &observed).contains("--take-ownership"));
        observed.other_parents.some_unseen = true;
        let hidden = hint(&manifests, &observed);
        assert!(
            hidden.starts_with("find the set with") && hidden.ends_with(TAKE),
            "{hidden}"
        );
        let mut other = set().parent;
        other.namespace = Some("platform".to_owned());
        let same_name = ("applyset-other-v1".to_owned(), other.clone());
        observed.other_parents.found.extend([same_name]);
        assert_eq!(
            hint(&manifests, &observed),
            format!("pass `{} -n platform` if you mean that set, {TAKE}", other.name)
        );
        other.name = "other".to_owned();
        let other_name = ("applyset-other-v1".to_owned(), other);
        observed.other_parents.found.extend([other_name]);
        assert!(hint(&manifests, &observed).contains("--take-ownership"));
        let all = Desired {
            members: manifests.members[..1].to_vec(),
            ..Desired::default()
        };
        assert_eq!(
            hint(&all, &observed),
            format!("pass `other -n platform` if you mean that set, {TAKE}")
        );
    }

    #[test]
    fn taking_ownership_takes_it() {
        let (manifests, observed) = overlapping();
        let policy = Policy {
            take_ownership: Risk::Allowed,
            ..policy()
        };
        let plan = plan(&set(), &manifests, &observed, &policy);
        assert_eq!(plan.refusals, []);
        assert_eq!(plan.waves[0][0].live_membership, LiveMembership::OfAnotherSet);
        assert_eq!(plan.waves[0][1].live_membership, LiveMembership::NotAMember);
    }

    #[test]
    fn only_places_of_newcomers_are_looked_at() {
        let (manifests, _) = overlapping();
        let members = [
            live("ConfigMap", Some("shop"), "a"),
            live("ConfigMap", Some("shop"), "b"),
        ];
        assert_eq!(scope_of_newcomers(&manifests, &members), ListTargets::default());
        let places = scope_of_newcomers(&manifests, &members[..1]);
        assert_eq!(places.resources.len(), 1);
        assert_eq!(places.namespaces, BTreeSet::from(["shop".to_owned()]));
    }
}
