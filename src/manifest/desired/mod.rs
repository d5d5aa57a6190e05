//! The desired objects: every object of the manifests with its resource and its namespace. The parent's own manifest is
//! not among the members.
//!
//! Pure. [`resolve`] finds the faults of manifests for which discovery is needed, such as unknown kinds. `plan` decides
//! if objects may be taken or pruned.

mod dependencies;
mod digest;
mod empty_values;
mod error;
mod string_data;

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

pub use dependencies::{build_dependency_graph_if_annotated, kind_defined_by_crd, must_exist_before_parent};
pub use digest::digest_without_secret_values;
pub use empty_values::remove_meaningless_metadata;
use error::{InvalidObject, unknown_kind_message};
use serde_json::{Map, Value};

use crate::cluster::discovery::{Discovery, KeptReason, MissingKind, ResourceLookup};
use crate::error::{Error, ErrorKind};
use crate::manifest::{Hook, HookManifest, Manifest, Manifests, Naming, Position};
use crate::model::applyset::parent::is_applyset_key;
use crate::model::applyset::{ApplySetId, IS_PARENT_TYPE_LABEL, PART_OF_LABEL, ParentIdentity, Record};
use crate::model::history_annotation::HISTORY_ANNOTATION;
use crate::model::identity::{GroupKind, GroupVersionKind, ObjectKey};
use crate::model::message::Message;
use crate::model::object::Object;
use crate::model::pointer::Pointer;
use crate::model::resource::{Origin, Resource, Scope};

/// The verbs that a kind must support so that its objects can be applied, found again and pruned.
pub const VERBS_OF_MEMBERS: [&str; 3] = ["list", "patch", "delete"];

/// One object that the manifests ask for.
#[derive(Debug, Clone, PartialEq)]
pub struct DesiredObject {
    /// Kind, namespace and name.
    pub key: ObjectKey,
    /// The resource through which the object is applied.
    pub resource: Arc<Resource>,
    /// The object as it is sent: with its namespace, the part-of label of a member, and the `stringData` of a Secret as
    /// `data`, but without the empty values that mean nothing (`empty_values.rs`).
    pub object: Object,
    /// The line where the object was written.
    pub position: Position,
    /// The objects that the annotation `depends-on` names.
    pub depends_on: Vec<ObjectKey>,
    /// The fields that the set leaves to other managers, as pointers into [`DesiredObject::object`].
    pub ignored: Vec<Pointer>,
}

impl DesiredObject {
    /// Returns the part-of label with which the object is sent.
    pub fn part_of(&self) -> Option<String> {
        let metadata = self.object.metadata();
        let label = metadata.get("labels")?.get(PART_OF_LABEL)?.as_str()?;
        Some(label.to_owned())
    }

    /// Returns whether the object is a Secret of the core group.
    pub fn is_secret(&self) -> bool {
        self.key.group_kind == GroupKind::new("", "Secret")
    }

    /// Returns the resource through which the object can be read now. That is its own resource if it is served. If a
    /// CRD of the manifests has yet to add the version, it is a resource of the same kind in `served`. `None` if no
    /// version of the kind is served, so that no object of the kind exists.
    pub fn resource_to_read<'r>(&'r self, served: &'r [Arc<Resource>]) -> Option<&'r Arc<Resource>> {
        match self.resource.origin {
            Origin::Served => Some(&self.resource),
            Origin::NotYetServed => served.iter().find(|resource| {
                resource.origin == Origin::Served && resource.group_kind() == self.key.group_kind
            }),
        }
    }
}

/// All objects that the manifests ask for.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Desired {
    /// Members, in the order of the manifests.
    pub members: Vec<DesiredObject>,
    /// The parent's own manifest, if it is among them, without ApplySet metadata.
    pub parent: Option<DesiredObject>,
    /// Hooks that are not applied. If one of them is a member, it is kept.
    pub hooks: Vec<HookManifest>,
    /// Warnings about the manifests for the user.
    pub warnings: Vec<String>,
    /// Secrets of a saved plan, which has placeholders in place of their values. Such a Secret can be compared with the
    /// live one, but is never sent.
    pub incomplete: BTreeSet<ObjectKey>,
    /// The fields with the number of replicas that are ignored because an autoscaler writes them. Fields that a rule
    /// ignores anyway are not among them.
    pub left_to_autoscalers: BTreeMap<ObjectKey, Pointer>,
}

