//! The reasons to keep a member that the manifests no longer hold, and their wording.

use std::fmt;

use super::refusal::describe_losses;
use crate::model::deletion_obstacles::join_obstacles_after;
use crate::model::identity::ObjectKey;
use crate::model::live::OwnerReference;
use crate::model::text::shell_word;

/// The reason to keep a member that the manifests no longer hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReasonToKeep {
    /// The user disabled pruning with `--prune=false`.
    PruningDisabled,
    /// The member is already being deleted.
    Terminating {
        /// Conditions that the deletion waits for; empty if unknown.
        waits_for: Vec<String>,
    },
    /// Another object owns the member. The owner's controller or the garbage collector deletes the member.
    Owned {
        owner: OwnerReference,
        /// The annotation or label of the member that would keep it, too, as `key: value`.
        keep_annotation: Option<String>,
    },
    /// Another object owns the object, and no applier wrote its part-of label: a controller made the object and copied
    /// the labels of the owner. The object is not a member, so its namespace and its dependencies need not be kept.
    OwnedCopy(OwnerReference),
    /// An annotation or label of the member keeps it.
    Protected {
        /// The annotation or label, as `key: value`.
        keep_annotation: String,
    },
    /// The member is the namespace of the set's parent, or the CRD of the parent's kind.
    HoldsParent,
    /// The member is the container or the `APIService` of an object that is kept.
    HoldsKept { kept: ObjectKey },
    /// The member contains an object outside of the set that an annotation or label keeps.
    HoldsAnnotated {
        /// The object with the annotation or label.
        annotated: ObjectKey,
        /// The annotation or label, as `key: value`.
        keep_annotation: String,
    },
    /// The member is a namespace or CRD that has gained objects since its deletion was planned, or may have.
    FilledSincePlan {
        /// Objects that would be lost with the member.
        lost: Vec<ObjectKey>,
        /// Resources that could not be listed.
        unknown: Vec<String>,
    },
    /// The manifests hold the member as a hook, and hooks are not applied.
    Hook {
        /// The annotation of the manifest, as `key: value`.
        hook_annotation: String,
    },
    /// An object that is kept, or that the manifests hold, depends on the member.
    Needed {
        /// The object that depends on the member.
        dependent: ObjectKey,
    },
    /// The member was added by another run after the plan was made, or its delete has not succeeded.
    NotDeletedByRun,
    /// No applier wrote the part-of label of the object, so a controller may have copied it.
    CopiedLabel {
        /// The field managers that own the label; empty if none does.
        writers: Vec<String>,
    },
}

impl ReasonToKeep {
    /// Returns whether the kept object is a member. An object whose label is a copy is not a member.
    pub fn is_of_member(&self) -> bool {
        !matches!(self, Self::OwnedCopy(_) | Self::CopiedLabel { .. })
    }

    /// Returns the reason without advice.
    pub fn describe_without_advice(&self) -> String {
        match self {
            Self::CopiedLabel { writers } => describe_label_writers(writers),
            other => other.to_string(),
        }
    }

    /// Returns whether a run reports the kept object. If pruning is disabled, it does not report each member.
    pub fn is_reported(&self) -> bool {
        !matches!(self, Self::PruningDisabled)
    }
}

