//! Tests of what the bench does without measuring: versions, and the page. The bench itself is not a
//! program of tests, so its modules are taken in here.

#[path = "main.rs"]
#[expect(dead_code, reason = "the bench is not run")]
mod bench;

// The modules name each other from the root of their crate.
pub(crate) use bench::*;

use contenders::{Contender, has_only_timed_out};
use options::Tool;
use page::{PAGES, fill};
use process::Finished;
use results::{Entrant, LinkRun, LinkStep, Machine, Measurement, Processor, Requests, Results, Step};
use scenarios::requests_of;
use tools::{program, required};

#[test]
fn versions_of_tools_are_those_of_their_modules() {
    let requirements = "go 1.26\n\nrequire (\n\ta.example/b/c v9.0.0 // indirect\n\ta.example/b v1.2.3\n)\n";
    assert_eq!(required(requirements, "a.example/b"), Some("v1.2.3"));
    let requirement = "require a.example/b v1.0.0-beta.1\n";
    assert_eq!(required(requirement, "a.example/b"), Some("v1.0.0-beta.1"));
    assert_eq!(required(requirements, "a.example"), None);
    for tool in Tool::ALL {
        let version = tool.version().expect("a version");
        assert!(version.starts_with('v'), "{version}");
        let program = program(tool).expect("a path");
        assert!(
            program.to_string_lossy().contains(version),
            "{}",
            program.display()
        );
    }
}

#[test]
fn a_run_of_kpt_counts_if_objects_are_only_not_ready_yet() {
    let applied = "apply result: 6 attempted, 6 successful, 0 skipped, 0 failed\n";
    let late = "reconcile result: 6 attempted, 3 successful, 0 skipped, 0 failed, 3 timed out\n";
    assert!(has_only_timed_out(&format!("{applied}{late}")));
    let failed = "apply result: 6 attempted, 5 successful, 0 skipped, 1 failed\n";
    assert!(!has_only_timed_out(&format!("{failed}{late}")));
    let kept = "prune result: 2 attempted, 1 successful, 1 skipped, 0 failed\n";
    assert!(!has_only_timed_out(&format!("{applied}{kept}")));
    assert!(!has_only_timed_out("error: no inventory\n"));
}

#[test]
fn requests_are_those_of_the_document_or_of_the_last_message() {
    let finished = |output: &str, messages: &str| Finished {
        seconds: 1.0,
        was_ended: false,
        processor: None,
        peak_memory: None,
        output: output.to_owned(),
        messages: messages.to_owned(),
    };
    let text = finished(
        "configmap/a created in namespace b\n",
        "note: (x)\n2 created (9 requests, 0.1 s)\n",
    );
    assert_eq!(requests_of(&text), Some(9));
    assert_eq!(requests_of(&finished("{\"requests\": 7}\n", "")), Some(7));
    assert_eq!(requests_of(&finished("configmap/a created\n", "")), None);
    assert_eq!(requests_of(&finished("", "")), None);
}

fn measurement(step: Step, contender: Contender, round: usize, seconds: f64) -> Measurement {
    Measurement {
        step,
        contender: contender.to_string(),
        objects: 1000,
        round,
        seconds,
        was_ended: seconds >= 60.0,
        processor: Processor::default(),
        requests: Requests {
            by_client: None,
            by_server: 1016,
        },
        peak_memory: Some(20_000_000),
    }
}

fn over_link(milliseconds: u64, contender: Contender, seconds: f64) -> LinkRun {
    LinkRun {
        milliseconds,
        step: LinkStep::Again,
        contender: contender.to_string(),
        round: 0,
        seconds,
        was_ended: seconds >= 60.0,
        requests: None,
        round_trips: (milliseconds > 0).then_some(3),
    }
}

fn some_results() -> Results {
    let kpt = Contender::Built(Tool::Kpt);
    let mut results = Results {
        machine: Machine {
            processors: 2,
            kubernetes: "v1.36.3".to_owned(),
            date: Some("2026-11-23".to_owned()),
            ..Machine::default()
        },
        objects: 1000,
        rounds: 1,
        contenders: vec![Entrant {
            name: kpt.to_string(),
            version: Some("v1.0.0".to_owned()),
            command: Some("kpt live apply DIRECTORY".to_owned()),
        }],
        commands: vec!["cargo bench --only lifecycle,link".to_owned()],
        measurements: vec![
            measurement(Step::First, Contender::Raw, 0, 2.0),
            measurement(Step::Again, Contender::Raw, 0, 4.0),
            measurement(Step::First, Contender::Ours, 0, 1.0),
            measurement(Step::Again, Contender::Ours, 0, 0.05),
            measurement(Step::First, kpt, 0, 60.5),
        ],
        links: vec![
            over_link(0, Contender::Ours, 0.2),
            over_link(80, Contender::Ours, 0.5),
            over_link(80, kpt, 61.0),
        ],
        ..Results::default()
    };
    results.goals = goals::judge(&results);
    results
}

fn table_of(name: &str, results: &Results) -> String {
    let text = format!("before\n<!-- measured: {name} -->\nreplaced\n<!-- end -->\nafter\n");
    let filled = fill(&text, &[name], results).expect("a table");
    assert!(filled.starts_with("before\n") && filled.ends_with("<!-- end -->\nafter\n"));
    assert!(!filled.contains("replaced"));
    filled
}

