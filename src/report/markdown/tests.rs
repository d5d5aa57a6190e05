use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::compare::diff::{Difference, OwnershipChange};
use crate::error::Error;
use crate::event::{Action, Claims, ObjectOutcome, Operation, Resume, Subject};
use crate::model::identity::{GroupKind, ObjectKey};
use crate::model::resource::{Resource, Scope};
use crate::model::write_settings::DryRun;
use crate::plan::Refusal;
use crate::report::diff::kinds::Cause;
use crate::report::diff::{Comparison, Differences};
use crate::report::documents::ContextAndServer;
use crate::report::documents::report::Collected;

const DONE: RunEnd = RunEnd::Complete;

const LIMIT: usize = 65_536;

fn key(kind: &str, name: &str) -> ObjectKey {
    ObjectKey {
        group_kind: GroupKind::new("", kind),
        namespace: Some("shop".to_owned()),
        name: name.to_owned(),
    }
}

fn outcome(action: Action, kind: &str, name: &str) -> ObjectOutcome {
    let resource = Arc::new(Resource::with_regular_names("", "v1", kind, Scope::Namespaced));
    ObjectOutcome::new(Subject::new(&key(kind, name), &resource, None), action)
}

fn comparison(action: Action, kind: &str, name: &str, states: [Option<Value>; 2]) -> Comparison {
    let resource = Arc::new(Resource::with_regular_names("", "v1", kind, Scope::Namespaced));
    let [live, predicted] = states;
    Comparison {
        difference: Difference::new(&resource, &key(kind, name), live.as_ref(), predicted.as_ref()),
        outcome: outcome(action, kind, name),
        ownership: None,
        cause: Cause::Unknown,
    }
}

fn data(value: &str) -> Value {
    json!({"data": {"key": value}})
}

fn set() -> SetDocument {
    SetDocument {
        kind: Some("Secret".to_owned()),
        group: Some(String::new()),
        namespace: Some("shop".to_owned()),
        ..SetDocument::from_name("web")
    }
}

fn cut(found: &Differences, limit: usize) -> String {
    whole(found).text(limit)
}

fn whole(found: &Differences) -> Page {
    diff_page(
        (&set(), &ContextAndServer::default()),
        found,
        DONE,
        &[],
        Vec::new(),
    )
}

fn page(objects: Vec<Comparison>) -> String {
    let found = Differences {
        objects,
        ..Differences::default()
    };
    cut(&found, LIMIT)
}

/// Asserts that the words come in this order.
#[track_caller]
fn assert_order(text: &str, words: &[&str]) {
    let mut rest = text;
    for word in words {
        let place = rest
            .find(word)
            .unwrap_or_else(|| panic!("no {word:?} in {rest}\nof {text}"));
        rest = &rest[place + word.len()..];
    }
}

#[test]
fn a_plan_is_a_headline_and_an_entry_for_each_object() {
    let text = page(vec![
        comparison(
            Action::Configured,
            "ConfigMap",
            "web",
            [Some(data("old")), Some(data("new"))],
        ),
        comparison(Action::Unchanged, "ConfigMap", "same", [None, None]),
    ]);
    assert_eq!(
        text,
        "### ApplySet `secret/web in shop`: 1 to change\n\
         \n\
         1 unchanged\n\
         \n\
         <details>\n\
         <summary><b>change</b> <code>configmap/web in namespace shop</code></summary>\n\
         \n\
         ```diff\n\
         @@ -1,2 +1,2 @@\n \
         data:\n\
         -  key: old\n\
         +  key: new\n\
         ```\n\
         \n\
         </details>\n"
    );
    assert_eq!(
        page(Vec::new()),
        "### ApplySet `secret/web in shop`: no changes\n"
    );
}

