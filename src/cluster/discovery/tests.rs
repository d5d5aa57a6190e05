use crate::model::resource::Scope;
use serde_json::json;

use super::parse::{Root, RootAnswer};
use super::*;

/// The samples of a real server: `company.com` is a custom resource, `metrics.k8s.io` failed.
fn sample() -> Discovery {
    let roots: [(Root, &[u8]); 2] = [
        (
            Root::Core,
            include_bytes!("../../../testdata/discovery/aggregated-api.json"),
        ),
        (
            Root::Groups,
            include_bytes!("../../../testdata/discovery/aggregated-apis.json"),
        ),
    ];
    Discovery::new(roots.into_iter().flat_map(|(root, body)| {
        match parse::root(root, body).expect("the sample is well-formed") {
            RootAnswer::Aggregated(versions) => versions,
            RootAnswer::Index(_) => panic!("the sample is aggregated"),
        }
    }))
}

fn healthy_sample() -> Discovery {
    Discovery::indexed(sample().resources, Vec::new())
}

fn served(group: &str, version: &str, kind: &str, plural: &str, verbs: &[&str]) -> Resource {
    Resource {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
        singular: kind.to_lowercase(),
        short_names: Vec::new(),
        scope: Scope::Namespaced,
        verbs: verbs.iter().map(|&verb| verb.to_owned()).collect(),
        origin: Origin::Served,
    }
}

fn failed(group: &str, version: &str) -> FailedVersion {
    FailedVersion {
        group: group.to_owned(),
        version: version.to_owned(),
        reason: "down".to_owned(),
    }
}

fn gvk(api_version: &str, kind: &str) -> GroupVersionKind {
    GroupVersionKind::from_api_version(api_version, kind)
}

/// `apps/v1 deployments`, `absent` or `failed metrics.k8s.io/v1beta1`: short enough for tables.
fn summary(lookup: KindLookup<'_>) -> String {
    match lookup {
        KindLookup::Found(resource) => format!("{} {}", resource.api_version(), resource.plural),
        KindLookup::Absent => "absent".to_owned(),
        KindLookup::GroupFailed(failure) => format!("failed {}/{}", failure.group, failure.version),
    }
}

fn listable(discovery: &Discovery) -> Vec<String> {
    discovery
        .listable()
        .map(|resource| summary(KindLookup::Found(resource)))
        .collect()
}

#[test]
fn manifests_find_exactly_their_version() {
    let discovery = sample();
    for (api_version, kind, plural) in [
        ("v1", "ConfigMap", "configmaps"),
        ("apps/v1", "Deployment", "deployments"),
        (
            "autoscaling/v1",
            "HorizontalPodAutoscaler",
            "horizontalpodautoscalers",
        ),
        ("v1", "Event", "events"),
        ("events.k8s.io/v1", "Event", "events"),
    ] {
        let wanted = gvk(api_version, kind);
        let Lookup::Found(found) = discovery.resource(&wanted) else {
            panic!("{api_version} {kind} is served");
        };
        assert_eq!((found.gvk(), found.plural.as_str()), (wanted, plural));
    }
}

#[test]
fn unknown_kinds_come_with_what_may_have_been_meant() {
    let discovery = sample();
    for (api_version, kind, served_versions, similar) in [
        ("apps/v1beta1", "Deployment", &["v1"] as &[_], &[] as &[_]),
        ("autoscaling/v3", "HorizontalPodAutoscaler", &["v2", "v1"], &[]),
        (
            "extensions/v1beta1",
            "Ingress",
            &[],
            &["Ingress in networking.k8s.io/v1"],
        ),
        ("v1", "Deployment", &[], &["Deployment in apps/v1"]),
        ("apps/v1", "deployment", &[], &["Deployment in apps/v1"]),
        ("apps/v1", "Deploymnet", &[], &["Deployment in apps/v1"]),
        ("v1", "Configmap", &[], &["ConfigMap in v1"]),
        ("v2", "Evnt", &[], &["Event in events.k8s.io/v1", "Event in v1"]),
        ("v1", "Pad", &[], &["Pod in v1"]),
        ("v1", "Widget", &[], &[]),
        ("", "", &[], &[]),
    ] {
        let Lookup::UnknownKind {
            served_versions: served,
            similar: mut found,
        } = discovery.resource(&gvk(api_version, kind))
        else {
            panic!("{api_version} {kind} is not served");
        };
        found.sort();
        assert_eq!(
            (served.as_slice(), found.as_slice()),
            (&*own(served_versions), &*own(similar)),
            "{kind}"
        );
    }
}

