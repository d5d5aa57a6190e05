//! The command line as it is typed: flags, their names and their help.
//!
//! What the flags mean is told in `options`; nothing is decided here.

mod booleans;
mod examples;
mod tips;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{
    ArgAction, ArgGroup, Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum,
    ValueHint,
};
use clap_complete::Shell;

/// Apply manifests and prune what left them, across kinds and namespaces.
#[derive(Debug, Parser)]
#[command(
    name = "kubectl-applyset",
    bin_name = "kubectl applyset",
    version = concat!("v", env!("CARGO_PKG_VERSION")),
    arg_required_else_help = true,
    args_override_self = true,
    max_term_width = 100
)]
pub struct Cli {
    /// Flags that all commands share.
    #[command(flatten)]
    pub shared: Shared,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// Reads what was typed, the name of the program first. The error is also what `--help` and
    /// `--version` print.
    pub fn typed(arguments: Vec<OsString>) -> Result<Self, clap::Error> {
        let mut command = command();
        let arguments = booleans::without_values(arguments, &command).map_err(|no_boolean| {
            let booleans::NoBoolean { flag, value } = no_boolean;
            let message = format!("invalid value '{value}' for '{flag}': it is true or false");
            command.error(ErrorKind::InvalidValue, message)
        })?;
        let texts: Vec<String> = arguments
            .iter()
            .map(|argument| argument.to_string_lossy().into_owned())
            .collect();
        let matches = command.try_get_matches_from_mut(arguments);
        matches
            .and_then(|matches| Self::from_arg_matches(&matches))
            .map_err(|error| tips::with_tip(error, &command, &texts))
    }
}

fn command() -> clap::Command {
    Cli::command()
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Apply manifests, and prune what left them since the last run
    #[command(after_help = examples::APPLY)]
    Apply(Apply),
    /// Show what apply would change and prune, field by field; exit code 1 where there is something
    #[command(after_help = examples::DIFF)]
    Diff(Diff),
    /// List the sets of a namespace or of the cluster
    #[command(after_help = examples::LIST)]
    List(List),
    /// Show one set: its parent, its record, its members
    #[command(after_help = examples::VIEW)]
    View(View),
    /// Delete the members of a set in reverse order, and then the set
    #[command(after_help = examples::DELETE)]
    Delete(Delete),
    /// Forget a set and keep its objects as they are
    #[command(after_help = examples::DISBAND)]
    Disband(Disband),
    /// Take live objects into a set as they are
    #[command(after_help = examples::ADOPT)]
    Adopt(Adopt),
    /// Rename or split a set; its members stay as they are
    #[command(after_help = examples::MOVE)]
    Move(Move),
    /// Print the least rights with which a set can be applied from its manifests
    #[command(after_help = examples::RBAC)]
    Rbac(Rbac),
    /// Find what is inconsistent about sets, and mend what can be mended safely
    #[command(after_help = examples::VERIFY)]
    Verify(Verify),
    /// Print the completion script of a shell
    #[command(after_help = examples::COMPLETION)]
    Completion {
        /// The shell
        shell: Shell,
    },
    /// Print the version of this program
    Version,
    /// Write the pages of the manual into a directory
    #[command(name = "__manual", hide = true)]
    Manual {
        /// The directory
        #[arg(value_hint = ValueHint::DirPath)]
        directory: PathBuf,
    },
}

/// Flags that all commands share.
#[derive(Debug, Args)]
pub struct Shared {
    /// Namespace of the parent, and of manifests that name none
    #[arg(short, long, global = true, value_name = "NAMESPACE")]
    pub namespace: Option<String>,
    /// Print a document or names instead of lines for people
    #[arg(short, long, global = true, value_name = "FORMAT")]
    pub output: Option<OutputFormat>,
    /// Tell more: the phases of the run, and why each member is sent
    #[arg(
        short,
        long,
        alias = "v",
        global = true,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "1",
        action = ArgAction::Append,
        value_name = "N"
    )]
    pub verbose: Vec<u8>,
    /// Tell only errors
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Colour in messages
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub color: ColorChoice,
    /// Draw no progress bars
    #[arg(long, global = true)]
    pub no_progress: bool,
    /// The most requests under way at once; it begins with 16 and heeds the server
    #[arg(long, global = true, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub concurrency: u16,
    /// How to reach the cluster.
    #[command(flatten, next_help_heading = "Connection")]
    pub connection: ConnectionFlags,
}

impl Shared {
    /// How much is to be told: `-vv` and `-v=2`, as kubectl takes it, are the same.
    pub fn verbosity(&self) -> u8 {
        self.verbose
            .iter()
            .fold(0, |sum, level| sum.saturating_add(*level))
    }
}

