//! Objects that plain `kubectl apply` made become members: what they hold stays, and a
//! field that leaves the manifest later leaves the object.

use serde_json::{Value, json};

use crate::support::{
    Files, PART_OF, Set, cluster, config_map, identities, kubectl_apply, named, namespace, objects_file,
    service, with,
};

const CLIENT_SIDE: &str = "kubectl-client-side-apply";

fn managers(object: &Value) -> Vec<(String, String)> {
    let live = cluster().live(object).expect("the object");
    let entries = live["metadata"]["managedFields"]
        .as_array()
        .expect("managed fields");
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    entries
        .iter()
        .map(|entry| (text(&entry["manager"]), text(&entry["operation"])))
        .collect()
}

fn deployment(namespace: &str) -> Value {
    with(
        named("apps/v1", "Deployment", Some(namespace), "web"),
        &json!({
            "metadata": {"labels": {"app": "web"}, "annotations": {"note": "y"}},
            "spec": {
                "replicas": 2,
                "selector": {"matchLabels": {"app": "web"}},
                "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [
                        {"name": "web", "image": "web:1", "env": [{"name": "A", "value": "1"}]},
                        {"name": "side", "image": "side:1"},
                    ]},
                },
            },
        }),
    )
}

#[test]
fn what_client_side_apply_made_becomes_a_member_without_any_other_change() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects = [
        deployment(&home),
        service(&home, "web", 80),
        config_map(&home, "one", "1"),
    ];
    kubectl_apply(&objects, &["-n", &home]).expect(0);
    let content = |object: &Value| {
        let mut live = cluster().live(object).expect("the object");
        let metadata = live["metadata"].as_object_mut().expect("metadata");
        for bookkeeping in ["managedFields", "resourceVersion", "generation"] {
            metadata.remove(bookkeeping);
        }
        // What kubectl noted down of its own last apply goes with its ownership.
        let note = "kubectl.kubernetes.io/last-applied-configuration";
        for (pairs, key) in [("annotations", note), ("labels", PART_OF)] {
            if let Some(pairs) = metadata.get_mut(pairs).and_then(Value::as_object_mut) {
                pairs.remove(key);
            }
        }
        metadata.retain(|_, value| value.as_object().is_none_or(|pairs| !pairs.is_empty()));
        live
    };
    let before = objects.each_ref().map(content);

    set.apply(&objects);

    set.assert_holds(&objects);
    assert_eq!(objects.each_ref().map(content), before);
    for object in &objects {
        let managers = managers(object);
        assert!(
            managers.iter().all(|(name, _)| name != CLIENT_SIDE),
            "{managers:?}"
        );
    }
    let settled = cluster().state(&[&home]);
    set.apply(&objects);
    assert_eq!(cluster().state(&[&home]), settled);
}

/// The deployment without a list item, a variable, an annotation and a number.
fn less(namespace: &str) -> Value {
    let mut less = deployment(namespace);
    less["metadata"]
        .as_object_mut()
        .expect("metadata")
        .remove("annotations");
    less["spec"].as_object_mut().expect("a spec").remove("replicas");
    let containers = &mut less["spec"]["template"]["spec"]["containers"];
    containers.as_array_mut().expect("containers").truncate(1);
    containers[0].as_object_mut().expect("a container").remove("env");
    less
}

#[track_caller]
fn assert_less(namespace: &str) {
    let live = cluster().live(&deployment(namespace)).expect("the object");
    let containers = &live["spec"]["template"]["spec"]["containers"];
    assert_eq!(containers.as_array().map(Vec::len), Some(1), "{containers}");
    assert_eq!(containers[0].get("env"), None);
    assert_eq!(live["metadata"]["annotations"].get("note"), None, "{live:#}");
    // The server's default.
    assert_eq!(live["spec"]["replicas"], 1);
}

#[test]
fn fields_that_leave_the_manifest_in_the_first_run_leave_the_object() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    kubectl_apply(&[deployment(&home)], &["-n", &home]).expect(0);
    set.apply(&[less(&home)]);
    assert_less(&home);
    set.assert_holds(&[less(&home)]);
}

#[test]
fn fields_that_leave_the_manifest_in_a_later_run_leave_the_object() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    kubectl_apply(&[deployment(&home)], &["-n", &home]).expect(0);
    set.apply(&[deployment(&home)]);
    set.apply(&[less(&home)]);
    assert_less(&home);
}

#[test]
fn members_that_plain_kubectl_apply_wrote_again_are_migrated_again() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    set.apply(&[less(&home)]);
    kubectl_apply(&[deployment(&home)], &["-n", &home]).expect(0);

    set.apply(&[less(&home)]);

    assert_less(&home);
    set.assert_holds(&[less(&home)]);
}

