mod arguments;
mod custom_resources;

use super::parse::Root;
use super::*;
use crate::model::resource::{Scope, Subresource};

/// The samples of a real server: `company.com` is a custom resource, `metrics.k8s.io` failed.
fn sample() -> Discovery {
    let roots: [(Root, &[u8]); 2] = [
        (
            Root::Core,
            include_bytes!("../../../../testdata/discovery/aggregated-api.json"),
        ),
        (
            Root::Groups,
            include_bytes!("../../../../testdata/discovery/aggregated-apis.json"),
        ),
    ];
    Discovery::new(
        roots
            .into_iter()
            .flat_map(|(root, body)| parse::parse_root(root, body).expect("the sample is well-formed")),
    )
}

fn healthy_sample() -> Discovery {
    Discovery::from_parts(sample().resources, Vec::new())
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
        status: Subresource::Unlisted,
        scale: crate::model::resource::Subresource::Unlisted,
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
        let ResourceLookup::Found(found) = discovery.find_resource(&wanted) else {
            panic!("{api_version} {kind} is served");
        };
        assert_eq!((found.gvk(), found.plural.as_str()), (wanted, plural));
    }
}

#[test]
fn unknown_kinds_come_with_suggestions() {
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
        ("v1", "Configmap", &[], &["ConfigMap in v1"]),
        ("v1", "Deploymnet", &[], &[]),
        ("v1", "Widget", &[], &[]),
        ("", "", &[], &[]),
    ] {
        let ResourceLookup::UnknownKind {
            served_versions: served,
            similar: mut found,
        } = discovery.find_resource(&gvk(api_version, kind))
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
    let discovery = Discovery::from_parts(
        vec![
            served("a", "v1", "Widgets", "widgetses", &["list"]),
            served("b", "v1", "Widget", "widgets", &["list"]),
            served("b", "v2", "Widget", "widgets", &["list"]),
            served("a", "v1", "WIDGET", "wwidgets", &["list"]),
            served("c", "v1", "Widget", "widgets", &["list"]),
        ],
        Vec::new(),
    );
    let ResourceLookup::UnknownKind { similar, .. } = discovery.find_resource(&gvk("a/v1", "Widget")) else {
        panic!("the kind is not served");
    };
    assert_eq!(similar, ["WIDGET in a/v1", "Widget in b/v1", "Widget in c/v1"]);
}

#[test]
fn a_version_that_could_not_be_read_is_not_unknown() {
    let discovery = sample();
    let lookup = discovery.find_resource(&gvk("metrics.k8s.io/v1beta1", "PodMetrics"));
    let ResourceLookup::GroupFailed(failure) = lookup else {
        panic!("the version is stale, not {lookup:?}");
    };
    assert_eq!(failure.version, "v1beta1");
    assert!(matches!(
        discovery.find_resource(&gvk("metrics.k8s.io/v1", "PodMetrics")),
        ResourceLookup::UnknownKind { .. }
    ));
}

#[test]
fn recorded_kinds_are_absent_only_if_the_whole_group_was_read() {
    let discovery = Discovery::from_parts(
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
            summary(discovery.find_preferred(&GroupKind::new(group, kind))),
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
            summary(discovery.find_by_group_resource(resource, group)),
            expected,
            "{resource}.{group}"
        );
    }
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
    let discovery = Discovery::from_parts(
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
        summary(discovery.find_preferred(&GroupKind::new("g", "Project"))),
        "g/v1 projects"
    );
    let ResourceLookup::Found(found) = discovery.find_resource(&gvk("g/v1", "Project")) else {
        panic!("the kind is served");
    };
    assert_eq!(found.plural, "projects");
}
