//! Predicts objects that no dry run of the server can show yet, because the run first has to write what they need.

use serde_json::Value;

use super::Prediction;
use super::answer::merged_with_manifest;
use crate::event::{Action, ObjectOutcome, Subject};
use crate::execute::Execution;
use crate::manifest::desired::DesiredObject;
use crate::plan::{LiveMembership, is_not_yet_served};
use crate::read;

impl Execution<'_> {
    /// Predicts an object that no dry run of the server can show yet: merges the manifest into the live object, which
    /// may have another version than the manifest. `live` is the live object if the caller has read it; otherwise, it
    /// is read here if it can exist.
    pub(super) async fn predict_by_merge(
        &self,
        object: &DesiredObject,
        mut subject: Subject,
        live_membership: &LiveMembership,
        mut live: Option<Value>,
    ) -> Prediction {
        let readable = self.readable_through(object);
        if let Some(resource) = readable.filter(|_| live.is_none()) {
            live = match read::read_object(self.server, resource, &object.key).await {
                Ok(live) => live,
                Err(error) => return self.unread_prediction(subject, &error),
            };
        }
        let reason = match (is_not_yet_served(object), readable) {
            _ if self.has_unknown_value(object) => "the plan does not hold its values",
            (true, Some(_)) => "its version does not exist yet",
            (true, None) => "its kind does not exist yet",
            (false, Some(_)) => "its CustomResourceDefinition changes in the same run",
            (false, None) => "its namespace does not exist yet",
        };
        let manifest = object.object.value();
        let (action, predicted) = match &live {
            None => (Action::Created, manifest),
            Some(live) => {
                let uid = live.pointer("/metadata/uid").and_then(Value::as_str);
                subject.uid = uid.map(str::to_owned);
                (Action::Configured, merged_with_manifest(live, &manifest))
            }
        };
        let mut outcome = ObjectOutcome::new(subject, action);
        if let Some(live) = &live {
            self.mark_if_predicted_taken_in(object, live_membership, live, &predicted, &mut outcome);
        }
        Prediction {
            warnings: vec![format!("not validated by the server: {reason}")],
            live,
            predicted: Some(predicted),
            ..Prediction::from_outcome(outcome)
        }
    }
}
