//! Inventories of other tools: their records of the objects that they manage. A file for each tool
//! reads its inventories, and the marks by which objects point back at them.
//!
//! Pure. Inventories are never written. `plan` decides which of their objects are adopted.

mod argocd;
mod flux;
mod helm;
mod kapp;
mod kpt;

use std::fmt;

use serde_json::Value;

use crate::model::identity::{GroupKind, ObjectKey};

/// A tool that keeps an inventory in the cluster. Displays as the command line names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    /// Helm 3 and 4.
    Helm,
    /// Carvel's kapp.
    Kapp,
    /// kpt, and others that use cli-utils.
    Kpt,
    /// Flux: a Kustomization, or a `HelmRelease`.
    Flux,
    ArgoCd,
}

/// A place in the cluster that may hold an inventory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// In the object of this kind and name.
    Object(GroupKind, String),
    /// In one of the objects of this kind that this label selector matches.
    Labeled(GroupKind, String),
}

impl Place {
    /// The kind of the object.
    pub fn group_kind(&self) -> &GroupKind {
        match self {
            Self::Object(group_kind, _) | Self::Labeled(group_kind, _) => group_kind,
        }
    }
}

/// The content of an inventory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inventory {
    /// A list of objects.
    Objects(Vec<ObjectKey>),
    /// A label by which the objects are found.
    Labeled {
        /// Label selector in the syntax of the API.
        selector: String,
        /// Kinds of the objects; `None` if any kind is possible.
        kinds: Option<Vec<GroupKind>>,
    },
}

/// Relation of a live object to the inventory that lists it, by the object's own labels and
/// annotations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mark {
    /// It points back at this inventory.
    Own,
    /// It does not point at an inventory, for this reason. Everyone who can write the inventory can
    /// list it.
    Missing(String),
    /// It points elsewhere, for this reason.
    Other(String),
}

/// Treatment of listed objects that do not point at an inventory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unmarked {
    /// They are skipped.
    Left,
    /// They are adopted.
    Taken,
}

/// Objects that a tool has recorded elsewhere than in the inventory that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// Place of the record, such as `revision 2 is failed`.
    pub place: String,
    pub objects: Vec<ObjectKey>,
}

/// An inventory as it was found.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundInventory {
    /// Name that the tool gives it.
    pub name: String,
    /// The namespace that it was found in.
    pub namespace: String,
    /// The kind of the objects that hold it.
    pub kind: GroupKind,
    /// Objects that hold it: one, or all that a label selector matches.
    pub objects: Vec<Value>,
    /// The settings of the tool ([`Tool::settings`]), if they exist and may be read.
    pub settings: Option<Value>,
}

impl FoundInventory {
    fn object(&self) -> Result<&Value, Unusable> {
        self.objects
            .first()
            .ok_or_else(|| Unusable::new("it does not exist"))
    }
}

/// Limit of a reason, in characters.
const LONGEST_REASON: usize = 300;

/// Error for an inventory that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// It does not exist, or its content cannot be read.
    #[error("{0}")]
    Unreadable(String),
    /// It lists objects of another cluster.
    #[error("its objects are in the cluster of {0}, not in this one")]
    InAnotherCluster(String),
}

impl Unusable {
    /// Cuts long reasons: they may quote the inventory.
    fn new(reason: impl Into<String>) -> Self {
        let reason = reason.into();
        match reason.char_indices().nth(LONGEST_REASON) {
            Some((end, _)) => Self::Unreadable(format!("{}…", &reason[..end])),
            None => Self::Unreadable(reason),
        }
    }

    /// Hint for the user.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Unreadable(_) => "check the name; --from TOOL/NAMESPACE/NAME reads another namespace",
            Self::InAnotherCluster(_) => "select that cluster with --context, and adopt with -f MANIFESTS",
        }
    }
}

