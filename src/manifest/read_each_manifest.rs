//! Reads an untrusted text of manifests one document after another, so that only one document is in memory.

use std::sync::Arc;

use super::error::LineFault;
use super::read_in_parallel::to_manifests;
use super::{Manifest, Source};

/// Reads the manifests of a text in order and calls `visit` for each one.
///
/// # Errors
///
/// The first fault, with its line. The documents after it are not read.
pub fn read_each_manifest(text: &str, mut visit: impl FnMut(Manifest)) -> Result<(), String> {
    let source = Arc::new(Source::StandardInput);
    for manifest in kubernetes_yaml::documents(text).flat_map(|document| to_manifests(&source, document)) {
        match manifest {
            Ok(manifest) => visit(manifest),
            Err(faults) => {
                let first = faults.into_iter().next();
                return first.map_or(Ok(()), |LineFault { line, problem }| {
                    Err(format!("line {line}: {problem}"))
                });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Result<Vec<String>, String> {
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
        assert!(error.starts_with("line 5: "), "{error}");
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
    fn the_aliases_of_all_documents_are_limited_together() {
        let value = "x".repeat(1 << 16);
        let items = vec!["*b"; 40].join(", ");
        let document = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: one}}\na: &b {value}\nc: [{items}]\n---\n"
        );
        assert_eq!(names(&document).expect("a manifest"), ["one"]);
        let error = names(&document.repeat(40)).expect_err("too many aliases");
        assert!(error.contains("aliases"), "{error}");
    }
}
