//! What is left of a set that was to go, and whether it is left for a reason that people gave.

use std::collections::BTreeSet;

use super::SkipReason;
use super::fate::ParentFate;
use super::inside::Kept;
use super::prune::{is_home_of, reason_to_stay};
use crate::model::live::Live;
use crate::model::set::Set;

/// What a look after the last delete found of a set. A set is gone as it should be if
/// nothing of it is `going` or `undeleted`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Remains {
    /// Objects that people marked to be kept or gave another owner, and what holds them.
    pub kept: Vec<Live>,
    /// Objects on their way out, and those that go with an owner that was deleted.
    pub going: Vec<Live>,
    /// Objects that should be gone: another run's, changed or filled in the meantime, or
    /// labelled under a field manager that the run does not know.
    pub undeleted: Vec<Live>,
}

impl Remains {
    /// Sorts what was found. `deleted` are the UIDs of what the run deletes, `parent` is what
    /// becomes of the parent once nothing holds it, and `holders` are the UIDs of what is kept
    /// with an object in it that a mark keeps.
    ///
    /// A member with another owner counts as kept: an applier labelled it, so a parent must
    /// keep recording it, and deleting it is up to its owner. No rerun could delete it either,
    /// so a failure would have no remedy.
    pub fn sort(
        left: Vec<Live>,
        set: &Set,
        appliers: &BTreeSet<String>,
        deleted: &BTreeSet<String>,
        holders: &BTreeSet<String>,
        parent: &ParentFate,
    ) -> Self {
        let mut remains = Self::default();
        let mut rest = Vec::new();
        for live in left {
            match reason_to_stay(&live, set, appliers) {
                Some(SkipReason::Terminating { .. }) => remains.going.push(live),
                Some(SkipReason::Owned { owner, .. }) if deleted.contains(&owner.uid) => {
                    remains.going.push(live);
                }
                Some(SkipReason::Owned { .. } | SkipReason::Protected { .. }) => remains.kept.push(live),
                _ if holders.contains(&live.uid) => remains.kept.push(live),
                _ => rest.push(live),
            }
        }
        let (homes, rest): (Vec<Live>, Vec<Live>) = rest.into_iter().partition(|live| is_home_of(set, live));
        let kept: Kept = remains.kept.iter().map(|live| &live.key).collect();
        let holds_kept = |live: &Live| kept.held_by(live).is_some();
        let (holders, rest): (Vec<Live>, Vec<Live>) = rest.into_iter().partition(holds_kept);
        remains.kept.extend(holders);
        remains.undeleted.extend(rest);
        // What the parent lives in stays as long as the parent does.
        if remains.kept.is_empty() && *parent == ParentFate::Goes {
            remains.undeleted.extend(homes);
        } else {
            remains.kept.extend(homes);
        }
        remains
    }

    /// Whether nothing is left but what people want to stay.
    pub fn is_as_wanted(&self) -> bool {
        self.going.is_empty() && self.undeleted.is_empty()
    }

    /// Everything that is left.
    pub fn all(&self) -> impl Iterator<Item = &Live> {
        self.kept.iter().chain(&self.going).chain(&self.undeleted)
    }
}

#[cfg(test)]
mod tests {
    use super::super::ParentStays;
    use super::super::fixtures::{live, policy, set};
    use super::*;
    use crate::model::live::{OwnerReference, Presence};

    fn owned_by(uid: &str, mut live: Live) -> Live {
        live.owners.push(OwnerReference {
            api_version: "v1".to_owned(),
            kind: "Service".to_owned(),
            name: "web".to_owned(),
            uid: uid.to_owned(),
        });
        live
    }

    fn marked(mut live: Live) -> Live {
        live.protection = Some("helm.sh/resource-policy: keep".to_owned());
        live
    }

    fn terminating(mut live: Live) -> Live {
        live.presence = Presence::Terminating;
        live
    }

    fn map(namespace: &str) -> Live {
        live("ConfigMap", Some(namespace), "a")
    }

    fn counts(left: &[Live], parent: &ParentFate) -> [usize; 3] {
        let deleted = BTreeSet::from(["deleted".to_owned()]);
        let holders = BTreeSet::from([live("Namespace", None, "holds-marked").uid]);
        let appliers = &policy().appliers;
        let remains = Remains::sort(left.to_vec(), &set(), appliers, &deleted, &holders, parent);
        assert_eq!(remains.all().count(), left.len());
        [remains.kept.len(), remains.going.len(), remains.undeleted.len()]
    }

    #[test]
    fn only_what_people_keep_is_kept() {
        let mut unowned_copy = map("away");
        unowned_copy.part_of_writers = vec!["endpoint-controller".to_owned()];
        let holder = live("Namespace", None, "away");
        let home = live("Namespace", None, "shop");
        let table = [
            (vec![marked(map("away"))], [1, 0, 0]),
            (vec![marked(map("away")), holder.clone()], [2, 0, 0]),
            (vec![marked(map("away")), home.clone()], [2, 0, 0]),
            (vec![owned_by("operator", map("away"))], [1, 0, 0]),
            (vec![owned_by("deleted", map("away"))], [0, 1, 0]),
            (vec![terminating(marked(map("away")))], [0, 1, 0]),
            (vec![terminating(holder.clone())], [0, 1, 0]),
            (vec![map("away")], [0, 0, 1]),
            (vec![unowned_copy], [0, 0, 1]),
            (vec![holder], [0, 0, 1]),
            (
                vec![live("Namespace", None, "holds-marked"), home.clone()],
                [2, 0, 0],
            ),
            (vec![home], [0, 0, 1]),
        ];
        for (left, expected) in table {
            assert_eq!(counts(&left, &ParentFate::Goes), expected, "{left:?}");
        }
    }

    #[test]
    fn the_home_of_a_parent_that_is_something_else_too_is_kept() {
        let stays = ParentFate::Stays(ParentStays::Untracked);
        assert_eq!(counts(&[live("Namespace", None, "shop")], &stays), [1, 0, 0]);
        assert_eq!(counts(&[map("shop")], &stays), [0, 0, 1]);
    }
}
