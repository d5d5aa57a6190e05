//! `apply --undo-out` writes the set as it was: an apply of the file is an undo.

use super::*;
use crate::support::{Random, cluster_role};

/// Applies objects, with an undo file of this name.
pub(super) fn apply(set: &Set, files: &Files, undo: &str, objects: &[Value], flags: &[&str]) -> Run {
    let manifests = files.path(&format!("of-{}.yaml", undo.replace('/', "-")));
    fs::write(&manifests, objects_file(objects)).expect("manifests");
    let undo = files.path(undo).display().to_string();
    apply_file(
        set,
        &manifests,
        &[&["--allow-prune-all", "--undo-out", &undo], flags].concat(),
    )
}

#[test]
fn a_run_is_undone_by_an_apply_of_its_file() {
    let [a, b] = [namespace("undo-a"), namespace("undo-b")];
    let set = Set::secret(&a, "web");
    let files = Files::new();
    let labels = json!({"metadata": {"labels": {"tier": "one"}, "annotations": {"note": "x"}}});
    let before = [
        with(config_map(&a, "changed", "1"), &labels),
        config_map(&a, "kept", "1"),
        with(config_map(&b, "pruned", "1"), &labels),
        service(&b, "web", 80),
        secret(&a, "settings"),
        cluster_role(&fresh("undo-role")),
        deployment(&a, "app", 1),
    ];
    set.apply(&before);
    let was = contents(&set, &before);
    let side = json!({"spec": {"template": {"spec": {"containers": [
        {"name": "app", "image": "other"}, {"name": "side", "image": "car"},
    ]}}}});
    let after = [
        with(config_map(&a, "changed", "2"), &json!({"data": {"more": "2"}})),
        config_map(&a, "kept", "1"),
        config_map(&a, "created", "1"),
        with(secret(&a, "settings"), &json!({"data": {"key": "b3RoZXI="}})),
        with(deployment(&a, "app", 3), &side),
    ];
    apply(&set, &files, "before.yaml", &after, &[]).expect(0);
    set.assert_holds(&after);
    let mode = fs::metadata(files.path("before.yaml"))
        .expect("a file")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);

    let run = apply_file(&set, &files.path("before.yaml"), &[]).expect(0);
    let expected = json!({"created": 3, "configured": 3, "unchanged": 1, "pruned": 1});
    assert_eq!(summary(&run), expected, "{}", run.stdout);
    set.assert_holds(&before);
    assert_eq!(contents(&set, &before), was);
    let run = set.apply(&before);
    assert_eq!(summary(&run), json!({"unchanged": before.len()}));
}

#[test]
fn an_object_that_was_taken_in_gets_its_fields_back_and_is_not_deleted() {
    let home = namespace("undo");
    let set = Set::secret(&home, "web");
    let files = Files::new();
    let theirs = with(config_map(&home, "theirs", "1"), &json!({"data": {"other": "x"}}));
    cluster().create(&theirs);
    let was = cluster().live(&theirs).expect("the object");
    let objects = [config_map(&home, "ours", "1"), config_map(&home, "theirs", "2")];
    apply(&set, &files, "before.yaml", &objects, &["--force-conflicts"]).expect(0);
    set.assert_holds(&objects);

    apply_file(&set, &files.path("before.yaml"), &["--force-conflicts"]).expect(0);

    let is = cluster().live(&theirs).expect("the object");
    assert_eq!(
        (&is["data"], &is["metadata"]["uid"]),
        (&was["data"], &was["metadata"]["uid"])
    );
    assert_eq!(set.members(), [format!("ConfigMap {home}/theirs")]);
}

