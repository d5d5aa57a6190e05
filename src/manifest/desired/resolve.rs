//! Gives every manifest its resource and its namespace, and finds the faults for which discovery is needed.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::ignored_order_annotations::order_annotations_warning;
use super::invalid_objects_by_kind::{InvalidObject, to_error, unknown_kind_message};
use super::{Desired, DesiredObject, MEMBER_VERBS, dependency_graph, empty_values, string_data};
use crate::cluster::discovery::{Discovery, MissingKind, ReasonToKeepKind, ResourceLookup};
use crate::error::{Error, ErrorKind};
use crate::manifest::{Hook, HookManifest, Manifest, Manifests, Naming, Position};
use crate::model::applyset::parent::is_applyset_key;
use crate::model::applyset::{ApplySetId, IS_PARENT_TYPE_LABEL, PART_OF_LABEL, ParentIdentity};
use crate::model::expiry::is_own_key;
use crate::model::identity::{GroupKind, GroupVersionKind, ObjectKey};
use crate::model::message::Message;
use crate::model::resource::{Resource, Scope};

/// The set and the cluster that manifests are resolved for.
#[derive(Debug, Clone, Copy)]
pub struct ResolutionContext<'a> {
    /// The kinds of the server and of the CRDs among the manifests.
    pub discovery: &'a Discovery,
    /// The parent of the set.
    pub parent: &'a ParentIdentity,
    /// The id of the set, for the part-of label of its members.
    pub set_id: &'a ApplySetId,
    /// The namespace of manifests without a namespace.
    pub default_namespace: &'a str,
}

/// Gives every manifest its resource and namespace.
///
/// # Errors
///
/// All objects that cannot be applied to this cluster: of unknown kinds, of kinds that cannot be members, or defined
/// twice.
pub fn resolve(manifests: Manifests, context: ResolutionContext) -> Result<Desired, Error> {
    let mut resolver = Resolver::new(context);
    let mut desired = Desired {
        hooks: manifests
            .hooks
            .into_iter()
            .map(|hook| to_hook_manifest(hook, context))
            .collect(),
        ..Desired::default()
    };
    let mut invalid_objects = Vec::new();
    for manifest in manifests.applied {
        match resolver.resolve_object(manifest) {
            Ok(object) if object.key == *context.parent => desired.parent = Some(object),
            Ok(object) => desired.members.push(object),
            Err(ResolutionError::Object(object)) => invalid_objects.push(*object),
            Err(ResolutionError::Run(error)) => return Err(error),
        }
    }
    if invalid_objects.is_empty() {
        invalid_objects = dependency_graph::find_misordered_prerequisites(&desired, context.parent);
        invalid_objects.extend(dependency_graph::find_dependency_of_parent(&desired));
        invalid_objects.extend(dependency_graph::find_cycle_error(&desired));
    }
    if !invalid_objects.is_empty() {
        return Err(to_error(invalid_objects));
    }
    desired.warnings = resolver.warnings;
    desired
        .warnings
        .extend(order_annotations_warning(&desired.members));
    Ok(desired)
}

/// Returns whether the server serves this kind with all [`MEMBER_VERBS`].
pub fn is_served_with_member_verbs(gvk: &GroupVersionKind, discovery: &Discovery) -> bool {
    match discovery.find_resource(gvk) {
        ResourceLookup::Found(resource) => MEMBER_VERBS.into_iter().all(|verb| resource.supports(verb)),
        ResourceLookup::UnknownKind { .. } | ResourceLookup::GroupFailed(_) => false,
    }
}

/// The error of resolving one manifest.
enum ResolutionError {
    /// A fault of the manifest, which is reported with the faults of the other manifests.
    Object(Box<InvalidObject>),
    /// The run ends at once: the CRD of the kind is being deleted, or the server did not answer whether it has the
    /// kind.
    Run(Error),
}

impl From<InvalidObject> for ResolutionError {
    fn from(object: InvalidObject) -> Self {
        Self::Object(Box::new(object))
    }
}

/// Resolves manifests one after another.
struct Resolver<'a> {
    context: ResolutionContext<'a>,
    /// The resources of earlier manifests.
    resources: BTreeMap<GroupVersionKind, Arc<Resource>>,
    /// The positions of earlier manifests.
    positions: HashMap<ObjectKey, Position>,
    /// Warnings for the user.
    warnings: Vec<String>,
}