impl Tool {
    /// The tool of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "helm" => Self::Helm,
            "kapp" => Self::Kapp,
            "kpt" => Self::Kpt,
            "flux" => Self::Flux,
            "argocd" => Self::ArgoCd,
            _ => return None,
        })
    }

    /// Places that may hold the inventory called `name`, the likeliest first.
    pub fn places(self, name: &str) -> Vec<Place> {
        let object = |group: &str, kind: &str| Place::Object(GroupKind::new(group, kind), name.to_owned());
        match self {
            Self::Helm => vec![helm::place(name)],
            Self::Kapp => kapp::places(name),
            Self::Kpt => vec![object("kpt.dev", "ResourceGroup"), object("", "ConfigMap")],
            Self::Flux => vec![
                object("kustomize.toolkit.fluxcd.io", "Kustomization"),
                object("helm.toolkit.fluxcd.io", "HelmRelease"),
            ],
            Self::ArgoCd => vec![object("argoproj.io", "Application")],
        }
    }

    /// Returns the name of the `ConfigMap` with the settings that decide which mark counts for an inventory in this
    /// namespace, which holds the `ConfigMap`, too. In other namespaces, tenants write it.
    pub fn settings(self, namespace: &str) -> Option<&'static str> {
        match self {
            Self::ArgoCd if namespace == argocd::HOME => Some(argocd::SETTINGS),
            Self::Helm | Self::Kapp | Self::Kpt | Self::Flux | Self::ArgoCd => None,
        }
    }

    /// Selects the objects of a [`Place::Labeled`] that have to be read as a whole, from their listed
    /// metadata.
    pub fn needed(self, listed: &[Value]) -> Vec<&Value> {
        match self {
            Self::Helm => helm::needed(listed),
            Self::Kapp | Self::Kpt | Self::Flux | Self::ArgoCd => listed.iter().collect(),
        }
    }

    pub fn read(self, found: &FoundInventory) -> Result<Inventory, Unusable> {
        let object = found.object()?;
        match self {
            Self::Helm => helm::read(found).map(Inventory::Objects),
            Self::Kapp => kapp::read(object),
            Self::Kpt => kpt::read(object).map(Inventory::Objects),
            Self::Flux => flux::read(object).map(Inventory::Objects),
            Self::ArgoCd => argocd::read(object).map(Inventory::Objects),
        }
    }

    /// Reads the objects that the tool has recorded elsewhere than in the inventory.
    pub fn left_out(self, found: &FoundInventory) -> Vec<LeftOut> {
        match self {
            Self::Helm => helm::newer(found),
            Self::Kapp | Self::Kpt | Self::Flux | Self::ArgoCd => Vec::new(),
        }
    }

    /// Compares the marks of the live object `key` with the inventory that lists it. Only old versions
    /// of Helm left objects unmarked.
    pub fn mark(self, found: &FoundInventory, key: &ObjectKey, metadata: &Value, unmarked: Unmarked) -> Mark {
        match self {
            Self::ArgoCd => argocd::mark(found, key, metadata),
            Self::Helm => helm::mark(found, metadata, unmarked),
            Self::Kapp => kapp::mark(found, key, metadata),
            Self::Kpt => kpt::mark(found, metadata),
            Self::Flux => flux::mark(found, metadata),
        }
    }

    /// Field managers under which the tool writes the objects of this inventory, unless it was given
    /// another name.
    pub fn field_managers(self, found: &FoundInventory) -> &'static [&'static str] {
        match self {
            Self::Helm => &helm::FIELD_MANAGERS,
            Self::Kapp => &kapp::FIELD_MANAGERS,
            Self::Kpt => &kpt::FIELD_MANAGERS,
            Self::Flux => flux::field_managers(&found.kind),
            Self::ArgoCd => &argocd::FIELD_MANAGERS,
        }
    }

    /// Returns the only namespace whose objects need no confirmation, for an inventory in namespace
    /// `inventory` and a parent in namespace `set`; `None` if there is none.
    ///
    /// Helm, kapp and kpt keep inventories next to the objects, so a user who can write one can write
    /// the other. Flux and Argo CD keep inventories in their own namespace, and the destination of an
    /// Application is not evidence either. An Application outside of Argo CD's usual namespace may have
    /// the name of one inside of it: objects point back at both.
    pub fn home<'a>(self, inventory: &'a str, set: Option<&'a str>) -> Option<&'a str> {
        match self {
            Self::Helm | Self::Kapp | Self::Kpt => Some(inventory),
            Self::ArgoCd if inventory != argocd::HOME => None,
            Self::Flux | Self::ArgoCd => set,
        }
    }

    /// Returns advice on how to stop the tool from writing and deleting the objects. It names only the
    /// objects that were read: others may not be the tool's.
    pub fn advice(self, found: &FoundInventory) -> String {
        let FoundInventory { name, namespace, .. } = found;
        let kind = resource(&found.kind);
        match self {
            Self::Helm => format!(
                "forget the Helm release with `kubectl delete secret -n {namespace} -l owner=helm,name={name}`; `helm uninstall` would delete its objects"
            ),
            Self::Kapp => {
                let named = found.object().map(|object| &object["metadata"]["name"]);
                let object = named.ok().and_then(Value::as_str).unwrap_or(name);
                format!(
                    "forget the kapp app with `kubectl delete {kind} -n {namespace} {object}`; `kapp delete` would delete its objects"
                )
            }
            Self::Kpt => format!(
                "forget the kpt inventory with `kubectl delete {kind} -n {namespace} {name}`; `kpt live destroy` would delete its objects"
            ),
            Self::Flux => format!(
                "suspend Flux, which still applies these objects, with `kubectl patch {kind} -n {namespace} {name} --type=merge -p '{{\"spec\":{{\"suspend\":true}}}}'`, then run `kubectl delete {kind} -n {namespace} {name}`"
            ),
            Self::ArgoCd => format!(
                "stop Argo CD, which still syncs these objects, with `argocd app set {name} --sync-policy none`, then run `argocd app delete {name} --cascade=false`"
            ),
        }
    }

    /// Returns what to do before the first apply of adopted objects, if the tool changes manifests.
    pub fn hint_for_first_apply(self) -> Option<&'static str> {
        match self {
            Self::Kapp => Some(
                "copy the label kapp.k14s.io/app into the selectors and Pod templates of your manifests, or recreate the objects with --recreate=KIND",
            ),
            Self::Helm | Self::Kpt | Self::Flux | Self::ArgoCd => None,
        }
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Helm => "helm",
            Self::Kapp => "kapp",
            Self::Kpt => "kpt",
            Self::Flux => "flux",
            Self::ArgoCd => "argocd",
        })
    }
}

