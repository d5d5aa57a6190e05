//! Prunes objects that are no longer in the manifests, once everything is applied.
//!
//! Before the first delete, owner references are read again, because the garbage collector deletes
//! by them (`dependents`).

use std::collections::BTreeSet;

use crate::event::{Action, Event, NotDone, ObjectOutcome, Phase};
use crate::execute::deletion::dependents::DependentsLook;
use crate::execute::deletion::detach::Detaching;
use crate::execute::deletion::object::{self, Deleting, LeftInPlace};
use crate::execute::wave::WaveEvent;
use crate::execute::{Applied, Execution, Progress, Sink};
use crate::model::live::Live;
use crate::model::settings::DryRun;
use crate::plan::{Dependents, Detachment, Judge};

/// Outcome of the objects that were to be pruned.
#[derive(Debug, Default)]
pub(crate) struct Pruned {
    pub(crate) failed: usize,
    /// Objects that changed since the plan was made, and are kept: the record stays wide.
    pub(crate) kept: usize,
}

impl Execution<'_> {
    pub(crate) async fn prune_all(&self, progress: &mut Progress, sink: &mut Sink<'_>) -> Pruned {
        let mut pruned = Pruned::default();
        if self.plan.deletions() == 0 {
            return pruned;
        }
        sink(Event::Phase {
            phase: Phase::Pruning,
            total: self.plan.deletions(),
        });
        let Progress { applied, pace, .. } = progress;
        let desired_uids = applied.uids.clone();
        let mut judge = Judge::of_plan(
            self.set,
            self.policy,
            self.desired,
            self.contents,
            self.plan,
            desired_uids,
        );
        let Some(dependents) = self.dependents(applied, sink).await else {
            pruned.failed = self.plan.deletions();
            return pruned;
        };
        judge.renew(&dependents);
        // Nothing is detached that a bound plan does not name.
        let is_approved = |detachment: &&Detachment| {
            let is_bound = self.plan.preconditions.are_bound();
            !is_bound || self.plan.dependents.includes(detachment)
        };
        let approved = dependents.detachments.iter().filter(is_approved).cloned();
        let approved: Vec<Detachment> = approved.collect();
        let detaching = Detaching {
            server: self.server,
            writing: self.writing,
            interrupt: self.interrupt,
        };
        let detached = detaching.detach_all(&approved, &mut judge, pace, sink).await;
        applied.report_held(&detached, sink);
        let deleting = Deleting {
            server: self.server,
            judge: &judge,
            writing: self.writing,
            done: Action::Pruned,
            preconditions: &self.plan.preconditions,
        };
        let mut left = LeftInPlace::default();
        for wave in &self.plan.prunes {
            // Two groups can serve one object: what was just applied under one name is not
            // deleted under the other.
            let (wanted, unwanted): (Vec<&Live>, Vec<&Live>) =
                wave.iter().partition(|live| judge.is_desired(live));
            for live in wanted {
                sink(Event::Object(ObjectOutcome {
                    reason: "applied under another API group".to_owned(),
                    ..object::untouched(live)
                }));
            }
            let mut on_event = |news: WaveEvent<ObjectOutcome>| {
                sink(news.counted(|outcome| {
                    pruned.failed += usize::from(outcome.action == Action::Failed);
                    pruned.kept += usize::from(outcome.action == Action::Skipped);
                }));
            };
            deleting
                .delete_wave(
                    unwanted.into_iter(),
                    &mut left,
                    self.interrupt,
                    pace,
                    &mut on_event,
                )
                .await;
        }
        pruned
    }

    /// What the prunes would do to desired and kept objects as they are now; `None` if that could
    /// not be read. A dry run answers from the plan, which is as old as its answers.
    async fn dependents(&self, applied: &mut Applied, sink: &mut Sink<'_>) -> Option<Dependents> {
        if self.writing.dry_run != DryRun::None {
            return Some(self.plan.dependents.clone());
        }
        let look = DependentsLook {
            server: self.server,
            set: self.set,
            parent: Some(self.parent_resource),
            plan: self.plan,
            desired: self.desired,
            contents: self.contents,
            places: self.places,
            concurrency: self.writing.concurrency,
        };
        match Box::pin(look.dependents()).await {
            Ok(dependents) => Some(dependents),
            Err(unread) => {
                applied.report_held(&BTreeSet::new(), sink);
                sink(Event::failure(format!("{unread}; nothing was pruned")));
                sink(NotDone::all("not pruned: owner references cannot be read"));
                None
            }
        }
    }
}
