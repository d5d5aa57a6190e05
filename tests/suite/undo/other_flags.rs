//! An undo of runs with flags that change how objects are written.

use serde_json::{Value, json};

use super::Runs;
use crate::support::{Set, cluster, config_map, deployment, namespace, with};

/// A `ConfigMap` that is immutable.
fn frozen(namespace: &str, value: &str) -> Value {
    with(
        config_map(namespace, "frozen", value),
        &json!({"immutable": true}),
    )
}

#[test]
fn what_was_recreated_is_recreated_as_it_was() {
    let home = namespace("home");
    let runs = Runs::of(Set::secret(&home, "web"));
    let [before, after] = ["1", "2"].map(|value| frozen(&home, value));
    runs.set.apply(std::slice::from_ref(&before));
    let run = runs
        .apply("undo", std::slice::from_ref(&after), &["--recreate=ConfigMap"])
        .expect(0);
    assert_eq!(run.results("recreated").len(), 1, "{}", run.stderr);
    assert_eq!(cluster().live(&after).expect("it")["data"], after["data"]);

    let run = runs.undo("undo", &[]).expect(0);

    assert_eq!(run.results("recreated").len(), 1, "{}", run.stderr);
    assert_eq!(cluster().live(&before).expect("it")["data"], before["data"]);
    runs.set.assert_holds(&[before]);
}

#[test]
fn fields_that_are_left_to_others_stay_as_they_are() {
    let home = namespace("home");
    let runs = Runs::of(Set::secret(&home, "web"));
    let object = deployment(&home, "web", 2);
    let changed = with(object.clone(), &json!({"metadata": {"labels": {"version": "2"}}}));
    runs.set.apply(std::slice::from_ref(&object));
    let rules = runs.file("ignore.yaml");
    std::fs::write(&rules, "ignore: [{paths: [/spec/replicas]}]").expect("a file");
    cluster().patch(&object, &json!({"spec": {"replicas": 5}}));
    let rules = rules.to_string_lossy().into_owned();
    runs.apply("undo", &[changed], &["--ignore", &rules]).expect(0);
    let live = cluster().live(&object).expect("it");
    assert_eq!(live["spec"]["replicas"], 5);
    assert_eq!(live["metadata"]["labels"]["version"], "2");

    runs.undo("undo", &[]).expect(0);

    let live = cluster().live(&object).expect("it");
    assert_eq!(live["spec"]["replicas"], 5);
    assert_eq!(live["metadata"]["labels"].get("version"), None);
}
