//! Carries out the graph of deletes: the prunes of a run, or the members of a set.
//!
//! Before the first delete, the deletes are judged again (`judge_again`), and references to pruned objects are removed
//! from objects that are kept: otherwise the garbage collector would delete the kept objects. After a wait, or if they
//! were judged some time ago, the deletes are judged once more: what a member has come to need is kept, and the delete of
//! an object fails if an object that is kept names it as its owner. Their order stays as planned.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use futures_util::future::LocalBoxFuture;

use crate::cluster::apiserver::UnreachableWebhook;
use crate::event::{Action, Event, ObjectOutcome, Sink};
use crate::execute::Execution;
use crate::execute::deletion::delete::{outcome_if_container_holds_kept, skipped_outcome};
use crate::execute::deletion::delete_results::{DeleteResults, Stopped};
use crate::execute::deletion::judge_again::{Elapsed, NotJudged};
use crate::execute::freshness::Freshness;
use crate::execute::members::reply::MemberReply;
use crate::execute::schedule::drive::{AnswerSender, Driver, Work};
use crate::execute::schedule::{ActionEnd, Lane, Skipped};
use crate::model::identity::ObjectKey;
use crate::model::live::Live;
use crate::model::resource::Resource;
use crate::plan::{DeleteAction, Graph, Judge, NodeId};
use crate::wait::{Lookup, Target};

/// Objects to delete, wave by wave.
pub struct Waves<'l> {
    pub deletes: Vec<Vec<&'l Live>>,
    /// The action reported for a deleted object.
    pub action: Action,
    /// The resource of the parent; `None` if the set has none any more, and so no record by which its members can be
    /// judged again.
    pub parent: Option<&'l Arc<Resource>>,
    /// The UIDs of the objects that the run has applied.
    pub desired_uids: HashSet<String>,
}

impl Waves<'_> {
    /// Returns the number of objects to delete.
    pub(super) fn count(&self) -> usize {
        self.deletes.iter().map(Vec::len).sum()
    }
}

impl Execution<'_> {
    /// Judges the deletes again, and removes the owner references to `owners` because of which the garbage collector would
    /// delete kept objects: the results name the objects that have lost owner references. Returns the judge of the
    /// deletes.
    pub(super) async fn judge_and_remove_owner_references(
        &self,
        waves: &Waves<'_>,
        owners: &BTreeSet<&ObjectKey>,
        deleted: &mut DeleteResults,
        driver: &mut Driver<'_>,
        sink: &mut Sink<'_>,
    ) -> Result<Judge<'_>, NotJudged> {
        let elapsed = if driver.freshness.is_current() {
            Elapsed::Short
        } else {
            Elapsed::Long
        };
        let judging = self.judge_deletes_again(waves, elapsed, deleted);
        let judged = driver.freshness.reread(judging).await?;
        let mut judge = self.judge_of_deletes(&judged, waves.desired_uids.clone());
        let detachments = self.needed_detachments(&judged.dependents, owners);
        let detached = self
            .carry_out_allowed_detachments(&detachments, &mut judge, driver, sink)
            .await;
        deleted.attached = judged.dependents.without(&detached);
        deleted.detached.extend(detached);
        Ok(judge)
    }

    /// Deletes the objects of the waves, except for those that `judge` keeps.
    pub(super) async fn delete_waves_as_judged(
        &self,
        waves: &Waves<'_>,
        judge: Judge<'_>,
        deleted: &mut DeleteResults,
        driver: &mut Driver<'_>,
        sink: &mut Sink<'_>,
    ) -> Result<(), Stopped> {
        let graph = self.plan.build_delete_graph(waves.deletes.iter().cloned());
        let numbered = waves.deletes.iter().enumerate();
        let work = Deletes {
            wave_by_uid: numbered
                .flat_map(|(index, wave)| wave.iter().map(move |live| (&*live.uid, index)))
                .collect(),
            execution: self,
            waves,
            judge: RefCell::new(Rc::new(judge)),
            containers_to_keep: RefCell::default(),
            listed_containers: RefCell::default(),
            deleted: RefCell::new(deleted),
            freshness: Rc::clone(&driver.freshness),
            last_wave_with_undeleted: Cell::default(),
            not_judged: RefCell::default(),
            without_outcome: Cell::new(waves.count()),
        };
        driver.run(&graph, &work, sink).await;
        let (not_judged, objects) = (work.not_judged.take(), work.without_outcome.get());
        match not_judged {
            None => Ok(()),
            Some(not_judged) => Err(deleted.fail_remaining(&not_judged, objects, waves.action, sink)),
        }
    }
}

