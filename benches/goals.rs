//! What is to be reached, and whether it was. Pure.

use serde::{Deserialize, Serialize};

use crate::contenders::Contender;
use crate::results::{BusyRun, LinkStep, Measurement, Results, Step};
use crate::scenarios::{
    CUSTOM_KINDS, NAMESPACES, OBJECTS_OF_BUSY, OBJECTS_OF_LINKS, RECORDED_NAMESPACES, WIDE_KINDS,
    large_sizes, sizes,
};

/// One goal and what was measured.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Goal {
    pub(crate) name: String,
    pub(crate) at_most: f64,
    pub(crate) measured: Option<f64>,
    pub(crate) unit: String,
    pub(crate) verdict: Verdict,
}

/// What a measurement says of a goal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Verdict {
    Reached,
    Missed,
    NotMeasured,
}

const RATIO: &str = "times";
const REQUESTS: &str = "requests";
const ROUND_TRIPS: &str = "round trips";

/// The links of the goals: round trips in milliseconds.
const LINKS: [u64; 3] = [0, 20, 80];
/// The link whose round trips are counted: nothing else takes as long as one.
const LONG_LINK: u64 = 80;
/// The largest program file, in MB, built as a release for x86-64 Linux.
const PROGRAM_FILE: f64 = 12.3;

/// Requests of a run that prunes objects of four kinds in one namespace, without its deletes: discovery and
/// the parent (3), the namespace (1), the members twice (8), owner references of the parent (1), permissions
/// (1), the user (1), and the begin and the end of the run on the parent (2). The object that an earlier step
/// changed is changed back (1).
const REQUESTS_WITHOUT_DELETES: f64 = 18.0;

/// Requests of a run that changes one of the same objects: discovery and the parent (3), the namespace (1), the
/// members (4), permissions (1), the user (1), the begin and the end of the run (2), and the change (1).
const REQUESTS_OF_ONE_CHANGE: f64 = 13.0;

/// How much steeper a line may become that counts as straight: measurements vary.
const STRAIGHT: f64 = 1.3;

/// Judges all goals, measured or not.
pub(crate) fn judge(results: &Results) -> Vec<Goal> {
    let mut goals = Vec::new();
    lifecycle(results, &mut goals);
    growth(results, &mut goals);
    links(results, &mut goals);
    busy(results, &mut goals);
    let spread = (Step::SpreadAgain, Contender::Ours, NAMESPACES * 20);
    let name = "20 kinds in 50 namespaces, unchanged";
    goals.push(goal(name, 60.0, requests(results, spread), REQUESTS));
    large(results, &mut goals);
    wide(results, &mut goals);
    let real = results.real.as_ref();
    let differing = real.map(|real| {
        let differing = real.remarks.iter().filter(|remark| remark.action != "unchanged");
        count(differing.count())
    });
    let share = real.map(|real| {
        let sent: u64 = real.sent.iter().map(|(_, count)| count).sum();
        100.0 * number(sent) / count(real.objects)
    });
    goals.push(goal("real manifests not `unchanged`", 0.0, differing, "objects"));
    goals.push(goal("real manifests sent again", 10.0, share, "percent"));
    let startup = results.startup.as_ref();
    let milliseconds = startup.map(|startup| startup.version * 1e3);
    goals.push(goal("`version`", 4.0, milliseconds, "ms"));
    let milliseconds = startup.map(|startup| startup.completion * 1e3);
    goals.push(goal("completion without a cluster", 50.0, milliseconds, "ms"));
    let megabytes = startup.map(|startup| number(startup.bytes) / 1e6);
    goals.push(goal("program file", PROGRAM_FILE, megabytes, "MB"));
    goals
}

