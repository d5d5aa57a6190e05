use serde_json::{Value, json};

use super::*;

const LABEL: &str = "applyset.kubernetes.io/part-of";

/// One case: the live object with its managers and what they have applied or updated, and the manifest that we apply.
struct Case<'a> {
    api_version: &'a str,
    kind: &'a str,
    live: Value,
    /// Our field set, and that of another manager, without metadata.
    ours: Value,
    theirs: Value,
    manifest: Value,
}

impl Case<'_> {
    fn object(&self, fields: &Value) -> Value {
        let mut object = json!({"apiVersion": self.api_version, "kind": self.kind,
            "metadata": {"name": "a", "namespace": "b", "labels": {(LABEL): "x"}}});
        for (name, value) in fields.as_object().into_iter().flatten() {
            object[name] = value.clone();
        }
        object
    }

    fn predict(&self, definition: Option<&Value>) -> PredictedApply {
        let entry = |manager: &str, operation: &str, fields: &Value| {
            let mut fields = fields.clone();
            if manager == "us" {
                fields["f:metadata"] = json!({"f:labels": {(format!("f:{LABEL}")): {}}});
            }
            json!({"manager": manager, "operation": operation, "apiVersion": self.api_version,
                "fieldsType": "FieldsV1", "fieldsV1": fields})
        };
        let mut live = self.object(&self.live);
        let mut entries = vec![entry("us", "Apply", &self.ours)];
        if !self.theirs.is_null() {
            entries.push(entry("them", "Update", &self.theirs));
        }
        live["metadata"]["managedFields"] = json!(entries);
        let definition = definition.and_then(|definition| CrdVersion::from_definition(definition, "v1"));
        predict_apply(&live, &self.object(&self.manifest), "us", definition)
    }

    /// The predicted object without type and metadata.
    fn predicted(&self, definition: Option<&Value>) -> Value {
        let mut object = self.predict(definition).object;
        let fields = object.as_object_mut().expect("an object");
        fields.retain(|name, _| !["apiVersion", "kind", "metadata"].contains(&name.as_str()));
        object
    }
}

fn config_map(live: Value, ours: Value, theirs: Value, manifest: Value) -> Case<'static> {
    Case {
        api_version: "v1",
        kind: "ConfigMap",
        live,
        ours,
        theirs,
        manifest,
    }
}

const WEB: &str = r#"k:{"name":"web"}"#;
const LOG: &str = r#"k:{"name":"log"}"#;

/// A Deployment with these containers.
fn deployment(live: Value, ours: Value, theirs: Value, manifest: Value) -> Case<'static> {
    let pod = |containers: Value| json!({"spec": {"template": {"spec": {"containers": containers}}}});
    let fields = |items: Value| json!({"f:spec": {"f:template": {"f:spec": {"f:containers": items}}}});
    Case {
        api_version: "apps/v1",
        kind: "Deployment",
        live: pod(live),
        ours: fields(ours),
        theirs: if theirs.is_null() { theirs } else { fields(theirs) },
        manifest: pod(manifest),
    }
}

fn containers(object: &Value) -> &Value {
    &object["spec"]["template"]["spec"]["containers"]
}

#[test]
fn fields_of_the_manifest_replace_live_ones_and_others_stay() {
    for (live, ours, theirs, manifest, expected) in [
        // Changed and added keys, and one of another manager.
        (
            json!({"data": {"a": "1", "theirs": "1"}}),
            json!({"f:data": {"f:a": {}}}),
            json!({"f:data": {"f:theirs": {}}}),
            json!({"data": {"a": "2", "b": "3"}}),
            json!({"data": {"a": "2", "b": "3", "theirs": "1"}}),
        ),
        // A key that only we own leaves with the manifest; one that another manager owns, too, stays.
        (
            json!({"data": {"a": "1", "b": "1", "c": "1"}}),
            json!({"f:data": {"f:a": {}, "f:b": {}, "f:c": {}}}),
            json!({"f:data": {"f:c": {}}}),
            json!({"data": {"a": "1"}}),
            json!({"data": {"a": "1", "c": "1"}}),
        ),
        // What nobody owns stays, unless the field that holds it leaves.
        (
            json!({"data": {"a": "1", "b": "1"}, "immutable": false}),
            json!({"f:data": {"f:a": {}}}),
            Value::Null,
            json!({}),
            json!({"immutable": false}),
        ),
        // An empty map adds nothing to a map with keys.
        (
            json!({"data": {"a": "1", "b": "1"}}),
            json!({"f:data": {"f:a": {}}}),
            Value::Null,
            json!({"data": {}}),
            json!({"data": {"b": "1"}}),
        ),
    ] {
        let case = config_map(live, ours, theirs, manifest);
        assert_eq!(case.predicted(None), expected, "{}", case.manifest);
    }
}

