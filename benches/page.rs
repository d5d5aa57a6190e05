//! The tables of docs/performance.md and README.md, between comments that name them:
//! `<!-- measured: NAME -->` and `<!-- end -->`. What was not measured is said to be not measured.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::contenders::Contender;
use crate::goals::{Goal, Verdict, number};
use crate::options::OBJECTS_OF_THE_GOALS;
use crate::results::{LinkStep, Measurement, Results, Step};
use crate::scenarios::{
    CUSTOM_KINDS, NAMESPACES, OBJECTS_OF_BUSY, OBJECTS_OF_LINKS, WIDE_KINDS, large_sizes, sizes,
};
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
const NOT_MEASURED: &str = "not measured";
const NOTHING_MEASURED: &str = "Not measured.";
/// In a cell that can have no value.
const NONE: &str = "–";

/// The steps of a set's life: their names, and the step of raw that each is compared with.
const STEPS: [(Step, &str, Step); 4] = [
    (Step::First, "first apply", Step::First),
    (Step::Again, "unchanged", Step::Again),
    (Step::Changed, "1 changed", Step::Again),
    (Step::Dropped, "10% pruned", Step::Again),
];

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

/// The page with the tables of these names, each of which it has once; it has no others.
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

/// What single runs of ours cost.
fn cost(results: &Results) -> String {
    let objects = results.objects;
    let [.., more] = sizes(objects);
    let [all, tenfold] = [objects, more].map(grouped);
    let rows = [
        (
            format!("{all} unchanged objects of 4 kinds in one namespace"),
            Step::Again,
            objects,
        ),
        ("the same, one object changed".to_owned(), Step::Changed, objects),
        ("the same, 10% pruned".to_owned(), Step::Dropped, objects),
        (
            format!("{tenfold} unchanged objects of 4 kinds in one namespace"),
            Step::GrowthAgain,
            more,
        ),
        (
            format!("20 kinds in {NAMESPACES} namespaces, unchanged"),
            Step::SpreadAgain,
            NAMESPACES * 20,
        ),
        (
            format!("{CUSTOM_KINDS} custom kinds, unchanged"),
            Step::KindsAgain,
            CUSTOM_KINDS,
        ),
        (
            format!("{WIDE_KINDS} kinds in 200 namespaces, unchanged"),
            Step::WideAgain,
            WIDE_KINDS,
        ),
    ];
    let ours = Contender::Ours.to_string();
    if rows
        .iter()
        .all(|(_, step, size)| results.runs(*step, &ours, *size).next().is_none())
    {
        return NOTHING_MEASURED.to_owned();
    }
    let rows = rows.into_iter().map(|(name, step, size)| {
        let cells = costs(results, (step, &ours, size));
        [vec![name], cells.to_vec()].concat()
    });
    table(&["set", "seconds", "peak memory, MB", "requests"], rows.collect())
}

/// Seconds, memory and requests.
fn costs(results: &Results, key: (Step, &str, usize)) -> [String; 3] {
    let median = |what: fn(&Measurement) -> Option<f64>| results.median_of(key, what);
    [
        median(|run| Some(run.seconds)).map(seconds),
        median(|run| Some(number(run.peak_memory?) / 1e6)).map(whole),
        median(|run| Some(number(run.requests.most()))).map(whole),
    ]
    .map(or_not_measured)
}

fn lifecycle(results: &Results) -> String {
    if !STEPS.iter().any(|(step, _, _)| has(results, *step)) {
        return NOTHING_MEASURED.to_owned();
    }
    let raw = Contender::Raw.to_string();
    let objects = results.objects;
    let first = results.measurements.iter().filter(|run| run.step == Step::First);
    let rounds = rounds(first.map(|run| run.round));
    let times = steps_table(results, |contender, step, base| {
        let taken = taken(results, contender, step)?;
        let ratio = results.ratio((step, contender, objects), (base, &raw, objects));
        Some(match ratio {
            Some(ratio) => format!("{taken} ({ratio:.2})"),
            None => taken,
        })
    });
    let requests = steps_table(results, |contender, step, _| {
        let key = (step, contender, objects);
        let median = results.median_of(key, |run| Some(number(run.requests.by_server)))?;
        Some(whole(median))
    });
    let memory = steps_table(results, |contender, step, _| {
        let key = (step, contender, objects);
        let median = results.median_of(key, |run| Some(number(run.peak_memory?) / 1e6))?;
        Some(whole(median))
    });
    format!(
        "Seconds for {} objects, medians of {rounds}; in parentheses, the ratio to raw:\n\n{times}\n\
         Requests that the server counted:\n\n{requests}\n\
         Peak memory of the client, MB:\n\n{memory}",
        grouped(objects)
    )
}

