//! How writes are made, as a value; `options` chooses it.

use serde::{Deserialize, Serialize};

/// How writes are made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Writing {
    /// Field manager of members.
    pub field_manager: String,
    /// The field manager of the tool that the set is taken over from: what it applied is
    /// taken from it, too.
    pub former_manager: Option<String>,
    /// What becomes of fields that another manager owns.
    pub conflicts: Conflicts,
    /// What the server does about unknown fields.
    pub validation: Validation,
    /// Whether anything is written at all.
    pub dry_run: DryRun,
    /// The most requests under way at once.
    pub concurrency: usize,
}

impl Writing {
    /// The way of commands that send no manifests: nothing is taken by force.
    pub fn without_manifests(field_manager: String, dry_run: DryRun, concurrency: usize) -> Self {
        Self {
            field_manager,
            former_manager: None,
            conflicts: Conflicts::Reported,
            validation: Validation::Strict,
            dry_run,
            concurrency,
        }
    }
}

/// What becomes of fields that another manager owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Conflicts {
    /// The object fails, and the conflict is told.
    Reported,
    /// The fields are taken.
    Forced,
}

/// What the server does about fields that it does not know, or finds twice
/// (`fieldValidation` of the API).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Validation {
    /// The object fails.
    Strict,
    /// A warning is sent along.
    Warn,
    /// Nothing.
    Ignore,
}

impl Validation {
    /// The value of the parameter.
    pub(crate) fn parameter(self) -> &'static str {
        match self {
            Self::Strict => "Strict",
            Self::Warn => "Warn",
            Self::Ignore => "Ignore",
        }
    }
}

/// Whether anything is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DryRun {
    /// It is.
    None,
    /// Nothing is sent; what would happen is told from the plan.
    Client,
    /// Everything about members is sent with `dryRun=All`.
    Server,
}
