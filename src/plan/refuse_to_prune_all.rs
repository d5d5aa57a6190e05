//! The refusal of a run that keeps no member of a set. The usual cause is a wrong directory or a wrong set.

use std::collections::BTreeSet;

use super::{Observed, Plan, Policy, ReasonToKeep, Refusal, Risk};
use crate::manifest::desired::Desired;
use crate::model::generated_name::strip_content_hash;
use crate::model::identity::{GroupKind, ObjectKey};

/// The fewest members that a set must have for [`Refusal::PrunesAll`]. The members of a smaller set are often replaced
/// by others on purpose.
const FEWEST_MEMBERS: usize = 3;

/// Refuses a run without manifests, or whose manifests hold no member of the set.
pub(super) fn refuse_to_prune_all(
    plan: &Plan,
    desired: &Desired,
    observed: &Observed,
    policy: &Policy,
) -> Option<Refusal> {
    if policy.prune_all == Risk::Allowed {
        return None;
    }
    let objects: Vec<ObjectKey> = plan.all_prunes().map(|live| live.key.clone()).collect();
    // If there is only the manifest of the parent, which is not a member, and members would be pruned, that counts as
    // empty, too.
    if desired.members.is_empty() && (desired.parent.is_none() || !objects.is_empty()) {
        return Some(Refusal::EmptyManifests { objects });
    }
    let not_desired = objects.len() + plan.skips.len();
    let staying = plan.skips.iter().filter(|skip| skip.stays_despite_pruning());
    let kept = staying
        .filter(|skip| !matches!(skip.reason, ReasonToKeep::CopiedLabel { .. }))
        .count();
    let is_any_member_desired = observed.members.len() > not_desired;
    let lost = count_prunes_without_successor(plan, desired);
    if is_any_member_desired || lost == 0 || lost + kept < FEWEST_MEMBERS {
        return None;
    }
    Some(Refusal::PrunesAll { objects })
}

/// Counts the prunes that have no successor in the manifests. A successor is an object whose name differs only in the
/// content hash, as kustomize's generators write it.
fn count_prunes_without_successor(plan: &Plan, desired: &Desired) -> usize {
    let objects = desired.members.iter();
    let stems: BTreeSet<_> = objects.map(|object| without_hash(&object.key)).collect();
    let prunes = plan.all_prunes();
    prunes
        .filter(|live| !stems.contains(&without_hash(&live.key)))
        .count()
}

/// Returns the parts of a key, with the name without its content hash.
fn without_hash(key: &ObjectKey) -> (&GroupKind, Option<&str>, &str) {
    let stem = strip_content_hash(&key.name).unwrap_or(&key.name);
    (&key.group_kind, key.namespace.as_deref(), stem)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::live::{Live, Presence};
    use crate::plan::fixtures::{desired as object, live, policy, set};
    use crate::plan::{Pruning, plan};

    fn member(name: &str) -> Live {
        live("ConfigMap", Some("shop"), name)
    }

    /// The refusals about pruning all of a run with these members and manifests.
    fn refusals(members: &[Live], manifests: &[&str], policy: &Policy) -> Vec<Refusal> {
        let observed = Observed {
            members: members.to_vec(),
            ..Observed::default()
        };
        let desired = Desired {
            members: manifests
                .iter()
                .map(|name| object("ConfigMap", Some("shop"), name))
                .collect(),
            ..Desired::default()
        };
        let refusals = plan(&set(), &desired, &observed, policy).refusals;
        refusals.into_iter().filter(Refusal::is_prune_all).collect()
    }

    #[test]
    fn a_run_that_keeps_no_member_of_a_set_of_three_is_refused() {
        let all = |names: &[&str]| names.iter().map(|name| member(name)).collect::<Vec<Live>>();
        let abc = all(&["a", "b", "c"]);
        let hashed = all(&["a", "b", "settings-2456789bcd"]);
        let large = all(&["a", "b", "c", "settings-2456789bcd"]);
        let all_hashed = all(&["x-2456789bcd", "y-2456789bcd", "z-2456789bcd"]);
        let table: [(&[Live], &[&str], bool); 16] = [
            (&abc, &["x"], true),
            (&abc, &["x", "y", "z"], true),
            (&abc, &["a"], false),
            (&abc, &["x", "c"], false),
            (&abc[..2], &["x"], false),
            (&[], &["x"], false),
            // A new hash of the same stem, or none any more, is the same object.
            (&hashed, &["settings-gkmt2h7f9b"], false),
            (&hashed, &["settings"], false),
            (&hashed, &["settings-gkmt2h7f9b-2"], true),
            (&hashed, &["other-2456789bcd"], true),
            // A successor of one member is not enough if all others are lost.
            (&large, &["settings-gkmt2h7f9b"], true),
            (&large, &["settings-gkmt2h7f9b", "a"], false),
            (
                &all_hashed,
                &["x-gkmt2h7f9b", "y-gkmt2h7f9b", "z-gkmt2h7f9b"],
                false,
            ),
            (&all_hashed, &["x-gkmt2h7f9b"], false),
            // The ends of these names are not hashes.
            (&all(&["a", "b", "web-frontend"]), &["web-database"], true),
            (&all(&["a", "b", "c-1"]), &["c-2"], true),
        ];
        for (members, manifests, is_refused) in table {
            let found = refusals(members, manifests, &policy());
            let names: Vec<_> = members.iter().map(|live| live.key.name.as_str()).collect();
            assert_eq!(!found.is_empty(), is_refused, "{names:?} {manifests:?}");
            let allowed = Policy {
                prune_all: Risk::Allowed,
                ..policy()
            };
            assert!(refusals(members, manifests, &allowed).is_empty());
            let disabled = Policy {
                pruning: Pruning::Disabled,
                ..policy()
            };
            assert!(refusals(members, manifests, &disabled).is_empty());
        }
    }

    #[test]
    fn members_that_are_kept_count_and_those_that_go_do_not() {
        let kept = |name: &str| Live {
            keep_annotation: Some("helm.sh/resource-policy: keep".to_owned()),
            ..member(name)
        };
        let leaving = |name: &str| Live {
            presence: Presence::Terminating,
            ..member(name)
        };
        let [a, b, c] = ["a", "b", "c"].map(member);
        for (members, is_refused) in [
            (vec![a.clone(), b.clone(), kept("d")], true),
            (vec![kept("d"), kept("e"), kept("f")], false),
            (vec![a.clone(), b.clone(), leaving("d")], false),
            (vec![a, b, c, leaving("d")], true),
        ] {
            let found = refusals(&members, &["x"], &policy());
            assert_eq!(!found.is_empty(), is_refused, "{members:?}");
        }
    }

    #[test]
    fn a_run_without_manifests_is_refused_whatever_the_set_has() {
        for members in [vec![], vec![member("a")]] {
            let found = refusals(&members, &[], &policy());
            assert!(
                matches!(&found[..], [Refusal::EmptyManifests { objects }] if objects.len() == members.len())
            );
        }
    }
}
