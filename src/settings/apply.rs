//! Reads the flags of `apply`. `diff` has most of them, too.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use super::recreate::read_recreate;
use super::rule_files::read_status_rules;
use super::sources::read_manifest_flags;
use super::waiting::{parse_duration, read_exclusive, read_failures};
use super::{
    Ignore, SetReference, WaitOptions, is_interactive, list_appliers_including, read_consent,
    read_field_manager, read_tooling,
};
use crate::cli::{Apply, GlobalFlags, ManifestFlags, PlanningFlags, SetArgument};
use crate::compare::ownership::member_field_manager;
use crate::compare::status::StatusRules;
use crate::error::Error;
use crate::manifest::{Recursion, Source};
use crate::model::applyset::Tooling;
use crate::model::expiry::Expiry;
use crate::model::history_annotation::{MAX_MESSAGE_CHARS, shorten_message};
use crate::model::write_settings::{Conflicts, DryRun, WriteSettings};
use crate::plan::saved::SavedPlan;
use crate::plan::{Consent, Policy, PruneWhen, Pruning, Recreate, Risk, UnchangedMembers, Unowned};
use crate::wait::Patience;

/// The longest time of `--expires`, ten years.
const LONGEST_EXPIRY: Duration = Duration::from_hours(87_600);

/// Options of `apply`, and the options of `diff` about the plan.
#[derive(Debug)]
pub struct ApplyOptions {
    pub set: SetReference,
    /// The sources of the manifests; empty for a saved plan.
    pub sources: Vec<Source>,
    /// Whether directories within directories are read.
    pub recursion: Recursion,
    /// The tool that manages the set.
    pub tooling: Tooling,
    /// What the user allows, refuses and limits.
    pub policy: Policy,
    /// The kinds of `--recreate` as typed. They are resolved by discovery, and then added to the policy.
    pub recreate_kinds: Vec<String>,
    /// Whether `--take-over-set` allows to take over the set of another tool, or to use an existing object as the
    /// parent.
    pub take_over: Risk,
    /// Whether the user has confirmed the run in advance, by `--yes` or by saving the plan.
    pub consent: Consent,
    /// The changes about which the user is asked.
    pub confirm: Confirm,
    /// True if the user can be asked at a terminal.
    pub is_interactive: bool,
    pub writing: WriteSettings,
    /// The rules of `--ignore` for fields that the set leaves to other field managers.
    pub ignore: Option<Ignore>,
    /// The time limits.
    pub waiting: WaitOptions,
    /// The restarts of a container after which its workload counts as failed; `None` if Pods never make it fail.
    pub failures: Option<NonZeroU32>,
    /// The rules that determine the status of the objects that the run waits for.
    pub status_rules: StatusRules,
    /// The file for the manifests of the set before the run; `None` if they are not exported.
    pub undo_out: Option<PathBuf>,
}

/// The changes about which a run asks the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confirm {
    /// Changes that lose data, prune all members or take over a set.
    Dangers,
    /// All changes.
    EveryChange,
}

impl Confirm {
    /// Reads `--confirm`. A dry run has no changes to ask about.
    pub(super) fn new(apply: &Apply, sources: &[Source]) -> Result<Self, Error> {
        if !apply.confirm || apply.writes.dry_run != DryRun::None {
            return Ok(Self::Dangers);
        }
        let error = |message: &str, hint: &str| Error::usage(format!("--confirm: {message}"), hint);
        if !is_interactive() {
            return Err(error(
                "standard input and standard error must be a terminal",
                "save a plan with `kubectl applyset diff --out FILE`, and apply it with --plan FILE once it is approved",
            ));
        }
        if sources.contains(&Source::StandardInput) {
            return Err(error(
                "the answer cannot be read from standard input, which has the manifests",
                "write the manifests to a file, and pass it with -f",
            ));
        }
        Ok(Self::EveryChange)
    }
}

impl ApplyOptions {
    /// Reads the flags of `apply`.
    pub fn new(apply: &Apply, shared: &GlobalFlags) -> Result<Self, Error> {
        let options = Self::from_planning_flags(&apply.set, &apply.manifests, &apply.planning, shared)?;
        let waiting = WaitOptions::new(&apply.waiting)?;
        check_ready_prunes_wait(&options.policy, waiting.patience, "--prune-when=ready")?;
        let mut options = options.with_run_flags(apply, waiting)?;
        options.consent = read_consent(apply.yes);
        options.confirm = Confirm::new(apply, &options.sources)?;
        // The question about every change has to show which existing objects the set would take in.
        if options.confirm == Confirm::EveryChange && options.policy.unowned == Unowned::TakenIn {
            options.policy.unowned = Unowned::Shown;
        }
        Ok(options)
    }

