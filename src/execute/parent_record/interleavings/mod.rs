//! Checks the promises of this module for all interleavings of short runs, and for random ones of
//! long runs.
//!
//! The runs are made of the functions of this module, and speak to a server that is a function
//! (`server`). `schedule` stops each run before every request, and lets one run at a time continue or
//! kills it. After every request, `World::check` asks for the promises:
//!
//! - Each object with the set's label is of a recorded kind, or a run is under way that has written
//!   such an object or has taken the kind out of the record. So when all runs have ended, every
//!   such object is covered. Exempt are runs that end with an error, and of killed runs exactly
//!   what the module's text names.
//! - A run writes the record only in the version that it has read or written last.

mod runs;
mod schedule;
mod server;

use runs::Script;
use schedule::{Schedules, explore, sample};

use Script::{Apply, Delete, Disband};

/// What the set holds when the runs begin, by the kinds of their members.
const BEFORE: &[&str] = &["One"];

/// Pairs of runs, with the number of runs that are killed. Each apply names the kinds of the members
/// that it wants.
const PAIRS: &[(&str, &[Script], usize)] = &[
    (
        "a kind leaves while it comes back",
        &[Apply(&[]), Apply(&["One"])],
        1,
    ),
    (
        "a kind leaves while two come",
        &[Apply(&[]), Apply(&["One", "Two"])],
        0,
    ),
    ("two kinds come", &[Apply(&["Two"]), Apply(&["Three"])], 0),
    ("the set goes while it is applied", &[Delete, Apply(&["One"])], 1),
    ("the set goes while it grows", &[Delete, Apply(&["Two"])], 0),
    ("the set goes twice", &[Delete, Delete], 0),
    ("the set ends while it is applied", &[Disband, Apply(&["One"])], 0),
    ("the set ends while it goes", &[Disband, Delete], 0),
];

#[test]
fn all_interleavings_of_two_runs_keep_the_promises() {
    let mut count = 0;
    for (name, scripts, kills) in PAIRS {
        let Schedules { tried, failure } = explore(BEFORE, scripts, *kills);
        assert_eq!(failure, None, "{name}");
        count += tried;
    }
    assert!(count > 1000, "only {count} schedules");
}

#[test]
fn random_interleavings_of_three_runs_keep_the_promises() {
    let triples: &[&[Script]] = &[
        &[Apply(&[]), Apply(&["One", "Two"]), Apply(&["Two"])],
        &[Delete, Apply(&["One"]), Apply(&["Two", "Three"])],
        &[Delete, Apply(&[]), Apply(&["One"])],
        &[Apply(&["Three"]), Delete, Delete],
        &[Disband, Apply(&["One"]), Apply(&["Two"])],
    ];
    for scripts in triples {
        for seed in 0..40 {
            let failure = sample(BEFORE, scripts, seed);
            assert_eq!(failure, None, "seed {seed}: {scripts:?}");
        }
    }
}
