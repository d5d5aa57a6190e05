//! Inventories of other tools: their records of the objects that they manage. A file for each tool reads the tool's
//! inventories, and the marks (labels or annotations of an object) that name the inventory to which the object belongs.
//!
//! Pure. Inventories are never written. `plan` decides which of the objects in an inventory are adopted.

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
pub enum InventoryPlace {
    /// One object, which has this name.
    Named { group_kind: GroupKind, name: String },
    /// One of the objects that this label selector matches.
    Selected { group_kind: GroupKind, selector: String },
}

impl InventoryPlace {
    /// Returns the kind of the object or objects.
    pub fn group_kind(&self) -> &GroupKind {
        match self {
            Self::Named { group_kind, .. } | Self::Selected { group_kind, .. } => group_kind,
        }
    }
}

/// The content of an inventory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inventory {
    /// A list of objects.
    Objects(Vec<ObjectKey>),
    /// A label selector that matches the objects.
    Selector {
        /// The selector in the syntax of the API.
        selector: String,
        /// Kinds of the objects; `None` if any kind is possible.
        kinds: Option<Vec<GroupKind>>,
    },
}

/// The result of comparing two inventories: the one that a live object names in its own labels and annotations, and the
/// one that lists the object.
///
/// An inventory alone is no evidence: a user who may write it can list objects in it that the user may not write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mark {
    /// The object names this inventory.
    Own,
    /// The object does not name an inventory. The reason says what it lacks.
    Missing(String),
    /// The object names another inventory or tool, for this reason.
    Other(String),
}

/// An inventory as it was found.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundInventory {
    /// Name that the tool gives the inventory.
    pub name: String,
    /// The namespace in which the inventory was found.
    pub namespace: String,
    /// The kind of the object that holds the inventory.
    pub kind: GroupKind,
    /// The object that holds the inventory.
    pub object: Value,
}

/// Limit of the reason in an error, in characters.
const LONGEST_REASON: usize = 300;

/// Error for an inventory that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InventoryError {
    /// The inventory does not exist, or its content cannot be read, for this reason.
    #[error("{0}")]
    MissingOrUnreadable(String),
    /// The inventory lists objects of another cluster, which this names.
    #[error("its objects are in the cluster of {0}, not in this one")]
    InAnotherCluster(String),
    /// The newest revision of the release is not deployed. This names its number and its status.
    #[error("its newest revision {0}, not deployed")]
    NotDeployed(String),
}

impl InventoryError {
    /// Creates the error for an inventory that is missing or unreadable. A long reason is cut, because it may quote the
    /// inventory.
    fn new(reason: impl Into<String>) -> Self {
        let reason = reason.into();
        match reason.char_indices().nth(LONGEST_REASON) {
            Some((end, _)) => Self::MissingOrUnreadable(format!("{}…", &reason[..end])),
            None => Self::MissingOrUnreadable(reason),
        }
    }

    /// Returns the hint for the user.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::MissingOrUnreadable(_) => {
                "check the name; --from TOOL/NAMESPACE/NAME reads another namespace"
            }
            Self::NotDeployed(_) => "upgrade it with Helm, or run `helm rollback`, and adopt it then",
            Self::InAnotherCluster(_) => "select that cluster with --context, and adopt with -f MANIFESTS",
        }
    }
}

impl Tool {
    /// Returns the tool that the command line calls `name`.
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

    /// Returns the places that may hold the inventory called `name`, the likeliest first.
    pub fn list_places_of_inventory(self, name: &str) -> Vec<InventoryPlace> {
        let named = |group: &str, kind: &str| InventoryPlace::Named {
            group_kind: GroupKind::new(group, kind),
            name: name.to_owned(),
        };
        match self {
            Self::Helm => vec![helm::build_place_of_release(name)],
            Self::Kapp => kapp::list_places_of_app(name),
            Self::Kpt => vec![named("kpt.dev", "ResourceGroup"), named("", "ConfigMap")],
            Self::Flux => vec![
                named("kustomize.toolkit.fluxcd.io", "Kustomization"),
                named("helm.toolkit.fluxcd.io", "HelmRelease"),
            ],
            Self::ArgoCd => vec![named("argoproj.io", "Application")],
        }
    }

    /// Selects, from the `listed` metadata of a [`InventoryPlace::Selected`], the object that holds the inventory.
    pub fn select_inventory(self, listed: Vec<Value>) -> Option<Value> {
        match self {
            Self::Helm => helm::select_newest_revision(listed),
            Self::Kapp | Self::Kpt | Self::Flux | Self::ArgoCd => listed.into_iter().next(),
        }
    }

    /// Reads the content of the inventory.
    pub fn read(self, found: &FoundInventory) -> Result<Inventory, InventoryError> {
        let object = &found.object;
        match self {
            Self::Helm => helm::read_deployed_objects(found).map(Inventory::Objects),
            Self::Kapp => kapp::read_selector_and_kinds(object),
            Self::Kpt => kpt::read_objects(object).map(Inventory::Objects),
            Self::Flux => flux::read_objects(object).map(Inventory::Objects),
            Self::ArgoCd => argocd::read_objects_except_hooks(object).map(Inventory::Objects),
        }
    }