/// The set and the cluster that manifests are resolved for.
#[derive(Debug, Clone, Copy)]
pub struct ResolutionContext<'a> {
    /// The kinds of the server and of the CRDs among the manifests.
    pub discovery: &'a Discovery,
    /// The parent of the set.
    pub parent: &'a ParentIdentity,
    pub id: &'a ApplySetId,
    /// The namespace of manifests without a namespace.
    pub namespace: &'a str,
}

impl Desired {
    /// Returns the names of the Namespaces among the members.
    pub fn defined_namespaces(&self) -> impl Iterator<Item = &str> {
        self.members
            .iter()
            .map(|member| &member.key)
            .filter(|key| key.group_kind.group.is_empty() && key.group_kind.kind == "Namespace")
            .map(|key| key.name.as_str())
    }

    /// Replaces resources that CRDs of the manifests were yet to add by the resources that a later discovery lists.
    pub fn replace_not_yet_served_resources(&mut self, discovery: &Discovery) {
        let objects = self.members.iter_mut().chain(&mut self.parent);
        for object in objects.filter(|object| object.resource.origin == Origin::NotYetServed) {
            if let ResourceLookup::Found(resource) = discovery.find_resource(&object.resource.gvk()) {
                object.resource = Arc::new(resource.clone());
            }
        }
    }

    /// Replaces the ignored numbers of replicas: those that autoscalers wrote at an earlier reading of the cluster by
    /// those that they write now.
    pub fn replace_fields_left_to_autoscalers(&mut self, fields: BTreeMap<ObjectKey, Pointer>) {
        let earlier = std::mem::replace(&mut self.left_to_autoscalers, fields);
        let current = &self.left_to_autoscalers;
        if earlier.is_empty() && current.is_empty() {
            return;
        }
        for member in &mut self.members {
            let no_longer_ignored = earlier.get(&member.key);
            member
                .ignored
                .retain(|ignored| Some(ignored) != no_longer_ignored);
            member.ignored.extend(current.get(&member.key).cloned());
        }
    }

    /// Returns the record of a set with these members: their kinds and namespaces.
    pub fn build_record(&self, parent: &ParentIdentity) -> Record {
        Record::from_members(self.members.iter().map(|member| &member.key), parent)
    }
}

/// Gives every manifest its resource and namespace.
///
/// # Errors
///
/// All objects that cannot be applied to this cluster: of unknown kinds, of kinds that cannot be members, or defined
/// twice.
pub fn resolve(manifests: Manifests, context: ResolutionContext) -> Result<Desired, Error> {
    let hooks = manifests.hooks.into_iter();
    let mut desired = Desired {
        hooks: hooks.map(|hook| to_hook_manifest(hook, context)).collect(),
        ..Desired::default()
    };
    let mut errors = Vec::new();
    let mut seen: HashMap<ObjectKey, Position> = HashMap::new();
    let mut resources: BTreeMap<(String, String, String), Arc<Resource>> = BTreeMap::new();
    for manifest in manifests.applied {
        if manifest.naming == Naming::Generated {
            let problem = Message::new("metadata.generateName: cannot use generate name with apply")
                .with_hint("give the hook a name, or leave hooks out with --hooks=skip");
            errors.push(InvalidObject::new(manifest.position, problem));
            continue;
        }
        let gvk = (
            manifest.gvk.group.clone(),
            manifest.gvk.version.clone(),
            manifest.gvk.kind.clone(),
        );
        let resource = match resources.get(&gvk) {
            Some(resource) => Arc::clone(resource),
            None => match find_resource_with_member_verbs(&manifest, context.discovery)? {
                Ok(resource) => Arc::clone(resources.entry(gvk).or_insert(resource)),
                Err(problem) => {
                    errors.push(InvalidObject {
                        position: manifest.position,
                        problem,
                        is_of_kind: true,
                    });
                    continue;
                }
            },
        };
        let (mut object, metadata) = to_desired_object_and_metadata(manifest, resource, context.namespace);
        match seen.entry(object.key.clone()) {
            Entry::Occupied(first) => {
                let (key, first) = (&object.key, first.get());
                let hint = if first.is_same_place(&object.position) {
                    "name this file once with -f, or write the object once on this line"
                } else {
                    "remove one of the two"
                };
                let problem =
                    Message::new(format!("{key} is defined twice: first at {first}")).with_hint(hint);
                errors.push(InvalidObject::new(object.position, problem));
            }
            Entry::Vacant(vacant) => {
                vacant.insert(object.position.clone());
                let checked = refuse_applyset_keys_unless_parent(&object.key, &metadata, context);
                match checked.and_then(|()| dependencies::parse_depends_on_annotation(&object.key, &metadata))
                {
                    Err(problem) => errors.push(InvalidObject::new(object.position, problem)),
                    Ok(depends_on) => {
                        object.depends_on = depends_on;
                        desired.add_member_or_parent(object, metadata, context);
                    }
                }
            }
        }
    }
    if errors.is_empty() {
        errors.extend(dependencies::find_prerequisites_with_later_dependencies(
            &desired,
            context.parent,
        ));
        errors.extend(dependencies::find_dependency_of_parent(&desired));
        errors.extend(dependencies::find_cycle_error(&desired));
    }
    if errors.is_empty() {
        desired
            .warnings
            .extend(dependencies::warning_of_ignored_order_annotations(
                &desired.members,
            ));
        Ok(desired)
    } else {
        Err(error::to_error(errors))
    }
}

