//! The refusal of another tool's inventory that reaches outside of one namespace. Everyone who can write the inventory
//! can put any object of the cluster into it, so the user has to confirm objects outside of the namespace.

use super::MembershipPlan;
use crate::model::identity::ObjectKey;
use crate::plan::Refusal;

/// Judges an adoption from an inventory. At least one object has to be adopted, and objects outside of the
/// `trusted_namespace` have to be confirmed. Objects that are members already need no confirmation.
///
/// `inventory` is the inventory as the command line names it.
pub fn refuse_empty_or_unconfirmed_adoption(
    plan: &MembershipPlan,
    inventory: &str,
    trusted_namespace: Option<&str>,
) -> Option<Refusal> {
    let inventory = inventory.to_owned();
    if !plan.has_member_after_run() {
        return (plan.refusals.is_empty() && !plan.skips.is_empty())
            .then_some(Refusal::NothingToAdopt { inventory });
    }
    // A cluster-scoped object needs confirmation even if there is no trusted namespace, and both are `None`.
    let needs_confirmation =
        |key: &ObjectKey| key.namespace.is_none() || key.namespace.as_deref() != trusted_namespace;
    let mut objects: Vec<ObjectKey> = plan
        .changes
        .iter()
        .map(|live| live.key.clone())
        .filter(needs_confirmation)
        .collect();
    // Cluster-scoped objects come first: a message shows only the first ones.
    objects.sort_by(|one, other| (&one.namespace, one).cmp(&(&other.namespace, other)));
    (!objects.is_empty()).then(|| Refusal::ReachesOutside {
        inventory,
        trusted_namespace: trusted_namespace.map(str::to_owned),
        objects,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::Mark;
    use crate::plan::OtherParents;
    use crate::plan::adopt_move_disband::{Candidate, FieldOwnership, FoundBy, Risk, plan_adoption};
    use crate::plan::fixtures::{live, set};

    fn planned(candidates: &[(&str, Option<&str>, Mark)]) -> MembershipPlan {
        let candidates: Vec<Candidate> = candidates
            .iter()
            .map(|(kind, namespace, mark)| {
                let mut live = live(kind, *namespace, "a");
                live.uid = format!("{kind} {namespace:?}");
                live.part_of = None;
                Candidate {
                    live,
                    found_by: FoundBy::Tracked(mark.clone()),
                    fields: FieldOwnership::Kept,
                }
            })
            .collect();
        let parents = OtherParents::default();
        plan_adoption(&set(), &candidates, Vec::new(), &parents, Risk::Refused)
    }

    fn outside(plan: &MembershipPlan, trusted_namespace: Option<&str>) -> Vec<String> {
        match refuse_empty_or_unconfirmed_adoption(plan, "helm/web", trusted_namespace) {
            None => Vec::new(),
            Some(Refusal::ReachesOutside { objects, .. }) => {
                objects.iter().map(ToString::to_string).collect()
            }
            Some(other) => panic!("{other}"),
        }
    }

    #[test]
    fn what_is_outside_is_listed_and_confirmed() {
        let plan = planned(&[
            ("ConfigMap", Some("away"), Mark::Own),
            ("ConfigMap", Some("shop"), Mark::Own),
            ("Namespace", None, Mark::Own),
            ("Secret", Some("away"), Mark::Other("theirs".to_owned())),
        ]);
        assert_eq!(
            outside(&plan, Some("shop")),
            ["namespace/a", "configmap/a in namespace away"]
        );
        assert_eq!(
            outside(&plan, None),
            [
                "namespace/a",
                "configmap/a in namespace away",
                "configmap/a in namespace shop"
            ]
        );
        let inside = planned(&[("ConfigMap", Some("shop"), Mark::Own)]);
        assert_eq!(outside(&inside, Some("shop")), [""; 0]);
    }

    #[test]
    fn members_are_not_asked_about_again() {
        let mut plan = planned(&[("Namespace", None, Mark::Own)]);
        plan.settled = std::mem::take(&mut plan.changes);
        assert_eq!(outside(&plan, Some("shop")), [""; 0]);
    }

    #[test]
    fn something_has_to_be_adopted() {
        for mark in [
            Mark::Other("theirs".to_owned()),
            Mark::Missing("unmarked".to_owned()),
        ] {
            let plan = planned(&[("ConfigMap", Some("shop"), mark)]);
            let refusal = refuse_empty_or_unconfirmed_adoption(&plan, "helm/web", Some("shop"));
            assert!(
                matches!(refusal, Some(Refusal::NothingToAdopt { .. })),
                "{refusal:?}"
            );
        }
        let nothing = MembershipPlan::default();
        assert_eq!(
            refuse_empty_or_unconfirmed_adoption(&nothing, "helm/web", None),
            None
        );
    }
}