/// The deletes of a run.
struct Deletes<'r, 'a> {
    execution: &'r Execution<'a>,
    waves: &'r Waves<'r>,
    judge: RefCell<Rc<Judge<'r>>>,
    /// Outcomes of containers that are kept because of what they hold now, by UID.
    containers_to_keep: RefCell<BTreeMap<String, ObjectOutcome>>,
    /// The containers whose contents have been listed. They are listed again with the members.
    listed_containers: RefCell<Vec<&'r Live>>,
    deleted: RefCell<&'r mut DeleteResults>,
    /// Notes whether the members have to be read again before the next delete.
    freshness: Rc<Freshness>,
    /// The index of each object's wave, by UID.
    wave_by_uid: HashMap<&'r str, usize>,
    /// The last wave in which an object was not deleted that the judgement counts as one to delete.
    last_wave_with_undeleted: Cell<Option<usize>>,
    /// The reason why no further delete begins; `None` as long as deletes can be judged.
    not_judged: RefCell<Option<NotJudged>>,
    /// The number of deletes without an outcome.
    without_outcome: Cell<usize>,
}

/// The answer to an action.
enum DeleteAnswer {
    Deleted(Box<MemberReply>),
    /// The object was not deleted: the run has applied it under another API group. Objects that it depends on are not
    /// deleted either.
    AppliedUnderOtherGroup,
    /// The object was not deleted: the delete could not be judged again, or the user has stopped the run by then.
    NotSent,
    /// The contents of the containers were listed, or the object is gone.
    Done,
    /// The object is not gone yet, or it is kept.
    NotGone,
}