#[test]
fn items_of_lists_are_merged_by_their_keys() {
    let web = |image: &str| json!({"name": "web", "image": image});
    let log = || json!({"name": "log", "image": "l"});
    let owned = || json!({".": {}, "f:name": {}, "f:image": {}});
    for (live, ours, theirs, manifest, expected) in [
        // Defaults and fields of others in an item stay.
        (
            json!([{"name": "web", "image": "1", "imagePullPolicy": "Always"}]),
            json!({WEB: owned()}),
            Value::Null,
            json!([web("2")]),
            json!([{"name": "web", "image": "2", "imagePullPolicy": "Always"}]),
        ),
        // An item that leaves the manifest goes with its defaults, and that of another manager stays.
        (
            json!([web("1"), {"name": "log", "image": "l", "imagePullPolicy": "Always"}]),
            json!({WEB: owned(), LOG: owned()}),
            Value::Null,
            json!([web("1")]),
            json!([web("1")]),
        ),
        (
            json!([web("1"), log()]),
            json!({WEB: owned()}),
            json!({LOG: owned()}),
            json!([web("2")]),
            json!([web("2"), log()]),
        ),
        // The manifest decides the order of its items.
        (
            json!([web("1"), log()]),
            json!({WEB: owned(), LOG: owned()}),
            Value::Null,
            json!([log(), web("1")]),
            json!([log(), web("1")]),
        ),
        // A probe leaves as a whole, although the server has filled it in.
        (
            json!([{"name": "web", "image": "1", "livenessProbe": {"httpGet": {"port": 80, "scheme": "HTTP"}, "periodSeconds": 10}}]),
            json!({WEB: {".": {}, "f:name": {}, "f:image": {}, "f:livenessProbe": {"f:httpGet": {"f:port": {}}}}}),
            Value::Null,
            json!([web("1")]),
            json!([web("1")]),
        ),
    ] {
        let case = deployment(live, ours, theirs, manifest);
        assert_eq!(*containers(&case.predicted(None)), expected, "{}", case.manifest);
    }
}

#[test]
fn keys_that_the_manifest_leaves_to_their_defaults_find_the_item() {
    let case = Case {
        api_version: "v1",
        kind: "Service",
        live: json!({"spec": {"ports": [
            {"port": 53, "protocol": "UDP", "targetPort": 53}, {"port": 53, "protocol": "TCP", "targetPort": 53},
        ]}}),
        ours: json!({"f:spec": {"f:ports": {
            r#"k:{"port":53,"protocol":"TCP"}"#: {".": {}, "f:port": {}, "f:protocol": {}},
            r#"k:{"port":53,"protocol":"UDP"}"#: {".": {}, "f:port": {}, "f:protocol": {}},
        }}}),
        theirs: Value::Null,
        manifest: json!({"spec": {"ports": [{"port": 53, "targetPort": 5353}, {"port": 80}]}}),
    };
    let expected = json!({"spec": {"ports": [
        {"port": 53, "protocol": "TCP", "targetPort": 5353}, {"port": 80, "protocol": "TCP"},
    ]}});
    assert_eq!(case.predicted(None), expected);
}

#[test]
fn a_value_that_is_only_written_in_another_way_is_no_change() {
    let resources = |cpu: &str| json!([{"name": "web", "resources": {"limits": {"cpu": cpu}}}]);
    let ours = json!({WEB: {".": {}, "f:name": {}, "f:resources": {"f:limits": {"f:cpu": {}}}}});
    for (manifest, is_same) in [("1", true), ("1000m", true), ("2", false)] {
        let case = deployment(resources("1"), ours.clone(), Value::Null, resources(manifest));
        let predicted = case.predicted(None);
        assert_eq!(*containers(&predicted) == resources("1"), is_same, "{manifest}");
    }
    // The server compares before it normalizes, so another manager is in the way.
    let theirs = json!({WEB: {"f:resources": {"f:limits": {"f:cpu": {}}}}});
    let case = deployment(
        resources("1"),
        json!({WEB: {".": {}, "f:name": {}}}),
        theirs,
        resources("1000m"),
    );
    assert_eq!(case.predict(None).conflicts.len(), 1);
}