/// Flags of kubectl that say which cluster is meant, and who asks.
#[derive(Debug, Args)]
pub struct ConnectionFlags {
    /// Path of the kubeconfig file
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig to use
    #[arg(long, global = true, value_name = "NAME")]
    pub context: Option<String>,
    /// Cluster of the kubeconfig to use
    #[arg(long, global = true, value_name = "NAME")]
    pub cluster: Option<String>,
    /// User of the kubeconfig to use
    #[arg(long, global = true, value_name = "NAME")]
    pub user: Option<String>,
    /// User to impersonate
    #[arg(long = "as", global = true, value_name = "USER")]
    pub impersonate: Option<String>,
    /// Group to impersonate; may be repeated
    #[arg(long = "as-group", global = true, value_name = "GROUP")]
    pub impersonate_groups: Vec<String>,
    /// UID to impersonate
    #[arg(long = "as-uid", global = true, value_name = "UID")]
    pub impersonate_uid: Option<String>,
    /// Address of the API server
    #[arg(short, long, global = true, value_name = "URL")]
    pub server: Option<String>,
    /// Bearer token
    #[arg(long, global = true, value_name = "TOKEN")]
    pub token: Option<String>,
    /// User name for basic authentication, which only proxies of API servers take
    #[arg(long, global = true, value_name = "NAME", conflicts_with = "token")]
    pub username: Option<String>,
    /// Password for basic authentication
    #[arg(long, global = true, value_name = "PASSWORD")]
    pub password: Option<String>,
    /// File of the certificate authority
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub certificate_authority: Option<PathBuf>,
    /// File of the client certificate
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub client_certificate: Option<PathBuf>,
    /// File of the client certificate's key
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub client_key: Option<PathBuf>,
    /// Name to expect in the server's certificate
    #[arg(long, global = true, value_name = "NAME")]
    pub tls_server_name: Option<String>,
    /// Believe any server
    #[arg(long, global = true)]
    pub insecure_skip_tls_verify: bool,
    /// Limit of a single request, such as 30s or 2m; 0 is the default of 75s
    #[arg(long, global = true, value_name = "DURATION")]
    pub request_timeout: Option<String>,
    /// Accepted because kubectl has it; answers are never compressed
    #[arg(long, global = true, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub disable_compression: Option<bool>,
    /// Accepted because kubectl has it; nothing is kept between runs
    #[arg(long, global = true, hide = true, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub cache_dir: Option<PathBuf>,
    /// Accepted because kubectl has it; what the server serves is asked in any case
    #[arg(long, global = true, hide = true)]
    pub match_server_version: bool,
    /// Accepted because kubectl has it; -v tells the same of all parts
    #[arg(long, global = true, hide = true, value_name = "LEVELS")]
    pub vmodule: Option<String>,
    /// Accepted because kubectl has it; no profile is written
    #[arg(long, global = true, hide = true, value_name = "KIND")]
    pub profile: Option<String>,
    /// Accepted because kubectl has it; no profile is written
    #[arg(long, global = true, hide = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub profile_output: Option<PathBuf>,
    /// Accepted because kubectl has it; messages are not held back
    #[arg(long, global = true, hide = true, value_name = "DURATION")]
    pub log_flush_frequency: Option<String>,
}

/// Which set is meant.
#[derive(Debug, Args)]
pub struct SetArgument {
    /// The set's parent as [RESOURCE[.VERSION][.GROUP]/]NAME; a bare NAME is a Secret
    #[arg(value_name = "SET", required_unless_present = "applyset")]
    pub set: Option<String>,
    /// The same as SET, written as kubectl writes it
    #[arg(long, value_name = "SET", conflicts_with = "set")]
    pub applyset: Option<String>,
}

/// Where manifests come from.
#[derive(Debug, Args)]
pub struct ManifestFlags {
    /// File, directory or address of manifests, - for standard input; may be repeated
    #[arg(short, long, required_unless_present = "kustomize", value_name = "FILE|DIR|URL|-", value_hint = ValueHint::AnyPath)]
    pub filename: Vec<String>,
    /// Look into directories of directories, too
    #[arg(short = 'R', long)]
    pub recursive: bool,
    /// Directory of a kustomization, in place of -f
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with_all = ["filename", "recursive"])]
    pub kustomize: Option<String>,
}

/// How long to wait, and for what.
#[derive(Debug, Args)]
pub struct WaitFlags {
    /// Wait until what was applied is ready and what was deleted is gone, for 5m unless told
    /// otherwise; 0 waits without limit
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "5m", value_name = "DURATION")]
    pub wait: Option<String>,
    /// Stop when this time is over; requests under way are waited for 5s longer
    #[arg(long, value_name = "DURATION")]
    pub timeout: Option<String>,
}

