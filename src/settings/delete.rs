//! What the flags of `delete` mean.

use super::{
    SetReference, TakeOver, WaitOptions, appliers, confirmation, dry_run, field_manager, is_interactive,
};
use crate::cli::{Delete, Shared};
use crate::compare::ownership::MEMBER_FIELD_MANAGER;
use crate::error::Error;
use crate::model::settings::Writing;
use crate::plan::{
    Confirmation, DataLoss, EmptyManifests, Policy, Pruning, Stealing, UnchangedMembers, Unowned,
};

/// Options of `delete`, apart from the shared ones.
#[derive(Debug)]
pub struct DeleteOptions {
    /// The set.
    pub set: SetReference,
    /// What is allowed.
    pub policy: Policy,
    /// Whether the set may be another tool's.
    pub take_over: TakeOver,
    /// Whether the user has said that the set is to go.
    pub confirmation: Confirmation,
    /// What it means that there is no such set.
    pub absence: Absence,
    /// Whether there is a terminal to ask questions at.
    pub is_interactive: bool,
    /// How to write.
    pub writing: Writing,
    /// What is waited for, and how long.
    pub waiting: WaitOptions,
}

/// What it means that there is no set to delete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absence {
    /// The command line is wrong.
    Wrong,
    /// All is well.
    Fine,
}

impl DeleteOptions {
    /// Reads the flags of `delete`.
    pub fn new(delete: &Delete, shared: &Shared) -> Result<Self, Error> {
        let field_manager = field_manager(delete.field_manager.as_deref().unwrap_or(MEMBER_FIELD_MANAGER))?;
        Ok(Self {
            set: SetReference::new(&delete.set)?,
            policy: Policy {
                pruning: Pruning::WholeSet,
                empty_manifests: EmptyManifests::Allowed,
                unchanged: UnchangedMembers::LeftAlone,
                stealing: Stealing::Refused,
                unowned: Unowned::TakenIn,
                data_loss: if delete.allow_data_loss {
                    DataLoss::Allowed
                } else {
                    DataLoss::Refused
                },
                max_prune: None,
                appliers: appliers(&field_manager),
            },
            take_over: TakeOver::new(delete.take_over, delete.yes),
            confirmation: confirmation(delete.yes),
            absence: if delete.ignore_not_found {
                Absence::Fine
            } else {
                Absence::Wrong
            },
            is_interactive: is_interactive(),
            writing: Writing::without_manifests(
                field_manager,
                dry_run(&delete.dry_run),
                usize::from(shared.concurrency),
            ),
            waiting: WaitOptions::new(&delete.waiting)?,
        })
    }
}