impl Desired {
    fn add_member_or_parent(
        &mut self,
        mut object: DesiredObject,
        mut metadata: Map<String, Value>,
        context: ResolutionContext,
    ) {
        if object.key == *context.parent {
            if remove_applyset_metadata(&mut metadata) {
                self.warnings.push(format!(
                    "{}: ApplySet labels and annotations of {} in the manifest are ignored; apply writes them",
                    object.position, object.key
                ));
            }
            object.object = object.object.with_metadata(&metadata);
            self.parent = Some(object);
        } else {
            // The parent exists before any member is applied, so the dependency is always met.
            object.depends_on.retain(|key| key != context.parent);
            add_part_of_label(&mut metadata, context.id);
            object.object = object.object.with_metadata(&metadata);
            self.members.push(object);
        }
    }
}

/// Returns the manifest of a hook with the key of its object. The kind need not be served, because a hook here is not
/// applied; an object of an unknown kind counts as namespaced.
fn to_hook_manifest((manifest, hook): (Manifest, Hook), context: ResolutionContext) -> HookManifest {
    let is_cluster_scoped = match context.discovery.find_resource(&manifest.gvk) {
        ResourceLookup::Found(resource) => resource.scope == Scope::Cluster,
        ResourceLookup::UnknownKind { .. } | ResourceLookup::GroupFailed(_) => false,
    };
    let namespace = manifest.namespace.unwrap_or_else(|| context.namespace.to_owned());
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

/// Checks that an object other than the parent has no ApplySet labels and annotations, except the label by which a CRD
/// allows its kind as a parent.
fn refuse_applyset_keys_unless_parent(
    key: &ObjectKey,
    metadata: &Map<String, Value>,
    context: ResolutionContext,
) -> Result<(), Message> {
    if key == context.parent {
        return Ok(());
    }
    let keys = ["labels", "annotations"]
        .into_iter()
        .filter_map(|field| metadata.get(field)?.as_object());
    let mut metadata_keys = keys
        .flat_map(Map::keys)
        .filter(|key| is_applyset_key(key) && *key != IS_PARENT_TYPE_LABEL);
    let Some(metadata_key) = metadata_keys.next() else {
        return Ok(());
    };
    let text = format!("{key}: {metadata_key} is reserved for parents of sets");
    Err(Message::new(text).with_hint("remove it from the manifest"))
}

/// Returns whether the server serves this kind with all [`VERBS_OF_MEMBERS`].
pub fn is_served_with_member_verbs(gvk: &GroupVersionKind, discovery: &Discovery) -> bool {
    match discovery.find_resource(gvk) {
        ResourceLookup::Found(resource) => VERBS_OF_MEMBERS.into_iter().all(|verb| resource.supports(verb)),
        ResourceLookup::UnknownKind { .. } | ResourceLookup::GroupFailed(_) => false,
    }
}

/// Returns why a kind that a CRD defines is not served; `None` if it is served, if no CRD defines it, or if its CRD was
/// not looked up.
fn reason_defined_kind_not_served<'d>(kind: &GroupKind, discovery: &'d Discovery) -> Option<&'d KeptReason> {
    match discovery.judgement_on_missing_kind(kind) {
        Some(MissingKind::Kept(kept)) => Some(&kept.reason),
        _ => None,
    }
}

