//! The flags of `diff`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::apply::{MarkdownFlags, PlanningFlags, SAVED_WITH_PLAN};
use super::arguments::{ManifestFlags, SetArgument};
use super::help::{MANIFESTS, OUTPUT};
use crate::report::DifferenceKind;

/// `diff`
#[derive(Debug, Args)]
#[command(
    mut_arg("set", |set| set.required_unless_present("plan")),
    mut_arg("filename", |filename| filename.required(false).required_unless_present("plan"))
)]
pub struct Diff {
    /// The set.
    #[command(flatten)]
    pub set: SetArgument,
    /// The manifests.
    #[command(flatten)]
    pub manifests: ManifestFlags,
    /// Compare with what a saved plan applied
    #[arg(
        long,
        value_name = "FILE",
        help_heading = MANIFESTS,
        value_hint = ValueHint::FilePath,
        conflicts_with_all = SAVED_WITH_PLAN,
        conflicts_with_all = ["allow_data_loss", "out"],
    )]
    pub plan: Option<PathBuf>,
    /// The flags that change the plan.
    #[command(flatten)]
    pub planning: PlanningFlags,
    /// Save the plan for `apply --plan FILE`
    #[arg(long, value_name = "FILE", help_heading = OUTPUT, value_hint = ValueHint::FilePath)]
    pub out: Option<PathBuf>,
    /// Exit 1 only for KINDS (of drift, change, prune)
    #[arg(long, value_name = "KINDS", help_heading = OUTPUT, value_delimiter = ',')]
    pub exit_code_on: Vec<DifferenceKind>,
    /// Print the full text at a terminal, too
    #[arg(long, help_heading = OUTPUT)]
    pub full: bool,
    /// The limit of Markdown.
    #[command(flatten)]
    pub markdown: MarkdownFlags,
}