#[test]
fn what_is_dangerous_comes_first() {
    let mut recreated = comparison(
        Action::Recreated,
        "Job",
        "run",
        [Some(data("a")), Some(data("b"))],
    );
    recreated.outcome.reason = "field is immutable".to_owned();
    recreated.outcome.claims = Claims::Lost;
    let mut failed = comparison(Action::Failed, "Service", "bad", [None, None]);
    failed.outcome.error = Some("port 0".into());
    let claim = key("PersistentVolumeClaim", "data");
    let mut refused = comparison(Action::Pruned, "PersistentVolumeClaim", "data", [None, None]);
    refused.outcome.error = Some("refused".into());
    let mut service = comparison(Action::Configured, "Service", "owned", [None, None]);
    let owned_by = |manager: &str| json!({"metadata": {"managedFields": [{"manager": manager, "fieldsV1": {"f:spec": {}}}]}});
    service.ownership = Some(OwnershipChange::new(&owned_by("helm"), &owned_by("applyset")));
    let mut kept = comparison(Action::Skipped, "Secret", "mine", [None, None]);
    kept.outcome.reason = "marked".to_owned();
    let found = Differences {
        objects: vec![
            kept,
            comparison(Action::Created, "ConfigMap", "new", [None, Some(data("n"))]),
            service,
            comparison(Action::Pruned, "Namespace", "old", [Some(data("o")), None]),
            failed,
            refused,
            recreated,
        ],
        refusals: vec![Refusal::PrunesStorage { object: claim }],
        failures: vec!["parent: failed".into()],
        ..Differences::default()
    };
    let warnings = vec!["watch out".to_owned(), "watch out".to_owned()];
    let place = ContextAndServer {
        context: Some("prod".to_owned()),
        ..ContextAndServer::default()
    };
    let text = diff_page((&set(), &place), &found, DONE, &warnings, Vec::new()).text(LIMIT);
    assert_order(
        &text,
        &[
            "1 to create, 1 to change, 1 to recreate, 2 to prune, 1 would fail, refused\n",
            "1 kept · context `prod`\n",
            "**Refused: apply would write nothing**\n",
            "- `deleting persistentvolumeclaim/data in namespace shop would lose its data`\n",
            "  - hint: ``keep an object",
            "**Data would be lost**\n\n- recreate `job/run in namespace shop`: its data would be lost\n",
            "- prune `namespace/old in namespace shop`: with everything in it\n",
            "**Errors**\n\n- `parent: failed`\n",
            "**Would fail**\n\n- `service/bad in namespace shop: port 0`\n",
            "**Warnings**\n\n- `watch out`\n",
            "<b>recreate</b> <code>job/run in namespace shop</code>: <code>field is immutable</code>",
            "<b>prune</b> <code>namespace/old",
            "<b>change</b> <code>service/owned in namespace shop</code>: <code>ownership only: helm -&gt; applyset</code>",
            "<b>create</b> <code>configmap/new",
            "<summary>1 kept</summary>\n\n- `secret/mine in namespace shop`: `marked`\n",
        ],
    );
}

#[test]
fn a_renamed_object_is_one_entry_and_two_counts() {
    let text = page(vec![
        comparison(
            Action::Pruned,
            "Secret",
            "app-5m2k8t4h9b",
            [Some(data("b2xk")), None],
        ),
        comparison(
            Action::Created,
            "Secret",
            "app-bfh72cttk6",
            [None, Some(data("bmV3"))],
        ),
    ]);
    assert_order(
        &text,
        &[
            "1 to create, 1 to prune\n",
            "<b>rename</b> <code>secret/app-5m2k8t4h9b in namespace shop</code>: \
             <code>pruned, and created as app-bfh72cttk6</code>",
        ],
    );
    assert_eq!(text.matches("<details>").count(), 1, "{text}");
    assert!(!text.contains("b2xk") && !text.contains("bmV3"), "{text}");
}

