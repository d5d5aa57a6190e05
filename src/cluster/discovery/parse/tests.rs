use serde_json::json;

use super::*;

fn aggregated_sample(of: Root) -> Vec<VersionResult> {
    let body: &[u8] = match of {
        Root::Core => include_bytes!("../../../../testdata/discovery/aggregated-api.json"),
        Root::Groups => include_bytes!("../../../../testdata/discovery/aggregated-apis.json"),
    };
    parse_root(of, body).expect("the sample is well-formed")
}

fn names(versions: &[VersionResult]) -> Vec<String> {
    versions
        .iter()
        .flatten()
        .flatten()
        .map(|resource| format!("{} {} {}", resource.api_version(), resource.plural, resource.kind))
        .collect()
}

#[test]
fn aggregated_documents_of_a_real_server() {
    assert_eq!(
        names(&aggregated_sample(Root::Core)),
        [
            "v1 bindings Binding",
            "v1 configmaps ConfigMap",
            "v1 events Event",
            "v1 namespaces Namespace",
            "v1 pods Pod",
            "v1 secrets Secret",
            "v1 services Service",
        ]
    );
    let groups = aggregated_sample(Root::Groups);
    assert_eq!(
        names(&groups),
        [
            "apps/v1 deployments Deployment",
            "apps/v1 replicasets ReplicaSet",
            "events.k8s.io/v1 events Event",
            "authentication.k8s.io/v1 tokenreviews TokenReview",
            "autoscaling/v2 horizontalpodautoscalers HorizontalPodAutoscaler",
            "autoscaling/v1 horizontalpodautoscalers HorizontalPodAutoscaler",
            "networking.k8s.io/v1 ingresses Ingress",
            "networking.k8s.io/v1 networkpolicies NetworkPolicy",
            "company.com/v1 applysets ApplySet",
            "company.com/v1beta1 applysets ApplySet",
        ]
    );
    let failed: Vec<&FailedVersion> = groups
        .iter()
        .filter_map(|version| version.as_ref().err())
        .collect();
    let [failed] = failed.as_slice() else {
        panic!("one version is stale, not {failed:?}");
    };
    assert_eq!(
        (failed.group.as_str(), failed.version.as_str()),
        ("metrics.k8s.io", "v1beta1")
    );
    assert!(failed.reason.contains("stale"), "{}", failed.reason);
}

#[test]
fn every_field_of_an_aggregated_resource() {
    let groups = aggregated_sample(Root::Groups);
    let deployments = groups
        .iter()
        .flatten()
        .flatten()
        .next()
        .expect("apps comes first");
    assert_eq!(
        *deployments,
        Resource {
            group: "apps".to_owned(),
            version: "v1".to_owned(),
            kind: "Deployment".to_owned(),
            plural: "deployments".to_owned(),
            singular: "deployment".to_owned(),
            short_names: vec!["deploy".to_owned()],
            scope: Scope::Namespaced,
            verbs: [
                "create",
                "delete",
                "deletecollection",
                "get",
                "list",
                "patch",
                "update",
                "watch"
            ]
            .map(str::to_owned)
            .to_vec(),
            origin: Origin::Served,
            status: Subresource::Listed,
            scale: crate::model::resource::Subresource::Listed,
        }
    );
    let apply_sets = groups
        .iter()
        .flatten()
        .flatten()
        .find(|resource| resource.kind == "ApplySet");
    assert_eq!(apply_sets.map(|resource| resource.scope), Some(Scope::Cluster));
}

