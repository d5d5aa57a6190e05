//! Hints for refusals: the safe way first, then the flag that overrides the refusal.

use super::super::OtherParent;
use super::Refusal;
use crate::event::Operation;
use crate::model::applyset::Tooling;
use crate::model::text::shell_word;

impl Refusal {
    /// Hint for an object that exists and is not in a set.
    pub const UNOWNED_HINT: &str =
        "take it in with `kubectl applyset adopt SET -f …`, or leave out --only-new-or-owned";

    /// Returns the hint.
    pub fn hint(&self) -> String {
        match self {
            Self::FaultyParent { parent, .. } => format!(
                "`kubectl applyset verify {}` tells whether its --fix can mend that; else compare the parent with a backup",
                parent.argument()
            ),
            Self::OtherTooling { found, ours, .. } => other_tooling(found, ours),
            Self::ManagedElsewhere { found, ours, operation, .. } => managed_elsewhere(found, ours, *operation),
            Self::NotAParent { .. } => {
                "choose another name for the set, or make this object its parent with --take-over-set --yes".to_owned()
            }
            Self::ParentTerminating { .. } | Self::ParentNamespaceTerminating { .. } => "wait until it is gone, and run again".to_owned(),
            Self::EmptyManifests { .. } => {
                "check the paths given to -f, or prune all members with --allow-prune-all".to_owned()
            }
            Self::PrunesAll { .. } => {
                "check the set, its namespace and the paths given to -f, or prune all members with --allow-prune-all".to_owned()
            }
            Self::ChangesSet { .. } => "answer yes, or leave out --confirm".to_owned(),
            Self::Overlap { parent: OtherParent::Unlisted, .. }
            | Self::OfAnotherSet { parent: OtherParent::Unlisted, .. } => {
                "ask somebody who may list Secrets and ConfigMaps in all namespaces whose set it is: `kubectl applyset list -A`; --take-ownership is for sets that are gone for good".to_owned()
            }
            Self::Overlap { .. } => {
                "take the objects out of one of the two sets, or take them into this one with --take-ownership".to_owned()
            }
            Self::HoldsHooks { .. } => {
                "leave them out with --hooks=skip, or make them ordinary members with --hooks=apply".to_owned()
            }
            Self::InNoSet { .. } => Self::UNOWNED_HINT.to_owned(),
            Self::HoldsOthers { .. } | Self::PrunesStorage { .. } | Self::PrunesParent { .. } => {
                "keep them with the annotation helm.sh/resource-policy: keep, or among the manifests of an apply, or lose them with --allow-data-loss".to_owned()
            }
            Self::HoldsDesired { .. } => {
                "put it back into the manifests, or take these objects out of them, too".to_owned()
            }
            Self::OwnsDependents { operation: Operation::Delete, .. } => {
                "remove the owner references by hand, or let the run do it with --allow-data-loss".to_owned()
            }
            Self::OwnsDependents { .. } => {
                "put it back into the manifests, or remove the owner references with --allow-data-loss".to_owned()
            }
            Self::OwnsBound { .. } => {
                "remove the owner references to it from these objects and from their manifests; what the user may not get counts as owned".to_owned()
            }
            Self::TooManyPrunes { objects, .. } => {
                format!("check the paths given to -f, or allow it with --max-prune {}", objects.len())
            }
            Self::DeletesSet { .. } => "--yes deletes it without a question; --dry-run=server tries it".to_owned(),
            Self::RepairsParent { .. } => "--yes mends it without a question".to_owned(),
            Self::AnnotationsTooLarge { .. } => "split the set into several smaller ones".to_owned(),
            Self::OfAnotherSet { parent: OtherParent::Found(parent), .. } => format!(
                "`kubectl applyset move {} SET` moves members from one set to another; --take-ownership takes them without asking that set",
                parent.argument()
            ),
            Self::OfAnotherSet { parent: OtherParent::Gone, .. } => {
                "take them with --take-ownership".to_owned()
            }
            Self::ReachesOutside { .. } => {
                "check each of these objects, then confirm them with --yes; --dry-run=server lists all".to_owned()
            }
            Self::NothingToAdopt { inventory, is_unmarked: true } if inventory.starts_with("helm/") => {
                "pass their manifests with -f; if Helm installed them before version 3.2 and you know who wrote the release, add --from-unmarked".to_owned()
            }
            Self::NothingToAdopt { .. } => "pass the manifests of the objects that you want with -f".to_owned(),
            Self::ForgetsSet { .. } => "go on without being asked with --yes; --dry-run shows the objects".to_owned(),
        }
    }
}

fn other_tooling(found: &Tooling, ours: &Tooling) -> String {
    if found.is_same_program(&Tooling::ours()) {
        return format!(
            "leave --tooling out, or hand the set over to {} with --take-over-set --yes",
            ours.name
        );
    }
    format!(
        "go on with {0}, or take the set from it with --take-over-set --yes; `apply` can keep it operable by {0} with --tooling {1}",
        found.name,
        shell_word(&found.to_string())
    )
}

fn managed_elsewhere(found: &Tooling, ours: &Tooling, operation: Operation) -> String {
    if matches!(operation, Operation::Disband | Operation::Delete) {
        return format!(
            "check that {} no longer applies the set, then add --take-over-set --yes",
            found.name
        );
    }
    if found.is_same_program(&Tooling::ours()) {
        return format!(
            "leave --tooling out, or hand the set over to {0} first with `kubectl applyset apply … --tooling {ours} --take-over-set --yes`",
            ours.name
        );
    }
    format!(
        "keep the set operable by {} with --tooling {}, or take it over first with `kubectl applyset apply … --take-over-set --yes`",
        found.name,
        shell_word(&found.to_string())
    )
}
