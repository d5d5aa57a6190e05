//! A run fails in part: its undo leaves alone what it has not written.

use std::sync::Arc;

use super::*;
use crate::support::{Fault, Proxy, Sent, Verdict, Watch};

/// Refuses to write objects with these names.
struct Refuses(&'static [&'static str]);

impl Watch for Refuses {
    fn before(&self, sent: &Sent, _writes: usize) -> Verdict {
        let is_refused = |name: &&str| sent.path.contains(&format!("/configmaps/{name}?"));
        if sent.method == "PATCH" && self.0.iter().any(is_refused) {
            Verdict::Break(Fault::Expired)
        } else {
            Verdict::Forward
        }
    }
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
    let proxy = Proxy::watched(Arc::new(Refuses(&["changed", "created"])));
    let program = Program::with_kubeconfig(&proxy.kubeconfig());
    let run = runs.start(program, "undo", &objects, &[]).run().expect(1);
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
    let proxy = Proxy::watched(Arc::new(Refuses(&["one"])));
    let program = Program::with_kubeconfig(&proxy.kubeconfig());
    // What fails to be applied keeps the rest from being pruned.
    runs.start(program, "undo", &[config_map(&home, "one", "2")], &[])
        .run()
        .expect(1);
    cluster().patch(&old, &json!({"data": {"precious": "1"}}));

    let run = runs.undo("undo", &[]).expect(1);

    let undone = [
        ("ConfigMap/one", "unchanged"),
        ("ConfigMap/old", "skipped"),
        ("ConfigMap/other", "unchanged"),
    ];
    assert_eq!(actions(&run), expected(&undone), "{}", run.stderr);
}
