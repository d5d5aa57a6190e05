//! KYAML, as `kubectl -o kyaml` prints it (KEP-5295; `kyaml.go` of sigs.k8s.io/yaml): YAML with braces and brackets, in
//! which every string has quotation marks, so that indentation means nothing.

use serde::Serialize;
use serde_json::Value;

use crate::model::text::printable_json_as_yaml;

/// Returns a document as KYAML, without the `---` above it. What a terminal or a CI runner would act upon is escaped.
pub(super) fn kyaml<T: Serialize>(document: &T) -> String {
    let value = serde_json::to_value(document).unwrap_or_else(|error| Value::from(error.to_string()));
    let mut text = String::new();
    write_value(&mut text, &value, 0);
    printable_json_as_yaml(text)
}

/// Writes a value whose first line is indented already. `level` is the indentation of its last line.
fn write_value(text: &mut String, value: &Value, level: usize) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            text.push_str("{\n");
            for (name, field) in fields {
                indent(text, level + 1);
                write_name(text, name);
                text.push_str(": ");
                write_value(text, field, level + 1);
                text.push_str(",\n");
            }
            indent(text, level);
            text.push('}');
        }
        Value::Array(items) if items.iter().any(|item| !item.is_object() && !item.is_array()) => {
            text.push_str("[\n");
            for item in items {
                indent(text, level + 1);
                write_value(text, item, level + 1);
                text.push_str(",\n");
            }
            indent(text, level);
            text.push(']');
        }
        // Brackets of lists and objects share their lines.
        Value::Array(items) => {
            text.push('[');
            for (position, item) in items.iter().enumerate() {
                text.push_str(if position == 0 { "" } else { ", " });
                write_value(text, item, level);
            }
            text.push(']');
        }
        // A string of several lines stays on one line, which kubectl would fold: each of its lines would be a line of
        // the output.
        Value::Object(_) | Value::String(_) | Value::Number(_) | Value::Bool(_) | Value::Null => {
            text.push_str(&value.to_string());
        }
    }
}

fn indent(text: &mut String, level: usize) {
    text.extend(std::iter::repeat_n("  ", level));
}

/// Writes the name of a field: without quotation marks, unless a reader could take it for something else. kubectl also
/// leaves them out from names that begin with a digit and are no number.
fn write_name(text: &mut String, name: &str) {
    let may_be_bare = name.starts_with(|first: char| first.is_alphabetic() || first == '_')
        && name.ends_with(is_plain)
        && name
            .chars()
            .all(|character| is_plain(character) || "-./".contains(character));
    if may_be_bare && !is_ambiguous(name) {
        text.push_str(name);
    } else {
        text.push_str(&Value::from(name).to_string());
    }
}

fn is_plain(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// Returns whether a reader of YAML could take the word for a boolean, null or a number such as `inf`.
fn is_ambiguous(word: &str) -> bool {
    const WORDS: [&str; 11] = [
        "null", "true", "t", "y", "yes", "on", "false", "f", "n", "no", "off",
    ];
    WORDS.contains(&&*word.to_lowercase()) || word.parse::<f64>().is_ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The expected text is that of kubectl 1.36.3, but for the string of several lines.
    #[test]
    fn documents_look_like_those_of_kubectl() {
        let document = json!({
            "a": {"empty": {}, "none": [], "null": null, "number": 1.5, "yes": true},
            "lists": [["x", 1], [], [{"b": "c", "d": "e"}, {"f": {"g": false}}]],
            "text": "one\n  two \"quoted\"\n\nend",
            "texts": ["a\\b", "{"],
        });
        let expected = r#"{
  a: {
    empty: {},
    none: [],
    "null": null,
    number: 1.5,
    "yes": true,
  },
  lists: [[
    "x",
    1,
  ], [], [{
    b: "c",
    d: "e",
  }, {
    "f": {
      g: false,
    },
  }]],
  text: "one\n  two \"quoted\"\n\nend",
  texts: [
    "a\\b",
    "{",
  ],
}"#;
        assert_eq!(kyaml(&document), expected);
        assert_eq!(serde_saphyr::from_str::<Value>(expected).expect("YAML"), document);
    }

    #[test]
    fn names_are_quoted_where_a_reader_could_be_wrong() {
        for name in ["a", "A1", "app.kubernetes.io/name", "a-b", "_x", "ä", "nope"] {
            assert_eq!(kyaml(&json!({name: 1})), format!("{{\n  {name}: 1,\n}}"));
        }
        for name in [
            "",
            "a b",
            "-a",
            "a-",
            ".a",
            "a:",
            "No",
            "T",
            "null",
            "12",
            "0x1F",
            "1_0",
            "1e3",
            "1.5",
            "NaN",
            "inf",
            "2026-1-31",
            "1a",
            "0xg",
            "a\nb",
            "#",
        ] {
            let quoted = Value::from(name).to_string();
            assert_eq!(kyaml(&json!({name: 1})), format!("{{\n  {quoted}: 1,\n}}"));
        }
    }
}
