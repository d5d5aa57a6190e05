//! The position of a field, found by a path as API servers write it.

use serde_json::Value;

use crate::node::{Content, Node};
use crate::scalar::Scalar;
use crate::{Entry, Position};

impl Node {
    /// Finds the position of a field by a path as API servers write it in their errors:
    /// `.spec.ports[0].name`, `.spec.ports[port=80].name` or `.spec.finalizers[="x"]`, with or
    /// without the first dot. A field of a mapping is at its key. Of keys that hold dots or
    /// brackets, the longest that fits is taken.
    ///
    /// ```
    /// let text = "spec:\n  ports:\n  - port: 80\n    protcol: TCP\n";
    /// let node = kubernetes_yaml::documents(text).next().expect("a document")?;
    /// let position = node.find(".spec.ports[0].protcol").expect("a field");
    /// assert_eq!(position.to_string(), "4:5");
    /// # Ok::<(), kubernetes_yaml::Errors>(())
    /// ```
    pub fn find(&self, path: &str) -> Option<Position> {
        if path.starts_with('[') {
            return self.descend(path);
        }
        self.descend(&format!(".{}", path.strip_prefix('.').unwrap_or(path)))
    }

    /// Follows a path that begins with `.` or `[`.
    fn descend(&self, path: &str) -> Option<Position> {
        let (position, value, rest) = match (&self.content, path.strip_prefix('.')) {
            (Content::Mapping(entries), Some(path)) => {
                let fitting = entries.iter().filter_map(|(key, entry)| {
                    let rest = path.strip_prefix(key.as_str())?;
                    (rest.is_empty() || rest.starts_with(['.', '['])).then_some((key.len(), entry, rest))
                });
                let (_, Entry { position, value, .. }, rest) = fitting.max_by_key(|(length, ..)| *length)?;
                (*position, value, rest)
            }
            (Content::Sequence(items), None) => {
                let (selector, rest) = path.strip_prefix('[')?.split_once(']')?;
                let item = match selector.parse::<usize>() {
                    Ok(index) => items.get(index)?,
                    Err(_) => items.iter().find(|item| item.is_selected(selector))?,
                };
                (item.position, item, rest)
            }
            _ => return None,
        };
        if rest.is_empty() {
            Some(position)
        } else {
            value.descend(rest)
        }
    }

    /// Returns whether an item has the keys of `a=1,b="x"`, or is the value of `="x"`. A key
    /// that it leaves to its default does not count.
    fn is_selected(&self, selector: &str) -> bool {
        selector.split(',').all(|pair| {
            let Some((key, value)) = pair.split_once('=') else {
                return false;
            };
            let own = if key.is_empty() { Some(self) } else { self.get(key) };
            own.is_none_or(|own| own.is_equal(value))
        })
    }

    /// Returns whether this is the scalar that a selector names.
    fn is_equal(&self, value: &str) -> bool {
        match &self.content {
            Content::Scalar(Scalar::String(text)) => format!("{text:?}") == value,
            Content::Scalar(_) => {
                let expected: Option<Value> = serde_json::from_str(value).ok();
                expected.is_some_and(|expected| expected == self.to_value())
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::documents;

    #[test]
    fn fields_are_found_by_the_paths_of_the_server() {
        let text = "metadata:\n  annotations:\n    a.b/c: x\nspec:\n  prots: []\n  ports:\n  \
                    - port: 80\n    protcol: TCP\n  - port: 81\n    protocol: UDP\n    nme: x\n  args:\n  - a\n  - b\n";
        let table = [
            (".spec.prots", Some("5:3")),
            ("spec.ports[0].protcol", Some("8:5")),
            (".spec.ports[port=80,protocol=\"TCP\"].protcol", Some("8:5")),
            (".spec.ports[port=81,protocol=\"UDP\"].nme", Some("11:5")),
            (".spec.ports[port=81,protocol=\"TCP\"].nme", None),
            (".spec.ports[1]", Some("9:5")),
            (".spec.args[=\"b\"]", Some("14:5")),
            (".metadata.annotations.a.b/c", Some("3:5")),
            (".spec.gone", None),
            (".spec.ports[7]", None),
            (".spec.ports[", None),
            ("", None),
        ];
        let node = documents(text).next().expect("a document").expect("valid");
        for (path, expected) in table {
            let found = node.find(path).map(|position| position.to_string());
            assert_eq!(found.as_deref(), expected, "{path}");
        }
    }

    #[test]
    fn items_of_a_list_are_found() {
        let node = documents("- a: 1\n- b: 2\n")
            .next()
            .expect("a document")
            .expect("valid");
        let found = node.find("[1].b").map(|position| position.to_string());
        assert_eq!(found.as_deref(), Some("2:3"));
    }
}