impl<'a> Resolver<'a> {
    fn new(context: ResolutionContext<'a>) -> Self {
        Self {
            context,
            resources: BTreeMap::new(),
            positions: HashMap::new(),
            warnings: Vec::new(),
        }
    }

    /// Returns the object of a manifest as it is sent.
    ///
    /// A namespaced object without a namespace gets the default namespace. A cluster-scoped object loses its namespace,
    /// which the server would ignore.
    fn resolve_object(&mut self, manifest: Manifest) -> Result<DesiredObject, ResolutionError> {
        let position = manifest.position.clone();
        let invalid = |problem| InvalidObject::new(position.clone(), problem);
        if manifest.naming == Naming::Generated {
            let problem = Message::new("metadata.generateName: cannot use generate name with apply")
                .with_hint("give the hook a name, or leave hooks out with --hooks=skip");
            return Err(invalid(problem).into());
        }
        let resource = self.find_resource(&manifest)?;
        let namespace = match resource.scope {
            Scope::Cluster => None,
            Scope::Namespaced => {
                let default_namespace = self.context.default_namespace;
                Some(manifest.namespace.unwrap_or_else(|| default_namespace.to_owned()))
            }
        };
        let key = ObjectKey {
            group_kind: resource.group_kind(),
            namespace,
            name: manifest.name,
        };
        match self.positions.entry(key.clone()) {
            Entry::Vacant(entry) => entry.insert(position.clone()),
            Entry::Occupied(first) => {
                let text = format!("{key} is defined twice: first at {}", first.get());
                let problem = Message::new(text).with_hint("remove one of the two");
                return Err(invalid(problem).into());
            }
        };
        let object = empty_values::remove_empty_values(&manifest.gvk, manifest.object);
        let object = string_data::move_string_data(&manifest.gvk, object);
        let mut metadata = object.metadata();
        empty_values::remove_empty_metadata(&mut metadata);
        match &key.namespace {
            Some(namespace) => metadata.insert("namespace".to_owned(), Value::String(namespace.clone())),
            None => metadata.remove("namespace"),
        };
        let mut depends_on;
        if key == *self.context.parent {
            depends_on = dependency_graph::parse_depends_on_annotation(&key, &metadata).map_err(invalid)?;
            if remove_applyset_metadata(&mut metadata) {
                self.warnings.push(format!(
                    "{position}: ApplySet labels and annotations of {key} in the manifest are ignored; apply writes them"
                ));
            }
        } else {
            refuse_applyset_keys(&key, &metadata).map_err(invalid)?;
            depends_on = dependency_graph::parse_depends_on_annotation(&key, &metadata).map_err(invalid)?;
            // The parent exists before any member is applied, so the dependency is always met.
            depends_on.retain(|dependency| dependency != self.context.parent);
            add_part_of_label(&mut metadata, self.context.set_id);
        }
        Ok(DesiredObject {
            key,
            resource,
            object: object.with_metadata(&metadata),
            position,
            depends_on,
            ignored: Vec::new(),
        })
    }

    /// Returns the resource of a manifest, which supports all [`MEMBER_VERBS`].
    fn find_resource(&mut self, manifest: &Manifest) -> Result<Arc<Resource>, ResolutionError> {
        if let Some(resource) = self.resources.get(&manifest.gvk) {
            return Ok(Arc::clone(resource));
        }
        let resource = Arc::new(find_member_resource(manifest, self.context.discovery)?);
        self.resources.insert(manifest.gvk.clone(), Arc::clone(&resource));
        Ok(resource)
    }
}

