use super::*;

type Name = &'static str;

/// Creates a graph of named actions, each with the names of the actions that it needs and of those that it follows. A
/// name that begins with `|` is a barrier.
fn graph_of(actions: &[(Name, &[Name], &[Name])]) -> Graph<Name> {
    let mut graph = Graph::default();
    let mut ids: Vec<(Name, NodeId)> = Vec::new();
    for (name, needs, follows) in actions {
        let find = |wanted: &Name| ids.iter().find(|(name, _)| name == wanted).expect("an action").1;
        let needs = needs.iter().map(|name| (find(name), EdgeKind::Needs));
        let follows = follows.iter().map(|name| (find(name), EdgeKind::Follows));
        let before: Vec<_> = needs.chain(follows).collect();
        let id = if name.starts_with('|') {
            let barrier = if *name == "| ended" {
                Barrier::Ended
            } else {
                Barrier::EndedOrPostponed
            };
            graph.add_barrier(barrier, before.into_iter().map(|(id, _)| id))
        } else {
            graph.add(*name, before)
        };
        ids.push((*name, id));
    }
    graph
}

fn lane(name: &Name) -> Lane {
    if name.starts_with("wait") {
        Lane::WaitTogether
    } else {
        Lane::Write
    }
}

struct Run {
    graph: Graph<Name>,
    schedule: Schedule,
}

impl Run {
    fn new(actions: &[(Name, &[Name], &[Name])]) -> Self {
        let graph = graph_of(actions);
        Self {
            schedule: Schedule::new(&graph, lane),
            graph,
        }
    }

    /// Begins all actions that can begin, and returns them.
    fn begin(&mut self) -> Vec<Name> {
        let mut begun = Vec::new();
        for lane in [Lane::Write, Lane::Wait, Lane::WaitTogether] {
            while let Some(id) = self.schedule.take_next(lane) {
                begun.extend(self.graph.action(id));
            }
        }
        begun
    }

    fn id(&self, name: Name) -> NodeId {
        let mut nodes = self.graph.nodes();
        nodes
            .find(|(_, node)| node.kind == NodeKind::Action(name))
            .expect("an action")
            .0
    }

    /// Ends an action. Returns the actions that are skipped because of that, each with its cause.
    fn end(&mut self, name: Name, end: ActionEnd) -> Vec<(Name, Name)> {
        let id = self.id(name);
        let skipped = self.schedule.record_end(id, end).into_iter();
        let name = |id| *self.graph.action(id).expect("an action");
        skipped
            .map(|skipped| {
                assert_eq!(skipped.has_cause_begun, skipped.because == id);
                (name(skipped.action), name(skipped.because))
            })
            .collect()
    }
}

#[test]
fn an_action_begins_once_all_before_it_have_ended() {
    let mut run = Run::new(&[
        ("namespace", &[], &[]),
        ("secret", &[], &[]),
        ("|", &[], &["namespace", "secret"]),
        ("web", &[], &["|"]),
        ("wait web", &["web"], &["|"]),
        ("late", &["wait web"], &["|"]),
        ("other", &[], &["|"]),
    ]);
    assert_eq!(run.begin(), ["namespace", "secret"]);
    run.end("secret", ActionEnd::Failed);
    assert_eq!(run.begin(), [] as [Name; 0]);
    run.end("namespace", ActionEnd::Done);
    assert_eq!(run.begin(), ["web", "other"]);
    run.end("web", ActionEnd::Done);
    assert_eq!(run.begin(), ["wait web"]);
    run.end("wait web", ActionEnd::Done);
    assert_eq!(run.begin(), ["late"]);
}

#[test]
fn a_failure_skips_what_needs_it_and_nothing_else() {
    let mut run = Run::new(&[
        ("a", &[], &[]),
        ("wait a", &["a"], &[]),
        ("b", &["wait a"], &[]),
        ("wait b", &["b"], &[]),
        ("c", &["wait b", "wait a"], &[]),
        ("follows", &[], &["b", "c"]),
    ]);
    assert_eq!(run.begin(), ["a"]);
    let skipped = run.end("a", ActionEnd::Failed);
    assert_eq!(
        skipped,
        [("wait a", "a"), ("b", "wait a"), ("c", "wait a"), ("wait b", "b")]
    );
    assert_eq!(run.begin(), ["follows"]);
}

#[test]
fn what_is_postponed_does_not_hold_up_a_barrier_but_what_follows_it() {
    let mut run = Run::new(&[
        ("webhook's", &[], &[]),
        ("wait", &["webhook's"], &[]),
        ("behind", &["wait"], &[]),
        ("other", &[], &[]),
        ("|", &[], &["webhook's", "behind", "other"]),
        ("pod of the webhook", &[], &["|"]),
    ]);
    assert_eq!(run.begin(), ["webhook's", "other"]);
    run.schedule.postpone(run.id("webhook's"));
    assert_eq!(run.begin(), [] as [Name; 0]);
    run.end("other", ActionEnd::Done);
    assert_eq!(run.begin(), ["pod of the webhook"]);
    run.schedule.resume(run.id("webhook's"));
    assert_eq!(run.begin(), ["webhook's"]);
    run.end("webhook's", ActionEnd::Done);
    assert_eq!(run.begin(), ["wait"]);
    run.end("wait", ActionEnd::Done);
    assert_eq!(run.begin(), ["behind"]);
}

