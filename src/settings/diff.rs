//! Reads the flags and the environment of `diff`.

use std::io;
use std::path::PathBuf;

use super::style::colors;
use super::{ApplyOptions, TakeOver};
use crate::cli::{Diff, GlobalFlags};
use crate::error::Error;
use crate::model::settings::{DryRun, WriteSettings};
use crate::report::{Colors, ExternalDiff};

/// Options of `diff`, except the shared ones.
#[derive(Debug)]
pub struct DiffOptions {
    /// The options of `apply`, with a server dry run.
    pub apply: ApplyOptions,
    /// The colors of the differences.
    pub colors: Colors,
    /// The file for the plan.
    pub out: Option<PathBuf>,
    /// The program that shows the differences.
    pub external: Option<ExternalDiff>,
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
            colors: colors(shared, &io::stdout()),
            out: diff.out.clone(),
            external: std::env::var("KUBECTL_EXTERNAL_DIFF")
                .ok()
                .and_then(|value| ExternalDiff::parse(&value)),
        })
    }
}
