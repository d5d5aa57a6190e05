//! What the flags and the environment of `diff` mean.

use std::io;
use std::path::PathBuf;

use super::style::colors;
use super::{ApplyOptions, TakeOver};
use crate::cli::{Diff, Shared};
use crate::error::Error;
use crate::model::settings::{DryRun, Writing};
use crate::report::{Colors, ExternalDiff};

/// Options of `diff`, apart from the shared ones.
#[derive(Debug)]
pub struct DiffOptions {
    /// What `apply` would be run with. Its dry run is the server's.
    pub apply: ApplyOptions,
    /// Whether lines of differences are coloured.
    pub colors: Colors,
    /// Where the plan is saved.
    pub out: Option<PathBuf>,
    /// The program that shows differences instead of this one.
    pub external: Option<ExternalDiff>,
}

impl DiffOptions {
    /// Reads the flags of `diff`.
    pub fn new(diff: &Diff, shared: &Shared) -> Result<Self, Error> {
        let apply = ApplyOptions::planned(&diff.set, &diff.manifests, &diff.planning, shared)?;
        Ok(Self {
            apply: ApplyOptions {
                // Nothing is written, so there is nothing to confirm.
                take_over: match apply.take_over {
                    TakeOver::Asked => TakeOver::Confirmed,
                    take_over => take_over,
                },
                writing: Writing {
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
