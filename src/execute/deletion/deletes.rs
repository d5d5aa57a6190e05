//! Carries out the graph of deletes: the prunes of a run, or the members of a set.
//!
//! Before the first delete, owner references are read again (`reread_dependents`), and references to pruned objects are
//! removed from objects that are kept: otherwise the garbage collector would delete the kept objects. After a wait, or if
//! they were judged some time ago, the deletes are judged again (`judge_again`): what a member has come to need is kept,
//! and the delete of an object fails if an object that is kept names it as its owner.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::iter;
use std::rc::Rc;
use std::sync::Arc;

use futures_util::future::LocalBoxFuture;

use crate::cluster::apiserver::UnreachableWebhook;
use crate::event::{Action, Event, ObjectOutcome, Sink, Subject};
use crate::execute::Execution;
use crate::execute::deletion::delete::skipped_outcome_without_reason;
use crate::execute::deletion::delete_results::{DeleteResults, Stopped};
use crate::execute::deletion::judge_again::NotJudged;
use crate::execute::freshness::Freshness;
use crate::execute::members::reply::{MemberReply, reply_from_outcome};
use crate::execute::schedule::drive::{AnswerSender, Driver, Work};
use crate::execute::schedule::{ActionEnd, Lane, Schedule, Skipped};
use crate::model::identity::ObjectKey;
use crate::model::live::Live;
use crate::model::resource::Resource;
use crate::plan::{ActionId, DeleteAction, Graph, Judge};
use crate::wait::{Lookup, Target};

/// Objects to delete, wave by wave.
pub struct Waves<'l> {
    pub deletes: Vec<Vec<&'l Live>>,
    /// Objects to delete. Kept objects that name one of them as their owner lose that owner reference before the first
    /// delete.
    pub owners: BTreeSet<&'l ObjectKey>,
    /// The action reported for a deleted object.
    pub action: Action,
    /// The resource of the parent; `None` if the set has none any more, and so no record by which its members can be
    /// judged again.
    pub parent: Option<&'l Arc<Resource>>,
    /// The UIDs of the objects that the run has applied.
    pub desired_uids: HashSet<String>,
}

