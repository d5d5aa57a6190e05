//! What became of all trials: a row for each request, a column for each disturbance.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::Trial;
use super::trial::{Disturbance, Target};

/// The outcomes so far.
#[derive(Default)]
pub(super) struct Table {
    rows: BTreeMap<(&'static str, Target), BTreeMap<Disturbance, Outcome>>,
    failures: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Held,
    Failed,
}

impl Table {
    /// Adds one trial.
    pub(super) fn add(&mut self, trial: &Trial, outcome: Result<(), String>) {
        let row = (trial.scenario.name, trial.target.clone());
        let row = self.rows.entry(row).or_default();
        row.insert(
            trial.disturbance,
            if outcome.is_ok() {
                Outcome::Held
            } else {
                Outcome::Failed
            },
        );
        if let Err(problem) = outcome {
            self.failures.push(format!("{trial}: {problem}"));
        }
    }

    /// What failed, and how.
    pub(super) fn failures(&self) -> &[String] {
        &self.failures
    }
}

impl fmt::Display for Table {
    /// `·` is held, `X` failed, a space not tried.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns: BTreeSet<Disturbance> = self.rows.values().flat_map(|row| row.keys().copied()).collect();
        let mut scenario = "";
        for ((of, target), row) in &self.rows {
            if *of != scenario {
                scenario = of;
                writeln!(f, "\n{scenario}")?;
            }
            let cells = columns.iter().map(|column| match row.get(column) {
                Some(Outcome::Held) => '·',
                Some(Outcome::Failed) => 'X',
                None => ' ',
            });
            writeln!(f, "{} {target}", cells.collect::<String>())?;
        }
        writeln!(
            f,
            "\n{:>6} {:>6}  the columns, from left to right",
            "held", "failed"
        )?;
        let mut all = [0, 0];
        for column in columns {
            let count = |wanted| {
                let outcomes = self.rows.values().filter_map(|row| row.get(&column));
                outcomes.filter(|outcome| **outcome == wanted).count()
            };
            let [held, failed] = [Outcome::Held, Outcome::Failed].map(count);
            writeln!(f, "{held:>6} {failed:>6}  {column}")?;
            all[0] += held;
            all[1] += failed;
        }
        writeln!(f, "{:>6} {:>6}  all", all[0], all[1])
    }
}

/// Shows a text to the caller that asked for it.
#[expect(
    clippy::print_stdout,
    clippy::disallowed_macros,
    reason = "a table for people"
)]
pub(super) fn print(text: &str) {
    println!("{text}");
}
