//! The tables of the README hold.

use kubernetes_yaml::{Problem, documents};
use serde_json::{Value, json};

/// Reads a text of one document.
fn read(text: &str) -> Result<Value, Problem> {
    let document = documents(text).next().expect("a document");
    match document {
        Ok(node) => Ok(node.to_value()),
        Err(errors) => Err(errors.into_iter().next().expect("an error").problem),
    }
}

#[test]
fn texts_mean_what_they_mean_to_kubectl() {
    let table = [
        ("mode: 0644", json!({"mode": 420})),
        ("enabled: yes", json!({"enabled": true})),
        ("on: push", json!({"true": "push"})),
        ("{size: 1_000, flags: 0b11}", json!({"size": 1000, "flags": 3})),
        ("{a: 1, <<: {a: 2}}", json!({"a": 2})),
        ("cpu: 1.0", json!({"cpu": 1})),
        ("a: |\n---\nb: 1", json!({"a": ""})),
        ("{\"a\": 1}{\"a\": 2}", json!({"a": 1})),
        ("a: \"\\/\\ud83d\\ude00\"", json!({"a": "/😀"})),
    ];
    for (text, expected) in table {
        assert_eq!(read(text), Ok(expected), "{text:?}");
    }
}

#[test]
fn what_differs_is_refused() {
    let deep = format!("{}{}", "[".repeat(101), "]".repeat(101));
    let table = [
        "a: 1\na: 2",
        "{\"a\": 1, \"a\": 2}",
        "a: 1\n...\nb: 2",
        "{\"a\": \"\\ud800\"}",
        "a: !!binary /w==",
        "{a:, b: c}",
        "{?a: b}",
        "[x, !, y]",
        "[cat, -]",
        "a: {\n\tb: 1}",
        "a: \"\\'\"",
        "a: |\n    \n   # c\nb: 1",
        ".inf: a",
        "a: \u{85}b",
        "a: \u{2028}b",
        &deep,
    ];
    for text in table {
        let problem = read(text).expect_err(text);
        assert!(!problem.hint().is_empty(), "{problem}");
    }
}
