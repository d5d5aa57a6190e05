//! A custom resource was written at a version whose schema lacks a field that the applied version has: the server
//! converts the object to the version of each entry of managedFields, and refuses every apply.

use controlplane::Grant;
use serde_json::{Value, json};

use super::rights::{rule, user};
use crate::support::{
    Files, Program, Run, Set, cluster, custom_resource, definition, eventually, fresh, namespace,
    objects_file,
};

/// The version without the field.
const OLD: &str = "v1beta1";

/// Whether the server serves the version without the field.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OldVersion {
    Served,
    NotServed,
}

/// A definition with `spec.color` in `v1` alone.
fn with_older_schema(group: &str, old: OldVersion) -> Value {
    let mut object = definition(group, "Namespaced");
    let spec = |fields: Value| json!({"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}});
    let size = json!({"type": "integer"});
    let version = |name: &str, is_served: bool, schema: Value| {
        json!({
            "name": name, "served": is_served, "storage": name == "v1", "schema": {"openAPIV3Schema": schema},
        })
    };
    object["spec"]["versions"] = json!([
        version(OLD, old == OldVersion::Served, spec(json!({"size": size}))),
        version(
            "v1",
            true,
            spec(json!({"size": size, "color": {"type": "string"}}))
        ),
    ]);
    object
}

fn widget(group: &str, home: &str, version: &str, spec: Value) -> Value {
    let mut object = custom_resource(group, Some(home), "one");
    object["apiVersion"] = json!(format!("{group}/{version}"));
    object["spec"] = spec;
    object
}

fn group() -> String {
    format!("{}.example.com", fresh("g"))
}

fn replace_versions(definition: &Value) {
    let versions = json!({"spec": {"versions": definition["spec"]["versions"]}});
    cluster().patch(definition, &versions);
}

/// Writes a note as another writer does.
fn note(object: &Value, name: &str) {
    let value = json!({"metadata": {"annotations": {name: "1"}}});
    cluster().patch(object, &value);
}

#[track_caller]
fn color(object: &Value) -> Value {
    cluster().live(object).expect("the object")["spec"]["color"].clone()
}

/// Returns the managers of the entries, all of which have to be in the version of the object.
#[track_caller]
fn managers(object: &Value) -> Vec<String> {
    let live = cluster().live(object).expect("the object");
    let entries = live["metadata"]["managedFields"].as_array().expect("entries");
    let manager = |entry: &Value| {
        assert_eq!(entry["apiVersion"], object["apiVersion"], "{entry}");
        entry["manager"].as_str().expect("a manager").to_owned()
    };
    let mut managers: Vec<String> = entries.iter().map(manager).collect();
    managers.sort();
    managers
}

fn diff(set: &Set, objects: &[Value]) -> Run {
    let files = Files::new().with("objects.yaml", &objects_file(objects));
    let manifests = files.path("objects.yaml");
    set.invoke("diff", &["-f", manifests.to_str().expect("a path")])
}

#[test]
fn a_field_that_the_older_schema_lacks_is_applied_and_removed() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let group = group();
    let definition = with_older_schema(&group, OldVersion::Served);
    let old = widget(&group, &home, OLD, json!({"size": 1}));
    set.apply(&[definition.clone(), old.clone()]);
    note(&old, "seen");
    let new = widget(&group, &home, "v1", json!({"size": 1, "color": "red"}));
    let objects = [definition.clone(), new.clone()];

    let shown = diff(&set, &objects).expect(1);

    assert!(shown.stdout.contains("color: red"), "{}", shown.stdout);
    assert_eq!(shown.errors(), Vec::<&str>::new());
    set.apply_with(&objects, &["--dry-run=server"]).expect(0);
    assert_eq!(color(&new), Value::Null);
    set.apply_with(&objects, &[]).expect(0);
    assert_eq!(color(&new), "red");
    assert!(managers(&new).contains(&"applyset".to_owned()));
    assert_eq!(managers(&new).len(), 2);
    diff(&set, &objects).expect(0);
    let again = set.apply_with(&objects, &[]).expect(0);
    assert_eq!(again.results("configured"), Vec::<String>::new());
    let plain = [
        definition.clone(),
        widget(&group, &home, "v1", json!({"size": 1})),
    ];
    set.apply_with(&plain, &[]).expect(0);
    assert_eq!(color(&new), Value::Null);
    set.assert_holds(&plain);
    cluster().delete(&definition);
}

#[test]
fn what_left_the_manifest_is_in_the_diff_of_the_new_version() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let group = group();
    let definition = with_older_schema(&group, OldVersion::Served);
    cluster().define(&definition);
    set.apply(&[widget(&group, &home, OLD, json!({"size": 1}))]);
    let new = [widget(&group, &home, "v1", json!({"color": "red"}))];

    let shown = diff(&set, &new).expect(1);

    assert!(shown.stdout.contains("-  size: 1"), "{}", shown.stdout);
    assert!(shown.stdout.contains("+  color: red"), "{}", shown.stdout);
    set.apply_with(&new, &[]).expect(0);
    let live = cluster().live(&new[0]).expect("the object");
    assert_eq!(live["spec"], json!({"color": "red"}));
    cluster().delete(&definition);
}

