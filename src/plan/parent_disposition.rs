//! The disposition of a set's parent once its members are deleted or released: deleted, or kept without
//! the record.
//!
//! A parent that has another use is kept. If it is not known whether a parent has another use, it is kept, too.

use std::collections::BTreeSet;
use std::fmt;

use crate::model::live::{Live, OwnerReference, Tracking};
use crate::model::set::Set;

/// The disposition of the parent once it has no members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParentDisposition {
    /// The parent has no other use, and is deleted.
    Goes,
    /// The parent has another use for this reason: it is kept, and its ApplySet metadata are removed.
    Stays(ParentKeptReason),
}

/// The reason to keep a parent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParentKeptReason {
    /// The parent is a member of the set with this id.
    MemberOf(String),
    /// Another object owns the parent.
    Owned(OwnerReference),
    /// An annotation or label of the parent keeps it.
    Protected {
        /// The annotation or label, as `key: value`.
        keep_annotation: String,
    },
    /// Other field managers wrote data into the parent.
    HasContents {
        /// The other field managers.
        writers: Vec<String>,
    },
    /// The parent has no `managedFields`, so other field managers may have written data into it.
    Untracked,
}

impl fmt::Display for ParentKeptReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MemberOf(id) => write!(f, "it is a member of the set {id}"),
            Self::Owned(owner) => write!(f, "it is owned by {} {}", owner.kind, owner.name),
            Self::Protected { keep_annotation } => write!(f, "kept by {keep_annotation}"),
            Self::HasContents { writers } => {
                write!(f, "{} wrote other content to it", writers.join(" and "))
            }
            Self::Untracked => f.write_str("its managedFields are empty, so it may hold other content"),
        }
    }
}

/// Judges the parent as it was read.
///
/// `content_writers` are the field managers that own fields outside of the parent's metadata, and `managers` are the
/// field managers of this set's applies. The fields of a custom resource are not evidence of another use: users create
/// the custom resource, with its fields, to be a parent.
pub fn decide_parent_disposition(
    set: &Set,
    parent: &Live,
    content_writers: &[String],
    managers: &BTreeSet<String>,
) -> ParentDisposition {
    let other_set = parent.part_of.as_ref().filter(|id| **id != set.id.as_str());
    if let Some(id) = other_set {
        return ParentDisposition::Stays(ParentKeptReason::MemberOf(id.clone()));
    }
    if let Some(owner) = parent.owners.first() {
        return ParentDisposition::Stays(ParentKeptReason::Owned(owner.clone()));
    }
    if let Some(keep_annotation) = &parent.keep_annotation {
        return ParentDisposition::Stays(ParentKeptReason::Protected {
            keep_annotation: keep_annotation.clone(),
        });
    }
    let is_core_kind = parent.key.group_kind.group.is_empty();
    if is_core_kind && parent.tracking == Tracking::Off {
        return ParentDisposition::Stays(ParentKeptReason::Untracked);
    }
    let others = content_writers
        .iter()
        .filter(|writer| !managers.contains(*writer));
    let writers: Vec<String> = others.cloned().collect();
    if is_core_kind && !writers.is_empty() {
        return ParentDisposition::Stays(ParentKeptReason::HasContents { writers });
    }
    ParentDisposition::Goes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::desired::Desired;
    use crate::plan::fixtures::{live, policy, set};
    use crate::plan::{Observed, Policy, Pruning, Risk, plan};

    fn disposition(change: impl FnOnce(&mut Live), writers: &[&str]) -> ParentDisposition {
        let mut parent = live("Secret", Some("shop"), "web");
        parent.part_of = None;
        change(&mut parent);
        let writers: Vec<String> = writers.iter().map(|&writer| writer.to_owned()).collect();
        decide_parent_disposition(&set(), &parent, &writers, &BTreeSet::from(["ours".to_owned()]))
    }

    #[test]
    fn a_parent_without_another_use_is_deleted() {
        assert_eq!(disposition(|_| {}, &[]), ParentDisposition::Goes);
        assert_eq!(disposition(|_| {}, &["ours"]), ParentDisposition::Goes);
    }

    #[test]
    fn a_parent_with_another_use_is_kept() {
        let owner = OwnerReference {
            api_version: "v1".to_owned(),
            kind: "Service".to_owned(),
            name: "web".to_owned(),
            uid: "x".to_owned(),
        };
        let keep_annotation = || "helm.sh/resource-policy: keep".to_owned();
        let other = "applyset-other-v1".to_owned();
        let table = [
            (
                disposition(|live| live.part_of = Some(other.clone()), &[]),
                ParentKeptReason::MemberOf(other.clone()),
            ),
            (
                disposition(|live| live.owners.push(owner.clone()), &[]),
                ParentKeptReason::Owned(owner.clone()),
            ),
            (
                disposition(|live| live.keep_annotation = Some(keep_annotation()), &[]),
                ParentKeptReason::Protected {
                    keep_annotation: keep_annotation(),
                },
            ),
            (
                disposition(|_| {}, &["ours", "kubectl-create"]),
                ParentKeptReason::HasContents {
                    writers: vec!["kubectl-create".to_owned()],
                },
            ),
            (
                disposition(|live| live.tracking = Tracking::Off, &[]),
                ParentKeptReason::Untracked,
            ),
        ];
        for (found, expected) in table {
            assert_eq!(found, ParentDisposition::Stays(expected));
        }
    }

    #[test]
    fn a_custom_resource_has_fields_of_its_own() {
        let mut parent = live("ApplySet.company.com", Some("shop"), "web");
        parent.part_of = None;
        parent.tracking = Tracking::Off;
        assert_eq!(
            decide_parent_disposition(&set(), &parent, &["kubectl-create".to_owned()], &BTreeSet::new()),
            ParentDisposition::Goes
        );
    }

    #[test]
    fn the_namespace_of_the_parent_is_deleted_only_with_everything_else() {
        let policy = Policy {
            pruning: Pruning::WholeSet,
            prune_all: Risk::Allowed,
            ..policy()
        };
        let planned = |kept: bool| {
            let mut member = live("ConfigMap", Some("elsewhere"), "a");
            member.keep_annotation = kept.then(|| "helm.sh/resource-policy: keep".to_owned());
            let observed = Observed {
                members: vec![live("Namespace", None, "shop"), member],
                ..Observed::default()
            };
            plan(&set(), &Desired::default(), &observed, &policy)
        };
        assert_eq!(planned(false).count_prunes(), 2);
        let with_kept = planned(true);
        assert_eq!((with_kept.count_prunes(), with_kept.skips.len()), (0, 2));
        let kinds = &with_kept.record_after.group_kinds;
        assert!(kinds.contains(&crate::model::identity::GroupKind::new("", "Namespace")));
    }
}