    /// Creates the options from a saved plan, and from the flags that `--plan` allows.
    pub fn from_plan(plan: &SavedPlan, apply: &Apply, shared: &GlobalFlags) -> Result<Self, Error> {
        if apply.planning.allow_data_loss {
            return Err(Error::usage(
                "--allow-data-loss: cannot be added to a saved plan",
                "make a new plan with `kubectl applyset diff SET -f … --allow-data-loss --out FILE`"
                    .to_owned(),
            ));
        }
        let waiting = WaitOptions::new(&apply.waiting)?;
        check_ready_prunes_wait(
            &plan.policy,
            waiting.patience,
            "the plan was made with --prune-when=ready",
        )?;
        let options = Self::from_plan_without_flags(plan, shared)?;
        Ok(Self {
            confirm: Confirm::new(apply, &[])?,
            is_interactive: apply.confirm && is_interactive(),
            ..options.with_run_flags(apply, waiting)?
        })
    }

    /// Adds the flags about the writes and the waits of the run. They are not part of a saved plan.
    fn with_run_flags(self, apply: &Apply, waiting: WaitOptions) -> Result<Self, Error> {
        Ok(Self {
            writing: WriteSettings {
                dry_run: apply.writes.dry_run,
                webhook_patience: waiting.webhook_patience(),
                deletion_patience: waiting.recreation_patience(),
                exclusive: read_exclusive(&apply.writes)?,
                message: read_message(apply),
                expiry: read_expiry(apply)?,
                ..self.writing
            },
            failures: read_failures(&apply.failures, waiting.patience)?,
            waiting,
            status_rules: read_status_rules(apply.wait_rules.as_deref(), apply.wait_for_jobs)?,
            undo_out: read_undo_out(apply)?,
            ..self
        })
    }

    /// Returns the note that the history keeps less than the text of `--message`; `None` if it keeps all of it.
    pub fn note_on_shortened_message(&self, apply: &Apply) -> Option<String> {
        let words: Vec<&str> = apply.message.as_ref()?.split_whitespace().collect();
        match &self.writing.message {
            None => Some("--message is empty, so the history will show no message".to_owned()),
            Some(message) if *message == words.join(" ") => None,
            Some(message) => Some(format!(
                "--message is shortened to one line of at most {MAX_MESSAGE_CHARS} characters: {message}"
            )),
        }
    }

    /// Creates the options from a saved plan alone, for a run without a dry run and without waits.
    pub(super) fn from_plan_without_flags(plan: &SavedPlan, shared: &GlobalFlags) -> Result<Self, Error> {
        let set = SetReference {
            resource: Some(plan.set.resource.clone()),
            name: plan.set.name.clone(),
            namespace: None,
        };
        let options = Self::without_run(set, plan.field_manager.clone(), plan.policy.clone(), shared);
        Ok(Self {
            tooling: plan.set.tooling.clone(),
            take_over: plan.take_over,
            // The user who saved the plan has seen which tool manages the set.
            consent: Consent::ByFlag,
            writing: WriteSettings {
                conflicts: plan.conflicts.clone(),
                validation: plan.validation,
                ..options.writing
            },
            ignore: plan.ignore.as_ref().map(Ignore::from_plan).transpose()?,
            ..options
        })
    }

    /// Creates the options of a run without a dry run, without waits and without sources, whose user cannot be asked.
    fn without_run(set: SetReference, field_manager: String, policy: Policy, shared: &GlobalFlags) -> Self {
        Self {
            set,
            sources: Vec::new(),
            recursion: Recursion::Flat,
            tooling: Tooling::this_program(),
            policy,
            recreate_kinds: Vec::new(),
            take_over: Risk::Refused,
            consent: Consent::Missing,
            confirm: Confirm::Dangers,
            is_interactive: false,
            writing: WriteSettings {
                deletion_patience: WaitOptions::default().recreation_patience(),
                ..WriteSettings::for_commands_without_manifests(
                    field_manager,
                    DryRun::None,
                    usize::from(shared.concurrency),
                )
            },
            ignore: None,
            waiting: WaitOptions::default(),
            failures: None,
            status_rules: StatusRules::default(),
            undo_out: None,
        }
    }

