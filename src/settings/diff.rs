//! Reads the flags and the environment of `diff`.

use std::collections::BTreeSet;
use std::io::{self, IsTerminal as _};
use std::path::PathBuf;

use super::ApplyOptions;
use crate::cli::{Diff, GlobalFlags};
use crate::error::Error;
use crate::model::write_settings::{Conflicts, DryRun, WriteSettings};
use crate::plan::saved::SavedPlan;
use crate::report::{DiffLayout, DifferenceKind, ExternalDiff};

/// Options of `diff`, except the shared ones.
#[derive(Debug)]
pub struct DiffOptions {
    /// The options of `apply`, with a server dry run.
    pub apply: ApplyOptions,
    /// The layout of the differences.
    pub layout: DiffLayout,
    /// The file for the plan.
    pub out: Option<PathBuf>,
    /// The program that shows the differences.
    pub external: Option<ExternalDiff>,
    /// The differences that make the exit code 1; `None` for any.
    pub counted: Option<BTreeSet<DifferenceKind>>,
}

impl DiffOptions {
    /// Reads the flags of `diff`.
    pub fn new(diff: &Diff, shared: &GlobalFlags) -> Result<Self, Error> {
        let apply = ApplyOptions::from_planning_flags(&diff.set, &diff.manifests, &diff.planning, shared)?;
        Ok(Self::from_apply(apply, diff))
    }

    /// Reads a saved plan, and the flags that are allowed with one.
    pub fn from_plan(plan: &SavedPlan, diff: &Diff, shared: &GlobalFlags) -> Result<Self, Error> {
        let apply = ApplyOptions::from_plan_alone(plan, shared)?;
        let apply = ApplyOptions {
            // Nothing is written, and the values of both sides are to be shown.
            writing: WriteSettings {
                conflicts: Conflicts::Forced,
                ..apply.writing
            },
            ..apply
        };
        Ok(Self::from_apply(apply, diff))
    }

    /// Returns whether `--exit-code-on` names this kind.
    pub fn counts(&self, kind: DifferenceKind) -> bool {
        self.counted.as_ref().is_some_and(|kinds| kinds.contains(&kind))
    }

    fn from_apply(apply: ApplyOptions, diff: &Diff) -> Self {
        Self {
            apply: ApplyOptions {
                writing: WriteSettings {
                    dry_run: DryRun::Server,
                    ..apply.writing
                },
                ..apply
            },
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
