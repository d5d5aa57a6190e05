//! Cases of rules, of their files, and of bodies.

use serde_json::{Map, Value, json};

use super::*;
use crate::model::applyset::PART_OF_LABEL;
use crate::model::object::Object;
use crate::plan::fixtures::desired;

fn pointers(texts: &[&str]) -> Vec<Pointer> {
    let pointers = texts.iter().map(|text| Pointer::parse(text).expect(text));
    pointers.collect()
}

/// An object with the entries of our manager and of another one that applied.
fn live(mut object: Value, ours: &Value, theirs: &Value, updated: &Value) -> Value {
    let entry = |manager: &str, operation: &str, fields: &Value| json!({"manager": manager, "operation": operation, "fieldsV1": fields});
    object["metadata"]["managedFields"] = json!([
        entry("ours", "Apply", ours),
        entry("theirs", "Apply", theirs),
        entry("controller", "Update", updated),
    ]);
    object
}

fn sent(manifest: &Value, live: &Value, ignored: &[&str]) -> Value {
    body_for(manifest, live, ignored, BodyPurpose::Send)
}

fn compared(manifest: &Value, live: &Value, ignored: &[&str]) -> Value {
    body_for(manifest, live, ignored, BodyPurpose::Compare)
}

fn body_for(manifest: &Value, live: &Value, ignored: &[&str], purpose: BodyPurpose) -> Value {
    let object = Object::from(manifest);
    let mut body = body_with_live_values(&object, &pointers(ignored), live, "ours", purpose).value();
    if body["metadata"]
        .as_object()
        .is_some_and(serde_json::Map::is_empty)
    {
        body.as_object_mut().expect("an object").remove("metadata");
    }
    body
}

#[test]
fn a_field_is_sent_as_it_is_live_unless_another_manager_applied_it() {
    let manifest = json!({"spec": {"replicas": 1, "paused": true}});
    let object = json!({"spec": {"replicas": 5, "paused": false}});
    let field = json!({"f:spec": {"f:replicas": {}}});
    let none = json!({});
    let as_live = json!({"spec": {"replicas": 5, "paused": true}});
    let without = json!({"spec": {"paused": true}});
    for (ours, theirs, updated, expected_sent, expected_compared) in [
        (&field, &none, &none, &as_live, &as_live),
        (&none, &none, &field, &as_live, &without),
        (&none, &none, &none, &as_live, &without),
        (&none, &field, &none, &without, &without),
        (&field, &field, &field, &without, &as_live),
    ] {
        let live = live(object.clone(), ours, theirs, updated);
        let ignored = ["/spec/replicas"];
        assert_eq!(&sent(&manifest, &live, &ignored), expected_sent, "{live}");
        assert_eq!(&compared(&manifest, &live, &ignored), expected_compared, "{live}");
    }
}

#[test]
fn what_the_live_object_lacks_is_left_out_unless_it_comes_with_its_mapping_or_item() {
    let none = json!({});
    let table = [
        // A mapping with free keys.
        (
            "/data/a",
            json!({"data": {"a": "1", "b": "2"}}),
            json!({"data": {}}),
            json!({"data": {"b": "2"}}),
        ),
        (
            "/data/a",
            json!({"data": {"a": "1", "b": "2"}}),
            json!({}),
            json!({"data": {"b": "2"}}),
        ),
        ("/data/a", json!({"data": {"a": "1"}}), json!({}), json!({})),
        ("/data", json!({"data": {"a": "1"}}), json!({}), json!({})),
        // A mapping whose fields may be required.
        (
            "/spec/probe/port",
            json!({"spec": {"probe": {"port": 1, "path": "/"}}}),
            json!({"spec": {}}),
            json!({"spec": {"probe": {"port": 1, "path": "/"}}}),
        ),
        (
            "/spec/probe/port",
            json!({"spec": {"probe": {"port": 1}}}),
            json!({"spec": {"a": 1}}),
            json!({}),
        ),
    ];
    for (pointer, manifest, object, expected) in table {
        let live = live(object, &none, &none, &none);
        assert_eq!(
            sent(&manifest, &live, &[pointer]),
            expected,
            "{manifest} over {live}"
        );
    }
}

