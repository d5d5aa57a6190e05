//! Writes the repairs of `verify --fix` to the parent of a set.
//!
//! `verify` decided the repairs for the parent as it was read. A parent that has changed since is not written.

use serde_json::{Map, Value, json};

use crate::cluster::apiserver::{ApiRequest, Patch};
use crate::compare::ownership::PARENT_FIELD_MANAGER;
use crate::event::Sink;
use crate::execute::parent_record::begin::history_with_abandoned_marked;
use crate::execute::parent_record::requests::{ParentWriteError, ParentWriting, RecordAndHistory, Written};
use crate::read::METADATA;
use crate::verify::{Removal, Repair};

impl ParentWriting<'_> {
    /// Writes the record, then removes labels and annotations that do not belong on the parent. Returns the parent as
    /// repaired.
    ///
    /// The precondition of the write is the resourceVersion of the parent that `verify` read before it listed the
    /// members.
    pub async fn repair(&self, repair: &Repair, sink: &mut Sink<'_>) -> Result<Written, ParentWriteError> {
        let mut history = history_with_abandoned_marked(&repair.parent, "");
        for id in &repair.ended {
            history.mark_as_abandoned(id);
        }
        let mut record = repair.record.clone();
        if !repair.record.covers(&repair.recorded) {
            let unlabeled = self
                .warn_and_record_unlabeled(&repair.places, &record, sink)
                .await?;
            record = record.union(&unlabeled);
        }
        let target = self.build_annotations(&RecordAndHistory { record, history }, Some(&repair.parent))?;
        let seen = (
            repair.parent.uid.as_str(),
            repair.parent.resource_version.as_str(),
        );
        match self.write_annotations(seen, &target, sink).await? {
            Written::Done(written) if !repair.removals.is_empty() => {
                let version = &written.resource_version;
                self.remove_keys(version, &target, &repair.removals, sink).await
            }
            written => Ok(written),
        }
    }

    /// Removes these labels and annotations by a merge patch: other field managers wrote them, and server-side apply
    /// removes only fields of its own manager. `expected_annotations` are the annotations that the answer has to show.
    async fn remove_keys(
        &self,
        resource_version: &str,
        expected_annotations: &Value,
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
        let body = json!({"metadata": metadata}).to_string();
        let request = ApiRequest::patch(&path, &parameters, METADATA, Patch::Merge, body);
        self.send_and_check(request, expected_annotations, sink).await
    }
}
