use serde_json::{Value, json};

use super::*;
use crate::model::applyset::PART_OF_LABEL;
use crate::model::resource::Scope;
use crate::plan::fixtures::{resource, set};

const MANAGER: &str = "applyset";

fn salt() -> Salt {
    serde_json::from_value(json!("salt")).expect("a salt")
}

fn id() -> String {
    set().id.to_string()
}

/// A live object with this value, in the set with this id.
fn live(uid: &str, value: &str, set: Option<&str>) -> Value {
    let mut object = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": {"key": value},
        "metadata": {"name": "a", "namespace": "shop", "uid": uid, "resourceVersion": "7", "managedFields": [
            {"manager": MANAGER, "operation": "Apply", "apiVersion": "v1", "fieldsV1": {
                "f:data": {"f:key": {}}, "f:metadata": {"f:labels": {(format!("f:{PART_OF_LABEL}")): {}}},
            }},
        ]},
    });
    if let Some(set) = set {
        object["metadata"]["labels"] = json!({PART_OF_LABEL: set});
    }
    object
}

fn member(uid: &str, value: &str) -> Value {
    live(uid, value, Some(&id()))
}

fn touched(mut object: Value) -> Value {
    let entries = object["metadata"]["managedFields"]
        .as_array_mut()
        .expect("entries");
    entries.push(json!({"manager": "kubectl-label", "operation": "Update", "fieldsV1": {"f:spec": {}}}));
    object
}

fn going(mut object: Value) -> Value {
    object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    object
}

fn manifest(value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"key": value}, "metadata": {"name": "a", "namespace": "shop"}})
}

fn item(kind: &str, was: Option<Value>, manifest: Option<Value>, values: Values) -> UndoItem {
    let resource = resource(kind, Scope::Namespaced);
    let key = ObjectKey {
        group_kind: resource.group_kind(),
        namespace: Some("shop".to_owned()),
        name: "a".to_owned(),
    };
    UndoItem::new(key, &resource, was, manifest, values, &[], &salt()).expect("something to undo")
}

/// What becomes of the item, in one word; `unchanged?` stands for a question with its two answers.
fn verdict(item: &UndoItem, written: Option<&Value>, now: Option<&Value>) -> String {
    verdict_of(&run(), item, written, now)
}

fn verdict_of(run: &RecordedRun, item: &UndoItem, written: Option<&Value>, now: Option<&Value>) -> String {
    let written = written.and_then(|written| Written::of(written, &item.left(), &salt()));
    name(judge(item, written.as_ref(), now, run))
}

fn name(verdict: Verdict) -> String {
    match verdict {
        Verdict::AsBefore => "as before".to_owned(),
        Verdict::Absent => "absent".to_owned(),
        Verdict::Restore(manifest) => format!("restore {}", manifest["data"]["key"]),
        Verdict::Create(manifest) => format!("create {}", manifest["data"]["key"]),
        Verdict::Delete => "delete".to_owned(),
        Verdict::Skip(_) => "skip".to_owned(),
        Verdict::Ask(question) => {
            let then = name(answered(question.clone(), true));
            let otherwise = name(answered(question, false));
            format!("ask: {then}, {otherwise}")
        }
    }
}

