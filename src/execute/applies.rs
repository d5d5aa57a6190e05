//! Carries out the graph of applies: applies objects, and waits for the kinds, schemas and objects that they need.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use futures_util::future::LocalBoxFuture;

use crate::cluster::apiserver::UnreachableWebhook;
use crate::compare::status::WriteOutcome;
use crate::event::{Action, Event, NotDone, ObjectOutcome, Phase, Sink, WaitStatus};
use crate::execute::kinds::await_served::{NotServed, await_served};
use crate::execute::members::apply::MemberReply;
use crate::execute::members::recreate::BegunRecreation;
use crate::execute::schedule::drive::{AnswerSender, Work};
use crate::execute::schedule::{ActionEnd, Lane, Skipped};
use crate::execute::{Applied, Execution, RunState};
use crate::model::identity::ObjectKey;
use crate::plan::{Apply, ApplyAction, Graph, NodeId};
use crate::wait::{Goal, Lookup, Target};

impl Execution<'_> {
    /// Applies the objects of these steps.
    pub(super) async fn apply_steps<'p>(
        &'p self,
        steps: impl IntoIterator<Item = &'p Vec<Apply>>,
        run_state: &mut RunState<'_>,
        sink: &mut Sink<'_>,
    ) {
        let current = run_state.applied.current.clone();
        let namespaces = &self.state.namespaces;
        let graph = self
            .plan
            .build_apply_graph(steps, self.desired, current, namespaces);
        let RunState { applied, driver, .. } = run_state;
        let work = Applies {
            execution: self,
            applied: RefCell::new(applied),
            begun_recreations: RefCell::default(),
            depended_on: self
                .desired
                .members
                .iter()
                .flat_map(|member| &member.depends_on)
                .collect(),
        };
        driver.run(&graph, &work, sink).await;
    }

    /// Returns the key of the object that this action is about.
    pub(super) fn key_of_action<'k>(&'k self, action: &'k ApplyAction<'_>) -> &'k ObjectKey {
        match action {
            ApplyAction::Apply(apply) => self.key_of(apply),
            ApplyAction::AwaitKind(object) => &object.key,
            ApplyAction::AwaitCurrent(key) => key,
        }
    }

    /// Returns the targets of a wait until the objects with these keys are Current.
    fn find_dependencies_by_key(&self, keys: &BTreeSet<&ObjectKey>) -> Vec<Target> {
        let members = self.desired.members.iter();
        let members = members.map(|member| {
            let goal = Goal::for_applied(member);
            (&member.key, &member.resource, goal, Lookup::Label)
        });
        // An object outside of the set does not have the set's label.
        let others = self.plan.edges.known.outside.iter();
        let others = others.map(|(key, live)| (key, &live.resource, Goal::Ready, Lookup::Name));
        members
            .chain(others)
            .filter(|(key, ..)| keys.contains(key))
            .map(|(key, resource, goal, lookup)| Target {
                key: key.clone(),
                resource: Arc::clone(resource),
                uid: None,
                goal,
                lookup,
            })
            .collect()
    }
}

/// The work of the graph of applies.
struct Applies<'r, 'a> {
    execution: &'r Execution<'a>,
    applied: RefCell<&'r mut Applied>,
    /// The recreations that have deleted an object and not yet created it, by `Apply::index`.
    begun_recreations: RefCell<BTreeMap<usize, BegunRecreation>>,
    /// The objects that others depend on.
    depended_on: HashSet<&'r ObjectKey>,
}

/// The answer to an action.
enum ApplyAnswer {
    Applied(Box<MemberReply>),
    /// What the run has waited for has come true.
    Arrived,
    /// It has not come true, for this reason, if the wait has not reported it.
    NotArrived(Option<String>),
}