#[test]
fn a_custom_resource_is_merged_by_its_definition() {
    let definition = json!({"spec": {"versions": [{"name": "v1", "subresources": {"status": {}}, "schema": {"openAPIV3Schema": {
        "type": "object",
        "properties": {"status": {"type": "object"}, "spec": {"type": "object", "properties": {
            "size": {"type": "integer", "default": 1},
            "atomic": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "integer"}}}},
            "keyed": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"],
                "items": {"type": "object", "properties": {"id": {"type": "string"}, "a": {"type": "integer"}}}},
        }}},
    }}}]}});
    let case = Case {
        api_version: "example.com/v1",
        kind: "Widget",
        live: json!({"spec": {"size": 5, "atomic": [{"a": 1}, {"a": 2}], "keyed": [{"id": "x", "a": 1}, {"id": "y", "a": 1}]}}),
        ours: json!({"f:spec": {"f:size": {}, "f:atomic": {}, "f:keyed": {r#"k:{"id":"x"}"#: {".": {}, "f:id": {}, "f:a": {}}}}}),
        theirs: Value::Null,
        manifest: json!({"spec": {"atomic": [{"a": 3}], "keyed": [{"id": "x", "a": 2}]}, "status": {"ignored": true}}),
    };
    let expected = json!({"spec": {"size": 1, "atomic": [{"a": 3}], "keyed": [{"id": "x", "a": 2}, {"id": "y", "a": 1}]}});
    assert_eq!(case.predicted(Some(&definition)), expected);
    assert_eq!(case.predict(Some(&definition)).doubt, None);
    // Without the definition, managedFields show the types. Defaults are missing.
    let mut expected = expected;
    expected["spec"].as_object_mut().expect("fields").remove("size");
    expected["status"] = json!({"ignored": true});
    assert_eq!(case.predicted(None), expected);
}

#[test]
fn conflicts_are_those_of_the_server() {
    let theirs = json!({"f:data": {"f:a": {}, "f:b": {}}});
    let case = config_map(
        json!({"data": {"a": "1", "b": "1"}}),
        json!({}),
        theirs,
        json!({"data": {"a": "2", "b": "1", "c": "1"}}),
    );
    let expected = PredictedConflict {
        field: ".data.a".to_owned(),
        message: r#"conflict with "them" using v1"#.to_owned(),
    };
    assert_eq!(case.predict(None).conflicts, [expected]);

    let image = |image: &str| json!([{"name": "web", "image": image}]);
    let case = deployment(
        image("1"),
        json!({}),
        json!({WEB: {".": {}, "f:image": {}}}),
        image("2"),
    );
    let conflicts = case.predict(None).conflicts;
    assert_eq!(
        conflicts[0].field,
        r#".spec.template.spec.containers[name="web"].image"#
    );
    assert_eq!(conflicts[0].message, r#"conflict with "them" using apps/v1"#);

    // The server assigns an object without managed fields to one manager.
    let mut live = case.object(&json!({"data": {"a": "1"}}));
    live["apiVersion"] = json!("v1");
    live["kind"] = json!("ConfigMap");
    let mut manifest = live.clone();
    manifest["data"] = json!({"a": "2", "b": "1"});
    let conflicts = predict_apply(&live, &manifest, "us", None).conflicts;
    assert_eq!(conflicts.len(), 1, "{conflicts:?}");
    assert!(
        conflicts[0].message.contains("before-first-apply"),
        "{conflicts:?}"
    );
}

#[test]
fn owners_change_with_the_fields() {
    let fields = |object: &Value, manager: &str| -> Option<Value> {
        let entries = object["metadata"]["managedFields"].as_array()?;
        let entry = entries.iter().find(|entry| entry["manager"] == manager)?;
        let mut fields = entry["fieldsV1"].clone();
        fields.as_object_mut()?.remove("f:metadata");
        Some(fields)
    };
    let ours = json!({"f:data": {"f:a": {}}});
    let theirs = json!({"f:data": {"f:b": {}}});
    for (manifest, our_fields, their_fields) in [
        (
            json!({"a": "1"}),
            json!({"f:data": {"f:a": {}}}),
            Some(theirs.clone()),
        ),
        // An equal value is shared, another one is taken.
        (
            json!({"a": "1", "b": "1"}),
            json!({"f:data": {"f:a": {}, "f:b": {}}}),
            Some(theirs.clone()),
        ),
        (json!({"b": "2"}), json!({"f:data": {"f:b": {}}}), None),
    ] {
        let live = json!({"data": {"a": "1", "b": "1"}});
        let case = config_map(live, ours.clone(), theirs.clone(), json!({"data": manifest}));
        let after = case.predict(None).object;
        assert_eq!(fields(&after, "us"), Some(our_fields), "{}", case.manifest);
        assert_eq!(fields(&after, "them"), their_fields, "{}", case.manifest);
    }
}

#[test]
fn a_prediction_is_doubtful_if_owners_are_of_another_version() {
    let case = |data: Value, version: &str| {
        let case = config_map(
            json!({"data": {"a": "1"}}),
            json!({"f:data": {"f:a": {}}}),
            Value::Null,
            json!({"data": data}),
        );
        let mut live = case.predict(None).object;
        live["data"] = json!({"a": "1"});
        live["metadata"]["managedFields"][0]["apiVersion"] = json!(version);
        predict_apply(&live, &case.object(&case.manifest), "us", None).doubt
    };
    assert_eq!(case(json!({"a": "1"}), "v1"), None);
    assert_eq!(case(json!({"a": "1"}), "v1beta1"), Some(Doubt::OtherVersion));
}
