//! The preconditions of a plan's writes: the UID and content that each object must have when it is written.
//!
//! Fields that change without anyone's decision, such as the status, are not part of the content.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::compare::ignore;
use crate::model::applyset::ID_LABEL;
use crate::model::applyset::parent::is_applyset_key;
use crate::model::digest::{hexadecimal, sha256};
use crate::model::expiry::is_own_key;
use crate::model::identity::ObjectKey;
use crate::model::pointer::{Pointer, parse_index};

/// Fields of the metadata that any write changes. They are not part of the content.
const CHANGED_BY_ANY_WRITE: [&str; 3] = ["managedFields", "resourceVersion", "generation"];

/// Random salt of all digests of one plan. Without it, a short value could be found by a table of digests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Salt(String);

/// A live object as it was seen when a plan was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Seen {
    /// `metadata.uid`.
    pub uid: String,
    /// `metadata.resourceVersion`; empty for an object that the plan does not write.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
    /// Digest of the content; empty for an object that the plan does not write, or whose content is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub digest: String,
}

/// The preconditions of a plan. A plan that is carried out at once has none: only the judgement of each object counts.
/// A saved plan is bound to the objects as they were when it was made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Preconditions(Option<BoundObjects>);

/// The objects that a saved plan is bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
struct BoundObjects {
    salt: Salt,
    /// The objects that the plan knows; `None` for an object that must not exist.
    objects: BTreeMap<ObjectKey, Option<Seen>>,
    /// The parent, if it has a manifest and existed when the plan was made.
    parent: Option<Seen>,
    /// Key: the UID of an object. Value: its fields that may change, because the set leaves them to others.
    ignored: BTreeMap<String, Vec<Pointer>>,
    /// The objects that the plan recreates.
    recreated: BTreeSet<ObjectKey>,
}

impl BoundObjects {
    /// Returns what to remember of a live object, without its ignored fields.
    fn to_seen_without_ignored(&self, object: &Value) -> Option<Seen> {
        let uid = object.pointer("/metadata/uid")?.as_str()?;
        Seen::from_object_without(
            object,
            self.ignored.get(uid).map_or(&[], Vec::as_slice),
            &self.salt,
        )
    }
}

impl Salt {
    /// Returns a new random salt.
    ///
    /// # Errors
    ///
    /// If the operating system returns no random bytes.
    pub fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes)?;
        Ok(Self(hexadecimal(&bytes)))
    }

    /// Returns the digest of a value. `field` is part of the digest, so that equal values of different fields have
    /// different digests.
    pub(super) fn digest(&self, field: &str, value: &Value) -> String {
        let mut hash = Sha256::new();
        for part in [self.0.as_bytes(), field.as_bytes(), value.to_string().as_bytes()] {
            // Without the lengths, `ab` + `c` and `a` + `bc` would have the same digest.
            hash.update(part.len().to_be_bytes());
            hash.update(part);
        }
        format!("sha256:{}", hexadecimal(&hash.finalize()))
    }
}

/// Returns the digest of a content that is not secret, without a salt.
pub(super) fn plain_digest(content: impl AsRef<[u8]>) -> String {
    format!("sha256:{}", sha256(content))
}

impl Seen {
    /// Returns what to remember of a live object that the plan writes; `None` if it is not a Kubernetes object with a
    /// UID.
    pub fn from_object(object: &Value, salt: &Salt) -> Option<Self> {
        let text = |pointer| object.pointer(pointer)?.as_str();
        let mut content = object.clone();
        content.as_object_mut()?.remove("status");
        let metadata = content.get_mut("metadata")?.as_object_mut()?;
        for field in CHANGED_BY_ANY_WRITE {
            metadata.remove(field);
        }
        Some(Self {
            uid: text("/metadata/uid")?.to_owned(),
            resource_version: text("/metadata/resourceVersion")?.to_owned(),
            digest: salt.digest("", &content),
        })
    }

    /// Returns what to remember of a live object that the plan writes, like [`Self::from_object`], but without the
    /// `ignored` fields: the set leaves them to others, so they may change.
    ///
    /// A field of a list item counts all the same: its index is that of the manifest, and may be of another item in the
    /// live object.
    pub fn from_object_without(object: &Value, ignored: &[Pointer], salt: &Salt) -> Option<Self> {
        let mut left_out = ignored.to_vec();
        left_out.retain(|pointer| {
            pointer
                .segments()
                .iter()
                .all(|segment| parse_index(segment).is_none())
        });
        if left_out.is_empty() {
            return Self::from_object(object, salt);
        }
        Self::from_object(&ignore::remove_fields(object, &left_out), salt)
    }

    /// Returns what to remember of a live parent whose own manifest is applied.
    ///
    /// The record and the history of the parent are not part of the content. Otherwise the run's own writes to them
    /// would count as changes. The record is compared separately.
    pub fn from_parent_without_record(object: &Value, salt: &Salt) -> Option<Self> {
        let mut content = object.clone();
        let metadata = content.get_mut("metadata")?.as_object_mut()?;
        for field in ["labels", "annotations"] {
            let Some(pairs) = metadata.get_mut(field).and_then(Value::as_object_mut) else {
                continue;
            };
            pairs.retain(|key, _| key != ID_LABEL && !is_own_key(key) && !is_applyset_key(key));
            if pairs.is_empty() {
                metadata.remove(field);
            }
        }
        Self::from_object(&content, salt)
    }

