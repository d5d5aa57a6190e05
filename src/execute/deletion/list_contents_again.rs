//! Lists namespaces and kinds of CRDs again right before they are deleted.
//!
//! A run may take minutes, and objects created in that time would be deleted with them
//! without a judgement. `plan::data_loss` decides what counts as a loss, `plan::delete_graph` and `deletes` which
//! containers of a run are listed.

use std::collections::BTreeMap;

use crate::cluster::discovery::{self, DiscoveryError};
use crate::event::{Action, ObjectOutcome, Subject};
use crate::execute::deletion::delete::DeleteContext;
use crate::model::containers::Contents;
use crate::model::identity::ObjectKey;
use crate::model::live::Live;
use crate::plan::{SkipReason, is_container};
use crate::read::{self, ContentsError, KindWait};

impl DeleteContext<'_> {
    /// Lists what these containers hold, and returns an outcome for each that is not deleted, because it has gained
    /// objects or its contents are unknown. A keep annotation counts even if the user has allowed all losses
    /// beforehand.
    pub async fn keep_filled(&self, objects: impl Iterator<Item = &Live>) -> Vec<ObjectOutcome> {
        let containers: Vec<Live> = objects.filter(|live| is_container(live)).cloned().collect();
        if containers.is_empty() {
            return Vec::new();
        }
        let now = match self.look_into(&containers).await {
            Ok(now) => now,
            Err(unseen) => {
                let text = format!("its contents cannot be listed: {unseen}");
                return containers.iter().map(|live| failed(live, text.clone())).collect();
            }
        };
        let kept = containers.iter().filter_map(|live| {
            let reason = self.judge.reason_to_keep_filled(live, now.get(&live.key)?)?;
            Some(match &reason {
                SkipReason::FilledSincePlan { lost, .. } if lost.is_empty() => {
                    failed(live, reason.to_string())
                }
                _ => ObjectOutcome::with_reason(subject(live), Action::Skipped, reason.to_string()),
            })
        });
        kept.collect()
    }

    async fn look_into(&self, containers: &[Live]) -> Result<BTreeMap<ObjectKey, Contents>, Unlisted> {
        // New kinds and objects of them may have been created.
        let mut discovery = discovery::fetch(self.server).await?;
        let wait = KindWait::unreported();
        let contents = read::contents(
            self.server,
            &mut discovery,
            containers,
            self.writing.concurrency,
            &wait,
        );
        Ok(contents.await?)
    }
}

/// The contents could not be listed.
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
