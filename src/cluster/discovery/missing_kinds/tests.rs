use serde_json::{Value, json};

use super::*;
use crate::model::resource::{Resource, Scope};

fn definition(change: impl FnOnce(&mut Value)) -> Definition {
    let mut object = json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"kind": "Widget", "plural": "widgets", "singular": "widget"},
            "versions": [{"name": "v1", "served": true}, {"name": "v1alpha1", "served": false}],
        },
        "status": {"conditions": [{"type": "Established", "status": "True"}]},
    });
    change(&mut object);
    Definition::from_object(&object).expect("a definition")
}

fn aggregated(group: &str) -> AggregatedApi {
    AggregatedApi {
        name: format!("v1.{group}"),
        group: group.to_owned(),
        version: "v1".to_owned(),
    }
}

fn discovery() -> Discovery {
    let resource = |group| Resource::with_regular_names(group, "v1", "Gadget", Scope::Namespaced);
    Discovery::from_resources(vec![resource("example.com"), resource("aggregated.example.com")])
}

fn judged(entry: &str, evidence: &Evidence) -> MissingKind {
    let (kind, group) = entry.split_once('.').unwrap_or((entry, ""));
    judge(&GroupKind::new(group, kind), evidence, &discovery())
}

fn evidence(definitions: Vec<Definition>, aggregated: Vec<AggregatedApi>) -> Evidence {
    Evidence {
        definitions: Ok(definitions),
        aggregated: Ok(aggregated),
    }
}

#[test]
fn a_kind_is_gone_only_if_nothing_defines_or_could_serve_it() {
    let nothing = evidence(vec![], vec![]);
    let defined = evidence(vec![definition(|_| {})], vec![]);
    let silent = evidence(
        vec![],
        vec![aggregated("example.com"), aggregated("down.example.com")],
    );
    let heard = evidence(vec![], vec![aggregated("aggregated.example.com")]);
    let name = "widgets.example.com".to_owned();
    let by_definition = MissingKind::Expected(ReasonToExpectKind::Defined(name));
    let built_in = |group, kind| {
        MissingKind::Kept(KeptKind {
            kind: Some(GroupKind::new(group, kind)),
            reason: ReasonToKeepKind::BuiltIn,
        })
    };
    let by_api = MissingKind::Expected(ReasonToExpectKind::Aggregated("v1.down.example.com".to_owned()));
    let table = [
        ("Widget.example.com", &nothing, MissingKind::Gone),
        ("Widget.example.com", &defined, by_definition.clone()),
        ("widgets.example.com", &defined, by_definition.clone()),
        ("widget.example.com", &defined, by_definition.clone()),
        ("Widget.v1alpha1.example.com", &defined, by_definition),
        ("Widget.other.example.com", &defined, MissingKind::Gone),
        ("Gizmo.example.com", &defined, MissingKind::Gone),
        // The API of this version is heard, and serves no such kind.
        ("Widget.example.com", &silent, MissingKind::Gone),
        ("Widget.down.example.com", &silent, by_api),
        ("Widget.aggregated.example.com", &heard, MissingKind::Gone),
        // Another API server of the cluster may serve a kind of Kubernetes.
        ("Pod", &nothing, built_in("", "Pod")),
        ("Deployment.apps", &nothing, built_in("apps", "Deployment")),
        (
            "RuntimeClass.node.k8s.io",
            &nothing,
            built_in("node.k8s.io", "RuntimeClass"),
        ),
        ("HTTPRoute.gateway.networking.k8s.io", &nothing, MissingKind::Gone),
    ];
    for (entry, evidence, expected) in table {
        assert_eq!(judged(entry, evidence), expected, "{entry} {evidence:?}");
    }
}

#[test]
fn of_two_definitions_of_a_kind_the_one_that_serves_it_counts() {
    let refused = definition(|object| {
        object["metadata"]["name"] = json!("others.example.com");
        object["status"]["conditions"][0]["status"] = json!("False");
    });
    let evidence = evidence(vec![refused, definition(|_| {})], vec![]);
    let expected = ReasonToExpectKind::Defined("widgets.example.com".to_owned());
    assert_eq!(
        judged("Widget.example.com", &evidence),
        MissingKind::Expected(expected)
    );
}

