//! The judgement of a member that has to be deleted so that it can be created again: by the rules for
//! prunes, except that the manifests hold it.

use super::Judge;
use crate::model::live::Live;
use crate::plan::recreation::loses_data;
use crate::plan::{RecreationObstacle, Refusal, Risk, SkipReason, prune_rules};

impl Judge<'_> {
    /// Returns the reason for which the live object is not deleted to be created again; `None` if it may
    /// be. The plan of this judge deletes the object.
    ///
    /// An object that is already being deleted has no obstacle.
    pub fn obstacle_to_recreation(&self, live: &Live) -> Option<RecreationObstacle> {
        if self.set.is_parent(live) {
            return Some(RecreationObstacle::Parent);
        }
        match &live.part_of {
            None => return Some(RecreationObstacle::NotAMember),
            Some(id) if id != self.set.id.as_str() => {
                return Some(RecreationObstacle::OfAnotherSet(id.clone()));
            }
            Some(_) => {}
        }
        match prune_rules::reason_to_stay(live, self.set, &self.policy.appliers) {
            None | Some(SkipReason::Terminating { .. }) => {}
            Some(reason) => return Some(RecreationObstacle::Kept(reason)),
        }
        if self.policy.data_loss == Risk::Refused && loses_data(&live.key.group_kind) {
            return Some(RecreationObstacle::LosesData);
        }
        let refusal = self.refusals(live).into_iter().next()?;
        Some(match refusal {
            Refusal::OwnsBound { dependents, .. } => RecreationObstacle::Owns(dependents, [].into()),
            Refusal::OwnsDependents {
                dependents,
                keep_annotations,
                ..
            } => RecreationObstacle::Owns(dependents, keep_annotations),
            Refusal::PrunesParent { .. } => RecreationObstacle::ParentOfAnotherSet,
            _ => RecreationObstacle::LosesData,
        })
    }
}
