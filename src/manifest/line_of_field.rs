//! Finds the line of a field that a server refuses.
//!
//! A [`super::Manifest`] has no lines of its fields, so its file is read once more. Standard input, URLs and
//! kustomizations cannot be read a second time, or not cheaply, so their fields have no lines.

use std::fs;

use kubernetes_yaml::Node;

use super::{Position, Source, list};

/// Finds the line of the field with this path, in the object that begins at a position. The path is written as the API
/// server writes it ([`Node::find`]). `None` if the source is not a file, or has changed so that the field is not
/// found.
pub fn line_of_field(position: &Position, path: &str) -> Option<usize> {
    let Source::Path(file) = &*position.source else {
        return None;
    };
    if !fs::metadata(file).ok()?.is_file() {
        return None;
    }
    let text = kubernetes_yaml::decode(fs::read(file).ok()?).ok()?;
    find_line(&text, position.line, path)
}

fn find_line(text: &str, object_line: usize, path: &str) -> Option<usize> {
    let (text, lines_before) = skip_documents_before_line(text, object_line);
    let object = kubernetes_yaml::documents(text)
        .filter_map(Result::ok)
        .flat_map(list::flatten_lists)
        .filter_map(Result::ok)
        .find(|object| object.position().line() + lines_before == object_line)?;
    // The `stringData` of a Secret is sent as `data`, and replaces the value of `data` if both have the key.
    let key = path.strip_prefix('.').unwrap_or(path).strip_prefix("data.");
    let position = key
        .filter(|_| is_secret(&object))
        .and_then(|key| object.find(&format!("stringData.{key}")))
        .or_else(|| object.find(path))?;
    Some(position.line() + lines_before)
}

/// Returns the text from the beginning of the document that holds a line, and the number of lines before it. Without
/// the earlier documents, the search is fast even if a file holds thousands of objects that are all refused.
fn skip_documents_before_line(text: &str, line: usize) -> (&str, usize) {
    let mut offset = 0;
    let mut document_offset = 0;
    let mut lines_before = 0;
    for (index, content) in text.split_inclusive('\n').enumerate().take(line) {
        if content.starts_with("---") {
            document_offset = offset;
            lines_before = index;
        }
        offset += content.len();
    }
    (&text[document_offset..], lines_before)
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
            assert_eq!(find_line(json, 3, ".spec.b"), Some(4));
            assert_eq!(find_line(text, line, path), expected, "{line} {path}");
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
            assert_eq!(find_line(&of("Secret"), 1, path), expected, "{path}");
        }
        assert_eq!(find_line(&of("ConfigMap"), 1, ".data.a.b"), Some(4));
    }
}