impl<'r> Work for Applies<'r, '_> {
    type Action = ApplyAction<'r>;
    type Answer = ApplyAnswer;

    fn lane(&self, action: &ApplyAction<'r>) -> Lane {
        match action {
            ApplyAction::Apply(_) => Lane::Write,
            ApplyAction::AwaitKind(_) => Lane::Wait,
            ApplyAction::AwaitCurrent(_) => Lane::WaitTogether,
        }
    }

    fn key<'k>(&'k self, action: &'k ApplyAction<'r>) -> &'k ObjectKey {
        self.execution.key_of_action(action)
    }

    async fn perform(&self, action: &ApplyAction<'r>) -> ApplyAnswer {
        let execution = self.execution;
        match action {
            ApplyAction::Apply(apply) => {
                let begun = self.begun_recreations.borrow_mut().remove(&apply.index);
                let mut reply = execution.apply_member(apply, begun).await;
                if let Some(begun) = reply.begun_recreation.take() {
                    self.begun_recreations.borrow_mut().insert(apply.index, begun);
                }
                ApplyAnswer::Applied(Box::new(reply))
            }
            ApplyAction::AwaitKind(object) => {
                let namespace = object.key.namespace.as_deref();
                let (interrupt, notes) = (execution.interrupt, execution.wait_notes);
                let served = await_served(execution.server, interrupt, &object.resource, namespace, notes);
                match served.await {
                    // After an interrupt, the run ends anyway.
                    Ok(()) | Err(NotServed::Interrupted) => ApplyAnswer::Arrived,
                    Err(NotServed::Because(reason)) => ApplyAnswer::NotArrived(Some(reason)),
                }
            }
            ApplyAction::AwaitCurrent(_) => unreachable!("`wait_together` carries out these waits"),
        }
    }

    fn unreachable_webhook<'w>(&self, answer: &'w ApplyAnswer) -> Option<&'w UnreachableWebhook> {
        match answer {
            ApplyAnswer::Applied(reply) => reply.webhook.as_ref(),
            ApplyAnswer::Arrived | ApplyAnswer::NotArrived(_) => None,
        }
    }

    fn answer_known_without_waiting(&self, action: &ApplyAction<'r>) -> Option<ApplyAnswer> {
        match action {
            ApplyAction::AwaitCurrent(key) if self.applied.borrow().current.contains(*key) => {
                Some(ApplyAnswer::Arrived)
            }
            _ => None,
        }
    }

    fn wait_together<'s>(
        &'s self,
        actions: Vec<(NodeId, &'s ApplyAction<'r>)>,
        answers: AnswerSender<ApplyAnswer>,
        sink: &'s RefCell<&mut Sink<'_>>,
    ) -> LocalBoxFuture<'s, ()> {
        let ids = actions.into_iter().filter_map(|(id, action)| match action {
            ApplyAction::AwaitCurrent(key) => Some((*key, id)),
            _ => None,
        });
        Box::pin(self.await_current(ids.collect(), answers, sink))
    }

    fn take_answer(&self, action: &ApplyAction<'r>, answer: ApplyAnswer, sink: &mut Sink<'_>) -> ActionEnd {
        match (action, answer) {
            (ApplyAction::Apply(apply), ApplyAnswer::Applied(reply)) => {
                self.record_and_report_reply(apply, *reply, sink)
            }
            (_, ApplyAnswer::NotArrived(reason)) => {
                if let Some(reason) = reason {
                    sink(Event::general_failure(reason));
                }
                ActionEnd::Failed
            }
            _ => ActionEnd::Done,
        }
    }

    fn report_skipped(&self, skipped: &[Skipped], graph: &Graph<ApplyAction<'r>>, sink: &mut Sink<'_>) {
        for group in self.execution.group_skipped_applies(skipped, graph) {
            self.applied.borrow_mut().failed += group.applies.len();
            let keys = group.applies.into_iter();
            let keys = keys.map(|apply| self.execution.key_of(apply).clone());
            let not_done = NotDone::event_for_objects(keys.collect(), group.reason);
            if let Some(error) = group.error {
                sink(Event::general_failure(error));
            }
            sink(not_done);
        }
    }

    fn report_writes_after_wait(&self, total: usize, sink: &mut Sink<'_>) {
        sink(Event::Phase {
            phase: Phase::Applying,
            total,
        });
    }
}

