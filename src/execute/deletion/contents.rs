//! The last look into namespaces and the definitions of kinds before they are deleted.
//!
//! A run may take minutes, and whatever came into them meanwhile would be deleted with them,
//! although nobody has judged it. What counts as a loss is decided in `plan::data_loss`.

use std::collections::BTreeMap;

use crate::cluster::discovery::{self, DiscoveryError};
use crate::event::{Action, ObjectOutcome, Subject};
use crate::execute::deletion::object::Deleting;
use crate::model::contents::Contents;
use crate::model::identity::ObjectKey;
use crate::model::live::Live;
use crate::model::settings::DryRun;
use crate::plan::{SkipReason, is_container};
use crate::read::{self, ContentsError, KindWait};

impl Deleting<'_> {
    /// Returns the outcome of each object that is not deleted, because something came into it or that is
    /// unknown. A keep annotation counts even if the user has allowed all losses beforehand.
    pub(crate) async fn filled(&self, objects: impl Iterator<Item = &Live>) -> Vec<ObjectOutcome> {
        let is_written = self.writing.dry_run == DryRun::None;
        let containers: Vec<Live> = objects
            .filter(|live| is_written && is_container(live))
            .cloned()
            .collect();
        if containers.is_empty() {
            return Vec::new();
        }
        let now = match Box::pin(self.look_into(&containers)).await {
            Ok(now) => now,
            Err(unseen) => {
                let outcome_event = |live| failed(live, format!("what it holds cannot be seen: {unseen}"));
                return containers.iter().map(outcome_event).collect();
            }
        };
        let outcome = |live: &Live| {
            let reason = self.judge.filled(live, now.get(&live.key)?)?;
            Some(match &reason {
                SkipReason::FilledSincePlan { lost, .. } if lost.is_empty() => {
                    failed(live, reason.to_string())
                }
                _ => ObjectOutcome::because(subject(live), Action::Skipped, reason.to_string()),
            })
        };
        containers.iter().filter_map(outcome).collect()
    }

    async fn look_into(&self, containers: &[Live]) -> Result<BTreeMap<ObjectKey, Contents>, Unlisted> {
        // Kinds may have been defined meanwhile, and objects of them made.
        let mut discovery = discovery::fetch(self.server).await?;
        let wait = KindWait::unreported();
        let contents = read::contents(
            self.server,
            &mut discovery,
            containers,
            self.writing.concurrency,
            &wait,
        );
        Ok(Box::pin(contents).await?)
    }
}

/// Nobody can say what there is.
#[derive(Debug, thiserror::Error)]
enum Unlisted {
    #[error(transparent)]
    Discovery(#[from] DiscoveryError),
    #[error(transparent)]
    Contents(#[from] ContentsError),
}

fn subject(live: &Live) -> Subject {
    Subject::new(&live.key, &live.resource, Some(&live.uid))
}

fn failed(live: &Live, error: String) -> ObjectOutcome {
    ObjectOutcome::failed(subject(live), error)
}
