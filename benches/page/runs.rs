//! The tables of what runs took.

use std::iter;

use super::NOTHING_MEASURED;
use super::markdown::{NONE, NOT_MEASURED, grouped, or_not_measured, rounds, seconds, table, whole};
use crate::contenders::Contender;
use crate::goals::number;
use crate::results::{LinkStep, Measurement, Results, Step};
use crate::scenarios::{
    CUSTOM_KINDS, NAMESPACES, NO_OTHER_LOAD, OBJECTS_OF_BUSY, OBJECTS_OF_LINKS, WIDE_KINDS, large_sizes,
    sizes,
};

/// The steps of a set's life: their names, and the step of raw that each is compared with.
const STEPS: [(Step, &str, Step); 4] = [
    (Step::First, "first apply", Step::First),
    (Step::Again, "unchanged", Step::Again),
    (Step::Changed, "1 changed", Step::Again),
    (Step::Dropped, "10% pruned", Step::Again),
];

/// What single runs of ours cost.
pub(super) fn cost(results: &Results) -> String {
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

pub(super) fn lifecycle(results: &Results) -> String {
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

pub(super) fn summary(results: &Results) -> String {
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

/// The median of seconds, or the time after which the bench stopped the run.
fn taken(results: &Results, contender: &str, step: Step) -> Option<String> {
    let objects = results.objects;
    if let Some(median) = results.seconds(step, contender, objects) {
        return Some(seconds(median));
    }
    let run = results.runs(step, contender, objects).next()?;
    Some(format!("more than {}", whole(run.seconds)))
}

pub(super) fn size(results: &Results) -> String {
    if !has(results, Step::LargeAgain) {
        return NOTHING_MEASURED.to_owned();
    }
    let (ours, raw) = (Contender::Ours.to_string(), Contender::Raw.to_string());
    let rows = large_sizes(results.objects).into_iter().flat_map(|size| {
        [
            (Step::LargeFirst, "first apply"),
            (Step::LargeAgain, "unchanged"),
            (Step::LargePruned, "all but 100 pruned"),
        ]
        .map(|(step, name)| {
            let cells = costs(results, (step, &ours, size));
            let of_raw = results.seconds(step, &raw, size).map(seconds);
            let of_raw = of_raw.unwrap_or_else(|| NONE.to_owned());
            [vec![grouped(size), name.to_owned()], cells.to_vec(), vec![of_raw]].concat()
        })
    });
    table(
        &[
            "objects",
            "",
            "seconds",
            "peak memory, MB",
            "requests",
            "raw, seconds",
        ],
        rows.collect(),
    )
}

pub(super) fn latency(results: &Results) -> String {
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
        (LinkStep::FirstOfTen, "first apply of 10 objects"),
        (LinkStep::Pruned, "10% pruned"),
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

pub(super) fn seats(results: &Results) -> String {
    if results.busy.is_empty() {
        return NOTHING_MEASURED.to_owned();
    }
    let contenders = Contender::ALL.iter().map(ToString::to_string);
    let rows = iter::once(NO_OTHER_LOAD.to_owned())
        .chain(contenders)
        .map(|name| {
            let taken = results.median_of_busy(&name, |run| run.seconds).map(seconds);
            let has_run = name != NO_OTHER_LOAD && results.busy.iter().any(|run| run.contender == name);
            let taken = taken.or_else(|| has_run.then(|| "did not finish".to_owned()));
            let taken = taken.or_else(|| (name == NO_OTHER_LOAD).then(|| NONE.to_owned()));
            let rejected = results.median_of_busy(&name, |run| Some(number(run.rejected)));
            let others = results.median_of_busy(&name, |run| Some(run.neighbor * 1e3));
            let cells = [
                taken,
                rejected.map(whole),
                others.map(|milliseconds| format!("{milliseconds:.1}")),
            ];
            [vec![name], cells.map(or_not_measured).to_vec()].concat()
        });
    let table = table(
        &["", "seconds", "rejected requests", "latency of others, ms"],
        rows.collect(),
    );
    let rounds = rounds(results.busy.iter().map(|run| run.round));
    format!("A first apply of {OBJECTS_OF_BUSY} objects, medians of {rounds}:\n\n{table}")
}