#[test]
fn what_is_postponed_holds_up_a_barrier_that_waits_for_its_end() {
    let mut run = Run::new(&[
        ("custom resource", &[], &[]),
        ("other", &[], &[]),
        ("| ended", &[], &["custom resource", "other"]),
        ("definition", &[], &["| ended"]),
    ]);
    assert_eq!(run.begin(), ["custom resource", "other"]);
    run.schedule.postpone(run.id("custom resource"));
    run.end("other", ActionEnd::Done);
    assert_eq!(run.begin(), [] as [Name; 0]);
    run.end("custom resource", ActionEnd::Failed);
    assert_eq!(run.begin(), ["definition"]);
}

#[test]
fn a_run_that_stops_begins_and_skips_nothing() {
    let mut run = Run::new(&[("a", &[], &[]), ("b", &["a"], &[]), ("c", &[], &["a"])]);
    assert_eq!(run.begin(), ["a"]);
    run.schedule.stop();
    assert_eq!(run.end("a", ActionEnd::Failed), []);
    assert_eq!(run.begin(), [] as [Name; 0]);
}

const SIZE: usize = 4;

/// The outcome of an action once it has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Done,
    Failed,
    DoneOncePostponed,
}

const OUTCOMES: [Outcome; 3] = [Outcome::Done, Outcome::Failed, Outcome::DoneOncePostponed];

/// Returns the digits of a number, the last one first.
fn digits<const COUNT: usize>(mut number: usize, base: usize) -> [usize; COUNT] {
    std::array::from_fn(|_| {
        let digit = number % base;
        number /= base;
        digit
    })
}

/// Returns the graph with this number, whose digits to the base 3 say for each pair of actions whether the later one
/// ignores, needs or follows the earlier one. The bits of `barriers` make the second and third action a barrier.
fn numbered_graph(number: usize, barriers: usize) -> Graph<usize> {
    let edges: [usize; SIZE * (SIZE - 1) / 2] = digits(number, 3);
    let mut edges = edges.into_iter();
    let mut graph = Graph::default();
    let mut ids: Vec<NodeId> = Vec::new();
    for place in 0..SIZE {
        let before: Vec<(NodeId, EdgeKind)> = ids
            .iter()
            .filter_map(|id| match edges.next() {
                Some(1) => Some((*id, EdgeKind::Needs)),
                Some(2) => Some((*id, EdgeKind::Follows)),
                _ => None,
            })
            .collect();
        let is_barrier = (1..=2).contains(&place) && barriers & place != 0;
        ids.push(if is_barrier {
            let kinds = [Barrier::Ended, Barrier::EndedOrPostponed];
            graph.add_barrier(kinds[place - 1], before.into_iter().map(|(id, _)| id))
        } else {
            graph.add(place, before)
        });
    }
    graph
}

/// Carries out a graph with these outcomes, and returns how each action ended; `None` for barriers.
fn carry_out(graph: &Graph<usize>, mut outcomes: [Outcome; SIZE]) -> [Option<ActionEnd>; SIZE] {
    let mut schedule = Schedule::new(graph, |_| Lane::Write);
    let nodes: Vec<_> = graph.nodes().collect();
    let mut ends: [Option<ActionEnd>; SIZE] = [None; SIZE];
    let (mut under_way, mut postponed) = (Vec::new(), Vec::new());
    loop {
        while let Some(id) = schedule.take_next(Lane::Write) {
            for (earlier, edge) in &nodes[id.index()].1.before {
                let end = ends[earlier.index()];
                if graph.action(*earlier).is_some() {
                    assert!(end == Some(ActionEnd::Done) || end.is_some() && *edge == EdgeKind::Follows);
                }
            }
            under_way.push(id);
        }
        let Some(id) = under_way.pop() else {
            match postponed.pop() {
                Some(id) => schedule.resume(id),
                None => return ends,
            }
            continue;
        };
        let end = match std::mem::replace(&mut outcomes[id.index()], Outcome::Done) {
            Outcome::Done => ActionEnd::Done,
            Outcome::Failed => ActionEnd::Failed,
            Outcome::DoneOncePostponed => {
                schedule.postpone(id);
                postponed.push(id);
                continue;
            }
        };
        assert_eq!(ends[id.index()].replace(end), None);
        for skipped in schedule.record_end(id, end) {
            assert_eq!(ends[skipped.because.index()], Some(ActionEnd::Failed));
            assert_eq!(ends[skipped.action.index()].replace(ActionEnd::Failed), None);
        }
    }
}

#[test]
fn every_action_of_any_graph_ends_once_and_none_before_what_it_needs() {
    for number in 0..3_usize.pow(6) {
        for barriers in 0..4 {
            let graph = numbered_graph(number, barriers);
            for outcomes in 0..OUTCOMES.len().pow(4) {
                let outcomes = digits(outcomes, OUTCOMES.len()).map(|digit| OUTCOMES[digit]);
                let ends = carry_out(&graph, outcomes);
                for (id, node) in graph.nodes() {
                    let has_ended = matches!(node.kind, NodeKind::Barrier(_)) || ends[id.index()].is_some();
                    assert!(
                        has_ended,
                        "graph {number} with barriers {barriers}, {outcomes:?}: {id:?}"
                    );
                }
            }
        }
    }
}
