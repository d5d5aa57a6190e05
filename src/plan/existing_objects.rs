//! Objects of the manifests that exist before the run: members of other sets, and objects in no set.
//!
//! An object belongs to one set at most (KEP-3659, "ApplySet member objects"). If two sets applied it, one set would
//! prune it while the other still needs it.
//!
//! If an object is in no set, its apply makes it a member. A later run prunes it once the manifests no longer hold it.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::prune_rules::judge_by_metadata;
use super::refusal::describe_other_set;
use super::{Judgement, Observed, Policy, Pruning, Refusal, kind_defined_by_crd};
use crate::manifest::desired::{Desired, DesiredObject};
use crate::model::applyset::ParentIdentity;
use crate::model::identity::ObjectKey;
use crate::model::list_targets::ListTargets;
use crate::model::live::{Live, Presence};
use crate::model::resource::{Origin, Resource, Scope};
use crate::model::set::Set;

/// Returns the kinds and namespaces of desired objects that are not members yet. They have to be listed, because such
/// an object may be a member of another set.
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
    /// `true` if namespaces or kinds that may hold parents could not be listed, so that a parent may exist that was not
    /// found.
    pub is_incomplete: bool,
}

/// The parent of another set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OtherParent {
    /// The parent exists.
    Found(ParentIdentity),
    /// The parent does not exist anywhere in the cluster.
    Gone,
    /// The parent is not among the objects that this user may list.
    GoneOrNotVisible,
}

impl OtherParents {
    /// Returns the parent of the set with this id.
    pub fn get(&self, id: &str) -> OtherParent {
        match self.found.get(id) {
            Some(parent) => OtherParent::Found(parent.clone()),
            None if self.is_incomplete => OtherParent::GoneOrNotVisible,
            None => OtherParent::Gone,
        }
    }
}

/// Returns a refusal for each object of the manifests that is in another set.
pub(super) fn refuse_members_of_other_sets(
    set: &Set,
    desired: &Desired,
    observed: &Observed,
) -> Vec<Refusal> {
    let others: HashMap<&ObjectKey, &Live> = observed.others.iter().map(|live| (&live.key, live)).collect();
    let overlaps: Vec<(&DesiredObject, String)> = desired
        .members
        .iter()
        .filter_map(|member| {
            let id = others.get(&member.key)?.part_of.clone()?;
            Some((member, id))
        })
        .collect();
    let set_ids: BTreeSet<&String> = overlaps.iter().map(|(_, id)| id).collect();
    let are_all_in_one_set = set_ids.len() == 1 && overlaps.len() == desired.members.len();
    let mut refusals = Vec::new();
    for (member, id) in overlaps {
        let parent = observed.other_parents.get(&id);
        let has_our_name = matches!(&parent, OtherParent::Found(parent) if parent.name == set.parent.name);
        refusals.push(Refusal::Overlap {
            position: member.position.clone(),
            object: member.key.clone(),
            parent,
            id,
            is_target_likely: has_our_name || are_all_in_one_set,
        });
    }
    refusals
}

/// Returns the clause about an object that was not a member of the set and becomes one. It says from which set the
/// object is taken, and whether a later run prunes the object once the manifests no longer hold it.
///
/// `live` is the object as it was read, without the label of a member.
pub fn describe_joining_object(
    object: &DesiredObject,
    live: &Live,
    set: &Set,
    observed: &Observed,
    policy: &Policy,
) -> String {
    let reason = describe_taken_in_object(object, live, set, policy);
    match &live.part_of {
        Some(id) if *id != set.id.as_str() => {
            let former = describe_other_set(&observed.other_parents.get(id), id);
            format!("leaves {former}{}", reason.trim_start_matches("existed before"))
        }
        _ => reason,
    }
}

/// Returns the reason that is reported for an object that was not in a set and becomes a member. It says whether a
/// later run prunes the object once the manifests no longer hold it.
///
/// `live` is the object as it was read, without the label of a member.
pub fn describe_taken_in_object(object: &DesiredObject, live: &Live, set: &Set, policy: &Policy) -> String {
    const PRUNED_LATER: &str = "existed before and becomes a member: removing its manifest will delete it";
    // The object as it will be after the apply.
    let member = Live {
        part_of: Some(set.id.to_string()),
        part_of_writers: policy.appliers.iter().cloned().collect(),
        presence: Presence::Present,
        // If only the metadata of a CRD were read, `live` lacks the kind that it defines.
        defines: kind_defined_by_crd(object),
        ..live.clone()
    };
    let policy = Policy {
        pruning: Pruning::Enabled,
        ..policy.clone()
    };
    match judge_by_metadata(&member, set, &policy) {
        Judgement::Skip(reason) => format!("existed before; removing its manifest will keep it: {reason}"),
        Judgement::Prune | Judgement::Refuse(_) | Judgement::Ignore => PRUNED_LATER.to_owned(),
    }
}

/// Returns the objects of the manifests that are not members yet and may exist, each with the resource to
/// read it through. `served` are the resources that the server serves, and `namespaces` has the
/// existing namespaces as keys.
pub fn find_newcomers_to_read<T>(
    desired: &Desired,
    members: &[Live],
    served: &[Arc<Resource>],
    namespaces: &BTreeMap<String, T>,
) -> Vec<(ObjectKey, Arc<Resource>)> {
    let known: HashSet<&ObjectKey> = members.iter().map(|live| &live.key).collect();
    let mut newcomers = Vec::new();
    for object in &desired.members {
        let namespace = object.key.namespace.as_ref();
        if !known.contains(&object.key)
            && namespace.is_none_or(|namespace| namespaces.contains_key(namespace))
            && let Some(resource) = object.resource_to_read(served)
        {
            newcomers.push((object.key.clone(), Arc::clone(resource)));
        }
    }
    newcomers
}

