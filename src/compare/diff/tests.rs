use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::*;
use crate::compare::ownership::LAST_APPLIED;
use crate::model::applyset::ID_LABEL;
use crate::model::resource::Scope;

fn resource(group: &str, version: &str, kind: &str) -> Resource {
    Resource::with_regular_names(group, version, kind, Scope::Namespaced)
}

fn key(group: &str, kind: &str, namespace: Option<&str>) -> ObjectKey {
    ObjectKey {
        group_kind: GroupKind::new(group, kind),
        namespace: namespace.map(str::to_owned),
        name: "web".to_owned(),
    }
}

fn difference(kind: &str, live: Option<&Value>, predicted: Option<&Value>) -> Difference {
    Difference::new(
        &resource("", "v1", kind),
        &key("", kind, Some("shop")),
        live,
        predicted,
    )
}

#[test]
fn files_are_named_as_kubectl_names_them() {
    let table = [
        ("", "v1", "ConfigMap", Some("shop"), "v1.ConfigMap.shop.web"),
        (
            "apps",
            "v1",
            "Deployment",
            Some("shop"),
            "apps.v1.Deployment.shop.web",
        ),
        ("", "v1", "Namespace", None, "v1.Namespace..web"),
    ];
    for (group, version, kind, namespace, name) in table {
        let named = kubectl_diff_file_name(&resource(group, version, kind), &key(group, kind, namespace));
        assert_eq!(named, name);
    }
}

#[test]
fn what_changes_by_itself_is_not_a_difference() {
    let live = json!({"metadata": {"name": "web", "uid": "u", "creationTimestamp": "then",
        "resourceVersion": "1", "generation": 1, "managedFields": [{"time": "then"}]}});
    let predicted = json!({"metadata": {"name": "web", "uid": "u", "creationTimestamp": "then",
        "resourceVersion": "2", "generation": 2, "managedFields": [{"time": "now"}]}});
    let same = difference("ConfigMap", Some(&live), Some(&predicted));
    assert!(same.is_empty());
    assert_eq!(same.unified(), "");
    let new = difference("ConfigMap", None, Some(&predicted));
    assert_eq!(new.predicted, Some(json!({"metadata": {"name": "web"}})));
    let pruned = difference("ConfigMap", Some(&live), None);
    assert_eq!(
        pruned.live,
        Some(json!({"metadata": {"name": "web", "uid": "u", "creationTimestamp": "then"}}))
    );
}

#[test]
fn a_difference_is_a_unified_diff() {
    let object = |value: &str| json!({"data": {"key": value, "note": "one\ntwo\n"}, "kind": "ConfigMap"});
    let changed = difference("ConfigMap", Some(&object("1")), Some(&object("2")));
    assert_eq!(
        changed.unified(),
        "diff -u -N LIVE/v1.ConfigMap.shop.web MERGED/v1.ConfigMap.shop.web\n\
         --- LIVE/v1.ConfigMap.shop.web\n\
         +++ MERGED/v1.ConfigMap.shop.web\n\
         @@ -1,5 +1,5 @@\n data:\n-  key: \"1\"\n+  key: \"2\"\n   note: |\n     one\n     two\n"
    );
    let created = difference("ConfigMap", None, Some(&object("1"))).unified();
    assert!(created.contains("@@ -0,0 +1,6 @@\n+data:\n"), "{created}");
    let gone = difference("ConfigMap", Some(&object("1")), None).unified();
    assert!(gone.contains("@@ -1,6 +0,0 @@\n-data:\n"), "{gone}");
}

#[test]
fn long_lines_stay_whole() {
    let long = "word ".repeat(60) + "end";
    let written = format_as_yaml(Some(&json!({"note": long})));
    assert_eq!(written.lines().count(), 1, "{written}");
}

#[test]
fn changes_are_the_smallest_fields_that_differ() {
    let before = json!({"spec": {"replicas": 1, "ports": [{"port": 80}, {"port": 81}]}, "a/b": {"~": 1}});
    let after = json!({"spec": {"replicas": 2, "ports": [{"port": 80}]}, "a/b": {"~": 2, "new": null}});
    let found: Vec<_> = difference("ConfigMap", Some(&before), Some(&after))
        .changes()
        .into_iter()
        .map(|change| (change.field, change.before, change.after))
        .collect();
    let expected = [
        ("/a~1b/~0", Some(json!(1)), Some(json!(2))),
        ("/a~1b/new", None, Some(json!(null))),
        ("/spec/ports/1", Some(json!({"port": 81})), None),
        ("/spec/replicas", Some(json!(1)), Some(json!(2))),
    ];
    assert_eq!(
        found,
        expected.map(|(field, before, after)| (field.to_owned(), before, after))
    );
}

