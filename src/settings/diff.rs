//! Reads the flags and the environment of `diff`.

use std::io::{self, IsTerminal as _};
use std::path::PathBuf;

use super::{ApplyOptions, TakeOver};
use crate::cli::{Diff, GlobalFlags};
use crate::error::Error;
use crate::model::settings::{DryRun, WriteSettings};
use crate::report::ExternalDiff;

/// Options of `diff`, except the shared ones.
#[derive(Debug)]
pub struct DiffOptions {
    /// The options of `apply`, with a server dry run.
    pub apply: ApplyOptions,
    /// The layout of the differences.
    pub layout: Layout,
    /// The file for the plan.
    pub out: Option<PathBuf>,
    /// The program that shows the differences.
    pub external: Option<ExternalDiff>,
}

/// The layout of differences for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// The full text, as `kubectl diff` prints it.
    Unified,
    /// A summary, and the changes by namespace.
    Grouped,
}

impl DiffOptions {
    /// Reads the flags of `diff`.
    pub fn new(diff: &Diff, shared: &GlobalFlags) -> Result<Self, Error> {
        let apply = ApplyOptions::planned(&diff.set, &diff.manifests, &diff.planning, shared)?;
        Ok(Self {
            apply: ApplyOptions {
                // Nothing is written, so there is nothing to confirm.
                take_over: match apply.take_over {
                    TakeOver::Asked => TakeOver::Confirmed,
                    take_over => take_over,
                },
                writing: WriteSettings {
                    dry_run: DryRun::Server,
                    ..apply.writing
                },
                ..apply
            },
            layout: if io::stdout().is_terminal() && !diff.full {
                Layout::Grouped
            } else {
                Layout::Unified
            },
            out: diff.out.clone(),
            external: std::env::var("KUBECTL_EXTERNAL_DIFF")
                .ok()
                .and_then(|value| ExternalDiff::parse(&value)),
        })
    }
}
