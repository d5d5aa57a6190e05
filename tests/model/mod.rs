//! Random histories of two sets that share three namespaces, against the real server.
//!
//! A history is a list of steps: runs with random manifests, runs that race, that are
//! killed, that steal or that only only do a dry run, and what others do to the same objects in
//! between. After each step the cluster must be what `world` says that it must be. A
//! history that fails is tried again in fresh namespaces with fewer and fewer steps.
//!
//! `MODEL_SEED` sets the seed, `MODEL_STEPS` how many steps all histories have together.

mod history;
mod oracle;
mod place;
mod shrink;
mod world;

use std::fmt::Write as _;
use std::thread;

use crate::support::{Random, cluster};
use history::Step;
use world::World;

/// Steps of one history.
const LENGTH: usize = 25;
/// Histories that are tried at a time; most of the time is waiting.
const AT_ONCE: usize = 2;

fn number(name: &str, default: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.map_or(default, |text| text.parse().expect("a number"))
}

#[test]
fn members_bystanders_and_record_are_right_after_every_step() {
    let seed = number("MODEL_SEED", 1);
    let steps = usize::try_from(number("MODEL_STEPS", 150)).expect("a number of steps");
    // Started before the clock of any history runs.
    cluster();
    let histories: Vec<u64> = (0..steps.div_ceil(LENGTH) as u64).collect();
    let failures: Vec<String> = thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE)
            .map(|worker| {
                let mut own = histories.iter().skip(worker).step_by(AT_ONCE);
                scope.spawn(move || own.find_map(|number| try_history(seed, *number)))
            })
            .collect();
        let ends = workers.into_iter().map(|worker| worker.join().expect("no panic"));
        ends.flatten().collect()
    });
    assert!(
        failures.is_empty(),
        "MODEL_SEED={seed}\n{}",
        failures.join("\n\n")
    );
}

/// What went wrong in this history, with the fewest steps that still fail.
fn try_history(seed: u64, number: u64) -> Option<String> {
    let steps = history::generate(&mut Random::new(seed, number), LENGTH);
    let failure = World::live(&steps).err()?;
    let (steps, failure) = shrink::shrink(steps, failure, World::live);
    Some(format!("history {number} fails: {failure}\n{}", lines(&steps)))
}

fn lines(steps: &[Step]) -> String {
    let mut lines = String::new();
    for step in steps {
        writeln!(lines, "  {step:?}").expect("a text");
    }
    lines
}
