//! The last look into namespaces and the definitions of kinds before they are deleted.
//!
//! A run may take minutes, and whatever came into them meanwhile would be deleted with them,
//! although nobody has judged it. What counts as a loss is decided in `plan::contents`.

use super::DryRun;
use super::prune::Deleting;
use crate::discovery;
use crate::event::{Action, ObjectOutcome, Subject};
use crate::observe::{self, Live};
use crate::plan::{DataLoss, SkipReason, filled_meanwhile, is_container};

impl Deleting<'_> {
    /// What becomes of those of the objects that are not deleted, because something came into
    /// them, or nobody can say whether it did. Nothing is looked at where the user has allowed
    /// all losses beforehand.
    pub(super) async fn filled(&self, objects: impl Iterator<Item = &Live>) -> Vec<ObjectOutcome> {
        let is_careful = self.policy.data_loss == DataLoss::Refused && self.writing.dry_run == DryRun::None;
        let containers: Vec<Live> = objects
            .filter(|live| is_careful && is_container(live))
            .cloned()
            .collect();
        if containers.is_empty() {
            return Vec::new();
        }
        // Kinds may have been defined meanwhile, and objects of them made.
        let discovery = match discovery::fetch(self.server).await {
            Ok(discovery) => discovery,
            Err(error) => {
                let unseen = |live: &Live| failed(live, format!("what it holds cannot be seen: {error}"));
                return containers.iter().map(unseen).collect();
            }
        };
        let now = observe::contents(self.server, &discovery, &containers, self.writing.concurrency).await;
        let outcome = |live: &Live| {
            let (seen, now) = (self.contents.get(&live.key), now.get(&live.key)?);
            let reason = filled_meanwhile(seen, now, self.plan, self.set)?;
            Some(match &reason {
                SkipReason::FilledMeanwhile { lost, .. } if lost.is_empty() => {
                    failed(live, reason.to_string())
                }
                _ => ObjectOutcome::because(subject(live), Action::Skipped, reason.to_string()),
            })
        };
        containers.iter().filter_map(outcome).collect()
    }
}

fn subject(live: &Live) -> Subject {
    Subject::new(&live.key, &live.resource, Some(&live.uid))
}

fn failed(live: &Live, error: String) -> ObjectOutcome {
    ObjectOutcome::failed(subject(live), error)
}
