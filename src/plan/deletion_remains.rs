//! Objects that remain of a set after its deletion, and whether the user wants them to remain.

use std::collections::BTreeSet;

use super::dependencies::find_live_dependencies;
use super::prune_rules::reason_to_keep_by_metadata;
use super::{KeptObjects, ParentDisposition, ReasonToKeep, holds_parent_of};
use crate::model::live::Live;
use crate::model::set::Set;

/// Objects of a set that exist after the last delete. The deletion has succeeded if `going` and `unwanted` are empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Remains {
    /// Objects that a keep annotation or another owner keeps, their containers, and their dependencies.
    pub kept: Vec<Live>,
    /// Objects that are being deleted, and objects whose owner the run deletes.
    pub going: Vec<Live>,
    /// Objects that should be gone: applied by another run, changed since the plan, containers that were filled since
    /// the plan, or objects labeled by a field manager that the run does not know.
    pub unwanted: Vec<Live>,
}

impl Remains {
    /// Divides the objects by what becomes of them. `deleted` are the UIDs of the objects that the run
    /// deletes, `parent` is the disposition of the parent without members, and `containers_of_kept` are the
    /// UIDs of containers that are kept because an object in them has a keep annotation.
    ///
    /// A member that another object owns counts as kept, so that the run does not fail because of it: only its owner
    /// deletes it, and running the same command again would not help. The parent still has to record the member,
    /// because an applier labeled it.
    pub fn classify(
        objects: Vec<Live>,
        set: &Set,
        appliers: &BTreeSet<String>,
        deleted: &BTreeSet<String>,
        containers_of_kept: &BTreeSet<String>,
        parent: &ParentDisposition,
    ) -> Self {
        let mut remains = Self::default();
        let mut rest = Vec::new();
        for live in objects {
            match reason_to_keep_by_metadata(&live, set, appliers) {
                Some(ReasonToKeep::Terminating { .. }) => remains.going.push(live),
                Some(ReasonToKeep::Owned { owner, .. }) if deleted.contains(&owner.uid) => {
                    remains.going.push(live);
                }
                Some(ReasonToKeep::Owned { .. } | ReasonToKeep::Protected { .. }) => remains.kept.push(live),
                _ if containers_of_kept.contains(&live.uid) => remains.kept.push(live),
                _ => rest.push(live),
            }
        }
        let (parent_containers, rest): (Vec<Live>, Vec<Live>) =
            rest.into_iter().partition(|live| holds_parent_of(set, live));
        remains.unwanted = remains.move_needed_to_kept(rest);
        // The parent's namespace and CRD are kept as long as the parent is kept: by its own disposition, or because it
        // has to record kept members.
        if remains.kept.is_empty() && *parent == ParentDisposition::Goes {
            remains.unwanted.extend(parent_containers);
        } else {
            remains.kept.extend(parent_containers);
        }
        remains
    }

    /// Takes what a kept object needs, its containers and its dependencies, from `rest`, and adds it to the kept
    /// objects. Returns the other objects.
    fn move_needed_to_kept(&mut self, mut rest: Vec<Live>) -> Vec<Live> {
        loop {
            let kept: KeptObjects = self.kept.iter().map(|live| &live.key).collect();
            let needed = find_live_dependencies(self.kept.iter());
            let (more, others): (Vec<Live>, Vec<Live>) = rest
                .into_iter()
                .partition(|live| needed.contains_key(&live.key) || kept.kept_object_in(live).is_some());
            rest = others;
            if more.is_empty() {
                return rest;
            }
            self.kept.extend(more);
        }
    }

