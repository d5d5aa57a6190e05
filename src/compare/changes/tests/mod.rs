//! Tables: small objects with small field sets.

mod definitions;
mod managers;
mod values;

use serde_json::{Value, json};

use super::{CrdVersion, Reason, Verdict, compare};

const US: &str = "us";

fn entry(manager: &str, operation: &str, api_version: &str, fields: &Value) -> Value {
    json!({"manager": manager, "operation": operation, "apiVersion": api_version,
        "fieldsType": "FieldsV1", "fieldsV1": fields, "time": "2026-01-01T00:00:00Z"})
}

/// A kind with the given content below `spec`, as manifest, and live with our
/// entry over the given tree.
struct Example {
    desired: Value,
    live: Value,
}

impl Example {
    fn of(api_version: &str, kind: &str, desired: &Value, tree: &Value, live: &Value) -> Self {
        let metadata = json!({"name": "x", "namespace": "n", "labels": {"a": "b"}});
        let mut live_metadata = metadata.clone();
        live_metadata["resourceVersion"] = json!("7");
        live_metadata["managedFields"] = json!([entry(
            US,
            "Apply",
            api_version,
            &json!({"f:metadata": {"f:labels": {"f:a": {}}}, "f:spec": tree}),
        )]);
        Self {
            desired: json!({"apiVersion": api_version, "kind": kind, "metadata": metadata,
                "spec": desired}),
            live: json!({"metadata": live_metadata, "spec": live}),
        }
    }

    fn deployment(desired: &Value, tree: &Value, live: &Value) -> Self {
        Self::of("apps/v1", "Deployment", desired, tree, live)
    }

    fn with(mut self, other: Value) -> Self {
        if let Some(Value::Array(entries)) = self.live.pointer_mut("/metadata/managedFields") {
            entries.push(other);
        }
        self
    }

    fn verdict(&self) -> Verdict {
        compare(&self.desired, &self.live, US, None)
    }

    fn reason(&self) -> String {
        match self.verdict() {
            Verdict::Unchanged => "unchanged".to_owned(),
            Verdict::Send(reason) => reason.to_string(),
        }
    }
}

fn in_pod(containers: &Value) -> Value {
    json!({"template": {"spec": {"containers": containers}}})
}

fn in_pod_tree(containers: &Value) -> Value {
    json!({"f:template": {"f:spec": {"f:containers": containers}}})
}

/// A container `c` in manifest, tree and live object, with more fields in each.
fn container(desired: &Value, tree: &Value, live: &Value) -> Example {
    let merged = |mut base: Value, more: &Value| {
        if let (Value::Object(base), Value::Object(more)) = (&mut base, more) {
            base.extend(more.clone());
        }
        base
    };
    Example::deployment(
        &in_pod(&json!([merged(json!({"name": "c"}), desired)])),
        &in_pod_tree(&json!({"k:{\"name\":\"c\"}": merged(json!({".": {}, "f:name": {}}), tree)})),
        &in_pod(&json!([merged(
            json!({"name": "c", "imagePullPolicy": "Always"}),
            live
        )])),
    )
}

#[test]
fn equal_manifest_tree_and_object_are_unchanged() {
    let example = container(
        &json!({"image": "i", "args": ["a", "b"], "securityContext": {},
            "ports": [{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}]}),
        &json!({"f:image": {}, "f:args": {}, "f:securityContext": {}, "f:ports": {
            "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}},
            "k:{\"containerPort\":80,\"protocol\":\"UDP\"}":
                {".": {}, "f:containerPort": {}, "f:protocol": {}}}}),
        &json!({"image": "i", "args": ["a", "b"], "securityContext": {},
            "ports": [{"containerPort": 80, "protocol": "TCP"},
                {"containerPort": 80, "protocol": "UDP"}]}),
    );
    assert_eq!(example.reason(), "unchanged");
}