#[test]
fn replicas_of_an_object_that_is_taken_in_stay_with_the_autoscaler() {
    let home = namespace("undo");
    let set = Set::secret(&home, "web");
    let files = Files::new();
    let mut app = deployment(&home, "app", 2);
    cluster().create(&app);
    cluster().scale(&app, 5);
    app["spec"].as_object_mut().expect("a spec").remove("replicas");
    let autoscaler = autoscaler_of(&home, "app");
    set.apply(std::slice::from_ref(&autoscaler));
    apply(&set, &files, "undo.yaml", &[app.clone(), autoscaler], &[]).expect(0);
    cluster().scale(&app, 8);

    apply_file(&set, &files.path("undo.yaml"), &["--force-conflicts"]).expect(0);

    assert_eq!(cluster().live(&app).expect("the object")["spec"]["replicas"], 8);
}

#[test]
fn a_first_run_is_undone_but_for_its_parent() {
    let home = namespace("undo");
    let set = Set::secret(&home, "web");
    let files = Files::new();
    apply(&set, &files, "before.yaml", &[config_map(&home, "one", "1")], &[]).expect(0);
    let file = files.path("before.yaml");
    apply_file(&set, &file, &[]).expect(3);
    set.assert_holds(&[config_map(&home, "one", "1")]);
    let text = fs::read_to_string(&file).expect("a file");
    assert!(text.contains("--allow-prune-all"), "{text}");
    apply_file(&set, &file, &["--allow-prune-all"]).expect(0);
    assert_eq!(set.members(), Vec::<String>::new());
    set.assert_records(&[]);
}

#[test]
fn a_saved_plan_can_be_undone() {
    let home = namespace("undo");
    let set = Set::secret(&home, "web");
    let before = [config_map(&home, "one", "1"), config_map(&home, "two", "1")];
    let after = [config_map(&home, "one", "2"), config_map(&home, "three", "1")];
    set.apply(&before);
    let files = Files::new().with("manifests.yaml", &objects_file(&after));
    let [plan, undo] = ["plan.json", "before.yaml"].map(|name| files.path(name).display().to_string());
    Program::new()
        .args(["diff", &set.reference, "-n", &home, "--out", &plan, "-f"])
        .args([files.path("manifests.yaml")])
        .run()
        .expect(1);
    Program::new()
        .args(["apply", "--plan", &plan, "--undo-out", &undo])
        .run()
        .expect(0);
    set.assert_holds(&after);
    apply_file(&set, Path::new(&undo), &[]).expect(0);
    set.assert_holds(&before);
}

#[test]
fn a_file_that_cannot_be_written_stops_the_run_before_it_begins() {
    let home = namespace("undo");
    let set = Set::secret(&home, "web");
    let files = Files::new().with("there.yaml", "kept");
    let objects = [config_map(&home, "one", "1")];
    let run = apply(&set, &files, "there.yaml", &objects, &[]).expect(2);
    assert!(run.stderr.contains("exists"), "{}", run.stderr);
    assert_eq!(
        fs::read_to_string(files.path("there.yaml")).expect("a file"),
        "kept"
    );
    apply(&set, &files, "missing/before.yaml", &objects, &[]).expect(2);
    apply(&set, &files, "dry.yaml", &objects, &["--dry-run=server"]).expect(2);
    // The next run of this directory would read it.
    let manifests = Files::new().with("one.yaml", &objects_file(&objects));
    let inside = manifests.path("before.yaml").display().to_string();
    apply_file(&set, manifests.directory(), &["--undo-out", &inside]).expect(2);
    assert_eq!(set.members(), Vec::<String>::new());
    assert!(cluster().live(&objects[0]).is_none());
}

#[test]
fn a_hook_that_is_a_member_is_in_the_file_with_the_flags_that_it_needs() {
    let home = namespace("undo");
    let set = Set::secret(&home, "web");
    let files = Files::new();
    let hook = json!({"metadata": {"annotations": {"helm.sh/hook": "pre-install"}}});
    let before = [with(config_map(&home, "hook", "1"), &hook)];
    set.apply_with(&before, &["--hooks=apply"]).expect(0);
    let kubeconfig = admin_kubeconfig().display().to_string();
    let flags = ["--kubeconfig", &kubeconfig];
    apply(
        &set,
        &files,
        "before.yaml",
        &[config_map(&home, "one", "1")],
        &flags,
    )
    .expect(0);
    let text = fs::read_to_string(files.path("before.yaml")).expect("a file");
    let next = format!(" -f FILE --hooks=apply --kubeconfig {kubeconfig}\n");
    assert!(text.contains(&next), "{text}");
    apply_file(&set, &files.path("before.yaml"), &["--hooks=apply"]).expect(0);
    set.assert_holds(&before);
}

