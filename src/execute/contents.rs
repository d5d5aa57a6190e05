//! The last look into namespaces and the definitions of kinds before they are deleted.
//!
//! A run may take minutes, and whatever came into them meanwhile would be deleted with them,
//! although nobody has judged it. What counts as a loss is decided in `plan::contents`.

use std::collections::BTreeMap;

use super::DryRun;
use super::prune::Deleting;
use crate::discovery::Discovery;
use crate::event::{Action, ObjectOutcome, Subject};
use crate::identity::ObjectKey;
use crate::observe::{self, Contents, Live};
use crate::plan::{DataLoss, filled_meanwhile, is_container};

/// What namespaces and definitions of kinds held when their deletion was judged.
#[derive(Clone, Copy)]
pub struct Judged<'a> {
    /// What the server serves.
    pub discovery: &'a Discovery,
    /// What each of them held.
    pub contents: &'a BTreeMap<ObjectKey, Contents>,
}

impl Deleting<'_> {
    /// What becomes of those of the objects that are not deleted, because something came into
    /// them. Nothing is looked at where the user has allowed all losses beforehand.
    pub(super) async fn filled(&self, objects: impl Iterator<Item = &Live>) -> Vec<ObjectOutcome> {
        let is_careful = self.policy.data_loss == DataLoss::Refused && self.writing.dry_run == DryRun::None;
        let containers: Vec<Live> = objects
            .filter(|live| is_careful && is_container(live))
            .cloned()
            .collect();
        let Judged { discovery, contents } = self.judged;
        let now = observe::contents(self.server, discovery, &containers, self.writing.concurrency).await;
        let outcome = |live: &Live| {
            let reason = filled_meanwhile(contents.get(&live.key), now.get(&live.key)?, self.plan, self.set)?;
            let subject = Subject::new(&live.key, &live.resource, Some(&live.uid));
            let reason = reason.to_string();
            Some(ObjectOutcome::because(subject, Action::Skipped, reason))
        };
        containers.iter().filter_map(outcome).collect()
    }
}
