//! What the manifests ask for, once the cluster's kinds are known: every object with
//! its resource and its namespace, the parent's own manifest set apart.
//!
//! Pure. It finds what is wrong with manifests in the light of discovery; whether
//! objects may be taken or pruned is decided in `plan`.

mod dependencies;
mod digest;
mod empty_values;
mod error;
mod ignored_order_annotations;
mod string_data;

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

pub use dependencies::{defined_kind, graph, must_exist_before_parent};
pub use digest::digest;
pub use empty_values::leave_out_of_metadata;
use error::{InvalidObject, unknown_kind};
use serde_json::{Map, Value};

use crate::cluster::discovery::{Discovery, KeptReason, Lookup, MissingKind};
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

/// What must be possible with an object for it to be applied, found again and pruned.
pub const VERBS_OF_MEMBERS: [&str; 3] = ["list", "patch", "delete"];

/// One object that the manifests ask for.
#[derive(Debug, Clone, PartialEq)]
pub struct DesiredObject {
    /// Kind, namespace and name.
    pub key: ObjectKey,
    /// The resource that it is applied through.
    pub resource: Arc<Resource>,
    /// The object as it is sent: namespace filled in, a member with its part-of label, the
    /// `stringData` of a Secret as `data`, without values that say nothing.
    pub object: Object,
    /// Where it was written.
    pub position: Position,
    /// The objects that it depends on by its annotation.
    pub depends_on: Vec<ObjectKey>,
    /// The fields that the set leaves to others, as they are sent.
    pub ignored: Vec<Pointer>,
}

impl DesiredObject {
    /// Returns the part-of label that it is sent with.
    pub fn part_of(&self) -> Option<String> {
        let metadata = self.object.metadata();
        let label = metadata.get("labels")?.get(PART_OF_LABEL)?.as_str()?;
        Some(label.to_owned())
    }

    /// Whether it is a Secret of the API itself.
    pub fn is_secret(&self) -> bool {
        self.key.group_kind == GroupKind::new("", "Secret")
    }

    /// Returns the resource through which the object can be read now: its own if it is served, or
    /// one of the same kind in `served` if a CRD of the manifests will add its version. `None` if the kind is
    /// not served, so no object of it exists.
    pub fn readable_through<'r>(&'r self, served: &'r [Arc<Resource>]) -> Option<&'r Arc<Resource>> {
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
    /// What people should know of the manifests.
    pub warnings: Vec<String>,
    /// Secrets with a placeholder in the place of a value, which a saved plan does not hold. They can be compared with
    /// live ones, but are never sent.
    pub incomplete: BTreeSet<ObjectKey>,
    /// The numbers of replicas that are ignored, besides those of rules: autoscalers write them.
    pub left_to_autoscalers: BTreeMap<ObjectKey, Pointer>,
}

/// What manifests are resolved against.
#[derive(Debug, Clone, Copy)]
pub struct ResolutionContext<'a> {
    /// The kinds of the server and of the CRDs among the manifests.
    pub discovery: &'a Discovery,
    /// The parent of the set.
    pub parent: &'a ParentIdentity,
    pub id: &'a ApplySetId,
    /// The namespace of manifests that name none.
    pub namespace: &'a str,
}

impl Desired {
    /// The namespaces that the manifests bring.
    pub fn namespaces(&self) -> impl Iterator<Item = &str> {
        self.members
            .iter()
            .map(|member| &member.key)
            .filter(|key| key.group_kind.group.is_empty() && key.group_kind.kind == "Namespace")
            .map(|key| key.name.as_str())
    }

    /// Replaces resources that the manifests only promised by those that a later discovery lists.
    pub fn replace_promised_resources(&mut self, discovery: &Discovery) {
        let promised = self.members.iter_mut().chain(&mut self.parent);
        for object in promised.filter(|object| object.resource.origin == Origin::NotYetServed) {
            if let Lookup::Found(resource) = discovery.resource(&object.resource.gvk()) {
                object.resource = Arc::new(resource.clone());
            }
        }
    }

    /// Ignores the numbers of replicas that autoscalers write by now, and no longer those of an earlier time.
    pub fn leave_to_autoscalers(&mut self, fields: BTreeMap<ObjectKey, Pointer>) {
        let former = std::mem::replace(&mut self.left_to_autoscalers, fields);
        let now = &self.left_to_autoscalers;
        if former.is_empty() && now.is_empty() {
            return;
        }
        for member in &mut self.members {
            let earlier = former.get(&member.key);
            member.ignored.retain(|ignored| Some(ignored) != earlier);
            member.ignored.extend(now.get(&member.key).cloned());
        }
    }

    /// The kinds and namespaces of all members.
    pub fn record(&self, parent: &ParentIdentity) -> Record {
        Record::from_members(self.members.iter().map(|member| &member.key), parent)
    }
}

/// Gives every manifest its resource and namespace, and finds all that cannot be applied here: unknown
/// kinds, kinds that cannot be members, objects defined twice.
pub fn resolve(manifests: Manifests, context: ResolutionContext) -> Result<Desired, Error> {
    let hooks = manifests.hooks.into_iter();
    let mut desired = Desired {
        hooks: hooks.map(|hook| hook_manifest(hook, context)).collect(),
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
            None => match find_resource(&manifest, context.discovery)? {
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
        let (mut object, metadata) = place(manifest, resource, context.namespace);
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
                let fault = fault(&object.key, &metadata, context);
                match fault.map_or_else(|| dependencies::parse(&object.key, &metadata), Err) {
                    Err(problem) => errors.push(InvalidObject::new(object.position, problem)),
                    Ok(depends_on) => {
                        object.depends_on = depends_on;
                        desired.add(object, metadata, context);
                    }
                }
            }
        }
    }
    if errors.is_empty() {
        errors.extend(dependencies::find_misplaced(&desired, context.parent));
        errors.extend(dependencies::find_cycle(&desired));
    }
    if errors.is_empty() {
        desired
            .warnings
            .extend(ignored_order_annotations::warning(&desired.members));
        Ok(desired)
    } else {
        Err(error::error(errors))
    }
}