#[test]
fn tables_hold_what_was_measured_and_what_was_not() {
    let results = some_results();
    let lifecycle = table_of("lifecycle", &results);
    for row in [
        "| | first apply | unchanged | 1 changed | 10% pruned |",
        "| raw, 16 connections | 2.00 (1.00) | 4.00 (1.00) | – | – |",
        "| kubectl-applyset | 1.00 (0.50) | 0.050 (0.01) | – | – |",
        "| kapp | not measured | not measured | not measured | not measured |",
        "| kpt | more than 60 | – | – | – |",
        "| kubectl-applyset | 1,016 | 1,016 | – | – |",
        "| kubectl-applyset | 20 | 20 | – | – |",
    ] {
        assert!(lifecycle.contains(row), "{row} in {lifecycle}");
    }
    let latency = table_of("latency", &results);
    let columns = "not measured | not measured";
    for row in [
        "| | first apply, 0 ms | first apply, 80 ms | unchanged, 0 ms | unchanged, 80 ms |".to_owned(),
        format!("| kubectl-applyset | {columns} | 0.20 | 0.50 |"),
        format!("| kpt | {columns} | not measured | more than 61 |"),
        "| unchanged | 3 |".to_owned(),
        "| `view` | not measured |".to_owned(),
    ] {
        assert!(latency.contains(&row), "{row} in {latency}");
    }
    let contenders = table_of("contenders", &results);
    assert!(contenders.contains("| kpt | v1.0.0 | `kpt live apply DIRECTORY` |"));
    assert!(contenders.contains("| Helm | not measured | – |"));
    assert!(table_of("machine", &results).contains("cargo bench --only lifecycle,link\n"));
    let goals = table_of("goals", &results);
    assert!(
        goals.contains("| first apply / raw | 1.15 times | 0.50 | reached |"),
        "{goals}"
    );
    assert!(
        goals.contains("| first apply | 1,020 requests | 1,016 | reached |"),
        "{goals}"
    );
    assert!(
        goals.contains("| unchanged | 10 requests | 1,016 | **missed** |"),
        "{goals}"
    );
    assert!(goals.contains(", and 1 is missed; "), "{goals}");
    assert!(table_of("size", &results).contains("\nNot measured.\n"));
    assert!(plot::latency(&results).contains(">kubectl-applyset</text>"));
}

#[test]
fn every_page_has_its_tables_even_if_nothing_was_measured() {
    let results = Results::default();
    for (page, names) in PAGES {
        let text = std::fs::read_to_string(page).expect(page);
        let filled = fill(&text, names, &results).unwrap_or_else(|error| panic!("{page}: {error}"));
        assert_eq!(fill(&filled, names, &results).expect(page), filled);
    }
    assert!(fill("no table", &["goals"], &results).is_err());
    let other = "<!-- measured: goals -->\n<!-- end -->\n<!-- measured: x -->\n<!-- end -->\n";
    assert!(fill(other, &["goals"], &results).is_err());
    assert!(plot::size(&results).contains(">not measured</text>"));
    assert!(plot::latency(&results).contains(">not measured</text>"));
}

#[test]
fn rounds_are_compared_by_the_medians_of_their_runs() {
    let runs = |contender: Contender, round: usize, seconds: &[f64]| {
        seconds
            .iter()
            .map(|seconds| measurement(Step::First, contender, round, *seconds))
            .collect::<Vec<_>>()
    };
    // What ran first in a round was disturbed: first ours, then raw.
    let measurements = [
        runs(Contender::Ours, 0, &[9.0, 2.0, 2.0]),
        runs(Contender::Raw, 0, &[1.0, 1.0]),
        runs(Contender::Ours, 1, &[3.0, 3.0, 3.0]),
        runs(Contender::Raw, 1, &[9.0, 1.0, 1.0]),
        // A round without the other is not compared.
        runs(Contender::Ours, 2, &[7.0]),
    ];
    let results = Results {
        measurements: measurements.concat(),
        ..some_results()
    };
    let [ours, raw] = [Contender::Ours, Contender::Raw].map(|contender| contender.to_string());
    let first = |contender| (Step::First, contender, 1000);
    assert_eq!(results.ratio(first(&*ours), first(&*raw)), Some(2.5));
}

#[test]
fn merged_runs_are_further_rounds() {
    let text = serde_json::to_string(&some_results()).expect("a document");
    let again = || serde_json::from_str::<Results>(&text).expect("the same results");
    let merged = some_results().merge([again()]).expect("runs of one machine");
    let ours = Contender::Ours.to_string();
    let rounds: Vec<usize> = merged
        .runs(Step::First, &ours, 1000)
        .map(|run| run.round)
        .collect();
    assert_eq!((rounds, merged.rounds), (vec![0, 1], 2));
    assert_eq!((merged.contenders.len(), merged.commands.len()), (1, 2));

    let mut other_machine = again();
    other_machine.machine.processors = 8;
    assert!(some_results().merge([other_machine]).is_err());
    let mut other_version = again();
    other_version.contenders[0].version = Some("v2.0.0".to_owned());
    assert!(some_results().merge([other_version]).is_err());
}
