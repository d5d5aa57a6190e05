use serde_json::json;

use super::*;
use crate::model::resource::Subresource;

fn definition(group: &str, kind: &str, plural: &str, scope: &str, versions: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group,
            "names": {"kind": kind, "plural": plural, "shortNames": ["short"]},
            "scope": scope,
            "versions": versions,
        },
    })
}

#[test]
fn definitions_among_the_manifests_bring_their_kinds() {
    let versions = json!([
        {"name": "v1alpha1", "served": false},
        {"name": "v1beta1", "served": true},
        {"name": "v1", "served": true, "storage": true},
    ]);
    let manifests = [
        json!({"apiVersion": "v1", "kind": "ConfigMap"}),
        definition("new.example.com", "Widget", "widgets", "Cluster", &versions),
    ];
    let before = sample();
    let after = before.with_custom_resources(manifests.iter());

    let KindLookup::Found(widgets) = after.find_preferred(&GroupKind::new("new.example.com", "Widget"))
    else {
        panic!("the kind is not served yet");
    };
    assert_eq!(
        (widgets.origin, widgets.scope),
        (Origin::NotYetServed, Scope::Cluster)
    );
    assert_eq!(
        widgets.path(None, Some("w")),
        "/apis/new.example.com/v1/widgets/w"
    );
    assert_eq!(widgets.singular, "widget");
    assert!(matches!(
        after.find_resource(&gvk("new.example.com/v1beta1", "Widget")),
        ResourceLookup::Found(_)
    ));
    let ResourceLookup::UnknownKind { served_versions, .. } =
        after.find_resource(&gvk("new.example.com/v1alpha1", "Widget"))
    else {
        panic!("v1alpha1 is not served");
    };
    assert_eq!(served_versions, ["v1", "v1beta1"]);
    assert_eq!(
        summary(after.find_by_argument("widgets.new")),
        "new.example.com/v1 widgets"
    );

    assert_eq!(listable(&after), listable(&before));
    assert!(matches!(
        before.find_resource(&gvk("new.example.com/v1", "Widget")),
        ResourceLookup::UnknownKind { .. }
    ));
}

#[test]
fn definitions_leave_alone_what_is_served() {
    let versions = json!([{"name": "v1", "served": true}, {"name": "v3", "served": true}]);
    let manifests = [
        // Another scope and another plural than those of the served kind.
        definition("company.com", "ApplySet", "sets", "Namespaced", &versions),
        definition("company.com", "ApplySet", "sets", "Namespaced", &versions),
    ];
    let before = sample();
    let after = before.with_custom_resources(manifests.iter());
    let added: Vec<Resource> = after.resources[before.resources.len()..].to_vec();
    assert_eq!(after.resources[..before.resources.len()], before.resources);
    let KindLookup::Found(live) = after.find_preferred(&GroupKind::new("company.com", "ApplySet")) else {
        panic!("the kind is served");
    };
    assert_eq!((live.origin, live.version.as_str()), (Origin::Served, "v1"));
    let promised = Resource {
        version: "v3".to_owned(),
        origin: Origin::NotYetServed,
        status: Subresource::Unlisted,
        scale: crate::model::resource::Subresource::Unlisted,
        ..live.clone()
    };
    assert_eq!(added, [promised]);
}

#[test]
fn definitions_bring_nothing_into_a_group_that_failed() {
    let versions = json!([{"name": "v1", "served": true}]);
    let manifests = [definition(
        "metrics.k8s.io",
        "Widget",
        "widgets",
        "Cluster",
        &versions,
    )];
    let discovery = sample().with_custom_resources(manifests.iter());
    assert_eq!(
        summary(discovery.find_preferred(&GroupKind::new("metrics.k8s.io", "Widget"))),
        "failed metrics.k8s.io/v1beta1"
    );
}

#[test]
fn fields_that_may_be_missing_may_be_null_or_empty() {
    let versions = json!([
        {"name": "v1", "served": true, "subresources": null, "deprecated": null},
        {"name": "v2", "served": null},
    ]);
    let mut manifest = definition("g", "Widget", "widgets", "Cluster", &versions);
    let names = json!({"kind": "Widget", "plural": "widgets", "shortNames": null, "categories": null});
    for singular in [json!(null), json!("")] {
        manifest["spec"]["names"] = names.clone();
        manifest["spec"]["names"]["singular"] = singular;
        let discovery = sample().with_custom_resources([&manifest].into_iter());
        let KindLookup::Found(widgets) = discovery.find_preferred(&GroupKind::new("g", "Widget")) else {
            panic!("the kind is not known");
        };
        assert_eq!(
            (widgets.version.as_str(), widgets.singular.as_str()),
            ("v1", "widget")
        );
        assert_eq!(widgets.short_names, Vec::<String>::new());
    }
}

#[test]
fn definitions_that_cannot_be_read_bring_nothing() {
    let good = definition(
        "g",
        "Widget",
        "widgets",
        "Cluster",
        &json!([{"name": "v1", "served": true}]),
    );
    let before = sample();
    let known = |manifest: &Value| {
        let after = before.with_custom_resources([manifest].into_iter());
        after.resources.len() - before.resources.len()
    };
    assert_eq!(known(&good), 1);
    for (pointer, bad) in [
        ("/apiVersion", json!("apiextensions.k8s.io/v9")),
        ("/kind", json!("ConfigMap")),
        ("/spec", json!(null)),
        ("/spec/group", json!("")),
        ("/spec/names", json!([])),
        ("/spec/names/kind", json!("")),
        ("/spec/scope", json!("Galaxy")),
        ("/spec/versions", json!({})),
        ("/spec/versions/0/name", json!("")),
        ("/spec/versions/0/served", json!(false)),
    ] {
        let mut manifest = good.clone();
        *manifest.pointer_mut(pointer).expect("the field is there") = bad;
        assert_eq!(known(&manifest), 0, "{pointer}");
    }
    assert_eq!(known(&json!(null)), 0);
}