    /// Returns all remaining objects.
    pub fn all(&self) -> impl Iterator<Item = &Live> {
        self.kept.iter().chain(&self.going).chain(&self.unwanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::live::{OwnerReference, Presence};
    use crate::plan::fixtures::{live, policy, set};
    use crate::plan::parent_disposition::ParentKeptReason;

    fn owned_by(uid: &str, mut live: Live) -> Live {
        live.owners.push(OwnerReference {
            api_version: "v1".to_owned(),
            kind: "Service".to_owned(),
            name: "web".to_owned(),
            uid: uid.to_owned(),
        });
        live
    }

    fn annotated(mut live: Live) -> Live {
        live.keep_annotation = Some("helm.sh/resource-policy: keep".to_owned());
        live
    }

    fn terminating(mut live: Live) -> Live {
        live.presence = Presence::Terminating;
        live
    }

    fn map(namespace: &str) -> Live {
        live("ConfigMap", Some(namespace), "a")
    }

    fn counts(left: &[Live], parent: &ParentDisposition) -> [usize; 3] {
        let deleted = BTreeSet::from(["deleted".to_owned()]);
        let containers_of_kept = BTreeSet::from([live("Namespace", None, "holds-annotated").uid]);
        let appliers = &policy().appliers;
        let remains = Remains::classify(
            left.to_vec(),
            &set(),
            appliers,
            &deleted,
            &containers_of_kept,
            parent,
        );
        assert_eq!(remains.all().count(), left.len());
        [remains.kept.len(), remains.going.len(), remains.unwanted.len()]
    }

    #[test]
    fn only_what_users_keep_is_kept() {
        let mut unowned_copy = map("away");
        unowned_copy.part_of_writers = vec!["endpoint-controller".to_owned()];
        let away = live("Namespace", None, "away");
        let namespace = live("Namespace", None, "shop");
        let table = [
            (vec![annotated(map("away"))], [1, 0, 0]),
            (vec![annotated(map("away")), away.clone()], [2, 0, 0]),
            (vec![annotated(map("away")), namespace.clone()], [2, 0, 0]),
            (vec![owned_by("operator", map("away"))], [1, 0, 0]),
            (vec![owned_by("deleted", map("away"))], [0, 1, 0]),
            (vec![terminating(annotated(map("away")))], [0, 1, 0]),
            (vec![terminating(away.clone())], [0, 1, 0]),
            (vec![map("away")], [0, 0, 1]),
            (vec![unowned_copy], [0, 0, 1]),
            (vec![away], [0, 0, 1]),
            (
                vec![live("Namespace", None, "holds-annotated"), namespace.clone()],
                [2, 0, 0],
            ),
            (vec![namespace], [0, 0, 1]),
        ];
        for (left, expected) in table {
            assert_eq!(counts(&left, &ParentDisposition::Goes), expected, "{left:?}");
        }
    }

    #[test]
    fn what_a_kept_object_needs_is_kept() {
        let named = |name: &str| live("ConfigMap", Some("away"), name);
        let needing = |name: &str, needed: &[&Live]| {
            let mut live = named(name);
            live.dependencies.objects = needed.iter().map(|live| live.key.clone()).collect();
            live
        };
        let base = named("base");
        let middle = needing("middle", &[&base]);
        let top = needing("top", &[&middle]);
        let away = live("Namespace", None, "away");
        let table = [
            (
                vec![annotated(top.clone()), middle.clone(), base.clone()],
                [3, 0, 0],
            ),
            (
                vec![owned_by("operator", middle.clone()), base.clone()],
                [2, 0, 0],
            ),
            (
                vec![away, annotated(top.clone()), base.clone(), middle.clone()],
                [4, 0, 0],
            ),
            (
                vec![annotated(base.clone()), middle.clone(), top.clone()],
                [1, 0, 2],
            ),
            (vec![terminating(annotated(middle)), base.clone()], [0, 1, 1]),
            (vec![top, base], [0, 0, 2]),
        ];
        for (left, expected) in table {
            assert_eq!(counts(&left, &ParentDisposition::Goes), expected, "{left:?}");
        }
    }

    #[test]
    fn the_namespace_of_a_kept_parent_is_kept() {
        let stays = ParentDisposition::Stays(ParentKeptReason::Untracked);
        assert_eq!(counts(&[live("Namespace", None, "shop")], &stays), [1, 0, 0]);
        assert_eq!(counts(&[map("shop")], &stays), [0, 0, 1]);
    }
}
