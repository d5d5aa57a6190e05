use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::compare::diff::{Difference, OldSide, OwnershipChange};
use crate::event::{Action, Claims, ObjectOutcome, Subject};
use crate::model::identity::{GroupKind, ObjectKey};
use crate::model::resource::{Resource, Scope};
use crate::plan::Refusal;
use crate::report::diff::kinds::Cause;
use crate::report::diff::{Comparison, RecordDocument};
use crate::report::style::Colors;

fn comparison(
    action: Action,
    kind: &str,
    namespace: Option<&str>,
    name: &str,
    states: [Option<Value>; 2],
) -> Comparison {
    let (kind, group) = kind.split_once('.').unwrap_or((kind, ""));
    let key = ObjectKey {
        group_kind: GroupKind::new(group, kind),
        namespace: namespace.map(str::to_owned),
        name: name.to_owned(),
    };
    let resource = Arc::new(Resource::with_regular_names(group, "v1", kind, Scope::Namespaced));
    let [live, predicted] = states;
    Comparison {
        difference: Difference::new(&resource, &key, live.as_ref(), predicted.as_ref()),
        outcome: ObjectOutcome::new(Subject::new(&key, &resource, None), action),
        ownership: None,
        cause: Cause::Unknown,
    }
}

fn screen(objects: Vec<Comparison>) -> Vec<String> {
    screen_with_losses(objects, Vec::new())
}

fn screen_with_losses(objects: Vec<Comparison>, losses: Vec<Refusal>) -> Vec<String> {
    let record = RecordDocument {
        tooling: "kubectl-applyset/v1".to_owned(),
        group_kinds: vec!["ConfigMap".to_owned()],
        additional_namespaces: Vec::new(),
    };
    let found = Differences {
        objects,
        record: RecordChange {
            before: Some(record.clone()),
            after: Some(record),
        },
        losses,
        ..Differences::default()
    };
    texts(&found)
}

fn texts(found: &Differences) -> Vec<String> {
    let lines = screen_lines(Line::new(Color::Bold, "secret/shop"), found, 80);
    lines.iter().map(|line| line.text(Colors::Off)).collect()
}

#[test]
fn changes_are_grouped_and_what_is_deleted_comes_last() {
    let deployment = |replicas: u32, image: &str| {
        Some(
            json!({"spec": {"replicas": replicas, "template": {"spec": {"containers": [{"name": "web", "image": image}]}}}}),
        )
    };
    let secret = |value: &str| Some(json!({"data": {"password": value}}));
    let front = Some("shop-front");
    let image = |tag: &str| format!("registry.example.com/some-rather-long/path-of/web:{tag}");
    let mut service = comparison(Action::Configured, "Service", front, "web", [None, None]);
    let owned_by = |manager: &str| json!({"metadata": {"managedFields": [{"manager": manager, "fieldsV1": {"f:spec": {}}}]}});
    service.ownership = Some(OwnershipChange::new(&owned_by("helm"), &owned_by("applyset")));
    let claim = comparison(
        Action::Pruned,
        "PersistentVolumeClaim",
        Some("shop-data"),
        "data",
        [Some(json!({})), None],
    );
    let loss = Refusal::PrunesStorage {
        object: claim.outcome.subject.key(),
    };
    let objects = vec![
        comparison(
            Action::Configured,
            "Deployment.apps",
            front,
            "web",
            [deployment(2, &image("1.0.0")), deployment(3, &image("1.1.0"))],
        ),
        comparison(
            Action::Created,
            "Service",
            front,
            "finder",
            [None, Some(json!({"spec": {"x": 1}}))],
        ),
        service,
        comparison(
            Action::Configured,
            "Secret",
            Some("shop-data"),
            "pg",
            [secret("aa"), secret("bb")],
        ),
        claim,
        comparison(
            Action::Pruned,
            "Service",
            front,
            "search",
            [Some(json!({})), None],
        ),
        comparison(Action::Created, "Namespace", None, "new", [None, Some(json!({}))]),
        comparison(Action::Unchanged, "Service", front, "same", [None, None]),
    ];
    let shown = screen_with_losses(objects, vec![loss]);
    assert_eq!(
        shown,
        [
            "secret/shop",
            "Plan: +2 create  ~3 change  -2 PRUNE  (1 unchanged)",
            "",
            "cluster-scoped",
            "  + namespace/new",
            "",
            "shop-data",
            "  ~ secret/pg",
            "        data.password  *** -> ***",
            "",
            "shop-front",
            "  ~ deployment.apps/web",
            "        replicas  2 -> 3",
            "        containers[web].image",
            "          - registry.example.com/some-rather-long/path-of/web:1.0.0",
            "          + registry.example.com/some-rather-long/path-of/web:1.1.0",
            "  ~ service/web          ownership only: helm -> applyset",
            "  + service/finder",
            "",
            "PRUNE: removed from the manifests, would be deleted",
            "  ! persistentvolumeclaim/data   shop-data    DATA IS LOST",
            "  - service/search               shop-front",
            "record: no change",
            "full text: --full",
        ]
    );
}

