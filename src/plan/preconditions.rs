//! The preconditions of a plan's writes: what each object has to be at that moment.
//!
//! An object is compared by its UID and its content. Changes that are not made on purpose, such as
//! its status, are ignored.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::compare::ignore;
use crate::model::applyset::ID_LABEL;
use crate::model::applyset::parent::is_applyset_key;
use crate::model::digest::{hexadecimal, sha256};
use crate::model::history_annotation::HISTORY_ANNOTATION;
use crate::model::identity::ObjectKey;
use crate::model::pointer::Pointer;

/// Fields of the metadata that any write changes.
const PASSING: [&str; 3] = ["managedFields", "resourceVersion", "generation"];

/// Random salt of all digests of one plan, so that short values cannot be looked
/// up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Salt(String);

/// A live object as it was seen when a plan was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Seen {
    /// `metadata.uid`.
    pub uid: String,
    /// `metadata.resourceVersion`; empty for an object that is only left alone.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
    /// Digest of the content; empty for an object that is only left alone.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub digest: String,
}

/// The preconditions of a plan. By default there are none beyond those of the judgement of each
/// object; a plan that was made earlier and approved is bound to the objects of that time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Preconditions(Option<Bound>);

/// The objects that a plan is bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Bound {
    salt: Salt,
    /// `None` for an object that must not exist.
    objects: BTreeMap<ObjectKey, Option<Seen>>,
    /// The parent, if it has a manifest and was there.
    parent: Option<Seen>,
    /// The fields that the set leaves to others, by the UIDs of their objects.
    ignored: BTreeMap<String, Vec<Pointer>>,
    /// The objects that the plan recreates.
    recreated: BTreeSet<ObjectKey>,
}

impl Bound {
    /// Returns what is remembered of a live object, without its ignored fields.
    fn seen(&self, object: &Value) -> Option<Seen> {
        let uid = object.pointer("/metadata/uid")?.as_str()?;
        Seen::from_object_without(
            object,
            self.ignored.get(uid).map_or(&[], Vec::as_slice),
            &self.salt,
        )
    }
}

/// The precondition of the write of one object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precondition<'a> {
    /// There is none.
    None,
    /// The object must not exist.
    Absent,
    /// The object must be the one that was seen.
    Unchanged(&'a Seen),
}

impl<'a> Precondition<'a> {
    /// Returns what the write is locked to, if anything.
    pub fn lock(self) -> Option<&'a Seen> {
        match self {
            Self::Unchanged(seen) => Some(seen),
            Self::None | Self::Absent => None,
        }
    }
}

impl Salt {
    /// Returns a new one.
    ///
    /// # Errors
    ///
    /// If the operating system returns no random bytes.
    pub fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes)?;
        Ok(Self(hexadecimal(&bytes)))
    }

    /// Returns the digest of a value; `what` distinguishes equal values of different fields.
    pub(super) fn digest(&self, what: &str, value: &Value) -> String {
        let mut hash = Sha256::new();
        for part in [self.0.as_bytes(), what.as_bytes(), value.to_string().as_bytes()] {
            // The length keeps the parts apart.
            hash.update(part.len().to_be_bytes());
            hash.update(part);
        }
        format!("sha256:{}", hexadecimal(&hash.finalize()))
    }
}

/// Returns the digest of a value that is not secret.
pub(super) fn plain_digest(content: impl AsRef<[u8]>) -> String {
    format!("sha256:{}", sha256(content))
}

impl Seen {
    /// Returns what to remember of a live object that the plan writes; `None` if it is not a JSON object.
    pub fn from_object(object: &Value, salt: &Salt) -> Option<Self> {
        let text = |pointer| object.pointer(pointer)?.as_str();
        let mut content = object.clone();
        content.as_object_mut()?.remove("status");
        let metadata = content.get_mut("metadata")?.as_object_mut()?;
        for field in PASSING {
            metadata.remove(field);
        }
        Some(Self {
            uid: text("/metadata/uid")?.to_owned(),
            resource_version: text("/metadata/resourceVersion")?.to_owned(),
            digest: salt.digest("", &content),
        })
    }

    /// Returns the same without these fields: the set leaves them to others, so they may change.
    pub fn from_object_without(object: &Value, ignored: &[Pointer], salt: &Salt) -> Option<Self> {
        if ignored.is_empty() {
            return Self::from_object(object, salt);
        }
        Self::from_object(&ignore::without(object, ignored), salt)
    }

