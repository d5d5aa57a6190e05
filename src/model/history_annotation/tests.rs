use std::collections::BTreeMap;

use super::*;

fn run(number: usize) -> Run {
    Run {
        time: "2026-11-22T10:00:00Z".to_owned(),
        result: RunResult::Done,
        counts: Counts {
            created: number,
            ..Counts::default()
        },
        takes_out: false,
        operation: RunOperation::Apply,
        manifests: "0123456789ab".to_owned(),
        user: Some("jane".to_owned()),
        message: None,
        version: "v0.1.0".to_owned(),
        id: String::new(),
        renewed: None,
        others: BTreeMap::new(),
    }
}

fn running(id: &str) -> Run {
    Run {
        result: RunResult::Running,
        id: id.to_owned(),
        ..run(0)
    }
}

fn annotated(value: &str) -> Pairs {
    Pairs::from([(HISTORY_ANNOTATION.to_owned(), value.to_owned())])
}

/// The value of the annotation after this run.
fn with(run: Run, annotations: &Pairs) -> Option<String> {
    let mut history = History::from_annotations(annotations);
    history.record(run);
    history
        .to_annotation_value(annotations)
        .expect("room for runs under way")
}

fn read(annotations: &Pairs) -> Vec<Run> {
    History::from_annotations(annotations).into_runs()
}

#[test]
fn runs_are_read_back_the_latest_first() {
    let first = with(run(1), &Pairs::new()).expect("room");
    assert_eq!(
        first,
        r#"[{"time":"2026-11-22T10:00:00Z","result":"done","created":1,"manifests":"0123456789ab","user":"jane","version":"v0.1.0"}]"#
    );
    let second = with(run(2), &annotated(&first)).expect("room");
    assert_eq!(read(&annotated(&second)), [run(2), run(1)]);
}

#[test]
fn the_oldest_runs_make_room() {
    let with_message = |number, message: &str| Run {
        message: Some(shorten_message(message)),
        ..run(number)
    };
    // Quotes and control characters take more bytes in JSON.
    let largest = |number| Run {
        user: Some(shorten_user(&"\u{1}".repeat(100))),
        counts: Counts {
            created: usize::MAX,
            ..Counts::default()
        },
        ..with_message(number, &"🚀\"".repeat(100))
    };
    let runs: [(&dyn Fn(usize) -> Run, usize); 3] = [
        (&run, MAX_PAST_RUNS),
        (&|number| with_message(number, &"x".repeat(72)), MAX_PAST_RUNS),
        (&largest, 2),
    ];
    for (run, kept) in runs {
        let mut value = String::new();
        for number in 1..=30 {
            value = with(run(number), &annotated(&value)).expect("room");
            assert!(value.len() <= PAST_RUNS_BYTES, "{}", value.len());
        }
        let runs = read(&annotated(&value));
        assert_eq!(runs[0], run(30));
        assert!((kept..=MAX_PAST_RUNS).contains(&runs.len()), "{}", runs.len());
    }
}

#[test]
fn a_long_name_is_cut_before_the_run_is_written() {
    let long = Run {
        user: Some(shorten_user(&"é".repeat(5000))),
        ..run(1)
    };
    let value = with(long.clone(), &Pairs::new()).expect("room");
    assert_eq!(long.user, Some("é".repeat(64)));
    assert_eq!(read(&annotated(&value)), [long]);
    assert_eq!(shorten_user("jane"), "jane");
}

#[test]
fn other_annotations_leave_less_room_or_none() {
    let mut annotations = annotated(&with(run(1), &Pairs::new()).expect("room"));
    let entry = annotations[HISTORY_ANNOTATION].len();
    let most = ANNOTATIONS_LIMIT - HISTORY_ANNOTATION.len() - "note".len();
    annotations.insert("note".to_owned(), "x".repeat(most - entry));
    let value = with(run(2), &annotations).expect("room for one");
    assert_eq!(read(&annotated(&value)), [run(2)]);
    annotations.insert("note".to_owned(), "x".repeat(most - entry + 1));
    assert_eq!(with(run(2), &annotations), None);
    let mut history = History::default();
    history.record(running("a"));
    assert_eq!(history.to_annotation_value(&annotations), Err(NoRoom));
}

