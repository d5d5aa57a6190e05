//! Tables: small objects with small field sets.

use serde_json::{Value, json};

use super::{Definition, Reason, Verdict, compare};
use crate::model::applyset::PART_OF_LABEL;

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

/// A Deployment whose part-of label an `Update` entry of this manager has, and our `Apply` entry
/// has not.
fn relabelled(manager: &str, wanted: &str, live: &str) -> Example {
    let mut example = Example::deployment(
        &json!({"replicas": 1}),
        &json!({"f:replicas": {}}),
        &json!({"replicas": 1}),
    );
    example.desired["metadata"]["labels"][PART_OF_LABEL] = json!(wanted);
    example.live["metadata"]["labels"][PART_OF_LABEL] = json!(live);
    let label = json!({"f:metadata": {"f:labels": {(format!("f:{PART_OF_LABEL}")): {}}}});
    example.with(entry(manager, "Update", "apps/v1", &label))
}

fn ours(example: &mut Example) -> &mut Value {
    &mut example.live["metadata"]["managedFields"][0]
}

#[test]
fn a_label_that_our_manager_has_written_counts_as_applied() {
    assert_eq!(relabelled(US, "set", "set").reason(), "unchanged");
    let label = format!("metadata.labels.{PART_OF_LABEL}");
    assert_eq!(
        relabelled(US, "set", "another").reason(),
        format!("value differs: {label}")
    );
    for stranger in ["them", "kubectl-label"] {
        assert_eq!(
            relabelled(stranger, "set", "set").reason(),
            format!("field added: {label}")
        );
    }
    // With the label went the last label, or the last field.
    let mut only_label = relabelled(US, "set", "set");
    for metadata in [
        &mut only_label.desired["metadata"],
        &mut only_label.live["metadata"],
    ] {
        if let Some(labels) = metadata["labels"].as_object_mut() {
            labels.remove("a");
        }
    }
    ours(&mut only_label)["fieldsV1"] = json!({"f:spec": {"f:replicas": {}}});
    assert_eq!(only_label.reason(), "unchanged");
    if let Some(entries) = only_label.live["metadata"]["managedFields"].as_array_mut() {
        entries.remove(0);
    }
    assert_eq!(only_label.reason(), "not applied by us");
    for object in [&mut only_label.desired, &mut only_label.live] {
        object["spec"].take();
        object.as_object_mut().map(|fields| fields.remove("spec"));
    }
    assert_eq!(only_label.reason(), "unchanged");
    // What stands in the way is not understood.
    let mut leaf = relabelled(US, "set", "set");
    ours(&mut leaf)["fieldsV1"]["f:metadata"]["f:labels"] = json!({});
    assert_ne!(leaf.reason(), "unchanged");
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
        // The tree of `env: null`: somebody else's variable is not ours yet.
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
        // A declared field that is a member itself: edited by hand.
        (
            json!({"resources": {"limits": {"cpu": "1"}}}),
            json!({"f:resources": {".": {}, "f:limits": {"f:cpu": {}}}}),
            json!({"resources": {"limits": {"cpu": "1"}}}),
            "unreadable managedFields: spec.template.spec.containers[name=c].resources",
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
fn values_written_differently_are_recognised() {
    let cases = [
        (
            json!({"resources": {"limits": {"cpu": "1000m"}}}),
            json!({"f:resources": {"f:limits": {"f:cpu": {}}}}),
            json!({"resources": {"limits": {"cpu": "1"}}}),
        ),
        (
            json!({"resources": {"limits": {"cpu": 0.5}}}),
            json!({"f:resources": {"f:limits": {"f:cpu": {}}}}),
            json!({"resources": {"limits": {"cpu": "500m"}}}),
        ),
        (json!({"env": []}), json!({}), json!({})),
        (json!({"args": []}), json!({"f:args": {}}), json!({})),
        (
            json!({"tty": false, "workingDir": ""}),
            json!({"f:tty": {}, "f:workingDir": {}}),
            json!({}),
        ),
        (
            json!({"securityContext": null}),
            json!({"f:securityContext": {}}),
            json!({}),
        ),
        (
            json!({"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "p"}}}]}),
            json!({"f:env": {"k:{\"name\":\"A\"}":
                {".": {}, "f:name": {}, "f:valueFrom": {"f:fieldRef": {}}}}}),
            json!({"env": [{"name": "A", "valueFrom":
                {"fieldRef": {"apiVersion": "v1", "fieldPath": "p"}}}]}),
        ),
    ];
    for (desired, tree, live) in cases {
        let example = container(&desired, &tree, &live);
        assert_eq!(example.reason(), "unchanged", "{desired}");
        // The same below another manager's Apply entry: ours would move.
        let applied = entry(
            "other",
            "Apply",
            "apps/v1",
            &json!({"f:metadata": {"f:labels": {}}}),
        );
        let shared = container(&desired, &tree, &live).with(applied).reason();
        assert!(shared.starts_with("shared field written differently"), "{shared}");
    }
}

/// An object of a built-in kind with one field besides its metadata.
fn with_field(
    (api_version, kind): (&str, &str),
    field: &str,
    desired: &Value,
    tree: &Value,
    live: &Value,
) -> Example {
    let mut example = Example::of(api_version, kind, &json!({}), &json!({}), &json!({}));
    for (object, value) in [(&mut example.desired, desired), (&mut example.live, live)] {
        if let Some(fields) = object.as_object_mut() {
            fields.remove("spec");
            fields.insert(field.to_owned(), value.clone());
        }
    }
    let fields = &mut example.live["metadata"]["managedFields"][0]["fieldsV1"];
    if let Some(fields) = fields.as_object_mut() {
        fields.remove("f:spec");
        fields.insert(format!("f:{field}"), tree.clone());
    }
    example
}

#[test]
fn bytes_may_be_broken_into_lines() {
    let tree = json!({"f:k": {}});
    for (kind, field) in [("Secret", "data"), ("ConfigMap", "binaryData")] {
        let reason = |desired: &str, live: &str| {
            let (desired, live) = (json!({"k": desired}), json!({"k": live}));
            with_field(("v1", kind), field, &desired, &tree, &live).reason()
        };
        assert_eq!(reason("YWJj\nZGVm\r\n", "YWJjZGVm"), "unchanged");
        for (desired, live) in [("YWJj ZGVm", "YWJjZGVm"), ("YWJj\n", "YWJk"), ("\n", "YQ==")] {
            let expected = format!("value differs: {field}.k");
            assert_eq!(reason(desired, live), expected, "{desired:?}");
        }
    }
    // Text is no bytes.
    let (desired, live) = (json!({"k": "a\n"}), json!({"k": "a"}));
    let text = with_field(("v1", "ConfigMap"), "data", &desired, &tree, &live);
    assert_eq!(text.reason(), "value differs: data.k");
}

#[test]
fn limits_follow_from_each_other() {
    let reason = |desired: Value, live: Value| {
        let (desired, live) = (json!({"limits": [desired]}), json!({"limits": [live]}));
        Example::of("v1", "LimitRange", &desired, &json!({"f:limits": {}}), &live).reason()
    };
    for (desired, live) in [
        (
            json!({"type": "Container", "defaultRequest": {"cpu": 0.1}}),
            json!({"type": "Container", "defaultRequest": {"cpu": "100m"}}),
        ),
        (
            json!({"type": "Container", "max": {"cpu": "2000m"}, "min": {"memory": "1Gi"}}),
            json!({"type": "Container", "max": {"cpu": "2"}, "min": {"memory": "1Gi"},
                "default": {"cpu": "2"}, "defaultRequest": {"cpu": "2", "memory": "1Gi"}}),
        ),
        (
            json!({"type": "Pod", "max": {"cpu": "1000m"}}),
            json!({"type": "Pod", "max": {"cpu": "1"}}),
        ),
    ] {
        assert_eq!(reason(desired, live), "unchanged");
    }
    for (desired, live) in [
        // Only those of containers are completed.
        (
            json!({"type": "Pod", "max": {"cpu": "1"}}),
            json!({"type": "Pod", "max": {"cpu": "1"}, "default": {"cpu": "1"}}),
        ),
        (
            json!({"type": "Container", "default": {"cpu": "1"}}),
            json!({"type": "Container", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "2"}}),
        ),
        // Null is a quantity of nothing.
        (
            json!({"type": "Pod", "max": {"cpu": null}}),
            json!({"type": "Pod", "max": {}}),
        ),
    ] {
        assert_eq!(reason(desired, live), "value differs: spec.limits");
    }
}

#[test]
fn templates_of_claims_are_completed() {
    let template = |more: Value| {
        let mut template = json!({"metadata": {"name": "data"}, "spec": {"volumeName": "x"}});
        if let (Some(template), Value::Object(more)) = (template.as_object_mut(), more) {
            template.extend(more);
        }
        json!({"volumeClaimTemplates": [template]})
    };
    let completed = |status: &str| {
        template(json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "status": {"phase": status}}))
    };
    let reason = |desired: Value, live: Value| {
        let tree = json!({"f:volumeClaimTemplates": {}});
        Example::of("apps/v1", "StatefulSet", &desired, &tree, &live).reason()
    };
    for desired in [json!({}), json!({"status": {}})] {
        assert_eq!(reason(template(desired), completed("Pending")), "unchanged");
    }
    assert_eq!(
        reason(template(json!({"status": {}})), completed("Bound")),
        "value differs: spec.volumeClaimTemplates"
    );
}

#[test]
fn endpoint_slices_are_atomic_lists_of_pointers() {
    let kind = ("discovery.k8s.io/v1", "EndpointSlice");
    let endpoints = |desired: Value, live: Value| {
        with_field(kind, "endpoints", &json!([desired]), &json!({}), &json!([live])).reason()
    };
    let live = json!({"addresses": ["192.0.2.1"], "conditions": {}});
    assert_eq!(
        endpoints(json!({"addresses": ["192.0.2.1"]}), live.clone()),
        "unchanged"
    );
    assert_eq!(
        endpoints(json!({"addresses": ["192.0.2.1"], "nodeName": ""}), live),
        "value differs: endpoints"
    );
    let ports = |desired: Value, live: Value| {
        with_field(kind, "ports", &json!([desired]), &json!({}), &json!([live])).reason()
    };
    let live = json!({"name": "", "port": 80, "protocol": "TCP"});
    assert_eq!(ports(json!({"port": 80}), live.clone()), "unchanged");
    assert_eq!(
        ports(json!({"port": 80, "name": "x"}), live),
        "value differs: ports"
    );
}

#[test]
fn the_phase_of_a_pending_claim_may_be_stored_or_not() {
    for kind in ["PersistentVolume", "PersistentVolumeClaim"] {
        let (spec, tree) = (json!({"volumeName": "x"}), json!({"f:volumeName": {}}));
        let mut example = Example::of("v1", kind, &spec, &tree, &spec);
        example.live["status"] = json!({"phase": "Pending"});
        assert_eq!(example.reason(), "unchanged");
    }
}

#[test]
fn a_value_written_differently_is_sent_where_another_manager_has_it() {
    let tree = json!({"f:resources": {"f:limits": {"f:cpu": {}}}});
    let example = || {
        container(
            &json!({"resources": {"limits": {"cpu": "1000m"}}}),
            &tree,
            &json!({"resources": {"limits": {"cpu": "1"}}}),
        )
    };
    let updated = |fields: &Value| {
        let item = json!({"k:{\"name\":\"c\"}": fields});
        entry(
            "editor",
            "Update",
            "apps/v1",
            &json!({"f:spec": in_pod_tree(&item)}),
        )
    };
    assert_eq!(
        example().with(updated(&json!({"f:image": {}}))).reason(),
        "unchanged"
    );
    for fields in [
        tree.clone(),
        json!({"f:resources": {}}),
        json!({"f:resources": {"f:limits": {}}}),
    ] {
        assert_eq!(
            example().with(updated(&fields)).reason(),
            "shared field written differently: \
             spec.template.spec.containers[name=c].resources.limits.cpu"
        );
    }
}

#[test]
fn keys_that_people_chose_are_never_zero_values() {
    let spec = |selector: Value| json!({"template": {"spec": {"nodeSelector": selector}}});
    let tree = json!({"f:template": {"f:spec": {"f:nodeSelector": {}}}});
    let example = Example::deployment(
        &spec(json!({"disk": "ssd", "hostname": ""})),
        &tree,
        &spec(json!({"disk": "ssd"})),
    );
    assert_eq!(example.reason(), "value differs: spec.template.spec.nodeSelector");
}

#[test]
fn blank_status_and_creation_timestamp_are_ignored() {
    let example = || {
        let mut example = Example::deployment(
            &json!({"replicas": 1}),
            &json!({"f:replicas": {}}),
            &json!({"replicas": 1}),
        );
        example.desired["status"] = json!({});
        example.desired["metadata"]["creationTimestamp"] = Value::Null;
        example.live["status"] = json!({"replicas": 1});
        example.live["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
        example
    };
    assert_eq!(example().reason(), "unchanged");
    let mut filled = example();
    filled.desired["status"] = json!({"replicas": 3});
    assert_eq!(filled.reason(), "field added: status");
}

#[test]
fn an_empty_status_counts_unless_the_live_one_is_written_as_a_subresource() {
    let verdict = |subresource: &str, fields: &Value| {
        let spec = json!({"size": 1});
        let tree = json!({"f:size": {}});
        let mut example = Example::of("example.com/v1", "Widget", &spec, &tree, &spec);
        example.desired["status"] = json!({});
        example.live["status"] = json!({"phase": "Ready"});
        let mut other = entry("x", "Update", "example.com/v1", fields);
        other["subresource"] = json!(subresource);
        example.with(other).reason()
    };
    let status = json!({"f:status": {"f:phase": {}}});
    assert_eq!(verdict("status", &status), "unchanged");
    for (subresource, fields) in [
        ("", status),
        ("status", json!({"f:metadata": {"f:labels": {}}})),
        ("status", json!({"f:status": {}})),
    ] {
        assert_eq!(
            verdict(subresource, &fields),
            "field added: status",
            "{subresource:?} {fields}"
        );
    }
}

#[test]
fn whose_entry_it_is_counts() {
    let example = || {
        Example::deployment(
            &json!({"replicas": 1}),
            &json!({"f:replicas": {}}),
            &json!({"replicas": 1}),
        )
    };
    let with_ours = |change: &dyn Fn(&mut Value)| {
        let mut example = example();
        change(&mut example.live["metadata"]["managedFields"][0]);
        example.reason()
    };
    assert_eq!(with_ours(&|_| ()), "unchanged");
    assert_eq!(
        with_ours(&|ours| ours["manager"] = json!("them")),
        "not applied by us"
    );
    assert_eq!(
        with_ours(&|ours| ours["operation"] = json!("Update")),
        "not applied by us"
    );
    assert_eq!(
        with_ours(&|ours| ours["subresource"] = json!("scale")),
        "not applied by us"
    );
    assert_eq!(
        with_ours(&|ours| ours["apiVersion"] = json!("apps/v1beta1")),
        "other version"
    );
    let older = entry("x", "Update", "apps/v1beta1", &json!({"f:spec": {}}));
    assert_eq!(example().with(older).reason(), "other version");
    let mut terminating = example();
    terminating.live["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    assert_eq!(terminating.reason(), "terminating");
}

#[test]
fn kubectl_itself_rewrites_the_annotation_of_client_side_apply() {
    let example = |manager: &str| {
        let mut example = Example::deployment(&json!({}), &json!({}), &json!({}));
        example.desired["spec"] = json!({"replicas": 1});
        example.live["spec"] = json!({"replicas": 1});
        let ours = &mut example.live["metadata"]["managedFields"][0];
        ours["manager"] = json!(manager);
        ours["fieldsV1"]["f:spec"] = json!({"f:replicas": {}});
        example.live["metadata"]["annotations"] =
            json!({"kubectl.kubernetes.io/last-applied-configuration": "{}"});
        compare(&example.desired, &example.live, manager, None)
    };
    assert_eq!(example(US), Verdict::Unchanged);
    assert!(matches!(
        example("kubectl"),
        Verdict::Send(Reason::SharedField(_))
    ));
}

#[test]
fn malformed_managed_fields_are_sent_and_never_panic() {
    let trees = [
        json!(null),
        json!([]),
        json!("x"),
        json!({}),
        json!({"spec": {}}),
        json!({"": {}}),
        json!({"f": {}}),
        json!({"é:x": {}}),
        json!({"f:spec": null}),
        json!({"f:spec": 7}),
        json!({"f:spec": {".": {}}}),
        json!({"f:spec": {"k:{}": {}}}),
        json!({"f:spec": {"i:0": {}}}),
        json!({"f:spec": {"v:1": {}}}),
        json!({"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:": {}}}}}}),
        json!({"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{": {".": {}}}}}}}),
        json!({"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:[]": {".": {}}}}}}}),
        json!({"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{}": {".": {}}}}}}}),
        json!({"f:spec": {"f:template": {"f:spec": {"f:containers": {"v:": {}}}}}}),
        json!({"f:spec": {"f:template": {"f:spec": {"f:containers": {"i:0": {}}}}}}),
        json!({"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"c\"}": 1}}}}}),
        json!({"f:spec": {"f:template": {"f:spec": {"f:containers":
            {"k:{\"name\":\"c\"}": {".": {}, "f:name": {}}, "v:1": {}}}}}}),
    ];
    for tree in trees {
        let mut example = container(&json!({}), &json!({}), &json!({}));
        example.live["metadata"]["managedFields"][0]["fieldsV1"] = tree.clone();
        assert!(matches!(example.verdict(), Verdict::Send(_)), "{tree}");
    }
    for field in ["operation", "fieldsType", "apiVersion", "fieldsV1"] {
        let mut example = container(&json!({}), &json!({}), &json!({})).with(entry(
            "x",
            "Update",
            "apps/v1",
            &json!({"f:spec": {}}),
        ));
        example.live["metadata"]["managedFields"][1][field] = Value::Null;
        assert_eq!(
            example.reason(),
            "unreadable managedFields: metadata.managedFields",
            "{field}"
        );
    }
    let without_fields = entry("x", "Update", "apps/v1", &json!({}));
    assert_eq!(
        container(&json!({}), &json!({}), &json!({}))
            .with(without_fields)
            .reason(),
        "unreadable managedFields: metadata.managedFields"
    );
    for value in [json!(null), json!([]), json!("x"), json!({"metadata": []})] {
        let example = container(&json!({}), &json!({}), &json!({}));
        assert!(matches!(
            compare(&value, &example.live, US, None),
            Verdict::Send(_)
        ));
        assert!(matches!(
            compare(&example.desired, &value, US, None),
            Verdict::Send(_)
        ));
    }
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