fn find_member_resource(manifest: &Manifest, discovery: &Discovery) -> Result<Resource, ResolutionError> {
    let position = &manifest.position;
    let kind = manifest.gvk.group_kind();
    let not_served = why_crd_is_not_served(&kind, discovery);
    if let Some(reason @ ReasonToKeepKind::DefinitionTerminating(_)) = not_served {
        let text = format!("{position}: {kind} cannot be applied: {reason}");
        return Err(ResolutionError::Run(
            Error::new(ErrorKind::Failed, text).with_hint("run the same command again when it is gone"),
        ));
    }
    let resource = match discovery.find_resource(&manifest.gvk) {
        ResourceLookup::Found(resource) => resource,
        ResourceLookup::UnknownKind {
            served_versions,
            similar,
        } => {
            let problem = unknown_kind_message(&manifest.gvk, served_versions, &similar, not_served);
            return Err(InvalidObject::of_whole_kind(position.clone(), problem).into());
        }
        ResourceLookup::GroupFailed(failure) => {
            return Err(ResolutionError::Run(Error::for_undiscoverable_kind(format!(
                "{position}: cannot determine whether the server has kind {kind}: {failure}"
            ))));
        }
    };
    let missing_verbs: Vec<_> = MEMBER_VERBS
        .into_iter()
        .filter(|verb| !resource.supports(verb))
        .collect();
    if missing_verbs.is_empty() {
        return Ok(resource.clone());
    }
    let verbs = missing_verbs.join(", ");
    let text = format!("kind {kind} cannot be in a set: the server does not support {verbs} for it");
    let problem = Message::new(text).with_hint("remove it from the manifests, and create it with kubectl");
    Err(InvalidObject::of_whole_kind(position.clone(), problem).into())
}

/// Returns why a kind that a CRD defines is not served; `None` if it is served, if no CRD defines it, or if its CRD was
/// not looked up.
fn why_crd_is_not_served<'d>(kind: &GroupKind, discovery: &'d Discovery) -> Option<&'d ReasonToKeepKind> {
    match discovery.judgement_on_missing_kind(kind) {
        Some(MissingKind::Kept(kept)) => {
            Some(&kept.reason).filter(|reason| **reason != ReasonToKeepKind::BuiltIn)
        }
        _ => None,
    }
}

/// Returns the manifest of a hook with the key of its object. The kind need not be served, because a hook here is not
/// applied; an object of an unknown kind counts as namespaced.
fn to_hook_manifest((manifest, hook): (Manifest, Hook), context: ResolutionContext) -> HookManifest {
    let is_cluster_scoped = match context.discovery.find_resource(&manifest.gvk) {
        ResourceLookup::Found(resource) => resource.scope == Scope::Cluster,
        ResourceLookup::UnknownKind { .. } | ResourceLookup::GroupFailed(_) => false,
    };
    let namespace = manifest
        .namespace
        .unwrap_or_else(|| context.default_namespace.to_owned());
    HookManifest {
        key: ObjectKey {
            group_kind: manifest.gvk.group_kind(),
            namespace: (!is_cluster_scoped).then_some(namespace),
            name: manifest.name,
        },
        naming: manifest.naming,
        hook,
        position: manifest.position,
    }
}

/// Checks that a member has no ApplySet labels and annotations, except the label by which a CRD allows its kind as a
/// parent. A member may have a history annotation, which is read from parents only.
fn refuse_applyset_keys(key: &ObjectKey, metadata: &Map<String, Value>) -> Result<(), Message> {
    let applyset_key = ["labels", "annotations"]
        .into_iter()
        .filter_map(|field| metadata.get(field)?.as_object())
        .flat_map(Map::keys)
        .find(|key| is_applyset_key(key) && *key != IS_PARENT_TYPE_LABEL);
    match applyset_key {
        Some(applyset_key) => {
            let text = format!("{key}: {applyset_key} is reserved for parents of sets");
            Err(Message::new(text).with_hint("remove it from the manifest"))
        }
        None => Ok(()),
    }
}

/// Adds the part-of label of a member. Labels that are not a mapping were refused before (`check_without_cluster`).
fn add_part_of_label(metadata: &mut Map<String, Value>, id: &ApplySetId) {
    let labels = metadata
        .entry("labels")
        .or_insert_with(|| Value::Object(Map::new()));
    if let Some(labels) = labels.as_object_mut() {
        labels.insert(PART_OF_LABEL.to_owned(), Value::String(id.to_string()));
    }
}

/// Removes ApplySet labels and annotations from the parent's manifest. Returns whether there were any.
fn remove_applyset_metadata(metadata: &mut Map<String, Value>) -> bool {
    let mut has_removed = false;
    for field in ["labels", "annotations"] {
        if let Some(pairs) = metadata.get_mut(field).and_then(Value::as_object_mut) {
            let previous_len = pairs.len();
            pairs.retain(|key, _| !is_applyset_key(key) && !is_own_key(key));
            has_removed |= pairs.len() != previous_len;
        }
    }
    has_removed
}
