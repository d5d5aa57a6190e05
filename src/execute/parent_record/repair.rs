//! Writes the repairs of `verify --fix` to the parent of a set.
//!
//! `verify` decided the repairs for the parent as it was read. A parent that has changed since is not
//! written. A record that loses kinds or namespaces is narrowed as that of a run: what has joined since is
//! recorded again.

use bytes::Bytes;
use serde_json::{Map, Value, json};

use crate::cluster::apiserver::{ApiRequest, Patch};
use crate::compare::ownership::PARENT_FIELD_MANAGER;
use crate::execute::Sink;
use crate::execute::labeled_objects::list_labeled_objects;
use crate::execute::parent_record::narrow::{Narrowed, Wide};
use crate::execute::parent_record::requests::{Known, ParentWriteError, ParentWriting, Written};
use crate::model::applyset::Record;
use crate::model::applyset::parent::annotations;
use crate::read::{ListTargets, METADATA, METADATA_LIST};
use crate::verify::{Removal, Repair};

/// Outcome of a repair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repaired {
    /// It is written.
    Written,
    /// Another client has changed the parent since it was judged.
    Overtaken,
}

impl ParentWriting<'_> {
    /// Writes the record, then removes keys that do not belong on the parent.
    pub async fn repair(&self, repair: &Repair, sink: &mut Sink<'_>) -> Result<Repaired, ParentWriteError> {
        let mut known = Known::of(&repair.parent);
        let target = annotations(&repair.set.tooling, &repair.record);
        if repair.record.covers(&repair.recorded) {
            match self.write_record(&known.resource_version, &target, sink).await? {
                Written::Done(written) => known = written,
                Written::Overtaken => return Ok(Repaired::Overtaken),
            }
        } else {
            let wide = repair.recorded.union(&repair.record);
            let leaves = repair
                .places
                .outside(&repair.record, self.set.parent.namespace.as_deref());
            let second_look = async || self.labeled(&leaves).await;
            let wide = Wide {
                record: &wide,
                places: &repair.places,
            };
            let narrowed = self.narrow(&mut known, &repair.record, wide, second_look, sink);
            match narrowed.await? {
                Narrowed::Done => {}
                // The next look judges it again.
                Narrowed::Widened | Narrowed::Overtaken | Narrowed::Interrupted => {
                    return Ok(Repaired::Overtaken);
                }
            }
        }
        if repair.removals.is_empty() {
            return Ok(Repaired::Written);
        }
        let version = &known.resource_version;
        match self
            .take_keys_off(version, &target, &repair.removals, sink)
            .await?
        {
            Written::Done(_) => Ok(Repaired::Written),
            Written::Overtaken => Ok(Repaired::Overtaken),
        }
    }

    /// Returns the record of the objects with the set's label in these collections.
    async fn labeled(&self, places: &[ListTargets]) -> Result<Record, ParentWriteError> {
        let mut record = Record::default();
        for places in places {
            let concurrency = self.writing.concurrency;
            let found = list_labeled_objects(self.server, self.set, places, concurrency, METADATA_LIST);
            let found = found
                .await
                .map_err(|(_, error)| ParentWriteError::Unwatched(error))?;
            let keys = found.iter().map(|live| &live.key);
            record = record.union(&Record::of(keys, &self.set.parent));
        }
        Ok(record)
    }

    /// Server-side apply removes only fields of its own manager; others wrote these.
    async fn take_keys_off(
        &self,
        resource_version: &str,
        record: &Value,
        removals: &[Removal],
        sink: &mut Sink<'_>,
    ) -> Result<Written, ParentWriteError> {
        let mut metadata = json!({"resourceVersion": resource_version});
        for removal in removals {
            let (field, key) = match removal {
                Removal::Annotation(key) => ("annotations", *key),
                Removal::Label(key) => ("labels", *key),
            };
            if !metadata[field].is_object() {
                metadata[field] = Value::Object(Map::new());
            }
            metadata[field][key] = Value::Null;
        }
        let path = self.resource.path_of(&self.set.parent);
        let parameters = [("fieldManager", PARENT_FIELD_MANAGER)];
        let body = Bytes::from(json!({"metadata": metadata}).to_string());
        let request = ApiRequest::patch(&path, &parameters, METADATA, Patch::Merge, body);
        self.known(self.send(request, sink).await, record)
    }
}