#[test]
fn a_definition_that_serves_nothing_keeps_its_kind() {
    type Change = fn(&mut Value);
    let table: [(Change, ReasonToKeepKind); 3] = [
        (
            |object| object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"),
            ReasonToKeepKind::DefinitionTerminating("widgets.example.com".to_owned()),
        ),
        (
            |object| object["spec"]["versions"][0]["served"] = json!(false),
            ReasonToKeepKind::NoVersionServed("widgets.example.com".to_owned()),
        ),
        (
            |object| object["status"]["conditions"][0]["status"] = json!("False"),
            ReasonToKeepKind::NotEstablished("widgets.example.com".to_owned()),
        ),
    ];
    for (change, reason) in table {
        let kept = MissingKind::Kept(KeptKind {
            kind: Some(GroupKind::new("example.com", "Widget")),
            reason,
        });
        let evidence = evidence(vec![definition(change)], vec![]);
        for entry in ["Widget.example.com", "widgets.example.com"] {
            assert_eq!(judged(entry, &evidence), kept);
        }
    }
}

#[test]
fn only_a_definition_that_was_established_and_serves_no_version_hides_objects() {
    type Change = fn(&mut Value);
    let unserved: Change = |object| object["spec"]["versions"][0]["served"] = json!(false);
    let not_established: Change = |object| object["status"]["conditions"][0]["status"] = json!("False");
    let without_status: Change = |object| object["status"] = json!({});
    let terminating: Change =
        |object| object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let table: [(&[Change], bool); 6] = [
        (&[], false),
        (&[unserved], true),
        (&[not_established], false),
        (&[unserved, not_established], false),
        (&[unserved, without_status], false),
        (&[unserved, terminating], false),
    ];
    for (changes, expected) in table {
        let definition = definition(|object| changes.iter().for_each(|change| change(object)));
        assert_eq!(definition.hides_objects(), expected, "{definition:?}");
    }
}

#[test]
fn what_may_not_be_read_keeps_the_kind_and_names_the_permission() {
    let no_definitions = Evidence {
        definitions: Err(Forbidden("list definitions")),
        aggregated: Ok(vec![]),
    };
    let no_services = Evidence {
        definitions: Ok(vec![definition(|_| {})]),
        aggregated: Err(Forbidden("list services")),
    };
    let kept = |kind: Option<GroupKind>, permission| {
        MissingKind::Kept(KeptKind {
            kind,
            reason: ReasonToKeepKind::Forbidden(permission),
        })
    };
    let widget = GroupKind::new("example.com", "Widget");
    let gizmo = GroupKind::new("example.com", "Gizmo");
    let pod = MissingKind::Kept(KeptKind {
        kind: Some(GroupKind::new("", "Pod")),
        reason: ReasonToKeepKind::BuiltIn,
    });
    let table = [
        (
            "Widget.example.com",
            &no_definitions,
            kept(Some(widget), "list definitions"),
        ),
        (
            "widgets.example.com",
            &no_definitions,
            kept(None, "list definitions"),
        ),
        (
            "Gizmo.example.com",
            &no_services,
            kept(Some(gizmo), "list services"),
        ),
        ("Pod", &no_definitions, pod),
    ];
    for (entry, evidence, expected) in table {
        assert_eq!(judged(entry, evidence), expected, "{entry}");
    }
    // What a definition says needs no other evidence.
    assert!(matches!(
        judged("Widget.example.com", &no_services),
        MissingKind::Expected(ReasonToExpectKind::Defined(_))
    ));
}

#[test]
fn local_api_services_delegate_nothing() {
    let object = |service: Value| {
        json!({"metadata": {"name": "v1.example.com"},
                "spec": {"group": "example.com", "version": "v1", "service": service}})
    };
    assert_eq!(AggregatedApi::from_object(&object(Value::Null)), None);
    assert!(AggregatedApi::from_object(&object(json!({"name": "s", "namespace": "n"}))).is_some());
}