fn summary(results: &Results) -> String {
    if !STEPS.iter().any(|(step, _, _)| has(results, *step)) {
        return NOTHING_MEASURED.to_owned();
    }
    let times = steps_table(results, |contender, step, _| taken(results, contender, step));
    format!(
        "Seconds for {} objects, Kubernetes {} on {} processors:\n\n{times}",
        grouped(results.objects),
        results.machine.kubernetes,
        results.machine.processors
    )
}

fn has(results: &Results, step: Step) -> bool {
    results.measurements.iter().any(|run| run.step == step)
}

/// A row for each contender, a column for each step of a set's life.
fn steps_table(results: &Results, cell: impl Fn(&str, Step, Step) -> Option<String>) -> String {
    let mut header = vec![""];
    header.extend(STEPS.map(|(_, name, _)| name));
    let rows = Contender::ALL.into_iter().map(|contender| {
        let name = contender.to_string();
        let has_run = STEPS
            .iter()
            .any(|(step, _, _)| results.runs(*step, &name, results.objects).next().is_some());
        let cells = STEPS.map(|(step, _, base)| {
            let missing = if has_run { NONE } else { NOT_MEASURED };
            cell(&name, step, base).unwrap_or_else(|| missing.to_owned())
        });
        [vec![name], cells.to_vec()].concat()
    });
    table(&header, rows.collect())
}

/// The median of seconds, or how long was waited in vain.
fn taken(results: &Results, contender: &str, step: Step) -> Option<String> {
    let objects = results.objects;
    if let Some(median) = results.seconds(step, contender, objects) {
        return Some(seconds(median));
    }
    let run = results.runs(step, contender, objects).next()?;
    Some(format!("more than {}", whole(run.seconds)))
}

fn size(results: &Results) -> String {
    if !has(results, Step::LargeAgain) {
        return NOTHING_MEASURED.to_owned();
    }
    let ours = Contender::Ours.to_string();
    let rows = large_sizes(results.objects).into_iter().flat_map(|size| {
        [
            (Step::LargeFirst, "first apply"),
            (Step::LargeAgain, "unchanged"),
            (Step::LargePruned, "all but 100 pruned"),
        ]
        .map(|(step, name)| {
            let cells = costs(results, (step, &ours, size));
            [vec![grouped(size), name.to_owned()], cells.to_vec()].concat()
        })
    });
    table(
        &["objects", "", "seconds", "peak memory, MB", "requests"],
        rows.collect(),
    )
}

fn latency(results: &Results) -> String {
    let mut links: Vec<u64> = results.links.iter().map(|run| run.milliseconds).collect();
    links.sort_unstable();
    links.dedup();
    if links.is_empty() {
        return NOTHING_MEASURED.to_owned();
    }
    let columns = [(LinkStep::First, "first apply"), (LinkStep::Again, "unchanged")];
    let columns = columns.map(|(step, name)| links.iter().map(move |link| (*link, step, name)));
    let columns: Vec<(u64, LinkStep, &str)> = columns.into_iter().flatten().collect();
    let titles: Vec<String> = columns
        .iter()
        .map(|(link, _, name)| format!("{name}, {link} ms"))
        .collect();
    let rows = Contender::ALL.into_iter().map(|contender| {
        let name = contender.to_string();
        let cells = columns.iter().map(|(link, step, _)| {
            let median = results.median_over_link((*link, *step, &name), |run| Some(run.seconds));
            let ended = results.links.iter().find(|run| {
                (run.milliseconds, run.step) == (*link, *step) && run.contender == name && run.was_ended
            });
            let ended = ended.map(|run| format!("more than {}", whole(run.seconds)));
            or_not_measured(median.map(seconds).or(ended))
        });
        [vec![name.clone()], cells.collect()].concat()
    });
    let mut header = vec![""];
    header.extend(titles.iter().map(String::as_str));
    let times = table(&header, rows.collect());
    let rounds = rounds(results.links.iter().map(|run| run.round));
    format!(
        "Seconds for {OBJECTS_OF_LINKS} objects, medians of {rounds}, by the round trip of the link:\n\n{times}\n\
         Sequential round trips of kubectl-applyset, after the first TCP connection:\n\n{}",
        round_trips(results, &links)
    )
}

