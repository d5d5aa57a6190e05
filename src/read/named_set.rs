//! Resolves the set that the command line names: its parent, and whether the object may be one.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::mem;
use std::sync::Arc;

use http::StatusCode;
use serde_json::Value;

use super::cluster::Cluster;
use super::early_reads::{EarlyReads, NamespaceStates, ParentAnswer};
use super::error::{forbidden_parent_kind, unknowable_kind, unreadable_crd};
use super::namespaces::read_namespaces;
use super::parent::{CrdLabels, LiveParent, read_crd_labels, read_live_parent};
use crate::cluster::apiserver::ApiServer;
use crate::cluster::discovery::KindLookup;
use crate::error::Error;
use crate::manifest::Manifest;
use crate::manifest::desired::{Desired, ResolutionContext, digest_without_secret_values};
use crate::model::applyset::{ApplySetId, IS_PARENT_TYPE_LABEL, ParentIdentity, Tooling};
use crate::model::history_annotation::History;
use crate::model::identity::GroupKind;
use crate::model::resource::{Origin, Resource, Scope};
use crate::model::set::{ParentObject, Set};
use crate::model::text::first_names_and_more;
use crate::model::write_settings::SetReference;
use crate::plan::Dependent;

/// The most members for which the digest is computed early. It takes about 9 µs for each, also in a run that finds
/// everything unchanged.
const MAX_MEMBERS_TO_DIGEST_EARLY: usize = 300;

/// A set, and the resource of its parent.
pub struct NamedSet {
    pub set: Set,
    /// The resource of its parent.
    pub resource: Arc<Resource>,
    /// The set that the definition of a custom parent's kind is a member of.
    pub(super) definition_part_of: Option<String>,
    /// The answers of the early reads, until they are used.
    early_reads: RefCell<EarlyReads>,
}

impl NamedSet {
    /// Returns the context in which the manifests of this set are resolved.
    pub fn context_for_manifests<'a>(&'a self, cluster: &'a Cluster) -> ResolutionContext<'a> {
        ResolutionContext {
            discovery: &cluster.discovery,
            parent: &self.set.parent,
            set_id: &self.set.id,
            default_namespace: &cluster.namespace,
        }
    }

    /// Reads the parent; `None` if there is none.
    pub async fn read_parent(&self, server: &ApiServer) -> Result<Option<LiveParent>, Error> {
        if self.resource.origin == Origin::NotYetServed {
            return Ok(None);
        }
        let early = self.early_reads.borrow_mut().take_parent(&self.set.parent);
        let read = match early {
            Some(early) => with_discovered_resource(early, &self.resource),
            None => read_live_parent(server, &self.resource, &self.set.parent).await,
        };
        read.map_err(|error| {
            error.to_error_while_reading(format_args!("the set's parent {}", self.set.parent))
        })
    }

    /// Returns whether the parent was read early and shows that a run with these manifests probably writes: it does not
    /// exist, or the last run that wrote had other manifests.
    pub fn is_known_to_change(&self, desired: &Desired) -> bool {
        let early_reads = self.early_reads.borrow();
        if early_reads.is_parent_known_missing() {
            return true;
        }
        let parent = early_reads.existing_parent(&self.set.parent);
        let runs = parent
            .filter(|_| desired.members.len() <= MAX_MEMBERS_TO_DIGEST_EARLY)
            .map(|parent| History::from_annotations(&parent.object.annotations).into_runs());
        let last = runs.into_iter().flatten().find(|run| !run.is_running());
        last.is_some_and(|run| run.manifests != digest_without_secret_values(desired))
    }

    /// Reads the state of each of these namespaces that exists.
    pub(super) async fn read_namespaces(
        &self,
        server: &ApiServer,
        names: &BTreeSet<&str>,
    ) -> Result<NamespaceStates, Error> {
        let early = self.early_reads.borrow_mut().take_namespaces(names);
        let read = match early {
            Some(read) => read,
            None => read_namespaces(server, names).await,
        };
        Ok(read?)
    }

    /// Returns the parent as a dependent of its owners; `None` if it has no owners.
    pub(super) fn parent_as_dependent(&self, parent: &ParentObject) -> Option<Dependent> {
        let dependent = Dependent::from_parent(&self.set.parent, &self.resource, parent);
        (!dependent.owners.is_empty()).then_some(dependent)
    }
}

/// Resolves a set reference to an object, and checks that it may be a parent.
pub async fn resolve_named_set(
    cluster: &mut Cluster,
    reference: &SetReference,
    tooling: Tooling,
    manifests: &[Manifest],
) -> Result<NamedSet, Error> {
    let resource = find_or_await_parent_resource(cluster, reference).await?;
    let definition_part_of = if is_built_in_parent_kind(&resource) {
        None
    } else {
        check_parent_crd(cluster, &resource, manifests).await?
    };
    let mut identity = parent_identity(cluster, &resource, &reference.name);
    if resource.scope == Scope::Namespaced
        && let Some(namespace) = &reference.namespace
    {
        identity.namespace = Some(namespace.clone());
    }
    Ok(NamedSet {
        early_reads: RefCell::new(mem::take(&mut cluster.early_reads)),
        set: Set {
            id: ApplySetId::for_parent(&identity),
            parent: identity,
            parent_uid: None,
            tooling,
        },
        resource,
        definition_part_of,
    })
}

