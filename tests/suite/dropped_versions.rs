//! A version leaves a definition, and the managed fields of its objects still name it: the server refuses
//! every apply of them, and drops all managed fields at any other write.

use controlplane::Grant;
use http::Method;
use serde_json::{Value, json};

use super::rights::{rule, user};
use crate::support::{
    Files, Program, Proxy, Set, cluster, custom_resource, definition, eventually, fresh, namespace,
    objects_file, path_of,
};

/// The version that leaves the definition.
const OLD: &str = "v1alpha1";

/// A definition with the old version and `v1`.
fn with_old_version(group: &str) -> Value {
    let mut object = definition(group, "Namespaced");
    let versions = object["spec"]["versions"].as_array_mut().expect("versions");
    let mut old = versions[0].clone();
    old["name"] = json!(OLD);
    old["storage"] = json!(false);
    versions.push(old);
    object
}

/// Removes the old version from a definition in the cluster.
fn drop_old_version(group: &str) -> Value {
    let new = definition(group, "Namespaced");
    cluster().patch(&new, &json!({"spec": {"versions": new["spec"]["versions"]}}));
    eventually("the old version is not served any more", || {
        (!cluster().knows(&format!("/apis/{group}/{OLD}/widgets"))).then_some(())
    });
    new
}

fn group() -> String {
    format!("{}.example.com", fresh("g"))
}

fn widget(group: &str, home: &str, version: &str, size: u64) -> Value {
    let mut object = custom_resource(group, Some(home), "one");
    object["apiVersion"] = json!(format!("{group}/{version}"));
    object["spec"]["size"] = json!(size);
    object
}

/// The managed fields of the live object.
fn entries(object: &Value) -> Vec<Value> {
    let live = cluster().live(object).expect("the object");
    let entries = live["metadata"]["managedFields"].as_array();
    entries.cloned().unwrap_or_default()
}

/// Asserts that all entries name the version of this object, and that the set applies its size.
#[track_caller]
fn assert_owned(object: &Value) {
    let entries = entries(object);
    for entry in &entries {
        assert_eq!(entry["apiVersion"], object["apiVersion"], "{entry}");
    }
    let ours = |entry: &&Value| entry["manager"] == "applyset" && entry["operation"] == "Apply";
    let ours = entries.iter().find(ours).expect("an entry of the set");
    assert_eq!(ours["fieldsV1"]["f:spec"]["f:size"], json!({}));
}

#[test]
fn one_run_drops_the_version_and_moves_the_object() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let group = group();
    let mut old = widget(&group, &home, OLD, 1);
    old["metadata"]["annotations"] = json!({"note": "leaves the manifest"});
    set.apply(&[with_old_version(&group), old]);
    let new = definition(&group, "Namespaced");
    // In the first run, the server may still use the former definition for a moment.
    for size in [2, 3] {
        let objects = [new.clone(), widget(&group, &home, "v1", size)];

        set.apply_with(&objects, &[]).expect(0);

        let live = cluster().live(&objects[1]).expect("the object");
        assert_eq!(live["spec"]["size"], json!(size));
        assert_eq!(live["metadata"].get("annotations"), None, "{live}");
        set.assert_holds(&objects);
    }
    let object = widget(&group, &home, "v1", 3);
    assert_owned(&object);
    set.apply_with(std::slice::from_ref(&new), &[]).expect(0);
    assert_eq!(cluster().live(&object), None);
    cluster().delete(&new);
}

#[test]
fn an_object_that_was_applied_in_that_version_is_applied_in_another() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let group = group();
    cluster().define(&with_old_version(&group));
    set.apply(&[widget(&group, &home, OLD, 1)]);
    let definition = drop_old_version(&group);
    let object = widget(&group, &home, "v1", 2);

    set.apply_with(std::slice::from_ref(&object), &[]).expect(0);

    let live = cluster().live(&object).expect("the object");
    assert_eq!(live["spec"]["size"], json!(2));
    assert_owned(&object);
    set.assert_holds(std::slice::from_ref(&object));
    cluster().delete(&definition);
}