impl Execution<'_> {
    /// Reads owner references again, removes those because of which the garbage collector would delete kept objects,
    /// and deletes the waves. `on_detached` is called once, with the objects that have lost owner references; with `None`
    /// if nothing is deleted.
    pub(super) async fn remove_owner_references_and_delete(
        &self,
        waves: &Waves<'_>,
        deleted: &mut DeleteResults,
        driver: &mut Driver<'_>,
        on_detached: impl FnOnce(Option<&BTreeSet<ObjectKey>>, &mut Sink<'_>),
        sink: &mut Sink<'_>,
    ) -> Result<(), Stopped> {
        let dependents = match self.reread_dependents_if_deleting(waves.parent).await {
            Ok(dependents) => dependents,
            Err(unread) => {
                on_detached(None, sink);
                let objects = waves.deletes.iter().map(Vec::len).sum();
                return Err(deleted.fail_remaining(&unread.into(), objects, waves.action, sink));
            }
        };
        let mut judge = self.judge_of_deletes(self.plan, &dependents, waves.desired_uids.clone());
        deleted.note_not_deleted(self.plan, &mut judge);
        let detachments = self.needed_detachments(&dependents, &waves.owners);
        let detached = self
            .carry_out_allowed_detachments(&detachments, &mut judge, driver, sink)
            .await;
        on_detached(Some(&detached), sink);
        deleted.attached = dependents.without(&detached);
        self.delete_waves_as_judged(waves, judge, deleted, driver, sink)
            .await
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
        let work = Deletes {
            execution: self,
            waves,
            judge: RefCell::new(Rc::new(judge)),
            containers_to_keep: RefCell::default(),
            begun: RefCell::default(),
            deleted: RefCell::new(deleted),
            freshness: Rc::clone(&driver.freshness),
            not_judged: RefCell::default(),
            without_outcome: Cell::new(waves.deletes.iter().map(Vec::len).sum()),
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
    /// The UIDs of objects whose delete has begun.
    begun: RefCell<BTreeSet<String>>,
    deleted: RefCell<&'r mut DeleteResults>,
    /// Notes whether the members have to be read again before the next delete.
    freshness: Rc<Freshness>,
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
    /// The object was not deleted: the delete could not be judged again, or the user has stopped the run meanwhile.
    NotSent,
    /// The contents of the containers were listed.
    Listed,
    /// The object is gone.
    Gone,
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
                self.note_containers_that_gained_objects(containers).await;
                DeleteAnswer::Listed
            }
            // Never called: `wait_together` carries out these waits.
            DeleteAction::AwaitGone(_) => DeleteAnswer::NotGone,
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
            DeleteAction::AwaitGone(live) if self.deleted.borrow().kept_objects.contains(live) => {
                Some(DeleteAnswer::NotGone)
            }
            _ => None,
        }
    }

    fn wait_together<'s>(
        &'s self,
        actions: Vec<(ActionId, &'s DeleteAction<'r>)>,
        found: AnswerSender<DeleteAnswer>,
        sink: &'s RefCell<&mut Sink<'_>>,
    ) -> LocalBoxFuture<'s, ()> {
        Box::pin(self.await_gone(actions, found, sink))
    }

    fn take_answer(&self, action: &DeleteAction<'r>, answer: DeleteAnswer, sink: &mut Sink<'_>) -> ActionEnd {
        match (action, answer) {
            (DeleteAction::Delete(_), DeleteAnswer::Deleted(reply)) => {
                let action = reply.outcome.action;
                self.report(reply.outcome, sink);
                if action == self.waves.action {
                    return ActionEnd::Done;
                }
                // What is kept now may keep others.
                if action == Action::Skipped {
                    self.freshness.mark_outdated();
                }
                ActionEnd::Failed
            }
            (DeleteAction::Delete(live), DeleteAnswer::AppliedUnderOtherGroup) => {
                let outcome = ObjectOutcome {
                    reason: "applied under another API group".to_owned(),
                    ..skipped_outcome_without_reason(live)
                };
                // The object is not counted as kept: the record covers it under its other API group, so the record may
                // be narrowed. It is noted as kept, so that its namespace or CRD is not deleted.
                self.without_outcome.update(|count| count - 1);
                self.deleted
                    .borrow_mut()
                    .kept_objects
                    .note_unless_deleted(&outcome);
                sink(Event::Object(outcome));
                ActionEnd::Failed
            }
            (_, DeleteAnswer::NotSent) => ActionEnd::Stop,
            (_, DeleteAnswer::NotGone) => ActionEnd::Failed,
            _ => ActionEnd::Done,
        }
    }

    fn report_skipped(
        &self,
        skipped: &[Skipped],
        graph: &Graph<DeleteAction<'r>>,
        _: &Schedule,
        sink: &mut Sink<'_>,
    ) {
        for Skipped { action, because } in skipped {
            let Some(DeleteAction::Delete(live)) = graph.action(*action) else {
                continue;
            };
            let Some(DeleteAction::AwaitGone(dependent)) = graph.action(*because) else {
                continue;
            };
            let is_kept = self.deleted.borrow().kept_objects.contains(dependent);
            let state = if is_kept { "is kept" } else { "is not gone yet" };
            let subject = Subject::from_live(live);
            let reason = format!("{} depends on it, and {state}", dependent.key);
            self.report(
                ObjectOutcome::new_with_reason(subject, Action::Skipped, reason),
                sink,
            );
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
        // The first attempt was postponed because a webhook could not be called.
        let is_begun_again = !self.begun.borrow_mut().insert(live.uid.clone());
        self.judge_again_if_outdated().await;
        if self.not_judged.borrow().is_some() || self.execution.interrupt.is_requested() {
            return DeleteAnswer::NotSent;
        }
        let judge = Rc::clone(&self.judge.borrow());
        if judge.is_desired(live) {
            return DeleteAnswer::AppliedUnderOtherGroup;
        }
        let holds_kept = self
            .deleted
            .borrow()
            .kept_objects
            .outcome_if_container_holds_kept(live);
        let kept = holds_kept.or_else(|| self.containers_to_keep.borrow().get(&live.uid).cloned());
        if let Some(outcome) = kept {
            return DeleteAnswer::Deleted(Box::new(reply_from_outcome(outcome)));
        }
        let context = self.execution.delete_context(self.waves.action, &judge);
        if is_begun_again {
            // A container may have gained objects since then.
            if let Some(outcome) = context
                .outcomes_of_containers_to_keep(iter::once(live))
                .await
                .pop()
            {
                return DeleteAnswer::Deleted(Box::new(reply_from_outcome(outcome)));
            }
        }
        DeleteAnswer::Deleted(Box::new(context.delete(live).await))
    }

    /// Reads the members and the owner references again if what was read last is outdated, and judges the deletes again.
    /// Their order stays as planned.
    async fn judge_again_if_outdated(&self) {
        let judge_again = async || {
            if let Err(not_judged) = self.judge_again().await {
                self.not_judged.replace(Some(not_judged));
            }
        };
        self.freshness.reread_if_outdated(judge_again).await;
    }

    async fn judge_again(&self) -> Result<(), NotJudged> {
        let Waves {
            parent, desired_uids, ..
        } = self.waves;
        let judged;
        let plan = if parent.is_some() {
            let deleted_uids = self.deleted.borrow().uids.clone();
            let judging = self.execution.list_members_and_judge(desired_uids, &deleted_uids);
            judged = judging.await?;
            &judged
        } else {
            self.execution.plan
        };
        let execution = self.execution.with_plan(plan);
        let dependents = execution.reread_dependents_if_deleting(*parent).await?;
        let mut judge = self
            .execution
            .judge_of_deletes(plan, &dependents, desired_uids.clone());
        judge.note_deleted(self.execution.plan.all_prunes());
        let mut deleted = self.deleted.borrow_mut();
        deleted.note_not_deleted(self.execution.plan, &mut judge);
        deleted.attached = dependents;
        self.judge.replace(Rc::new(judge));
        Ok(())
    }

    /// Lists what these containers hold, and notes those that have gained objects: `delete_if_still_allowed` keeps
    /// them. A container of an object that was kept need not be listed, because it is kept too.
    async fn note_containers_that_gained_objects(&self, containers: &[&Live]) {
        let mut judge = Judge::clone(&self.judge.borrow());
        self.deleted
            .borrow()
            .note_not_deleted(self.execution.plan, &mut judge);
        self.judge.replace(Rc::new(judge));
        let mut deletable = containers.to_vec();
        deletable.retain(|live| self.deleted.borrow().kept_objects.kept_object_in(live).is_none());
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
        actions: Vec<(ActionId, &DeleteAction<'_>)>,
        found: AnswerSender<DeleteAnswer>,
        sink: &RefCell<&mut Sink<'_>>,
    ) {
        let waits = actions.into_iter().filter_map(|(id, action)| match action {
            DeleteAction::AwaitGone(live) => Some((id, *live)),
            _ => None,
        });
        let awaited: Vec<(ActionId, &Live)> = waits.collect();
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
                DeleteAnswer::Gone
            } else {
                DeleteAnswer::NotGone
            };
            // The receiver lives as long as the run, so sending does not fail.
            let _ = found.send((id, answer));
        }
    }
}
