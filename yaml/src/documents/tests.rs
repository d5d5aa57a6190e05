//! Small texts: the documents that they are divided into.

use super::*;

/// The value of `a` of each document, or its first error, with their positions.
fn contents(text: &str) -> Vec<String> {
    let documents = documents(text).map(|document| match document {
        Ok(node) => format!("{}: {}", node.position(), node.to_value()["a"]),
        Err(errors) => errors.into_iter().next().expect("an error").to_string(),
    });
    documents.collect()
}

#[test]
fn texts_are_divided_as_kubectl_divides_them() {
    let table: [(&str, &[&str]); 22] = [
        ("", &[]),
        ("# c\n---\n---\n \n--- # c\nnull\n---", &[]),
        ("a: 1", &["1:1: 1"]),
        ("---\na: 1\n---\na: 2\n", &["2:1: 1", "4:1: 2"]),
        ("---\r\na: 1\r\n---\r\n\r\na: 2\r\n", &["2:1: 1", "5:1: 2"]),
        ("a: |\n  x", &["1:1: \"x\\n\""]),
        ("a: 1\n---  \t# c\n# d\na: 2\n...\n", &["1:1: 1", "4:1: 2"]),
        (
            "a: 1\n---b\na: 2\n---\na: 3\n",
            &["1:1: 1", "2:1: \"---b\" is not a document separator", "5:1: 3"],
        ),
        ("a: 1\n---#b\na: 2\n", &["1:1: 1", "3:1: 2"]),
        (
            "---#b\na: 1\n---\na: 2\n",
            &["1:1: \"---#b\" is not a document separator", "4:1: 2"],
        ),
        (
            "a: 1\n---\n---#b\n---\na: 2\n",
            &["1:1: 1", "3:1: \"---#b\" is not a document separator", "5:1: 2"],
        ),
        ("--- a\nb\n", &["1:1: \"--- a\" is not a document separator"]),
        (
            "a: 1\n...\na: 2\n---\na: 3\n",
            &[
                "3:1: kubectl ignores everything from here to the next \"---\"",
                "5:1: 3",
            ],
        ),
        (" \n{\"a\": 1}", &["2:1: 1"]),
        (
            "{\"a\": 1}{\"a\": 2}\n\n{\"a\": 3}",
            &["1:1: 1", "1:9: 2", "3:1: 3"],
        ),
        (
            "{\"a\": 1}\n---\n{\"a\": 0x10}\n---\na: 3",
            &["1:1: 1", "3:1: 16", "5:1: 3"],
        ),
        ("{a: 1}\n---\n{\"a\": 2}\n", &["1:1: 1", "3:1: 2"]),
        (
            "{}{}\n---\n",
            &["1:1: null", "1:3: null", "2:2: JSON syntax error: invalid number"],
        ),
        (
            "{\"a\": 1} {a: 2, b: \"\\x\"}",
            &[
                "1:1: 1",
                "1:20: YAML syntax error: while parsing a quoted scalar, did not find expected hexadecimal number",
            ],
        ),
        ("{\"a\": 1,\n\"b\" 2}", &["2:5: JSON syntax error: expected `:`"]),
        (
            "{\"a\": 1,\n \"a\": 2}",
            &["2:4: JSON syntax error: key \"a\" is set twice"],
        ),
        ("{\"a\":\n1e999}", &["2:5: a number is too large"]),
    ];
    for (text, expected) in table {
        assert_eq!(contents(text), expected, "{text:?}");
    }
}

#[test]
fn documents_that_are_read_together_share_the_limit_on_aliases() {
    let items = vec!["*b"; 1_000].join(", ");
    let value = "x".repeat(1_000);
    let document = format!("a: &b {value}\nc: [{items}]\n---\n");
    let refused = |texts: &[&str]| {
        let budget = Budget::default();
        let parts = texts.iter().flat_map(|text| parts(text, &budget));
        parts.flat_map(Part::into_iter).filter(Result::is_err).count()
    };
    let text = document.repeat(50);
    assert_eq!(refused(&[text.as_str()]), 0);
    assert!(refused(&[text.as_str(); 2]) > 0);
    assert!(documents(&text.repeat(2)).any(|document| document.is_err()));
}

#[test]
fn separators_and_comments_alone_are_no_documents() {
    for empty in ["---\n", "# x\n---\n", "\n  # x\n\n--- # y\n"] {
        assert_eq!(
            split(&empty.repeat(10_000), Position::START).len(),
            1,
            "{empty:?}"
        );
        let text = empty.repeat(2);
        let documents = split(&text, Position::START);
        assert!(
            documents
                .iter()
                .all(|document| document.read(&Budget::default()).is_none())
        );
    }
    for text in [
        "# x\na: b\n---\n",
        "--- a\n---\n",
        "---#a\n---\n",
        "%YAML 1.2\n---\n",
        "...\n---\n",
    ] {
        assert_eq!(split(text, Position::START).len(), 2, "{text:?}");
    }
}

#[test]
fn documents_that_are_read_together_share_the_limit_on_values() {
    let yaml = "a: [0, 0]\n---\n".repeat(50);
    let faulty = "a: [0, 0]\na: 0\n---\n".repeat(50);
    let json = "{\"a\": [0, 0]}\n".repeat(50);
    for text in [&yaml, &faulty, &json] {
        let budget = Budget::of_values(40);
        let read: Vec<_> = parts(text, &budget).into_iter().flatten().collect();
        let last = read.last().expect("documents");
        assert!(last.is_err() && read.len() < 20, "{}: {last:?}", read.len());
        // Once it has failed, no more is read.
        assert_eq!(parts(&yaml, &budget).into_iter().flatten().count(), 0);
        let budget = Budget::of_values(400);
        assert_eq!(parts(text, &budget).into_iter().flatten().count(), 50);
    }
}
