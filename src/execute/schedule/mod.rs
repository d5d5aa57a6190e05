//! Decides which actions of a graph can begin, from how the others have ended. Pure: no clock, no requests. `drive`
//! begins them.
//!
//! Each action ends at most once: it is done, it fails, or it is skipped because of another one. If the run stops, the
//! others never begin. A postponed action, and any that waits for it, holds up some barriers and not others
//! (`Barrier`).

pub(super) mod concurrency_limit;
pub(super) mod drive;
mod postponed;

use std::collections::{BTreeSet, VecDeque};

use crate::plan::{ActionId, Barrier, Edge, Graph};

/// The progress of a graph while it is carried out.
#[derive(Debug)]
pub struct Schedule {
    nodes: Vec<Node>,
    /// The actions that can begin, by lane.
    ready: [BTreeSet<ActionId>; 3],
    postponed: usize,
    is_stopped: bool,
}

/// The condition under which an action begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    /// It begins if the concurrency limit allows one more write.
    Write,
    /// It begins at once.
    Wait,
    /// It begins together with others, once nothing else can begin.
    WaitTogether,
}

/// Outcome of an action that has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Done,
    /// It failed: the actions that need it are skipped.
    Failed,
    /// It failed, and no further action begins.
    Stop,
}

/// An action that is skipped because of one that failed or was skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Skipped {
    pub action: ActionId,
    pub because: ActionId,
}

#[derive(Debug)]
struct Node {
    id: ActionId,
    lane: Result<Lane, Barrier>,
    before: Vec<(ActionId, Edge)>,
    after: Vec<(ActionId, Edge)>,
    /// The number of earlier actions and barriers that have not ended.
    open: usize,
    state: State,
    /// `true` if it was postponed and has not ended.
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
    pub fn new<A>(graph: &Graph<A>, lane: impl Fn(&A) -> Lane) -> Self {
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
        schedule.propagate(passed);
        schedule
    }

    /// Takes the first action of this lane that can begin, in the order of the graph; `None` if there is none.
    pub fn take_next(&mut self, lane: Lane) -> Option<ActionId> {
        if self.is_stopped {
            return None;
        }
        self.ready[lane as usize].pop_first()
    }

    /// Returns the number of actions in this lane that can begin now.
    pub fn ready_count(&self, lane: Lane) -> usize {
        if self.is_stopped {
            return 0;
        }
        self.ready[lane as usize].len()
    }

    /// Records how an action ended, and returns the actions that are skipped because of it, each after its cause.
    pub fn record_end(&mut self, id: ActionId, end: End) -> Vec<Skipped> {
        self.set_postponed(id, false);
        self.is_stopped |= end == End::Stop;
        self.nodes[id.index()].state = match end {
            End::Done => State::Done,
            End::Failed | End::Stop => State::Failed,
        };
        let skipped = self.propagate(VecDeque::from([id]));
        self.pass_barriers();
        skipped
    }

    /// Records that an action has to begin again later.
    pub fn postpone(&mut self, id: ActionId) {
        self.set_postponed(id, true);
        self.pass_barriers();
    }

    /// Notes that an action that was postponed can begin again.
    pub fn resume(&mut self, id: ActionId) {
        if let Ok(lane) = self.nodes[id.index()].lane {
            self.ready[lane as usize].insert(id);
        }
    }

    /// Prevents all further actions from beginning.
    pub fn stop(&mut self) {
        self.is_stopped = true;
    }

    pub fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    /// Returns whether the action was skipped, and has not failed itself.
    pub fn is_skipped(&self, id: ActionId) -> bool {
        self.nodes[id.index()].state == State::Skipped
    }

    /// Updates the actions after these, whose end is known, and those after them. Returns the skipped ones.
    fn propagate(&mut self, mut ended: VecDeque<ActionId>) -> Vec<Skipped> {
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

    /// Marks an action as ready to begin, or opens a barrier.
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

    /// Opens the barriers that wait only for postponed actions, or for actions that wait for those.
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
                    self.propagate(VecDeque::from([id]));
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
