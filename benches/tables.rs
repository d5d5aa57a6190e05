//! The results as tables of at most 80 columns: goals, ratios, seconds, requests, memory.

use std::fmt::Write as _;

use crate::contenders::Contender;
use crate::goals::{Verdict, number};
use crate::results::{LinkKey, Measurement, Processor, Requests, Results, Step};
use crate::scenarios::{OBJECTS_OF_BUSY, OBJECTS_OF_LINKS};

/// The steps that all contenders do, and what each is compared with.
const STEPS: [(Step, &str, Step); 4] = [
    (Step::First, "first", Step::First),
    (Step::Again, "again", Step::Again),
    (Step::Changed, "1 changed", Step::Again),
    (Step::Dropped, "10% dropped", Step::Again),
];

/// All tables, one after the other.
pub(crate) fn text(results: &Results) -> String {
    let machine = &results.machine;
    let mut text = format!(
        "Kubernetes {}, {} processors, load before the start {}; medians of {} rounds\n",
        machine.kubernetes,
        machine.processors,
        machine
            .load_before
            .map_or("unknown".to_owned(), |load| format!("{load:.2}")),
        results.rounds
    );
    if !results.missing.is_empty() {
        let missing = results.missing.join(" and ");
        line(
            &mut text,
            format_args!("Not found, and so not measured: {missing} (--with builds them from Go modules)"),
        );
    }
    goals(results, &mut text);
    lifecycle(results, &mut text);
    sizes(results, &mut text);
    links(results, &mut text);
    busy(results, &mut text);
    real(results, &mut text);
    text
}

fn goals(results: &Results, text: &mut String) {
    line(
        text,
        format_args!("\n{:<40}{:>8}{:>9}", "Goal", "at most", "measured"),
    );
    for goal in &results.goals {
        let verdict = match goal.verdict {
            Verdict::Reached => "reached",
            Verdict::Missed => "MISSED",
            Verdict::NotMeasured => "unmeasured",
        };
        let at_most = figure(goal.at_most);
        let measured = goal.measured.map_or("-".to_owned(), figure);
        line(
            text,
            format_args!(
                "{:<40}{at_most:>8}{measured:>9} {:<11} {verdict}",
                goal.name, goal.unit
            ),
        );
    }
}

fn lifecycle(results: &Results, text: &mut String) {
    let objects = results.objects;
    let raw = Contender::Raw.to_string();
    let has_all = |step: Step| results.runs(step, &raw, objects).next().is_some();
    if !has_all(Step::First) {
        return;
    }
    table(
        results,
        text,
        "Time, raw = 1 (changed, dropped: raw again = 1)",
        |key, base| Some(format!("{:.2}", results.ratio(key, (base, &raw, objects))?)),
    );
    table(results, text, &format!("Seconds, {objects} objects"), |key, _| {
        seconds(results, key)
    });
    let processor = |key: (Step, &str, usize), of: fn(Processor) -> Option<f64>| {
        let seconds = results.median_of(key, |run| of(run.processor))?;
        Some(format!("{seconds:.2}"))
    };
    table(
        results,
        text,
        "Seconds of processors that the client had",
        |key, _| processor(key, |processor| processor.client),
    );
    table(
        results,
        text,
        "Seconds of processors that the server had",
        |key, _| processor(key, |processor| processor.server),
    );
    table(results, text, "Requests, as the server counted", |key, _| {
        median_of_requests(results, key, |requests| Some(requests.by_server))
    });
    table(results, text, "Requests, as the client counted", |key, _| {
        median_of_requests(results, key, |requests| requests.by_client)
    });
    table(results, text, "Peak memory of the client, MB", |key, _| {
        let memory = results.median_of(key, |run| Some(number(run.peak_memory?)))?;
        Some(format!("{:.0}", memory / 1e6))
    });
}

/// The median, or how long was waited in vain.
fn seconds(results: &Results, (step, contender, objects): (Step, &str, usize)) -> Option<String> {
    if let Some(seconds) = results.seconds(step, contender, objects) {
        return Some(format!("{seconds:.3}"));
    }
    let run = results.runs(step, contender, objects).next()?;
    Some(format!("> {:.0}", run.seconds))
}

fn median_of_requests(
    results: &Results,
    key: (Step, &str, usize),
    count: impl Fn(Requests) -> Option<u64>,
) -> Option<String> {
    let median = results.median_of(key, |run| Some(number(count(run.requests)?)))?;
    Some(figure(median))
}

/// A row for each contender that has anything to show, a column for each step.
fn table(
    results: &Results,
    text: &mut String,
    title: &str,
    cell: impl Fn((Step, &str, usize), Step) -> Option<String>,
) {
    let [first, again, changed, dropped] = STEPS.map(|(_, name, _)| name);
    line(
        text,
        format_args!(
            "\n{title}\n{:<24}{first:>12}{again:>12}{changed:>12}{dropped:>14}",
            ""
        ),
    );
    for contender in contenders(results) {
        let cells = STEPS.map(|(step, _, base)| cell((step, contender, results.objects), base));
        if cells.iter().all(Option::is_none) {
            continue;
        }
        let [first, again, changed, dropped] = cells.map(|cell| cell.unwrap_or_else(|| "-".to_owned()));
        line(
            text,
            format_args!("{contender:<24}{first:>12}{again:>12}{changed:>12}{dropped:>14}"),
        );
    }
}

/// Names in the order in which they were first measured.
fn contenders(results: &Results) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for run in &results.measurements {
        if !names.contains(&run.contender.as_str()) {
            names.push(&run.contender);
        }
    }
    names
}

