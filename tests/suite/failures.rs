//! Objects that the server does not take: the others are applied, nothing is pruned,
//! the record stays wide, and the next run makes it good.

use serde_json::{Value, json};

use crate::support::{
    Files, NAMESPACES, Program, Run, Set, cluster, cluster_role, config_map, fresh, identities, named,
    namespace, namespace_object, objects_file, service, with,
};

#[test]
fn one_invalid_object_stops_pruning_and_nothing_else() {
    let [a, b] = [namespace("a"), namespace("b")];
    let set = Set::secret(&a, "web");
    let first = [config_map(&b, "dropped", "1"), config_map(&a, "kept", "1")];
    set.apply(&first);
    let valid = config_map(&a, "kept", "2");
    let invalid = service(&a, "bad", 0);

    let run = set
        .apply_with(
            &[valid.clone(), invalid.clone(), cluster_role(&fresh("role"))],
            &[],
        )
        .expect(1);

    assert_eq!(run.results("failed"), identities([&invalid]));
    assert_eq!(run.results("configured"), identities([&valid]));
    assert_eq!(run.results("created").len(), 1);
    assert_eq!(run.results("pruned"), Vec::<String>::new());
    assert_eq!(run.errors().len(), 1, "{}", run.stderr);
    assert!(run.errors()[0].contains("service/bad"), "{}", run.stderr);
    assert!(cluster().live(&first[0]).is_some());
    assert_eq!(set.unrecorded(), Vec::<String>::new());

    let fixed = [valid, service(&a, "bad", 80)];
    set.apply(&fixed);
    set.assert_holds(&fixed);
}

#[test]
fn a_deployment_without_selector_fails_and_is_made_good() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let template = json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "web", "image": "web"}]},
    });
    let broken = with(
        named("apps/v1", "Deployment", Some(&home), "web"),
        &json!({"spec": {"template": template}}),
    );
    let other = config_map(&home, "one", "1");
    let run = set.apply_with(&[broken.clone(), other.clone()], &[]).expect(1);
    assert_eq!(run.results("failed"), identities([&broken]));
    assert_eq!(set.members(), identities([&other]));

    let selector = json!({"spec": {"selector": {"matchLabels": {"app": "web"}}}});
    let fixed = [with(broken, &selector), other];
    set.apply(&fixed);
    set.assert_holds(&fixed);
}

#[test]
fn a_field_that_the_kind_does_not_have_fails() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let misspelled = with(config_map(&home, "one", "1"), &json!({"dat": {"a": "b"}}));
    let run = set.apply_with(&[misspelled], &[]).expect(1);
    assert!(run.errors()[0].contains("dat"), "{}", run.stderr);
    assert_eq!(set.members(), Vec::<String>::new());
}

fn conflict(home: &str) -> (Set, Run) {
    let set = Set::secret(home, "web");
    set.apply(&[config_map(home, "one", "1"), config_map(home, "dropped", "1")]);
    cluster().apply_as("autoscaler", &config_map(home, "one", "theirs"));
    let run = set.apply_with(&[config_map(home, "one", "2")], &[]).expect(1);
    (set, run)
}

#[test]
fn a_field_of_another_manager_is_not_taken() {
    let home = namespace("home");
    let (set, _) = conflict(&home);
    let text = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: one, namespace: {home}}}\ndata:\n  key: \"2\"\n"
    );
    let files = Files::new().with("objects.yaml", &text);
    let run = set
        .command(Program::new(), &files)
        .args(["-o", "json"])
        .run()
        .expect(1);
    assert_eq!(run.errors().len(), 1, "{}", run.stderr);
    for text in [
        // The line of the field, not that of the object.
        "objects.yaml:5: configmap/one in namespace",
        ".data.key",
        "owner:    \"autoscaler\", last write 20",
        "live:     \"theirs\"",
        "manifest: \"2\"",
        "--force-conflicts",
        "--ignore FILE",
        "- paths:\n  - /data/key\n  target:\n    kind: ConfigMap\n    name: one\n    namespace: home",
    ] {
        assert!(run.stderr.contains(text), "no {text:?} in\n{}", run.stderr);
    }
    let error = run.document()["results"][0]["error"].clone();
    let error = error.as_str().expect("an error");
    let detail = "objects.yaml:5: conflict with \"autoscaler\": .data.key: live \"theirs\", manifest \"2\"";
    assert!(
        error.contains(detail) && error.contains("--ignore FILE"),
        "{error}"
    );
    let live = cluster().live(&config_map(&home, "one", "2")).expect("it");
    assert_eq!(live["data"]["key"], "theirs");
    assert_eq!(set.members().len(), 2, "nothing is pruned");
}

