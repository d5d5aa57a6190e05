//! Reports objects that existed in no set and become members by this run.

use serde_json::Value;

use crate::event::{Action, ObjectOutcome};
use crate::execute::Execution;
use crate::execute::members::apply::FoundLive;
use crate::execute::members::creation::{EXISTS, IGNORED};
use crate::manifest::desired::DesiredObject;
use crate::model::applyset::PART_OF_LABEL;
use crate::model::live::Live;
use crate::model::message::Message;
use crate::plan::{LiveMembership, Refusal, Unowned, unowned_reason};

impl Execution<'_> {
    /// Returns the reported reason of an object that was not in a set; `body` is the object as the
    /// server sent it. `None` if that cannot be read.
    pub(crate) fn unowned_reason(&self, object: &DesiredObject, body: &[u8]) -> Option<String> {
        let written = serde_json::from_slice(body).ok()?;
        let live = Live::from_object(&written, &object.resource)?;
        Some(unowned_reason(object, &live, self.set, self.policy))
    }

    /// Marks the outcome of an object that was taken in.
    pub(crate) fn mark_taken_in(&self, found: &FoundLive, outcome: &mut ObjectOutcome) {
        outcome.action = Action::Configured;
        outcome.taken_in = true;
        outcome.reason = found.reason.clone().unwrap_or_default();
        if self.policy.unowned == Unowned::Refused {
            outcome.action = Action::Failed;
            outcome.error = Some(IGNORED.into());
        }
    }

    /// The same in a dry run, in which `found` is the live object and `becomes` what it would be: an
    /// object that has a part-of label is not taken in.
    pub(crate) fn mark_if_taken_in(
        &self,
        object: &DesiredObject,
        live_membership: &LiveMembership,
        found: &Value,
        becomes: &Value,
        outcome: &mut ObjectOutcome,
    ) {
        let is_in_a_set = found["metadata"]["labels"][PART_OF_LABEL].is_string();
        if *live_membership == LiveMembership::NotAMember && !is_in_a_set {
            match self.policy.unowned {
                Unowned::TakenIn => self.mark(object, becomes, outcome),
                Unowned::Refused => {
                    outcome.action = Action::Failed;
                    outcome.error = Some(Message::new(EXISTS).with_hint(Refusal::UNOWNED_HINT).into());
                }
            }
        }
    }

    fn mark(&self, object: &DesiredObject, becomes: &Value, outcome: &mut ObjectOutcome) {
        let Some(live) = Live::from_object(becomes, &object.resource) else {
            return;
        };
        outcome.taken_in = true;
        outcome.reason = unowned_reason(object, &live, self.set, self.policy);
    }
}