/// Replaces the resource of a parent that was read without discovery by the one that discovery lists.
fn with_discovered_resource(answer: ParentAnswer, resource: &Arc<Resource>) -> ParentAnswer {
    let mut parent = answer?;
    if let Some(parent) = &mut parent {
        parent.live.resource = Arc::clone(resource);
    }
    Ok(parent)
}

/// Finds the resource of a parent. Waits for a kind that is defined but not listed by discovery.
pub async fn find_or_await_parent_resource(
    cluster: &mut Cluster,
    reference: &SetReference,
) -> Result<Arc<Resource>, Error> {
    let text = reference.resource.as_deref().unwrap_or("secrets");
    let mut unserved = Vec::new();
    if cluster.discovery.find_by_argument(text) == KindLookup::Absent {
        unserved = cluster.await_all_kinds().await?.unserved;
    }
    match cluster.discovery.find_by_argument(text) {
        KindLookup::Found(resource) => Ok(Arc::new(resource.clone())),
        KindLookup::GroupFailed(failure) => Err(unknowable_kind(text, failure)),
        KindLookup::Absent if unserved.is_empty() => Err(Error::usage(
            format!("the server doesn't have a resource type {text:?} that can be the parent of a set"),
            "use secret/NAME, configmap/NAME or RESOURCE.GROUP/NAME",
        )),
        KindLookup::Absent => Err(Error::for_kind_not_served(format!(
            "the server doesn't serve a resource type {text:?}; defined, but not served: {}",
            first_names_and_more(unserved)
        ))),
    }
}

/// Returns the identity of the parent with this name, in the namespace of the run if its kind is namespaced.
pub fn parent_identity(cluster: &Cluster, resource: &Resource, name: &str) -> ParentIdentity {
    ParentIdentity {
        group_kind: resource.group_kind(),
        namespace: match resource.scope {
            Scope::Namespaced => Some(cluster.namespace.clone()),
            Scope::Cluster => None,
        },
        name: name.to_owned(),
    }
}

/// Returns whether objects of this kind may be parents although no CRD is labeled for it
/// (KEP-3659, "Parent object kinds").
pub(super) fn is_built_in_parent_kind(resource: &Resource) -> bool {
    resource.group.is_empty() && matches!(resource.kind.as_str(), "Secret" | "ConfigMap")
}

/// Permission of a kind's objects to be parents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParentEligibility {
    /// Secrets, `ConfigMaps`, and custom resources whose CRD has the label `is-parent-type`.
    Permitted,
    /// A custom resource whose CRD lacks the label `is-parent-type`.
    Unlabeled,
    /// Any other kind.
    Forbidden,
    /// The CRD could not be read.
    Unknown,
}

/// Determines whether objects of this kind may be parents. Unlike [`resolve_named_set`], it does not fail for a kind that
/// may not be one: `verify` inspects such parents, too.
pub async fn determine_parent_eligibility(
    cluster: &Cluster,
    resource: &Resource,
) -> Result<ParentEligibility, Error> {
    if is_built_in_parent_kind(resource) {
        return Ok(ParentEligibility::Permitted);
    }
    match read_crd_labels(&cluster.server, resource).await {
        Ok(Some(labels)) if labels.is_parent_type => Ok(ParentEligibility::Permitted),
        Ok(Some(_)) => Ok(ParentEligibility::Unlabeled),
        Ok(None) => Ok(ParentEligibility::Forbidden),
        Err(error) if error.has_status_code(StatusCode::FORBIDDEN) => Ok(ParentEligibility::Unknown),
        Err(error) => Err(unreadable_crd(resource, &error)),
    }
}

/// Checks that the CRD of a custom resource has the label `is-parent-type`, in the cluster or among the manifests
/// (KEP-3659, "Parent object kinds"). Returns the set that the CRD is a member of; `None` if it is in none, or if a
/// manifest labels the CRD.
async fn check_parent_crd(
    cluster: &Cluster,
    resource: &Resource,
    manifests: &[Manifest],
) -> Result<Option<String>, Error> {
    let definition = resource.crd_name();
    if manifests
        .iter()
        .any(|manifest| is_crd_labeled_for_parents(manifest, &definition))
    {
        return Ok(None);
    }
    let labels = if resource.origin == Origin::NotYetServed {
        // Its CRD is among the manifests, and none of these has the label.
        Some(CrdLabels {
            is_parent_type: false,
            part_of: None,
        })
    } else {
        let read = read_crd_labels(&cluster.server, resource).await;
        read.map_err(|error| {
            error.to_error_while_reading(format_args!("CustomResourceDefinition {definition}"))
        })?
    };
    let kind = &resource.kind;
    match labels {
        Some(labels) if labels.is_parent_type => Ok(labels.part_of),
        Some(_) => Err(Error::usage(
            format!(
                "{kind} cannot be the parent of a set: its CustomResourceDefinition is not labeled for it"
            ),
            if resource.origin == Origin::NotYetServed {
                format!("add the label {IS_PARENT_TYPE_LABEL}=true to the manifest of {definition}")
            } else {
                format!("allow it with `kubectl label crd {definition} {IS_PARENT_TYPE_LABEL}=true`")
            },
        )),
        None => Err(forbidden_parent_kind(kind)),
    }
}

fn is_crd_labeled_for_parents(manifest: &Manifest, name: &str) -> bool {
    manifest.gvk.group_kind() == GroupKind::custom_resource_definition()
        && manifest.name == name
        && manifest
            .object
            .metadata()
            .get("labels")
            .and_then(Value::as_object)
            .is_some_and(|labels| labels.contains_key(IS_PARENT_TYPE_LABEL))
}
