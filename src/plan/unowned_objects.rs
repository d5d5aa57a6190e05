//! Objects of the manifests that exist and are not in a set. An apply makes them members, so a later run
//! prunes them once the manifests no longer hold them.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::prune_rules::judge;
use super::{Judgement, Observed, Policy, Pruning, Refusal, defined_kind};
use crate::manifest::desired::{Desired, DesiredObject};
use crate::model::identity::ObjectKey;
use crate::model::live::{Live, Presence};
use crate::model::resource::Resource;
use crate::model::set::Set;

/// Returns the reported reason for an object that was not in a set and becomes a member: what a later run
/// does with it once the manifests no longer hold it.
///
/// `live` is the object as it was read, without the labels of a member.
pub fn unowned_reason(object: &DesiredObject, live: &Live, set: &Set, policy: &Policy) -> String {
    let member = Live {
        part_of: Some(set.id.to_string()),
        part_of_writers: policy.appliers.iter().cloned().collect(),
        presence: Presence::Present,
        // A read of metadata does not show it.
        defines: defined_kind(object),
        ..live.clone()
    };
    let policy = Policy {
        pruning: Pruning::Enabled,
        ..policy.clone()
    };
    match judge(&member, set, &policy) {
        Judgement::Skip(reason) => format!("existed before; kept when removed from the manifests: {reason}"),
        Judgement::Prune | Judgement::Refuse(_) | Judgement::Ignore => PRUNED_LATER.to_owned(),
    }
}

const PRUNED_LATER: &str = "existed before; pruned when removed from the manifests";

/// Returns the objects of the manifests that are not members yet and may exist, each with the resource to
/// read it through. `served` are the resources that the server serves, and `namespaces` has the
/// namespaces that exist.
pub fn newcomers<T>(
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
            && let Some(resource) = object.readable_through(served)
        {
            newcomers.push((object.key.clone(), Arc::clone(resource)));
        }
    }
    newcomers
}

/// Returns a refusal for each object of the manifests that exists and is not in a set.
pub(super) fn refusals(desired: &Desired, observed: &Observed) -> Vec<Refusal> {
    let unowned = observed.existing.iter().filter(|live| live.part_of.is_none());
    let unowned: HashSet<&ObjectKey> = unowned.map(|live| &live.key).collect();
    let refused = desired
        .members
        .iter()
        .filter(|member| unowned.contains(&member.key));
    let refusals = refused.map(|member| Refusal::InNoSet {
        position: member.position.clone(),
        object: member.key.clone(),
    });
    refusals.collect()
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{desired, live, policy, resource, set};
    use super::super::{Unowned, plan};
    use super::*;
    use crate::model::live::OwnerReference;
    use crate::model::resource::{Origin, Scope, Subresource};

    /// The reason for an object that was in no set, changed by `change`.
    fn reason(kind: &str, name: &str, change: impl FnOnce(&mut Live)) -> String {
        let namespace = (kind != "Namespace").then_some("shop");
        let mut found = live(kind, namespace, name);
        found.part_of = None;
        found.part_of_writers.clear();
        change(&mut found);
        unowned_reason(&desired(kind, namespace, name), &found, &set(), &policy())
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
            let newcomers = newcomers(&manifests, &members, served, &namespaces);
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
        let pruned = "existed before; pruned when removed from the manifests";
        let kept = "existed before; kept when removed from the manifests: ";
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