#[test]
fn each_difference_has_its_reason() {
    let cases = [
        (
            json!({}),
            json!({"f:image": {}}),
            json!({"image": "i"}),
            "field dropped: spec.template.spec.containers[name=c].image",
        ),
        (
            json!({"image": "i"}),
            json!({}),
            json!({"image": "i"}),
            "field added: spec.template.spec.containers[name=c].image",
        ),
        (
            json!({"image": "i"}),
            json!({"f:image": {}}),
            json!({"image": "j"}),
            "value differs: spec.template.spec.containers[name=c].image",
        ),
        (
            json!({"image": "i"}),
            json!({"f:image": {}}),
            json!({}),
            "value differs: spec.template.spec.containers[name=c].image",
        ),
        (
            json!({"args": ["a"]}),
            json!({"f:args": {}}),
            json!({"args": ["a", "b"]}),
            "value differs: spec.template.spec.containers[name=c].args",
        ),
        // The tree of `env: null`: another manager's variable is not ours yet.
        (
            json!({"env": [{"name": "A"}]}),
            json!({"f:env": {}}),
            json!({"env": [{"name": "A"}]}),
            "field added: spec.template.spec.containers[name=c].env",
        ),
        // The tree of `resources: {}`, with the same limits from elsewhere.
        (
            json!({"resources": {"limits": {"cpu": "1"}}}),
            json!({"f:resources": {}}),
            json!({"resources": {"limits": {"cpu": "1"}}}),
            "field added: spec.template.spec.containers[name=c].resources",
        ),
        (
            json!({"surprise": [1]}),
            json!({"f:surprise": {}}),
            json!({"surprise": [1]}),
            "unknown shape: spec.template.spec.containers[name=c].surprise",
        ),
        // A declared field that is a member itself: an update records it so, and fields of another tool may have moved
        // with its entry.
        (
            json!({"resources": {"limits": {"cpu": "1"}}}),
            json!({"f:resources": {".": {}, "f:limits": {"f:cpu": {}}}}),
            json!({"resources": {"limits": {"cpu": "1"}}}),
            "owned by an update, not by an apply: spec.template.spec.containers[name=c].resources",
        ),
    ];
    for (desired, tree, live, expected) in cases {
        assert_eq!(container(&desired, &tree, &live).reason(), expected);
    }
}

#[test]
fn order_counts_among_our_items_only() {
    let tree = in_pod_tree(&json!({
        "k:{\"name\":\"a\"}": {".": {}, "f:name": {}},
        "k:{\"name\":\"b\"}": {".": {}, "f:name": {}}}));
    let (a, b, other) = (
        json!({"name": "a"}),
        json!({"name": "b"}),
        json!({"name": "sidecar"}),
    );
    let cases = [
        (json!([a, b]), "unchanged"),
        (json!([other, a, other.clone(), b]), "unchanged"),
        (
            json!([b, a]),
            "order differs: spec.template.spec.containers[name=b]",
        ),
        (
            json!([a, b, a]),
            "value differs: spec.template.spec.containers[name=a]",
        ),
        (json!([a]), "value differs: spec.template.spec.containers[name=b]"),
    ];
    for (live, expected) in cases {
        let example = Example::deployment(&in_pod(&json!([a, b])), &tree, &in_pod(&live));
        assert_eq!(example.reason(), expected, "{live}");
    }
    let twice = Example::deployment(&in_pod(&json!([a, a])), &tree, &in_pod(&json!([a, b])));
    assert_eq!(twice.reason(), "ambiguous item: spec.template.spec.containers");
}

#[test]
fn finalizers_are_a_set() {
    let tree = json!({"f:labels": {"f:a": {}}, "f:finalizers": {"v:\"x\"": {}, "v:\"y\"": {}}});
    let example = |desired: Value, live: Value| {
        let mut example = Example::deployment(&json!({}), &json!({}), &json!({}));
        example.desired["metadata"]["finalizers"] = desired;
        example.live["metadata"]["finalizers"] = live;
        example.live["metadata"]["managedFields"][0]["fieldsV1"] = json!({"f:metadata": tree, "f:spec": {}});
        example.reason()
    };
    assert_eq!(
        example(json!(["x", "y"]), json!(["x", "other", "y"])),
        "unchanged"
    );
    assert_eq!(
        example(json!(["y", "x"]), json!(["x", "y"])),
        "order differs: metadata.finalizers[\"x\"]"
    );
    assert_eq!(
        example(json!(["x"]), json!(["x", "y"])),
        "field dropped: metadata.finalizers[\"y\"]"
    );
    assert_eq!(
        example(json!(["x", "y", "z"]), json!(["x", "y", "z"])),
        "field added: metadata.finalizers[]"
    );
}

#[test]
fn deep_nesting_ends() {
    let (mut value, mut tree) = (json!({"x": 1}), json!({"f:x": {}}));
    for _ in 0..150 {
        value = json!({"x": value});
        tree = json!({"f:x": tree});
    }
    let reason = Example::of("example.com/v1", "Thing", &value, &tree, &value).verdict();
    assert!(matches!(reason, Verdict::Send(Reason::TooDeep(_))));
}