#[test]
fn an_empty_mapping_that_others_applied_does_not_own_what_is_in_it() {
    let ours = json!({"f:metadata": {"f:labels": {"f:app": {}}}});
    let theirs = json!({"f:metadata": {"f:labels": {}}});
    let object = json!({"metadata": {"labels": {"app": "live", "more": "m"}}});
    let live = live(object, &ours, &theirs, &json!({}));
    let expected = json!({"metadata": {"labels": {"app": "live"}}});
    let manifest = json!({"metadata": {"labels": {"app": "mine"}}});
    assert_eq!(sent(&manifest, &live, &["/metadata/labels"]), expected);
}

#[test]
fn what_is_empty_there_stays_empty() {
    let ours = json!({"f:spec": {"f:capabilities": {"f:drop": {}}}});
    let none = json!({});
    let live = live(json!({"spec": {"capabilities": {}}}), &ours, &none, &none);
    let manifest = json!({"spec": {"capabilities": {"drop": ["ALL"]}}});
    for ignored in ["/spec", "/spec/capabilities", "/spec/capabilities/drop"] {
        let expected = json!({"spec": {"capabilities": {}}});
        assert_eq!(sent(&manifest, &live, &[ignored]), expected, "{ignored}");
    }
}

#[test]
fn what_left_the_manifest_and_is_ours_stays() {
    let ours =
        json!({"f:spec": {"f:replicas": {}, "f:list": {"k:{\"name\":\"a\"}": {".": {}, "f:name": {}}}}});
    let object =
        json!({"spec": {"replicas": 5, "other": 1, "list": [{"name": "x"}, {"name": "a", "by": "others"}]}});
    let none = json!({});
    let kept = live(object.clone(), &ours, &none, &none);
    for purpose in [BodyPurpose::Send, BodyPurpose::Compare] {
        let replicas = body_for(&json!({}), &kept, &["/spec/replicas", "/spec/other"], purpose);
        assert_eq!(replicas, json!({"spec": {"replicas": 5}}));
        let item = body_for(&json!({}), &kept, &["/spec/list/1"], purpose);
        assert_eq!(item, json!({"spec": {"list": [{"name": "a"}]}}));
    }
    let shared = live(object, &ours, &ours, &none);
    assert_eq!(sent(&json!({}), &shared, &["/spec/replicas"]), json!({}));
}

#[test]
fn items_are_found_by_their_keys() {
    let item = |more: &Value| {
        let mut tree = json!({".": {}, "f:name": {}});
        tree.as_object_mut()
            .expect("a tree")
            .extend(more.as_object().cloned().expect("a tree"));
        json!({"f:spec": {"f:containers": {"k:{\"name\":\"web\"}": tree}}})
    };
    let object = json!({"spec": {"containers": [{"name": "sidecar", "image": "s"}, {"name": "web", "image": "live", "tty": true}]}});
    let manifest = json!({"spec": {"containers": [{"name": "web", "image": "mine", "stdin": true}, {"name": "new", "image": "n"}]}});
    let (image, none) = (item(&json!({"f:image": {}})), json!({}));
    let containers = |first: &Value| {
        let mut first = first.clone();
        first["name"] = json!("web");
        json!({"spec": {"containers": [first, {"name": "new", "image": "n"}]}})
    };
    let ours = live(object.clone(), &image, &none, &none);
    let theirs = live(object.clone(), &item(&none), &image, &none);
    let as_live = containers(&json!({"image": "live", "stdin": true}));
    for (live, pointer, expected) in [
        (&ours, "/spec/containers/0/image", as_live.clone()),
        (
            &theirs,
            "/spec/containers/0/image",
            containers(&json!({"stdin": true})),
        ),
        // The key is needed, and an item that is not there yet is created as the manifest has it.
        (&ours, "/spec/containers/0/name", manifest.clone()),
        (&ours, "/spec/containers/1/image", manifest.clone()),
        (&ours, "/spec/containers/1", manifest.clone()),
        (&ours, "/spec/containers/-/image", manifest.clone()),
        (&ours, "/spec/containers/7/image", manifest.clone()),
        // Of the whole item, what is neither in the manifest nor ours is not taken.
        (&ours, "/spec/containers/0", containers(&json!({"image": "live"}))),
    ] {
        assert_eq!(sent(&manifest, live, &[pointer]), expected, "{pointer}");
    }
    assert_eq!(
        sent(&manifest, &ours, &["/spec/containers"]),
        json!({"spec": {"containers": [{"name": "web", "image": "live"}]}})
    );
}

