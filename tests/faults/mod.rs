//! Faults and ends at every request of every command that writes: whatever breaks,
//! nothing leaks, nothing wrong is deleted, and the next run converges.
//!
//! `cargo test` tries each disturbance once, at a request and a command that `FAULTS_SEED`
//! chooses. `FAULTS=all` (`just faults`) tries everything, `FAULTS=500` so many of it, and
//! both print the table of requests by disturbances. `FAULTS_SKIP=NUMBER` leaves out that many
//! trials: so a run that was ended continues. `FAULTS_ONLY=TEXT` leaves out what has another
//! name: so one trial that failed is made again.

mod lie;
mod soak;
mod stage;
mod table;
mod trial;

use std::collections::BTreeSet;
use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::num::NonZero;
use std::sync::Mutex;
use std::thread;

use crate::support::{Signal, cluster};
use stage::{SCENARIOS, Scenario};
use table::Table;
use trial::{Disturbance, Moment, Target};

/// Trials at a time for each processor; most of their time is waiting.
const AT_ONCE: usize = 16;
/// Trials at a time where other tests run as well.
const AT_ONCE_OF_A_SAMPLE: usize = 6;

/// One trial that is to be made.
struct Trial<'a> {
    scenario: &'a Scenario,
    target: Target,
    disturbance: Disturbance,
}

impl fmt::Display for Trial<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            scenario,
            target,
            disturbance,
        } = self;
        write!(f, "{}: {disturbance} at {target}", scenario.name)
    }
}

/// Which trials are made.
enum Choice {
    All,
    Some(usize),
    /// Each disturbance once.
    Sample,
}

impl Choice {
    fn of_environment() -> Self {
        match std::env::var("FAULTS").as_deref() {
            Err(_) => Self::Sample,
            Ok("all") => Self::All,
            Ok(number) => Self::Some(number.parse().expect("FAULTS is all or a number")),
        }
    }
}

/// `FAULTS_SKIP`: how many trials of the whole table, in the order of the seed, were made before.
fn skip_of_environment() -> usize {
    std::env::var("FAULTS_SKIP").map_or(0, |number| number.parse().expect("FAULTS_SKIP is a number"))
}

/// Every disturbance at every request that it suits.
fn every(scenario: &Scenario) -> Vec<Trial<'_>> {
    let mut trials = Vec::new();
    for target in trial::record(scenario) {
        for disturbance in Disturbance::all() {
            if disturbance.suits(&target) {
                trials.push(Trial {
                    scenario,
                    target: target.clone(),
                    disturbance,
                });
            }
        }
    }
    trials
}

/// Each disturbance at one request, and SIGKILL before every write of an apply.
fn sample(all: Vec<Trial<'_>>) -> Vec<Trial<'_>> {
    let mut tried = BTreeSet::new();
    let mut sample = all;
    sample.retain(|trial| {
        let is_kill = trial.disturbance == Disturbance::Signal(Signal::Kill, Moment::Before);
        let is_of_apply = trial.scenario.name.ends_with("apply");
        tried.insert(trial.disturbance) || (is_kill && is_of_apply && trial.target.is_write())
    });
    sample
}

#[test]
fn whatever_breaks_nothing_is_lost_and_the_next_run_converges() {
    let seed = std::env::var("FAULTS_SEED").map_or(1, |seed| seed.parse().expect("a number"));
    let only = std::env::var("FAULTS_ONLY").unwrap_or_default();
    // Started before the clock of any trial runs.
    cluster();
    let mut trials: Vec<Trial> = SCENARIOS.iter().flat_map(every).collect();
    trials.sort_by_cached_key(|trial| place(trial, seed));
    let choice = Choice::of_environment();
    match choice {
        Choice::All => drop(trials.drain(..skip_of_environment().min(trials.len()))),
        Choice::Some(number) => trials.truncate(number),
        Choice::Sample => trials = sample(trials),
    }
    trials.retain(|trial| trial.to_string().contains(&only));
    assert!(!trials.is_empty(), "no trial");
    let at_once = match choice {
        Choice::All | Choice::Some(_) => AT_ONCE * thread::available_parallelism().map_or(1, NonZero::get),
        Choice::Sample => AT_ONCE_OF_A_SAMPLE,
    };
    let table = run(&trials, at_once);
    if !matches!(choice, Choice::Sample) {
        table::print(&table.to_string());
    }
    assert!(
        table.failures().is_empty(),
        "FAULTS_SEED={seed}: {} of {} trials failed\n{}",
        table.failures().len(),
        trials.len(),
        table.failures().join("\n\n")
    );
}

/// The place of a trial in the order of the seed. It depends on the trial alone: a run that continues another one
/// may have other requests, and so other trials.
fn place(trial: &Trial, seed: u64) -> (u64, String) {
    let name = trial.to_string();
    let mut hasher = DefaultHasher::new();
    (seed, &name).hash(&mut hasher);
    (hasher.finish(), name)
}

fn run(trials: &[Trial], at_once: usize) -> Table {
    let table = Mutex::new(Table::default());
    let next = Mutex::new(trials.iter().enumerate());
    thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                loop {
                    let Some((number, trial)) = next.lock().expect("no panic").next() else {
                        return;
                    };
                    if number > 0 && number.is_multiple_of(250) {
                        table::print(&format!("{number} of {} trials begun", trials.len()));
                    }
                    let outcome = trial::attempt(trial.scenario, &trial.target, trial.disturbance, number);
                    // A soak of an hour begins with the first one.
                    if let Err(problem) = &outcome {
                        table::print(&format!("FAILED {trial}: {problem}"));
                    }
                    let mut table = table.lock().expect("no panic");
                    table.add(trial, outcome);
                }
            });
        }
    });
    table.into_inner().expect("no panic")
}
