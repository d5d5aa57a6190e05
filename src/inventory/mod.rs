//! What other tools have noted down of the objects that they manage: where each tool keeps
//! its inventory, how it is read, and what people have to do there once another tool manages
//! the objects.
//!
//! Pure. Inventories are never written; whether an object may be adopted is decided in `plan`.

mod argocd;
mod cli_utils;
mod helm;
mod kapp;

use serde_json::Value;

use crate::identity::{GroupKind, ObjectKey};

/// A tool that keeps an inventory in the cluster.
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
    /// Argo CD.
    ArgoCd,
}

/// Where an inventory may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// In the object of this kind and name.
    Object(GroupKind, String),
    /// In one of the objects of this kind that this label selector matches.
    Labelled(GroupKind, String),
}

impl Place {
    /// The kind of the object.
    pub fn group_kind(&self) -> &GroupKind {
        match self {
            Self::Object(group_kind, _) | Self::Labelled(group_kind, _) => group_kind,
        }
    }
}

/// What an inventory says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inventory {
    /// The objects.
    Objects(Vec<ObjectKey>),
    /// How they are found.
    Labelled {
        /// In the syntax of the API.
        selector: String,
        /// Of these kinds; `None` where any kind is possible.
        kinds: Option<Vec<GroupKind>>,
    },
}

/// Why an inventory cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unusable(String);

impl Unusable {
    fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

impl Tool {
    /// The tool of this name.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "helm" => Self::Helm,
            "kapp" => Self::Kapp,
            "kpt" => Self::Kpt,
            "flux" => Self::Flux,
            "argocd" => Self::ArgoCd,
            _ => return None,
        })
    }

    /// Where the inventory called `name` may be, the likeliest place first.
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

    /// Reads the inventory from what was found in one place: one object, or all that a
    /// label selector matches.
    pub fn read(self, found: &[Value]) -> Result<Inventory, Unusable> {
        let Some(object) = found.first() else {
            return Err(Unusable::new("it does not exist"));
        };
        match self {
            Self::Helm => helm::read(found).map(Inventory::Objects),
            Self::Kapp => kapp::read(object),
            Self::Kpt => cli_utils::read_inventory(object).map(Inventory::Objects),
            Self::Flux => cli_utils::read_status(object).map(Inventory::Objects),
            Self::ArgoCd => argocd::read(object).map(Inventory::Objects),
        }
    }

    /// What else the live object `key` with this metadata is tracked as by the tool, where it
    /// is not tracked as part of the inventory `name` in `namespace`.
    pub fn tracked_elsewhere(
        self,
        namespace: &str,
        name: &str,
        key: &ObjectKey,
        metadata: &Value,
    ) -> Option<String> {
        match self {
            Self::ArgoCd => argocd::tracked_elsewhere(namespace, name, key, metadata),
            Self::Helm => helm::tracked_elsewhere(namespace, name, metadata),
            Self::Kapp | Self::Kpt | Self::Flux => None,
        }
    }

    /// What people have to do with the tool, so that it neither writes nor deletes the objects
    /// any more. `kind` is that of the object that the inventory was found in.
    pub fn advice(self, kind: &GroupKind, namespace: &str, name: &str) -> String {
        match self {
            Self::Helm => format!(
                "Helm still has the release, and `helm uninstall` would delete its objects; `kubectl delete secret -n {namespace} -l owner=helm,name={name}` makes Helm forget it and keeps them"
            ),
            Self::Kapp => format!(
                "kapp still has the app, and `kapp delete` would delete its objects; `kubectl delete configmap -n {namespace} {name} {name}.apps.k14s.io --ignore-not-found` makes kapp forget it and keeps them"
            ),
            Self::Kpt => format!(
                "the inventory is still there, and `kpt live destroy` would delete its objects; `kubectl delete {} -n {namespace} {name}` forgets it and keeps them",
                resource(kind)
            ),
            Self::Flux => {
                let kind = resource(kind);
                format!(
                    "Flux goes on applying these objects: suspend it with `kubectl patch {kind} -n {namespace} {name} --type=merge -p '{{\"spec\":{{\"suspend\":true}}}}'`; once it is suspended, `kubectl delete {kind} -n {namespace} {name}` keeps them"
                )
            }
            Self::ArgoCd => format!(
                "Argo CD goes on syncing these objects: stop it with `argocd app set {name} --sync-policy none`; `argocd app delete {name} --cascade=false` deletes the application and keeps them"
            ),
        }
    }
}

/// The kind as kubectl's command line takes it without doubt.
fn resource(kind: &GroupKind) -> String {
    kind.to_string().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_has_a_name_a_place_and_an_advice() {
        for (name, tool) in [
            ("helm", Tool::Helm),
            ("kapp", Tool::Kapp),
            ("kpt", Tool::Kpt),
            ("flux", Tool::Flux),
            ("argocd", Tool::ArgoCd),
        ] {
            assert_eq!(Tool::named(name), Some(tool));
            let places = tool.places("web");
            let advice = tool.advice(places[0].group_kind(), "shop", "web");
            assert!(advice.contains("web") && advice.contains('`'), "{advice}");
            assert!(tool.read(&[]).is_err());
        }
        assert_eq!(Tool::named("tar"), None);
    }
}