#[test]
fn only_refusals_or_an_error_make_a_page() {
    let found = Differences {
        refusals: vec![Refusal::EmptyManifests { objects: Vec::new() }],
        ..Differences::default()
    };
    let text = cut(&found, LIMIT);
    assert!(
        text.starts_with("### ApplySet `secret/web in shop`: refused\n\n**Refused"),
        "{text}"
    );
    let usage = Error::usage("a`b is wrong", "look");
    let end = RunEnd::Failed(&usage);
    let set = SetDocument::from_name("web");
    let place = ContextAndServer::default();
    let text = diff_page((&set, &place), &Differences::default(), end, &[], Vec::new()).text(LIMIT);
    let expected = "### ApplySet `web`: wrong manifests\n\n**Errors**\n\n\
         - ``a`b is wrong``\n  - hint: `look`\n";
    assert_eq!(text, expected);
    let run = collected(Vec::new());
    assert_eq!(
        run_page((&set, &place), &run, end, Vec::new()).text(LIMIT),
        expected
    );
}

#[test]
fn text_of_others_stays_text() {
    let hostile = [
        "@everyone look at https://evil.example #1",
        "</code></summary></details><script>alert(1)</script>",
        "a | b | [x](https://evil.example) ![i](y)",
        "`` ` ``` ````",
        "two\nlines\n### headline\n</details>",
        "\u{202e}gnp.exe ::add-mask::x ##[group]x",
        "\n```\n</details>\n\n@everyone <img src=x onerror=y>\n\n````` \n",
    ];
    for text in hostile {
        let mut recreated = comparison(
            Action::Recreated,
            "Job",
            text,
            [Some(data("a")), Some(data(text))],
        );
        recreated.outcome.reason = text.to_owned();
        let mut failed = comparison(Action::Failed, "Job", text, [None, None]);
        failed.outcome.error = Some(
            Message::new(text)
                .with_details([text.to_owned()])
                .with_hint(text)
                .into(),
        );
        let found = Differences {
            objects: vec![
                recreated,
                failed,
                comparison(Action::Pruned, "PersistentVolume", text, [Some(data(text)), None]),
            ],
            failures: vec![text.into()],
            ..Differences::default()
        };
        let set = SetDocument::from_name(text);
        let place = ContextAndServer {
            context: Some(text.to_owned()),
            ..ContextAndServer::default()
        };
        let page = diff_page((&set, &place), &found, DONE, &[text.to_owned()], Vec::new()).text(LIMIT);
        assert_inert(&page);
        let mut run = collected(found.objects.into_iter().map(|object| object.outcome).collect());
        run.warnings = vec![text.to_owned()];
        assert_inert(&run_page((&set, &place), &run, DONE, vec![text.to_owned()]).text(LIMIT));
    }
}

/// Asserts that nothing remains of a page but text of this program once its code is removed, as a reader
/// of `CommonMark` removes it.
#[track_caller]
fn assert_inert(page: &str) {
    let mut rest = String::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let ticks = line.len() - line.trim_start_matches('`').len();
        if ticks >= 3 {
            let closes = |line: &str| line.len() >= ticks && line.bytes().all(|byte| byte == b'`');
            assert!(lines.any(closes), "no end of {line:?} in {page}");
            continue;
        }
        rest.push_str(&without_code(line));
        rest.push('\n');
    }
    for sign in [
        "@", "http", "evil", "script", "img", "[", "](", "`", "group", "mask", "\u{202e}",
    ] {
        assert!(!rest.contains(sign), "{sign} in {rest}\nof {page}");
    }
    assert_eq!(
        rest.matches("<details>").count(),
        rest.matches("</details>").count()
    );
    assert_eq!(rest.matches('<').count(), rest.matches('>').count());
    assert_eq!(
        rest.lines().filter(|line| line.starts_with('#')).count(),
        1,
        "{rest}"
    );
}

