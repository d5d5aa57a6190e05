//! The few objects that a history is about: every kind at every name in every namespace.

use std::fmt;

use serde_json::{Value, json};

use crate::support::{covers, named, path_of, with};

/// Kinds of members, with their apiVersion.
const KINDS: [(&str, &str); 5] = [
    ("v1", "ConfigMap"),
    ("v1", "Secret"),
    ("v1", "Service"),
    ("v1", "ServiceAccount"),
    ("rbac.authorization.k8s.io/v1", "Role"),
];
/// Namespaces; the first is the home of the first set, the second that of the second.
pub(super) const NAMESPACES: usize = 3;
/// Names of each kind in each namespace.
const NAMES: usize = 2;
const NAMESPACED: usize = KINDS.len() * NAMESPACES * NAMES;
/// Cluster-scoped objects.
const ROLES: usize = 2;

/// One object that may or may not be there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Slot(usize);

/// What is written in an object.
pub(super) type Variant = u8;
/// How many variants there are.
pub(super) const VARIANTS: usize = 3;

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.namespace() {
            Some(namespace) => write!(f, "{}-{namespace}-{}", self.kind().1, self.0 % NAMES),
            None => write!(f, "ClusterRole-{}", self.0 - NAMESPACED),
        }
    }
}

impl Slot {
    pub(super) fn all() -> impl Iterator<Item = Self> {
        (0..NAMESPACED + ROLES).map(Self)
    }

    fn kind(self) -> (&'static str, &'static str) {
        match self.namespace() {
            Some(_) => KINDS[self.0 / (NAMESPACES * NAMES)],
            None => ("rbac.authorization.k8s.io/v1", "ClusterRole"),
        }
    }

    /// The number of its namespace; `None` for a cluster-scoped object.
    pub(super) fn namespace(self) -> Option<usize> {
        (self.0 < NAMESPACED).then_some(self.0 / NAMES % NAMESPACES)
    }

    /// `Kind.group`, as a record has it.
    pub(super) fn group_kind(self) -> String {
        let (api_version, kind) = self.kind();
        match api_version.split_once('/') {
            Some((group, _)) => format!("{kind}.{group}"),
            None => kind.to_owned(),
        }
    }

    /// The object without content. `names` are those of the namespaces.
    pub(super) fn identity(self, names: &[String]) -> Value {
        let (api_version, kind) = self.kind();
        match self.namespace() {
            Some(namespace) => {
                let name = format!("slot-{}", self.0 % NAMES);
                named(api_version, kind, Some(&names[namespace]), &name)
            }
            // Cluster-scoped names are unique because those of namespaces are.
            None => named(
                api_version,
                kind,
                None,
                &format!("{}-role-{}", names[0], self.0 - NAMESPACED),
            ),
        }
    }

    /// The object as a manifest has it.
    pub(super) fn object(self, names: &[String], variant: Variant) -> Value {
        with(self.identity(names), &self.content(variant))
    }

    fn content(self, variant: Variant) -> Value {
        match self.kind().1 {
            // The second key comes and goes with the variant.
            "ConfigMap" => json!({"data": {"key": variant.to_string(), (format!("only-{variant}")): "x"}}),
            "Secret" => {
                let numbers = ["MA==", "MQ==", "Mg=="];
                json!({"data": {"key": numbers[usize::from(variant)]}})
            }
            "Service" => json!({"spec": {
                "selector": {"app": "web"},
                "ports": [{"port": 80, "protocol": "TCP", "targetPort": 8000 + u32::from(variant)}],
            }}),
            "ServiceAccount" => json!({"automountServiceAccountToken": variant == 0}),
            _ => json!({"rules": [
                {"apiGroups": [""], "resources": ["pods"], "resourceNames": [format!("pod-{variant}")], "verbs": ["get"]},
            ]}),
        }
    }

    /// Whether the live object has what the manifest of this variant says.
    pub(super) fn shows(self, live: &Value, variant: Variant) -> bool {
        covers(live, &self.content(variant))
    }

    /// The collection that it is in.
    pub(super) fn collection(self, names: &[String]) -> String {
        let path = path_of(&self.identity(names));
        let (collection, name) = path.rsplit_once('/').expect("a path");
        match self.namespace() {
            Some(_) => collection.to_owned(),
            None => format!("{collection}?fieldSelector=metadata.name%3D{name}"),
        }
    }
}
