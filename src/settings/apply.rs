//! Reads the flags of `apply`, most of which `diff` has, too.

use std::path::PathBuf;

use super::recreate::recreate;
use super::rule_files::status_rules;
use super::sources::{recursion, sources};
use super::waiting::exclusive;
use super::{Ignore, SetReference, WaitOptions, appliers, consent, field_manager, is_interactive, tooling};
use crate::cli::{Apply, GlobalFlags, ManifestFlags, PlanningFlags, SetArgument};
use crate::compare::ownership::member_field_manager;
use crate::compare::status::{Jobs, StatusRules};
use crate::error::Error;
use crate::manifest::{Recursion, Source};
use crate::model::applyset::Tooling;
use crate::model::write_settings::{Conflicts, DryRun, WriteSettings};
use crate::plan::saved::SavedPlan;
use crate::plan::{Consent, Policy, PruneWhen, Pruning, Recreate, Risk, UnchangedMembers, Unowned};
use crate::wait::Patience;

/// Options of `apply`, except the shared ones.
#[derive(Debug)]
pub struct ApplyOptions {
    pub set: SetReference,
    /// Sources of manifests.
    pub sources: Vec<Source>,
    /// The treatment of directories in directories.
    pub recursion: Recursion,
    /// The tool that manages the set.
    pub tooling: Tooling,
    /// The rules of the plan.
    pub policy: Policy,
    /// The kinds of `--recreate`, which discovery adds to the policy.
    pub recreate_kinds: Vec<String>,
    /// The permission to take over a parent of another tool, or an object that is not a parent yet.
    pub take_over: Risk,
    /// What the user has agreed to in advance.
    pub consent: Consent,
    /// The changes to ask about.
    pub confirm: Confirm,
    /// True if there is a terminal for questions.
    pub is_interactive: bool,
    pub writing: WriteSettings,
    /// The fields that the set leaves to others.
    pub ignore: Option<Ignore>,
    /// The time limits.
    pub waiting: WaitOptions,
    /// The rules by which objects are judged that are waited for.
    pub status_rules: StatusRules,
    /// The file for the manifests of the set before the run; `None` if they are not exported.
    pub undo_out: Option<PathBuf>,
}

/// The changes that a run asks about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confirm {
    /// Those that lose data, prune all members or take over a set.
    Dangers,
    /// Any.
    EveryChange,
}

impl Confirm {
    /// Reads `--confirm`, which asks nothing in a dry run.
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
        check_wait(&options.policy, waiting.patience, "--prune-when=ready")?;
        let mut options = options.with_run_flags(apply, waiting)?;
        options.consent = consent(apply.yes);
        options.confirm = Confirm::new(apply, &options.sources)?;
        if options.confirm == Confirm::EveryChange && options.policy.unowned == Unowned::TakenIn {
            options.policy.unowned = Unowned::Shown;
        }
        Ok(options)
    }

    /// Reads a saved plan, and the flags that are allowed with one.
    pub fn from_plan(plan: &SavedPlan, apply: &Apply, shared: &GlobalFlags) -> Result<Self, Error> {
        if apply.planning.allow_data_loss {
            return Err(Error::usage(
                "--allow-data-loss: cannot be added to a saved plan",
                "make a new plan with `kubectl applyset diff SET -f … --allow-data-loss --out FILE`"
                    .to_owned(),
            ));
        }
        let waiting = WaitOptions::new(&apply.waiting)?;
        check_wait(
            &plan.policy,
            waiting.patience,
            "the plan was made with --prune-when=ready",
        )?;
        let options = Self::from_plan_alone(plan, shared)?;
        Ok(Self {
            confirm: Confirm::new(apply, &[])?,
            is_interactive: apply.confirm && is_interactive(),
            ..options.with_run_flags(apply, waiting)?
        })
    }

    /// Reads the flags that say how a plan is carried out, wherever the plan comes from.
    fn with_run_flags(self, apply: &Apply, waiting: WaitOptions) -> Result<Self, Error> {
        Ok(Self {
            writing: WriteSettings {
                dry_run: apply.writes.dry_run,
                webhook_patience: waiting.webhook_patience(),
                deletion_patience: waiting.deletion_patience(),
                exclusive: exclusive(&apply.writes)?,
                ..self.writing
            },
            waiting,
            status_rules: waiting_rules(apply)?,
            undo_out: undo_out(apply)?,
            ..self
        })
    }

    /// Reads a saved plan; dry run is off.
    pub(super) fn from_plan_alone(plan: &SavedPlan, shared: &GlobalFlags) -> Result<Self, Error> {
        Ok(Self {
            waiting: WaitOptions::default(),
            set: SetReference {
                resource: Some(plan.set.resource.clone()),
                name: plan.set.name.clone(),
                namespace: None,
            },
            sources: Vec::new(),
            recursion: Recursion::Flat,
            tooling: plan.set.tooling.clone(),
            policy: plan.policy.clone(),
            recreate_kinds: Vec::new(),
            take_over: plan.take_over,
            // Who saved the plan has seen whose set it is.
            consent: Consent::ByFlag,
            confirm: Confirm::Dangers,
            is_interactive: false,
            writing: WriteSettings {
                conflicts: plan.conflicts,
                validation: plan.validation,
                deletion_patience: WaitOptions::default().deletion_patience(),
                ..WriteSettings::without_manifests(
                    plan.field_manager.clone(),
                    DryRun::None,
                    usize::from(shared.concurrency),
                )
            },
            ignore: plan.ignore.as_ref().map(Ignore::from_plan).transpose()?,
            status_rules: StatusRules::default(),
            undo_out: None,
        })
    }

    /// Reads the flags that `apply` and `diff` have in common; dry run is off.
    pub(super) fn from_planning_flags(
        set: &SetArgument,
        manifests: &ManifestFlags,
        flags: &PlanningFlags,
        shared: &GlobalFlags,
    ) -> Result<Self, Error> {
        let tooling = tooling(flags.tooling.as_deref())?;
        let name = flags.field_manager.as_deref();
        let field_manager = field_manager(name.unwrap_or(member_field_manager(&tooling)))?;
        let (recreate, recreate_kinds) = recreate(&flags.recreate)?;
        let policy = Policy {
            recreate,
            ..policy(flags, &field_manager)
        };
        check_prune_when(&policy)?;
        Ok(Self {
            set: SetReference::new(set)?,
            tooling,
            sources: sources(&manifests.filename, manifests.kustomize.as_deref())?,
            recursion: recursion(manifests.recursive),
            policy,
            recreate_kinds,
            take_over: Risk::allowed_if(flags.take_over_set),
            consent: Consent::Missing,
            confirm: Confirm::Dangers,
            is_interactive: is_interactive(),
            writing: WriteSettings {
                conflicts: if flags.force_conflicts {
                    Conflicts::Forced
                } else {
                    Conflicts::Reported
                },
                validation: flags.validate,
                deletion_patience: WaitOptions::default().deletion_patience(),
                ..WriteSettings::without_manifests(
                    field_manager,
                    DryRun::None,
                    usize::from(shared.concurrency),
                )
            },
            ignore: flags.ignore.as_deref().map(Ignore::read).transpose()?,
            waiting: WaitOptions::default(),
            status_rules: StatusRules::default(),
            undo_out: None,
        })
    }
}

