//! Finds members that have lost their part-of label in collections that the record is about to lose: only the record
//! still leads to such members.

use futures_util::future::try_join;

use super::requests::{ParentWriteError, ParentWriting};
use crate::event::{Event, Sink};
use crate::model::applyset::Record;
use crate::model::live::Live;
use crate::read::{self, ListError, ListTarget, ListTargets};

impl ParentWriting<'_> {
    /// Finds members without their label in those collections of `places` that the new record (`new_record`) does not
    /// cover. Warns of these members, and returns their record.
    pub async fn warn_and_record_unlabeled(
        &self,
        places: &ListTargets,
        new_record: &Record,
        sink: &mut Sink<'_>,
    ) -> Result<Record, ParentWriteError> {
        let parent = &self.set.parent;
        let found = self
            .list_unlabeled_outside_record(places, new_record)
            .await
            .map_err(|(_, error)| ParentWriteError::NotListed(error))?;
        if !found.is_empty() {
            let consequence = format!(
                "what leads there stays recorded until no such object is left; see `kubectl applyset verify {}`",
                parent.shell_arguments()
            );
            let warning = read::warning_of_unlabeled(&found, &consequence);
            sink(Event::Warning(warning));
        }
        Ok(Record::from_members(found.iter().map(|live| &live.key), parent))
    }

    /// Lists members without their label in those of the collections `places` that `new_record` does not cover.
    pub(super) async fn list_unlabeled_outside_record(
        &self,
        places: &ListTargets,
        new_record: &Record,
    ) -> Result<Vec<Live>, (ListTarget, ListError)> {
        let concurrency = self.writing.concurrency;
        let list = async |places| read::list_objects_with_lost_label(self.server, places, concurrency).await;
        let [kinds, namespaces] =
            &places.outside_recorded_kinds_and_namespaces(new_record, self.set.parent.namespace.as_deref());
        let (mut found, found_in_namespaces) = try_join(list(kinds), list(namespaces)).await?;
        found.extend(found_in_namespaces);
        Ok(found)
    }
}
