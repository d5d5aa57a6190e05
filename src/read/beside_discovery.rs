//! Reads the parent of a set and the namespaces of its manifests beside discovery.
//!
//! A Secret or a ConfigMap can be read without discovery, which saves a round trip. Each answer is used
//! once, and only if nothing was sent in between: a run that has waited reads again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join;

use super::list::ListError;
use super::namespaces::namespaces;
use super::parent::{WholeParent, whole_parent};
use crate::cluster::apiserver::{ApiError, ApiServer};
use crate::manifest::Manifest;
use crate::model::applyset::ParentIdentity;
use crate::model::containers::NamespaceState;
use crate::model::list_targets::ListTarget;
use crate::model::resource::{Resource, Scope};
use crate::model::write_settings::SetReference;

/// How old an answer may be when it is used. Another run may change the record while discovery is
/// repeated; a record that covers the plan is not written before members are.
const LONGEST_AGE: Duration = Duration::from_secs(5);

/// What is read beside discovery.
#[derive(Debug, Clone, Copy)]
pub enum Wanted<'a> {
    Nothing,
    Parent(&'a SetReference),
    /// The parent, and the namespaces of these manifests and of the parent.
    ParentAndNamespaces(&'a SetReference, &'a [Manifest]),
}

/// The answers, as far as the requests were known without discovery.
#[derive(Debug, Default)]
pub struct ReadBesideDiscovery {
    pub(super) parent: Option<Box<(ParentIdentity, ParentAnswer)>>,
    pub(super) namespaces: Option<Box<NamespacesBesideDiscovery>>,
    /// The number of requests that the run had sent when these reads and discovery were done.
    requests: u64,
    /// When these reads began; `None` if nothing was read.
    pub(super) begun: Option<Instant>,
}

/// The answer to a read of the parent.
pub(super) type ParentAnswer = Result<Option<WholeParent>, ApiError>;

/// The states of namespaces.
pub(super) type NamespaceStates = BTreeMap<String, NamespaceState>;

/// The answer to a read of namespaces.
#[derive(Debug)]
pub(super) struct NamespacesBesideDiscovery {
    names: BTreeSet<String>,
    answer: Result<NamespaceStates, (ListTarget, ListError)>,
}

impl NamespacesBesideDiscovery {
    /// Returns the answer about these namespaces; `None` if others were read.
    pub(super) fn about(
        self,
        names: &BTreeSet<&str>,
    ) -> Option<Result<NamespaceStates, (ListTarget, ListError)>> {
        let are_same = self.names.iter().map(String::as_str).eq(names.iter().copied());
        are_same.then_some(self.answer)
    }
}

impl ReadBesideDiscovery {
    /// Reads what is wanted and needs no discovery. `namespace` is that of objects without one.
    pub async fn read(server: &ApiServer, wanted: Wanted<'_>, namespace: &str) -> Self {
        let (reference, manifests) = match wanted {
            Wanted::Nothing => return Self::default(),
            Wanted::Parent(reference) => (reference, None),
            Wanted::ParentAndNamespaces(reference, manifests) => (reference, Some(manifests)),
        };
        let Some(resource) = plain_resource(reference) else {
            return Self::default();
        };
        let identity = ParentIdentity {
            group_kind: resource.group_kind(),
            namespace: Some(reference.namespace.as_deref().unwrap_or(namespace).to_owned()),
            name: reference.name.clone(),
        };
        let names = manifests.and_then(|manifests| names(&identity, manifests, namespace));
        let resource = Arc::new(resource);
        let parent = whole_parent(server, &resource, &identity);
        let namespaces = async {
            let names = names?;
            let answer = namespaces(server, &names.iter().map(String::as_str).collect()).await;
            Some(Box::new(NamespacesBesideDiscovery { names, answer }))
        };
        let begun = Instant::now();
        let (parent, namespaces) = join(parent, namespaces).await;
        Self {
            parent: Some(Box::new((identity, parent))),
            namespaces,
            requests: 0,
            begun: Some(begun),
        }
    }

    /// Returns whether the parent was read, and there is none.
    pub fn has_no_parent(&self) -> bool {
        matches!(self.parent.as_deref(), Some((_, Ok(None))))
    }

    /// Notes that discovery is done, too: any later request makes the answers too old.
    #[must_use]
    pub fn valid_until_next_request(self, server: &ApiServer) -> Self {
        Self {
            requests: server.requests(),
            ..self
        }
    }

    /// Returns the answers, unless something was sent since, or they are too old.
    pub(super) fn unless_older(self, server: &ApiServer) -> Self {
        if server.requests() == self.requests && self.begun.is_some_and(is_recent) {
            self
        } else {
            Self::default()
        }
    }
}

/// Returns whether an answer that was asked for then can still be used.
pub(super) fn is_recent(begun: Instant) -> bool {
    begun.elapsed() <= LONGEST_AGE
}

/// Returns the resource of a parent that is named as a Secret or a ConfigMap; `None` for other names.
fn plain_resource(reference: &SetReference) -> Option<Resource> {
    let kind = match reference.resource.as_deref() {
        None | Some("secret" | "secrets") => "Secret",
        Some("configmap" | "configmaps" | "cm") => "ConfigMap",
        Some(_) => return None,
    };
    Some(Resource::regular("", "v1", kind, Scope::Namespaced))
}

/// Returns the namespaces of the parent and of the manifests. `None` if only discovery shows them: the
/// kind decides whether an object without a namespace has one.
fn names(parent: &ParentIdentity, manifests: &[Manifest], namespace: &str) -> Option<BTreeSet<String>> {
    let mut names: BTreeSet<String> = parent.namespace.clone().into_iter().collect();
    let is_named = names.contains(namespace);
    for manifest in manifests {
        match &manifest.namespace {
            Some(namespace) => _ = names.insert(namespace.clone()),
            None if is_named => {}
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
        let kind = |resource: Option<&str>| plain_resource(&reference(resource)).map(|known| known.kind);
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