#[test]
fn the_conflicts_of_all_objects_are_in_one_place_in_apply_and_diff() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects: Vec<_> = (0..5)
        .map(|number| config_map(&home, &format!("map-{number}"), "1"))
        .collect();
    for object in &objects {
        let theirs = with(object.clone(), &json!({"data": {"key": "theirs"}}));
        cluster().apply_as("autoscaler", &theirs);
    }

    let files = Files::new().with("objects.yaml", &objects_file(&objects));
    let diff = Program::new().args(["diff", &set.reference, "-n", &home, "-f"]);
    let diff = diff.args([files.directory()]).run().expect(1);
    for run in [set.apply_with(&objects, &[]).expect(1), diff] {
        assert_eq!(
            run.errors(),
            ["error: Apply failed with 5 conflicts: other field managers own these fields"],
            "{}",
            run.stderr
        );
        assert_eq!(
            run.stderr.matches("owner:    \"autoscaler\"").count(),
            5,
            "{}",
            run.stderr
        );
        assert_eq!(run.stderr.matches("\nhint: ").count(), 3, "{}", run.stderr);
        // The rules can be copied as they are printed.
        let rules = run.stderr.find("\n- paths:").map(|start| &run.stderr[start..]);
        let rules = rules
            .expect("rules")
            .lines()
            .filter(|line| line.starts_with([' ', '-']));
        let rules = rules.collect::<Vec<_>>().join("\n");
        let file = Files::new().with("ignore.yaml", &rules);
        let flag = format!("--ignore={}", file.path("ignore.yaml").display());
        set.apply_with(&objects, &[&flag, "--dry-run=server"]).expect(0);
    }
}

#[test]
fn a_field_of_another_manager_is_taken_by_force() {
    let home = namespace("home");
    let (set, _) = conflict(&home);
    let objects = [config_map(&home, "one", "2")];
    set.apply_with(&objects, &["--force-conflicts"]).expect(0);
    set.assert_holds(&objects);
    let live = cluster().live(&objects[0]).expect("it");
    assert_eq!(live["data"]["key"], "2");
}

#[test]
fn a_member_that_is_being_deleted_fails() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let held = with(
        config_map(&home, "one", "1"),
        &json!({"metadata": {"finalizers": ["example.com/wait"]}}),
    );
    let objects = [held.clone(), config_map(&home, "two", "1")];
    set.apply(&objects);
    cluster().delete(&held);

    let run = set.apply_with(&objects[..1], &[]).expect(1);

    assert_eq!(run.results("failed"), identities([&held]));
    assert!(run.errors()[0].contains("deleted"), "{}", run.stderr);
    assert!(cluster().live(&objects[1]).is_some(), "nothing is pruned");
    assert_eq!(set.unrecorded(), Vec::<String>::new());

    cluster().patch(&held, &json!({"metadata": {"finalizers": null}}));
    set.apply(&[config_map(&home, "one", "1")]);
    set.assert_holds(&[config_map(&home, "one", "1")]);
}

#[test]
fn fields_are_taken_only_from_the_managers_that_are_named() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let [one, two] = ["one", "two"].map(|name| config_map(&home, name, "1"));
    set.apply(&[one.clone(), two.clone()]);
    let edited = |object: &Value, data: Value| with(object.clone(), &json!({"data": data}));
    cluster().apply_as("kubectl-edit", &edited(&one, json!({"key": "edited"})));
    cluster().apply_as("kubectl-edit", &edited(&two, json!({"key": "edited"})));
    let tuned = with(
        named("v1", "ConfigMap", Some(&home), "two"),
        &json!({"data": {"tuned": "1"}}),
    );
    cluster().apply_as("tuner", &tuned);
    let wanted = [one.clone(), edited(&two, json!({"key": "1", "tuned": "2"}))];
    let data = |object: &Value| cluster().live(object).expect("it")["data"].clone();

    for flags in [
        &["--force-conflicts=kubectl-edit", "--dry-run=server"][..],
        &["--force-conflicts=kubectl-edit"],
    ] {
        let run = set.apply_with(&wanted, flags).expect(1);
        assert_eq!(run.results("configured"), identities([&one]), "{flags:?}");
        assert_eq!(run.results("failed"), identities([&two]), "{flags:?}");
        assert!(!run.stderr.contains(".data.key"), "{}", run.stderr);
        assert!(run.stderr.contains("--force-conflicts=tuner"), "{}", run.stderr);
    }
    assert_eq!(data(&one), json!({"key": "1"}));
    assert_eq!(data(&two), json!({"key": "edited", "tuned": "1"}));

    // The user adds the flag that the hint names.
    set.apply_with(
        &wanted,
        &["--force-conflicts=kubectl-edit", "--force-conflicts=tuner"],
    )
    .expect(0);
    assert_eq!(data(&two), json!({"key": "1", "tuned": "2"}));
    set.assert_holds(&[one, two]);
}

