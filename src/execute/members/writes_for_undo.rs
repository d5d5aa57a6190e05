//! Notes for the undo file what the writes of a member have done.

use crate::cluster::apiserver::{ApiError, ApiRequest, Reply};
use crate::execute::Execution;
use crate::manifest::desired::DesiredObject;

impl Execution<'_> {
    /// Sends an apply of this object, and notes what it has done.
    pub(crate) async fn send_noted(
        &self,
        object: &DesiredObject,
        request: ApiRequest,
    ) -> Result<Reply, ApiError> {
        let answer = self.server.send(request).await;
        if let Some(undo) = self.undo {
            undo.note_answer(&object.key, &answer);
        }
        answer
    }

    /// Notes that the object was not applied.
    pub(crate) fn note_failed(&self, object: &DesiredObject) {
        if let Some(undo) = self.undo {
            undo.note_failed(&object.key);
        }
    }
}
