//! What an undo leaves as it is, and which command lines are refused.

use super::*;

#[test]
fn what_changed_after_the_run_is_left_as_it_is() {
    let home = namespace("undo");
    let runs = Runs::of(Set::secret(&home, "web"));
    let names = ["edited", "deleted", "replaced", "pruned"];
    let before = names.map(|name| config_map(&home, name, "1"));
    let created = ["created", "relabeled", "kept"].map(|name| config_map(&home, name, "1"));
    runs.set.apply(&before);
    let mut after: Vec<Value> = names[..3]
        .iter()
        .map(|name| config_map(&home, name, "2"))
        .collect();
    after.extend(created.clone());
    runs.apply("undo", &after, &[]).expect(0);

    cluster().patch(&before[0], &json!({"data": {"key": "3"}}));
    cluster().delete(&before[1]);
    cluster().delete(&before[2]);
    cluster().create(&before[2]);
    cluster().create(&config_map(&home, "pruned", "other"));
    cluster().patch(&created[1], &json!({"metadata": {"labels": {"a": "b"}}}));
    cluster().patch(
        &created[2],
        &json!({"metadata": {"annotations": {"helm.sh/resource-policy": "keep"}}}),
    );
    let run = runs.undo("undo", &[]).expect(1);
    let results = results(&run);
    for (name, reason) in [
        ("edited", "changed after the run: tests changed data.key"),
        ("deleted", "deleted after the run"),
        ("replaced", "deleted and created again"),
        ("pruned", "exists again"),
        ("relabeled", "changed after the run"),
        ("kept", "changed after the run"),
    ] {
        let (action, why) = &results[&format!("ConfigMap/{name}")];
        assert_eq!(action, "skipped", "{name}");
        assert!(why.contains(reason), "{name}: {why}");
    }
    assert_eq!(results["ConfigMap/created"].0, "pruned");
    assert_eq!(cluster().live(&before[0]).expect("an object")["data"]["key"], "3");
    assert!(cluster().live(&created[1]).is_some());
}

#[test]
fn data_is_not_lost_by_an_undo() {
    let home = namespace("undo");
    let runs = Runs::of(Set::secret(&home, "web"));
    let claim = with(
        crate::support::named("v1", "PersistentVolumeClaim", Some(&home), "data"),
        &json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}),
    );
    let one = config_map(&home, "one", "1");
    runs.set.apply(std::slice::from_ref(&one));
    runs.apply("undo", &[one.clone(), claim.clone()], &[]).expect(0);
    runs.undo("undo", &[]).expect(3);
    assert!(cluster().live(&claim).is_some());
    runs.undo("undo", &["--allow-data-loss"]).expect(0);
    // Nothing in the control plane removes its finalizer.
    let live = cluster().live(&claim).expect("the claim");
    assert!(live["metadata"]["deletionTimestamp"].is_string(), "{live}");
    let results = results(&runs.undo("undo", &[]).expect(1));
    assert!(
        results["PersistentVolumeClaim/data"]
            .1
            .contains("already being deleted")
    );
}

#[test]
fn values_of_secrets_can_be_left_out() {
    let home = namespace("undo");
    let runs = Runs::of(Set::secret(&home, "web"));
    let value = |name: &str, value: &str| with(secret(&home, name), &json!({"data": {"key": value}}));
    runs.set
        .apply(&[value("changed", "b2xkMQ=="), value("pruned", "b2xkMg==")]);
    let after = [value("changed", "bmV3MQ=="), value("created", "bmV3Mg==")];
    let run = runs.apply("undo", &after, &["--undo-secrets=omit"]).expect(0);
    assert!(run.stderr.contains("secret/changed"), "{}", run.stderr);
    let text = runs.text("undo");
    for secret in ["b2xkMQ==", "b2xkMg==", "bmV3MQ==", "bmV3Mg=="] {
        assert!(!text.contains(secret), "{text}");
    }
    let results = results(&runs.undo("undo", &[]).expect(1));
    for name in ["changed", "pruned"] {
        let (action, reason) = &results[&format!("Secret/{name}")];
        assert_eq!(action, "skipped");
        assert!(reason.contains("--undo-secrets=omit"), "{reason}");
    }
    assert_eq!(results["Secret/created"].0, "pruned");
}

