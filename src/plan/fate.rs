//! What becomes of a set's parent when the set is deleted, and of what it lives in.
//!
//! A parent that is anything besides is kept, and only loses the record. When in doubt,
//! it is kept.

use std::collections::BTreeSet;
use std::fmt;

use crate::model::live::{Live, OwnerReference, Tracking};
use crate::model::set::Set;

/// What becomes of the parent once no member is left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParentFate {
    /// It was the set's own object, and is deleted.
    Goes,
    /// It is of use besides: it stays, without the record.
    Stays(ParentStays),
}

/// Why a parent is more than the parent of its set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParentStays {
    /// It is a member of this other set.
    MemberOf(String),
    /// It belongs to another object.
    Owned(OwnerReference),
    /// A mark of its own says that it is to be kept.
    Protected {
        /// The annotation or label, as `key: value`.
        mark: String,
    },
    /// Somebody else has put contents into it.
    HasContents {
        /// The field managers that own them.
        writers: Vec<String>,
    },
    /// The server does not know who has put contents into it, if anybody has.
    Untracked,
}

impl fmt::Display for ParentStays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MemberOf(id) => write!(f, "it is a member of the set {id}"),
            Self::Owned(owner) => write!(f, "it is owned by {} {}", owner.kind, owner.name),
            Self::Protected { mark } => write!(f, "it is kept by its mark {mark}"),
            Self::HasContents { writers } => {
                write!(f, "it has contents that {} wrote", writers.join(" and "))
            }
            Self::Untracked => {
                f.write_str("its managedFields are empty, so it may have contents that somebody else wrote")
            }
        }
    }
}

/// Judges the parent as it was read.
///
/// `content_writers` are the field managers that own anything of it outside of its
/// metadata, `managers` those under which this set was applied. A custom resource is made
/// by people in any case, to be a parent: that it has contents says nothing.
pub fn parent_fate(
    set: &Set,
    parent: &Live,
    content_writers: &[String],
    managers: &BTreeSet<String>,
) -> ParentFate {
    let other_set = parent.part_of.as_ref().filter(|id| **id != set.id.as_str());
    if let Some(id) = other_set {
        return ParentFate::Stays(ParentStays::MemberOf(id.clone()));
    }
    if let Some(owner) = parent.owners.first() {
        return ParentFate::Stays(ParentStays::Owned(owner.clone()));
    }
    if let Some(mark) = &parent.protection {
        return ParentFate::Stays(ParentStays::Protected { mark: mark.clone() });
    }
    let is_plain = parent.key.group_kind.group.is_empty();
    if is_plain && parent.tracking == Tracking::Off {
        return ParentFate::Stays(ParentStays::Untracked);
    }
    let others = content_writers
        .iter()
        .filter(|writer| !managers.contains(*writer));
    let writers: Vec<String> = others.cloned().collect();
    if is_plain && !writers.is_empty() {
        return ParentFate::Stays(ParentStays::HasContents { writers });
    }
    ParentFate::Goes
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{live, policy, set};
    use super::super::{EmptyManifests, Observed, Policy, Pruning, plan};
    use super::*;
    use crate::manifest::desired::Desired;

    fn fate(change: impl FnOnce(&mut Live), writers: &[&str]) -> ParentFate {
        let mut parent = live("Secret", Some("shop"), "web");
        parent.part_of = None;
        change(&mut parent);
        let writers: Vec<String> = writers.iter().map(|&writer| writer.to_owned()).collect();
        parent_fate(&set(), &parent, &writers, &BTreeSet::from(["ours".to_owned()]))
    }

    #[test]
    fn a_parent_that_is_nothing_else_goes() {
        assert_eq!(fate(|_| {}, &[]), ParentFate::Goes);
        assert_eq!(fate(|_| {}, &["ours"]), ParentFate::Goes);
    }

    #[test]
    fn a_parent_that_is_anything_else_stays() {
        let owner = OwnerReference {
            api_version: "v1".to_owned(),
            kind: "Service".to_owned(),
            name: "web".to_owned(),
            uid: "x".to_owned(),
        };
        let mark = || "helm.sh/resource-policy: keep".to_owned();
        let other = "applyset-other-v1".to_owned();
        let table = [
            (
                fate(|live| live.part_of = Some(other.clone()), &[]),
                ParentStays::MemberOf(other.clone()),
            ),
            (
                fate(|live| live.owners.push(owner.clone()), &[]),
                ParentStays::Owned(owner.clone()),
            ),
            (
                fate(|live| live.protection = Some(mark()), &[]),
                ParentStays::Protected { mark: mark() },
            ),
            (
                fate(|_| {}, &["ours", "kubectl-create"]),
                ParentStays::HasContents {
                    writers: vec!["kubectl-create".to_owned()],
                },
            ),
            (
                fate(|live| live.tracking = Tracking::Off, &[]),
                ParentStays::Untracked,
            ),
        ];
        for (found, expected) in table {
            assert_eq!(found, ParentFate::Stays(expected));
        }
    }

    #[test]
    fn a_custom_resource_has_contents_of_its_own() {
        let mut parent = live("ApplySet.company.com", Some("shop"), "web");
        parent.part_of = None;
        parent.tracking = Tracking::Off;
        assert_eq!(
            parent_fate(&set(), &parent, &["kubectl-create".to_owned()], &BTreeSet::new()),
            ParentFate::Goes
        );
    }

    #[test]
    fn the_home_of_the_parent_goes_only_with_everything_else() {
        let policy = Policy {
            pruning: Pruning::WholeSet,
            empty_manifests: EmptyManifests::Allowed,
            ..policy()
        };
        let planned = |kept: bool| {
            let mut member = live("ConfigMap", Some("elsewhere"), "a");
            member.protection = kept.then(|| "helm.sh/resource-policy: keep".to_owned());
            let observed = Observed {
                members: vec![live("Namespace", None, "shop"), member],
                ..Observed::default()
            };
            plan(&set(), &Desired::default(), &observed, &policy)
        };
        assert_eq!(planned(false).deletions(), 2);
        let with_kept = planned(true);
        assert_eq!((with_kept.deletions(), with_kept.skips.len()), (0, 2));
        let kinds = &with_kept.record_after.group_kinds;
        assert!(kinds.contains(&crate::model::identity::GroupKind::new("", "Namespace")));
    }
}
