//! The entries of our field manager and of others.

use super::*;
use crate::model::applyset::PART_OF_LABEL;

/// A Deployment whose part-of label an `Update` entry of this manager has, and our `Apply` entry
/// has not.
fn relabeled(manager: &str, wanted: &str, live: &str) -> Example {
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
    assert_eq!(relabeled(US, "set", "set").reason(), "unchanged");
    let label = format!("metadata.labels[{PART_OF_LABEL}]");
    assert_eq!(
        relabeled(US, "set", "another").reason(),
        format!("value differs: {label}")
    );
    for stranger in ["them", "kubectl-label"] {
        assert_eq!(
            relabeled(stranger, "set", "set").reason(),
            format!("field added: {label}")
        );
    }
    // With the label went the last label, or the last field.
    let mut only_label = relabeled(US, "set", "set");
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
    assert_eq!(only_label.reason(), "applied by another field manager");
    for object in [&mut only_label.desired, &mut only_label.live] {
        object["spec"].take();
        object.as_object_mut().map(|fields| fields.remove("spec"));
    }
    assert_eq!(only_label.reason(), "unchanged");
    // A leaf in the way is not understood.
    let mut leaf = relabeled(US, "set", "set");
    ours(&mut leaf)["fieldsV1"]["f:metadata"]["f:labels"] = json!({});
    assert_ne!(leaf.reason(), "unchanged");
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
        "applied by another field manager"
    );
    assert_eq!(
        with_ours(&|ours| ours["operation"] = json!("Update")),
        "applied by another field manager"
    );
    assert_eq!(
        with_ours(&|ours| ours["subresource"] = json!("scale")),
        "applied by another field manager"
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
