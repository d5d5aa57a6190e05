//! The built-in kinds whose fields are known, and facts about these fields from the
//! `OpenAPI` document of Kubernetes: atomic and granular maps and lists, maps whose keys people
//! choose, bytes and quantities.
//!
//! `just kubernetes-tables` makes the table, for the kinds that the property test tries.
//! Fields are distinguished by their names alone: what holds in most kinds has a row without a
//! kind, and a kind that differs has a row of its own.

use std::collections::HashMap;
use std::sync::LazyLock;

/// The way in which a map or list is owned: as one value, or field by field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// As one value.
    Atomic,
    /// Field by field, or item by item.
    Granular,
    /// Not known.
    Unknown,
}

/// The kind that a field belongs to, with its version.
#[derive(Debug, Clone, Copy)]
pub struct TypeMeta<'a> {
    /// The version of the API with its group.
    pub api_version: &'a str,
    pub kind: &'a str,
}

impl TypeMeta<'_> {
    /// Returns whether the table was made for this kind.
    pub fn is_built_in(self) -> bool {
        self.value("kind", "").is_some()
    }

    /// Returns whether a write of the object itself ignores the status of this built-in kind.
    pub fn ignores_status(self) -> bool {
        self.value("kind", "") == Some("status")
    }

    /// Returns how maps of this name are owned.
    pub fn map(self, name: &str) -> Relation {
        self.relation("map", name)
    }

    /// Returns how lists of this name are owned.
    pub fn list(self, name: &str) -> Relation {
        self.relation("list", name)
    }

    fn relation(self, fact: &str, name: &str) -> Relation {
        match self.value(fact, name) {
            Some("atomic") => Relation::Atomic,
            Some("granular") => Relation::Granular,
            _ => Relation::Unknown,
        }
    }

    /// Returns whether people choose the keys of maps of this name.
    pub fn has_chosen_keys(self, name: &str) -> bool {
        self.value("keys", name) == Some("yes")
    }

    /// Returns whether the values of this field are bytes in base64.
    pub fn is_bytes(self, container: &str, name: &str) -> bool {
        self.is_field("bytes", container, name)
    }

    /// Returns whether the values of this field are quantities.
    pub fn is_quantity(self, container: &str, name: &str) -> bool {
        self.is_field("quantity", container, name)
    }

    fn is_field(self, fact: &str, container: &str, name: &str) -> bool {
        [name, "*"].into_iter().any(|name| {
            let field = format!("{container}.{name}");
            self.value(fact, &field) == Some("yes")
        })
    }

    fn value(self, fact: &str, field: &str) -> Option<&'static str> {
        let of_kind = FACTS.get(&[fact, field, self.api_version, self.kind]);
        of_kind.or_else(|| FACTS.get(&[fact, field, "", ""])).copied()
    }
}

/// Returns whether objects of this kind are compared by the table rather than by the
/// definition of a custom resource.
pub fn is_built_in(api_version: &str, kind: &str) -> bool {
    TypeMeta { api_version, kind }.is_built_in()
}

/// The facts of the table by fact, field, version and kind. The fact `kind` has no field; its value is `status` if the
/// kind has that subresource.
static FACTS: LazyLock<HashMap<[&'static str; 4], &'static str>> = LazyLock::new(|| {
    let mut facts = HashMap::new();
    for row in include_str!("kubernetes.txt").lines() {
        match row.split(' ').collect::<Vec<_>>().as_slice() {
            ["#", ..] => {}
            ["kind", api_version, kind] => drop(facts.insert(["kind", "", api_version, kind], "")),
            ["kind", api_version, kind, value] => drop(facts.insert(["kind", "", api_version, kind], value)),
            [fact, field, value] => drop(facts.insert([fact, field, "", ""], value)),
            [fact, field, value, api_version, kind] => {
                facts.insert([fact, field, api_version, kind], value);
            }
            _ => debug_assert!(false, "a row of another shape: {row}"),
        }
    }
    facts
});

#[cfg(test)]
mod tests {
    use super::Relation::{Atomic, Granular, Unknown};
    use super::*;

    #[test]
    fn a_row_of_the_kind_goes_before_one_of_all_kinds() {
        let relations = |api_version, kind| {
            let this = TypeMeta { api_version, kind };
            (
                this.list("ports"),
                this.map("scaleTargetRef"),
                this.list("finalizers"),
            )
        };
        for (api_version, kind, expected) in [
            ("v1", "Service", (Granular, Unknown, Granular)),
            (
                "discovery.k8s.io/v1",
                "EndpointSlice",
                (Atomic, Unknown, Granular),
            ),
            (
                "autoscaling/v1",
                "HorizontalPodAutoscaler",
                (Granular, Atomic, Granular),
            ),
            (
                "autoscaling/v2",
                "HorizontalPodAutoscaler",
                (Granular, Granular, Granular),
            ),
            ("v1", "Namespace", (Granular, Unknown, Unknown)),
        ] {
            assert_eq!(relations(api_version, kind), expected, "{api_version} {kind}");
        }
    }

    #[test]
    fn kinds_fields_and_keys_are_found() {
        assert!(is_built_in("apps/v1", "Deployment"));
        assert!(!is_built_in("apps/v1beta1", "Deployment"));
        assert!(!is_built_in("example.com/v1", "Deployment"));
        let core = |kind| TypeMeta {
            api_version: "v1",
            kind,
        };
        assert!(core("Pod").ignores_status());
        assert!(!core("Secret").ignores_status());
        assert!(core("Service").has_chosen_keys("selector"));
        assert!(!core("PersistentVolumeClaim").has_chosen_keys("selector"));
        assert!(core("Secret").is_bytes("data", "any"));
        assert!(!core("ConfigMap").is_bytes("data", "any"));
        assert!(core("Pod").is_quantity("limits", "cpu"));
        assert!(core("Pod").is_quantity("emptyDir", "sizeLimit"));
        assert!(!core("Pod").is_quantity("emptyDir", "medium"));
    }
}
