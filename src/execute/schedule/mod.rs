//! Decides which actions of a graph can begin, from how the others have ended. Pure: no clock, no requests. `drive`
//! begins them.
//!
//! Each action ends at most once: it is done, it fails, or it is skipped because of another one. If the run stops, the
//! actions that have not begun never begin. An action is postponed while the webhook that judges its write cannot be
//! called. Some barriers open without waiting for postponed actions; `Barrier` says which.

pub(super) mod concurrency_limit;
pub(super) mod drive;
mod postponed;

use std::collections::{BTreeSet, VecDeque};

use crate::plan::{Barrier, EdgeKind, Graph, NodeId, NodeKind};

/// The progress of a graph while it is carried out.
#[derive(Debug)]
pub struct Schedule {
    /// The actions and barriers of the graph, by `NodeId::index`.
    nodes: Vec<Node>,
    /// The actions that can begin, by `Lane`.
    ready: [BTreeSet<NodeId>; 3],
    /// The number of nodes with `is_postponed`.
    postponed: usize,
    /// `true` once no further action may begin.
    is_stopped: bool,
}

/// The further condition under which an action begins, once the actions before it have ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    /// A write begins if the concurrency limit allows one more.
    Write,
    /// A wait begins at once.
    Wait,
    /// Waits of this lane begin together, once nothing else can begin.
    WaitTogether,
}

/// Outcome of an action that has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActionEnd {
    Done,
    /// The action failed: the actions that need it are skipped.
    Failed,
    /// The action failed, and no further action begins.
    Stop,
}

/// An action that is skipped because of one that failed or was skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Skipped {
    pub action: NodeId,
    pub because: NodeId,
    /// `false` if the action `because` was skipped, too.
    pub has_cause_begun: bool,
}

