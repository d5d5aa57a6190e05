//! Reads an untrusted text of manifests one document after another, so that only one document is in memory.

use std::sync::Arc;

use super::error::LineFault;
use super::read_in_parallel::to_manifests;
use super::{Manifest, Problem, Source};

/// The limit for the sum of the bytes that the documents of a text take in memory, though only one of them is in memory
/// at a time. With only the limit for one document, a short text of many documents with aliases could take hours.
const MAX_WEIGHT: usize = 512 << 20;

/// The reason why a text of manifests cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// A document does not hold a valid manifest.
    #[error("line {line}: {problem}")]
    Unreadable {
        /// The line of the text, counted from 1.
        line: usize,
        /// The fault.
        problem: Problem,
    },
    /// The documents are too large together, for example because of anchors and aliases that multiply.
    #[error("the documents need more than {} MiB of memory", MAX_WEIGHT >> 20)]
    TooHeavy,
}

/// Reads the manifests of a text in order and calls `visit` for each one.
///
/// # Errors
///
/// The first fault. The documents after it are not read.
pub fn read_each_manifest(text: &str, visit: impl FnMut(Manifest)) -> Result<(), StreamError> {
    read_each_within(text, MAX_WEIGHT, visit)
}

fn read_each_within(
    text: &str,
    max_weight: usize,
    mut visit: impl FnMut(Manifest),
) -> Result<(), StreamError> {
    let source = Arc::new(Source::StandardInput);
    let mut weight = 0;
    for document in kubernetes_yaml::documents(text) {
        weight += document.as_ref().map_or(0, kubernetes_yaml::Node::weight);
        if weight > max_weight {
            return Err(StreamError::TooHeavy);
        }
        for manifest in to_manifests(&source, document) {
            match manifest {
                Ok(manifest) => visit(manifest),
                Err(faults) => {
                    return match faults.into_iter().next() {
                        Some(LineFault { line, problem }) => Err(StreamError::Unreadable { line, problem }),
                        None => Ok(()),
                    };
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Result<Vec<String>, StreamError> {
        let mut names = Vec::new();
        read_each_manifest(text, |manifest| names.push(manifest.name))?;
        Ok(names)
    }

    #[test]
    fn manifests_are_read_in_order_up_to_the_first_fault() {
        let one = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\n---\n";
        let two = one.replace("one", "two");
        let text = format!("{one}# nothing\n---\n{two}");
        assert_eq!(names(&text).expect("manifests"), ["one", "two"]);
        let text = format!("{one}kind: [}}\n---\n{two}");
        let mut manifest_names = Vec::new();
        let error =
            read_each_manifest(&text, |manifest| manifest_names.push(manifest.name)).expect_err("a fault");
        assert!(error.to_string().starts_with("line 5: "), "{error}");
        assert_eq!(manifest_names, ["one"]);
    }

    #[test]
    fn an_object_with_a_name_and_empty_items_is_a_fault() {
        let item = "[{apiVersion: v1, kind: ConfigMap, metadata: {name: one}}]";
        for (kind, name, items, expected) in [
            ("ConfigMap", "two", "null", None),
            ("ConfigMap", "two", "[]", None),
            ("AllowList", "two", "[]", None),
            ("ConfigMap", "two", item, Some(1)),
            ("ConfigMap", "null", "[]", Some(0)),
            ("List", "two", "[]", Some(0)),
        ] {
            let text = format!("apiVersion: v1\nkind: {kind}\nmetadata: {{name: {name}}}\nitems: {items}\n");
            let count = names(&text).ok().map(|names| names.len());
            assert_eq!(count, expected, "{text}");
        }
    }

    #[test]
    fn documents_together_are_limited() {
        let items = vec!["*b"; 1_000].join(", ");
        let document = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: one}}\na: &b [x, x, x, x]\nc: [{items}]\n---\n"
        );
        let most = 1 << 20;
        let mut manifest_count = 0;
        read_each_within(&document, most, |_| manifest_count += 1).expect("a manifest");
        assert_eq!(manifest_count, 1);
        manifest_count = 0;
        let error =
            read_each_within(&document.repeat(20), most, |_| manifest_count += 1).expect_err("too heavy");
        assert!(matches!(error, StreamError::TooHeavy), "{error}");
        assert!((1..20).contains(&manifest_count), "{manifest_count}");
    }
}