    /// Returns what to remember of an object with this UID and this resourceVersion, without a digest of its content.
    pub fn for_version(uid: &str, resource_version: &str) -> Self {
        Self {
            uid: uid.to_owned(),
            resource_version: resource_version.to_owned(),
            digest: String::new(),
        }
    }

    /// Returns the UID and resourceVersion of a live object, without a digest of its content.
    pub fn from_uid_and_version(object: &Value) -> Self {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        Self::for_version(text("uid"), text("resourceVersion"))
    }

    /// Returns what to remember of a live object that the plan does not write.
    pub fn for_unwritten_object(uid: &str) -> Self {
        Self::for_version(uid, "")
    }
}

impl Preconditions {
    /// Binds a plan to these objects as they are now, and to the parent, if it has a manifest and
    /// exists. Objects that are not in `objects` must not exist.
    pub fn for_saved_plan(
        salt: Salt,
        objects: BTreeMap<ObjectKey, Option<Seen>>,
        parent: Option<Seen>,
    ) -> Self {
        Self(Some(BoundObjects {
            salt,
            objects,
            parent,
            ignored: BTreeMap::new(),
            recreated: BTreeSet::new(),
        }))
    }

    /// Exempts these fields from the preconditions, because the set leaves them to others.
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

    /// Sets the objects that the plan recreates.
    #[must_use]
    pub fn with_recreated(self, recreated: BTreeSet<ObjectKey>) -> Self {
        Self(self.0.map(|bound| BoundObjects { recreated, ..bound }))
    }

    /// Returns whether an object may be recreated. A saved plan permits it only for the objects that it names.
    pub fn admits_recreation(&self, key: &ObjectKey) -> bool {
        self.0.as_ref().is_none_or(|bound| bound.recreated.contains(key))
    }

    /// Returns whether each object must be as it was when the plan was made: the plan is a saved one.
    pub fn is_of_saved_plan(&self) -> bool {
        self.0.is_some()
    }

    /// Returns the object as it was when a saved plan was made. `None` if the object must not exist, or if the plan is not
    /// a saved one.
    pub fn seen_object(&self, key: &ObjectKey) -> Option<&Seen> {
        self.0.as_ref()?.objects.get(key)?.as_ref()
    }

    /// Returns the parent as it was when the plan was made; `None` if the plan is not bound to it.
    pub fn seen_parent(&self) -> Option<&Seen> {
        self.0.as_ref()?.parent.as_ref()
    }

    /// Returns the parent as it is `now`, if only its record, history or resourceVersion have changed since the plan
    /// was made; `None` if it has changed otherwise, or the plan is not bound to it.
    pub fn parent_if_unchanged(&self, now: Option<&Value>) -> Option<Seen> {
        let seen = self.seen_parent()?;
        let now = Seen::from_parent_without_record(now?, &self.0.as_ref()?.salt)?;
        (now.uid == seen.uid && now.digest == seen.digest).then_some(now)
    }

    /// Returns the object as it is `now`, if it has the UID and content of `seen`. The resourceVersion may have
    /// changed.
    pub fn object_if_unchanged(&self, seen: &Seen, now: Option<&Value>) -> Option<Seen> {
        let now = self.0.as_ref()?.to_seen_without_ignored(now?)?;
        (now.uid == seen.uid && now.digest == seen.digest).then_some(now)
    }

    /// Returns whether an existing object that looks like `now` may be written.
    pub fn admits(&self, key: &ObjectKey, now: &Value) -> bool {
        let is_unchanged = |seen| self.object_if_unchanged(seen, Some(now)).is_some();
        !self.is_of_saved_plan() || self.seen_object(key).is_some_and(is_unchanged)
    }

    /// Returns what to remember of an object after a write of the run. `answer` is the server's answer to that write.
    /// Later writes of the run require this state instead of the planned one.
    pub fn seen_after_write(&self, answer: &Value) -> Option<Seen> {
        self.0.as_ref()?.to_seen_without_ignored(answer)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_ignored_field_of_a_list_item_counts() {
        let salt = Salt::random().expect("random bytes");
        let seen = |replicas: u32, image: &str| {
            let pointers = ["/spec/replicas", "/spec/containers/0/image"];
            let ignored = pointers.map(|text| Pointer::parse(text).expect("a pointer"));
            // The manifest has the second of these containers first.
            let live = json!({
                "metadata": {"uid": "u", "resourceVersion": "1"},
                "spec": {"replicas": replicas, "containers": [{"name": "sidecar", "image": image}, {"name": "web"}]},
            });
            Seen::from_object_without(&live, &ignored, &salt).expect("an object")
        };
        assert_eq!(seen(1, "a"), seen(2, "a"));
        assert_ne!(seen(1, "a"), seen(1, "b"));
    }
}
