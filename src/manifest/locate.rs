//! The line of a field of an object, found when somebody wants to know it.
//!
//! Lines of fields are not kept: they are needed only where a server refuses a field, and
//! then the file is read once more. What came from elsewhere cannot be read again.

use std::fs;
use std::ops::ControlFlow;

use serde_json::Value;

use super::document;
use super::node::{Content, Node};
use super::scalar::Scalar;
use super::{Position, Source, check, source};

/// The line of the field with this path, in the object that begins at a position. The path
/// is as the API server writes it: `.spec.ports[0].name`, `.spec.ports[port=80].name`,
/// with or without the first dot.
pub fn line_of_field(position: &Position, path: &str) -> Option<usize> {
    let Source::Path(file) = &*position.source else {
        return None;
    };
    if !fs::metadata(file).ok()?.is_file() {
        return None;
    }
    let text = source::decode(fs::read(file).ok()?).ok()?;
    line_in(&text, position.line, path)
}

fn line_in(text: &str, line: usize, path: &str) -> Option<usize> {
    let mut object = None;
    let _ = document::divide(text).iter().try_for_each(|part| {
        part.read(&mut |document| {
            let objects = document.map(check::objects).unwrap_or_default();
            object = objects.into_iter().flatten().find(|object| object.line == line);
            match object {
                Some(_) => ControlFlow::Break(()),
                None => ControlFlow::Continue(()),
            }
        })
    });
    let object = object?;
    let path = path.strip_prefix('.').unwrap_or(path);
    // The `stringData` of a Secret is sent as `data`, and wins where both have a key.
    let typed = path.strip_prefix("data.").filter(|_| is_secret(&object));
    typed
        .and_then(|key| descend(&object, &format!(".stringData.{key}")))
        .or_else(|| descend(&object, &format!(".{path}")))
}

fn is_secret(object: &Node) -> bool {
    let says = |field: &str, wanted: &str| {
        let value = object.get(field).map(|value| &value.content);
        matches!(value, Some(Content::Scalar(Scalar::String(text))) if *text == *wanted)
    };
    says("apiVersion", "v1") && says("kind", "Secret")
}

/// The line of what `path` leads to from here; it begins with `.` or `[`.
fn descend(node: &Node, path: &str) -> Option<usize> {
    let (line, value, rest) = match (&node.content, path.strip_prefix('.')) {
        (Content::Mapping(entries), Some(path)) => {
            // Keys may hold dots and brackets: the longest that fits is meant.
            let fitting = entries.iter().filter_map(|(key, entry)| {
                let rest = path.strip_prefix(key.as_str())?;
                (rest.is_empty() || rest.starts_with(['.', '['])).then_some((key.len(), entry, rest))
            });
            let (_, entry, rest) = fitting.max_by_key(|(length, ..)| *length)?;
            (entry.line, &entry.value, rest)
        }
        (Content::Sequence(items), None) => {
            let (selector, rest) = path.strip_prefix('[')?.split_once(']')?;
            let item = match selector.parse::<usize>() {
                Ok(index) => items.get(index)?,
                Err(_) => items.iter().find(|item| is_selected(item, selector))?,
            };
            (item.line, item, rest)
        }
        _ => return None,
    };
    if rest.is_empty() {
        Some(line)
    } else {
        descend(value, rest)
    }
}

/// Whether an item has the keys of `a=1,b="x"`, or is the value of `="x"`. What it leaves
/// to defaults does not matter.
fn is_selected(item: &Node, selector: &str) -> bool {
    selector.split(',').all(|pair| {
        let Some((key, value)) = pair.split_once('=') else {
            return false;
        };
        let own = if key.is_empty() { Some(item) } else { item.get(key) };
        own.is_none_or(|own| match &own.content {
            Content::Scalar(Scalar::String(text)) => format!("{text:?}") == value,
            Content::Scalar(scalar) => {
                let wanted: Option<Value> = serde_json::from_str(value).ok();
                wanted.is_some() && wanted == serde_json::to_value(scalar).ok()
            }
            _ => false,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_the_paths_of_the_server() {
        let text = "kind: Other\n---\nmetadata:\n  annotations:\n    a.b/c: x\nspec:\n  prots: []\n  ports:\n  \
                    - port: 80\n    protcol: TCP\n  - port: 81\n    protocol: UDP\n    nme: x\n  args:\n  - a\n  - b\n";
        let table = [
            (".spec.prots", Some(7)),
            ("spec.ports[0].protcol", Some(10)),
            (".spec.ports[port=80,protocol=\"TCP\"].protcol", Some(10)),
            (".spec.ports[port=81,protocol=\"UDP\"].nme", Some(13)),
            (".spec.ports[port=81,protocol=\"TCP\"].nme", None),
            (".spec.args[=\"b\"]", Some(16)),
            (".metadata.annotations.a.b/c", Some(5)),
            (".spec.gone", None),
            (".spec.ports[7]", None),
            (".spec.ports[", None),
            ("", None),
        ];
        for (path, expected) in table {
            assert_eq!(line_in(text, 3, path), expected, "{path}");
        }
        assert_eq!(line_in(text, 2, ".spec.prots"), None);
    }

    #[test]
    fn data_of_a_secret_is_found_where_it_was_typed() {
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
