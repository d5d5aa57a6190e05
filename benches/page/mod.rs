//! The tables of docs/performance.md and README.md, between comments that name them:
//! `<!-- measured: NAME -->` and `<!-- end -->`. Tables and cells without a measurement say "not measured".

mod markdown;
mod runs;

use std::fs;
use std::path::Path;

use markdown::{NONE, NOT_MEASURED, figure, grouped, table};
use runs::{cost, latency, lifecycle, seats, size, summary};

use crate::contenders::Contender;
use crate::goals::{Goal, Verdict, number};
use crate::options::OBJECTS_OF_THE_GOALS;
use crate::results::Results;
use crate::{Result, plot};

/// Pages, and the names of the tables that each has.
pub(crate) const PAGES: [(&str, &[&str]); 2] = [
    (
        "docs/performance.md",
        &[
            "machine",
            "contenders",
            "cost",
            "lifecycle",
            "size",
            "latency",
            "seats",
            "goals",
        ],
    ),
    ("README.md", &["summary"]),
];

const BEGIN: &str = "<!-- measured: ";
const END: &str = "<!-- end -->";
const NOTHING_MEASURED: &str = "Not measured.";

/// Writes all tables and pictures into a checkout.
pub(crate) fn write(checkout: &Path, results: &Results) -> Result<()> {
    for (page, names) in PAGES {
        let path = checkout.join(page);
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let text = fill(&text, names, results).map_err(|error| format!("{}: {error}", path.display()))?;
        crate::write(&path, &text)?;
    }
    let pictures = checkout.join("docs/pictures");
    crate::write(&pictures.join("performance-size.svg"), &plot::size(results))?;
    crate::write(&pictures.join("performance-latency.svg"), &plot::latency(results))
}

/// Returns the page with these tables filled in. Fails if it lacks one of them, or has any other.
pub(crate) fn fill(text: &str, names: &[&str], results: &Results) -> Result<String> {
    let mut filled = text.to_owned();
    for name in names {
        let begin = format!("{BEGIN}{name} -->");
        let (before, rest) = filled.split_once(&begin).ok_or(format!("there is no {begin}"))?;
        let (_, after) = rest
            .split_once(END)
            .ok_or(format!("there is no {END} after {begin}"))?;
        let table = table_of(name, results)?;
        filled = format!("{before}{begin}\n\n{}\n\n{END}{after}", table.trim_end());
    }
    if filled.matches(BEGIN).count() != names.len() {
        return Err(format!("there are other tables than {}", names.join(", ")).into());
    }
    Ok(filled)
}

fn table_of(name: &str, results: &Results) -> Result<String> {
    Ok(match name {
        "machine" => machine(results),
        "contenders" => contenders(results),
        "cost" => cost(results),
        "lifecycle" => lifecycle(results),
        "size" => size(results),
        "latency" => latency(results),
        "seats" => seats(results),
        "goals" => goals(&results.goals, results.objects),
        "summary" => summary(results),
        _ => return Err(format!("no table has the name {name}").into()),
    })
}

fn machine(results: &Results) -> String {
    let machine = &results.machine;
    if results.commands.is_empty() {
        return NOTHING_MEASURED.to_owned();
    }
    let known = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".to_owned());
    let memory = machine.memory.map_or("unknown".to_owned(), |bytes| {
        format!("{:.1} GB", number(bytes) / 1e9)
    });
    let load = machine
        .load_before
        .map_or("unknown".to_owned(), |load| format!("{load:.2}"));
    let rows = [
        ("date", known(&machine.date)),
        (
            "processors",
            format!("{}, {}", machine.processors, known(&machine.model)),
        ),
        ("memory", memory),
        ("kernel", known(&machine.kernel)),
        ("Kubernetes", machine.kubernetes.clone()),
        ("load average before the start", load),
    ];
    let table = table(
        &["", ""],
        rows.into_iter()
            .map(|(name, value)| vec![name.to_owned(), value])
            .collect(),
    );
    format!(
        "{table}\nMeasured with:\n\n```sh not-run\n{}\n```\n",
        results.commands.join("\n")
    )
}

fn contenders(results: &Results) -> String {
    if results.contenders.is_empty() {
        return NOTHING_MEASURED.to_owned();
    }
    let rows = Contender::ALL.into_iter().map(|contender| {
        let name = contender.to_string();
        let entrant = results.contenders.iter().find(|entrant| entrant.name == name);
        let cells = match entrant {
            None => [NOT_MEASURED.to_owned(), NONE.to_owned()],
            Some(entrant) => [
                entrant.version.clone().unwrap_or_else(|| NONE.to_owned()),
                entrant
                    .command
                    .as_ref()
                    .map_or(NONE.to_owned(), |command| format!("`{command}`")),
            ],
        };
        [vec![name], cells.to_vec()].concat()
    });
    table(&["", "version", "command"], rows.collect())
}

fn goals(goals: &[Goal], objects: usize) -> String {
    let of = |verdict: Verdict| goals.iter().filter(|goal| goal.verdict == verdict).count();
    let (missed, open) = (of(Verdict::Missed), of(Verdict::NotMeasured));
    if open == goals.len() {
        return NOTHING_MEASURED.to_owned();
    }
    let missed = match missed {
        0 => "none is missed".to_owned(),
        1 => "1 is missed".to_owned(),
        missed => format!("{missed} are missed"),
    };
    let open = match open {
        0 => String::new(),
        open => format!("; {open} not measured"),
    };
    let other_size = if objects == OBJECTS_OF_THE_GOALS {
        String::new()
    } else {
        let [stated, measured] = [OBJECTS_OF_THE_GOALS, objects].map(grouped);
        format!(" They are stated for {stated} objects, and this was measured with {measured}.")
    };
    let summary = format!(
        "Of {} goals, {} are reached, and {missed}{open}.{other_size}",
        goals.len(),
        of(Verdict::Reached)
    );
    let rows = goals.iter().map(|goal| {
        let measured = goal.measured.map_or(NONE.to_owned(), figure);
        let verdict = match goal.verdict {
            Verdict::Reached => "reached",
            Verdict::Missed => "**missed**",
            Verdict::NotMeasured => NOT_MEASURED,
        };
        vec![
            goal.name.clone(),
            format!("{} {}", figure(goal.at_most), goal.unit),
            measured,
            verdict.to_owned(),
        ]
    });
    let table = table(&["goal", "at most", "measured", ""], rows.collect());
    format!("{summary}\n\n{table}")
}
