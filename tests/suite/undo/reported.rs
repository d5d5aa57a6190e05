//! What is said about an undo: in its results, in the history of the set, and before the run.

use std::slice::from_ref;

use super::*;
use crate::support::named;

fn rows(runs: &Runs) -> Vec<Value> {
    let document = runs.set.invoke("history", &[]).expect(0).document();
    document["runs"].as_array().expect("runs").clone()
}

#[test]
fn the_history_marks_an_undo_and_that_it_was_partial() {
    let home = namespace("undo");
    let runs = Runs::of(Set::secret(&home, "web"));
    let [one, two] = ["one", "two"].map(|name| config_map(&home, name, "1"));
    runs.set.apply(&[one.clone(), two.clone()]);
    let after = [config_map(&home, "one", "2"), config_map(&home, "two", "2")];
    runs.apply("undo", &after, &[]).expect(0);
    cluster().patch(&two, &json!({"data": {"key": "3"}}));
    runs.undo("undo", &[]).expect(1);
    let rows = rows(&runs);
    assert_eq!(
        (&rows[0]["result"], &rows[0]["undo"]),
        (&json!("incomplete"), &json!(true))
    );
    assert_eq!(
        (&rows[1]["result"], &rows[1]["undo"]),
        (&json!("done"), &json!(false))
    );
    let table = runs
        .set
        .invocation(Program::new(), "history", &[])
        .run()
        .expect(0);
    assert!(table.stdout.contains("undo: 1 configured"), "{}", table.stdout);
}

#[test]
fn a_run_that_deleted_and_was_stopped_is_in_the_history() {
    let home = namespace("undo");
    let runs = Runs::of(Set::secret(&home, "web"));
    let frozen = |value: &str| {
        with(
            config_map(&home, "frozen", value),
            &json!({"immutable": true, "metadata": {"finalizers": ["example.com/hold"]}}),
        )
    };
    runs.set.apply(&[frozen("1")]);
    let run = runs
        .set
        .apply_with(&[frozen("2")], &["--recreate=ConfigMap", "--timeout=3s"]);
    run.expect(1);
    let rows = rows(&runs);
    assert_eq!(rows.len(), 2, "{rows:?}");
    assert_eq!(
        (&rows[0]["result"], &rows[0]["failed"]),
        (&json!("interrupted"), &json!(1))
    );
    cluster().patch(&frozen("1"), &json!({"metadata": {"finalizers": null}}));
}

#[test]
fn a_created_object_that_is_gone_has_a_result() {
    let home = namespace("undo");
    let runs = Runs::of(Set::secret(&home, "web"));
    let [one, two] = ["one", "two"].map(|name| config_map(&home, name, "1"));
    runs.set.apply(from_ref(&one));
    runs.apply("undo", &[one, two.clone()], &[]).expect(0);
    cluster().delete(&two);
    let (action, reason) = results(&runs.undo("undo", &[]).expect(0))["ConfigMap/two"].clone();
    assert_eq!(
        (action.as_str(), reason.as_str()),
        ("unchanged", "it does not exist, as before the run")
    );
}

#[test]
fn the_data_of_volumes_is_named_as_lost() {
    let home = namespace("undo");
    let runs = Runs::of(Set::secret(&home, "web"));
    let claim = |name: &str, storage: &str| {
        with(
            named("v1", "PersistentVolumeClaim", Some(&home), name),
            &json!({"spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": storage, "resources": {"requests": {"storage": "1Gi"}}}}),
        )
    };
    let [changed, pruned] = ["changed", "pruned"].map(|name| claim(name, "one"));
    runs.set.apply(&[changed.clone(), pruned.clone()]);
    for object in [&changed, &pruned] {
        cluster().patch(object, &json!({"metadata": {"finalizers": null}}));
    }
    let flags = ["--allow-data-loss", "--recreate=PersistentVolumeClaim"];
    let run = runs.apply("undo", &[claim("changed", "two")], &flags).expect(0);
    let lost = "an undo cannot restore the data of its volume";
    for (name, condition) in [("changed", " if it is recreated"), ("pruned", "")] {
        let warning = format!("persistentvolumeclaim/{name} in namespace {home}: {lost}{condition}");
        assert!(
            run.stderr.contains(&format!("{warning}\n")),
            "{warning}: {}",
            run.stderr
        );
        cluster().patch(&changed, &json!({"metadata": {"finalizers": null}}));
    }
    let run = runs.undo("undo", &["--allow-data-loss"]);
    assert_eq!(
        run.stderr.matches(&format!("{lost}\n")).count(),
        2,
        "{}",
        run.stderr
    );
}

#[test]
fn errors_name_the_file_that_was_asked_for() {
    let home = namespace("undo");
    let runs = Runs::of(Set::secret(&home, "web"));
    let objects = [config_map(&home, "one", "1")];
    let missing = runs.file("no/such/x");
    let run = runs
        .start_with(Program::new(), "missing", &missing, &objects)
        .run()
        .expect(2);
    assert!(!run.stderr.contains("at path"), "{}", run.stderr);
    assert!(
        run.stderr.contains(&missing.display().to_string()),
        "{}",
        run.stderr
    );
    let run = runs.undo("nothing", &[]).expect(2);
    assert!(run.stderr.contains("--undo-out"), "{}", run.stderr);
    runs.apply("undo", &objects, &[]).expect(0);
    let edited = runs.text("undo").replace("\"key\":\"1\"", "\"key\":\"2\"");
    fs::write(runs.file("edited"), edited).expect("a file");
    let run = runs.undo("edited", &[]).expect(2);
    assert!(run.stderr.contains("restore the file"), "{}", run.stderr);
}
