//! Reports objects that are taken in: they existed, were in no set, and become members by this run.

use serde_json::Value;

use crate::cluster::apiserver::Reply;
use crate::event::{Action, ObjectOutcome};
use crate::execute::Execution;
use crate::execute::members::apply_as_read::CREATED_OUTSIDE_SET;
use crate::manifest::desired::DesiredObject;
use crate::model::applyset::PART_OF_LABEL;
use crate::model::live::Live;
use crate::model::message::Message;
use crate::plan::{LiveMembership, Refusal, Unowned, describe_taken_in_object};

/// Error for an object that was taken in despite `--only-new-or-owned`.
const PRECONDITION_IGNORED: &str =
    "it existed outside the set and is a member now: the server ignored the resourceVersion precondition";

impl Execution<'_> {
    /// Marks the outcome of an object that an apply has taken in; `reply` is the answer to that apply.
    pub(super) fn mark_taken_in_or_failed(
        &self,
        object: &DesiredObject,
        reply: &Reply,
        outcome: &mut ObjectOutcome,
    ) {
        outcome.action = Action::Configured;
        outcome.taken_in = true;
        outcome.reason = String::new();
        self.set_taken_in_with_reason(object, &reply.json_or_null(), outcome);
        if self.policy.unowned == Unowned::Refused {
            outcome.fail(PRECONDITION_IGNORED);
        }
    }

    /// In a dry run: marks the outcome as taken in if the run would take in the object, or as failed if the policy
    /// forbids that. `live` is the live object, `predicted` what the run would make of it. An object with a part-of
    /// label is in a set, so it is not taken in.
    pub fn mark_if_predicted_taken_in(
        &self,
        object: &DesiredObject,
        live_membership: &LiveMembership,
        live: &Value,
        predicted: &Value,
        outcome: &mut ObjectOutcome,
    ) {
        let is_in_a_set = live["metadata"]["labels"][PART_OF_LABEL].is_string();
        if *live_membership == LiveMembership::NotAMember && !is_in_a_set {
            match self.policy.unowned {
                Unowned::TakenIn | Unowned::Shown => {
                    self.set_taken_in_with_reason(object, predicted, outcome);
                }
                Unowned::Refused => {
                    outcome.fail(Message::new(CREATED_OUTSIDE_SET).with_hint(Refusal::UNOWNED_HINT));
                }
            }
        }
    }

    fn set_taken_in_with_reason(&self, object: &DesiredObject, becomes: &Value, outcome: &mut ObjectOutcome) {
        let Some(live) = Live::from_object(becomes, &object.resource) else {
            return;
        };
        outcome.taken_in = true;
        outcome.reason = describe_taken_in_object(object, &live, self.set, self.policy);
    }
}
