//! A run fails in part: its undo leaves alone what it has not written.

use super::*;
use crate::support::{Fault, Proxy};

/// Applies with an undo file, while the server refuses to write the objects with these names.
fn apply_refused(runs: &Runs, objects: &[Value], refused: &'static [&'static str]) -> Run {
    let proxy = Proxy::breaking(Fault::Expired, move |sent| {
        let is_sent = |name: &&str| sent.path.contains(&format!("/configmaps/{name}?"));
        sent.method == "PATCH" && refused.iter().any(is_sent)
    });
    let program = Program::with_kubeconfig(&proxy.kubeconfig());
    runs.start(program, "undo", objects, &[]).run().expect(1)
}

#[test]
fn what_the_server_refused_and_another_run_wrote_stays() {
    let home = namespace("undo");
    let runs = Runs::of(Set::secret(&home, "web"));
    let [before, after] =
        ["1", "2"].map(|value| ["one", "changed"].map(|name| config_map(&home, name, value)));
    let created = config_map(&home, "created", "2");
    runs.set.apply(&before);
    let objects = [&after[..], std::slice::from_ref(&created)].concat();
    let run = apply_refused(&runs, &objects, &["changed", "created"]);
    assert_eq!(run.results("failed").len(), 2, "{}", run.stdout);
    runs.set.apply(&objects);

    let run = runs.undo("undo", &[]).expect(1);

    let undone = [
        ("ConfigMap/one", "configured"),
        ("ConfigMap/changed", "skipped"),
        ("ConfigMap/created", "skipped"),
    ];
    assert_eq!(actions(&run), expected(&undone), "{}", run.stderr);
    let value = |object: &Value| cluster().live(object).map(|live| live["data"].clone());
    assert_eq!(value(&before[0]), Some(before[0]["data"].clone()));
    assert_eq!(value(&after[1]), Some(after[1]["data"].clone()));
    assert_eq!(value(&created), Some(created["data"].clone()));
}

#[test]
fn what_was_not_pruned_and_is_not_as_it_was_is_skipped() {
    let home = namespace("undo");
    let runs = Runs::of(Set::secret(&home, "web"));
    let [one, old, other] = ["one", "old", "other"].map(|name| config_map(&home, name, "1"));
    runs.set.apply(&[one, old.clone(), other]);
    // What fails to be applied keeps the rest from being pruned.
    apply_refused(&runs, &[config_map(&home, "one", "2")], &["one"]);
    cluster().patch(&old, &json!({"data": {"precious": "1"}}));

    let run = runs.undo("undo", &[]).expect(1);

    let undone = [
        ("ConfigMap/one", "unchanged"),
        ("ConfigMap/old", "skipped"),
        ("ConfigMap/other", "unchanged"),
    ];
    assert_eq!(actions(&run), expected(&undone), "{}", run.stderr);
}
