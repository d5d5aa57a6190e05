//! Small documents: the manifests in them, or their errors.

use super::super::{Manifest, ManifestErrors, Recursion, Source, read_with_standard_input};
use super::MAX_OBJECT_BYTES;

fn read(text: &str) -> Result<Vec<Manifest>, ManifestErrors> {
    read_with_standard_input(&[Source::StandardInput], Recursion::Flat, text.as_bytes())
}

/// The errors of a text, one per line, without hints.
fn errors(text: &str) -> Vec<String> {
    let errors = read(text).expect_err("the text is wrong");
    errors.0.iter().map(ToString::to_string).collect()
}

#[test]
fn a_manifest_has_its_identity_and_its_line() {
    let text = "# first\n---\n\n# why\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  \
                name: web\n  namespace: shop\nstatus: {}\n---\napiVersion: v1\nkind: Node\n\
                metadata: {name: 'a:b', namespace: ''}\n";
    let manifests = read(text).expect("the text is right");
    let seen: Vec<_> = manifests
        .iter()
        .map(|manifest| {
            (
                manifest.gvk.api_version(),
                manifest.gvk.kind.as_str(),
                manifest.namespace.as_deref(),
                manifest.name.as_str(),
                manifest.position.to_string(),
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            (
                "apps/v1".to_owned(),
                "Deployment",
                Some("shop"),
                "web",
                "standard input:5".to_owned()
            ),
            (
                "v1".to_owned(),
                "Node",
                None,
                "a:b",
                "standard input:12".to_owned()
            ),
        ]
    );
    assert!(manifests[0].object.value().get("status").is_some());
}

#[test]
fn lists_are_flattened_and_their_items_keep_their_lines() {
    let text = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Secret\n  \
                metadata: {name: a}\n- apiVersion: v1\n  kind: ConfigMapList\n  items:\n  \
                - metadata: {name: b}\n- apiVersion: v1\n  kind: Secret\n  metadata: {name: c}\n";
    let manifests = read(text).expect("the text is right");
    let seen: Vec<_> = manifests
        .iter()
        .map(|manifest| {
            (
                manifest.gvk.kind.as_str(),
                manifest.name.as_str(),
                manifest.position.line,
            )
        })
        .collect();
    assert_eq!(
        seen,
        [("Secret", "a", 4), ("Secret", "c", 11), ("ConfigMap", "b", 10)]
    );
    assert_eq!(manifests[2].object.value()["apiVersion"], "v1");
}

#[test]
fn documents_that_are_not_objects_are_reported_with_their_line() {
    let table = [
        ("- a\n", "1: a list is not a Kubernetes object"),
        ("\n\nhello\n", "3: a string is not a Kubernetes object"),
        ("kind: A\nmetadata: {name: a}", "1: apiVersion not set"),
        (
            "apiVersion: ''\nkind: A\nmetadata: {name: a}",
            "1: apiVersion not set",
        ),
        (
            "apiVersion: 1\nkind: A\nmetadata: {name: a}",
            "1: apiVersion: must be a string, not a number",
        ),
        ("apiVersion: v1\nkind:\nmetadata: {name: a}", "1: kind not set"),
        (
            "apiVersion: v1\nkind: [A]\nmetadata: {name: a}",
            "2: kind: must be a string, not a list",
        ),
        ("apiVersion: v1\nkind: A\n", "1: metadata.name not set"),
        (
            "apiVersion: v1\nkind: List\nitems:\n- 5",
            "4: items: must be a list of objects, not a number",
        ),
        (
            "apiVersion: v1\nkind: List\nitems: {}",
            "3: items: must be a list of objects, not a mapping",
        ),
    ];
    for (text, expected) in table {
        assert_eq!(errors(text), [format!("standard input:{expected}")], "{text}");
    }
}

#[test]
fn invalid_metadata_is_reported_with_its_line() {
    let thing = |metadata: &str| format!("apiVersion: v1\nkind: Thing\nmetadata: {metadata}\n");
    let long = "a".repeat(64);
    let table = [
        (thing("[]"), "3: metadata: must be a mapping, not a list"),
        (thing("{}"), "3: metadata.name not set"),
        (thing("{name: ''}"), "3: metadata.name not set"),
        (
            thing("\n  name: y"),
            "4: metadata.name: must be a string, not a boolean",
        ),
        (
            thing("\n  generateName: a-"),
            "4: metadata.generateName: cannot use generate name with apply",
        ),
        (
            thing("\n  generateName: a/b\n  annotations: {argocd.argoproj.io/hook: Sync}"),
            "4: metadata.name: invalid name \"a/b\"",
        ),
        (thing("{name: a/b}"), "3: metadata.name: invalid name \"a/b\""),
        (thing("{name: ..}"), "3: metadata.name: invalid name \"..\""),
        (thing("{name: a%b}"), "3: metadata.name: invalid name \"a%b\""),
        (
            thing("{name: \"a\\e\\u009b\"}"),
            "3: metadata.name: invalid name \"a\\u{1b}\\u{9b}\"",
        ),
        (
            thing("{name: a, namespace: 5}"),
            "3: metadata.namespace: must be a string, not a number",
        ),
        (
            thing("{name: a, namespace: Shop}"),
            "3: metadata.namespace: invalid namespace \"Shop\"",
        ),
        (
            thing("{name: a, namespace: a.b}"),
            "3: metadata.namespace: invalid namespace \"a.b\"",
        ),
        (
            thing("{name: a, namespace: a-}"),
            "3: metadata.namespace: invalid namespace \"a-\"",
        ),
        (
            thing(&format!("{{name: a, namespace: {long}}}")),
            &format!("3: metadata.namespace: invalid namespace {long:?}"),
        ),
        (
            thing("\n  name: a\n  labels:\n    x: 1"),
            "6: metadata.labels[\"x\"]: must be a string, not a number",
        ),
        (
            thing("\n  name: a\n  labels: [x]"),
            "5: metadata.labels: must be a mapping, not a list",
        ),
        (
            thing("\n  name: a\n  annotations:\n    \"\\e\": yes"),
            "6: metadata.annotations[\"\\u{1b}\"]: must be a string, not a boolean",
        ),
        (
            thing("\n  name: a\n  labels:\n    applyset.kubernetes.io/part-of: x"),
            "6: label applyset.kubernetes.io/part-of: not allowed in a manifest",
        ),
        (
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  b: ~\n  a: 1".to_owned(),
            "6: data[\"a\"]: must be a string, not a number",
        ),
        (
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\nbinaryData:\n  a: [x]".to_owned(),
            "5: binaryData[\"a\"]: must be a string, not a list",
        ),
        (
            "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData:\n  a: true".to_owned(),
            "5: stringData[\"a\"]: must be a string, not a boolean",
        ),
        (
            "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: x".to_owned(),
            "4: data: must be a mapping, not a string",
        ),
    ];
    for (text, expected) in table {
        assert_eq!(errors(&text), [format!("standard input:{expected}")], "{text}");
    }
}

#[test]
fn base64_is_checked_as_the_server_decodes_it() {
    let object = |kind: &str, field: &str, value: &str| {
        format!("apiVersion: v1\nkind: {kind}\nmetadata: {{name: a}}\n{field}: {{key: {value}}}\n")
    };
    for value in ["aGVsbG8=", "aGVsbG9=", "\"aGVs\\nbG8=\\r\\n\"", "\"\"", "null"] {
        assert!(read(&object("Secret", "data", value)).is_ok(), "{value}");
        assert!(read(&object("ConfigMap", "binaryData", value)).is_ok(), "{value}");
    }
    for value in ["hunter2!", "aGVsbG8", "aGVs bG8="] {
        let reported = errors(&object("Secret", "data", value)).join("");
        assert!(
            reported.contains(":4: data[\"key\"]: invalid base64"),
            "{reported}"
        );
        assert!(!reported.contains(value), "{reported}");
        assert!(read(&object("Secret", "stringData", value)).is_ok(), "{value}");
        assert!(read(&object("ConfigMap", "data", value)).is_ok(), "{value}");
    }
}

#[test]
fn a_label_or_annotation_that_is_null_is_left_out() {
    for field in ["labels", "annotations"] {
        let text = format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: a, {field}: {{b: null, c: ''}}}}\n");
        let metadata = read(&text).expect("valid")[0].object.metadata();
        assert_eq!(metadata[field], serde_json::json!({"c": ""}), "{text}");
    }
}

