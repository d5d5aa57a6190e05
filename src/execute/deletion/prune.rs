//! Prunes objects that are no longer in the manifests, once all others are applied, or once all others are Current.

use crate::event::{Action, Ending, Event, NotDone, Phase, Sink};
use crate::execute::deletion::delete_results::{DeleteResults, Stopped};
use crate::execute::deletion::deletes::Waves;
use crate::execute::{Execution, RunState};
use crate::model::live::Live;
use crate::model::text::counted;
use crate::model::user_annotations::PruneOrder;
use crate::plan::PruneWhen;

/// The reason of each prune in a run that prunes nothing because it could not apply an object.
pub const NOT_PRUNED_AFTER_FAILURE: &str = "not pruned: an object could not be applied";

impl Execution<'_> {
    /// Prunes, unless an object could not be applied or the run has to stop.
    pub async fn prune_unless_stopped(&self, run_state: &mut RunState<'_>, sink: &mut Sink<'_>) -> Ending {
        let Some(ending) = self.ending_if_it_must_stop(run_state) else {
            return self.prune_regular_then_last(run_state, sink).await;
        };
        run_state.applied.report_held(sink);
        if ending == Ending::Incomplete && self.plan.count_prunes() > 0 {
            sink(Event::Warning(format!(
                "nothing was pruned: {} could not be applied; the next successful run prunes",
                counted(run_state.applied.failed, "object")
            )));
            sink(NotDone::event_for_all(NOT_PRUNED_AFTER_FAILURE));
        }
        ending
    }

    /// Prunes as the plan says, and waits before and after the prunes if the policy or the user's `--wait` requires it.
    ///
    /// A run that has waited before a prune also waits in the end until the pruned objects are gone: until then it does
    /// not narrow the record.
    async fn prune_regular_then_last(&self, run_state: &mut RunState<'_>, sink: &mut Sink<'_>) -> Ending {
        let mut pruned = DeleteResults::default();
        let mut has_waited = false;
        for order in [PruneOrder::Regular, PruneOrder::Last] {
            // Objects to be pruned last are pruned only if all regular prunes have succeeded.
            if pruned.failed > 0 || self.interrupt.is_requested() {
                break;
            }
            if !has_waited && self.waits_before(order) {
                has_waited = true;
                let waited = self.wait_until_ready(sink).await;
                if waited != Ending::Done {
                    return self.end_without_prune(waited, order, run_state, sink);
                }
            }
            if order == PruneOrder::Last && !self.wait_until_last_prunes_may_begin(&mut pruned, sink).await {
                break;
            }
            if has_waited {
                run_state.driver.freshness.mark_outdated();
            }
            let waves = match order {
                PruneOrder::Regular => &self.plan.prunes,
                PruneOrder::Last => &self.plan.last_prunes,
            };
            let pruning = self.prune_wave_by_wave(waves, &mut pruned, run_state, sink);
            if pruning.await.is_err() {
                break;
            }
        }
        // The waves have reported the held objects that lost owner references.
        run_state.applied.report_held(sink);
        run_state.kept = pruned.kept;
        if self.interrupt.is_requested() {
            return Ending::Interrupted;
        }
        if pruned.failed > 0 {
            return Ending::Incomplete;
        }
        match self.waits {
            Some(waits) if has_waited => waits.wait_until_pruned_are_gone(sink).await,
            _ => Ending::Done,
        }
    }

    /// Waits until all regular prunes are gone, if the run waits, and returns whether the last prunes may begin. An
    /// object that is pruned last may be the controller that removes the finalizers of the others.
    async fn wait_until_last_prunes_may_begin(
        &self,
        pruned: &mut DeleteResults,
        sink: &mut Sink<'_>,
    ) -> bool {
        if self.plan.last_prunes.is_empty() {
            return true;
        }
        let may_begin = match self.waits {
            Some(waits) => waits.wait_until_pruned_are_gone(sink).await == Ending::Done,
            None => true,
        };
        // The run fails if the last prunes may not begin.
        pruned.failed += usize::from(!may_begin);
        may_begin
    }

    /// Returns whether the objects of the manifests have to be Current before these prunes begin. Last prunes require
    /// that only in a run that waits.
    fn waits_before(&self, order: PruneOrder) -> bool {
        match order {
            PruneOrder::Regular => self.policy.prune_when == PruneWhen::Ready,
            PruneOrder::Last => self.waits.is_some() && !self.plan.last_prunes.is_empty(),
        }
    }

    async fn wait_until_ready(&self, sink: &mut Sink<'_>) -> Ending {
        match self.waits {
            Some(waits) => waits.wait_until_all_members_are_current(sink).await,
            // A run that does not wait does not know whether the objects are Current, so it does not prune.
            None => Ending::Incomplete,
        }
    }

    /// Ends a run that has applied everything and does not prune, because the objects did not become Current.
    fn end_without_prune(
        &self,
        waited: Ending,
        order: PruneOrder,
        run_state: &mut RunState<'_>,
        sink: &mut Sink<'_>,
    ) -> Ending {
        run_state.applied.report_held(sink);
        if waited == Ending::Interrupted {
            return Ending::Interrupted;
        }
        let (what, not_pruned) = match order {
            PruneOrder::Regular => ("nothing was pruned".to_owned(), self.plan.count_prunes()),
            PruneOrder::Last => {
                let last = self.plan.last_prunes.iter().map(Vec::len).sum();
                let were = if last == 1 { "was" } else { "were" };
                let what = format!(
                    "{} with PruneLast=true {were} not pruned",
                    counted(last, "object")
                );
                (what, last)
            }
        };
        if not_pruned > 0 {
            sink(Event::Warning(format!(
                "{what}, because not all objects of the manifests are Current; the next run prunes what left the manifests"
            )));
            sink(NotDone::event_for_all(
                "not pruned, because not all objects of the manifests are Current",
            ));
        }
        Ending::Incomplete
    }

    /// Prunes these waves one after the other.
    async fn prune_wave_by_wave(
        &self,
        waves: &[Vec<Live>],
        pruned: &mut DeleteResults,
        run_state: &mut RunState<'_>,
        sink: &mut Sink<'_>,
    ) -> Result<(), Stopped> {
        if waves.is_empty() {
            return Ok(());
        }
        sink(Event::Phase {
            phase: Phase::Pruning,
            total: waves.iter().map(Vec::len).sum(),
        });
        let RunState { applied, driver, .. } = run_state;
        let owners = waves.iter().flatten().map(|live| &live.key).collect();
        let waves = Waves {
            deletes: waves.iter().map(|wave| wave.iter().collect()).collect(),
            action: Action::Pruned,
            parent: Some(self.parent_resource),
            desired_uids: applied.uids.clone(),
        };
        let judging = self.judge_and_remove_owner_references(&waves, &owners, pruned, driver, sink);
        let judge = match judging.await {
            Ok(judge) => judge,
            Err(not_judged) => {
                // Before the other objects are reported as not pruned.
                applied.report_held(sink);
                return Err(pruned.fail_remaining(&not_judged, waves.count(), waves.action, sink));
            }
        };
        applied.report_detached(&pruned.detached, sink);
        self.delete_waves_as_judged(&waves, judge, pruned, driver, sink)
            .await
    }
}
