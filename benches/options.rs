//! The command line of the bench.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

/// The number of objects that the goals are stated for.
pub(crate) const OBJECTS_OF_THE_GOALS: usize = 1000;

/// Compares kubectl-applyset with kubectl, kapp, Helm, kpt and server-side apply without a tool, on
/// throw-away control planes.
///
/// Exits with 1 if a goal is missed, and with 2 if a measurement fails. The goals are for 1,000 objects:
/// with another number, or with `--page`, a missed goal does not change the exit code.
#[derive(Debug, Parser)]
#[command(name = "bench", bin_name = "just bench", after_help = EXAMPLES)]
pub(crate) struct Options {
    /// Objects in the set; `growth` also measures a tenth of this and ten times as many
    #[arg(long, value_name = "N", default_value_t = OBJECTS_OF_THE_GOALS, value_parser = objects)]
    pub(crate) objects: usize,
    /// Number of rounds; the tables show medians
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = rounds)]
    pub(crate) rounds: usize,
    /// Measure only this; may be repeated
    #[arg(long, value_name = "SCENARIO")]
    pub(crate) only: Vec<Scenario>,
    /// Also measure these, and build them from Go modules first if necessary
    #[arg(long, value_name = "TOOL", value_delimiter = ',')]
    pub(crate) with: Vec<Tool>,
    /// Leave out all other tools, kubectl included; measure only this program and raw server-side apply
    #[arg(long, conflicts_with = "with")]
    pub(crate) alone: bool,
    /// Stop a run of another tool after this time; most scenarios then leave the tool out
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub(crate) patience: u64,
    /// Write all results to this file, after each scenario
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Measure nothing, and read results that `--json` wrote; repeat it to merge runs
    #[arg(long, value_name = "FILE", conflicts_with_all = ["only", "with", "alone"])]
    pub(crate) from: Vec<PathBuf>,
    /// Write the tables and pictures of docs/performance.md, and the table of README.md, in this checkout
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) page: Option<PathBuf>,
    /// Round-trip times of the links, in milliseconds; the goals need 0, 20 and 80
    #[arg(long, value_name = "MS", value_delimiter = ',', default_value = "0,20,80")]
    pub(crate) latency: Vec<u64>,
    /// Passed by cargo; without it this is `cargo test`, which measures nothing
    #[arg(long, hide = true)]
    pub(crate) bench: bool,
}

const EXAMPLES: &str = "\
Examples:
  # Measure everything, including kapp, Helm and kpt, and write the page
  just bench --with kapp,helm,kpt --patience 180 --json target/performance.json --page .

  # Write the page from the results of two earlier runs
  just bench --from target/one.json --from target/two.json --page .

  # Check the goals without other tools (skips the one that compares with kubectl)
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
    /// First apply, unchanged, one object changed, a tenth pruned
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
