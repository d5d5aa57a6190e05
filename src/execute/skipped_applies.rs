//! Explains why objects are not applied after another action of their graph has failed: in a run, and in its dry run.

use crate::execute::Execution;
use crate::execute::schedule::Skipped;
use crate::model::text::first_names_and_more;
use crate::plan::{Apply, ApplyAction, Graph};

const UNDEFINED: &str = "its CustomResourceDefinition was not applied";
const NOT_SERVED: &str = "its kind is not served";

/// Applies that are skipped because of the same action.
pub(super) struct SkippedApplies<'p> {
    pub(super) applies: Vec<&'p Apply>,
    /// The error about all of them; `None` if the failed action was reported with an error of its own.
    pub(super) error: Option<String>,
    /// The reason of each of them.
    pub(super) reason: String,
}

impl Execution<'_> {
    /// Groups skipped applies by the action because of which they are skipped, in the order of these actions. Skipped
    /// waits are left out.
    pub(super) fn group_skipped_applies<'p>(
        &self,
        skipped: &[Skipped],
        graph: &Graph<ApplyAction<'p>>,
    ) -> Vec<SkippedApplies<'p>> {
        let mut groups: Vec<(Skipped, Vec<&'p Apply>)> = Vec::new();
        for skipped in skipped {
            let Some(ApplyAction::Apply(apply)) = graph.action(skipped.action) else {
                continue;
            };
            match groups
                .iter_mut()
                .find(|(first, _)| first.because == skipped.because)
            {
                Some((_, applies)) => applies.push(apply),
                None => groups.push((*skipped, vec![apply])),
            }
        }
        groups
            .into_iter()
            .filter_map(|(first, applies)| self.explain_skipped_applies(applies, first, graph))
            .collect()
    }

    fn explain_skipped_applies<'p>(
        &self,
        applies: Vec<&'p Apply>,
        Skipped {
            because,
            has_cause_begun,
            ..
        }: Skipped,
        graph: &Graph<ApplyAction<'p>>,
    ) -> Option<SkippedApplies<'p>> {
        let (key, state) = match graph.action(because)? {
            ApplyAction::AwaitKind(_) => {
                let reason = if has_cause_begun { NOT_SERVED } else { UNDEFINED };
                return Some(SkippedApplies {
                    applies,
                    error: None,
                    reason: reason.to_owned(),
                });
            }
            ApplyAction::AwaitCurrent(key) if has_cause_begun => (*key, "is not Current"),
            action => (self.key_of_action(action), "was not applied"),
        };
        let keys = applies.iter().map(|apply| self.key_of(apply));
        Some(SkippedApplies {
            error: Some(format!(
                "{key} {state}, so these objects that depend on it are not applied: {}",
                first_names_and_more(keys)
            )),
            reason: format!("it depends on {key}, which {state}"),
            applies,
        })
    }
}