impl fmt::Display for ReasonToKeep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PruningDisabled => f.write_str("pruning is off (--prune=false)"),
            Self::Terminating { waits_for } => {
                let obstacles = join_obstacles_after(", waiting: ", waits_for);
                write!(f, "already being deleted{obstacles}")
            }
            Self::Protected { keep_annotation } => write!(f, "kept by {keep_annotation}"),
            Self::HoldsKept { kept } => write!(f, "it holds {kept}, which is kept"),
            Self::HoldsAnnotated {
                annotated,
                keep_annotation,
            } => {
                write!(f, "it contains {annotated}, which is kept by {keep_annotation}")
            }
            Self::Hook { hook_annotation } => write!(f, "a hook, left as it is ({hook_annotation})"),
            Self::Needed { dependent } => write!(f, "{dependent} depends on it"),
            Self::NotDeletedByRun => f.write_str("this run does not delete it"),
            Self::HoldsParent => f.write_str("it contains the set's parent"),
            Self::FilledSincePlan { lost, unknown } => {
                write!(
                    f,
                    "deleting it would now also delete {}",
                    describe_losses(lost, unknown)
                )
            }
            Self::Owned {
                owner,
                keep_annotation,
            } => {
                write!(f, "owned by {} {}", owner.kind, owner.name)?;
                keep_annotation
                    .iter()
                    .try_for_each(|keep_annotation| write!(f, ", and kept by {keep_annotation}"))
            }
            Self::OwnedCopy(owner) => write!(f, "owned by {} {}", owner.kind, owner.name),
            Self::CopiedLabel { writers } => {
                let cause = describe_label_writers(writers);
                match find_possible_applier(writers) {
                    Some(writer) => write!(
                        f,
                        "{cause}; {REMOVE_LABEL}, delete the object, or pass --field-manager {} if {writer} applies this set",
                        shell_word(writer)
                    ),
                    None if is_merged(writers) => write!(
                        f,
                        "{cause}; restore the object to the manifests and apply it, {REMOVE_LABEL}, or delete the object"
                    ),
                    None => write!(f, "{cause}; {REMOVE_LABEL}, or delete the object"),
                }
            }
        }
    }
}

const REMOVE_LABEL: &str = "remove the label with `kubectl label KIND/NAME applyset.kubernetes.io/part-of-`";

/// The field manager under which the API server merges old entries of `managedFields`, whoever wrote them. As
/// `--field-manager`, it would make a member of every object with a copied label.
const MERGED_FIELD_MANAGER: &str = "ancient-changes";

/// Returns whether the API server has merged an entry of the field managers that own a part-of label.
pub(super) fn is_merged(writers: &[String]) -> bool {
    writers.iter().any(|writer| writer == MERGED_FIELD_MANAGER)
}

/// Finds the field manager that may apply the set, among those that own a part-of label.
fn find_possible_applier(writers: &[String]) -> Option<&String> {
    let mut possible = writers.iter();
    possible.find(|writer| !writer.starts_with("kubectl") && *writer != MERGED_FIELD_MANAGER)
}

/// Describes the field managers that own the part-of label of an object, none of which is an applier.
pub fn describe_label_writers(writers: &[String]) -> String {
    if writers.is_empty() {
        "no field manager owns its part-of label".to_owned()
    } else if is_merged(writers) {
        format!("the API server has merged the writer of its part-of label into {MERGED_FIELD_MANAGER}")
    } else {
        format!(
            "its part-of label was written by {}, which does not apply this set",
            writers.join(" and ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::applyset::PART_OF_LABEL;

    #[test]
    fn a_label_that_no_applier_wrote_is_reported_with_a_way_out() {
        for (writers, flag) in [
            (&[][..], None),
            (&["kubectl-label"], None),
            (&["zzz"], Some("pass --field-manager zzz if")),
            (&["kubectl-label", "zzz"], Some("pass --field-manager zzz if")),
            (&["ancient-changes", "kubectl-label"], None),
            (&["ancient-changes", "zzz"], Some("pass --field-manager zzz if")),
        ] {
            let writers = writers.iter().map(|&writer| writer.to_owned()).collect();
            let text = ReasonToKeep::CopiedLabel { writers }.to_string();
            assert!(text.contains("delete the object"), "{text}");
            assert!(
                text.contains(&format!("`kubectl label KIND/NAME {PART_OF_LABEL}-`")),
                "{text}"
            );
            assert_eq!(text.contains("--field-manager"), flag.is_some(), "{text}");
            assert!(flag.is_none_or(|flag| text.contains(flag)), "{text}");
        }
        let writers = vec!["ancient-changes".to_owned()];
        let text = ReasonToKeep::CopiedLabel { writers }.to_string();
        assert!(
            text.contains("restore the object to the manifests and apply it"),
            "{text}"
        );
    }
}