#[test]
fn an_object_of_another_set_is_not_given_back() {
    let home = namespace("undo");
    let other = Set::secret(&home, "other");
    let runs = Runs::of(Set::secret(&home, "web"));
    let shared = config_map(&home, "shared", "1");
    other.apply(std::slice::from_ref(&shared));
    let run = runs
        .apply("undo", &[config_map(&home, "shared", "2")], &["--take-ownership"])
        .expect(0);
    assert!(
        run.stderr.contains("its membership in ApplySet"),
        "{}",
        run.stderr
    );
    let results = results(&runs.undo("undo", &[]).expect(1));
    assert_eq!(results["ConfigMap/shared"].0, "skipped");
    assert_eq!(runs.set.members().len(), 1);
}

#[test]
fn invalid_command_lines_and_files_are_refused() {
    let home = namespace("undo");
    let runs = Runs::of(Set::secret(&home, "web"));
    let objects = [config_map(&home, "one", "1")];
    fs::write(runs.file("there"), "mine").expect("a file");
    let run = runs.apply("there", &objects, &[]).expect(2);
    assert!(run.stderr.contains("the file exists"), "{}", run.stderr);
    assert_eq!(runs.text("there"), "mine");
    let run = runs
        .start_with(Program::new(), "missing", &runs.file("no/directory"), &objects)
        .run()
        .expect(2);
    assert!(run.stderr.contains("cannot be written"), "{}", run.stderr);
    runs.apply("dry", &objects, &["--dry-run=server"]).expect(2);
    assert!(!runs.file("dry").exists());
    Program::new()
        .args(["apply", "web", "-n", &home, "-f", "x", "--undo-secrets=omit"])
        .run()
        .expect(2);
    assert!(runs.set.live_parent().is_none());

    runs.apply("undo", &objects, &[]).expect(0);
    let text = runs.text("undo");
    // Objects that were edited, a version of tomorrow, and a plan of another kind of file.
    for edited in [
        text.replace("\"key\":\"1\"", "\"key\":\"2\""),
        text.replacen("\"version\":1", "\"version\":2", 1),
        text.lines().next().expect("a line").to_owned(),
        format!("{text}nonsense\n"),
    ] {
        fs::write(runs.file("edited"), edited).expect("a file");
        runs.undo("edited", &[]).expect(2);
    }
    // A line that was not written to its end is ignored.
    fs::write(runs.file("torn"), format!("{text}{{\"item\":")).expect("a file");
    runs.undo("torn", &[]).expect(0);
    assert!(cluster().live(&objects[0]).is_none());
}

#[test]
fn a_run_stops_when_its_undo_file_cannot_be_continued() {
    let home = namespace("undo");
    let runs = Runs::of(Set::secret(&home, "web"));
    let objects: Vec<Value> = (0..40)
        .map(|number| config_map(&home, &format!("o-{number}"), "1"))
        .collect();
    runs.set.apply(&objects);
    let changed: Vec<Value> = (0..40)
        .map(|number| config_map(&home, &format!("o-{number}"), "2"))
        .collect();
    // The file may grow by a few notes only.
    runs.apply("measured", &changed, &[]).expect(0);
    runs.undo("measured", &[]).expect(0);
    let text = runs.text("measured");
    let notes = text.lines().filter(|line| line.starts_with("{\"item\":")).count();
    let begun: usize = text
        .lines()
        .take(text.lines().count() - notes)
        .map(|line| line.len() + 1)
        .sum();
    let run = runs
        .start(
            Program::with_file_size((begun + 300) as u64),
            "full",
            &changed,
            &["--concurrency=1"],
        )
        .run()
        .expect(1);
    assert!(
        run.stderr.contains("cannot append to the undo file"),
        "{}",
        run.stderr
    );
    let is_changed = |object: &&Value| cluster().live(object).expect("an object")["data"]["key"] == "2";
    let done = changed.iter().filter(is_changed).count();
    assert!((1..10).contains(&done), "{done} were changed");
    runs.undo("full", &[]).expect(0);
    assert!(!changed.iter().any(|object| is_changed(&object)));
}
