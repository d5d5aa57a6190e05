//! The flags of the commands that only change membership: `disband`, `adopt` and `move`.

use clap::{ArgGroup, Args};

use super::arguments::{ManifestFlags, SetArgument, WriteFlags};
use super::help::{ARGUMENTS, OBJECTS, OWNERSHIP, RUNNING};

/// `disband`
#[derive(Debug, Args)]
pub struct Disband {
    /// The set.
    #[command(flatten)]
    pub set: SetArgument,
    /// Disband a set that another tool manages
    #[arg(long, help_heading = OWNERSHIP)]
    pub take_over_set: bool,
    /// The dry-run mode, and the treatment of other runs.
    #[command(flatten)]
    pub writes: WriteFlags,
    /// Do not ask for confirmation
    #[arg(short, long, help_heading = RUNNING)]
    pub yes: bool,
}

/// `adopt`
#[derive(Debug, Args)]
#[command(mut_arg("filename", |filename| filename.help("Objects in manifests: file, directory, URL or -")))]
#[command(group(ArgGroup::new("choice").required(true).args(["filename", "kustomize", "selector", "from"])))]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag; `settings` makes enums of them"
)]
pub struct Adopt {
    /// The set.
    #[command(flatten)]
    pub set: SetArgument,
    /// The manifests that name the objects.
    #[command(flatten, next_help_heading = OBJECTS)]
    pub manifests: ManifestFlags,
    /// Applied objects with these labels
    #[arg(short = 'l', long, value_name = "SELECTOR", help_heading = OBJECTS)]
    pub selector: Option<String>,
    /// Kinds for -l (default: kubectl apply --prune's)
    #[arg(long, value_name = "KIND,...", help_heading = OBJECTS, value_delimiter = ',', requires = "selector")]
    pub kinds: Vec<String>,
    /// Search all namespaces for -l
    #[arg(short = 'A', long, help_heading = OBJECTS, requires = "selector")]
    pub all_namespaces: bool,
    /// Inventory of helm, kapp, kpt, flux or argocd
    #[arg(long, value_name = "TOOL/NAME", help_heading = OBJECTS)]
    pub from: Option<String>,
    /// Take objects that belong to another set
    #[arg(long, help_heading = OWNERSHIP)]
    pub take_ownership: bool,
    /// Use an existing object as the parent
    #[arg(long, help_heading = OWNERSHIP)]
    pub take_over_set: bool,
    /// Field manager of the labels (default applyset)
    #[arg(long, value_name = "NAME", help_heading = OWNERSHIP)]
    pub field_manager: Option<String>,
    /// Keep the set operable by kubectl/vX.Y.Z
    #[arg(long, value_name = "VERSION", help_heading = OWNERSHIP)]
    pub tooling: Option<String>,
    /// Leave fields with the tool that owns them
    #[arg(long, help_heading = OWNERSHIP, requires = "from")]
    pub keep_field_ownership: bool,
    /// The dry-run mode, and the treatment of other runs.
    #[command(flatten)]
    pub writes: WriteFlags,
    /// Confirm --take-over-set and objects outside -n
    #[arg(short, long, help_heading = RUNNING)]
    pub yes: bool,
}

/// `move`
#[derive(Debug, Args)]
#[command(mut_arg("filename", |filename| filename.help("Only members in these manifests; repeatable")))]
pub struct Move {
    /// Secret NAME, or RESOURCE[.VERSION][.GROUP]/NAME
    #[arg(value_name = "SET", help_heading = ARGUMENTS, display_order = 0)]
    pub set: String,
    /// The new set, created if it does not exist
    #[arg(value_name = "NEW", help_heading = ARGUMENTS, display_order = 1)]
    pub new: String,
    /// Namespace of the new parent (default -n)
    #[arg(long, value_name = "NAMESPACE", help_heading = OBJECTS)]
    pub to_namespace: Option<String>,
    /// Only members with these labels
    #[arg(short = 'l', long, value_name = "SELECTOR", help_heading = OBJECTS, conflicts_with_all = ["filename", "kustomize"])]
    pub selector: Option<String>,
    /// The manifests that name the members.
    #[command(flatten, next_help_heading = OBJECTS)]
    pub manifests: ManifestFlags,
    /// Use an existing object as the new parent
    #[arg(long, help_heading = OWNERSHIP)]
    pub take_over_set: bool,
    /// Field manager of the labels (default applyset)
    #[arg(long, value_name = "NAME", help_heading = OWNERSHIP)]
    pub field_manager: Option<String>,
    /// Keep both sets operable by kubectl/vX.Y.Z
    #[arg(long, value_name = "VERSION", help_heading = OWNERSHIP)]
    pub tooling: Option<String>,
    /// The dry-run mode, and the treatment of other runs.
    #[command(flatten)]
    pub writes: WriteFlags,
    /// Confirm --take-over-set without a question
    #[arg(short, long, help_heading = RUNNING)]
    pub yes: bool,
}
