//! Objects of the manifests that existed in no set: an apply makes members of them, so a later run
//! prunes them once they leave the manifests.

use super::prune::{Judgement, judge};
use super::{Policy, Pruning, Set, defined_kind};
use crate::desired::DesiredObject;
use crate::observe::{Live, Presence};

/// The reason that is reported of an object that existed in no set and becomes a member: what a
/// later run does with it once it leaves the manifests.
///
/// `live` is the object as it was read; what marks a member is not expected of it.
pub fn reason_of_taking_in(object: &DesiredObject, live: &Live, set: &Set, policy: &Policy) -> String {
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
        Judgement::Skip(reason) => format!("existed before; kept when it leaves the manifests: {reason}"),
        Judgement::Prune | Judgement::Refuse(_) | Judgement::Ignore => PRUNED_LATER.to_owned(),
    }
}

const PRUNED_LATER: &str = "existed before; will be pruned when it leaves the manifests";

#[cfg(test)]
mod tests {
    use super::super::fixtures::{desired, live, policy, set};
    use super::*;
    use crate::observe::OwnerReference;

    /// The reason for an object that was in no set, changed by `change`.
    fn reason(kind: &str, name: &str, change: impl FnOnce(&mut Live)) -> String {
        let namespace = (kind != "Namespace").then_some("shop");
        let mut found = live(kind, namespace, name);
        found.part_of = None;
        found.part_of_writers.clear();
        change(&mut found);
        reason_of_taking_in(&desired(kind, namespace, name), &found, &set(), &policy())
    }

    #[test]
    fn the_reason_says_what_a_later_run_does() {
        let pruned = "existed before; will be pruned when it leaves the manifests";
        let kept = "existed before; kept when it leaves the manifests: ";
        assert_eq!(reason("ConfigMap", "a", |_| {}), pruned);
        assert_eq!(reason("Namespace", "other", |_| {}), pruned);
        assert_eq!(
            reason("Namespace", "shop", |_| {}),
            format!("{kept}it holds the set's parent")
        );
        let marked = reason("ConfigMap", "a", |live| {
            live.protection = Some("helm.sh/resource-policy: keep".to_owned());
        });
        assert_eq!(
            marked,
            format!("{kept}kept by its mark helm.sh/resource-policy: keep")
        );
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
