//! Hints for refusals: the safe way first, then the flag that overrides the refusal.

use super::Refusal;
use crate::event::Operation;
use crate::model::applyset::{ParentIdentity, Tooling};
use crate::plan::OtherParent;

const TAKE_OWNERSHIP: &str = "move the objects to this set with --take-ownership";

impl Refusal {
    /// Hint for an object that exists and is not in a set.
    pub const UNOWNED_HINT: &str =
        "adopt it with `kubectl applyset adopt SET -f …`, or omit --only-new-or-owned";

    /// Returns the hint of the refusal.
    pub fn hint(&self) -> String {
        match self {
            Self::FaultyParent { parent, .. } => format!(
                "run `kubectl applyset verify {}`, which reports whether --fix can repair it",
                parent.shell_arguments()
            ),
            Self::OtherTooling { found, ours, .. } => hint_for_other_tooling(found, ours),
            Self::ManagedElsewhere { found, ours, operation, .. } => hint_for_managed_elsewhere(found, ours, *operation),
            Self::NotAParent { .. } => {
                "choose another name for the set, or use this object as its parent with --take-over-set --yes".to_owned()
            }
            Self::ParentTerminating { .. } | Self::ParentNamespaceTerminating { .. } => "run the same command again when it is gone".to_owned(),
            Self::EmptyManifests { .. } => {
                "check the paths given to -f, or prune all members with --allow-prune-all".to_owned()
            }
            Self::PrunesAll { .. } => {
                "check the set, its namespace and the paths given to -f, or prune all members with --allow-prune-all".to_owned()
            }
            Self::Overlap { parent: OtherParent::GoneOrNotVisible, .. }
            | Self::OfAnotherSet { parent: OtherParent::GoneOrNotVisible, .. } => {
                format!("find the set with `kubectl applyset list -A`, as a user who can list Secrets and ConfigMaps in all namespaces, or {TAKE_OWNERSHIP}")
            }
            Self::Overlap { parent: OtherParent::Found(parent), is_target_likely: true, .. } => {
                format!("pass `{}` if you mean that set, or {TAKE_OWNERSHIP}", set_argument(parent))
            }
            Self::Overlap { .. } => {
                "remove them from one of the two sets, or move them to this one with --take-ownership".to_owned()
            }
            Self::HoldsHooks { .. } => {
                "leave them out with --hooks=skip, or make them ordinary members with --hooks=apply".to_owned()
            }
            Self::InNoSet { .. } => Self::UNOWNED_HINT.to_owned(),
            Self::HoldsOthers { .. } | Self::PrunesStorage { .. } | Self::PrunesParent { .. } => {
                "keep an object with `kubectl annotate KIND NAME -n NAMESPACE helm.sh/resource-policy=keep`, or allow all these losses with --allow-data-loss (--yes does not)".to_owned()
            }
            Self::HoldsDesired { .. } => {
                "restore it to the manifests, or remove these objects from them".to_owned()
            }
            Self::OwnsDependents { .. } => {
                "remove the owner references, or let this run remove them with --allow-data-loss".to_owned()
            }
            Self::OwnsUndetachable { .. } => {
                "remove the owner references to it from these objects and their manifests; if they have none, get permission to read these objects".to_owned()
            }
            Self::TooManyPrunes { objects, .. } => {
                format!("check -f, or allow it with --max-prune {}", objects.len())
            }
            Self::DeletesSet { .. } => "preview it with --dry-run=server, or confirm it with --yes".to_owned(),
            Self::RepairsParent { .. } => "confirm the repair with --yes".to_owned(),
            Self::SetChanged { .. } => "run the same command again".to_owned(),
            Self::RunUnderWay { parent, until, .. } => format!(
                "wait for it with --exclusive=11m; if it was killed, it counts as abandoned from {until}, or end it now with `kubectl applyset verify {} --fix` at a terminal",
                parent.shell_arguments()
            ),
            Self::AnnotationsTooLarge { .. } => "split the set into smaller ones".to_owned(),
            Self::OfAnotherSet { parent: OtherParent::Found(parent), .. } => format!(
                "move the members with `kubectl applyset move {} SET`, or {TAKE_OWNERSHIP}",
                parent.shell_arguments()
            ),
            Self::OfAnotherSet { parent: OtherParent::Gone, .. } => TAKE_OWNERSHIP.to_owned(),
            Self::ReachesOutside { .. } => {
                "list them all with --dry-run=server, then confirm with --yes".to_owned()
            }
            Self::EmptyInventory { .. } => "check its name, or adopt objects with -f MANIFESTS".to_owned(),
            Self::NothingToAdopt { .. } => "adopt the objects with -f MANIFESTS".to_owned(),
            Self::DisbandsSet { .. } => "list the objects with --dry-run, or confirm with --yes".to_owned(),
        }
    }
}

/// Returns the set as it is named on the command line: `shop -n platform`.
fn set_argument(parent: &ParentIdentity) -> String {
    let argument = parent.shell_arguments();
    match argument.strip_prefix("secret/") {
        Some(name) => name.to_owned(),
        None => argument,
    }
}

fn hint_for_other_tooling(found: &Tooling, ours: &Tooling) -> String {
    if found.is_same_program(&Tooling::this_program()) {
        return format!(
            "omit --tooling, or hand the set over to {} with --take-over-set --yes",
            ours.name
        );
    }
    format!(
        "use {0}, add --tooling {1} to keep the set operable by {0}, or take it over with --take-over-set --yes",
        found.name,
        found.shell_flag_value_with_version()
    )
}

fn hint_for_managed_elsewhere(found: &Tooling, ours: &Tooling, operation: Operation) -> String {
    if matches!(operation, Operation::Disband | Operation::Delete) {
        return format!(
            "check that {} no longer applies the set, then add --take-over-set --yes",
            found.name
        );
    }
    if found.is_same_program(&Tooling::this_program()) {
        return format!(
            "omit --tooling, or first run `kubectl applyset apply … --tooling {ours} --take-over-set --yes`"
        );
    }
    format!(
        "keep the set operable by {} with --tooling {}, or first run `kubectl applyset apply … --take-over-set --yes`",
        found.name,
        found.shell_flag_value_with_version()
    )
}
