//! Prunes what left the manifests, once everything is applied: first what is desired or kept is
//! detached from what goes.

use std::collections::BTreeSet;

use super::detach::Detaching;
use super::prune::{self, Deleting, LeftInPlace};
use super::wave::News;
use super::{Execution, Progress, Sink};
use crate::event::{Action, Event, ObjectOutcome, Phase};
use crate::observe::Live;
use crate::plan::{Dependant, Detachment, Judge};

/// What became of the objects that were to be pruned.
#[derive(Debug, Default)]
pub(super) struct Pruned {
    pub(super) failed: usize,
    /// Objects that changed since the plan was made, and are kept: the record stays wide.
    pub(super) kept: usize,
}

impl Execution<'_> {
    pub(super) async fn prune_all(&self, progress: &mut Progress, sink: &mut Sink<'_>) -> Pruned {
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
        let detachments = self.detachments(&applied.dependants);
        for detachment in &detachments {
            judge.attach(detachment);
        }
        let detached = self
            .detaching()
            .detach_all(&detachments, &mut judge, pace, sink)
            .await;
        self.tell_attached(&detached, sink);
        let deleting = Deleting {
            server: self.server,
            judge: &judge,
            policy: self.policy,
            writing: self.writing,
            done: Action::Pruned,
            approval: self.approval,
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
                    ..prune::untouched(live)
                }));
            }
            let mut told = |news: News<ObjectOutcome>| {
                sink(news.counted(|outcome| {
                    pruned.failed += usize::from(outcome.action == Action::Failed);
                    pruned.kept += usize::from(outcome.action == Action::Skipped);
                }));
            };
            deleting
                .delete_wave(unwanted.into_iter(), &mut left, self.interrupt, pace, &mut told)
                .await;
        }
        pruned
    }

    pub(super) fn detaching(&self) -> Detaching<'_> {
        Detaching {
            server: self.server,
            writing: self.writing,
            interrupt: self.interrupt,
        }
    }

    /// What has to be detached: what was planned, with what was applied as it is now. An object
    /// that was not a member yet shows its owners only when it is applied.
    pub(super) fn detachments(&self, applied: &[Dependant]) -> Vec<Detachment> {
        let planned = &self.plan.dependants;
        let fresh: BTreeSet<&String> = applied.iter().map(|dependant| &dependant.uid).collect();
        let rest = planned.detachments.iter();
        let rest = rest.filter(|planned| !fresh.contains(&planned.dependant.uid));
        let applied = applied.iter().cloned();
        let applied = applied.filter_map(|dependant| planned.detachment(dependant));
        applied.chain(rest.cloned()).collect()
    }
}