#[test]
fn an_object_is_undone_only_if_it_is_as_the_run_left_it() {
    let created = item("ConfigMap", None, Some(manifest("2")), Values::Kept);
    let changed = item(
        "ConfigMap",
        Some(member("u", "1")),
        Some(manifest("2")),
        Values::Kept,
    );
    let pruned = item("ConfigMap", Some(member("u", "1")), None, Values::Kept);
    let taken = item(
        "ConfigMap",
        Some(live("u", "1", None)),
        Some(manifest("2")),
        Values::Kept,
    );
    let others = item(
        "ConfigMap",
        Some(live("u", "1", Some("other"))),
        Some(manifest("2")),
        Values::Kept,
    );
    let secret = item(
        "Secret",
        Some(member("u", "1")),
        Some(manifest("2")),
        Values::Omitted,
    );
    let (before, after) = (member("u", "1"), member("u", "2"));
    let (edited, replaced) = (touched(member("u", "2")), member("v", "2"));
    let doomed = going(member("u", "2"));
    let table = [
        (&created, Some(&after), None, "absent"),
        (&created, Some(&after), Some(&after), "delete"),
        (&created, Some(&after), Some(&edited), "skip"),
        (&created, Some(&after), Some(&replaced), "skip"),
        (&created, Some(&after), Some(&doomed), "skip"),
        // The run was killed before it noted the write.
        (&created, None, Some(&after), "ask: delete, skip"),
        (&created, None, Some(&edited), "skip"),
        (&created, None, None, "absent"),
        (&changed, Some(&after), Some(&after), "restore \"1\""),
        (&changed, Some(&after), Some(&before), "as before"),
        (&changed, Some(&after), Some(&edited), "ask: as before, skip"),
        (&changed, Some(&after), Some(&replaced), "ask: as before, skip"),
        (&changed, Some(&after), None, "skip"),
        (&changed, None, Some(&before), "as before"),
        (
            &changed,
            None,
            Some(&after),
            "ask: as before, ask: restore \"1\", skip",
        ),
        (&changed, None, Some(&replaced), "ask: as before, skip"),
        (&changed, None, Some(&doomed), "skip"),
        // A run that recreates leaves another UID.
        (&changed, Some(&replaced), Some(&replaced), "restore \"1\""),
        (&pruned, None, None, "create \"1\""),
        (&pruned, None, Some(&before), "as before"),
        // An undo waits for what it creates again.
        (&pruned, None, Some(&doomed), "create \"1\""),
        (&pruned, None, Some(&going(before.clone())), "create \"1\""),
        (&pruned, None, Some(&going(live("u", "1", None))), "skip"),
        (&changed, None, Some(&going(before.clone())), "skip"),
        (&secret, None, Some(&going(before.clone())), "skip"),
        (&pruned, None, Some(&replaced), "ask: as before, skip"),
        (&taken, Some(&after), Some(&after), "restore \"1\""),
        (&others, Some(&after), Some(&after), "skip"),
        (&secret, Some(&after), Some(&after), "skip"),
        (&secret, Some(&after), Some(&before), "as before"),
        (&secret, Some(&after), None, "skip"),
    ];
    for (number, (item, written, now, expected)) in table.into_iter().enumerate() {
        assert_eq!(verdict(item, written, now), expected, "case {number}");
    }
}

#[test]
fn what_a_run_recreates_is_created_if_it_is_gone() {
    let kinds = RecordedRun {
        recreate: Recreate::Kinds([GroupKind::new("", "ConfigMap")].into()),
        ..run()
    };
    let never = RecordedRun {
        recreate: Recreate::Never,
        ..run()
    };
    let mut marked = manifest("2");
    marked["metadata"]["labels"] = json!({"kustomize.toolkit.fluxcd.io/force": "enabled"});
    let was = || Some(member("u", "1"));
    let plain = item("ConfigMap", was(), Some(manifest("2")), Values::Kept);
    let by_mark = item("ConfigMap", was(), Some(marked), Values::Kept);
    let theirs = Some(live("u", "1", Some("other")));
    let taken = item("ConfigMap", theirs, Some(manifest("2")), Values::Kept);
    let (after, replaced) = (member("u", "2"), member("v", "2"));
    let table = [
        (&kinds, &plain, None, None, "create \"1\""),
        // The undo was killed, and the run was not.
        (&kinds, &plain, Some(&replaced), None, "create \"1\""),
        (&kinds, &plain, Some(&after), None, "create \"1\""),
        (&never, &plain, None, None, "skip"),
        (&run(), &plain, None, None, "skip"),
        (&run(), &by_mark, None, None, "create \"1\""),
        (&never, &by_mark, None, None, "skip"),
        (&kinds, &taken, None, None, "skip"),
        // The run was killed before it noted that it has created the object again.
        (
            &kinds,
            &plain,
            None,
            Some(&replaced),
            "ask: as before, ask: restore \"1\", skip",
        ),
        (&never, &plain, None, Some(&replaced), "ask: as before, skip"),
        // A finalizer holds it.
        (
            &kinds,
            &plain,
            None,
            Some(&going(member("u", "1"))),
            "create \"1\"",
        ),
        (&never, &plain, None, Some(&going(member("u", "1"))), "skip"),
    ];
    for (number, (run, item, written, now, expected)) in table.into_iter().enumerate() {
        assert_eq!(verdict_of(run, item, written, now), expected, "case {number}");
    }
}