#[test]
fn entries_of_others_in_a_version_that_is_not_served_are_rewritten_too() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let group = group();
    cluster().define(&with_older_schema(&group, OldVersion::Served));
    let [first, next] = [1, 2].map(|size| json!({"size": size}));
    set.apply(&[widget(&group, &home, "v1", first)]);
    note(&widget(&group, &home, OLD, json!({})), "seen");
    let definition = with_older_schema(&group, OldVersion::NotServed);
    replace_versions(&definition);
    eventually("the old version is not served any more", || {
        (!cluster().knows(&format!("/apis/{group}/{OLD}/widgets"))).then_some(())
    });
    let mut new = widget(&group, &home, "v1", next);
    set.apply_with(std::slice::from_ref(&new), &[]).expect(0);
    new["spec"]["color"] = json!("red");

    set.apply_with(std::slice::from_ref(&new), &[]).expect(0);

    assert_eq!(color(&new), "red");
    assert_eq!(managers(&new).len(), 2);
    cluster().delete(&definition);
}

#[test]
fn released_objects_keep_their_fields_after_an_older_schema_changed() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let group = group();
    let mut wide = with_older_schema(&group, OldVersion::Served);
    wide["spec"]["versions"][0]["schema"] = wide["spec"]["versions"][1]["schema"].clone();
    cluster().define(&wide);
    let object = widget(&group, &home, "v1", json!({"size": 1, "color": "red"}));
    set.apply(std::slice::from_ref(&object));
    note(&widget(&group, &home, OLD, json!({})), "seen");
    let mut definition = wide;
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["color"] =
        json!({"type": "integer"});
    replace_versions(&definition);
    let mut probe = widget(&group, &home, OLD, json!({"color": "red"}));
    probe["metadata"]["name"] = json!("probe");
    eventually("the server uses the other schema", || {
        cluster().dry_run_create(&probe).map(drop)
    });

    set.invoke("disband", &["--yes"]).expect(0);

    assert_eq!(managers(&object).len(), 2);
    cluster().delete(&definition);
}

#[test]
fn without_the_definition_the_refusal_is_reported_once_and_another_run_is_not_advised() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let group = group();
    let definition = with_older_schema(&group, OldVersion::Served);
    cluster().define(&definition);
    set.apply(&[widget(&group, &home, OLD, json!({"size": 1}))]);
    let object = widget(&group, &home, "v1", json!({"size": 1, "color": "red"}));
    let before = cluster().live(&object);
    let person = user(&[Grant::in_namespace(
        &home,
        [rule(&group, "widgets", &["*"]), rule("", "secrets", &["*"])],
    )]);
    let files = Files::new().with("objects.yaml", &objects_file(std::slice::from_ref(&object)));
    let manifests = files.path("objects.yaml");
    let manifests = manifests.to_str().expect("a path");
    for command in ["apply", "diff"] {
        let program = Program::with_kubeconfig(&person.kubeconfig);

        let run = set.invoke_by(program, command, &["-f", manifests]).expect(1);

        let reported = run.stderr.matches("field not declared in schema").count();
        assert_eq!(reported, 1, "{command}: {}", run.stderr);
        assert!(!run.stderr.contains("same command again"), "{}", run.stderr);
        assert!(run.stderr.contains("--show-managed-fields"), "{}", run.stderr);
        assert_eq!(cluster().live(&object), before, "{command}");
    }
    cluster().delete(&definition);
}