/// Sets of other sizes and shapes.
fn sizes(results: &Results, text: &mut String) {
    let mut rows: Vec<(&Measurement, Step)> = Vec::new();
    for run in &results.measurements {
        let is_other = STEPS.iter().all(|(step, _, _)| *step != run.step);
        let is_new = !rows.iter().any(|(row, step)| {
            (row.objects, &row.contender, *step) == (run.objects, &run.contender, run.step)
        });
        if is_other && is_new {
            rows.push((run, run.step));
        }
    }
    if rows.is_empty() {
        return;
    }
    line(
        text,
        format_args!(
            "\nOther sets\n{:<24}{:>8} {:<14}{:>9}{:>11}{:>8}",
            "", "objects", "", "seconds", "requests", "MB"
        ),
    );
    for (row, step) in rows {
        let key = (step, row.contender.as_str(), row.objects);
        let name = match step {
            Step::SpreadFirst => "spread, first",
            Step::SpreadAgain => "spread, again",
            Step::LargeFirst => "small, first",
            Step::LargeAgain => "small, again",
            Step::LargePruned => "small, pruned",
            Step::KindsFirst => "kinds, first",
            Step::KindsAgain => "kinds, again",
            Step::WideFirst => "wide, first",
            Step::WideAgain => "wide, again",
            Step::RecordFirst => "record, first",
            Step::RecordAgain => "record, again",
            Step::GrowthFirst | Step::First => "first",
            Step::GrowthAgain | Step::Again | Step::Changed | Step::Dropped => "again",
        };
        let seconds = seconds(results, key).unwrap_or_default();
        let requests = median_of_requests(results, key, |requests| Some(requests.most()));
        let requests = requests.unwrap_or_else(|| "-".to_owned());
        let memory = results.median_of(key, |run| Some(number(run.peak_memory?) / 1e6));
        let memory = memory.map_or("-".to_owned(), |memory| format!("{memory:.0}"));
        line(
            text,
            format_args!(
                "{:<24}{:>8} {name:<14}{seconds:>9}{requests:>11}{memory:>8}",
                row.contender, row.objects
            ),
        );
    }
}

/// Runs over links with latency.
fn links(results: &Results, text: &mut String) {
    let mut keys: Vec<LinkKey<'_>> = Vec::new();
    for run in &results.links {
        let key = (run.milliseconds, run.step, run.contender.as_str());
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    if keys.is_empty() {
        return;
    }
    line(
        text,
        format_args!(
            "\nOver links, {OBJECTS_OF_LINKS} objects; round trips one after the other, after TCP\n{:<24}{:>6} {:<18}{:>9}{:>10}{:>12}",
            "", "ms", "", "seconds", "requests", "round trips"
        ),
    );
    for key in keys {
        let (milliseconds, step, contender) = key;
        let cell = |median: Option<f64>| median.map_or("-".to_owned(), figure);
        let seconds = results.median_over_link(key, |run| Some(run.seconds));
        let seconds = seconds.map_or("-".to_owned(), |seconds| format!("{seconds:.3}"));
        let requests = cell(results.median_over_link(key, |run| Some(number(run.requests?))));
        let trips = cell(results.median_over_link(key, |run| Some(number(run.round_trips?))));
        line(
            text,
            format_args!(
                "{contender:<24}{milliseconds:>6} {:<18}{seconds:>9}{requests:>10}{trips:>12}",
                step.name()
            ),
        );
    }
}

/// Runs with few seats on the server.
fn busy(results: &Results, text: &mut String) {
    let mut names: Vec<&str> = Vec::new();
    for run in &results.busy {
        if !names.contains(&run.contender.as_str()) {
            names.push(&run.contender);
        }
    }
    if names.is_empty() {
        return;
    }
    line(
        text,
        format_args!(
            "\nFew seats on the server, {OBJECTS_OF_BUSY} objects\n{:<24}{:>9}{:>10}{:>24}",
            "", "seconds", "rejected", "others wait, ms"
        ),
    );
    for name in names {
        let cell = |median: Option<f64>| median.map_or("-".to_owned(), figure);
        let seconds = cell(results.median_of_busy(name, |run| run.seconds));
        let rejected = cell(results.median_of_busy(name, |run| Some(number(run.rejected))));
        let neighbor = cell(results.median_of_busy(name, |run| Some(run.neighbor * 1e3)));
        line(
            text,
            format_args!("{name:<24}{seconds:>9}{rejected:>10}{neighbor:>24}"),
        );
    }
}

fn real(results: &Results, text: &mut String) {
    let Some(real) = &results.real else {
        return;
    };
    let sent: u64 = real.sent.iter().map(|(_, count)| count).sum();
    line(
        text,
        format_args!(
            "\nReal manifests applied again: {} objects, {sent} of them sent, {} requests",
            real.objects,
            real.requests.most()
        ),
    );
    for (resource, count) in &real.sent {
        line(text, format_args!("  {count:>4} {resource}"));
    }
    for remark in &real.remarks {
        line(
            text,
            format_args!("  {} {}: {}", remark.object, remark.action, remark.reason),
        );
    }
}

fn figure(value: f64) -> String {
    if value.fract() == 0.0 {
        format!("{value:.0}")
    } else if value < 10.0 {
        format!("{value:.3}")
    } else {
        format!("{value:.1}")
    }
}

fn line(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    // Writing into a String cannot fail.
    let _ = writeln!(text, "{}", arguments.to_string().trim_end());
}