#[test]
fn a_recreated_object_stands_out_and_shows_what_changes() {
    let job = |image: &str| {
        Some(json!({"spec": {"template": {"spec": {"containers": [{"name": "job", "image": image}]}}}}))
    };
    let mut migrate = comparison(
        Action::Recreated,
        "Job.batch",
        Some("shop"),
        "migrate",
        [job("one"), job("two")],
    );
    migrate.outcome.reason = "spec.template: field is immutable".to_owned();
    let size = |size: &str| Some(json!({"spec": {"size": size}}));
    let mut claim = comparison(
        Action::Recreated,
        "PersistentVolumeClaim",
        Some("shop"),
        "data",
        [size("2Gi"), size("1Gi")],
    );
    claim.outcome.claims = Claims::Lost;
    claim.outcome.reason = "spec: field can not be less than status.capacity".to_owned();
    let shown = screen(vec![
        migrate,
        claim,
        comparison(
            Action::Configured,
            "Secret",
            Some("shop"),
            "a",
            [
                Some(json!({"data": {"a": "1"}})),
                Some(json!({"data": {"a": "2"}})),
            ],
        ),
    ]);
    assert_eq!(
        shown,
        [
            "secret/shop",
            "Plan: ~1 change  ±2 RECREATE",
            "",
            "shop",
            "  ± job.batch/migrate",
            "        would be deleted and created again: spec.template: field is immutable",
            "        containers[job].image  one -> two",
            "  ± persistentvolumeclaim/data",
            "        would be deleted and created again, and its data would be lost: spec:",
            "        field can not be less than status.capacity",
            "        size  2Gi -> 1Gi",
            "  ~ secret/a",
            "        data.a  *** -> ***",
            "",
            "record: no change",
            "full text: --full",
        ]
    );
}

#[test]
fn a_recreation_says_what_becomes_of_claims() {
    for (claims, expected) in [
        (Claims::NotTouched, "deleted and created again"),
        (
            Claims::Stay,
            "deleted and created again, and its Pods and claims stay",
        ),
        (
            Claims::Lost,
            "deleted and created again, and its data would be lost",
        ),
    ] {
        let size = |size: &str| Some(json!({"spec": {"size": size}}));
        let values = [size("1Gi"), size("2Gi")];
        let mut database = comparison(Action::Recreated, "StatefulSet.apps", Some("shop"), "db", values);
        database.outcome.claims = claims;
        let shown = screen(vec![database]);
        assert!(
            shown.iter().any(|line| line.trim_end().ends_with(expected)),
            "{shown:?}"
        );
    }
}

#[test]
fn a_renamed_object_is_one_entry() {
    let config = |value: &str| Some(json!({"metadata": {"name": value}, "data": {"key": value}}));
    let shown = screen(vec![
        comparison(
            Action::Pruned,
            "ConfigMap",
            Some("shop"),
            "app-5m2k8t4h9b",
            [config("old"), None],
        ),
        comparison(
            Action::Created,
            "ConfigMap",
            Some("shop"),
            "app-bfh72cttk6",
            [None, config("new")],
        ),
    ]);
    assert_eq!(
        shown[1..],
        [
            "Plan: +1 create  -1 PRUNE  (1 renamed)",
            "",
            "shop",
            "  > configmap/app-5m2k8t4h9b  -> app-bfh72cttk6",
            "        data.key  old -> new",
            "",
            "record: no change",
            "full text: --full",
        ]
    );
}

#[test]
fn hidden_values_of_a_renamed_secret_are_shown_as_changed() {
    let secret = |value: &str| Some(json!({"kind": "Secret", "data": {"password": value}}));
    let names = ["app-5m2k8t4h9b", "app-bfh72cttk6"];
    let states = [[secret("b2xk"), None], [None, secret("bmV3")]];
    let [old, new] = [Action::Pruned, Action::Created];
    let shown = screen(vec![
        comparison(old, "Secret", Some("shop"), names[0], states[0].clone()),
        comparison(new, "Secret", Some("shop"), names[1], states[1].clone()),
    ]);
    assert_eq!(shown[5], "        data.password  *** -> ***");
}

#[test]
fn a_refused_prune_is_a_prune_and_the_errors_are_printed_below() {
    let data = |action, kind: &str| {
        let states = [Some(json!({})), None];
        comparison(action, kind, Some("shop"), "data", states)
    };
    let mut bad = data(Action::Failed, "Service");
    bad.outcome.error = Some("port 0".into());
    let found = Differences {
        objects: vec![
            data(Action::Pruned, "PersistentVolumeClaim"),
            bad,
            data(Action::Pruned, "ConfigMap"),
        ],
        refusals: vec![Refusal::PrunesStorage {
            object: data(Action::Pruned, "PersistentVolumeClaim")
                .outcome
                .subject
                .key(),
        }],
        ..Differences::default()
    };
    let shown = texts(&found);
    assert_eq!(
        shown[1..shown.len() - 2],
        [
            "Plan: -2 PRUNE  x1 FAIL",
            "",
            "shop",
            "  x service/data",
            "",
            "PRUNE: removed from the manifests, would be deleted",
            "  ! persistentvolumeclaim/data   shop   DATA IS LOST",
            "  - configmap/data               shop",
        ]
    );
}