#[test]
fn all_errors_are_reported_in_reading_order() {
    let text = "kind: A\nmetadata:\n  name: 5\n  labels: {a: 1}\n---\na: b: c\n---\na: 1\na: 2\n\
                a: 3\n---\napiVersion: v1\nkind: Fine\nmetadata: {name: fine}\n";
    assert_eq!(
        errors(text),
        [
            "standard input:1: apiVersion not set",
            "standard input:3: metadata.name: must be a string, not a number",
            "standard input:4: metadata.labels[\"a\"]: must be a string, not a number",
            "standard input:6: YAML syntax error: mapping values are not allowed in this context",
            "standard input:9: key \"a\" was already set in line 8",
            "standard input:10: key \"a\" was already set in line 8",
        ]
    );
}

#[test]
fn a_large_text_is_read_as_a_small_one() {
    let expected: Vec<_> = (0..5_000)
        .map(|number| (format!("a{number}"), 5 * number + 2))
        .collect();
    let document = |(name, _): &(String, usize)| {
        format!("---\napiVersion: v1\nkind: Thing\nmetadata:\n  name: {name}\n")
    };
    let text = expected.iter().map(document).collect::<Vec<_>>().concat();
    let manifests = read(&text).expect("the text is right");
    let seen: Vec<_> = manifests
        .into_iter()
        .map(|manifest| (manifest.name, manifest.position.line))
        .collect();
    // The first separator has nothing above it and belongs to its document.
    assert_eq!(seen, expected);

    let wrong = text.replace("99\n", "99: x\n");
    let expected: Vec<_> = (0..50).map(|hundred| 5 * (100 * hundred + 99) + 5).collect();
    let seen: Vec<usize> = errors(&wrong)
        .iter()
        .filter_map(|error| error.split(':').nth(1)?.parse().ok())
        .collect();
    assert_eq!(seen, expected);
}