/// Reads `--undo-out`.
fn undo_out(apply: &Apply) -> Result<Option<PathBuf>, Error> {
    if apply.undo_out.is_some() && apply.writes.dry_run != DryRun::None {
        return Err(Error::usage(
            "--undo-out: a dry run writes nothing that could be undone",
            "omit --undo-out or --dry-run, or use `kubectl applyset export SET`",
        ));
    }
    Ok(apply.undo_out.clone())
}

/// Reads `--wait-rules` and `--wait-for-jobs`.
fn waiting_rules(apply: &Apply) -> Result<StatusRules, Error> {
    Ok(StatusRules {
        jobs: if apply.wait_for_jobs {
            Jobs::Completed
        } else {
            Jobs::Started
        },
        ..status_rules(apply.wait_rules.as_deref())?
    })
}

fn policy(flags: &PlanningFlags, field_manager: &str) -> Policy {
    Policy {
        pruning: if flags.prune {
            Pruning::Enabled
        } else {
            Pruning::Disabled
        },
        prune_when: flags.prune_when,
        prune_all: Risk::allowed_if(flags.allow_prune_all),
        unchanged: if flags.apply_unchanged {
            UnchangedMembers::Sent
        } else {
            UnchangedMembers::LeftAlone
        },
        take_ownership: Risk::allowed_if(flags.take_ownership),
        unowned: if flags.only_new_or_owned {
            Unowned::Refused
        } else {
            Unowned::TakenIn
        },
        hooks: flags.hooks,
        recreate: Recreate::default(),
        data_loss: Risk::allowed_if(flags.allow_data_loss),
        max_prune: flags.max_prune,
        appliers: appliers(field_manager),
    }
}

/// Refuses `--prune-when=ready` with `--prune=false`.
fn check_prune_when(policy: &Policy) -> Result<(), Error> {
    match (policy.prune_when, policy.pruning) {
        (PruneWhen::Ready, Pruning::Disabled) => Err(Error::usage(
            "--prune-when=ready: nothing is pruned with --prune=false",
            "omit one of the two flags",
        )),
        _ => Ok(()),
    }
}

/// Refuses a run that prunes when all is ready, and does not wait. `origin` names what asks for it.
fn check_wait(policy: &Policy, patience: Option<Patience>, origin: &str) -> Result<(), Error> {
    match (policy.prune_when, patience) {
        (PruneWhen::Ready, None) => Err(Error::usage(
            format!("{origin}: the run has to wait until the objects are ready"),
            "add --wait, or --wait=DURATION",
        )),
        _ => Ok(()),
    }
}
