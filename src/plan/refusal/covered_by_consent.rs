//! Compares two refusals: the consent to one covers the same loss and smaller ones.

use std::mem::discriminant;

use super::Refusal;

impl Refusal {
    /// Returns whether the consent to one of the `agreed` refusals covers this refusal.
    pub fn is_covered_by_consent_to<'r>(&self, agreed: impl IntoIterator<Item = &'r Self>) -> bool {
        agreed.into_iter().any(|agreed| self.is_covered_by(agreed))
    }

    /// Returns whether the consent to `agreed` covers this refusal: both are the same, or this one is about a smaller
    /// loss of the same object.
    fn is_covered_by(&self, agreed: &Self) -> bool {
        match (self, agreed) {
            (
                Self::HoldsOthers {
                    container,
                    uids,
                    unknown,
                    ..
                },
                Self::HoldsOthers {
                    container: agreed_container,
                    uids: agreed_uids,
                    unknown: agreed_unknown,
                    ..
                },
            ) => {
                container == agreed_container
                    && uids.is_subset(agreed_uids)
                    && are_among(unknown, agreed_unknown)
            }
            (
                Self::OwnsDependents { object, uids, .. },
                Self::OwnsDependents {
                    object: agreed_object,
                    uids: agreed_uids,
                    ..
                },
            ) => object == agreed_object && uids.is_subset(agreed_uids),
            (
                Self::RepairsParent { parent, changes },
                Self::RepairsParent {
                    parent: agreed_parent,
                    changes: agreed_changes,
                },
            ) => parent == agreed_parent && are_among(changes, agreed_changes),
            // A proposal has the UIDs of the objects that these refusals are about, and compares them.
            (
                Self::EmptyManifests { .. }
                | Self::PrunesAll { .. }
                | Self::DeletesSet { .. }
                | Self::DisbandsSet { .. }
                | Self::ReachesOutside { .. },
                _,
            ) => discriminant(self) == discriminant(agreed),
            _ => self == agreed,
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
        assert!(repairs(&["x"]).is_covered_by(&repairs(&["x", "y"])));
        assert!(!repairs(&["x", "z"]).is_covered_by(&repairs(&["x", "y"])));
        let agreed = holds("b", &["x", "y"], &["pods"]);
        for (refusal, is_covered) in [
            (holds("b", &["x", "y"], &["pods"]), true),
            (holds("b", &["y"], &[]), true),
            (holds("b", &["x", "z"], &[]), false),
            (holds("b", &["x"], &["jobs"]), false),
            (holds("c", &["x"], &[]), false),
            (storage("x"), false),
        ] {
            assert_eq!(refusal.is_covered_by(&agreed), is_covered, "{refusal}");
        }
        let owns = |uid: &str| Refusal::OwnsDependents {
            object: key("ConfigMap", "owner"),
            dependents: vec![key("ConfigMap", "any")],
            uids: [uid.to_owned()].into(),
            keep_annotations: BTreeMap::new(),
        };
        assert!(owns("x").is_covered_by(&owns("x")) && !owns("x").is_covered_by(&owns("z")));
        assert!(storage("x").is_covered_by(&storage("x")));
        assert!(!storage("x").is_covered_by(&storage("y")));
    }
}