impl<'r> Work for Deletes<'r, '_> {
    type Action = DeleteAction<'r>;
    type Answer = DeleteAnswer;

    fn lane(&self, action: &DeleteAction<'r>) -> Lane {
        match action {
            DeleteAction::Delete(_) => Lane::Write,
            DeleteAction::ListContents(_) => Lane::Wait,
            DeleteAction::AwaitGone(_) => Lane::WaitTogether,
        }
    }

    fn key<'k>(&'k self, action: &'k DeleteAction<'r>) -> &'k ObjectKey {
        match action {
            DeleteAction::Delete(live) | DeleteAction::AwaitGone(live) => &live.key,
            DeleteAction::ListContents(containers) => &containers[0].key,
        }
    }

    async fn perform(&self, action: &DeleteAction<'r>) -> DeleteAnswer {
        match action {
            DeleteAction::Delete(live) => self.delete_if_still_allowed(live).await,
            DeleteAction::ListContents(containers) => {
                self.judge_again_if_outdated().await;
                self.listed_containers.borrow_mut().extend(containers);
                self.note_containers_that_gained_objects(containers).await;
                DeleteAnswer::Done
            }
            DeleteAction::AwaitGone(_) => unreachable!("`wait_together` carries out these waits"),
        }
    }

    fn unreachable_webhook<'w>(&self, answer: &'w DeleteAnswer) -> Option<&'w UnreachableWebhook> {
        match answer {
            DeleteAnswer::Deleted(reply) => reply.webhook.as_ref(),
            _ => None,
        }
    }

    fn answer_known_without_waiting(&self, action: &DeleteAction<'r>) -> Option<DeleteAnswer> {
        match action {
            // An object that was kept will not be gone.
            DeleteAction::AwaitGone(live) if self.deleted.borrow().kept_objects.contains(&live.key) => {
                Some(DeleteAnswer::NotGone)
            }
            _ => None,
        }
    }

    fn wait_together<'s>(
        &'s self,
        actions: Vec<(NodeId, &'s DeleteAction<'r>)>,
        found: AnswerSender<DeleteAnswer>,
        sink: &'s RefCell<&mut Sink<'_>>,
    ) -> LocalBoxFuture<'s, ()> {
        Box::pin(self.await_gone(actions, found, sink))
    }

    fn take_answer(&self, action: &DeleteAction<'r>, answer: DeleteAnswer, sink: &mut Sink<'_>) -> ActionEnd {
        match (action, answer) {
            (DeleteAction::Delete(live), DeleteAnswer::Deleted(reply)) => {
                let action = reply.outcome.action;
                self.report(reply.outcome, sink);
                if action == self.waves.action {
                    return ActionEnd::Done;
                }
                self.last_wave_with_undeleted
                    .set(Some(self.wave_by_uid[&*live.uid]));
                ActionEnd::Failed
            }
            (DeleteAction::Delete(live), DeleteAnswer::AppliedUnderOtherGroup) => {
                let outcome = skipped_outcome(live, "applied under another API group");
                // The object is not counted as kept: the record covers it under its other API group, so the record may
                // be narrowed. It is noted as kept, so that its namespace or CRD is not deleted.
                self.without_outcome.update(|count| count - 1);
                self.deleted.borrow_mut().note_kept_unless_deleted(&outcome);
                sink(Event::Object(outcome));
                ActionEnd::Failed
            }
            (_, DeleteAnswer::NotSent) => ActionEnd::Stop,
            (_, DeleteAnswer::NotGone) => ActionEnd::Failed,
            _ => ActionEnd::Done,
        }
    }

    fn report_skipped(&self, skipped: &[Skipped], graph: &Graph<DeleteAction<'r>>, sink: &mut Sink<'_>) {
        for Skipped { action, because, .. } in skipped {
            let Some(DeleteAction::Delete(live)) = graph.action(*action) else {
                continue;
            };
            let Some(DeleteAction::AwaitGone(dependent)) = graph.action(*because) else {
                continue;
            };
            let is_kept = self.deleted.borrow().kept_objects.contains(&dependent.key);
            let state = if is_kept { "is kept" } else { "is not gone yet" };
            let reason = format!("{} depends on it, and {state}", dependent.key);
            self.report(skipped_outcome(live, reason), sink);
            if !is_kept {
                // The wait for the dependent has timed out, so the skipped object counts as failed, not as kept.
                let mut deleted = self.deleted.borrow_mut();
                deleted.kept -= 1;
                deleted.failed += 1;
            }
        }
    }
}

impl Deletes<'_, '_> {
    /// Deletes an object, unless it is a container of an object that was kept, or one that has gained objects.
    async fn delete_if_still_allowed(&self, live: &Live) -> DeleteAnswer {
        // What was not deleted in an earlier wave may keep others. Within a wave, nothing waits for anything.
        if self
            .last_wave_with_undeleted
            .get()
            .is_some_and(|wave| wave < self.wave_by_uid[&*live.uid])
        {
            self.last_wave_with_undeleted.set(None);
            self.freshness.mark_outdated();
        }
        loop {
            self.judge_again_if_outdated().await;
            if self.not_judged.borrow().is_some() || self.execution.interrupt.is_requested() {
                return DeleteAnswer::NotSent;
            }
            let judge = Rc::clone(&self.judge.borrow());
            if judge.is_desired(live) {
                return DeleteAnswer::AppliedUnderOtherGroup;
            }
            if let Some(outcome) = self.outcome_if_kept_for_its_contents(live) {
                return DeleteAnswer::Deleted(Box::new(MemberReply::from_outcome(outcome)));
            }
            let context = self.execution.delete_context(self.waves.action, &judge);
            // Otherwise, the request has waited until its judgement was outdated.
            if let Some(reply) = context.delete(live, self.freshness.holds_until()).await {
                return DeleteAnswer::Deleted(Box::new(reply));
            }
        }
    }

