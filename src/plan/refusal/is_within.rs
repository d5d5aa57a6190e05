//! Compares two refusals: the consent to one covers the same loss and smaller ones.

use std::mem::discriminant;

use super::Refusal;

impl Refusal {
    /// Returns whether the consent to one of the `shown` refusals covers this refusal.
    pub fn is_within_any_of<'r>(&self, shown: impl IntoIterator<Item = &'r Self>) -> bool {
        shown.into_iter().any(|shown| self.is_within(shown))
    }

    /// Returns whether the consent to `shown` covers this refusal: both are the same, or this one is about a smaller
    /// loss of the same object.
    pub fn is_within(&self, shown: &Self) -> bool {
        match (self, shown) {
            (
                Self::HoldsOthers {
                    container,
                    uids,
                    unknown,
                    ..
                },
                Self::HoldsOthers {
                    container: shown_container,
                    uids: shown_uids,
                    unknown: shown_unknown,
                    ..
                },
            ) => {
                container == shown_container
                    && uids.is_subset(shown_uids)
                    && are_among(unknown, shown_unknown)
            }
            (
                Self::OwnsDependents { object, uids, .. },
                Self::OwnsDependents {
                    object: shown_object,
                    uids: shown_uids,
                    ..
                },
            ) => object == shown_object && uids.is_subset(shown_uids),
            (
                Self::RepairsParent { parent, changes },
                Self::RepairsParent {
                    parent: shown_parent,
                    changes: shown_changes,
                },
            ) => parent == shown_parent && are_among(changes, shown_changes),
            // A proposal has the UIDs of the objects that these refusals are about, and compares them.
            (
                Self::EmptyManifests { .. }
                | Self::PrunesAll { .. }
                | Self::DeletesSet { .. }
                | Self::DisbandsSet { .. }
                | Self::ReachesOutside { .. },
                _,
            ) => discriminant(self) == discriminant(shown),
            _ => self == shown,
        }
    }
}

fn are_among(some: &[String], all: &[String]) -> bool {
    some.iter().all(|one| all.contains(one))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::model::identity::{GroupKind, ObjectKey};

    #[test]
    fn a_yes_covers_what_was_shown_and_nothing_more() {
        let key = |kind: &str, name: &str| ObjectKey {
            group_kind: GroupKind::new("", kind),
            namespace: None,
            name: name.to_owned(),
        };
        let holds = |container: &str, lost: &[&str], unknown: &[&str]| Refusal::HoldsOthers {
            container: key("Namespace", container),
            lost: lost.iter().map(|_| key("ConfigMap", "any")).collect(),
            uids: lost.iter().map(|&uid| uid.to_owned()).collect(),
            unknown: unknown.iter().map(|&name| name.to_owned()).collect(),
        };
        let storage = |name: &str| Refusal::PrunesStorage {
            object: key("PersistentVolume", name),
        };
        let repairs = |changes: &[&str]| Refusal::RepairsParent {
            parent: key("Secret", "web"),
            changes: changes.iter().map(|&change| change.to_owned()).collect(),
        };
        assert!(repairs(&["x"]).is_within(&repairs(&["x", "y"])));
        assert!(!repairs(&["x", "z"]).is_within(&repairs(&["x", "y"])));
        let shown = holds("b", &["x", "y"], &["pods"]);
        for (refusal, is_within) in [
            (holds("b", &["x", "y"], &["pods"]), true),
            (holds("b", &["y"], &[]), true),
            (holds("b", &["x", "z"], &[]), false),
            (holds("b", &["x"], &["jobs"]), false),
            (holds("c", &["x"], &[]), false),
            (storage("x"), false),
        ] {
            assert_eq!(refusal.is_within(&shown), is_within, "{refusal}");
        }
        let owns = |uid: &str| Refusal::OwnsDependents {
            object: key("ConfigMap", "owner"),
            dependents: vec![key("ConfigMap", "any")],
            uids: [uid.to_owned()].into(),
            keep_annotations: BTreeMap::new(),
        };
        assert!(owns("x").is_within(&owns("x")) && !owns("x").is_within(&owns("z")));
        assert!(storage("x").is_within(&storage("x")));
        assert!(!storage("x").is_within(&storage("y")));
    }
}