impl Desired {
    fn add(
        &mut self,
        mut object: DesiredObject,
        mut metadata: Map<String, Value>,
        context: ResolutionContext,
    ) {
        if object.key == *context.parent {
            if strip_applyset_metadata(&mut metadata) {
                self.warnings.push(format!(
                    "{}: ApplySet labels and annotations of {} in the manifest are ignored; apply writes them",
                    object.position, object.key
                ));
            }
            object.object = object.object.with_metadata(&metadata);
            self.parent = Some(object);
        } else {
            // The parent is there before any member.
            object.depends_on.retain(|key| key != context.parent);
            stamp(&mut metadata, context.id);
            object.object = object.object.with_metadata(&metadata);
            self.members.push(object);
        }
    }
}

/// Names the object of a hook. Its kind need not be served: it is not applied.
fn hook_manifest((manifest, hook): (Manifest, Hook), context: ResolutionContext) -> HookManifest {
    let is_cluster_scoped = match context.discovery.resource(&manifest.gvk) {
        Lookup::Found(resource) => resource.scope == Scope::Cluster,
        Lookup::UnknownKind { .. } | Lookup::GroupFailed(_) => false,
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

/// What is wrong with an object by itself.
fn fault(key: &ObjectKey, metadata: &Map<String, Value>, context: ResolutionContext) -> Option<Message> {
    if key == context.parent {
        return None;
    }
    let keys = ["labels", "annotations"]
        .into_iter()
        .filter_map(|field| metadata.get(field)?.as_object());
    let mut metadata_keys = keys
        .flat_map(Map::keys)
        .filter(|key| is_applyset_key(key) && *key != IS_PARENT_TYPE_LABEL);
    let metadata_key = metadata_keys.next()?;
    let text = format!("{key}: {metadata_key} is reserved for parents of sets");
    Some(Message::new(text).with_hint("remove it from the manifest"))
}

/// Whether the server lists this kind in a way in which it could be applied.
pub fn is_applicable(gvk: &GroupVersionKind, discovery: &Discovery) -> bool {
    match discovery.resource(gvk) {
        Lookup::Found(resource) => VERBS_OF_MEMBERS.into_iter().all(|verb| resource.supports(verb)),
        Lookup::UnknownKind { .. } | Lookup::GroupFailed(_) => false,
    }
}

/// Why a kind that is defined is not served, where that was looked up.
fn definition_state<'d>(kind: &GroupKind, discovery: &'d Discovery) -> Option<&'d KeptReason> {
    match discovery.missing_kind(kind) {
        Some(MissingKind::Kept(kept)) => Some(&kept.reason),
        _ => None,
    }
}

/// Finds the resource of a manifest, or what is wrong with its kind.
///
/// # Errors
///
/// The kind is about to be gone, or it could not be determined whether the server has it.
fn find_resource(
    manifest: &Manifest,
    discovery: &Discovery,
) -> Result<Result<Arc<Resource>, Message>, Error> {
    let (position, kind) = (&manifest.position, manifest.gvk.group_kind());
    let definition = definition_state(&kind, discovery);
    if let Some(reason @ KeptReason::DefinitionTerminating(_)) = definition {
        let text = format!("{position}: {kind} cannot be applied: {reason}");
        return Err(
            Error::new(ErrorKind::Failed, text).with_hint("run the same command again when it is gone")
        );
    }
    let resource = match discovery.resource(&manifest.gvk) {
        Lookup::Found(resource) => resource,
        Lookup::UnknownKind {
            served_versions,
            similar,
        } => {
            return Ok(Err(unknown_kind(
                &manifest.gvk,
                served_versions,
                &similar,
                definition,
            )));
        }
        Lookup::GroupFailed(failure) => {
            return Err(Error::kind_unknowable(format!(
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

/// A namespaced object without a namespace gets the default one; a cluster-scoped
/// object loses a namespace that it names, as the server would ignore it. The metadata
/// that it is to have are apart from it, for they are not complete yet.
fn place(
    manifest: Manifest,
    resource: Arc<Resource>,
    default_namespace: &str,
) -> (DesiredObject, Map<String, Value>) {
    let namespace = match resource.scope {
        Scope::Cluster => None,
        Scope::Namespaced => Some(manifest.namespace.unwrap_or_else(|| default_namespace.to_owned())),
    };
    let object = empty_values::without_empty_values(&manifest.gvk, manifest.object);
    let object = string_data::move_to_data(&manifest.gvk, object);
    let mut metadata = object.metadata();
    empty_values::leave_out_of_metadata(&mut metadata);
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

fn stamp(metadata: &mut Map<String, Value>, id: &ApplySetId) {
    let labels = metadata
        .entry("labels")
        .or_insert_with(|| Value::Object(Map::new()));
    if let Some(labels) = labels.as_object_mut() {
        labels.insert(PART_OF_LABEL.to_owned(), Value::String(id.to_string()));
    }
}

/// Whether there was anything to strip.
fn strip_applyset_metadata(metadata: &mut Map<String, Value>) -> bool {
    let mut stripped = false;
    for field in ["labels", "annotations"] {
        if let Some(pairs) = metadata.get_mut(field).and_then(Value::as_object_mut) {
            let before = pairs.len();
            pairs.retain(|key, _| !is_applyset_key(key) && key != HISTORY_ANNOTATION);
            stripped |= pairs.len() != before;
        }
    }
    stripped
}