#[test]
fn an_item_that_leaves_a_key_to_its_default_is_not_the_one_that_another_item_names() {
    let tcp = r#"k:{"port":80,"protocol":"TCP"}"#;
    let udp = r#"k:{"port":80,"protocol":"UDP"}"#;
    let ports = json!([{"port": 80, "protocol": "TCP"}, {"port": 80, "protocol": "UDP"}]);
    let ours = json!({"f:spec": {"f:ports": {tcp: {".": {}, "f:port": {}}, udp: {".": {}, "f:port": {}, "f:protocol": {}}}}});
    let live = live(json!({"spec": {"ports": ports}}), &ours, &json!({}), &json!({}));
    let udp = json!({"port": 80, "protocol": "UDP"});
    let manifest = json!({"spec": {"ports": [{"port": 80, "appProtocol": "http"}, udp]}});
    assert_eq!(
        sent(&manifest, &live, &["/spec/ports/0"]),
        json!({"spec": {"ports": [{"port": 80}, udp]}})
    );
}

#[test]
fn inside_of_one_value_a_field_is_always_as_it_is_live() {
    let leaf = json!({"f:spec": {"f:args": {}, "f:selector": {}}});
    let none = json!({});
    let object = json!({"spec": {"args": ["a", "x"], "selector": {"app": "live", "more": "m"}}});
    let manifest = json!({"spec": {"args": ["a", "b", "c"], "selector": {"app": "mine"}}});
    for (ours, theirs) in [(&leaf, &none), (&none, &leaf)] {
        let live = live(object.clone(), ours, theirs, &none);
        for purpose in [BodyPurpose::Send, BodyPurpose::Compare] {
            let body = |ignored: &[&str]| body_for(&manifest, &live, ignored, purpose);
            assert_eq!(body(&["/spec/args/1"])["spec"]["args"], json!(["a", "x", "c"]));
            assert_eq!(body(&["/spec/args/2"])["spec"]["args"], json!(["a", "b"]));
            assert_eq!(
                body(&["/spec/selector/app"])["spec"]["selector"],
                json!({"app": "live"})
            );
        }
    }
    // Who writes a part of it becomes the only owner of the whole.
    let taken = live(object.clone(), &none, &none, &leaf);
    let ignored = ["/spec/args/1", "/spec/selector"];
    let same = json!({"spec": {"args": ["a", "b"], "selector": {"app": "mine"}}});
    assert_eq!(compared(&same, &taken, &ignored), json!({}));
    assert_eq!(
        compared(&manifest, &taken, &ignored)["spec"]["args"],
        json!(["a", "x", "c"])
    );
    let live = live(object, &leaf, &none, &none);
    assert_eq!(
        sent(&manifest, &live, &["/spec/args"])["spec"]["args"],
        json!(["a", "x"])
    );
}

#[test]
fn items_of_a_set_are_found_by_their_values() {
    let of = |value: &str| json!({"f:metadata": {"f:finalizers": {(format!("v:\"{value}\"")): {}}}});
    let object = json!({"metadata": {"finalizers": ["x.io/a", "x.io/b"]}});
    let none = json!({});
    let manifest = json!({"metadata": {"finalizers": ["x.io/a", "x.io/c"]}});
    let finalizers =
        |live: &Value, pointer: &str| sent(&manifest, live, &[pointer])["metadata"]["finalizers"].take();
    let ours = live(object.clone(), &of("x.io/a"), &none, &none);
    let theirs = live(object, &none, &of("x.io/a"), &none);
    assert_eq!(
        finalizers(&ours, "/metadata/finalizers/0"),
        json!(["x.io/a", "x.io/c"])
    );
    assert_eq!(finalizers(&theirs, "/metadata/finalizers/0"), json!(["x.io/c"]));
    assert_eq!(finalizers(&ours, "/metadata/finalizers/1"), json!(["x.io/a"]));
}

