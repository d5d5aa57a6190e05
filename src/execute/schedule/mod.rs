//! Says which actions of a graph come next, by what has become of the others. Pure: no clock, no request. `drive`
//! begins them.
//!
//! Each action ends once: it is done, fails, is skipped because of another one, or is not begun because the run
//! stops. One that is postponed, and whatever waits for it, holds up some barriers and not others (`Barrier`).

pub(super) mod concurrency_limit;
pub(super) mod drive;
mod postponed;

use std::collections::{BTreeSet, VecDeque};

use crate::plan::{ActionId, Barrier, Edge, Graph};

/// The state of a graph that is carried out.
#[derive(Debug)]
pub(crate) struct Schedule {
    nodes: Vec<Node>,
    /// By lanes: actions that can begin.
    ready: [BTreeSet<ActionId>; 3],
    postponed: usize,
    is_stopped: bool,
}

/// The way in which actions begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    /// As long as the server takes more writes.
    Write,
    /// At once.
    Wait,
    /// Together with others, once nothing else can begin.
    WaitTogether,
}

/// The end of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Done,
    /// What needs it is skipped.
    Failed,
    /// Nothing begins any more.
    Stop,
}

/// An action that is skipped because of one that failed or was skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Skipped {
    pub(crate) action: ActionId,
    pub(crate) because: ActionId,
}

#[derive(Debug)]
struct Node {
    id: ActionId,
    lane: Result<Lane, Barrier>,
    before: Vec<(ActionId, Edge)>,
    after: Vec<(ActionId, Edge)>,
    /// The number of those before it that have not ended.
    open: usize,
    state: State,
    /// Whether it was postponed and has not ended.
    is_postponed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    /// It can begin, has begun or is postponed.
    Free,
    Done,
    Failed,
    Skipped,
}

impl Schedule {
    pub(crate) fn new<A>(graph: &Graph<A>, lane: impl Fn(&A) -> Lane) -> Self {
        let nodes = graph.nodes().map(|(id, node)| Node {
            id,
            lane: node.action.as_ref().map(&lane).map_err(|barrier| *barrier),
            before: node.before.clone(),
            after: Vec::new(),
            open: node.before.len(),
            state: State::Waiting,
            is_postponed: false,
        });
        let mut schedule = Self {
            nodes: nodes.collect(),
            ready: Default::default(),
            postponed: 0,
            is_stopped: false,
        };
        for (id, node) in graph.nodes() {
            for (earlier, edge) in &node.before {
                schedule.nodes[earlier.index()].after.push((id, *edge));
            }
        }
        let mut passed = VecDeque::new();
        for (id, node) in graph.nodes() {
            if node.before.is_empty() {
                schedule.release(id, &mut passed);
            }
        }
        schedule.spread(passed);
        schedule
    }

    /// Begins an action in this lane, the first in the order of the graph; `None` if none can begin now.
    pub(crate) fn next(&mut self, lane: Lane) -> Option<ActionId> {
        if self.is_stopped {
            return None;
        }
        self.ready[lane as usize].pop_first()
    }

    /// Returns the number of actions in this lane that can begin now.
    pub(crate) fn ready(&self, lane: Lane) -> usize {
        if self.is_stopped {
            return 0;
        }
        self.ready[lane as usize].len()
    }

    /// Notes the end of an action, and returns those that are skipped because of it, each after the one that it is
    /// skipped because of.
    pub(crate) fn ended(&mut self, id: ActionId, end: End) -> Vec<Skipped> {
        self.set_postponed(id, false);
        self.is_stopped |= end == End::Stop;
        self.nodes[id.index()].state = match end {
            End::Done => State::Done,
            End::Failed | End::Stop => State::Failed,
        };
        let skipped = self.spread(VecDeque::from([id]));
        self.pass_barriers();
        skipped
    }

    /// Notes that an action that has begun is begun again later.
    pub(crate) fn postponed(&mut self, id: ActionId) {
        self.set_postponed(id, true);
        self.pass_barriers();
    }

    /// Notes that an action that was postponed can begin again.
    pub(crate) fn resume(&mut self, id: ActionId) {
        if let Ok(lane) = self.nodes[id.index()].lane {
            self.ready[lane as usize].insert(id);
        }
    }

    /// Begins nothing from now on.
    pub(crate) fn stop(&mut self) {
        self.is_stopped = true;
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    /// Returns whether the action was skipped, and has not failed itself.
    pub(crate) fn is_skipped(&self, id: ActionId) -> bool {
        self.nodes[id.index()].state == State::Skipped
    }

    /// Tells those after these ended ones of their ends, and so on.
    fn spread(&mut self, mut ended: VecDeque<ActionId>) -> Vec<Skipped> {
        let mut skipped = Vec::new();
        while let Some(id) = ended.pop_front() {
            let is_lost = matches!(self.nodes[id.index()].state, State::Failed | State::Skipped);
            for (later, edge) in self.nodes[id.index()].after.clone() {
                if self.nodes[later.index()].state != State::Waiting {
                    continue;
                }
                if is_lost && edge == Edge::Needs && !self.is_stopped {
                    self.nodes[later.index()].state = State::Skipped;
                    skipped.push(Skipped {
                        action: later,
                        because: id,
                    });
                    ended.push_back(later);
                    continue;
                }
                self.nodes[later.index()].open -= 1;
                if self.nodes[later.index()].open == 0 {
                    self.release(later, &mut ended);
                }
            }
        }
        skipped
    }

    /// Lets an action begin, or passes a barrier.
    fn release(&mut self, id: ActionId, passed: &mut VecDeque<ActionId>) {
        let node = &mut self.nodes[id.index()];
        if let Ok(lane) = node.lane {
            node.state = State::Free;
            self.ready[lane as usize].insert(id);
        } else {
            node.state = State::Done;
            passed.push_back(id);
        }
    }

    fn set_postponed(&mut self, id: ActionId, is_postponed: bool) {
        let before = std::mem::replace(&mut self.nodes[id.index()].is_postponed, is_postponed);
        self.postponed -= usize::from(before);
        self.postponed += usize::from(is_postponed);
    }

    /// Passes the barriers that only postponed actions, and what waits for these, are left before.
    fn pass_barriers(&mut self) {
        if self.postponed == 0 {
            return;
        }
        let mut is_behind = vec![false; self.nodes.len()];
        for index in 0..self.nodes.len() {
            let node = &self.nodes[index];
            let mut before = node.before.iter().map(|(earlier, _)| earlier.index());
            if node.state != State::Waiting {
                is_behind[index] = node.is_postponed;
                continue;
            }
            match node.lane {
                Ok(_) => is_behind[index] = before.any(|earlier| is_behind[earlier]),
                Err(Barrier::EndedOrPostponed)
                    if before.all(|earlier| is_behind[earlier] || self.nodes[earlier].has_ended()) =>
                {
                    let id = node.id;
                    self.nodes[index].state = State::Done;
                    self.spread(VecDeque::from([id]));
                }
                Err(_) => {}
            }
        }
    }
}

impl Node {
    fn has_ended(&self) -> bool {
        matches!(self.state, State::Done | State::Failed | State::Skipped)
    }
}

#[cfg(test)]
mod tests;