#[test]
fn an_object_that_no_server_takes_is_a_fault_of_its_line() {
    let object = |bytes: usize| {
        let value = "x".repeat(bytes);
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: one}}\ndata: {{key: {value}}}\n")
    };
    let list = format!("{}---\n{}", object(1), object(MAX_OBJECT_BYTES));
    let found = errors(&list);
    assert_eq!(found.len(), 1);
    assert!(
        found[0].contains(":6: the object is larger than 3 MiB"),
        "{}",
        found[0]
    );
    assert!(read(&object(MAX_OBJECT_BYTES - 100)).is_ok());
}

#[test]
fn a_template_is_reported_as_a_template() {
    let object = "apiVersion: v1\nkind: A\nmetadata: {name: a}\n";
    let template = "this looks like an unrendered template";
    for (text, line) in [
        (format!("{object}spec:\n  replicas: {{{{ .Values.x }}}}\n"), 5),
        (format!("{{{{- if .Values.x }}}}\n{object}{{{{- end }}}}\n"), 1),
    ] {
        let expected = format!("standard input:{line}: {template}");
        assert_eq!(errors(&text).first(), Some(&expected), "{text}");
    }
    assert!(read(&format!("{object}spec: \"{{{{ x }}}}\"\n")).is_ok());
}

#[test]
fn an_empty_file_name_is_reported_as_empty() {
    let errors = read_with_standard_input(&[Source::from_filename_flag("")], Recursion::Flat, &b""[..]);
    let errors = errors.expect_err("there is no such file");
    assert_eq!(errors.0[0].to_string(), "\"\": empty file name");
    assert!(errors.0[0].problem.hint().contains("variable"));
}

#[test]
fn a_hint_says_what_to_type() {
    let errors = read("apiVersion: v1\nkind: A\nmetadata: {name: a, labels: {x: 1}}")
        .expect_err("a label is not a number");
    assert_eq!(errors.0[0].problem.hint(), "quote it");
}

#[test]
fn many_faults_are_shown_up_to_a_limit() {
    let list = |count: usize| {
        let items = vec!["{}"; count].join(",");
        format!("apiVersion: v1\nkind: List\nitems: [{items}]\n")
    };
    let fields = |count: usize, line: &dyn Fn(usize) -> String| {
        let lines: String = (0..count).map(line).collect();
        format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: a}}\ndata:\n{lines}")
    };
    // Three faults of each item.
    assert_eq!(errors(&list(33)).len(), 99);
    let separators = |count: usize| "---\nx\n".repeat(count);
    assert_eq!(errors(&separators(100)).len(), 100);
    for text in [
        list(50_000),
        separators(101),
        separators(300_000),
        list(20) + &separators(10_000),
        fields(50_000, &|number| format!("  k{number}: 1\n")),
        fields(50_000, &|number| format!("  k{number}: '*'\n")),
        fields(50_000, &|_| "  k: ''\n".to_owned()),
    ] {
        let errors = errors(&text);
        assert_eq!(errors.len(), 101, "{:?}", errors.last());
        let more = errors.iter().filter(|error| error.contains("too many errors"));
        assert_eq!(more.count(), 1);
        assert!(
            errors[100].ends_with("only the first 100 are shown"),
            "{}",
            errors[100]
        );
    }
    let first: Vec<String> = errors(&separators(300_000)).into_iter().take(100).collect();
    assert_eq!(first, errors(&separators(100)));
}
