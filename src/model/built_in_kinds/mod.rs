//! The built-in kinds whose fields are known, and facts about these fields from the `OpenAPI` document of Kubernetes:
//! atomic and granular maps and lists, maps with keys that users choose, bytes and quantities.
//!
//! `just kubernetes-tables` generates `kubernetes.txt`. A field is known by its name, not by its path: a fact that
//! holds for the fields of this name in most kinds is a row without a kind, and a kind that differs has a row of its
//! own.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::Value;

/// The way in which field managers own a map or a list (`x-kubernetes-map-type`, `x-kubernetes-list-type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ownership {
    /// As one value: one manager owns the whole map or list.
    Atomic,
    /// Field by field, or item by item: each may have another manager.
    Granular,
    /// The table has no row.
    Unknown,
}

/// `apiVersion` and `kind` of the object that a field belongs to.
#[derive(Debug, Clone, Copy)]
pub struct TypeMeta<'a> {
    /// `apps/v1`; `v1` for the core group.
    pub api_version: &'a str,
    pub kind: &'a str,
}

impl<'a> TypeMeta<'a> {
    /// Reads the two fields of an object; a missing one is empty.
    pub fn from_object(object: &'a Value) -> Self {
        Self {
            api_version: object["apiVersion"].as_str().unwrap_or_default(),
            kind: object["kind"].as_str().unwrap_or_default(),
        }
    }

    /// Returns whether the table has facts about this kind.
    pub fn is_built_in(self) -> bool {
        self.find_fact("kind", "").is_some()
    }

    /// Returns whether this is a built-in kind with the subresource `status`: the server ignores `status` in a write of
    /// the object itself.
    pub fn ignores_status(self) -> bool {
        self.find_fact("kind", "") == Some("status")
    }

    /// Returns how maps of this name are owned.
    pub fn map_ownership(self, name: &str) -> Ownership {
        self.find_ownership("map", name)
    }

    /// Returns how lists of this name are owned.
    pub fn list_ownership(self, name: &str) -> Ownership {
        self.find_ownership("list", name)
    }

    fn find_ownership(self, fact: &str, name: &str) -> Ownership {
        match self.find_fact(fact, name) {
            Some("atomic") => Ownership::Atomic,
            Some("granular") => Ownership::Granular,
            _ => Ownership::Unknown,
        }
    }

    /// Returns the keys that distinguish the items of lists of this name, each with its default; `None` for sets and for
    /// lists that are owned as one value.
    pub fn keys_of_list_with_defaults(self, name: &str) -> Option<Vec<(String, Option<Value>)>> {
        let keys = self.find_fact("list-keys", name).filter(|keys| *keys != "no")?;
        Some(
            keys.split(',')
                .map(|key| match key.split_once(':') {
                    Some((name, default)) => (name.to_owned(), serde_json::from_str(default).ok()),
                    None => (key.to_owned(), None),
                })
                .collect(),
        )
    }

    /// Returns whether each item of lists of this name is owned as one value.
    pub fn has_atomic_items(self, name: &str) -> bool {
        self.find_fact("atomic-items", name) == Some("yes")
    }

    /// Returns whether users choose the keys of maps of this name, as they do in `labels`.
    pub fn has_user_chosen_keys(self, name: &str) -> bool {
        self.find_fact("keys", name) == Some("yes")
    }

    /// Returns whether field `name` of map `container` holds bytes in base64, as each field of `data` in a Secret does.
    pub fn is_bytes_field(self, container: &str, name: &str) -> bool {
        self.has_fact("bytes", container, name)
    }

    /// Returns whether field `name` of map `container` holds a quantity, as each field of `limits` does.
    pub fn is_quantity_field(self, container: &str, name: &str) -> bool {
        self.has_fact("quantity", container, name)
    }

    /// Returns whether the fact holds for this field, or for every field of its map.
    fn has_fact(self, fact: &str, container: &str, name: &str) -> bool {
        [name, "*"].into_iter().any(|name| {
            let field = format!("{container}.{name}");
            self.find_fact(fact, &field) == Some("yes")
        })
    }

    /// Returns the row of this kind, else the row of all kinds.
    fn find_fact(self, fact: &str, field: &str) -> Option<&'static str> {
        FACTS
            .get(&[fact, field, self.api_version, self.kind])
            .or_else(|| FACTS.get(&[fact, field, "", ""]))
            .copied()
    }
}

/// The groups with a dot in their name that Kubernetes serves itself. Kinds of other groups that end with `k8s.io` are
/// custom resources.
const GROUPS_SERVED_BY_KUBERNETES: [&str; 17] = [
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
    "storagemigration.k8s.io",
];

/// Returns whether Kubernetes serves this group itself. The group of a CRD has a dot in its name.
pub fn is_served_by_kubernetes_itself(group: &str) -> bool {
    !group.contains('.') || GROUPS_SERVED_BY_KUBERNETES.contains(&group)
}

/// Returns whether objects of this kind are compared by the table rather than by the
/// definition of a custom resource.
pub fn is_built_in(api_version: &str, kind: &str) -> bool {
    TypeMeta { api_version, kind }.is_built_in()
}

/// The rows of `kubernetes.txt` by fact, field, `apiVersion` and kind; the last two are empty in rows of all kinds. The
/// fact `kind` has no field; its value is `status` if the kind has that subresource, and otherwise empty.
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
    use super::Ownership::{Atomic, Granular, Unknown};
    use super::*;

    #[test]
    fn a_row_of_the_kind_goes_before_one_of_all_kinds() {
        let relations = |api_version, kind| {
            let this = TypeMeta { api_version, kind };
            (
                this.list_ownership("ports"),
                this.map_ownership("scaleTargetRef"),
                this.list_ownership("finalizers"),
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
        assert!(core("Service").has_user_chosen_keys("selector"));
        assert!(!core("PersistentVolumeClaim").has_user_chosen_keys("selector"));
        let port = |name: &str, default: Option<&str>| {
            let protocol = ("protocol".to_owned(), default.map(Value::from));
            Some(vec![(name.to_owned(), None), protocol])
        };
        assert_eq!(
            core("Service").keys_of_list_with_defaults("ports"),
            port("port", Some("TCP"))
        );
        assert_eq!(
            core("Pod").keys_of_list_with_defaults("ports"),
            port("containerPort", Some("TCP"))
        );
        assert_eq!(core("Pod").keys_of_list_with_defaults("finalizers"), None);
        assert!(core("Pod").has_atomic_items("imagePullSecrets") && !core("Pod").has_atomic_items("env"));
        assert!(core("Secret").is_bytes_field("data", "any"));
        assert!(!core("ConfigMap").is_bytes_field("data", "any"));
        assert!(core("Pod").is_quantity_field("limits", "cpu"));
        assert!(core("Pod").is_quantity_field("emptyDir", "sizeLimit"));
        assert!(!core("Pod").is_quantity_field("emptyDir", "medium"));
    }
}
