//! Applies objects that are free at the same time, and notes what became of each.

use crate::event::{Action, Event};
use crate::execute::members::apply::MemberReply;
use crate::execute::members::webhooks::{Round, SetAside};
use crate::execute::{Applied, Execution, RunState, Sink};
use crate::plan::Apply;

impl Execution<'_> {
    /// Applies the objects of a round. Those whose webhooks cannot be called yet are set aside.
    pub(in crate::execute) async fn apply_round<'w>(
        &self,
        round: Round<'w>,
        set_aside: &mut SetAside<'w>,
        run_state: &mut RunState<'_>,
        sink: &mut Sink<'_>,
    ) {
        let Round {
            objects: mut wave,
            given_up,
        } = round;
        wave = Box::pin(self.await_kinds(wave, run_state, sink)).await;
        let ended = given_up.iter().map(|(apply, _)| *apply);
        let all: Vec<&Apply> = wave.iter().copied().chain(ended).collect();
        let defined = self.kinds_defined_by(&all);
        let mut former = Box::pin(self.former_definitions(&defined)).await;
        Box::pin(self.await_schemas(&wave, &run_state.kinds)).await;
        let mut definitions = Vec::new();
        let RunState {
            applied,
            kinds,
            writes,
            ..
        } = run_state;
        let mut take = |index: usize, reply: MemberReply, sink: &mut Sink<'_>| {
            if defined.contains_key(&reply.outcome.subject.key()) {
                definitions.push(reply.outcome.clone());
            }
            self.take_reply(index, reply, applied, sink);
        };
        for (apply, reply) in given_up {
            take(apply.index, reply, sink);
        }
        let answered = |apply: &Apply, reply, sink: &mut Sink<'_>| take(apply.index, reply, sink);
        Box::pin(self.apply_all(wave, set_aside, kinds, writes, answered, sink)).await;
        for outcome in definitions {
            let key = outcome.subject.key();
            if let Some(kind) = defined.get(&key) {
                run_state.kinds.note(kind.clone(), &outcome, former.remove(&key));
            }
        }
    }

    /// Notes and reports the answer for an object.
    fn take_reply(&self, index: usize, reply: MemberReply, applied: &mut Applied, sink: &mut Sink<'_>) {
        let object = &self.desired.members[index];
        for text in reply.warnings {
            let object = format!("{}: {}", object.position, object.key);
            sink(Event::WarningOfObject { object, text });
        }
        match reply.outcome.action {
            Action::Failed => applied.failed += 1,
            _ => applied.uids.extend(reply.outcome.subject.uid.clone()),
        }
        let is_current = |written| self.is_current_once_written(index, written);
        applied.dependencies.note(&reply.outcome, is_current);
        if reply.outcome.action == Action::Unchanged {
            self.report_unchanged_member(reply.outcome, applied, sink);
        } else {
            sink(Event::Object(reply.outcome));
        }
    }
}