/// Removes the code spans of a line, and the code elements of one that is HTML.
fn without_code(line: &str) -> String {
    let mut kept = String::new();
    let mut rest = line;
    if line.starts_with('<') {
        while let Some((before, code)) = rest.split_once("<code>") {
            kept.push_str(before);
            let (code, behind) = code.split_once("</code>").expect("an end");
            assert!(!code.contains(['<', '>', '"']), "{code}");
            rest = behind;
        }
        return kept + rest;
    }
    while let Some(start) = rest.find('`') {
        kept.push_str(&rest[..start]);
        let span = &rest[start..];
        let ticks = span.len() - span.trim_start_matches('`').len();
        rest = behind_run(&span[ticks..], ticks);
    }
    kept + rest
}

/// Returns the text behind the first run of exactly this many backticks.
fn behind_run(text: &str, ticks: usize) -> &str {
    let mut start = 0;
    while let Some(found) = text[start..].find('`') {
        let run = &text[start + found..];
        let length = run.len() - run.trim_start_matches('`').len();
        if length == ticks {
            return &run[length..];
        }
        start += found + length;
    }
    panic!("a span without an end: {text}");
}

fn many() -> Differences {
    let long = "ä€".repeat(400);
    let mut objects: Vec<Comparison> = (0..40)
        .map(|number| {
            let name = format!("map-{number}");
            comparison(
                Action::Configured,
                "ConfigMap",
                &name,
                [Some(data("old")), Some(data(&long))],
            )
        })
        .collect();
    objects.push(comparison(
        Action::Pruned,
        "Service",
        "gone",
        [Some(data("x")), None],
    ));
    for (number, object) in objects.iter_mut().enumerate().take(3) {
        object.outcome.action = Action::Failed;
        object.outcome.error = Some(format!("{number} {long}").into());
    }
    Differences {
        objects,
        ..Differences::default()
    }
}

#[test]
fn a_hint_of_several_messages_is_shown_once() {
    let mut objects: Vec<Comparison> = (0..3)
        .map(|number| comparison(Action::Failed, "Job", &number.to_string(), [None, None]))
        .collect();
    for object in &mut objects {
        object.outcome.error = Some(Message::new("conflict").with_hint("take them").into());
    }
    let text = page(objects);
    assert_order(
        &text,
        &[
            "3 would fail",
            "job/0",
            "job/1",
            "job/2",
            "  - hint: `take them`\n",
        ],
    );
    assert_eq!(text.matches("hint").count(), 1, "{text}");
}

#[test]
fn a_page_is_cut_between_objects_and_counts_the_others() {
    let page = whole(&many());
    let whole = page.text(1_000_000);
    assert!(!whole.contains("Left out"), "{whole}");
    for limit in (1024..whole.len() + 100).step_by(97) {
        let text = page.text(limit);
        assert!(text.len() <= limit, "{} > {limit}", text.len());
        assert_inert(&text);
        let briefly = text.matches("(diff left out)").count();
        assert_eq!(number_before(&text, " diff"), briefly, "{text}");
        let left_out = number_before(&text, " line");
        assert_eq!(count_entries(&text) + left_out, count_entries(&whole), "{text}");
    }
    let text = page.text(8192);
    assert_order(
        &text,
        &[
            "<b>prune</b>",
            "```diff",
            "<b>change</b>",
            "(diff left out)",
            "**Left out**",
        ],
    );
}

/// Counts the objects and messages on a page.
fn count_entries(text: &str) -> usize {
    text.matches("<b>").count() + text.matches("\n- `").count()
}

/// Returns the number before this word in the last line.
fn number_before(text: &str, word: &str) -> usize {
    let last = text.lines().last().unwrap_or_default();
    if !last.starts_with("**Left out**") {
        return 0;
    }
    let before = last
        .split(": ")
        .nth(1)
        .and_then(|counts| counts.split(word).next());
    let before = before.filter(|before| last.contains(word) && !before.is_empty());
    let number = before.and_then(|before| before.rsplit(' ').next());
    number.and_then(|number| number.parse().ok()).unwrap_or_default()
}