fn run() -> RecordedRun {
    serde_json::from_value(json!({
        "cluster": {"uid": "u", "server": "https://x", "certificateAuthority": null},
        "set": {"id": id(), "resource": "secrets", "name": "web", "namespace": "shop", "tooling": "kubectl-applyset/v0.1.0"},
        "fieldManager": MANAGER,
        "salt": "salt",
    }))
    .expect("a run")
}

#[test]
fn a_file_can_be_read_wherever_it_was_cut_off_behind_its_beginning() {
    let items = [
        item(
            "ConfigMap",
            Some(member("u", "1")),
            Some(manifest("2")),
            Values::Kept,
        ),
        item("ConfigMap", None, Some(manifest("2")), Values::Kept),
    ];
    let begun = begin(&run(), &items);
    let left = Written::of(&member("u", "2"), &[], &salt()).expect("a member");
    let written = Some(left.clone());
    let notes = [Entry::written(0, left.clone()), Entry::written(1, left.clone())];
    let text = notes.iter().fold(begun.clone(), |text, note| text + &line(note));
    assert!(is_undo_file(&text));
    let whole = read(&text).expect("a file");
    assert_eq!((whole.run, whole.items), (run(), items.to_vec()));
    assert_eq!(whole.written, [written.clone(), written.clone()]);
    for length in 0..text.len() {
        let cut = read(&text[..length]);
        match cut {
            Ok(record) => {
                let noted = text[begun.len()..length.max(begun.len())].matches('\n').count();
                assert_eq!(record.written.iter().flatten().count(), noted, "{length}");
                assert!(length >= begun.len());
            }
            Err(_) => assert!(length < begun.len(), "{length}"),
        }
    }
}

#[test]
fn the_manifest_of_a_write_without_effect_is_not_used() {
    let items = [item("ConfigMap", None, Some(manifest("2")), Values::Kept)];
    let begun = begin(&run(), &items) + &line(&Entry::begun(0));
    let manifest_of = |text: &str| read(text).expect("a file").items[0].manifest.clone();
    assert_eq!(manifest_of(&begun), Some(manifest("2")));
    let refused = begun + &line(&Entry::without_effect(0));
    assert_eq!(manifest_of(&refused), None);
    let begun_again = refused + &line(&Entry::begun(0));
    assert_eq!(manifest_of(&begun_again), Some(manifest("2")));
}

#[test]
fn a_file_that_was_edited_is_not_read() {
    let items = [item("ConfigMap", Some(member("u", "1")), None, Values::Kept)];
    let text = begin(&run(), &items);
    assert!(read(&text).is_ok());
    for edited in [
        text.replace("\"key\":\"1\"", "\"key\":\"2\""),
        text.replacen("\"version\":1", "\"version\":2", 1),
        text.replacen("\"objects\":1", "\"objects\":0", 1),
        format!("{text}{{\"item\":1}}\n"),
        format!("{text}x\n"),
        String::new(),
    ] {
        assert!(read(&edited).is_err(), "{edited}");
    }
    assert!(!is_undo_file(
        "{\"apiVersion\":\"kubectl-applyset/v1\",\"kind\":\"Plan\"}"
    ));
}

#[test]
fn values_of_secrets_are_left_out_on_request() {
    let mut was = member("u", "1");
    was["metadata"]["annotations"] =
        json!({"kubectl.kubernetes.io/last-applied-configuration": "1", "a": "b"});
    let omitted = item("Secret", Some(was.clone()), Some(manifest("2")), Values::Omitted);
    assert_eq!(omitted.manifest, None);
    let recorded = omitted.was.expect("an object");
    assert_eq!(recorded["data"], json!({"key": "***"}));
    let annotations = &recorded["metadata"]["annotations"];
    assert!(
        annotations.to_string().matches(r#":"***""#).count() == 2,
        "{annotations}"
    );
    let kept = item("Secret", Some(was.clone()), None, Values::Kept);
    assert_eq!(kept.was.expect("an object")["data"], was["data"]);
    let config = item("ConfigMap", Some(was.clone()), None, Values::Omitted);
    assert_eq!(config.was.expect("an object")["data"], was["data"]);
}