#[test]
fn fields_of_the_parent_are_taken_only_from_the_managers_that_are_named() {
    let home = namespace("home");
    let set = Set::config_map(&home, "web");
    let parent = |value: &str| config_map(&home, "web", value);
    set.apply_with(&[parent("1")], &["--take-over-set"]).expect(0);
    cluster().apply_as("tuner", &parent("tuned"));

    for (flags, code) in [
        (&[][..], 1),
        (&["--force-conflicts=kubectl-edit"], 1),
        (&["--force-conflicts=tuner", "--dry-run=server"], 0),
    ] {
        set.apply_with(&[parent("2")], flags).expect(code);
        assert_eq!(cluster().live(&parent("")).expect("it")["data"]["key"], "tuned");
    }
    set.apply_with(&[parent("2")], &["--force-conflicts=tuner"])
        .expect(0);
    assert_eq!(cluster().live(&parent("")).expect("it")["data"]["key"], "2");
}

#[test]
fn an_object_that_is_not_a_member_and_is_being_deleted_fails() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let held = with(
        config_map(&home, "one", "1"),
        &json!({"metadata": {"finalizers": ["example.com/wait"]}}),
    );
    cluster().create(&held);
    cluster().delete(&held);

    let run = set
        .apply_with(&[config_map(&home, "one", "1")], &["--force-conflicts"])
        .expect(1);

    assert_eq!(run.results("failed"), identities([&held]));
    cluster().patch(&held, &json!({"metadata": {"finalizers": null}}));
}

#[test]
fn what_left_the_manifests_and_is_being_deleted_already_stays_recorded() {
    let [a, b] = [namespace("a"), namespace("b")];
    let set = Set::secret(&a, "web");
    let held = with(
        config_map(&b, "held", "1"),
        &json!({"metadata": {"finalizers": ["example.com/wait"]}}),
    );
    let kept = config_map(&a, "kept", "1");
    set.apply(&[held.clone(), kept.clone()]);
    cluster().delete(&held);

    let run = set.apply(std::slice::from_ref(&kept));

    assert_eq!(run.results("skipped"), identities([&held]));
    set.assert_records(&[held.clone(), kept.clone()]);
    cluster().patch(&held, &json!({"metadata": {"finalizers": null}}));
    set.apply(std::slice::from_ref(&kept));
    set.assert_holds(&[kept]);
}

#[test]
fn what_a_finalizer_holds_is_pruned_and_stays_recorded_until_it_is_gone() {
    let [a, b] = [namespace("a"), namespace("b")];
    let set = Set::secret(&a, "web");
    let held = with(
        config_map(&b, "held", "1"),
        &json!({"metadata": {"finalizers": ["example.com/wait"]}}),
    );
    let kept = config_map(&a, "kept", "1");
    set.apply(&[held.clone(), kept.clone()]);

    let run = set.apply(std::slice::from_ref(&kept));

    assert_eq!(run.results("pruned"), identities([&held]));
    let live = cluster().live(&held).expect("the held object");
    assert!(live["metadata"]["deletionTimestamp"].is_string());
    let again = set.apply(std::slice::from_ref(&kept));
    assert_eq!(again.results("skipped"), identities([&held]));
    assert_eq!(set.annotation(NAMESPACES), Some(b));
    let deletion = set.deletion(Program::new()).args(["--yes"]).run();
    deletion.expect(1);
    assert!(set.live_parent().is_some(), "it has a member");

    cluster().patch(&held, &json!({"metadata": {"finalizers": null}}));
    set.apply(std::slice::from_ref(&kept));
    set.assert_holds(&[kept]);
}

#[test]
fn a_namespace_that_cannot_be_made_leaves_a_record_that_is_wide_enough() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let invalid = with(
        namespace_object(&fresh("away")),
        &json!({"spec": {"finalizers": ["not a finalizer"]}}),
    );
    let kept = config_map(&home, "kept", "1");
    set.apply_with(&[invalid, kept.clone()], &[]).expect(1);
    assert_eq!(set.members(), identities([&kept]));
    assert_eq!(set.unrecorded(), Vec::<String>::new());
    set.apply(std::slice::from_ref(&kept));
    set.assert_holds(&[kept]);
}