#[test]
fn odd_resources_of_an_aggregated_document() {
    for (resource, expected) in [
        (json!({"resource": "things"}), None),
        (json!({"resource": "things", "responseKind": null}), None),
        (json!({"resource": "things", "responseKind": {"kind": ""}}), None),
        (json!({"resource": "", "responseKind": {"kind": "Thing"}}), None),
        (
            json!({"resource": "things/status", "responseKind": {"kind": "Thing"}}),
            None,
        ),
        // The answer is of another group, the objects are addressed in this one.
        (
            json!({"resource": "things", "responseKind": {"group": "other", "version": "v9", "kind": "Thing"}}),
            Some("g/v1 things Thing"),
        ),
        (
            json!({"resource": "things", "responseKind": {"kind": "Thing"}, "verbs": null, "shortNames": null,
                   "subresources": [{"subresource": "status", "responseKind": {"kind": "Thing"}}], "new": [1]}),
            Some("g/v1 things Thing"),
        ),
    ] {
        let document = json!({"kind": "APIGroupDiscoveryList", "items": [
            {"metadata": {"name": "g"}, "versions": [{"version": "v1", "resources": [resource]}]},
        ]});
        let versions =
            parse_root(Root::Groups, document.to_string().as_bytes()).expect("a well-formed document");
        assert_eq!(
            names(&versions),
            expected.into_iter().collect::<Vec<_>>(),
            "{document}"
        );
    }
}

#[test]
fn only_current_versions_are_believed() {
    for (freshness, is_known) in [
        (json!("Current"), true),
        (json!(""), true),
        (json!("Stale"), false),
        (json!("Unheard"), false),
    ] {
        let document = json!({"kind": "APIGroupDiscoveryList", "items": [
            {"metadata": {"name": "g"}, "versions": [{"version": "v1", "freshness": freshness, "resources": null}]},
        ]});
        let versions =
            parse_root(Root::Groups, document.to_string().as_bytes()).expect("a well-formed document");
        assert_eq!(
            versions.iter().map(Result::is_ok).collect::<Vec<_>>(),
            [is_known],
            "{document}"
        );
    }
}

#[test]
fn a_group_stays_below_its_root() {
    let group = |name: &str| {
        json!({"kind": "APIGroupDiscoveryList", "items": [
            {"metadata": {"name": name}, "versions": [{"version": "v1"}]},
        ]})
        .to_string()
    };
    assert!(parse_root(Root::Core, group("").as_bytes()).is_ok());
    assert!(parse_root(Root::Groups, group("g").as_bytes()).is_ok());
    assert!(parse_root(Root::Core, group("g").as_bytes()).is_err());
    assert!(parse_root(Root::Groups, group("").as_bytes()).is_err());
}

#[test]
fn a_missing_singular_is_the_kind_in_small_letters() {
    let document = json!({"kind": "APIGroupDiscoveryList", "items": [{"versions": [
        {"version": "v1", "resources": [{"resource": "configmaps", "responseKind": {"kind": "ConfigMap"}}]},
    ]}]});
    let versions = parse_root(Root::Core, document.to_string().as_bytes()).expect("a well-formed document");
    let resources = versions[0].as_ref().expect("the version is current");
    assert_eq!(resources[0].singular, "configmap");
}

#[test]
fn other_documents_are_an_error() {
    let truncated = &include_bytes!("../../../../testdata/discovery/aggregated-apis.json")[..4000];
    let deep = "[".repeat(100_000);
    for body in [
        b"" as &[u8],
        b"null",
        b"{}",
        b"[]",
        b"<html><body>Sign in</body></html>",
        b"\xff\xfe{",
        br#"{"kind": "Status", "status": "Failure"}"#,
        br#"{"kind": "APIGroupDiscoveryList"}"#,
        br#"{"kind": "APIGroupDiscoveryList", "items": 3}"#,
        br#"{"kind": "APIGroupDiscoveryList", "items": [{"versions": [{"version": {}}]}]}"#,
        // The answers of a server before Kubernetes 1.27.
        br#"{"kind": "APIGroupList", "groups": [{"name": "g", "versions": [{"version": "v1"}]}]}"#,
        br#"{"kind": "APIVersions", "versions": ["v1"]}"#,
        deep.as_bytes(),
        truncated,
    ] {
        for of in [Root::Core, Root::Groups] {
            assert!(parse_root(of, body).is_err(), "{}", String::from_utf8_lossy(body));
        }
    }
}

#[test]
fn truncated_documents_are_an_error() {
    let body = include_bytes!("../../../../testdata/discovery/aggregated-apis.json").trim_ascii_end();
    for length in 0..body.len() {
        assert!(
            parse_root(Root::Groups, &body[..length]).is_err(),
            "the first {length} bytes"
        );
    }
}