#[test]
fn two_runs_of_the_set_may_meet_at_the_object() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let group = group();
    cluster().define(&with_old_version(&group));
    set.apply(&[widget(&group, &home, OLD, 1)]);
    let definition = drop_old_version(&group);
    let [theirs, ours] = [2, 3].map(|size| widget(&group, &home, "v1", size));
    let (other, path) = (Set::secret(&home, "web"), path_of(&ours));
    let proxy = Proxy::before_request(
        move |sent| sent.method == Method::GET && sent.path == path,
        move || drop(other.apply_with(std::slice::from_ref(&theirs), &[]).expect(0)),
    );

    set.apply_through(&proxy, std::slice::from_ref(&ours), &[])
        .expect(0);

    let live = cluster().live(&ours).expect("the object");
    assert_eq!(live["spec"]["size"], json!(3));
    assert_owned(&ours);
    cluster().delete(&definition);
}

#[test]
fn without_the_definition_the_object_stays_as_it_is() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let group = group();
    cluster().define(&with_old_version(&group));
    set.apply(&[widget(&group, &home, OLD, 1)]);
    let definition = drop_old_version(&group);
    let object = widget(&group, &home, "v1", 2);
    let before = cluster().live(&object);
    let person = user(&[Grant::in_namespace(
        &home,
        [rule(&group, "widgets", &["*"]), rule("", "secrets", &["*"])],
    )]);
    let files = Files::new().with("objects.yaml", &objects_file(std::slice::from_ref(&object)));

    let run = set
        .command(Program::with_kubeconfig(&person.kubeconfig), &files)
        .args(["-o", "json"])
        .run()
        .expect(1);

    assert!(run.stderr.contains("invalid group/version"), "{}", run.stderr);
    assert_eq!(cluster().live(&object), before);
    set.apply_with(std::slice::from_ref(&object), &["--dry-run=server"])
        .expect(0);
    assert_eq!(cluster().live(&object), before);
    cluster().delete(&definition);
}

#[test]
fn an_object_outside_of_the_set_is_taken_in_and_one_of_another_set_is_left_alone() {
    let home = namespace("home");
    let group = group();
    let former = widget(&group, &home, OLD, 1);
    cluster().define(&with_old_version(&group));
    cluster().apply_as("someone", &former);
    let definition = drop_old_version(&group);
    let object = widget(&group, &home, "v1", 1);
    let set = Set::secret(&home, "web");

    set.apply_with(std::slice::from_ref(&object), &[]).expect(0);

    assert_owned(&object);
    let theirs = |entry: &Value| entry["manager"] == "someone" && entry["operation"] == "Apply";
    assert!(entries(&object).iter().any(theirs));
    let before = cluster().live(&object);
    Set::secret(&home, "other")
        .apply_with(std::slice::from_ref(&object), &[])
        .expect(3);
    assert_eq!(cluster().live(&object), before);
    cluster().delete(&definition);
}

#[test]
fn moved_objects_keep_their_fields_and_can_be_applied_and_deleted() {
    let home = namespace("home");
    let (set, next) = (Set::secret(&home, "web"), Set::config_map(&home, "next"));
    let group = group();
    cluster().define(&with_old_version(&group));
    set.apply(&[widget(&group, &home, OLD, 1)]);
    let definition = drop_old_version(&group);
    let object = widget(&group, &home, "v1", 2);

    set.invoke("move", &[&next.reference, "--yes"]).expect(0);

    assert_owned(&object);
    next.assert_holds(std::slice::from_ref(&object));
    next.apply_with(std::slice::from_ref(&object), &[]).expect(0);
    assert_owned(&object);
    next.delete(&[]).expect(0);
    assert_eq!(cluster().live(&object), None);
    cluster().delete(&definition);
}

#[test]
fn released_objects_keep_their_fields_and_can_be_adopted() {
    let home = namespace("home");
    let (set, next) = (Set::secret(&home, "web"), Set::secret(&home, "next"));
    let group = group();
    cluster().define(&with_old_version(&group));
    set.apply(&[widget(&group, &home, OLD, 1)]);
    let object = widget(&group, &home, "v1", 1);
    cluster().apply_as("someone", &widget(&group, &home, OLD, 1));
    let definition = drop_old_version(&group);

    set.invoke("disband", &["--yes"]).expect(0);

    assert_owned(&object);
    let files = Files::new().with("objects.yaml", &objects_file(std::slice::from_ref(&object)));
    let manifests = files.path("objects.yaml");
    let manifests = manifests.to_str().expect("a path");
    next.invoke("adopt", &["-f", manifests]).expect(0);
    assert_owned(&object);
    next.delete(&[]).expect(0);
    assert_eq!(cluster().live(&object), None);
    cluster().delete(&definition);
}
