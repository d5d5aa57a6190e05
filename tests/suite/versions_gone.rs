//! A kind whose preferred version stops being served while a run continues: its objects are
//! there anyway, and are not taken for gone.

use http::Method;
use serde_json::{Value, json};

use crate::support::{
    Program, Proxy, Sent, Set, cluster, config_map, custom_resource, definition, eventually, fresh,
    identities, namespace,
};

/// Defines a kind that is served as `v2`, which is preferred, and as `v1`.
fn defined(group: &str) -> Value {
    let mut object = definition(group, "Cluster");
    let versions = object["spec"]["versions"].as_array_mut().expect("versions");
    let mut newer = versions[0].clone();
    newer["name"] = json!("v2");
    newer["storage"] = json!(false);
    versions.insert(0, newer);
    // Returns when the first version is served.
    cluster().define(&object);
    object
}

/// Stops serving `v2` when a path of it is read for the first time that ends in `end`, without its query.
fn retiring(definition: &Value, group: &str, end: &'static str) -> Proxy {
    let (definition, root) = (definition.clone(), format!("/apis/{group}/v2/"));
    let start = root.clone();
    let is_it = move |sent: &Sent| {
        let (path, query) = sent.path.split_once('?').unwrap_or((&sent.path, ""));
        // `delete` lists what lacks the label at the same time, which must not be what it waits for.
        let is_of_members = !query.contains("%21") && !query.contains('!');
        sent.method == Method::GET && path.starts_with(&start) && path.ends_with(end) && is_of_members
    };
    Proxy::before_request(is_it, move || {
        let mut versions = definition["spec"]["versions"].clone();
        versions[0]["served"] = json!(false);
        cluster().patch(&definition, &json!({"spec": {"versions": versions}}));
        eventually("the newer version is not served any more", || {
            (!cluster().knows(&format!("{root}widgets"))).then_some(())
        });
    })
}

#[test]
fn its_objects_are_still_released_and_deleted() {
    for command in ["disband", "delete"] {
        let home = namespace("home");
        let group = format!("{}.example.com", fresh("g"));
        let definition = defined(&group);
        let set = Set::secret(&home, "web");
        let objects = [
            custom_resource(&group, None, "one"),
            config_map(&home, "two", "1"),
        ];
        set.apply(&objects);
        let proxy = retiring(&definition, &group, "widgets");
        let program = Program::with_kubeconfig(&proxy.kubeconfig());

        let run = set.invoke_by(program, command, &["--yes"]).expect(0);

        let done = if command == "delete" {
            "deleted"
        } else {
            "released"
        };
        for object in identities(&objects) {
            assert!(run.results(done).contains(&object), "{}", run.stderr);
        }
        assert_eq!(cluster().members(&set.id), []);
        cluster().delete(&definition);
    }
}

#[test]
fn a_parent_of_that_kind_is_not_taken_for_missing() {
    let home = namespace("home");
    let group = format!("{}.example.com", fresh("g"));
    let definition = defined(&group);
    let set = Set::custom(&group, None, &home);
    cluster().create(&custom_resource(&group, None, "web"));
    set.apply(&[config_map(&home, "one", "1")]);
    let proxy = retiring(&definition, &group, "web");
    let program = Program::with_kubeconfig(&proxy.kubeconfig());
    set.invoke_by(program, "delete", &["--yes", "--ignore-not-found"])
        .expect(4);
    assert_eq!(set.unrecorded(), Vec::<String>::new());
    assert_eq!(set.members().len(), 1);
    set.delete(&[]).expect(0);
    cluster().delete(&definition);
}