fn lifecycle(results: &Results, goals: &mut Vec<Goal>) {
    let objects = results.objects;
    let all = count(objects);
    let table = [
        ("first apply / raw", Step::First, Step::First, 1.15, all + 20.0),
        ("unchanged / raw", Step::Again, Step::Again, 0.15, 10.0),
        (
            "one changed / raw unchanged",
            Step::Changed,
            Step::Again,
            0.2,
            REQUESTS_OF_ONE_CHANGE,
        ),
        (
            "10% pruned / raw unchanged",
            Step::Dropped,
            Step::Again,
            0.3,
            all / 10.0 + REQUESTS_WITHOUT_DELETES,
        ),
    ];
    let (ours, raw) = (Contender::Ours.to_string(), Contender::Raw.to_string());
    for (name, step, step_of_raw, ratio, most_requests) in table {
        let measured = results.ratio((step, &ours, objects), (step_of_raw, &raw, objects));
        goals.push(goal(name, ratio, measured, RATIO));
        let measured = requests(results, (step, Contender::Ours, objects));
        goals.push(goal(
            name.split(" / ").next().unwrap_or(name),
            most_requests,
            measured,
            REQUESTS,
        ));
    }
}

fn growth(results: &Results, goals: &mut Vec<Goal>) {
    let [_, objects, more] = sizes(results.objects);
    let ours = Contender::Ours.to_string();
    let (here, there) = (
        (Step::GrowthAgain, &*ours, objects),
        (Step::GrowthAgain, &*ours, more),
    );
    goals.push(goal(
        "tenfold set, unchanged, time",
        10.0,
        results.ratio(there, here),
        RATIO,
    ));
    let requests = |key: (Step, &str, usize)| results.median_of(key, |run| Some(number(run.requests.most())));
    let ratio = requests(there)
        .zip(requests(here))
        .map(|(there, here)| there / here);
    goals.push(goal("tenfold set, unchanged, requests", 10.0, ratio, RATIO));
    let memory = results.median_of(there, |run| Some(number(run.peak_memory?) / 1e6));
    goals.push(goal("tenfold set, unchanged, peak memory", 120.0, memory, "MB"));
}

fn links(results: &Results, goals: &mut Vec<Goal>) {
    let (ours, raw) = (Contender::Ours.to_string(), Contender::Raw.to_string());
    for milliseconds in LINKS {
        let first = |contender| (milliseconds, LinkStep::First, contender);
        let name = format!("first {OBJECTS_OF_LINKS} over {milliseconds} ms / raw");
        let measured = results.ratio_over_link(first(&*ours), first(&*raw));
        goals.push(goal(&name, 1.3, measured, RATIO));
    }
    for (step, name, most) in [
        (LinkStep::First, "first 300", 16.0),
        (LinkStep::FirstOfTen, "first 10", 7.0),
        (LinkStep::Pruned, "30 of 300 pruned", 6.0),
        (LinkStep::Again, "unchanged set of a Secret", 3.0),
        (LinkStep::AgainOfConfigMap, "unchanged set of a ConfigMap", 3.0),
        (LinkStep::View, "view", 3.0),
        (LinkStep::List, "list", 4.0),
    ] {
        let key = (LONG_LINK, step, &*ours);
        let trips = results.median_over_link(key, |run| Some(number(run.round_trips?)));
        goals.push(goal(&format!("{name}, after TCP"), most, trips, ROUND_TRIPS));
    }
}

fn busy(results: &Results, goals: &mut Vec<Goal>) {
    let [ours, raw, kubectl] = [Contender::Ours, Contender::Raw, Contender::KubectlServerSide]
        .map(|contender| contender.to_string());
    let ratio = |other: &str, what: fn(&BusyRun) -> Option<f64>| {
        let measured = results.median_of_busy(&ours, what)?;
        Some(measured / results.median_of_busy(other, what)?)
    };
    let name = format!("first {OBJECTS_OF_BUSY} with few seats / raw");
    goals.push(goal(&name, 1.0, ratio(&raw, |run| run.seconds), RATIO));
    let measured = ratio(&kubectl, |run| Some(run.neighbor));
    goals.push(goal(
        "latency of others / kubectl, server-side",
        1.0,
        measured,
        RATIO,
    ));
}

/// What of a run is looked at; `None` if it was not measured.
type Cost = fn(&Measurement) -> Option<f64>;

