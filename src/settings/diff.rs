//! Reads the flags and the environment of `diff`.

use std::collections::BTreeSet;
use std::io::{self, IsTerminal as _};
use std::path::PathBuf;

use super::ApplyOptions;
use super::sources::read_sources;
use crate::cli::{Diff, DiffDryRun, GlobalFlags};
use crate::error::Error;
use crate::manifest::Source;
use crate::model::write_settings::{Conflicts, DryRun, WriteSettings};
use crate::plan::saved::SavedPlan;
use crate::report::{DiffLayout, DifferenceKind, ExternalDiff};

/// Options of `diff`.
#[derive(Debug)]
pub struct DiffOptions {
    /// The options of `apply` for the same plan, with a dry run.
    pub apply: ApplyOptions,
    /// The sources of `--base`, whose objects the others are compared with; empty without the flag.
    pub base: Vec<Source>,
    /// The layout of the differences.
    pub layout: DiffLayout,
    /// The file to save the plan in.
    pub out: Option<PathBuf>,
    /// The program of `KUBECTL_EXTERNAL_DIFF` that shows the differences; `None` if this program shows them.
    pub external: Option<ExternalDiff>,
    /// The kinds of differences for which the exit code is 1, from `--exit-code-on`; `None` for all kinds.
    pub counted: Option<BTreeSet<DifferenceKind>>,
}

/// Refuses to save a plan that the server has not validated.
pub fn check_plan_can_be_saved(diff: &Diff) -> Result<(), Error> {
    if diff.out.is_some() && diff.dry_run == DiffDryRun::Client {
        return Err(Error::usage(
            "--out: cannot save a plan with --dry-run=client: the server has not validated it",
            "omit --dry-run=client to save a plan, or omit --out to compare only",
        ));
    }
    Ok(())
}

impl DiffOptions {
    /// Reads the flags of `diff`.
    pub fn new(diff: &Diff, shared: &GlobalFlags) -> Result<Self, Error> {
        let apply = ApplyOptions::from_planning_flags(&diff.set, &diff.manifests, &diff.planning, shared)?;
        let base = read_base(diff, &apply.sources)?;
        Ok(Self {
            base,
            ..Self::from_apply(apply, diff)
        })
    }

    /// Creates the options from a saved plan, and from the flags that `--plan` allows.
    pub fn from_plan(plan: &SavedPlan, diff: &Diff, shared: &GlobalFlags) -> Result<Self, Error> {
        let apply = ApplyOptions::from_plan_without_flags(plan, shared)?;
        let apply = ApplyOptions {
            // In a conflict, the server would not return the object as the plan would leave it. With force, it returns
            // the values of the plan, and `diff` shows them beside the live values. Nothing is written.
            writing: WriteSettings {
                conflicts: Conflicts::Forced,
                ..apply.writing
            },
            ..apply
        };
        Ok(Self::from_apply(apply, diff))
    }

    /// Returns whether `--exit-code-on` names this kind; `false` without the flag.
    pub fn has_exit_code_on(&self, kind: DifferenceKind) -> bool {
        self.counted.as_ref().is_some_and(|kinds| kinds.contains(&kind))
    }

    fn from_apply(apply: ApplyOptions, diff: &Diff) -> Self {
        Self {
            apply: ApplyOptions {
                writing: WriteSettings {
                    dry_run: match diff.dry_run {
                        DiffDryRun::Server => DryRun::Server,
                        DiffDryRun::Client => DryRun::Client,
                    },
                    ..apply.writing
                },
                ..apply
            },
            base: Vec::new(),
            layout: if io::stdout().is_terminal() && !diff.full {
                DiffLayout::Grouped
            } else {
                DiffLayout::Unified
            },
            out: diff.out.clone(),
            external: std::env::var("KUBECTL_EXTERNAL_DIFF")
                .ok()
                .and_then(|value| ExternalDiff::parse(&value)),
            counted: Some(diff.exit_code_on.iter().copied().collect())
                .filter(|counted: &BTreeSet<DifferenceKind>| !counted.is_empty()),
        }
    }
}

/// Reads `--base`. With `-k`, each value is a kustomization, too.
fn read_base(diff: &Diff, sources: &[Source]) -> Result<Vec<Source>, Error> {
    let base = match diff.manifests.kustomize {
        Some(_) => diff.base.iter().map(|name| Source::kustomization(name)).collect(),
        None => read_sources(&diff.base, None),
    };
    if base.contains(&Source::StandardInput) && sources.contains(&Source::StandardInput) {
        return Err(Error::usage(
            "--base -: standard input has the manifests of -f",
            "write one of the two to a file, and pass it with -f or --base",
        ));
    }
    Ok(base)
}
