//! Checks the promises of `parent_record` for all interleavings of two runs, and for random interleavings of three
//! runs.
//!
//! The runs (`runs`) call the functions of `parent_record`, and speak to a server that is a function (`server`).
//! `schedule` stops each run before every request, and lets one run at a time continue or kills it. After every step
//! the promises are checked:
//!
//! - Each object with the set's label is of a recorded kind, at any time, whichever runs were killed (`World::check`).
//! - A run writes the parent only in the version that it has read or written last (`World::answer`).
//!
//! Time passes at most once in a schedule: the entries of killed runs count as abandoned from then on. It does not pass
//! while a live run has an entry, because that run would have renewed its entry.

mod runs;
mod schedule;
mod server;

use runs::Script;
use schedule::{Schedules, explore, sample};

use Script::{Adopt, Apply, Delete, Disband, Fix};

/// The kinds of the members that the set has when the runs begin.
const INITIAL_KINDS: &[&str] = &["One"];

/// Pairs of runs, with the number of runs that may be killed. Each `Apply` names the kinds of its desired members.
const PAIRS: &[(&str, &[Script], usize)] = &[
    (
        "a kind leaves while it comes back",
        &[Apply(&[]), Apply(&["One"])],
        1,
    ),
    (
        "a kind leaves while two come",
        &[Apply(&[]), Apply(&["One", "Two"])],
        1,
    ),
    ("two kinds come", &[Apply(&["Two"]), Apply(&["Three"])], 0),
    (
        "a kind leaves while it is adopted",
        &[Apply(&[]), Adopt(&["One"])],
        1,
    ),
    (
        "a kind comes while the record is repaired",
        &[Fix, Apply(&["Two"])],
        1,
    ),
    ("the set goes while it is applied", &[Delete, Apply(&["One"])], 1),
    ("the set goes while it grows", &[Delete, Apply(&["Two"])], 1),
    ("the set goes twice", &[Delete, Delete], 0),
    ("the set ends while it is applied", &[Disband, Apply(&["One"])], 1),
    ("the set ends while it goes", &[Disband, Delete], 0),
];

#[test]
fn all_interleavings_of_two_runs_keep_the_promises() {
    let mut count = 0;
    for (name, scripts, kills) in PAIRS {
        let Schedules { tried, failure } = explore(INITIAL_KINDS, scripts, *kills);
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
        &[Fix, Apply(&["Two"]), Apply(&["One", "Two"])],
        &[Fix, Apply(&[]), Adopt(&["One", "Three"])],
        &[Apply(&["Three"]), Delete, Delete],
        &[Disband, Apply(&["One"]), Apply(&["Two"])],
    ];
    for scripts in triples {
        let failure = sample(INITIAL_KINDS, scripts, 40);
        assert_eq!(failure, None, "{scripts:?}");
    }
}