/// `apply`
#[derive(Debug, Args)]
#[command(
    mut_arg("set", |set| set.required_unless_present("plan")),
    mut_arg("filename", |filename| filename.required(false).required_unless_present("plan"))
)]
pub struct Apply {
    /// Do exactly what `diff --out FILE` saved, or nothing; the file names its set
    #[arg(
        long,
        value_name = "FILE",
        value_hint = ValueHint::FilePath,
        conflicts_with_all = [
            "set", "applyset", "filename", "recursive", "kustomize", "namespace", "validate", "prune", "allow_empty", "max_prune",
            "allow_data_loss", "no_skip", "force_conflicts", "steal", "take_over", "field_manager", "tooling",
        ]
    )]
    pub plan: Option<PathBuf>,
    /// The set.
    #[command(flatten)]
    pub set: SetArgument,
    /// The manifests.
    #[command(flatten)]
    pub manifests: ManifestFlags,
    /// What is planned.
    #[command(flatten)]
    pub planning: PlanningFlags,
    /// Write nothing: `client` tells what the plan is, `server` lets the server check it
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "MODE", default_value = "none", default_missing_value = "client")]
    pub dry_run: DryRunMode,
    /// Go on without asking whether to take over
    #[arg(short, long)]
    pub yes: bool,
    /// How long to wait.
    #[command(flatten)]
    pub waiting: WaitFlags,
}

/// `diff`
#[derive(Debug, Args)]
pub struct Diff {
    /// The set.
    #[command(flatten)]
    pub set: SetArgument,
    /// The manifests.
    #[command(flatten)]
    pub manifests: ManifestFlags,
    /// What is planned.
    #[command(flatten)]
    pub planning: PlanningFlags,
    /// Save the plan for `apply --plan FILE`, which does exactly that or nothing
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub out: Option<PathBuf>,
}

/// Flags that say what a run may do, and so change its plan.
#[derive(Debug, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag as it is typed; `options` makes enums of them"
)]
pub struct PlanningFlags {
    /// Delete members that left the manifests
    #[arg(
        long,
        num_args = 0..=1,
        require_equals = true,
        default_value_t = true,
        default_missing_value = "true",
        action = ArgAction::Set,
        value_name = "true|false"
    )]
    pub prune: bool,
    /// Let a run without any manifest prune everything
    #[arg(long)]
    pub allow_empty: bool,
    /// Refuse to prune more objects than this
    #[arg(long, value_name = "N")]
    pub max_prune: Option<usize>,
    /// Prune volumes, and namespaces and kinds with what others put into them
    #[arg(long)]
    pub allow_data_loss: bool,
    /// Send members that are unchanged, too
    #[arg(long)]
    pub no_skip: bool,
    /// Take fields that other field managers own
    #[arg(long)]
    pub force_conflicts: bool,
    /// Take objects of the manifests that belong to another set
    #[arg(long)]
    pub steal: bool,
    /// Take over a set that another tool manages, or an object that is no parent yet
    #[arg(long)]
    pub take_over: bool,
    /// Name under which fields of members are owned; by default that of the tooling
    #[arg(long, value_name = "NAME")]
    pub field_manager: Option<String>,
    /// Keep the set another tool's, so that both can operate it: kubectl/vX.Y.Z
    #[arg(long, value_name = "TOOL/VERSION")]
    pub tooling: Option<String>,
    /// Field validation that the server is asked for; unknown fields of server-side apply
    /// are refused with each
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "MODE", default_value = "strict", default_missing_value = "strict")]
    pub validate: ValidateMode,
    /// Accepted because kubectl has it; apply is always server-side
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub server_side: Option<bool>,
}

/// `list`
#[derive(Debug, Args)]
pub struct List {
    /// Sets of all namespaces
    #[arg(short = 'A', long)]
    pub all_namespaces: bool,
}

/// `view`
#[derive(Debug, Args)]
pub struct View {
    /// The set.
    #[command(flatten)]
    pub set: SetArgument,
}

/// `delete`
#[derive(Debug, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag as it is typed; `options` makes enums of them"
)]
pub struct Delete {
    /// The set.
    #[command(flatten)]
    pub set: SetArgument,
    /// Write nothing: `client` tells what the plan is, `server` lets the server check it
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "MODE", default_value = "none", default_missing_value = "client")]
    pub dry_run: DryRunMode,
    /// Delete volumes, parents of other sets, and namespaces and kinds with what others put
    /// into them, too
    #[arg(long)]
    pub allow_data_loss: bool,
    /// Delete a set that another tool manages
    #[arg(long)]
    pub take_over: bool,
    /// Delete without asking
    #[arg(short, long)]
    pub yes: bool,
    /// End well where there is no such set
    #[arg(long)]
    pub ignore_not_found: bool,
    /// Name under which the members were applied, where `apply` was given one
    #[arg(long, value_name = "NAME")]
    pub field_manager: Option<String>,
    /// How long to wait.
    #[command(flatten)]
    pub waiting: WaitFlags,
}

