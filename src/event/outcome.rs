//! The outcome of one object, and how output documents name the object.

use std::sync::Arc;

use serde::{Serialize, Serializer};

use super::Action;
use crate::manifest::Position;
use crate::model::identity::ObjectKey;
use crate::model::message::Message;
use crate::model::resource::Resource;

/// The object of an outcome. A run holds one for each member, so members share their resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// The resource of the request.
    pub resource: Arc<Resource>,
    /// Namespace; `None` for a cluster-scoped object.
    pub namespace: Option<String>,
    pub name: String,
    /// UID, if it is known.
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

    /// Returns kind, namespace and name.
    pub fn key(&self) -> ObjectKey {
        ObjectKey {
            group_kind: self.resource.group_kind(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        }
    }

    /// Returns whether both have the same kind, namespace and name.
    pub fn has_key_of(&self, other: &Self) -> bool {
        let [ours, theirs] = [&self.resource, &other.resource];
        self.name == other.name
            && self.namespace == other.namespace
            && ours.kind == theirs.kind
            && ours.group == theirs.group
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
    /// API group; empty for the core group.
    group: &'a str,
    /// API version of the request.
    version: &'a str,
    /// CamelCase kind.
    kind: &'a str,
    /// Plural name of the resource.
    resource: &'a str,
    namespace: Option<&'a str>,
    name: &'a str,
    uid: Option<&'a str>,
}

/// The outcome of one object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ObjectOutcome {
    /// The object.
    #[serde(flatten)]
    pub subject: Subject,
    pub action: Action,
    /// The reason; empty if the action explains itself.
    pub reason: String,
    /// The error of a failed object.
    pub error: Option<Box<Message>>,
    /// `true` if the object existed outside of any set and became a member in this run.
    #[serde(rename = "takenIn", skip_serializing_if = "std::ops::Not::not")]
    pub taken_in: bool,
    /// `true` if the object failed after it was deleted to be created again.
    #[serde(skip)]
    pub was_deleted: bool,
    /// What is left of a deleted object.
    #[serde(skip)]
    pub remainder: Remainder,
    /// What becomes of the claims of an object that is to be deleted and created again.
    #[serde(skip)]
    pub claims: Claims,
    /// Position in the manifests; `None` for an object that is not in them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Position>,
}

/// What is left of a deleted object, by the answer to its DELETE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remainder {
    /// It was not deleted, or the answer does not show it.
    Unknown,
    Nothing,
    /// The object, which finalizers hold.
    HeldByFinalizers,
}

/// What becomes of the claims of an object that is deleted and created again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claims {
    /// It has none, or they are not deleted with it.
    NotTouched,
    /// They stay with its Pods, which the new object adopts.
    Stay,
    /// They are deleted, and so are their data.
    Lost,
}

impl ObjectOutcome {
    /// Returns an outcome without a reason.
    pub fn new(subject: Subject, action: Action) -> Self {
        Self {
            subject,
            action,
            reason: String::new(),
            error: None,
            taken_in: false,
            was_deleted: false,
            remainder: Remainder::Unknown,
            claims: Claims::NotTouched,
            source: None,
        }
    }

    /// Returns an outcome with its reason.
    pub fn with_reason(subject: Subject, action: Action, reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            ..Self::new(subject, action)
        }
    }

    /// Returns whether the object existed outside of any set and was applied as a member.
    pub fn joined_set(&self) -> bool {
        self.taken_in && self.action != Action::Failed
    }

    /// Returns the outcome of an object that failed.
    pub fn failed(subject: Subject, error: impl Into<Message>) -> Self {
        Self {
            error: Some(Box::new(error.into())),
            ..Self::new(subject, Action::Failed)
        }
    }
}
