//! The bench: `just bench`, that is `cargo bench --bench applyset`. It starts control
//! planes of its own, measures on them, prints tables and judges the goals.
//!
//! It is not a test: it takes minutes, wants the machine for itself, and what it finds
//! depends on the machine. Ratios between contenders depend on it least.

// For `tests.rs`, where this file is not the root.
pub(crate) mod connection;
pub(crate) mod contenders;
pub(crate) mod goals;
pub(crate) mod kinds;
pub(crate) mod link;
pub(crate) mod manifests;
pub(crate) mod objects;
pub(crate) mod options;
pub(crate) mod page;
pub(crate) mod plot;
pub(crate) mod process;
pub(crate) mod raw;
pub(crate) mod results;
pub(crate) mod scenarios;
pub(crate) mod server;
pub(crate) mod tables;
pub(crate) mod tools;

use std::env;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser as _, ValueEnum as _};

use contenders::Contenders;
use goals::Verdict;
use options::{OBJECTS_OF_THE_GOALS, Options, Scenario};
use results::{Machine, Results};
use server::Server;

/// What went wrong, for the person who runs the bench: nothing here continues after it.
pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;
pub(crate) type Result<T> = std::result::Result<T, Failure>;

const GOAL_MISSED: u8 = 1;
const NOT_MEASURED: u8 = 2;

fn main() -> ExitCode {
    let options = Options::parse();
    if !options.bench {
        say("nothing is measured by `cargo test`; run `just bench`");
        return ExitCode::SUCCESS;
    }
    match run(&options) {
        Ok(results) => {
            let is_judged = results.objects == OBJECTS_OF_THE_GOALS && options.page.is_none();
            if is_judged && results.goals.iter().any(|goal| goal.verdict == Verdict::Missed) {
                return ExitCode::from(GOAL_MISSED);
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            say(&format!("error: {error}"));
            ExitCode::from(NOT_MEASURED)
        }
    }
}

fn run(options: &Options) -> Result<Results> {
    let mut results = if options.from.is_empty() {
        measured(options)?
    } else {
        read(&options.from)?
    };
    results.goals = goals::judge(&results);
    io::stdout().write_all(tables::text(&results).as_bytes())?;
    save(options, &results)?;
    if let Some(checkout) = &options.page {
        page::write(checkout, &results)?;
    }
    Ok(results)
}

fn measured(options: &Options) -> Result<Results> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let scratch = tempfile::tempdir()?;
    runtime.block_on(measure(options, scratch.path()))
}

/// What was measured before, of one or several runs.
fn read(paths: &[PathBuf]) -> Result<Results> {
    let mut runs = Vec::new();
    for path in paths {
        let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let run: Results =
            serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        runs.push(run);
    }
    let mut runs = runs.into_iter();
    let first = runs.next().ok_or("there are no results to read")?;
    first.merge(runs)
}

async fn measure(options: &Options, scratch: &Path) -> Result<Results> {
    let contenders = Contenders::find(options)?;
    let server = Server::start().await?;
    let mut results = Results {
        machine: Machine::here(),
        objects: options.objects,
        rounds: options.rounds,
        missing: contenders.missing.clone(),
        contenders: contenders.entrants(&server)?,
        commands: vec![command_line()],
        ..Results::default()
    };
    results.machine.kubernetes = server.version().await?;
    drop(server);
    for scenario in Scenario::value_variants() {
        if options.wants(*scenario) {
            measure_scenario(*scenario, options, &contenders, scratch, &mut results).await?;
            save(options, &results)?;
        }
    }
    Ok(results)
}

async fn measure_scenario(
    scenario: Scenario,
    options: &Options,
    contenders: &Contenders,
    scratch: &Path,
    results: &mut Results,
) -> Result<()> {
    let measurements = match scenario {
        Scenario::Startup => {
            results.startup = Some(scenarios::startup(scratch)?);
            Vec::new()
        }
        Scenario::Lifecycle => scenarios::lifecycle(options, contenders, scratch).await?,
        Scenario::Growth => scenarios::growth(options, scratch).await?,
        Scenario::Spread => scenarios::spread(options, scratch).await?,
        Scenario::Link => {
            results.links = scenarios::link(options, contenders, scratch).await?;
            Vec::new()
        }
        Scenario::Busy => {
            results.busy = scenarios::busy(options, contenders, scratch).await?;
            Vec::new()
        }
        Scenario::Large => scenarios::large(options, scratch).await?,
        Scenario::CustomKinds => scenarios::custom_kinds(options, scratch).await?,
        Scenario::Wide => scenarios::wide(options, scratch).await?,
        Scenario::Record => scenarios::record(options, scratch).await?,
        Scenario::Real => {
            results.real = Some(scenarios::real(scratch).await?);
            Vec::new()
        }
    };
    results.measurements.extend(measurements);
    Ok(())
}

/// The command that a person types for this run.
fn command_line() -> String {
    let arguments = env::args().skip(1).filter(|argument| argument != "--bench");
    let words = ["cargo bench --locked --bench applyset --".to_owned()];
    words.into_iter().chain(arguments).collect::<Vec<_>>().join(" ")
}

/// Writes the document; also after each scenario, so that a bench that is ended early
/// leaves what it has measured. Goals are judged at the end only.
fn save(options: &Options, results: &Results) -> Result<()> {
    match &options.json {
        Some(path) => write(path, &serde_json::to_string_pretty(results)?),
        None => Ok(()),
    }
}

pub(crate) fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()).into())
}

/// Says what happens, to the person who waits.
pub(crate) fn say(line: &str) {
    // There is no other place for this error.
    let _ = writeln!(io::stderr(), "{line}");
}