impl Applies<'_, '_> {
    /// Records and reports the reply to the apply of an object.
    fn record_and_report_reply(&self, apply: &Apply, reply: MemberReply, sink: &mut Sink<'_>) -> ActionEnd {
        let object = &self.execution.desired.members[apply.index];
        for text in reply.warnings {
            let object = format!("{}: {}", object.position, object.key);
            sink(Event::WarningOfObject { object, text });
        }
        let outcome = reply.outcome;
        if outcome.action == Action::Configured {
            self.execution.changed_kinds.note_if_crd(object);
        }
        let mut applied = self.applied.borrow_mut();
        match outcome.action {
            Action::Failed => applied.failed += 1,
            _ => applied.uids.extend(outcome.subject.uid.clone()),
        }
        self.record_whether_current_once_written(&outcome, &mut applied);
        let end = match outcome.action {
            Action::Failed | Action::Skipped => ActionEnd::Failed,
            _ => ActionEnd::Done,
        };
        if outcome.action == Action::Unchanged {
            applied.report_or_hold_unchanged_member(outcome, sink);
        } else {
            sink(Event::Object(outcome));
        }
        end
    }

    /// Records for an object that others depend on whether its kind is Current as soon as it is written. If so, the run
    /// need not read the object before it applies those that depend on it.
    fn record_whether_current_once_written(&self, outcome: &ObjectOutcome, applied: &mut Applied) {
        let written = match outcome.action {
            Action::Created | Action::Recreated => WriteOutcome::Created,
            Action::Configured => WriteOutcome::Changed,
            _ => return,
        };
        let key = outcome.subject.key();
        if !self.depended_on.contains(&key) {
            return;
        }
        let resource = &outcome.subject.resource;
        let is_current_once_written = self.execution.dependencies.is_some_and(|settings| {
            let group_kind = resource.group_kind();
            settings
                .rules
                .are_current_once_written(&group_kind, resource.status, written)
        });
        if is_current_once_written {
            applied.current.insert(key);
        } else {
            applied.current.remove(&key);
        }
    }

    /// Waits for objects that others depend on, and sends the result of each as soon as it is known.
    async fn await_current(
        &self,
        ids: BTreeMap<&ObjectKey, NodeId>,
        answers: AnswerSender<ApplyAnswer>,
        sink: &RefCell<&mut Sink<'_>>,
    ) {
        let answered = RefCell::new(BTreeSet::new());
        let send = |key: &ObjectKey, answer| {
            if let Some(id) = ids.get(key)
                && answered.borrow_mut().insert(*id)
            {
                // An error would mean that the receiver is gone. The driver keeps it until its graph is carried out.
                let _ = answers.send((*id, answer));
            }
        };
        let mut noting = |event: Event| {
            if let Event::Awaited(awaited) = &event
                && awaited.wait_status == WaitStatus::Arrived
            {
                send(&awaited.subject.key(), ApplyAnswer::Arrived);
            }
            (sink.borrow_mut())(event);
        };
        let keys: BTreeSet<&ObjectKey> = ids.keys().copied().collect();
        let not_current = match self.execution.dependencies {
            Some(settings) => {
                let targets = self.execution.find_dependencies_by_key(&keys);
                let done_before = "other objects depend on them, and were not written";
                settings
                    .wait_and_list_missed(targets, done_before, &mut noting)
                    .await
            }
            // A run without waits writes nothing, so nothing becomes Current.
            None => keys.iter().copied().cloned().collect(),
        };
        for key in keys {
            let answer = if not_current.contains(key) {
                ApplyAnswer::NotArrived(None)
            } else {
                ApplyAnswer::Arrived
            };
            send(key, answer);
        }
    }
}
