//! The command line of the bench.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

/// The number of objects that the goals are stated for.
pub(crate) const OBJECTS_OF_THE_GOALS: usize = 1000;

/// Measures kubectl-applyset beside kubectl, kapp, Helm, kpt and server-side apply without
/// any tool, on a throw-away control plane.
///
/// Ends with exit code 1 where a goal is missed, and 2 where a measurement failed.
/// Goals are stated for 1,000 objects; with another number they are shown and do not
/// decide the exit code, nor do they if the page is written.
#[derive(Debug, Parser)]
#[command(name = "bench", bin_name = "just bench", after_help = EXAMPLES)]
pub(crate) struct Options {
    /// Objects of a set; growth is measured from a tenth of it to its tenfold
    #[arg(long, value_name = "N", default_value_t = OBJECTS_OF_THE_GOALS, value_parser = objects)]
    pub(crate) objects: usize,
    /// How often everything is measured; medians are shown
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = rounds)]
    pub(crate) rounds: usize,
    /// Measure only this; may be repeated
    #[arg(long, value_name = "SCENARIO")]
    pub(crate) only: Vec<Scenario>,
    /// Also measure these, and build them from Go modules first if necessary
    #[arg(long, value_name = "TOOL", value_delimiter = ',')]
    pub(crate) with: Vec<Tool>,
    /// Leave all other tools out: the goals compare with raw server-side apply alone
    #[arg(long, conflicts_with = "with")]
    pub(crate) alone: bool,
    /// The longest that another tool is waited for; it is then measured no further
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub(crate) patience: u64,
    /// Write all that was measured to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Measure nothing, and take what `--json` wrote; runs of several files are merged
    #[arg(long, value_name = "FILE", conflicts_with_all = ["only", "with", "alone"])]
    pub(crate) from: Vec<PathBuf>,
    /// Write the tables and pictures of docs/performance.md, and the table of README.md, in this checkout
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) page: Option<PathBuf>,
    /// Round trips of the links, in milliseconds; the goals are about the longest
    #[arg(long, value_name = "MS", value_delimiter = ',', default_value = "0,20,80")]
    pub(crate) latency: Vec<u64>,
    /// Passed by cargo; without it this is `cargo test`, which measures nothing
    #[arg(long, hide = true)]
    pub(crate) bench: bool,
}

const EXAMPLES: &str = "\
Examples:
  # Everything, also kapp, Helm and kpt, for the page
  just bench --with kapp,helm,kpt --patience 180 --json target/performance.json --page .

  # The page from two runs that were measured before
  just bench --from target/one.json --from target/two.json --page .

  # All goals, and nothing that they do not need
  just bench --alone

  # Sequential round trips over a slow link
  just bench --alone --only link --latency 0,20,80

  # A quick look at one scenario
  just bench --only lifecycle --objects 100 --rounds 1";

/// What is measured, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scenario {
    /// The start of the program, and its size
    Startup,
    /// First apply, again unchanged, one object changed, a tenth dropped
    Lifecycle,
    /// The same set ten times smaller and ten times larger
    Growth,
    /// Twenty kinds in fifty namespaces
    Spread,
    /// A set of 300 objects over links with latency
    Link,
    /// A set of 300 objects for a user with few seats on the server
    Busy,
    /// The same number of small objects, and ten and fifty times as many: unchanged, then pruned
    Large,
    /// 200 custom kinds
    CustomKinds,
    /// 300 kinds in 200 namespaces
    Wide,
    /// A record near its limit of 256 KiB
    Record,
    /// Manifests as people write them
    Real,
}

/// Tools that are not measured unless they are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Tool {
    /// carvel.dev/kapp
    Kapp,
    /// helm.sh/helm/v4
    Helm,
    /// github.com/GoogleContainerTools/kpt
    Kpt,
}

impl Options {
    pub(crate) fn wants(&self, scenario: Scenario) -> bool {
        self.only.is_empty() || self.only.contains(&scenario)
    }
}

/// A tenth of the set is dropped, and applications have ten objects each.
fn objects(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number) if number >= 100 && number % 100 == 0 => Ok(number),
        _ => Err("give a multiple of 100".to_owned()),
    }
}

fn rounds(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number) if (1..=100).contains(&number) => Ok(number),
        _ => Err("give 1 to 100".to_owned()),
    }
}