    /// Returns what to remember of a live parent whose own manifest is applied. Its record and its
    /// history are not part of the content: the run writes them, too, and the record is compared separately.
    pub fn from_parent(object: &Value, salt: &Salt) -> Option<Self> {
        let mut content = object.clone();
        let metadata = content.get_mut("metadata")?.as_object_mut()?;
        for field in ["labels", "annotations"] {
            let Some(pairs) = metadata.get_mut(field).and_then(Value::as_object_mut) else {
                continue;
            };
            pairs.retain(|key, _| key != ID_LABEL && key != HISTORY_ANNOTATION && !is_applyset_key(key));
            if pairs.is_empty() {
                metadata.remove(field);
            }
        }
        Self::from_object(&content, salt)
    }

    /// Returns the version of a live object, without its content.
    pub fn version(object: &Value) -> Self {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        Self {
            uid: text("uid"),
            resource_version: text("resourceVersion"),
            digest: String::new(),
        }
    }

    /// Returns what to remember of a live object that the plan does not write.
    pub fn left_alone(uid: &str) -> Self {
        Self {
            uid: uid.to_owned(),
            resource_version: String::new(),
            digest: String::new(),
        }
    }
}

impl Preconditions {
    /// Binds a plan to these objects as they are now, and to the parent, if it has a manifest and
    /// is there. Objects that are not named must not be there.
    pub fn bound(salt: Salt, objects: BTreeMap<ObjectKey, Option<Seen>>, parent: Option<Seen>) -> Self {
        Self(Some(Bound {
            salt,
            objects,
            parent,
            ignored: BTreeMap::new(),
            recreated: BTreeSet::new(),
        }))
    }

    /// Returns the same preconditions, except for these fields: the set leaves them to others.
    #[must_use]
    pub fn with_ignored_fields(mut self, fields: &BTreeMap<ObjectKey, Vec<Pointer>>) -> Self {
        if let Some(bound) = &mut self.0 {
            bound.ignored.clear();
            for (key, seen) in &bound.objects {
                if let (Some(seen), Some(fields)) = (seen, fields.get(key)) {
                    bound.ignored.insert(seen.uid.clone(), fields.clone());
                }
            }
        }
        self
    }

    /// Returns the same, with these objects to be recreated.
    #[must_use]
    pub fn with_recreated(self, recreated: BTreeSet<ObjectKey>) -> Self {
        Self(self.0.map(|bound| Bound { recreated, ..bound }))
    }

    /// Returns whether an object may be recreated. A plan that is bound names the objects.
    pub fn admit_recreation(&self, key: &ObjectKey) -> bool {
        self.0.as_ref().is_none_or(|bound| bound.recreated.contains(key))
    }

    /// Returns whether the plan is bound to the objects of the time when it was made: each must be unchanged.
    pub fn require_unchanged(&self) -> bool {
        self.0.is_some()
    }

    /// Returns the precondition of the write of an object.
    pub fn for_object(&self, key: &ObjectKey) -> Precondition<'_> {
        let Some(bound) = &self.0 else {
            return Precondition::None;
        };
        let seen = bound.objects.get(key).and_then(Option::as_ref);
        seen.map_or(Precondition::Absent, Precondition::Unchanged)
    }

    /// Returns what was seen of the parent.
    pub fn parent(&self) -> Option<&Seen> {
        self.0.as_ref()?.parent.as_ref()
    }

    /// Returns the live parent as it is now, if nothing but its record has changed since it was seen.
    pub fn unchanged_parent(&self, now: Option<&Value>) -> Option<Seen> {
        let seen = self.parent()?;
        let now = Seen::from_parent(now?, &self.0.as_ref()?.salt)?;
        (now.uid == seen.uid && now.digest == seen.digest).then_some(now)
    }

    /// Returns the live object as it is now, if it is what was `seen` of it; only its
    /// resourceVersion may be another one.
    pub fn unchanged_since(&self, seen: &Seen, now: Option<&Value>) -> Option<Seen> {
        let now = self.0.as_ref()?.seen(now?)?;
        (now.uid == seen.uid && now.digest == seen.digest).then_some(now)
    }

    /// Returns whether an object may be written as it is now.
    pub fn admit(&self, key: &ObjectKey, now: &Value) -> bool {
        match self.for_object(key) {
            Precondition::None => true,
            Precondition::Absent => false,
            Precondition::Unchanged(seen) => self.unchanged_since(seen, Some(now)).is_some(),
        }
    }

    /// Returns what the run has made of an object, by the answer to its write.
    pub fn after_write(&self, object: &Value) -> Option<Seen> {
        self.0.as_ref()?.seen(object)
    }
}
