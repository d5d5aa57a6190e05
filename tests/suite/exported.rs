//! Manifests and objects that come from an export by `kubectl get`.

use serde_json::{Value, json};

use crate::support::{Files, PART_OF, Program, Run, Set, cluster, config_map, fresh, named, namespace, with};

fn with_metadata(object: &Value, field: &str, value: Value) -> Value {
    let mut object = object.clone();
    object["metadata"][field] = value;
    object
}

fn run(set: &Set, object: &Value) -> Run {
    let run = set.apply_with(std::slice::from_ref(object), &[]).expect(1);
    let files = Files::new().with("objects.json", &object.to_string());
    let manifests = files.path("objects.json");
    let diff = set.invoke("diff", &["-f", manifests.to_str().expect("a path")]);
    for messages in [&run.stderr, &diff.stderr] {
        assert!(!messages.contains("same command again"), "{messages}");
    }
    run
}

#[test]
fn the_hint_names_the_fields_that_bind_a_manifest_to_one_object() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let object = config_map(&home, "one", "1");
    let other = with_metadata(&object, "uid", json!("0b7b1f4c-0000-0000-0000-000000000000"));
    let managed = json!([{"manager": "a", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {}}]);
    let hint = "remove metadata.uid from the manifest";
    let absent = run(&set, &other);
    assert!(absent.stderr.contains(hint), "{}", absent.stderr);
    assert_eq!(cluster().live(&object), None);
    cluster().create_as("someone", &config_map(&home, "one", "1"));
    let before = cluster().live(&object);

    let recreated = run(&set, &other);

    assert!(recreated.stderr.contains(hint), "{}", recreated.stderr);
    let exported = with_metadata(&config_map(&home, "one", "2"), "managedFields", managed);
    let exported = run(&set, &exported);
    let hint = "remove metadata.managedFields from the manifest";
    assert!(exported.stderr.contains(hint), "{}", exported.stderr);
    assert_eq!(cluster().live(&object), before);
}

/// As with kubectl: a version in a manifest is a precondition, also for a member.
#[test]
fn a_manifest_with_an_outdated_version_overwrites_nothing() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let object = config_map(&home, "one", "1");
    set.apply(std::slice::from_ref(&object));
    // The set and another manager own its label and its data.
    set.apply_with(
        std::slice::from_ref(&object),
        &["--field-manager=ci", "--apply-unchanged"],
    )
    .expect(0);
    let version = cluster().live(&object).expect("it")["metadata"]["resourceVersion"].clone();
    cluster().patch(&object, &json!({"data": {"a": "theirs"}}));
    let before = cluster().live(&object);
    let outdated = with_metadata(&config_map(&home, "one", "2"), "resourceVersion", version);

    let other = Set::secret(&home, "other");
    for (set, flags) in [
        (&set, &["--force-conflicts"][..]),
        (&set, &["--force-conflicts=ci"]),
        (&other, &["--take-ownership"]),
    ] {
        let run = set.apply_with(std::slice::from_ref(&outdated), flags).expect(1);
        let hint = "remove metadata.resourceVersion from the manifest";
        assert!(run.stderr.contains(hint), "{flags:?}: {}", run.stderr);
        assert_eq!(cluster().live(&object), before, "{flags:?}");
    }
}

#[test]
fn a_priority_class_cannot_change_and_the_hint_says_how_to_recreate_it() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let class = named("scheduling.k8s.io/v1", "PriorityClass", None, &fresh("class"));
    let class = |value: u32| with(class.clone(), &json!({"value": value}));
    set.apply(&[class(5)]);

    let refused = set.apply_with(&[class(6)], &[]).expect(1);

    let flag = "--recreate=PriorityClass.scheduling.k8s.io";
    assert!(refused.stderr.contains(flag), "{}", refused.stderr);
    set.apply_with(&[class(6)], &[flag]).expect(0);
    let name = class(6)["metadata"]["name"].as_str().expect("a name").to_owned();
    let live = cluster().get(&format!("/apis/scheduling.k8s.io/v1/priorityclasses/{name}"));
    assert_eq!(live.expect("the class")["value"], 6);
    set.delete(&[]).expect(0);
}

#[test]
fn list_and_verify_agree_on_what_is_a_member_after_a_restore() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects = ["one", "two"].map(|name| config_map(&home, name, "1"));
    set.apply(&objects);
    let labeled = |object: &Value| {
        with(
            object.clone(),
            &json!({"metadata": {"labels": {PART_OF: set.id}}}),
        )
    };
    for object in &objects {
        cluster().delete(object);
        cluster().create_as("kubectl-create", &labeled(object));
    }
    let owner = cluster().live(&objects[0]).expect("an object")["metadata"]["uid"].clone();
    let owner = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "one", "uid": owner}]);
    let copy = with_metadata(
        &labeled(&config_map(&home, "copy", "1")),
        "ownerReferences",
        owner,
    );
    cluster().create_as("controller", &copy);

    let listed = Program::new()
        .args(["list", "-n", &home, "-o", "json"])
        .run()
        .expect(0);
    let verified = set.invoke("verify", &["-o", "json"]).expect(0);

    assert_eq!(listed.document()["sets"][0]["members"], 2);
    assert_eq!(verified.document()["sets"][0]["members"], 2);
    let findings = verified.document()["findings"].clone();
    let findings = findings.as_array().expect("findings");
    let mut denied = findings.iter().filter(|finding| {
        finding["message"]
            .as_str()
            .is_some_and(|text| text.contains("not a member"))
    });
    assert_eq!(denied.next().expect("the copy")["object"]["name"], "copy");
    assert_eq!(denied.next(), None);
    set.apply(&objects);
    let verified = set.invoke("verify", &["-o", "json"]).expect(0);
    let findings = verified.document()["findings"].clone();
    assert_eq!(findings.as_array().map(Vec::len), Some(1), "{findings}");
}