#[test]
fn a_definition_tells_atomic_from_granular() {
    let definition = json!({"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": {
        "type": "object", "properties": {"spec": {"type": "object", "properties": {
            "selector": {"type": "object", "x-kubernetes-map-type": "atomic",
                "properties": {"a": {"type": "string"}}},
            "granular": {"type": "object", "properties": {"a": {"type": "string"}}},
            "list": {"type": "array", "items": {"type": "string"}},
            "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "holder": {"type": "object", "properties": {
                "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                "kind": {"type": "string"}}},
            "any": {"x-kubernetes-preserve-unknown-fields": true}}}}}}}]}});
    let definition = Definition::of(&definition, "v1").expect("it has this version");
    assert!(Definition::of(&json!({"spec": {"versions": []}}), "v1").is_none());
    let cases = [
        (
            json!({"selector": {"a": "b"}}),
            json!({"f:selector": {}}),
            "unchanged",
        ),
        (json!({"list": ["a"]}), json!({"f:list": {}}), "unchanged"),
        (
            json!({"any": {"k": [1]}}),
            json!({"f:any": {"f:k": {}}}),
            "unchanged",
        ),
        (
            json!({"any": {"k": {"l": [1]}}}),
            json!({"f:any": {"f:k": {".": {}, "f:l": {}}}}),
            "unchanged",
        ),
        (
            json!({"granular": {"a": "b"}}),
            json!({"f:granular": {}}),
            "field added: spec.granular",
        ),
        (
            json!({"holder": {"set": []}, "list": ["a"]}),
            json!({"f:list": {}}),
            "unchanged",
        ),
        (
            json!({"holder": {"set": [], "kind": "x"}, "list": ["a"]}),
            json!({"f:list": {}}),
            "field added: spec.holder",
        ),
        (
            json!({"any": {"set": []}, "list": ["a"]}),
            json!({"f:list": {}}),
            "field added: spec.any",
        ),
    ];
    for (spec, tree, expected) in cases {
        let example = Example::of("example.com/v1", "Thing", &spec, &tree, &spec);
        let verdict = match compare(&example.desired, &example.live, US, Some(&definition)) {
            Verdict::Unchanged => "unchanged".to_owned(),
            Verdict::Send(reason) => reason.to_string(),
        };
        assert_eq!(verdict, expected, "{spec}");
    }
    let spec = json!({"selector": {"a": "b"}});
    let blind = Example::of(
        "example.com/v1",
        "Thing",
        &spec,
        &json!({"f:selector": {}}),
        &spec,
    );
    assert_eq!(blind.reason(), "unknown shape: spec.selector");
    // What uniting our entry with one of client-side apply leaves.
    let spec = json!({"granular": {"a": "b"}});
    let tree = json!({"f:granular": {".": {}, "f:a": {}}});
    let united = Example::of("example.com/v1", "Thing", &spec, &tree, &spec);
    assert_eq!(united.reason(), "unknown shape: spec.granular");
}