    /// Compares the marks in the `metadata` of the live object `key` with the inventory that lists it.
    pub fn compare_mark(self, found: &FoundInventory, key: &ObjectKey, metadata: &Value) -> Mark {
        match self {
            Self::ArgoCd => argocd::compare_mark(found, key, metadata),
            Self::Helm => helm::compare_mark(found, metadata),
            Self::Kapp => kapp::compare_mark(found, key, metadata),
            Self::Kpt => kpt::compare_mark(found, metadata),
            Self::Flux => flux::compare_mark(found, metadata),
        }
    }

    /// Returns the field managers under which the tool writes the objects of this inventory by default; the user may
    /// have given the tool another field manager.
    pub fn field_managers(self, found: &FoundInventory) -> &'static [&'static str] {
        match self {
            Self::Helm => &helm::FIELD_MANAGERS,
            Self::Kapp => &kapp::FIELD_MANAGERS,
            Self::Kpt => &kpt::FIELD_MANAGERS,
            Self::Flux => flux::field_managers(&found.kind),
            Self::ArgoCd => &argocd::FIELD_MANAGERS,
        }
    }

    /// Returns the only namespace whose objects are adopted without confirmation; `None` if there is none.
    ///
    /// Helm, kapp and kpt keep an inventory in the namespace of its objects. A user who may write the inventory may
    /// usually write these objects, too, so the inventory's namespace is trusted. Flux and Argo CD keep inventories in
    /// a namespace of their own, so the namespace of the set's parent is trusted instead; the destination of an
    /// Application is not, because the author of the Application chooses it. For an Application outside of Argo CD's
    /// usual namespace no namespace is trusted: it may have the same name as an Application in the usual namespace, and
    /// then the marks of an object may mean either.
    pub fn namespace_adopted_without_confirmation<'a>(
        self,
        inventory_namespace: &'a str,
        set_namespace: Option<&'a str>,
    ) -> Option<&'a str> {
        match self {
            Self::Helm | Self::Kapp | Self::Kpt => Some(inventory_namespace),
            Self::ArgoCd if inventory_namespace != argocd::USUAL_NAMESPACE => None,
            Self::Flux | Self::ArgoCd => set_namespace,
        }
    }

    /// Returns advice on how to stop the tool from writing and deleting the objects. The advice names only the
    /// inventory's objects that were read: others of the same name may not belong to the tool.
    pub fn describe_how_to_stop(self, found: &FoundInventory) -> String {
        let FoundInventory { name, namespace, .. } = found;
        let kind = format_kubectl_argument(&found.kind);
        match self {
            Self::Helm => format!(
                "forget the Helm release with `kubectl delete secret -n {namespace} -l owner=helm,name={name}`; `helm uninstall` would delete its objects"
            ),
            Self::Kapp => {
                let object = found.object["metadata"]["name"].as_str().unwrap_or(name);
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
    pub fn hint_before_first_apply(self) -> Option<&'static str> {
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

/// Returns the kind as an unambiguous argument of kubectl.
fn format_kubectl_argument(kind: &GroupKind) -> String {
    kind.to_string().to_lowercase()
}

/// Returns the key of an object that an inventory lists. An empty namespace means none.
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

    fn found(kind: &GroupKind, object: Value) -> FoundInventory {
        FoundInventory {
            name: "web".to_owned(),
            namespace: "shop".to_owned(),
            kind: kind.clone(),
            object,
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
            let places = tool.list_places_of_inventory("web");
            for place in &places {
                let managers = tool.field_managers(&found(place.group_kind(), Value::Null));
                assert!(!managers.is_empty(), "{name}");
                assert!(!managers.contains(&"applyset"), "{name}");
            }
            let nothing = found(places[0].group_kind(), Value::Null);
            let advice = tool.describe_how_to_stop(&nothing);
            assert!(advice.contains("web") && advice.contains('`'), "{advice}");
            assert!(tool.read(&nothing).is_err());
        }
        assert_eq!(Tool::from_name("tar"), None);
    }

    #[test]
    fn the_trusted_namespace_is_not_chosen_by_who_writes_the_inventory() {
        for (tool, trusted) in [
            (Tool::Helm, "theirs"),
            (Tool::Kapp, "theirs"),
            (Tool::Kpt, "theirs"),
            (Tool::Flux, "ours"),
        ] {
            let found = tool.namespace_adopted_without_confirmation("theirs", Some("ours"));
            assert_eq!(found, Some(trusted), "{tool}");
        }
        let of_argo_cd =
            |inventory| Tool::ArgoCd.namespace_adopted_without_confirmation(inventory, Some("ours"));
        assert_eq!(of_argo_cd("argocd"), Some("ours"));
        assert_eq!(of_argo_cd("theirs"), None);
    }

    #[test]
    fn reasons_are_short_whatever_they_quote() {
        let reason = InventoryError::new("ä".repeat(100_000)).to_string();
        assert_eq!(reason.chars().count(), LONGEST_REASON + 1);
        assert_eq!(InventoryError::new("short").to_string(), "short");
    }

    #[test]
    fn advice_names_only_the_object_that_was_read() {
        for name in ["web", "web.apps.k14s.io"] {
            let object = serde_json::json!({"metadata": {"name": name}});
            let advice = Tool::Kapp.describe_how_to_stop(&found(&GroupKind::new("", "ConfigMap"), object));
            assert!(
                advice.contains(&format!("`kubectl delete configmap -n shop {name}`")),
                "{advice}"
            );
        }
    }
}
