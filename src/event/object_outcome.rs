//! The outcome of one object, and how output documents name the object.

use std::sync::Arc;

use serde::{Serialize, Serializer};

use super::Action;
use crate::manifest::Position;
use crate::model::identity::ObjectKey;
use crate::model::live::Live;
use crate::model::message::Message;
use crate::model::resource::Resource;

/// The object of an outcome. A run holds one subject for each member, so subjects of one kind share their resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// The resource through which the object is read and written.
    pub resource: Arc<Resource>,
    /// The namespace; `None` for a cluster-scoped object.
    pub namespace: Option<String>,
    pub name: String,
    /// The UID, if it is known.
    pub uid: Option<String>,
}

impl Subject {
    /// Returns the subject for the object `key` as read and written through `resource`.
    pub fn new(key: &ObjectKey, resource: &Arc<Resource>, uid: Option<&str>) -> Self {
        Self {
            resource: Arc::clone(resource),
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            uid: uid.map(str::to_owned),
        }
    }

    /// Returns the subject for a live object.
    pub fn from_live(live: &Live) -> Self {
        Self::new(&live.key, &live.resource, Some(&live.uid))
    }

    /// Returns kind, namespace and name.
    pub fn key(&self) -> ObjectKey {
        ObjectKey {
            group_kind: self.resource.group_kind(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        }
    }

    /// Returns whether both subjects have the same kind, namespace and name.
    pub fn has_key_of(&self, other: &Self) -> bool {
        self.name == other.name
            && self.namespace == other.namespace
            && self.resource.kind == other.resource.kind
            && self.resource.group == other.resource.group
    }
}

impl Serialize for Subject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let document = SubjectDocument {
            group: &self.resource.group,
            version: &self.resource.version,
            kind: &self.resource.kind,
            resource: &self.resource.plural,
            namespace: self.namespace.as_deref(),
            name: &self.name,
            uid: self.uid.as_deref(),
        };
        document.serialize(serializer)
    }
}

/// A subject in output documents.
#[derive(Serialize)]
struct SubjectDocument<'a> {
    /// The API group; empty for the core group.
    group: &'a str,
    /// The API version through which the object is read and written.
    version: &'a str,
    kind: &'a str,
    /// The plural name of the resource.
    resource: &'a str,
    namespace: Option<&'a str>,
    name: &'a str,
    uid: Option<&'a str>,
}

/// The outcome of one object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ObjectOutcome {
    #[serde(flatten)]
    pub subject: Subject,
    pub action: Action,
    /// The reason of the action; empty if there is none to report.
    pub reason: String,
    /// The error of a failed object.
    pub error: Option<Box<Message>>,
    /// `true` if the object existed outside of any set and became a member in this run.
    #[serde(rename = "takenIn", skip_serializing_if = "std::ops::Not::not")]
    pub taken_in: bool,
    /// `true` if the object failed after it was deleted to be created again.
    #[serde(skip)]
    pub was_deleted: bool,
    /// Whether the object still exists after its DELETE.
    #[serde(skip)]
    pub remainder: StateAfterDelete,
    /// What becomes of the `PersistentVolumeClaims` of an object that is deleted and created again.
    #[serde(skip)]
    pub claims: Claims,
    /// The position in the manifests; `None` for an object that is not in the manifests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Position>,
}

/// Whether a deleted object still exists, according to the answer to its DELETE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateAfterDelete {
    /// The object was not deleted, or the answer does not say whether it is gone.
    Unknown,
    /// The object is gone.
    Nothing,
    /// The object still exists, because finalizers hold it.
    HeldByFinalizers,
}

/// What becomes of the `PersistentVolumeClaims` of an object that is deleted and created again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claims {
    /// The object has no such claims, or they are not deleted with it.
    NotTouched,
    /// The claims are kept with the object's Pods, which the new object adopts.
    Stay,
    /// The claims are deleted, and so are their data. Also for an object that is a claim or a volume itself.
    Lost,
}

impl ObjectOutcome {
    /// Creates an outcome without a reason.
    pub fn new(subject: Subject, action: Action) -> Self {
        Self {
            subject,
            action,
            reason: String::new(),
            error: None,
            taken_in: false,
            was_deleted: false,
            remainder: StateAfterDelete::Unknown,
            claims: Claims::NotTouched,
            source: None,
        }
    }

    /// Creates an outcome with a reason.
    pub fn new_with_reason(subject: Subject, action: Action, reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            ..Self::new(subject, action)
        }
    }

    /// Returns whether the object existed outside of any set and was applied as a member.
    pub fn has_joined_set(&self) -> bool {
        self.taken_in && self.action != Action::Failed
    }

    /// Turns the outcome into a failure with this error.
    pub fn fail(&mut self, error: impl Into<Message>) {
        self.action = Action::Failed;
        self.error = Some(Box::new(error.into()));
    }

    /// Creates the outcome of an object that failed.
    pub fn from_error(subject: Subject, error: impl Into<Message>) -> Self {
        Self {
            error: Some(Box::new(error.into())),
            ..Self::new(subject, Action::Failed)
        }
    }
}
