//! The flags of the commands that only change membership: `disband`, `adopt` and `move`.

use clap::{ArgGroup, Args, ValueHint};

use super::arguments::{DryRunFlag, SetArgument};

/// `disband`
#[derive(Debug, Args)]
pub struct Disband {
    /// The set.
    #[command(flatten)]
    pub set: SetArgument,
    /// The dry-run mode.
    #[command(flatten)]
    pub dry_run: DryRunFlag,
    /// Disband a set that another tool manages, too
    #[arg(long)]
    pub take_over_set: bool,
    /// Go on without asking
    #[arg(short, long)]
    pub yes: bool,
}

/// `adopt`
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("choice").required(true).args(["filename", "kustomize", "selector", "from"])))]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag; `settings` makes enums of them"
)]
pub struct Adopt {
    /// The set.
    #[command(flatten)]
    pub set: SetArgument,
    /// The live objects of these manifests: file, directory or address, - for standard input; may
    /// be repeated
    #[arg(short, long, value_name = "FILE|DIR|URL|-", value_hint = ValueHint::AnyPath)]
    pub filename: Vec<String>,
    /// Look into directories of directories, too
    #[arg(short = 'R', long)]
    pub recursive: bool,
    /// Directory of a kustomization, in place of -f
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "recursive")]
    pub kustomize: Option<String>,
    /// The objects with these labels that were applied, as `kubectl apply --prune -l` finds them
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    pub selector: Option<String>,
    /// Kinds or resources to look for; by default those that `kubectl apply --prune` knows
    #[arg(long, value_name = "KIND", value_delimiter = ',', requires = "selector")]
    pub kinds: Vec<String>,
    /// Look for them in all namespaces
    #[arg(short = 'A', long, requires = "selector")]
    pub all_namespaces: bool,
    /// What another tool has in its inventory: helm/RELEASE, kapp/APP, kpt/INVENTORY,
    /// flux/KUSTOMIZATION or argocd/APP
    #[arg(long, value_name = "TOOL/[NAMESPACE/]NAME")]
    pub from: Option<String>,
    /// Also adopt objects without Helm's annotations (installed before Helm 3.2). Anyone who can create
    /// Secrets in the release's namespace can name any object
    #[arg(long, requires = "from", conflicts_with_all = ["selector", "filename"])]
    pub from_unmarked: bool,
    /// The dry-run mode.
    #[command(flatten)]
    pub dry_run: DryRunFlag,
    /// Take objects that belong to another set
    #[arg(long)]
    pub take_ownership: bool,
    /// Make an object the set's parent that is no parent yet
    #[arg(long)]
    pub take_over_set: bool,
    /// Do not ask before taking over a parent, or before adopting cluster-scoped objects and objects of
    /// other namespaces
    #[arg(short, long)]
    pub yes: bool,
    /// Field manager that writes part-of labels [default: applyset, or the tool of --tooling]
    #[arg(long, value_name = "NAME")]
    pub field_manager: Option<String>,
    /// Keep the set another tool's, so that both can operate it: kubectl/vX.Y.Z
    #[arg(long, value_name = "TOOL/VERSION")]
    pub tooling: Option<String>,
}

/// `move`
#[derive(Debug, Args)]
pub struct Move {
    /// The set that members leave, as [RESOURCE[.VERSION][.GROUP]/]NAME
    pub set: String,
    /// The set that they come into; it is made where there is none
    pub new: String,
    /// Only the members with these labels
    #[arg(short = 'l', long, value_name = "SELECTOR", conflicts_with = "filename")]
    pub selector: Option<String>,
    /// Only the members that these manifests hold; may be repeated
    #[arg(short, long, value_name = "FILE|DIR|URL|-", value_hint = ValueHint::AnyPath)]
    pub filename: Vec<String>,
    /// Look into directories of directories, too
    #[arg(short = 'R', long)]
    pub recursive: bool,
    /// Directory of a kustomization, in place of -f
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with_all = ["filename", "recursive", "selector"])]
    pub kustomize: Option<String>,
    /// The dry-run mode.
    #[command(flatten)]
    pub dry_run: DryRunFlag,
    /// Make an object the new set's parent that is no parent yet
    #[arg(long)]
    pub take_over_set: bool,
    /// Go on without asking whether to take over
    #[arg(short, long)]
    pub yes: bool,
    /// Field manager that writes part-of labels [default: applyset, or the tool of --tooling]
    #[arg(long, value_name = "NAME")]
    pub field_manager: Option<String>,
    /// Work on sets that are another tool's, and keep them so: kubectl/vX.Y.Z
    #[arg(long, value_name = "TOOL/VERSION")]
    pub tooling: Option<String>,
}