    /// Returns the outcome of a container that is kept because of an object in it; `None` for all other objects.
    fn outcome_if_kept_for_its_contents(&self, live: &Live) -> Option<ObjectOutcome> {
        outcome_if_container_holds_kept(&self.deleted.borrow().kept_objects, live)
            .or_else(|| self.containers_to_keep.borrow().get(&live.uid).cloned())
    }

    /// Judges the deletes again if what was read last is outdated, and lists the contents of containers again.
    async fn judge_again_if_outdated(&self) {
        let judge_again = async || {
            tokio::select! {
                biased;
                () = self.execution.interrupt.wait_until_requested() => {}
                judged = self.judge_again() => {
                    self.not_judged.replace(judged.err());
                }
            }
        };
        self.freshness.reread_if_outdated(judge_again).await;
    }

    async fn judge_again(&self) -> Result<(), NotJudged> {
        // What ends in that time is noted in the results themselves.
        let deleted = DeleteResults::clone(&self.deleted.borrow());
        let judging = self
            .execution
            .judge_deletes_again(self.waves, Elapsed::Long, &deleted);
        let judged = judging.await?;
        let judge = self
            .execution
            .judge_of_deletes(&judged, self.waves.desired_uids.clone());
        self.judge.replace(Rc::new(judge));
        self.deleted.borrow_mut().attached = judged.dependents;
        let containers = self.listed_containers.borrow().clone();
        self.note_containers_that_gained_objects(&containers).await;
        Ok(())
    }

    /// Lists what these containers hold, and notes those that have gained objects: `delete_if_still_allowed` keeps
    /// them. A container that is deleted or kept, or that holds a kept object, need not be listed.
    async fn note_containers_that_gained_objects(&self, containers: &[&Live]) {
        let mut deletable = containers.to_vec();
        {
            let deleted = self.deleted.borrow();
            deleted.note_not_deleted(self.execution.plan, Rc::make_mut(&mut self.judge.borrow_mut()));
            deletable.retain(|live| {
                !deleted.uids.contains(&live.uid) && !deleted.kept_objects.contains_object_or_content(live)
            });
        }
        let judge = Rc::clone(&self.judge.borrow());
        let context = self.execution.delete_context(self.waves.action, &judge);
        for outcome in context
            .outcomes_of_containers_to_keep(deletable.into_iter())
            .await
        {
            if let Some(uid) = outcome.subject.uid.clone() {
                self.containers_to_keep.borrow_mut().insert(uid, outcome);
            }
        }
    }

    fn report(&self, outcome: ObjectOutcome, sink: &mut Sink<'_>) {
        self.without_outcome.update(|count| count - 1);
        self.deleted
            .borrow_mut()
            .count_and_report(outcome, self.waves.action, sink);
    }

    /// Waits until these objects, which depend on objects still to be deleted, are gone, and sends the result for each.
    /// A run without such waits (`Execution::dependencies`) sends `NotGone` for each.
    async fn await_gone(
        &self,
        actions: Vec<(NodeId, &DeleteAction<'_>)>,
        found: AnswerSender<DeleteAnswer>,
        sink: &RefCell<&mut Sink<'_>>,
    ) {
        let waits = actions.into_iter().filter_map(|(id, action)| match action {
            DeleteAction::AwaitGone(live) => Some((id, *live)),
            _ => None,
        });
        let awaited: Vec<(NodeId, &Live)> = waits.collect();
        let targets = awaited
            .iter()
            .map(|(_, live)| Target::gone(live, Lookup::LabelThenName));
        let done_before = "what they depend on was not deleted";
        let not_gone = match self.execution.dependencies {
            Some(settings) => {
                let mut sink = |event| (sink.borrow_mut())(event);
                settings
                    .wait_and_list_missed(targets.collect(), done_before, &mut sink)
                    .await
            }
            None => awaited.iter().map(|(_, live)| live.key.clone()).collect(),
        };
        for (id, live) in awaited {
            let is_gone = !not_gone.contains(&live.key);
            let answer = if is_gone {
                DeleteAnswer::Done
            } else {
                DeleteAnswer::NotGone
            };
            // The receiver lives as long as the run, so sending does not fail.
            let _ = found.send((id, answer));
        }
    }
}
