//! Reads the flags of `delete`.

use std::time::Duration;

use super::waiting::read_exclusive;
use super::{
    SetReference, WaitOptions, is_interactive, list_appliers_including, read_consent, read_field_manager,
};
use crate::cli::{Delete, GlobalFlags};
use crate::compare::ownership::MEMBER_FIELD_MANAGER;
use crate::error::Error;
use crate::model::write_settings::{DryRun, Exclusive, Hooks, WriteSettings};
use crate::plan::{Consent, Policy, PruneWhen, Pruning, Recreate, Risk, UnchangedMembers, Unowned};

/// Options of `delete`.
#[derive(Debug)]
pub struct DeleteOptions {
    pub set: SetReference,
    /// What the user allows, refuses and limits.
    pub policy: Policy,
    /// Whether `--take-over-set` allows to delete the set of another tool.
    pub take_over: Risk,
    /// Whether the user has confirmed the run in advance, by `--yes`. A dry run needs no confirmation.
    pub consent: Consent,
    /// True if a set that has not expired is kept.
    pub only_if_expired: bool,
    /// True if the command succeeds when there is no such set.
    pub ignore_not_found: bool,
    /// True if the user can be asked at a terminal.
    pub is_interactive: bool,
    pub writing: WriteSettings,
    /// The time limits.
    pub waiting: WaitOptions,
}

impl DeleteOptions {
    pub fn new(delete: &Delete, shared: &GlobalFlags) -> Result<Self, Error> {
        let waiting = WaitOptions::new(&delete.waiting)?;
        let field_manager =
            read_field_manager(delete.field_manager.as_deref().unwrap_or(MEMBER_FIELD_MANAGER))?;
        Ok(Self {
            set: SetReference::new(&delete.set)?,
            policy: Policy {
                pruning: Pruning::WholeSet,
                prune_when: PruneWhen::Applied,
                // The question of `delete` is about all members.
                prune_all: Risk::Allowed,
                unchanged: UnchangedMembers::LeftAlone,
                take_ownership: Risk::Refused,
                unowned: Unowned::TakenIn,
                hooks: Hooks::Refused,
                recreate: Recreate::Never,
                data_loss: Risk::from_flag(delete.allow_data_loss),
                max_prune: None,
                appliers: list_appliers_including(&field_manager),
            },
            take_over: Risk::from_flag(delete.take_over_set),
            consent: read_consent(delete.yes || delete.writes.dry_run != DryRun::None),
            only_if_expired: delete.expired,
            ignore_not_found: delete.ignore_not_found,
            is_interactive: is_interactive(),
            writing: WriteSettings {
                webhook_patience: waiting.webhook_patience(),
                exclusive: match read_exclusive(&delete.writes)? {
                    // An exclusive run plans again if the parent has changed since it was read, so no renewal is missed.
                    Exclusive::No if delete.expired && delete.writes.dry_run == DryRun::None => {
                        Exclusive::Within(Duration::ZERO)
                    }
                    exclusive => exclusive,
                },
                ..WriteSettings::for_commands_without_manifests(
                    field_manager,
                    delete.writes.dry_run,
                    usize::from(shared.concurrency),
                )
            },
            waiting,
        })
    }
}