/// `disband`
#[derive(Debug, Args)]
pub struct Disband {
    /// The set.
    #[command(flatten)]
    pub set: SetArgument,
    /// Write nothing: `client` tells what the plan is, `server` lets the server check it
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "MODE", default_value = "none", default_missing_value = "client")]
    pub dry_run: DryRunMode,
    /// Disband a set that another tool manages, too
    #[arg(long)]
    pub take_over: bool,
    /// Go on without asking
    #[arg(short, long)]
    pub yes: bool,
}

/// `adopt`
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("choice").required(true).args(["filename", "kustomize", "selector", "from"])))]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag as it is typed; `options` makes enums of them"
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
    /// Write nothing: `client` tells what the plan is, `server` lets the server check it
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "MODE", default_value = "none", default_missing_value = "client")]
    pub dry_run: DryRunMode,
    /// Take objects that belong to another set
    #[arg(long)]
    pub steal: bool,
    /// Make an object the set's parent that is no parent yet
    #[arg(long)]
    pub take_over: bool,
    /// Go on without asking whether to take over
    #[arg(short, long)]
    pub yes: bool,
    /// Name under which part-of labels are written; by default that of the tooling
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
    /// Write nothing: `client` tells what the plan is, `server` lets the server check it
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "MODE", default_value = "none", default_missing_value = "client")]
    pub dry_run: DryRunMode,
    /// Make an object the new set's parent that is no parent yet
    #[arg(long)]
    pub take_over: bool,
    /// Go on without asking whether to take over
    #[arg(short, long)]
    pub yes: bool,
    /// Name under which part-of labels are written; by default that of the tooling
    #[arg(long, value_name = "NAME")]
    pub field_manager: Option<String>,
    /// Work on sets that are another tool's, and keep them so: kubectl/vX.Y.Z
    #[arg(long, value_name = "TOOL/VERSION")]
    pub tooling: Option<String>,
}

/// `rbac`
#[derive(Debug, Args)]
pub struct Rbac {
    /// The set.
    #[command(flatten)]
    pub set: SetArgument,
    /// The manifests.
    #[command(flatten)]
    pub manifests: ManifestFlags,
    /// Who gets the rights: `User:NAME`, `Group:NAME`, `ServiceAccount:[NAMESPACE:]NAME`, or the
    /// NAME of a service account in the set's namespace; by default the user of --as, else the
    /// service account named like the set
    #[arg(long, value_name = "[KIND:]NAME")]
    pub subject: Option<String>,
}

/// `verify`
#[derive(Debug, Args)]
pub struct Verify {
    /// The set's parent as [RESOURCE[.VERSION][.GROUP]/]NAME; without it, all sets of the namespace
    #[arg(value_name = "SET", conflicts_with = "all_namespaces")]
    pub set: Option<String>,
    /// The same as SET, written as kubectl writes it
    #[arg(long, value_name = "SET", conflicts_with_all = ["set", "all_namespaces"])]
    pub applyset: Option<String>,
    /// Sets of all namespaces, and members of sets that are gone
    #[arg(short = 'A', long)]
    pub all_namespaces: bool,
    /// Mend the bookkeeping of parents where that is safe; objects of sets are never touched
    #[arg(long)]
    pub fix: bool,
    /// Mend without asking
    #[arg(short, long, requires = "fix")]
    pub yes: bool,
    /// Name under which members are applied, where it is not that of the tooling
    #[arg(long, value_name = "NAME")]
    pub field_manager: Option<String>,
}

/// `--dry-run`
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DryRunMode {
    /// Write.
    None,
    /// Tell from the plan.
    Client,
    /// Ask the server.
    Server,
}

/// `--validate`
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ValidateMode {
    /// Refuse the object.
    #[value(alias = "true")]
    Strict,
    /// Warn.
    Warn,
    /// Nothing.
    #[value(alias = "false")]
    Ignore,
}

/// `--output`
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// One document.
    Json,
    /// One document.
    Yaml,
    /// Names alone, a line each.
    Name,
    /// A table with more columns; of `list` and `view`.
    Wide,
}

/// `--color`
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ColorChoice {
    /// At a terminal, unless `NO_COLOR` is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}