    /// Reads the flags that `apply` and `diff` have in common, for a run without a dry run and without waits.
    pub(super) fn from_planning_flags(
        set: &SetArgument,
        manifests: &ManifestFlags,
        flags: &PlanningFlags,
        shared: &GlobalFlags,
    ) -> Result<Self, Error> {
        let tooling = read_tooling(flags.tooling.as_deref())?;
        let name = flags.field_manager.as_deref();
        let field_manager = read_field_manager(name.unwrap_or(member_field_manager(&tooling)))?;
        let (recreate, recreate_kinds) = read_recreate(&flags.recreate)?;
        let policy = Policy {
            recreate,
            ..build_policy_except_recreate(flags, &field_manager)
        };
        refuse_ready_without_pruning(&policy)?;
        let (sources, recursion) = read_manifest_flags(manifests);
        let options = Self::without_run(SetReference::new(set)?, field_manager, policy, shared);
        Ok(Self {
            tooling,
            sources,
            recursion,
            recreate_kinds,
            take_over: Risk::from_flag(flags.take_over_set),
            is_interactive: is_interactive(),
            writing: WriteSettings {
                conflicts: Conflicts::combine_repeated_flag(&flags.force_conflicts),
                validation: flags.validate,
                ..options.writing
            },
            ignore: Ignore::read_at_most_one(&flags.ignore)?,
            ..options
        })
    }
}

/// Reads `--message`; `None` without the flag, or if nothing is left of its text.
fn read_message(apply: &Apply) -> Option<String> {
    let message = shorten_message(apply.message.as_deref()?);
    (!message.is_empty()).then_some(message)
}

/// Reads `--expires`. Without the flag, the set does not expire. But a saved plan, which shows no such change, keeps the
/// time.
fn read_expiry(apply: &Apply) -> Result<Expiry, Error> {
    let Some(text) = &apply.expires else {
        let is_planned = apply.plan.is_some();
        return Ok(if is_planned { Expiry::Kept } else { Expiry::Removed });
    };
    let time = parse_duration("--expires", text)?;
    if time < Duration::from_secs(1) || time > LONGEST_EXPIRY {
        return Err(Error::usage(
            format!("--expires {text:?}: must be between 1s and 87600h"),
            "write a duration, such as 72h",
        ));
    }
    Ok(Expiry::After(time))
}

/// Reads `--undo-out`.
fn read_undo_out(apply: &Apply) -> Result<Option<PathBuf>, Error> {
    if apply.undo_out.is_some() && apply.writes.dry_run != DryRun::None {
        return Err(Error::usage(
            "--undo-out: a dry run writes nothing that could be undone",
            "omit --undo-out or --dry-run, or use `kubectl applyset export SET`",
        ));
    }
    Ok(apply.undo_out.clone())
}

/// Builds the policy from the flags about the plan, without `--recreate`.
fn build_policy_except_recreate(flags: &PlanningFlags, field_manager: &str) -> Policy {
    Policy {
        pruning: if flags.prune {
            Pruning::Enabled
        } else {
            Pruning::Disabled
        },
        prune_when: flags.prune_when,
        prune_all: Risk::from_flag(flags.allow_prune_all),
        unchanged: if flags.apply_unchanged {
            UnchangedMembers::Sent
        } else {
            UnchangedMembers::LeftAlone
        },
        take_ownership: Risk::from_flag(flags.take_ownership),
        unowned: if flags.only_new_or_owned {
            Unowned::Refused
        } else {
            Unowned::TakenIn
        },
        hooks: flags.hooks,
        recreate: Recreate::default(),
        data_loss: Risk::from_flag(flags.allow_data_loss),
        max_prune: flags.max_prune,
        appliers: list_appliers_including(field_manager),
    }
}

/// Refuses `--prune-when=ready` with `--prune=false`.
fn refuse_ready_without_pruning(policy: &Policy) -> Result<(), Error> {
    match (policy.prune_when, policy.pruning) {
        (PruneWhen::Ready, Pruning::Disabled) => Err(Error::usage(
            "--prune-when=ready: nothing is pruned with --prune=false",
            "omit one of the two flags",
        )),
        _ => Ok(()),
    }
}

/// Refuses a run with `--prune-when=ready` that does not wait until the objects are ready. `origin` names the flag or
/// the plan that asks for this, for the message.
fn check_ready_prunes_wait(policy: &Policy, patience: Option<Patience>, origin: &str) -> Result<(), Error> {
    match (policy.prune_when, patience) {
        (PruneWhen::Ready, None) => Err(Error::usage(
            format!("{origin}: the run has to wait until the objects are ready"),
            "add --wait, or --wait=DURATION",
        )),
        _ => Ok(()),
    }
}
