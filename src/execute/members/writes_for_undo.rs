//! Notes for the undo file what the writes of a member have done.

use crate::cluster::apiserver::{ApiError, ApiRequest, Reply};
use crate::execute::Execution;
use crate::manifest::desired::DesiredObject;

impl Execution<'_> {
    /// Sends an apply of this object, and remembers whether it may have taken effect.
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

    /// Notes an answer that shows the object as the run leaves it.
    pub(crate) fn noted(
        &self,
        object: &DesiredObject,
        reply: Result<Reply, ApiError>,
    ) -> Result<Reply, ApiError> {
        if let (Some(undo), Ok(reply)) = (self.undo, &reply) {
            undo.note_written(&object.key, &reply.body);
        }
        reply
    }

    /// Notes that the object was not applied.
    pub(crate) fn note_failed(&self, object: &DesiredObject) {
        if let Some(undo) = self.undo {
            undo.note_failed(&object.key);
        }
    }
}