/// The progress of an action or a barrier.
#[derive(Debug)]
struct Node {
    id: NodeId,
    /// The lane of an action, or the condition of a barrier.
    kind: NodeKind<Lane>,
    /// The nodes that this one waits for.
    before: Vec<(NodeId, EdgeKind)>,
    /// The nodes that wait for this one.
    after: Vec<(NodeId, EdgeKind)>,
    /// The number of nodes in `before` that have not ended.
    unended_before: usize,
    state: NodeState,
    /// `true` if the action was postponed and has not ended.
    is_postponed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NodeState {
    /// Nodes before this one have not ended.
    Waiting,
    /// The action can begin, has begun or is postponed.
    Released,
    /// The action was done, or the barrier is open.
    Done,
    Failed,
    Skipped,
}

impl Schedule {
    pub fn new<A>(graph: &Graph<A>, lane: impl Fn(&A) -> Lane) -> Self {
        let nodes = graph.nodes().map(|(id, node)| Node {
            id,
            kind: match &node.kind {
                NodeKind::Action(action) => NodeKind::Action(lane(action)),
                NodeKind::Barrier(barrier) => NodeKind::Barrier(*barrier),
            },
            before: node.before.clone(),
            after: Vec::new(),
            unended_before: node.before.len(),
            state: NodeState::Waiting,
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
        let mut open_barriers = VecDeque::new();
        for (id, node) in graph.nodes() {
            if node.before.is_empty() {
                schedule.make_action_ready_or_open_barrier(id, &mut open_barriers);
            }
        }
        schedule.release_or_skip_successors(open_barriers);
        schedule
    }

    /// Takes the first action of this lane that can begin, in the order of the graph; `None` if none can begin.
    pub fn take_next(&mut self, lane: Lane) -> Option<NodeId> {
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

    /// Records how an action ended. Returns the actions that are skipped because of that end, each after the action
    /// that is its cause.
    pub fn record_end(&mut self, id: NodeId, end: ActionEnd) -> Vec<Skipped> {
        self.set_postponed(id, false);
        self.is_stopped |= end == ActionEnd::Stop;
        self.nodes[id.index()].state = match end {
            ActionEnd::Done => NodeState::Done,
            ActionEnd::Failed | ActionEnd::Stop => NodeState::Failed,
        };
        let skipped = self.release_or_skip_successors(VecDeque::from([id]));
        self.open_barriers_behind_postponed();
        skipped
    }

    /// Records that an action, which has begun, has to begin again later.
    pub fn postpone(&mut self, id: NodeId) {
        self.set_postponed(id, true);
        self.open_barriers_behind_postponed();
    }

    /// Records that a postponed action can begin again. The action stays postponed until it ends.
    pub fn resume(&mut self, id: NodeId) {
        if let NodeKind::Action(lane) = self.nodes[id.index()].kind {
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

    /// Releases, opens or skips the nodes that wait for these `ended` ones, and the nodes that wait for those in turn.
    /// Returns the skipped actions. After a stop, nothing is skipped: the other actions just never begin.
    fn release_or_skip_successors(&mut self, mut ended: VecDeque<NodeId>) -> Vec<Skipped> {
        let mut skipped = Vec::new();
        while let Some(id) = ended.pop_front() {
            let is_skipped = self.nodes[id.index()].state == NodeState::Skipped;
            let is_undone = is_skipped || self.nodes[id.index()].state == NodeState::Failed;
            for (later, edge) in self.nodes[id.index()].after.clone() {
                if self.nodes[later.index()].state != NodeState::Waiting {
                    continue;
                }
                if is_undone && edge == EdgeKind::Needs && !self.is_stopped {
                    self.nodes[later.index()].state = NodeState::Skipped;
                    skipped.push(Skipped {
                        action: later,
                        because: id,
                        has_cause_begun: !is_skipped,
                    });
                    ended.push_back(later);
                    continue;
                }
                self.nodes[later.index()].unended_before -= 1;
                if self.nodes[later.index()].unended_before == 0 {
                    self.make_action_ready_or_open_barrier(later, &mut ended);
                }
            }
        }
        skipped
    }

    /// Marks an action as ready to begin. A barrier is opened instead, and added to `ended`.
    fn make_action_ready_or_open_barrier(&mut self, id: NodeId, ended: &mut VecDeque<NodeId>) {
        let node = &mut self.nodes[id.index()];
        if let NodeKind::Action(lane) = node.kind {
            node.state = NodeState::Released;
            self.ready[lane as usize].insert(id);
        } else {
            node.state = NodeState::Done;
            ended.push_back(id);
        }
    }

    fn set_postponed(&mut self, id: NodeId, is_postponed: bool) {
        let was_postponed = std::mem::replace(&mut self.nodes[id.index()].is_postponed, is_postponed);
        self.postponed -= usize::from(was_postponed);
        self.postponed += usize::from(is_postponed);
    }

    /// Opens the barriers `EndedOrPostponed` that wait only for postponed actions, or for actions that wait for those.
    /// (`release_or_skip_successors` opens a barrier after which nothing is postponed.)
    fn open_barriers_behind_postponed(&mut self) {
        if self.postponed == 0 {
            return;
        }
        // `true` for an action that is postponed, or that waits for such an action. A node comes after all nodes that
        // it waits for, so one pass in this order is enough. For a closed barrier it stays `false`, so the actions
        // behind the barrier keep later barriers closed, too.
        let mut is_held_up = vec![false; self.nodes.len()];
        for index in 0..self.nodes.len() {
            let node = &self.nodes[index];
            let mut before = node.before.iter().map(|(earlier, _)| earlier.index());
            if node.state != NodeState::Waiting {
                is_held_up[index] = node.is_postponed;
                continue;
            }
            match node.kind {
                NodeKind::Action(_) => is_held_up[index] = before.any(|earlier| is_held_up[earlier]),
                NodeKind::Barrier(Barrier::EndedOrPostponed)
                    if before.all(|earlier| is_held_up[earlier] || self.nodes[earlier].has_ended()) =>
                {
                    let id = node.id;
                    self.nodes[index].state = NodeState::Done;
                    // Nothing is skipped: a barrier cannot fail.
                    self.release_or_skip_successors(VecDeque::from([id]));
                }
                NodeKind::Barrier(_) => {}
            }
        }
    }
}

impl Node {
    fn has_ended(&self) -> bool {
        matches!(
            self.state,
            NodeState::Done | NodeState::Failed | NodeState::Skipped
        )
    }
}

#[cfg(test)]
mod tests;
