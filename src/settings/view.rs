//! Reads the flags of `view`.

use std::num::NonZeroU32;

use super::SetReference;
use super::rule_files::read_status_rules;
use super::waiting::{DEFAULT_WAIT, read_failures, read_patience};
use crate::cli::{GlobalFlags, View};
use crate::compare::status::StatusRules;
use crate::error::Error;
use crate::wait::Patience;

/// Options of `view`.
#[derive(Debug)]
pub struct ViewOptions {
    pub set: SetReference,
    /// The rules that determine the status of the members.
    pub status_rules: StatusRules,
    /// How long the command waits until all members are Current; `None` without `--wait`.
    pub patience: Option<Patience>,
    /// The restarts of a container after which its workload counts as failed; `None` if Pods never make it fail.
    pub failures: Option<NonZeroU32>,
    /// The concurrency limit.
    pub concurrency: usize,
}

impl ViewOptions {
    /// Reads the flags of `view`.
    pub fn new(view: &View, shared: &GlobalFlags) -> Result<Self, Error> {
        let patience = read_patience(view.wait.as_deref(), DEFAULT_WAIT)?;
        Ok(Self {
            set: SetReference::new(&view.set)?,
            status_rules: read_status_rules(view.wait_rules.as_deref(), view.wait_for_jobs)?,
            patience,
            failures: read_failures(&view.failures, patience)?,
            concurrency: usize::from(shared.concurrency),
        })
    }
}