#[test]
fn annotations_and_labels_may_repeat_a_value() {
    let secret = |value: &str| {
        let encoded = STANDARD.encode(value);
        let kept = json!({"stringData": {"pw": value}}).to_string();
        json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "labels": {"app": value, (ID_LABEL): "id"}, "annotations": {
                "kapp.k14s.io/original": kept, "note": "open",
            }},
            "data": {"pw": encoded},
        })
    };
    let mut states = [Some(secret("hunter2\"\n")), Some(secret("tr0ub4dor"))];
    let [live, predicted] = &mut states;
    hide_secret_values::hide(live, predicted);
    for (state, hidden) in states.into_iter().flatten().zip(["*** (before)", "*** (after)"]) {
        let annotations = &state["metadata"]["annotations"];
        assert_eq!(annotations["note"], "***");
        assert_eq!(annotations["kapp.k14s.io/original"], hidden);
        assert_eq!(
            state["metadata"]["labels"],
            json!({"app": hidden, (ID_LABEL): "id"})
        );
    }
}

#[test]
fn values_of_secrets_are_hidden_and_still_reported_apart() {
    let live = json!({
        "data": {"same": "c2FtZQ==", "changed": "b2xk", "gone": "Z29uZQ=="},
        "metadata": {"annotations": {(LAST_APPLIED): "{\"data\": \"b2xk\"}", "note": "open"}},
    });
    let predicted = json!({
        "data": {"same": "c2FtZQ==", "changed": "bmV3", "new": "bmV3"},
        "stringData": {"typed": "plain"},
        "stringdata": {"mistyped": "plain"},
        "metadata": {"annotations": {(LAST_APPLIED): "{\"data\": \"bmV3\"}", "note": "open"}},
    });
    let hidden = difference("Secret", Some(&live), Some(&predicted));
    assert_eq!(
        hidden.live,
        Some(json!({
            "data": {"same": "***", "changed": "*** (before)", "gone": "***"},
            "metadata": {"annotations": {(LAST_APPLIED): "*** (before)", "note": "***"}},
        }))
    );
    assert_eq!(
        hidden.predicted,
        Some(json!({
            "data": {"same": "***", "changed": "*** (after)", "new": "***"},
            "stringData": {"typed": "***"},
            "stringdata": {"mistyped": "***"},
            "metadata": {"annotations": {(LAST_APPLIED): "*** (after)", "note": "***"}},
        }))
    );
    for shown in [hidden.unified(), format!("{:?}", hidden.changes())] {
        for value in ["b2xk", "bmV3", "c2FtZQ", "Z29uZQ", "plain"] {
            assert!(!shown.contains(value), "{value} in {shown}");
        }
    }
}

#[test]
fn a_secret_that_is_none_hides_its_values_too() {
    for data in [
        json!("plain"),
        json!(["plain"]),
        json!({"key": {"deep": "plain"}}),
    ] {
        let odd = json!({"data": data, "metadata": {"annotations": {(LAST_APPLIED): "plain"}}});
        for difference in [
            difference("Secret", Some(&odd), None),
            difference("Secret", None, Some(&odd)),
            difference("Secret", Some(&odd), Some(&odd)),
        ] {
            assert!(!format!("{difference:?}").contains("plain"), "{difference:?}");
        }
    }
}

/// A password that changes with the name of its Secret is not shown as if it stayed.
#[test]
fn values_of_a_renamed_secret_are_shown_as_changed() {
    let secret = |name: &str, password: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": {"password": password}});
    let old = difference("Secret", Some(&secret("web-a", "b2xkLXBhc3M=")), None);
    let new = difference("Secret", None, Some(&secret("web-b", "bmV3LXBhc3M=")));
    let hunks = old.as_replacement_by(&new).hunks();
    assert!(
        hunks.contains("\n-  password: \"*** (before)\"\n+  password: \"*** (after)\"\n"),
        "{hunks}"
    );
}

#[test]
fn a_merge_patch_has_what_is_new_changed_and_gone() {
    let before = json!({"a": 1, "b": {"c": 1, "d": 2}, "e": [1, 2], "f": 1});
    let after = json!({"a": 1, "b": {"c": 2}, "e": [1], "g": {"h": 1}});
    assert_eq!(
        create_merge_patch(&before, &after),
        json!({"b": {"c": 2, "d": null}, "e": [1], "f": null, "g": {"h": 1}})
    );
}
