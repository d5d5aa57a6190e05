//! The command line: flags, their names and their help.
//!
//! `settings` turns the flags into values; nothing is decided here. Doc comments of flags are the
//! help text.

mod apply;
mod arguments;
mod booleans;
mod examples;
mod global;
mod membership;
mod tips;

pub use apply::{Apply, Diff, PlanningFlags, ValidateMode};
pub use arguments::{DryRunFlag, DryRunMode, ManifestFlags, SetArgument, WaitFlags};
pub use global::{ColorChoice, ConnectionFlags, GlobalFlags, OutputFormat};
pub use membership::{Adopt, Disband, Move};

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueHint};
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
    pub shared: GlobalFlags,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// Parses the arguments, beginning with the name of the program. The error is also the output of
    /// `--help` and `--version`.
    pub fn parse(arguments: Vec<OsString>) -> Result<Self, clap::Error> {
        let mut command = Self::command();
        let arguments = booleans::without_values(arguments, &mut command)?;
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
    reason = "each is a flag; `settings` makes enums of them"
)]
pub struct Delete {
    /// The set.
    #[command(flatten)]
    pub set: SetArgument,
    /// The dry-run mode.
    #[command(flatten)]
    pub dry_run: DryRunFlag,
    /// Delete volumes, parents of other sets, and namespaces and kinds with what others put
    /// into them, too
    #[arg(long)]
    pub allow_data_loss: bool,
    /// Delete a set that another tool manages
    #[arg(long)]
    pub take_over_set: bool,
    /// Delete without asking
    #[arg(short, long)]
    pub yes: bool,
    /// End well where there is no such set
    #[arg(long)]
    pub ignore_not_found: bool,
    /// Field manager that applied the members [default: applyset]
    #[arg(long, value_name = "NAME")]
    pub field_manager: Option<String>,
    /// The time limits.
    #[command(flatten)]
    pub waiting: WaitFlags,
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
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag; `settings` makes enums of them"
)]
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
    /// With --fix, also add namespaces for which a label is the only evidence of members
    #[arg(long)]
    pub include_namespaces: bool,
    /// Mend without asking
    #[arg(short, long, requires = "fix")]
    pub yes: bool,
    /// Field manager that applied the members [default: applyset]
    #[arg(long, value_name = "NAME")]
    pub field_manager: Option<String>,
}
