//! Why a run is refused before its first write, and which flag would lift that.

use crate::applyset::Tooling;
use crate::applyset::parent::ParentFault;
use crate::identity::ObjectKey;

/// One reason why nothing may be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The parent's bookkeeping cannot be trusted.
    #[error("the set's parent {parent} cannot be trusted: {fault}")]
    FaultyParent {
        /// The parent.
        parent: ObjectKey,
        /// What is wrong with it.
        fault: ParentFault,
    },
    /// Another program manages the set.
    #[error("the set of {parent} is managed by {found}, and this is {ours}")]
    OtherTooling {
        /// The parent.
        parent: ObjectKey,
        /// The program that the parent names.
        found: Tooling,
        /// This program.
        ours: Tooling,
    },
    /// The object exists and is no parent.
    #[error("{parent} exists and is not the parent of a set")]
    NotAParent {
        /// The object.
        parent: ObjectKey,
    },
    /// Somebody is deleting the parent.
    #[error("the set's parent {parent} is being deleted")]
    ParentTerminating {
        /// The parent.
        parent: ObjectKey,
    },
    /// There is not a single manifest.
    #[error("the manifests hold no object, so everything in the set would be pruned")]
    EmptyManifests,
}

impl Refusal {
    /// What to type next.
    pub fn hint(&self) -> String {
        match self {
            Self::FaultyParent { .. } => {
                "compare the parent with a backup; `kubectl get -o yaml` shows its labels and annotations"
                    .to_owned()
            }
            Self::OtherTooling { found, .. } => format!(
                "go on with {}, or take the set over for good with --take-over",
                found.name
            ),
            Self::NotAParent { .. } => {
                "choose another name for the set, or make this object its parent with --take-over".to_owned()
            }
            Self::ParentTerminating { .. } => "wait until it is gone, and run again".to_owned(),
            Self::EmptyManifests => "check the paths given to -f; --allow-empty prunes everything".to_owned(),
        }
    }
}
