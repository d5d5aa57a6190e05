//! Custom resources.

use super::*;

#[test]
fn a_definition_shows_what_is_atomic() {
    let definition = json!({"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": {
        "type": "object", "properties": {"spec": {"type": "object", "properties": {
            "selector": {"type": "object", "x-kubernetes-map-type": "atomic",
                "properties": {"a": {"type": "string"}}},
            "granular": {"type": "object", "properties": {"a": {"type": "string"}}},
            "list": {"type": "array", "items": {"type": "string"}},
            "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "holder": {"type": "object", "properties": {
                "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                "kind": {"type": "string"}}},
            "any": {"x-kubernetes-preserve-unknown-fields": true}}}}}}}]}});
    let definition = CrdVersion::from_definition(&definition, "v1").expect("it has this version");
    assert!(CrdVersion::from_definition(&json!({"spec": {"versions": []}}), "v1").is_none());
    let cases = [
        (
            json!({"selector": {"a": "b"}}),
            json!({"f:selector": {}}),
            "unchanged",
        ),
        (json!({"list": ["a"]}), json!({"f:list": {}}), "unchanged"),
        (
            json!({"any": {"k": [1]}}),
            json!({"f:any": {"f:k": {}}}),
            "unchanged",
        ),
        (
            json!({"any": {"k": {"l": [1]}}}),
            json!({"f:any": {"f:k": {".": {}, "f:l": {}}}}),
            "unchanged",
        ),
        (
            json!({"granular": {"a": "b"}}),
            json!({"f:granular": {}}),
            "field added: spec.granular",
        ),
        (
            json!({"holder": {"set": []}, "list": ["a"]}),
            json!({"f:list": {}}),
            "unchanged",
        ),
        (
            json!({"holder": {"set": [], "kind": "x"}, "list": ["a"]}),
            json!({"f:list": {}}),
            "field added: spec.holder",
        ),
        (
            json!({"any": {"set": []}, "list": ["a"]}),
            json!({"f:list": {}}),
            "field added: spec.any",
        ),
    ];
    for (spec, tree, expected) in cases {
        let example = Example::of("example.com/v1", "Thing", &spec, &tree, &spec);
        let verdict = match compare(&example.desired, &example.live, US, Some(&definition)) {
            Verdict::Unchanged => "unchanged".to_owned(),
            Verdict::Send(reason) => reason.to_string(),
        };
        assert_eq!(verdict, expected, "{spec}");
    }
    let spec = json!({"selector": {"a": "b"}});
    let blind = Example::of(
        "example.com/v1",
        "Thing",
        &spec,
        &json!({"f:selector": {}}),
        &spec,
    );
    assert_eq!(blind.reason(), "unknown shape: spec.selector");
    // What uniting our entry with one of client-side apply leaves.
    let spec = json!({"granular": {"a": "b"}});
    let tree = json!({"f:granular": {".": {}, "f:a": {}}});
    let united = Example::of("example.com/v1", "Thing", &spec, &tree, &spec);
    assert_eq!(united.reason(), "unknown shape: spec.granular");
}