/// Judges what an unchanged set of fifty times the size costs, and whether each cost of a set grows no faster
/// than its number of objects.
fn large(results: &Results, goals: &mut Vec<Goal>) {
    let [.., largest] = large_sizes(results.objects);
    let ours = Contender::Ours.to_string();
    let key = (Step::LargeAgain, &*ours, largest);
    let name = |what: &str| format!("{largest} unchanged, {what}");
    let seconds = results.seconds(Step::LargeAgain, &ours, largest);
    goals.push(goal(&name("time"), 4.0, seconds, "s"));
    let memory = results.median_of(key, |run| Some(number(run.peak_memory?) / 1e6));
    goals.push(goal(&name("peak memory"), 150.0, memory, "MB"));
    let costs: [(&str, Cost); 3] = [
        ("time", |run| Some(run.seconds)),
        ("memory", |run| Some(number(run.peak_memory?))),
        ("requests", |run| Some(number(run.requests.most()))),
    ];
    for (step, shown) in [(Step::LargeAgain, "unchanged"), (Step::LargePruned, "pruned")] {
        for (what, cost) in costs {
            let mut name = format!("{shown}: {what} per further object");
            let mut measured = steepening(results, (step, Contender::Ours), cost);
            // The more objects there are, the longer the server takes for each delete, with raw as well.
            if (step, what) == (Step::LargePruned, "time") {
                name.push_str(" / raw");
                let of_raw = steepening(results, (step, Contender::Raw), cost);
                measured = measured.zip(of_raw).map(|(ours, raw)| ours / raw);
            }
            goals.push(goal(&name, STRAIGHT, measured, RATIO));
        }
    }
}

/// How steep the line of a cost is between the two larger sizes, divided by how steep it is between the two
/// smaller ones: 1 if it is straight; `None` if a size was not measured.
fn steepening(results: &Results, (step, contender): (Step, Contender), cost: Cost) -> Option<f64> {
    let contender = contender.to_string();
    let sizes = large_sizes(results.objects);
    let costs = sizes.map(|size| results.median_of((step, &contender, size), cost));
    let [Some(small), Some(middle), Some(large)] = costs else {
        return None;
    };
    let [few, more, most] = sizes.map(count);
    Some((large - middle) / (most - more) / ((middle - small) / (more - few)))
}

/// Sets of many kinds cost one LIST for each; their definitions are a kind, too. Namespaces and their objects
/// are listed in pages of at least 500.
fn wide(results: &Results, goals: &mut Vec<Goal>) {
    for (name, step, number, most) in [
        (
            "custom kinds, unchanged",
            Step::KindsAgain,
            CUSTOM_KINDS,
            CUSTOM_KINDS + 20,
        ),
        (
            "kinds in 200 namespaces",
            Step::WideAgain,
            WIDE_KINDS,
            WIDE_KINDS + 20,
        ),
        (
            "recorded namespaces",
            Step::RecordAgain,
            RECORDED_NAMESPACES,
            2 * RECORDED_NAMESPACES / 500 + 10,
        ),
    ] {
        let measured = requests(results, (step, Contender::Ours, number));
        goals.push(goal(&format!("{number} {name}"), count(most), measured, REQUESTS));
    }
}

fn requests(results: &Results, (step, contender, objects): (Step, Contender, usize)) -> Option<f64> {
    results.median_of((step, &contender.to_string(), objects), |run| {
        Some(number(run.requests.most()))
    })
}

fn goal(name: &str, at_most: f64, measured: Option<f64>, unit: &'static str) -> Goal {
    Goal {
        name: name.to_owned(),
        at_most,
        measured,
        unit: unit.to_owned(),
        verdict: match measured {
            None => Verdict::NotMeasured,
            Some(measured) if measured <= at_most => Verdict::Reached,
            Some(_) => Verdict::Missed,
        },
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "nothing that is counted here has 16 digits"
)]
pub(crate) fn number(count: u64) -> f64 {
    count as f64
}

#[expect(
    clippy::cast_precision_loss,
    reason = "nothing that is counted here has 16 digits"
)]
pub(crate) fn count(count: usize) -> f64 {
    count as f64
}