#[test]
fn values_that_the_run_takes_come_back() {
    let home = namespace("undo");
    let set = Set::secret(&home, "web");
    let files = Files::new();
    let without_replicas = |mut object: Value| {
        object["spec"].as_object_mut().expect("a spec").remove("replicas");
        object
    };
    let before = [
        config_map(&home, "one", "1"),
        without_replicas(deployment(&home, "app", 1)),
        service(&home, "app", 80),
    ];
    set.apply(&before);
    cluster().patch(
        &before[0],
        &json!({"data": {"theirs": "precious"}, "metadata": {"labels": {"team": "blue"}}}),
    );
    let ports = json!({"spec": {"ports": [
        {"port": 80, "protocol": "TCP", "name": "web", "targetPort": 8080}, {"port": 81, "protocol": "TCP", "name": "more"},
    ]}});
    cluster().patch(&before[2], &ports);
    // What is scaled for the first time has no owner.
    cluster().scale(&before[1], 4);
    let variable = |value: &str| {
        let container = json!({"name": "app", "image": "app", "env": [{"name": "LOG", "value": value}]});
        json!({"spec": {"template": {"spec": {"containers": [container]}}}})
    };
    let mut ops = with(before[1].clone(), &variable("debug"));
    ops["spec"].as_object_mut().expect("a spec").remove("selector");
    ops["spec"]["template"]
        .as_object_mut()
        .expect("a template")
        .remove("metadata");
    cluster().apply_as("ops", &ops);
    let was = contents(&set, &before);

    let after = [
        with(before[0].clone(), &json!({"data": {"theirs": "ours"}})),
        with(deployment(&home, "app", 3), &variable("info")),
        with(
            service(&home, "app", 80),
            &json!({"spec": {"ports": [
                {"port": 80, "protocol": "TCP", "name": "web", "targetPort": 9090}, {"port": 81, "protocol": "TCP", "name": "other"},
            ]}}),
        ),
    ];
    apply(&set, &files, "before.yaml", &after, &["--force-conflicts"]).expect(0);
    set.assert_holds(&after);
    // It is not theirs alone any more if the file has it.
    cluster().patch(&before[0], &json!({"metadata": {"labels": {"team": "red"}}}));
    apply_file(&set, &files.path("before.yaml"), &[]).expect(0);
    cluster().patch(&before[0], &json!({"metadata": {"labels": {"team": "blue"}}}));
    assert_eq!(contents(&set, &before), was);
}

#[test]
fn a_pruned_object_comes_back_with_what_others_have_set() {
    let home = namespace("undo");
    let set = Set::secret(&home, "web");
    let files = Files::new();
    let kept = config_map(&home, "one", "1");
    let before = [
        kept.clone(),
        deployment(&home, "app", 1),
        service(&home, "app", 80),
    ];
    set.apply(&before);
    let image = json!({"spec": {"template": {"spec": {"containers": [{"name": "app", "image": "hotfix"}]}}}});
    cluster().patch(&before[1], &image);
    let ports = json!({"spec": {"ports": [{"port": 8080, "protocol": "TCP"}]}});
    cluster().patch(&before[2], &ports);
    let was = contents(&set, &before);
    apply(&set, &files, "before.yaml", &[kept], &[]).expect(0);
    apply_file(&set, &files.path("before.yaml"), &[]).expect(0);
    assert_eq!(contents(&set, &before), was);
}

