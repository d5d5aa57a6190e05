//! The annotation by which an object names the objects that it depends on, in the syntax of cli-utils
//! (`sigs.k8s.io/cli-utils/pkg/object/dependson`).
//!
//! The value is a comma-separated list of references: `group/Kind/name` for an object of the cluster, and
//! `group/namespaces/namespace/Kind/name` for one in a namespace. The core group is the empty string:
//! `/namespaces/shop/Secret/login`.

use std::collections::BTreeMap;

use super::identity::{GroupKind, ObjectKey};

/// The key of the annotation.
pub const DEPENDS_ON: &str = "config.kubernetes.io/depends-on";

/// A reference that has neither of the two forms (see the module).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a reference to an object")]
pub struct MalformedReference(pub String);

/// The references of one annotation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Dependencies {
    /// The objects of all valid references, each once.
    pub objects: Vec<ObjectKey>,
    /// The first reference in the annotation that cannot be parsed.
    pub first_malformed: Option<MalformedReference>,
}

impl Dependencies {
    /// Returns whether the object has no depends-on annotation. An empty annotation is a malformed reference.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.first_malformed.is_none()
    }

    /// Reads the annotation of an object, if it has one.
    pub fn from_annotations(annotations: &BTreeMap<&str, &str>) -> Self {
        annotations
            .get(DEPENDS_ON)
            .map(|text| Self::from_text(text))
            .unwrap_or_default()
    }

    fn from_text(text: &str) -> Self {
        let mut dependencies = Self::default();
        for reference in text.split(',').map(str::trim) {
            match parse_reference(reference) {
                Some(key) if dependencies.objects.contains(&key) => {}
                Some(key) => dependencies.objects.push(key),
                None => {
                    dependencies
                        .first_malformed
                        .get_or_insert_with(|| MalformedReference(reference.to_owned()));
                }
            }
        }
        dependencies
    }
}

/// Parses the value of the annotation. A repeated reference is returned once.
///
/// # Errors
///
/// Returns the first malformed reference.
pub fn parse(text: &str) -> Result<Vec<ObjectKey>, MalformedReference> {
    let Dependencies {
        objects,
        first_malformed,
    } = Dependencies::from_text(text);
    first_malformed.map_or(Ok(objects), Err)
}

fn parse_reference(reference: &str) -> Option<ObjectKey> {
    let parts: Vec<&str> = reference.split('/').collect();
    let (group, namespace, kind, name) = match parts.as_slice() {
        [group, kind, name] => (*group, None, *kind, *name),
        [group, "namespaces", namespace, kind, name] => (*group, Some(*namespace), *kind, *name),
        _ => return None,
    };
    let may_be_segments = [kind, name].into_iter().chain(namespace).all(may_be_path_segment);
    let is_valid = may_be_segments && (group.is_empty() || may_be_path_segment(group));
    is_valid.then(|| ObjectKey {
        group_kind: GroupKind::new(group, kind),
        namespace: namespace.map(str::to_owned),
        name: name.to_owned(),
    })
}

/// Returns whether the text may be a segment of a request's path. The key becomes part of a request URL, so characters
/// that would change the URL are refused.
fn may_be_path_segment(text: &str) -> bool {
    !matches!(text, "" | "." | "..") && !text.contains(is_forbidden_in_path)
}

fn is_forbidden_in_path(character: char) -> bool {
    character.is_whitespace() || character.is_control() || matches!(character, '%' | '?' | '#')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(group: &str, kind: &str, namespace: Option<&str>, name: &str) -> ObjectKey {
        ObjectKey {
            group_kind: GroupKind::new(group, kind),
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
        }
    }

    #[test]
    fn references_have_the_syntax_of_cli_utils() {
        let database = || key("apps", "StatefulSet", Some("shop"), "db");
        let table = [
            ("apps/namespaces/shop/StatefulSet/db", Some(vec![database()])),
            (
                "/namespaces/shop/Secret/login",
                Some(vec![key("", "Secret", Some("shop"), "login")]),
            ),
            ("/Namespace/shop", Some(vec![key("", "Namespace", None, "shop")])),
            (
                "rbac.authorization.k8s.io/ClusterRole/system:basic",
                Some(vec![key(
                    "rbac.authorization.k8s.io",
                    "ClusterRole",
                    None,
                    "system:basic",
                )]),
            ),
            (
                " apps/namespaces/shop/StatefulSet/db ,\n/Namespace/shop,apps/namespaces/shop/StatefulSet/db",
                Some(vec![database(), key("", "Namespace", None, "shop")]),
            ),
            ("", None),
            ("Namespace/shop", None),
            ("apps/v1/namespaces/shop/StatefulSet/db", None),
            ("apps/namespace/shop/StatefulSet/db", None),
            ("apps/namespaces//StatefulSet/db", None),
            ("apps/StatefulSet/", None),
            ("//shop", None),
            ("/Namespace/shop,", None),
            ("/Namespace/my shop", None),
            ("/Namespace/..", None),
            ("/Namespace/shop?dryRun=All", None),
            ("/Namespace/shop\u{1b}", None),
        ];
        for (text, expected) in table {
            assert_eq!(parse(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn a_malformed_reference_of_a_live_object_leaves_the_valid_ones() {
        let read = |text| Dependencies::from_annotations(&BTreeMap::from([(DEPENDS_ON, text)]));
        assert!(Dependencies::from_annotations(&BTreeMap::new()).is_empty());
        assert!(!read("").is_empty());
        assert_eq!(read("/Namespace/shop").objects.len(), 1);
        let faulty = read("/Namespace/shop,what");
        assert_eq!(faulty.objects, [key("", "Namespace", None, "shop")]);
        assert_eq!(
            faulty.first_malformed,
            Some(MalformedReference("what".to_owned()))
        );
    }
}