#[test]
fn an_object_whose_loss_matters_is_never_renamed() {
    let storage = |object| Refusal::PrunesStorage { object };
    let parent = |object| Refusal::PrunesParent { object };
    let table: [(&str, &dyn Fn(ObjectKey) -> Refusal); 3] = [
        ("PersistentVolumeClaim", &storage),
        ("StatefulSet.apps", &storage),
        ("Secret", &parent),
    ];
    for (kind, loss) in table {
        let (shop, object) = (Some("shop"), || Some(json!({})));
        let old = comparison(Action::Pruned, kind, shop, "app-5m2k8t4h9b", [object(), None]);
        let loss = loss(old.outcome.subject.key());
        let new = comparison(Action::Created, kind, shop, "app-bfh72cttk6", [None, object()]);
        let shown = screen_with_losses(vec![old, new], vec![loss]);
        assert_eq!(shown[1], "Plan: +1 create  -1 PRUNE", "{shown:#?}");
        assert!(shown.iter().any(|line| line.starts_with("PRUNE")), "{shown:#?}");
    }
}

#[test]
fn nothing_is_wider_than_the_terminal() {
    let wide = |text: &str| {
        Some(
            json!({"data": {"a".repeat(200): text.repeat(200), "file": format!("{}\nb\n", text.repeat(200))}}),
        )
    };
    let long = "long".repeat(20);
    let pruned = |end: &str| {
        let name = format!("{long}-{end}");
        comparison(
            Action::Pruned,
            "ConfigMap",
            Some("shop"),
            &name,
            [wide("x"), None],
        )
    };
    let shown = screen(vec![
        comparison(
            Action::Configured,
            "ConfigMap",
            Some("shop"),
            "app",
            [wide("x"), wide("y")],
        ),
        comparison(
            Action::Created,
            "ConfigMap",
            Some("shop"),
            &long,
            [None, wide("y")],
        ),
        pruned("blue"),
        pruned("green"),
    ]);
    for line in &shown {
        assert!(line.chars().count() <= 80, "{line}");
    }
    for end in ["-blue ", "-green "] {
        assert!(shown.iter().any(|line| line.contains(end)), "{end}: {shown:#?}");
    }
}

#[test]
fn what_the_deletion_removes_in_any_case_makes_no_change() {
    let old = json!({
        "metadata": {
            "finalizers": ["example.com/kept"],
            "deletionTimestamp": "2026-01-01T00:00:00Z",
            "deletionGracePeriodSeconds": 0,
        },
        "spec": {"size": 1},
    });
    let screen_of = |metadata: Value| {
        let new = json!({"metadata": metadata, "spec": {"size": 2}});
        let states = [Some(old.clone()), Some(new)];
        let shown = screen(vec![comparison(
            Action::Recreated,
            "Job.batch",
            Some("shop"),
            "migrate",
            states,
        )]);
        shown[6..shown.len() - 3].to_vec()
    };
    assert_eq!(
        screen_of(json!({"finalizers": ["example.com/kept"]})),
        ["        size  1 -> 2"]
    );
}

#[test]
fn drift_is_listed_after_the_changes_and_not_counted() {
    let drift = (0..12).map(|number| {
        let name = format!("map-{number:02}");
        comparison(Action::Configured, "ConfigMap", Some("shop"), &name, [None, None]).outcome
    });
    let found = Differences {
        drift: Some(drift.collect()),
        ..Differences::default()
    };
    let lines = texts(&found);
    assert_eq!(lines[1], "Plan: no changes");
    assert_eq!(lines[3], "drift, not from these manifests:");
    assert_eq!(lines[4], "    configmap/map-00 in namespace shop: changed");
    assert_eq!(lines[14], "    and 2 more");
}

#[test]
fn what_is_removed_and_not_deleted_is_apart_from_prunes_and_drift() {
    let removed = |name: &str| {
        comparison(
            Action::Pruned,
            "ConfigMap",
            Some("shop"),
            name,
            [Some(json!({})), None],
        )
    };
    let mut never = removed("never");
    never.difference.old_side = OldSide::Base;
    never.outcome.reason = "not a member of the set yet".to_owned();
    let found = Differences {
        drift: Some(vec![removed("other").outcome]),
        objects: vec![removed("gone"), never],
        ..Differences::default()
    };
    let lines = texts(&found);
    assert_eq!(
        lines[3..lines.len() - 2],
        [
            "PRUNE: removed from the manifests, would be deleted",
            "  - configmap/gone   shop",
            "",
            "removed from the manifests:",
            "  - configmap/never   shop   not a member of the set yet",
            "",
            "drift, not from these manifests:",
            "    configmap/other in namespace shop: in no manifest, would be pruned",
        ]
    );
}