#[test]
fn an_item_that_is_left_out_moves_no_other_ignored_item() {
    let object =
        |finalizers: &str| json!({"metadata": {"finalizers": finalizers.split(' ').collect::<Vec<_>>()}});
    for (manifest, finalizers, indices, expected) in [
        ("x/a x/b x/c", "x/c", ["0", "1"], "x/c"),
        ("x/a x/b x/c", "x/c", ["1", "0"], "x/c"),
        ("x/c", "x/c x/a x/b", ["2", "1"], "x/c x/a x/b"),
        ("x/a x/c", "x/c x/z x/b", ["0", "2"], "x/c x/b"),
    ] {
        let items: Map<String, Value> = finalizers
            .split(' ')
            .map(|value| (format!("v:\"{value}\""), json!({})))
            .collect();
        let ours = json!({"f:metadata": {"f:finalizers": items}});
        let live = live(object(finalizers), &ours, &json!({}), &json!({}));
        let [one, other] = indices.map(|index| format!("/metadata/finalizers/{index}"));
        let sent = sent(&object(manifest), &live, &[&one, &other]);
        assert_eq!(sent, object(expected), "{manifest}: {one}, {other}");
    }

    let list = json!({"list": [{"a": 1, "b": 1}, {"a": 2}, {"a": 3}]});
    for (ignored, expected) in [
        (["/list/0", "/list/1"], json!({"list": [{"a": 3}]})),
        (["/list/0", "/list/0/b"], json!({"list": [{"a": 2}, {"a": 3}]})),
        (["/list/0", "/list/1/a"], json!({"list": [{}, {"a": 3}]})),
    ] {
        assert_eq!(remove_fields(&list, &pointers(&ignored)), expected, "{ignored:?}");
    }
}

#[test]
fn the_applysets_own_metadata_are_those_of_the_manifest() {
    let manifest = json!({"metadata": {"labels": {PART_OF_LABEL: "set", "app": "mine"}}});
    let object = json!({"metadata": {"labels": {PART_OF_LABEL: "other", "app": "live"}}});
    let ours = json!({"f:metadata": {"f:labels": {(format!("f:{PART_OF_LABEL}")): {}, "f:app": {}}}});
    let live = live(object, &ours, &json!({}), &json!({}));
    let expected = json!({"metadata": {"labels": {PART_OF_LABEL: "set", "app": "live"}}});
    assert_eq!(sent(&manifest, &live, &["/metadata/labels"]), expected);
}

#[test]
fn rules_match_as_in_flux() {
    let object = || {
        let mut object = desired("Deployment", Some("shop"), "web");
        let resource = crate::model::resource::Resource::with_regular_names(
            "apps",
            "v1",
            "Deployment",
            crate::model::resource::Scope::Namespaced,
        );
        object.resource = std::sync::Arc::new(resource);
        object.key.group_kind = object.resource.group_kind();
        object.object = Object::from(
            &json!({"metadata": {"name": "web", "labels": {"app": "web"}, "annotations": {"a": "b"}}}),
        );
        object
    };
    let flux = |target: &str| format!("- paths: [/spec/replicas]\n  target: {target}\n");
    for (rule, expected) in [
        ("- paths: [/spec/replicas]\n".to_owned(), true),
        (flux("{kind: Deployment}"), true),
        (flux("{kind: Deploy}"), false),
        (flux("{kind: Deploy.*|StatefulSet}"), true),
        (
            flux("{group: apps, version: v1, name: w.b, namespace: shop}"),
            true,
        ),
        (flux("{group: ''}"), true),
        (flux("{namespace: sho}"), false),
        (flux("{labelSelector: 'app in (web)'}"), true),
        (flux("{labelSelector: '!app'}"), false),
        (flux("{annotationSelector: a=b}"), true),
        (flux("{annotationSelector: a=c}"), false),
    ] {
        let mut desired = Desired {
            members: vec![object()],
            ..Desired::default()
        };
        let rules = IgnoreRules::read(&rule).expect(&rule);
        rules.mark_ignored_fields(&mut desired, "file");
        assert_eq!(!desired.members[0].ignored.is_empty(), expected, "{rule}");
    }
}

#[test]
fn rules_without_effect_are_reported() {
    let mut member = desired("Secret", Some("shop"), "a");
    member.object = Object::from(&json!({"metadata": {"name": "a"}, "data": {"k": "djE="}}));
    let mut desired = Desired {
        members: vec![member],
        ..Desired::default()
    };
    let text = "ignore:\n- paths:\n  - /stringData/k\n  - /data/gone\n- paths: [/data]\n  target: {kind: ConfigMap}\n";
    let warnings = IgnoreRules::read(text)
        .expect("rules")
        .mark_ignored_fields(&mut desired, "ignore.yaml");
    assert_eq!(
        warnings,
        [
            "ignore.yaml:2: no matching manifest has /data/gone",
            "ignore.yaml:5: this rule matches no object of the manifests",
        ]
    );
    assert_eq!(desired.members[0].ignored, pointers(&["/data/k", "/data/gone"]));
}