/// The kind as an unambiguous argument of kubectl.
fn resource(kind: &GroupKind) -> String {
    kind.to_string().to_lowercase()
}

/// Key of an object that an inventory lists; an empty namespace means none.
fn object_key(group: impl Into<String>, kind: impl Into<String>, namespace: &str, name: String) -> ObjectKey {
    ObjectKey {
        group_kind: GroupKind::new(group, kind),
        namespace: Some(namespace)
            .filter(|namespace| !namespace.is_empty())
            .map(str::to_owned),
        name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(kind: &GroupKind, objects: Vec<Value>) -> FoundInventory {
        FoundInventory {
            name: "web".to_owned(),
            namespace: "shop".to_owned(),
            kind: kind.clone(),
            objects,
            settings: None,
        }
    }

    #[test]
    fn every_tool_has_a_name_a_place_and_an_advice() {
        for (name, tool) in [
            ("helm", Tool::Helm),
            ("kapp", Tool::Kapp),
            ("kpt", Tool::Kpt),
            ("flux", Tool::Flux),
            ("argocd", Tool::ArgoCd),
        ] {
            assert_eq!(Tool::from_name(name), Some(tool));
            assert_eq!(tool.to_string(), name);
            let places = tool.places("web");
            for place in &places {
                let managers = tool.field_managers(&found(place.group_kind(), Vec::new()));
                assert!(!managers.is_empty(), "{name}");
                assert!(!managers.contains(&"applyset"), "{name}");
            }
            let nothing = found(places[0].group_kind(), Vec::new());
            let advice = tool.advice(&nothing);
            assert!(advice.contains("web") && advice.contains('`'), "{advice}");
            assert!(tool.read(&nothing).is_err());
        }
        assert_eq!(Tool::from_name("tar"), None);
    }

    #[test]
    fn the_trusted_namespace_is_not_chosen_by_who_writes_the_inventory() {
        for (tool, home) in [
            (Tool::Helm, "theirs"),
            (Tool::Kapp, "theirs"),
            (Tool::Kpt, "theirs"),
            (Tool::Flux, "ours"),
        ] {
            assert_eq!(tool.home("theirs", Some("ours")), Some(home), "{tool}");
        }
        assert_eq!(Tool::ArgoCd.home("argocd", Some("ours")), Some("ours"));
        assert_eq!(Tool::ArgoCd.home("theirs", Some("ours")), None);
        assert!(Tool::ArgoCd.settings("argocd").is_some());
        assert_eq!(Tool::ArgoCd.settings("theirs"), None);
    }

    #[test]
    fn reasons_are_short_whatever_they_quote() {
        let reason = Unusable::new("ä".repeat(100_000)).to_string();
        assert_eq!(reason.chars().count(), LONGEST_REASON + 1);
        assert_eq!(Unusable::new("short").to_string(), "short");
    }

    #[test]
    fn advice_names_only_the_object_that_was_read() {
        for name in ["web", "web.apps.k14s.io"] {
            let object = serde_json::json!({"metadata": {"name": name}});
            let advice = Tool::Kapp.advice(&found(&GroupKind::new("", "ConfigMap"), vec![object]));
            assert!(
                advice.contains(&format!("`kubectl delete configmap -n shop {name}`")),
                "{advice}"
            );
        }
    }
}