#[test]
fn the_headline_fits_into_the_smallest_page() {
    for text in [
        "`".repeat(9999),
        "€".repeat(9999),
        "\n".repeat(9999),
        "a".repeat(9999),
    ] {
        let set = SetDocument::from_name(&text);
        let place = ContextAndServer {
            context: Some(text.clone()),
            ..ContextAndServer::default()
        };
        let mut found = many();
        found.refusals = vec![Refusal::EmptyManifests { objects: Vec::new() }];
        let actions = [
            Action::Created,
            Action::Recreated,
            Action::Unchanged,
            Action::Skipped,
        ];
        for (object, action) in found.objects.iter_mut().rev().zip(actions) {
            object.outcome.action = action;
        }
        let page = diff_page((&set, &place), &found, DONE, &[text], Vec::new()).text(1024);
        assert!(
            page.len() <= 1024 && page.contains("Left out"),
            "{}: {page}",
            page.len()
        );
        assert_inert(&page);
    }
}

fn collected(results: Vec<ObjectOutcome>) -> Collected {
    Collected {
        operation: Operation::Apply,
        dry_run: DryRun::None,
        results,
        losses: Vec::new(),
        waiting: None,
        warnings: Vec::new(),
        failures: Vec::new(),
    }
}

#[test]
fn a_run_is_summarized() {
    let mut failed = outcome(Action::Failed, "Service", "bad");
    failed.error = Some("port 0".into());
    let mut skipped = outcome(Action::Skipped, "ConfigMap", "old");
    skipped.reason = "not reached".to_owned();
    let mut run = collected(vec![
        outcome(Action::Created, "ConfigMap", "app-bfh72cttk6"),
        outcome(Action::Created, "ConfigMap", "new"),
        outcome(Action::Pruned, "ConfigMap", "app-5m2k8t4h9b"),
        outcome(Action::Pruned, "PersistentVolumeClaim", "data"),
        outcome(Action::Unchanged, "ConfigMap", "same"),
        failed,
        skipped,
    ]);
    run.losses = vec![Refusal::PrunesStorage {
        object: key("PersistentVolumeClaim", "data"),
    }];
    let end = RunEnd::Interrupted(Resume::SameCommand, Exit::Interrupted);
    let text = run_page((&set(), &ContextAndServer::default()), &run, end, Vec::new()).text(LIMIT);
    assert_order(
        &text,
        &[
            "### ApplySet `secret/web in shop`: 2 created, 2 pruned, 1 failed, interrupted\n",
            "1 unchanged · 1 skipped\n",
            "- `interrupted before everything was done`\n  - hint: `run the same command",
            "**Data was lost**\n\n- `persistentvolumeclaim/data in namespace shop` pruned\n",
            "**Failed**\n\n- `service/bad in namespace shop: port 0`\n",
            "<summary>1 pruned</summary>\n\n- `persistentvolumeclaim/data in namespace shop`\n\n</details>",
            "<summary>1 renamed: pruned, and created under another name</summary>",
            "- `configmap/app-5m2k8t4h9b in namespace shop` as `configmap/app-bfh72cttk6 in namespace shop`\n",
            "<summary>1 created</summary>\n\n- `configmap/new in namespace shop`\n",
            "<summary>1 skipped</summary>\n\n- `configmap/old in namespace shop`: `not reached`\n",
        ],
    );
}

#[test]
fn a_dry_run_warns_of_the_claims_that_a_recreation_deletes() {
    let mut database = outcome(Action::Recreated, "StatefulSet", "db");
    database.claims = Claims::Lost;
    let run = Collected {
        dry_run: DryRun::Server,
        ..collected(vec![database])
    };
    let text = run_page((&set(), &ContextAndServer::default()), &run, DONE, Vec::new()).text(LIMIT);
    let lost = "**Data would be lost**\n\n- `statefulset/db in namespace shop` recreated\n";
    assert_order(&text, &["1 recreated (server dry run)\n", lost]);
}