#[test]
fn a_recreated_object_comes_back_with_what_others_have_set() {
    let home = namespace("undo");
    let set = Set::secret(&home, "web");
    let files = Files::new();
    let app = |service: &str| {
        let mut app = with(
            deployment(&home, "app", 1),
            &json!({"spec": {"serviceName": service}}),
        );
        app["kind"] = json!("StatefulSet");
        app
    };
    let frozen = |value: &str| with(config_map(&home, "one", value), &json!({"immutable": true}));
    let mut before = [frozen("1"), app("one")];
    before[1]["spec"]
        .as_object_mut()
        .expect("a spec")
        .remove("replicas");
    set.apply(&before);
    cluster().patch(&before[0], &json!({"metadata": {"annotations": {"theirs": "x"}}}));
    let image = json!({"spec": {"template": {"spec": {"containers": [{"name": "app", "image": "hotfix"}]}}}});
    cluster().patch(&before[1], &image);
    // What is scaled for the first time has no owner.
    cluster().scale(&before[1], 4);
    let was = contents(&set, &before);

    let flags = ["--recreate=ConfigMap,StatefulSet.apps", "--force-conflicts"];
    let run = apply(&set, &files, "before.yaml", &[frozen("2"), app("two")], &flags).expect(0);
    assert_eq!(summary(&run), json!({"recreated": 2}), "{}", run.stdout);
    let undo = files.path("before.yaml");
    let heading = std::fs::read_to_string(&undo).expect("the file");
    assert!(
        heading.contains("-f FILE --recreate=ConfigMap,StatefulSet\n"),
        "{heading}"
    );
    apply_file(&set, &undo, &flags).expect(0);
    assert_eq!(contents(&set, &before), was);
}

#[test]
fn what_people_have_applied_stays_if_the_run_that_took_it_in_is_undone() {
    let home = namespace("undo");
    let set = Set::secret(&home, "web");
    let files = Files::new();
    let address = format!(
        "10.0.0.{}",
        20 + Random::new(std::process::id().into(), 0).below(200)
    );
    let before = [
        with(
            config_map(&home, "one", "1"),
            &json!({"metadata": {"finalizers": ["example.com/cascade"]}}),
        ),
        with(
            service(&home, "two", 80),
            &json!({"spec": {"clusterIP": address}}),
        ),
        with(
            named("v1", "ServiceAccount", Some(&home), "three"),
            &json!({"secrets": [{"name": "token"}]}),
        ),
    ];
    kubectl_apply(&before, &[]).expect(0);
    let after = [
        with(before[0].clone(), &json!({"data": {"more": "2"}})),
        before[1].clone(),
        before[2].clone(),
    ];
    apply(&set, &files, "taken.yaml", &after, &[]).expect(0);
    apply_file(&set, &files.path("taken.yaml"), &[]).expect(0);
    let chosen = || {
        let [one, two, three] =
            [0, 1, 2].map(|index: usize| cluster().live(&before[index]).expect("the object"));
        assert_eq!(one["metadata"]["finalizers"], json!(["example.com/cascade"]));
        assert_eq!(two["spec"]["clusterIP"], address);
        assert_eq!(three["secrets"], json!([{"name": "token"}]));
    };
    chosen();

    apply(&set, &files, "pruned.yaml", &after[..1], &[]).expect(0);
    apply_file(&set, &files.path("pruned.yaml"), &[]).expect(0);
    chosen();
    cluster().patch(&before[0], &json!({"metadata": {"finalizers": null}}));
}

#[test]
fn a_parent_that_was_an_object_before_gets_its_fields_back() {
    let home = namespace("undo");
    let set = Set::config_map(&home, "web");
    let files = Files::new();
    let parent = config_map(&home, "web", "theirs");
    cluster().create(&parent);
    let objects = [config_map(&home, "web", "ours"), config_map(&home, "one", "1")];
    let flags = ["--take-over-set", "--yes", "--force-conflicts"];
    apply(&set, &files, "before.yaml", &objects, &flags).expect(0);
    apply_file(
        &set,
        &files.path("before.yaml"),
        &["--allow-prune-all", "--force-conflicts"],
    )
    .expect(0);
    assert_eq!(
        cluster().live(&parent).expect("the parent")["data"],
        parent["data"]
    );
    assert_eq!(set.members(), Vec::<String>::new());
}
