//! The line of a field that a server refuses.
//!
//! Lines of fields are not kept: the file is read once more. Standard input, URLs and
//! kustomizations are not.

use std::fs;

use kubernetes_yaml::Node;

use super::{Position, Source, list};

/// Finds the line of the field with this path, in the object that begins at a position. The path
/// is as the API server writes it ([`Node::find`]).
pub fn line_of_field(position: &Position, path: &str) -> Option<usize> {
    let Source::Path(file) = &*position.source else {
        return None;
    };
    if !fs::metadata(file).ok()?.is_file() {
        return None;
    }
    let text = kubernetes_yaml::decode(fs::read(file).ok()?).ok()?;
    line_in(&text, position.line, path)
}

fn line_in(text: &str, line: usize, path: &str) -> Option<usize> {
    let (text, before) = from_document_of(text, line);
    let documents = kubernetes_yaml::documents(text).filter_map(Result::ok);
    let mut objects = documents.flat_map(list::objects).filter_map(Result::ok);
    let object = objects.find(|object| object.position().line() + before == line)?;
    // The `stringData` of a Secret is sent as `data`, and wins if both have a key.
    let key = path.strip_prefix('.').unwrap_or(path).strip_prefix("data.");
    let position = key
        .filter(|_| is_secret(&object))
        .and_then(|key| object.find(&format!("stringData.{key}")))
        .or_else(|| object.find(path))?;
    Some(position.line() + before)
}

/// Returns the text from the document that holds a line, and the number of lines before that: a file may hold thousands
/// of objects that are all refused.
fn from_document_of(text: &str, line: usize) -> (&str, usize) {
    let (mut start, mut begin) = (0, (0, 0));
    for (before, content) in text.split_inclusive('\n').enumerate().take(line) {
        if content.starts_with("---") {
            begin = (start, before);
        }
        start += content.len();
    }
    (&text[begin.0..], begin.1)
}

fn is_secret(object: &Node) -> bool {
    object.get("apiVersion").and_then(Node::as_str) == Some("v1")
        && object.get("kind").and_then(Node::as_str) == Some("Secret")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_in_the_object_of_a_line() {
        let text = "kind: Other\n---\nspec:\n  prots: []\n---\napiVersion: v1\nkind: List\nitems:\n- spec:\n    nme: x\n";
        for (line, path, expected) in [
            (3, ".spec.prots", Some(4)),
            (3, "spec.prots", Some(4)),
            (3, ".spec.gone", None),
            (2, ".spec.prots", None),
            (9, ".spec.nme", Some(10)),
        ] {
            // JSON with separators is YAML, too.
            let json = "{\"kind\": \"A\"}\n---\n{\"spec\":\n{\"b\": 1}}\n";
            assert_eq!(line_in(json, 3, ".spec.b"), Some(4));
            assert_eq!(line_in(text, line, path), expected, "{line} {path}");
        }
    }

    #[test]
    fn data_of_a_secret_is_found_in_string_data() {
        let of = |kind: &str| {
            format!(
                "apiVersion: v1\nkind: {kind}\ndata:\n  a.b: eA==\n  c: eA==\nstringData:\n  a.b: x\n  d: y\n"
            )
        };
        for (path, expected) in [
            (".data.a.b", Some(7)),
            (".data.c", Some(5)),
            (".data.d", Some(8)),
            (".data.e", None),
            (".stringData.d", Some(8)),
        ] {
            assert_eq!(line_in(&of("Secret"), 1, path), expected, "{path}");
        }
        assert_eq!(line_in(&of("ConfigMap"), 1, ".data.a.b"), Some(4));
    }
}