#[test]
fn what_cannot_be_read_is_dropped() {
    let table = [
        ("", 0),
        ("no list", 0),
        (r#"{"time":1}"#, 0),
        (r#"[1,{"time":"2026-11-22T10:00:00Z"}]"#, 0),
        (
            r#"[7,{"time":"x","result":"failed","later":true,"manifests":"a","version":"v9"}]"#,
            1,
        ),
    ];
    for (value, count) in table {
        assert_eq!(read(&annotated(value)).len(), count, "{value}");
    }
}

#[test]
fn runs_under_way_are_never_dropped_for_want_of_room() {
    let mut history = History::default();
    for number in 0..40 {
        history.record(running(&format!("run-{number}")));
        history.record(run(number));
    }
    let value = history
        .to_annotation_value(&Pairs::new())
        .expect("room")
        .expect("runs");
    assert!(value.len() > PAST_RUNS_BYTES);
    let runs = read(&annotated(&value));
    assert_eq!(runs.iter().filter(|run| run.is_running()).count(), 40);
    // A run that ends beside them leaves its trace.
    assert_eq!(runs.get(40), Some(&run(39)));
}

#[test]
fn an_entry_under_way_is_renewed_in_place_and_ends_as_a_past_run() {
    let mut history = History::default();
    history.record(run(1));
    history.record(running("a"));
    history.record(running("b"));
    let renewed = Run {
        renewed: Some("2026-11-22T10:04:00Z".to_owned()),
        ..running("a")
    };
    history.record(renewed.clone());
    assert_eq!(history.other_running("a").collect::<Vec<_>>(), [&running("b")]);
    assert!(history.is_running("a"));
    let mut ended = history.without_running("a");
    ended.record(run(2));
    assert_eq!(ended.into_runs(), [running("b"), run(2), run(1)]);
}

#[test]
fn a_run_is_abandoned_ten_minutes_after_its_last_renewal() {
    let renewed = |text: &str| Run {
        renewed: Some(text.to_owned()),
        ..running("a")
    };
    let now = "2026-11-22T10:10:00Z".parse().expect("a time");
    let table = [
        (running("a"), true),
        (renewed("2026-11-22T10:00:01Z"), false),
        (renewed("2026-11-22T10:00:00Z"), true),
        // The clock of the server was set back.
        (renewed("2026-11-23T10:00:00Z"), false),
        (renewed("yesterday"), true),
    ];
    for (run, expected) in table {
        assert_eq!(run.is_abandoned(now), expected, "{run:?}");
    }
    let mut history = History::default();
    history.record(run(1));
    history.record(running("a"));
    assert_eq!(history.take_abandoned(now), [running("a")]);
    assert_eq!(history.into_runs(), [run(1)]);
}

#[test]
fn what_a_later_version_has_written_is_kept_and_may_be_under_way() {
    let later = r#"{"time":"2026-11-22T10:00:00Z","result":"pausing","operation":"rollout","version":"v9","id":"a","since":{"x":1}}"#;
    let mut history = History::from_annotations(&annotated(&format!("[{later}]")));
    assert!(history.is_running("a"));
    assert_eq!(history.other_running("").count(), 1);
    history.record(run(1));
    let value = history
        .to_annotation_value(&Pairs::new())
        .expect("room")
        .expect("runs");
    let written: Vec<Value> = serde_json::from_str(&value).expect("a list");
    assert_eq!(
        written[0],
        serde_json::from_str::<Value>(later).expect("an object")
    );
}

#[test]
fn an_abandoned_run_is_a_past_run() {
    let mut history = History::default();
    history.record(run(1));
    history.record(running("a"));
    history.mark_as_abandoned("a");
    let abandoned = Run {
        result: RunResult::Abandoned,
        ..run(0)
    };
    assert_eq!(history.into_runs(), [abandoned, run(1)]);
}