/// Round trips of ours over the links that have latency.
fn round_trips(results: &Results, links: &[u64]) -> String {
    let links: Vec<u64> = links.iter().copied().filter(|link| *link > 0).collect();
    if links.is_empty() {
        return NOTHING_MEASURED.to_owned();
    }
    let ours = Contender::Ours.to_string();
    let steps = [
        (LinkStep::First, "first apply"),
        (LinkStep::Again, "unchanged"),
        (LinkStep::AgainOfConfigMap, "unchanged, the parent is a ConfigMap"),
        (LinkStep::View, "`view`"),
        (LinkStep::List, "`list`"),
    ];
    let rows = steps.into_iter().map(|(step, name)| {
        let cells = links.iter().map(|link| {
            let trips = results.median_over_link((*link, step, &ours), |run| Some(number(run.round_trips?)));
            or_not_measured(trips.map(whole))
        });
        [vec![name.to_owned()], cells.collect()].concat()
    });
    let titles: Vec<String> = links.iter().map(|link| format!("{link} ms")).collect();
    let mut header = vec![""];
    header.extend(titles.iter().map(String::as_str));
    table(&header, rows.collect())
}

fn seats(results: &Results) -> String {
    if results.busy.is_empty() {
        return NOTHING_MEASURED.to_owned();
    }
    let rows = Contender::ALL.into_iter().map(|contender| {
        let name = contender.to_string();
        let taken = results.median_of_busy(&name, |run| run.seconds).map(seconds);
        let has_run = results.busy.iter().any(|run| run.contender == name);
        let taken = taken.or_else(|| has_run.then(|| "did not finish".to_owned()));
        let rejected = results.median_of_busy(&name, |run| Some(number(run.rejected)));
        let others = results.median_of_busy(&name, |run| Some(run.neighbour * 1e3));
        let cells = [
            taken,
            rejected.map(whole),
            others.map(|milliseconds| format!("{milliseconds:.1}")),
        ];
        [vec![name], cells.map(or_not_measured).to_vec()].concat()
    });
    let table = table(
        &["", "seconds", "rejected requests", "wait of others, ms"],
        rows.collect(),
    );
    let rounds = rounds(results.busy.iter().map(|run| run.round));
    format!("A first apply of {OBJECTS_OF_BUSY} objects, medians of {rounds}:\n\n{table}")
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

/// A table in Markdown.
fn table(header: &[&str], rows: Vec<Vec<String>>) -> String {
    let line = |cells: &[&str]| {
        let cells: String = cells
            .iter()
            .map(|cell| format!(" {cell} |").replace("  |", " |"))
            .collect();
        format!("|{cells}\n")
    };
    let mut text = line(header) + &format!("|{}\n", "---|".repeat(header.len()));
    for row in rows {
        text += &line(&row.iter().map(String::as_str).collect::<Vec<_>>());
    }
    text
}

/// How many different rounds there are, in words.
fn rounds(numbers: impl Iterator<Item = usize>) -> String {
    match numbers.collect::<BTreeSet<usize>>().len() {
        1 => "1 round".to_owned(),
        count => format!("{count} rounds"),
    }
}

fn or_not_measured(cell: Option<String>) -> String {
    cell.unwrap_or_else(|| NOT_MEASURED.to_owned())
}

/// Three digits, or all before the point.
fn seconds(seconds: f64) -> String {
    match seconds {
        ..0.1 => format!("{seconds:.3}"),
        ..10.0 => format!("{seconds:.2}"),
        ..100.0 => format!("{seconds:.1}"),
        _ => whole(seconds),
    }
}

fn figure(value: f64) -> String {
    if value.fract() == 0.0 || value >= 1000.0 {
        whole(value)
    } else if value < 10.0 {
        format!("{value:.2}")
    } else {
        format!("{value:.1}")
    }
}

/// Without a fraction, with commas: `1,016`.
fn whole(value: f64) -> String {
    with_commas(&format!("{value:.0}"))
}

fn grouped(count: usize) -> String {
    with_commas(&count.to_string())
}

fn with_commas(digits: &str) -> String {
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
