//! The desired objects: every object of the manifests with its resource and its namespace. The parent's own manifest is
//! not among the members.
//!
//! [`resolve`] finds the faults of manifests for which discovery is needed, such as unknown kinds. `plan` decides if
//! objects may be taken or pruned.

mod dependency_graph;
mod digest;
mod empty_values;
mod ignored_order_annotations;
mod invalid_objects_by_kind;
mod resolve;
mod string_data;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use dependency_graph::{
    build_dependency_graph_if_annotated, kind_defined_by_crd, must_exist_before_parent, role_of_binding,
};
pub use digest::digest_without_secret_values;
pub use empty_values::remove_empty_metadata;
pub use resolve::{ResolutionContext, is_served_with_member_verbs, resolve};

use crate::cluster::discovery::{Discovery, ResourceLookup};
use crate::manifest::{HookManifest, Position};
use crate::model::applyset::{PART_OF_LABEL, ParentIdentity, Record};
use crate::model::identity::{GroupKind, ObjectKey};
use crate::model::object::Object;
use crate::model::pointer::Pointer;
use crate::model::resource::{Origin, Resource};

/// The verbs that a kind must support so that its objects can be applied, found again and pruned.
pub const MEMBER_VERBS: [&str; 3] = ["list", "patch", "delete"];

/// One object that the manifests ask for.
#[derive(Debug, Clone, PartialEq)]
pub struct DesiredObject {
    /// Kind, namespace and name.
    pub key: ObjectKey,
    /// The resource through which the object is applied.
    pub resource: Arc<Resource>,
    /// The object as it is sent: with its namespace, the part-of label of a member, and the `stringData` of a Secret as
    /// `data`, but without nulls, and without the empty values that the server drops or replaces (`empty_values.rs`).
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

    /// Returns the object with another body.
    #[must_use]
    pub fn with_object(&self, object: Object) -> Self {
        Self {
            object,
            ..self.clone()
        }
    }

    /// Returns whether the object is a Secret of the core group.
    pub fn is_secret(&self) -> bool {
        self.key.group_kind == GroupKind::new("", "Secret")
    }

    /// Returns whether Kubernetes deletes the object once it has finished: a Job with `ttlSecondsAfterFinished`.
    pub fn is_deleted_once_finished(&self) -> bool {
        self.key.group_kind == GroupKind::new("batch", "Job")
            && self.object.value()["spec"]["ttlSecondsAfterFinished"].is_number()
    }

    /// Returns the resource through which the object can be read now: its own resource if it is served, else another
    /// served version of its kind. `None` if no version of the kind is served, so that no object of the kind exists.
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
    pub placeholder_secrets: BTreeSet<ObjectKey>,
    /// `spec.replicas` of objects that an autoscaler scales, which is ignored. Fields that a rule ignores anyway are
    /// not among them.
    pub left_to_autoscalers: BTreeMap<ObjectKey, Pointer>,
}

impl Desired {
    /// Returns the names of the Namespaces among the members.
    pub fn defined_namespaces(&self) -> impl Iterator<Item = &str> {
        self.members
            .iter()
            .map(|member| &member.key)
            .filter(|key| key.group_kind.is_namespace())
            .map(|key| key.name.as_str())
    }

    /// Replaces each resource that was not served yet by the resource that a later discovery lists.
    pub fn replace_not_yet_served_resources(&mut self, discovery: &Discovery) {
        for object in self.members.iter_mut().chain(&mut self.parent) {
            if object.resource.origin == Origin::NotYetServed
                && let ResourceLookup::Found(resource) = discovery.find_resource(&object.resource.gvk())
            {
                object.resource = Arc::new(resource.clone());
            }
        }
    }

    /// Updates which numbers of replicas are ignored, after the autoscalers were read again.
    pub fn replace_fields_left_to_autoscalers(&mut self, fields: BTreeMap<ObjectKey, Pointer>) {
        let earlier_fields = std::mem::replace(&mut self.left_to_autoscalers, fields);
        let current_fields = &self.left_to_autoscalers;
        if earlier_fields.is_empty() && current_fields.is_empty() {
            return;
        }
        for member in &mut self.members {
            let earlier_field = earlier_fields.get(&member.key);
            member.ignored.retain(|field| Some(field) != earlier_field);
            member.ignored.extend(current_fields.get(&member.key).cloned());
        }
    }

    /// Returns the record of a set with these members: their kinds and namespaces.
    pub fn build_record(&self, parent: &ParentIdentity) -> Record {
        Record::from_members(self.members.iter().map(|member| &member.key), parent)
    }
}
