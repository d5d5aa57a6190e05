//! Early reads: the parent of a set and the namespaces of its manifests, which are read at the same time as discovery.
//!
//! A Secret or a ConfigMap can be read without discovery, which saves a round trip. A run uses each answer once,
//! and only for a few seconds (`named_set`). So a run that waited longer, for a kind or for its user, reads again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join;

use super::list::ListError;
use super::namespaces::read_namespaces;
use super::parent::{LiveParent, read_live_parent};
use crate::cluster::apiserver::{ApiError, ApiServer};
use crate::manifest::Manifest;
use crate::model::applyset::ParentIdentity;
use crate::model::containers::NamespaceState;
use crate::model::list_targets::ListTarget;
use crate::model::resource::{Resource, Scope};
use crate::model::write_settings::SetReference;

/// The greatest age of an answer that is used. Another run may change the set's record after the parent was read.
/// This run notices that when it writes the parent; but if the record already covers its plan, it writes members first.
const LONGEST_AGE: Duration = Duration::from_secs(5);

/// What is read at the same time as discovery.
#[derive(Debug, Clone, Copy)]
pub enum Wanted<'a> {
    Nothing,
    Parent(&'a SetReference),
    /// The parent, and the namespaces of these manifests and of the parent.
    ParentAndNamespaces(&'a SetReference, &'a [Manifest]),
}

/// The answers to early reads; `None` for what was not wanted, or cannot be read without discovery.
#[derive(Debug, Default)]
pub struct EarlyReads {
    parent: Option<Box<(ParentIdentity, ParentAnswer)>>,
    namespaces: Option<Box<(BTreeSet<String>, NamespacesAnswer)>>,
    /// The time at which these reads began; `None` if nothing was read.
    started_at: Option<Instant>,
}

/// The answer to a read of the parent; `None` inside if it does not exist.
pub(super) type ParentAnswer = Result<Option<LiveParent>, ApiError>;

/// The states of the namespaces that exist, by name.
pub(super) type NamespaceStates = BTreeMap<String, NamespaceState>;

/// The answer to a read of namespaces.
type NamespacesAnswer = Result<NamespaceStates, (ListTarget, ListError)>;

impl EarlyReads {
    /// Reads what is wanted and needs no discovery. Objects that name no namespace are in `default_namespace`.
    pub async fn read(server: &ApiServer, wanted: Wanted<'_>, default_namespace: &str) -> Self {
        let (reference, manifests) = match wanted {
            Wanted::Nothing => return Self::default(),
            Wanted::Parent(reference) => (reference, None),
            Wanted::ParentAndNamespaces(reference, manifests) => (reference, Some(manifests)),
        };
        let Some(resource) = built_in_parent_resource(reference) else {
            return Self::default();
        };
        let identity = ParentIdentity {
            group_kind: resource.group_kind(),
            namespace: Some(
                reference
                    .namespace
                    .as_deref()
                    .unwrap_or(default_namespace)
                    .to_owned(),
            ),
            name: reference.name.clone(),
        };
        let names = manifests
            .and_then(|manifests| find_namespaces_without_discovery(&identity, manifests, default_namespace));
        let resource = Arc::new(resource);
        let read_parent = read_live_parent(server, &resource, &identity);
        let read_namespaces_of_run = async {
            let names = names?;
            let answer = read_namespaces(server, &names.iter().map(String::as_str).collect()).await;
            Some(Box::new((names, answer)))
        };
        let started_at = Instant::now();
        let (parent, namespaces) = join(read_parent, read_namespaces_of_run).await;
        Self {
            parent: Some(Box::new((identity, parent))),
            namespaces,
            started_at: Some(started_at),
        }
    }

    /// Returns whether the parent was read early, and does not exist.
    pub fn is_parent_known_missing(&self) -> bool {
        matches!(self.parent.as_deref(), Some((_, Ok(None))))
    }

    /// Returns the answer about this parent, if it was read early and exists.
    pub(super) fn existing_parent(&self, identity: &ParentIdentity) -> Option<&LiveParent> {
        let (read, answer) = self.parent.as_deref()?;
        answer.as_ref().ok()?.as_ref().filter(|_| read == identity)
    }

    /// Takes the answer about this parent, if it was read early and the answer is recent enough to be used.
    pub(super) fn take_parent(&mut self, identity: &ParentIdentity) -> Option<ParentAnswer> {
        let (read, answer) = *self.parent.take()?;
        (read == *identity && self.are_recent()).then_some(answer)
    }

    /// Takes the answer if exactly the namespaces `wanted` were read, and it is recent enough to be used.
    pub(super) fn take_namespaces(&mut self, wanted: &BTreeSet<&str>) -> Option<NamespacesAnswer> {
        let (names, answer) = *self.namespaces.take()?;
        let are_same = names.iter().map(String::as_str).eq(wanted.iter().copied());
        (are_same && self.are_recent()).then_some(answer)
    }

    fn are_recent(&self) -> bool {
        self.started_at
            .is_some_and(|started_at| started_at.elapsed() <= LONGEST_AGE)
    }
}

/// Returns the resource of a parent that is named as a Secret or a ConfigMap; `None` for other names.
fn built_in_parent_resource(reference: &SetReference) -> Option<Resource> {
    let kind = match reference.resource.as_deref() {
        None | Some("secret" | "secrets") => "Secret",
        Some("configmap" | "configmaps" | "cm") => "ConfigMap",
        Some(_) => return None,
    };
    Some(Resource::with_regular_names("", "v1", kind, Scope::Namespaced))
}

/// Returns the namespaces of the parent and of the manifests. Returns `None` if only discovery shows them: without
/// discovery, it is not known whether an object that names no namespace is cluster-scoped or in `default_namespace`.
fn find_namespaces_without_discovery(
    parent: &ParentIdentity,
    manifests: &[Manifest],
    default_namespace: &str,
) -> Option<BTreeSet<String>> {
    let mut names: BTreeSet<String> = parent.namespace.clone().into_iter().collect();
    // Then an object that names no namespace adds none, whatever its scope.
    let is_parent_in_default = names.contains(default_namespace);
    for manifest in manifests {
        match &manifest.namespace {
            Some(namespace) => _ = names.insert(namespace.clone()),
            None if is_parent_in_default => {}
            None => return None,
        }
    }
    Some(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference(resource: Option<&str>) -> SetReference {
        SetReference {
            resource: resource.map(str::to_owned),
            name: "web".to_owned(),
            namespace: None,
        }
    }

    #[test]
    fn only_secrets_and_config_maps_are_known_without_discovery() {
        let kind =
            |resource: Option<&str>| built_in_parent_resource(&reference(resource)).map(|known| known.kind);
        for secret in [None, Some("secret"), Some("secrets")] {
            assert_eq!(kind(secret).as_deref(), Some("Secret"));
        }
        for config_map in ["cm", "configmap", "configmaps"] {
            assert_eq!(kind(Some(config_map)).as_deref(), Some("ConfigMap"));
        }
        for other in ["secrets.example.com", "configmaps.v1.", "sets", ""] {
            assert_eq!(kind(Some(other)), None, "{other}");
        }
    }
}