/// Returns a refusal for each object of the manifests that exists and is not in a set.
pub(super) fn refuse_objects_in_no_set(desired: &Desired, observed: &Observed) -> Vec<Refusal> {
    let unowned: HashSet<&ObjectKey> = observed
        .existing
        .iter()
        .filter(|live| live.part_of.is_none())
        .map(|live| &live.key)
        .collect();
    desired
        .members
        .iter()
        .filter(|member| unowned.contains(&member.key))
        .map(|member| Refusal::InNoSet {
            position: member.position.clone(),
            object: member.key.clone(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::live::OwnerReference;
    use crate::model::resource::{Origin, Scope, Subresource};
    use crate::plan::fixtures::{desired, live, policy, resource, set};
    use crate::plan::{LiveMembership, Policy, Risk, Unowned, plan};

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
        observed.other_parents.is_incomplete = true;
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
        assert!(matches!(
            plan.waves[0][0].live_membership,
            LiveMembership::OfAnotherSet { .. }
        ));
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

    /// The reason for an object that was in no set, changed by `change`.
    fn reason(kind: &str, name: &str, change: impl FnOnce(&mut Live)) -> String {
        let namespace = (kind != "Namespace").then_some("shop");
        let mut found = live(kind, namespace, name);
        found.part_of = None;
        found.part_of_writers.clear();
        change(&mut found);
        describe_taken_in_object(&desired(kind, namespace, name), &found, &set(), &policy())
    }

    #[test]
    fn only_what_exists_in_no_set_is_refused_and_only_on_demand() {
        let names = ["new", "unowned", "other", "member"];
        let manifests = Desired {
            members: names.map(|name| desired("ConfigMap", Some("shop"), name)).into(),
            ..Desired::default()
        };
        let found = |name: &str, part_of: Option<&str>| Live {
            part_of: part_of.map(str::to_owned),
            ..live("ConfigMap", Some("shop"), name)
        };
        let observed = Observed {
            members: vec![live("ConfigMap", Some("shop"), "member")],
            existing: vec![
                found("unowned", None),
                found("other", Some("applyset-other-v1")),
                found("not-among-the-manifests", None),
            ],
            ..Observed::default()
        };
        let refused = |unowned| {
            let policy = Policy { unowned, ..policy() };
            let refusals = plan(&set(), &manifests, &observed, &policy).refusals;
            refusals.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(refused(Unowned::TakenIn), [""; 0]);
        assert_eq!(
            refused(Unowned::Refused),
            ["manifests.yaml:1: configmap/unowned in namespace shop exists and is not in a set"]
        );
    }

    #[test]
    fn only_what_may_exist_is_read() {
        let mut promised = desired("Widget.example.com", Some("shop"), "promised");
        promised.resource = Arc::new(Resource {
            origin: Origin::NotYetServed,
            status: Subresource::Unlisted,
            ..(*promised.resource).clone()
        });
        let manifests = Desired {
            members: vec![
                desired("ConfigMap", Some("shop"), "member"),
                desired("ConfigMap", Some("shop"), "new"),
                desired("ConfigMap", Some("to-be-made"), "new"),
                desired("Namespace", None, "to-be-made"),
                promised,
            ],
            ..Desired::default()
        };
        let members = [live("ConfigMap", Some("shop"), "member")];
        let namespaces = BTreeMap::from([("shop".to_owned(), "exists")]);
        let looked_for = |served: &[Arc<Resource>]| {
            let newcomers = find_newcomers_to_read(&manifests, &members, served, &namespaces);
            newcomers
                .iter()
                .map(|(key, _)| key.to_string())
                .collect::<Vec<_>>()
        };
        let new = "configmap/new in namespace shop";
        assert_eq!(looked_for(&[]), [new, "namespace/to-be-made"]);
        // A kind that is served in another version may have the object.
        let other = resource("Widget.example.com", Scope::Namespaced);
        let promised = "widget.example.com/promised in namespace shop";
        assert_eq!(looked_for(&[other]), [new, "namespace/to-be-made", promised]);
    }

    #[test]
    fn the_reason_says_what_a_later_run_does() {
        let pruned = "existed before and becomes a member: removing its manifest will delete it";
        let kept = "existed before; removing its manifest will keep it: ";
        assert_eq!(reason("ConfigMap", "a", |_| {}), pruned);
        assert_eq!(reason("Namespace", "other", |_| {}), pruned);
        assert_eq!(
            reason("Namespace", "shop", |_| {}),
            format!("{kept}it contains the set's parent")
        );
        let annotated = reason("ConfigMap", "a", |live| {
            live.keep_annotation = Some("helm.sh/resource-policy: keep".to_owned());
        });
        assert_eq!(annotated, format!("{kept}kept by helm.sh/resource-policy: keep"));
        let owned = reason("ConfigMap", "a", |live| {
            live.owners.push(OwnerReference {
                api_version: "v1".to_owned(),
                kind: "Pod".to_owned(),
                name: "p".to_owned(),
                uid: "u".to_owned(),
            });
        });
        assert_eq!(owned, format!("{kept}owned by Pod p"));
    }
}
