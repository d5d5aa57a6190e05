//! Values that the server writes in another way.

use super::*;

#[test]
fn values_written_differently_are_recognized() {
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
        // The same below another manager's Apply entry: ours would only move.
        let applied = entry(
            "other",
            "Apply",
            "apps/v1",
            &json!({"f:metadata": {"f:labels": {}}}),
        );
        let beside = container(&desired, &tree, &live).with(applied).reason();
        assert_eq!(beside, "unchanged", "{desired}");
    }
}

/// An object of a built-in kind with one field and its metadata.
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
    // Text is not bytes.
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
fn a_blank_status_is_ignored() {
    let example = || {
        let mut example = Example::deployment(
            &json!({"replicas": 1}),
            &json!({"f:replicas": {}}),
            &json!({"replicas": 1}),
        );
        example.desired["status"] = json!({});
        example.live["status"] = json!({"replicas": 1});
        example
    };
    assert_eq!(example().reason(), "unchanged");
    let mut filled = example();
    filled.desired["status"] = json!({"replicas": 3});
    assert_eq!(filled.reason(), "field added: status");
}