#[test]
fn rules_are_read_in_three_forms() {
    let rule = "- paths: [/spec/replicas]\n";
    let kustomization = format!("kind: Kustomization\nspec:\n  ignore:\n  {rule}");
    let source = "kind: GitRepository\nspec:\n  ignore: |\n    /*\n";
    for text in [
        rule.to_owned(),
        format!("ignore:\n{rule}"),
        kustomization.clone(),
        format!("{source}---\n{kustomization}"),
    ] {
        assert!(IgnoreRules::read(&text).is_ok(), "{text}");
    }
}

#[test]
fn faults_of_files_have_lines() {
    let table = [
        ("{}", None, "no rules"),
        ("kind: GitRepository\nspec:\n  ignore: x\n", None, "no rules"),
        ("- a\n", Some(1), "expected a mapping"),
        ("- target: {}\n", Some(1), "missing field `paths`"),
        ("- paths: /a\n", Some(1), "expected a sequence"),
        ("- paths:\n  - /a\n  - spec.b\n", Some(1), "must begin with /"),
        ("- paths: []\n", Some(1), "without paths"),
        ("- paths: ['/a~2']\n", Some(1), "~0"),
        ("- paths: ['']\n", Some(1), "whole object"),
        ("- paths: [/metadata]\n", Some(1), "name"),
        ("- paths: [/metadata/name]\n", Some(1), "identifies the object"),
        (
            "- paths: [/metadata/namespace]\n",
            Some(1),
            "identifies the object",
        ),
        ("- paths: [/kind]\n", Some(1), "identifies the object"),
        (
            "- paths: [/metadata/labels/applyset.kubernetes.io~1part-of]\n",
            Some(1),
            "belongs to the ApplySet",
        ),
        (
            "- paths: [/a]\n  target:\n    kind: '('\n",
            Some(1),
            "regular expression",
        ),
        (
            "- paths: [/a]\n  target:\n    labelSelector: a in\n",
            Some(1),
            "label selector",
        ),
        (
            "- paths: [/a]\n  target:\n    knd: a\n",
            Some(1),
            "unknown field `knd`",
        ),
        ("- paths: [/a]\n  more: 1\n", Some(1), "unknown field `more`"),
        (
            "- paths: [/a]\n  target:\n    kind: '\\pL{1000}'\n",
            Some(1),
            "regular expression",
        ),
    ];
    for (text, line, expected) in table {
        let error = IgnoreRules::read(text).expect_err(text);
        assert_eq!(error.line, line, "{text}: {error}");
        assert!(error.to_string().contains(expected), "{text}: {error}");
    }
}

#[test]
fn a_creation_resets_what_others_have_decided() {
    let manifest = json!({
        "metadata": {"annotations": {"a": "1"}}, "spec": {"replicas": 1, "items": [{"name": "x"}]},
    });
    let object = json!({
        "metadata": {"annotations": {"a": "1", "b": "2"}}, "status": {"ready": 1},
        "spec": {"replicas": 1, "limit": 6, "bundle": "x", "atomic": {"q": 1}, "items": [{"name": "x"}]},
    });
    let ours = json!({"f:metadata": {"f:annotations": {"f:a": {}}}, "f:spec": {"f:replicas": {}}});
    let others = json!({
        "f:metadata": {"f:annotations": {"f:b": {}}}, "f:status": {"f:ready": {}},
        "f:spec": {"f:bundle": {}, "f:atomic": {}},
    });
    let live = live(object, &ours, &json!({}), &others);
    for (pointer, is_reset) in [
        ("/spec/replicas", false),
        ("/spec/limit", false),
        ("/spec/gone", false),
        ("/status", false),
        ("/spec/bundle", true),
        ("/spec/atomic/q", true),
        ("/metadata/annotations/a", false),
        ("/metadata/annotations/b", true),
        ("/metadata/annotations", true),
    ] {
        let mut member = desired("Widget", Some("shop"), "one");
        member.object = Object::from(&manifest);
        member.ignored = pointers(&[pointer]);
        let reset = ignored_fields_lost_by_recreation(&member, &live, "ours");
        assert_eq!(!reset.is_empty(), is_reset, "{pointer}");
        let mut changed = live.clone();
        changed["spec"]["replicas"] = json!(5);
        let reset = ignored_fields_lost_by_recreation(&member, &changed, "ours");
        assert_eq!(
            !reset.is_empty(),
            is_reset || pointer == "/spec/replicas",
            "{pointer}"
        );
    }
}