#[test]
fn fields_of_other_managers_survive_the_migration() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let object = config_map(&home, "one", "1");
    kubectl_apply(std::slice::from_ref(&object), &["-n", &home]).expect(0);
    cluster().patch(&object, &json!({"data": {"theirs": "2"}}));
    cluster().apply_as(
        "controller",
        &with(
            named("v1", "ConfigMap", Some(&home), "one"),
            &json!({"data": {"applied": "3"}}),
        ),
    );

    set.apply(std::slice::from_ref(&object));

    let live = cluster().live(&object).expect("the object");
    assert_eq!(live["data"], json!({"key": "1", "theirs": "2", "applied": "3"}));
    let managers = managers(&object);
    for expected in [
        ("tests", "Update"),
        ("controller", "Apply"),
        ("applyset", "Apply"),
    ] {
        let expected = (expected.0.to_owned(), expected.1.to_owned());
        assert!(managers.contains(&expected), "{managers:?}");
    }
}

#[test]
fn a_dry_run_migrates_nothing_and_foretells_the_run() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects = [deployment(&home), config_map(&home, "one", "1")];
    kubectl_apply(&objects, &["-n", &home]).expect(0);
    let before = cluster().state(&[&home]);
    let wanted = [less(&home), config_map(&home, "one", "2")];
    let predicted = ["--dry-run=client", "--dry-run=server"].map(|flag| {
        let run = set.apply_with(&wanted, &[flag]).expect(0);
        assert_eq!(cluster().state(&[&home]), before, "{flag}");
        run.results("configured")
    });
    let run = set.apply(&wanted);
    assert_eq!(predicted, [run.results("configured"), run.results("configured")]);
}

fn ports(namespace: &str, ports: &Value) -> Value {
    with(
        named("v1", "Service", Some(namespace), "web"),
        &json!({
            "metadata": {"labels": {"app": "web"}},
            "spec": {"selector": {"app": "web"}, "ports": ports},
        }),
    )
}

/// The API server refuses a second port of the same name, so the former one has to go in the same apply.
#[test]
fn a_list_key_that_client_side_apply_owns_can_change() {
    let before = |home: &str| {
        ports(
            home,
            &json!([{"name": "http", "port": 80}, {"name": "old", "port": 81}]),
        )
    };
    let after = |home: &str| ports(home, &json!([{"name": "http", "port": 8080}]));
    for adoption in [None, Some("-f"), Some("-l")] {
        let home = namespace("home");
        let set = Set::secret(&home, "web");
        kubectl_apply(&[before(&home)], &["-n", &home]).expect(0);
        let files = Files::new().with("objects.yaml", &objects_file(&[before(&home)]));
        let directory = files.directory().to_string_lossy().into_owned();
        match adoption {
            Some("-f") => drop(set.invoke("adopt", &["-f", &directory]).expect(0)),
            Some(flag) => drop(set.invoke("adopt", &[flag, "app=web"]).expect(0)),
            None => {}
        }
        let object = after(&home);
        let state = cluster().state(&[&home]);
        for flag in ["--dry-run=client", "--dry-run=server"] {
            let run = set.apply_with(std::slice::from_ref(&object), &[flag]).expect(0);
            assert_eq!(run.results("configured"), identities([&object]), "{adoption:?}");
            assert_eq!(cluster().state(&[&home]), state);
        }
        let run = set.apply(std::slice::from_ref(&object));
        assert_eq!(run.results("configured"), identities([&object]), "{adoption:?}");
        let live = cluster().live(&object).expect("the object");
        let ports = live["spec"]["ports"].as_array().expect("ports");
        let ports: Vec<&Value> = ports.iter().map(|port| &port["port"]).collect();
        assert_eq!(ports, [8080], "{adoption:?}");
        set.assert_holds(std::slice::from_ref(&object));
        let run = set.apply(std::slice::from_ref(&object));
        assert_eq!(run.results("unchanged"), identities([&object]));
    }
}

#[test]
fn an_object_that_is_invalid_in_any_case_keeps_its_owners() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let object = ports(&home, &json!([{"name": "http", "port": 80}]));
    kubectl_apply(std::slice::from_ref(&object), &["-n", &home]).expect(0);
    let before = cluster().live(&object);
    let invalid = ports(
        &home,
        &json!([{"name": "http", "port": 81}, {"name": "http", "port": 82}]),
    );
    for flags in [&["--dry-run=server"][..], &[]] {
        let run = set.apply_with(std::slice::from_ref(&invalid), flags).expect(1);
        assert!(run.stderr.contains("Duplicate value"), "{}", run.stderr);
        assert_eq!(cluster().live(&object), before);
    }
}