fn own(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

#[test]
fn the_likeliest_kind_is_named_first() {
    let discovery = Discovery::indexed(
        vec![
            served("a", "v1", "Widgets", "widgetses", &["list"]),
            served("b", "v1", "Widget", "widgets", &["list"]),
            served("b", "v2", "Widget", "widgets", &["list"]),
            served("a", "v1", "WIDGET", "wwidgets", &["list"]),
            served("c", "v1", "Widget", "widgets", &["list"]),
        ],
        Vec::new(),
    );
    let Lookup::UnknownKind { similar, .. } = discovery.resource(&gvk("a/v1", "Widget")) else {
        panic!("the kind is not served");
    };
    assert_eq!(similar, ["WIDGET in a/v1", "Widget in b/v1", "Widget in c/v1"]);
}

#[test]
fn a_version_that_could_not_be_read_is_not_unknown() {
    let discovery = sample();
    let lookup = discovery.resource(&gvk("metrics.k8s.io/v1beta1", "PodMetrics"));
    let Lookup::GroupFailed(failure) = lookup else {
        panic!("the version is stale, not {lookup:?}");
    };
    assert_eq!(failure.version, "v1beta1");
    assert!(matches!(
        discovery.resource(&gvk("metrics.k8s.io/v1", "PodMetrics")),
        Lookup::UnknownKind { .. }
    ));
}

#[test]
fn recorded_kinds_are_absent_only_where_the_whole_group_was_heard() {
    let discovery = Discovery::indexed(
        sample().resources,
        vec![failed("metrics.k8s.io", "v1beta1"), failed("company.com", "v2")],
    );
    for (group, kind, expected) in [
        ("", "ConfigMap", "v1 configmaps"),
        (
            "autoscaling",
            "HorizontalPodAutoscaler",
            "autoscaling/v2 horizontalpodautoscalers",
        ),
        ("", "Event", "v1 events"),
        ("events.k8s.io", "Event", "events.k8s.io/v1 events"),
        ("apps", "Gone", "absent"),
        ("gone.example.com", "Gone", "absent"),
        ("", "Deployment", "absent"),
        ("apps", "deployment", "absent"),
        ("metrics.k8s.io", "PodMetrics", "failed metrics.k8s.io/v1beta1"),
        // Another version of the group could not be read: what is found is enough,
        // what is not found may be there.
        ("company.com", "ApplySet", "company.com/v1 applysets"),
        ("company.com", "Other", "failed company.com/v2"),
    ] {
        assert_eq!(
            summary(discovery.preferred(&GroupKind::new(group, kind))),
            expected,
            "{kind}.{group}"
        );
    }
}

#[test]
fn recorded_resources_are_found_by_their_exact_name() {
    let discovery = sample();
    for (resource, group, expected) in [
        ("deployments", "apps", "apps/v1 deployments"),
        ("configmaps", "", "v1 configmaps"),
        (
            "horizontalpodautoscalers",
            "autoscaling",
            "autoscaling/v2 horizontalpodautoscalers",
        ),
        ("deployment", "apps", "absent"),
        ("deployments", "", "absent"),
        ("pods", "metrics.k8s.io", "failed metrics.k8s.io/v1beta1"),
    ] {
        assert_eq!(
            summary(discovery.group_resource(resource, group)),
            expected,
            "{resource}.{group}"
        );
    }
}

#[test]
fn arguments_are_read_as_kubectl_reads_them() {
    let discovery = healthy_sample();
    for (text, expected) in [
        ("configmaps", "v1 configmaps"),
        ("configmap", "v1 configmaps"),
        ("cm", "v1 configmaps"),
        ("ConfigMap", "v1 configmaps"),
        ("CONFIGMAPS", "v1 configmaps"),
        ("configmaps.", "v1 configmaps"),
        ("configmaps.v1.", "v1 configmaps"),
        ("configmaps.v1", "v1 configmaps"),
        ("cm.v1", "v1 configmaps"),
        ("configmaps.v2", "absent"),
        ("configmaps.v1beta1", "absent"),
        ("hpa.v1", "autoscaling/v1 horizontalpodautoscalers"),
        ("applysets.company.com", "company.com/v1 applysets"),
        ("applysets.v1.company.com", "company.com/v1 applysets"),
        ("applysets.v1beta1.company.com", "company.com/v1beta1 applysets"),
        ("applysets.v2.company.com", "absent"),
        ("applyset.company.com", "company.com/v1 applysets"),
        ("ApplySet.company.com", "company.com/v1 applysets"),
        ("aps", "company.com/v1 applysets"),
        ("applysets.company", "company.com/v1 applysets"),
        ("deploy.apps", "apps/v1 deployments"),
        ("ingresses.networking", "networking.k8s.io/v1 ingresses"),
        ("ing", "networking.k8s.io/v1 ingresses"),
        ("hpa", "autoscaling/v2 horizontalpodautoscalers"),
        ("hpa.v1.autoscaling", "autoscaling/v1 horizontalpodautoscalers"),
        ("events", "v1 events"),
        ("events.events.k8s.io", "events.k8s.io/v1 events"),
        ("ev.events", "events.k8s.io/v1 events"),
        ("configmaps.apps", "absent"),
        ("widgets", "absent"),
        ("pods/status", "absent"),
        ("", "absent"),
        (".", "absent"),
        ("..", "absent"),
    ] {
        assert_eq!(summary(discovery.resource_argument(text)), expected, "{text:?}");
    }
}

#[test]
fn arguments_that_several_resources_fit() {
    let mut boxes = served("a.example.com", "v1", "Crate", "crates", &["list"]);
    boxes.short_names = vec!["box".to_owned()];
    let discovery = Discovery::indexed(
        vec![
            boxes,
            served("b.example.com", "v1", "Box", "boxes", &["list"]),
            served("store", "v1", "Shelf", "shelves", &["list"]),
            served("store.example.com", "v1", "Shelf", "shelves", &["list"]),
        ],
        Vec::new(),
    );
    for (text, expected) in [
        // A full name wins over a short name that comes earlier.
        ("box", "b.example.com/v1 boxes"),
        ("box.a.example.com", "a.example.com/v1 crates"),
        ("shelf", "store/v1 shelves"),
        ("shelf.store", "store/v1 shelves"),
        ("shelf.store.example", "store.example.com/v1 shelves"),
    ] {
        assert_eq!(summary(discovery.resource_argument(text)), expected, "{text:?}");
    }
}

#[test]
fn arguments_do_not_slip_from_a_failed_group_into_another() {
    let discovery = Discovery::indexed(
        vec![
            served("company.com", "v1", "ApplySet", "applysets", &["list"]),
            served("other.com", "v1", "Secret", "secrets", &["list"]),
        ],
        vec![
            failed("", "v1"),
            failed("company", "v1"),
            failed("metrics.k8s.io", "v1beta1"),
        ],
    );
    for (text, expected) in [
        ("applysets.company.com", "company.com/v1 applysets"),
        ("applysets.company", "failed company/v1"),
        ("applysets.v1.company", "failed company/v1"),
        ("secrets", "failed /v1"),
        ("secrets.v1", "failed /v1"),
        ("secrets.other.com", "other.com/v1 secrets"),
        ("pods.metrics", "failed metrics.k8s.io/v1beta1"),
        ("things.company.com", "absent"),
    ] {
        assert_eq!(summary(discovery.resource_argument(text)), expected, "{text:?}");
    }
    assert_eq!(summary(sample().resource_argument("cm")), "v1 configmaps");
    assert_eq!(
        summary(sample().resource_argument("nodemetrics")),
        "failed metrics.k8s.io/v1beta1"
    );
}

#[test]
fn each_group_resource_is_listed_once_in_its_preferred_version() {
    assert_eq!(
        listable(&sample()),
        [
            "v1 configmaps",
            "v1 events",
            "v1 namespaces",
            "v1 pods",
            "v1 secrets",
            "v1 services",
            "apps/v1 deployments",
            "apps/v1 replicasets",
            "events.k8s.io/v1 events",
            "autoscaling/v2 horizontalpodautoscalers",
            "networking.k8s.io/v1 ingresses",
            "networking.k8s.io/v1 networkpolicies",
            "company.com/v1 applysets",
        ]
    );
    assert_eq!(sample().failures().len(), 1);
}

#[test]
fn a_version_that_cannot_be_listed_does_not_hide_one_that_can() {
    let discovery = Discovery::indexed(
        vec![
            served("g", "v2", "Review", "reviews", &["create"]),
            served("g", "v1", "Review", "reviews", &["create", "list"]),
        ],
        Vec::new(),
    );
    assert_eq!(listable(&discovery), ["g/v1 reviews"]);
}

#[test]
fn a_kind_of_two_resources_is_the_one_that_can_be_listed() {
    let version = Ok(vec![
        served("g", "v1", "Project", "projectrequests", &["create"]),
        served("g", "v1", "Project", "projects", &["create", "list"]),
    ]);
    let discovery = Discovery::new([version].into_iter());
    assert_eq!(
        summary(discovery.preferred(&GroupKind::new("g", "Project"))),
        "g/v1 projects"
    );
    let Lookup::Found(found) = discovery.resource(&gvk("g/v1", "Project")) else {
        panic!("the kind is served");
    };
    assert_eq!(found.plural, "projects");
}

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
fn definitions_among_the_manifests_promise_their_kinds() {
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

    let KindLookup::Found(widgets) = after.preferred(&GroupKind::new("new.example.com", "Widget")) else {
        panic!("the kind is promised");
    };
    assert_eq!(
        (widgets.origin, widgets.scope),
        (Origin::Promised, Scope::Cluster)
    );
    assert_eq!(
        widgets.path(None, Some("w")),
        "/apis/new.example.com/v1/widgets/w"
    );
    assert_eq!(widgets.singular, "widget");
    assert!(matches!(
        after.resource(&gvk("new.example.com/v1beta1", "Widget")),
        Lookup::Found(_)
    ));
    let Lookup::UnknownKind { served_versions, .. } =
        after.resource(&gvk("new.example.com/v1alpha1", "Widget"))
    else {
        panic!("v1alpha1 is not served");
    };
    assert_eq!(served_versions, ["v1", "v1beta1"]);
    assert_eq!(
        summary(after.resource_argument("widgets.new")),
        "new.example.com/v1 widgets"
    );

    assert_eq!(listable(&after), listable(&before));
    assert!(matches!(
        before.resource(&gvk("new.example.com/v1", "Widget")),
        Lookup::UnknownKind { .. }
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
    let KindLookup::Found(live) = after.preferred(&GroupKind::new("company.com", "ApplySet")) else {
        panic!("the kind is served");
    };
    assert_eq!((live.origin, live.version.as_str()), (Origin::Served, "v1"));
    let promised = Resource {
        version: "v3".to_owned(),
        origin: Origin::Promised,
        ..live.clone()
    };
    assert_eq!(added, [promised]);
}

#[test]
fn nothing_is_promised_in_a_group_that_failed() {
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
        summary(discovery.preferred(&GroupKind::new("metrics.k8s.io", "Widget"))),
        "failed metrics.k8s.io/v1beta1"
    );
}

#[test]
fn definitions_that_cannot_be_read_promise_nothing() {
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
