//! Reads `--undo-out` and `--undo-secrets`, and the flags of an undo.

use std::path::PathBuf;

use super::apply::{Confirm, waiting_rules};
use super::exclusive::exclusive;
use super::{RecreateChoice, SetReference, WaitOptions, appliers, dry_run, is_interactive};
use crate::cli::{Apply, GlobalFlags, UndoSecretsMode};
use crate::error::Error;
use crate::manifest::Recursion;
use crate::model::write_settings::{DryRun, Hooks, WriteSettings};
use crate::plan::undo::{RecordedRun, Values};
use crate::plan::{
    Consent, DataLoss, Policy, PruneAll, PruneWhen, Pruning, TakeOver, TakeOwnership, UnchangedMembers,
    Unowned,
};
use crate::settings::ApplyOptions;

/// Where the state before a run is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoOut {
    /// The file.
    pub file: PathBuf,
    /// Whether it has the values of Secrets.
    pub secrets: Values,
}

impl UndoOut {
    /// Reads the flags; `None` without `--undo-out`.
    pub(super) fn new(apply: &Apply) -> Result<Option<Self>, Error> {
        let Some(file) = &apply.undo_out else {
            return Ok(None);
        };
        if dry_run(&apply.dry_run) != DryRun::None {
            return Err(Error::Usage {
                message: "--undo-out: a dry run writes nothing that could be undone".to_owned(),
                hint: "omit --undo-out or --dry-run".to_owned(),
            });
        }
        Ok(Some(Self {
            file: file.clone(),
            secrets: match apply.undo_secrets {
                UndoSecretsMode::Keep => Values::Kept,
                UndoSecretsMode::Omit => Values::Omitted,
            },
        }))
    }
}

impl ApplyOptions {
    /// Reads the flags that are allowed with an undo file.
    pub fn of_undo(run: &RecordedRun, apply: &Apply, shared: &GlobalFlags) -> Result<Self, Error> {
        let waiting = WaitOptions::new(&apply.waiting)?;
        Ok(Self {
            set: SetReference {
                resource: Some(run.set.resource.clone()),
                name: run.set.name.clone(),
                namespace: None,
            },
            sources: Vec::new(),
            recursion: Recursion::Flat,
            tooling: run.set.tooling.clone(),
            policy: policy(run, apply),
            recreate: RecreateChoice {
                base: run.recreate.clone(),
                kinds: Vec::new(),
            },
            take_over: TakeOver::Refused,
            consent: Consent::Missing,
            confirm: Confirm::new(apply, &[])?,
            is_interactive: apply.confirm && is_interactive(),
            writing: WriteSettings {
                webhook_patience: waiting.webhook_patience(),
                deletion_patience: waiting.deletion_patience(),
                exclusive: exclusive(&apply.exclusive, &apply.dry_run)?,
                ..WriteSettings::without_manifests(
                    run.field_manager.clone(),
                    dry_run(&apply.dry_run),
                    usize::from(shared.concurrency),
                )
            },
            waiting,
            ignore: None,
            status_rules: waiting_rules(apply)?,
            undo_out: UndoOut::new(apply)?,
        })
    }
}

/// The policy of an undo: it prunes only what the recorded run has created, which is found later.
fn policy(run: &RecordedRun, apply: &Apply) -> Policy {
    Policy {
        pruning: Pruning::Enabled,
        prune_when: PruneWhen::Applied,
        prune_all: PruneAll::Allowed,
        unchanged: UnchangedMembers::LeftAlone,
        take_ownership: TakeOwnership::Refused,
        unowned: Unowned::TakenIn,
        hooks: Hooks::Applied,
        recreate: run.recreate.clone(),
        data_loss: if apply.planning.allow_data_loss {
            DataLoss::Allowed
        } else {
            DataLoss::Refused
        },
        max_prune: None,
        prune_only: Some(std::collections::BTreeSet::new()),
        appliers: appliers(&run.field_manager),
    }
}