/// Finds the resource of a manifest. The inner error is a fault of the manifest, which is reported with the faults of
/// the other manifests.
///
/// # Errors
///
/// The outer error ends the run: the CRD of the kind is being deleted, or the server did not answer whether it has the
/// kind.
fn find_resource_with_member_verbs(
    manifest: &Manifest,
    discovery: &Discovery,
) -> Result<Result<Arc<Resource>, Message>, Error> {
    let (position, kind) = (&manifest.position, manifest.gvk.group_kind());
    let definition = reason_defined_kind_not_served(&kind, discovery);
    if let Some(reason @ KeptReason::DefinitionTerminating(_)) = definition {
        let text = format!("{position}: {kind} cannot be applied: {reason}");
        return Err(
            Error::new(ErrorKind::Failed, text).with_hint("run the same command again when it is gone")
        );
    }
    let resource = match discovery.find_resource(&manifest.gvk) {
        ResourceLookup::Found(resource) => resource,
        ResourceLookup::UnknownKind {
            served_versions,
            similar,
        } => {
            return Ok(Err(unknown_kind_message(
                &manifest.gvk,
                served_versions,
                &similar,
                definition,
            )));
        }
        ResourceLookup::GroupFailed(failure) => {
            return Err(Error::for_undiscoverable_kind(format!(
                "{position}: cannot determine whether the server has kind {kind}: {failure}"
            )));
        }
    };
    let missing_verbs: Vec<_> = VERBS_OF_MEMBERS
        .into_iter()
        .filter(|verb| !resource.supports(verb))
        .collect();
    if missing_verbs.is_empty() {
        Ok(Ok(Arc::new(resource.clone())))
    } else {
        let verbs = missing_verbs.join(", ");
        let text = format!("kind {kind} cannot be in a set: the server does not support {verbs} for it");
        Ok(Err(Message::new(text).with_hint(
            "remove it from the manifests, and create it with kubectl",
        )))
    }
}

/// Returns the object of a manifest, and the metadata with which it is to be sent. [`Desired::add_member_or_parent`]
/// adds labels to the metadata, and puts it into the object.
///
/// A namespaced object without a namespace gets the default namespace. A cluster-scoped object loses its namespace,
/// which the server would ignore.
fn to_desired_object_and_metadata(
    manifest: Manifest,
    resource: Arc<Resource>,
    default_namespace: &str,
) -> (DesiredObject, Map<String, Value>) {
    let namespace = match resource.scope {
        Scope::Cluster => None,
        Scope::Namespaced => Some(manifest.namespace.unwrap_or_else(|| default_namespace.to_owned())),
    };
    let object = empty_values::without_meaningless_empty_values(&manifest.gvk, manifest.object);
    let object = string_data::with_string_data_moved(&manifest.gvk, object);
    let mut metadata = object.metadata();
    empty_values::remove_meaningless_metadata(&mut metadata);
    match &namespace {
        Some(namespace) => {
            metadata.insert("namespace".to_owned(), Value::String(namespace.clone()));
        }
        None => {
            metadata.remove("namespace");
        }
    }
    let desired = DesiredObject {
        key: ObjectKey {
            group_kind: resource.group_kind(),
            namespace,
            name: manifest.name,
        },
        resource,
        object,
        position: manifest.position,
        depends_on: Vec::new(),
        ignored: Vec::new(),
    };
    (desired, metadata)
}

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
            let before = pairs.len();
            pairs.retain(|key, _| !is_applyset_key(key) && key != HISTORY_ANNOTATION);
            has_removed |= pairs.len() != before;
        }
    }
    has_removed
}
