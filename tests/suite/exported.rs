//! Manifests and objects that come from an export by `kubectl get`.

use serde_json::{Value, json};

use crate::support::{PART_OF, Program, Set, cluster, config_map, namespace, with};

fn with_metadata(object: &Value, field: &str, value: Value) -> Value {
    let mut object = object.clone();
    object["metadata"][field] = value;
    object
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
