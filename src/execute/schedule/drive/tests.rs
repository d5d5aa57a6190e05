use std::cell::Cell;
use std::convert::Infallible;

use http::{Request, Response};
use kube::client::Body;
use tokio::time::{Instant, sleep};

use super::*;
use crate::model::identity::GroupKind;
use crate::plan::{Barrier, EdgeKind};

/// A server that gets no requests.
#[expect(clippy::disallowed_types, reason = "the server of the test is a closure")]
fn server() -> ApiServer {
    let service = tower::service_fn(async |_: Request<Body>| {
        Ok::<_, Infallible>(Response::new(Body::from(Vec::new())))
    });
    let client = kube::Client::new(service, "default");
    ApiServer::new(client, "https://127.0.0.1:6443", Duration::from_mins(1))
}

/// An action of the tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum TestAction {
    /// A write that takes a second.
    Write(&'static str),
    /// A write that this webhook judges.
    Judged(&'static str, &'static str),
    /// A write that makes the run stop.
    Stop,
    /// A wait of 100 seconds, together with others.
    Wait(&'static str),
}

struct Script {
    key: ObjectKey,
    /// The time from which on webhooks can be called.
    starts: Instant,
    attempts: RefCell<Vec<TestAction>>,
    under_way: Cell<usize>,
    most_under_way: Cell<usize>,
    ended: RefCell<Vec<(TestAction, bool)>>,
}

impl Script {
    fn new(starts_after: Duration) -> Self {
        Self {
            key: ObjectKey {
                group_kind: GroupKind::for_namespaces(),
                namespace: None,
                name: "shop".to_owned(),
            },
            starts: Instant::now() + starts_after,
            attempts: RefCell::default(),
            under_way: Cell::new(0),
            most_under_way: Cell::new(0),
            ended: RefCell::default(),
        }
    }

    fn ended(&self) -> Vec<(TestAction, bool)> {
        self.ended.borrow().clone()
    }

    fn attempts(&self, action: TestAction) -> usize {
        let attempts = self.attempts.borrow();
        attempts.iter().filter(|attempt| **attempt == action).count()
    }
}

struct Ended {
    is_done: bool,
    webhook: Option<UnreachableWebhook>,
}

impl Work for Script {
    type Action = TestAction;
    type Answer = Ended;

    fn key<'k>(&'k self, _: &'k TestAction) -> &'k ObjectKey {
        &self.key
    }

    fn lane(&self, action: &TestAction) -> Lane {
        match action {
            TestAction::Wait(_) => Lane::WaitTogether,
            TestAction::Write(_) | TestAction::Judged(..) | TestAction::Stop => Lane::Write,
        }
    }

    async fn perform(&self, action: &TestAction) -> Ended {
        self.attempts.borrow_mut().push(*action);
        self.under_way.set(self.under_way.get() + 1);
        self.most_under_way
            .set(self.most_under_way.get().max(self.under_way.get()));
        sleep(Duration::from_secs(1)).await;
        self.under_way.set(self.under_way.get() - 1);
        let webhook = match action {
            TestAction::Judged(_, webhook) if Instant::now() < self.starts => {
                Some(UnreachableWebhook::named(webhook))
            }
            _ => None,
        };
        Ended {
            is_done: webhook.is_none(),
            webhook,
        }
    }

    fn unreachable_webhook<'w>(&self, answer: &'w Ended) -> Option<&'w UnreachableWebhook> {
        answer.webhook.as_ref()
    }

    fn wait_together<'s>(
        &'s self,
        actions: Vec<(NodeId, &'s TestAction)>,
        found: AnswerSender<Ended>,
        _: &'s RefCell<&mut Sink<'_>>,
    ) -> LocalBoxFuture<'s, ()> {
        Box::pin(async move {
            sleep(Duration::from_secs(100)).await;
            for (id, _) in actions {
                let answer = Ended {
                    is_done: true,
                    webhook: None,
                };
                found.send((id, answer)).expect("a receiver");
            }
        })
    }

    fn take_answer(&self, action: &TestAction, answer: Ended, _: &mut Sink<'_>) -> ActionEnd {
        self.ended.borrow_mut().push((*action, answer.is_done));
        match action {
            TestAction::Stop => ActionEnd::Stop,
            _ if answer.is_done => ActionEnd::Done,
            _ => ActionEnd::Failed,
        }
    }
}

/// Carries a graph out, at most `max_writes` at once; webhooks have ten seconds.
async fn carry_out(graph: &Graph<TestAction>, script: &Script, interrupt: &Interrupt, max_writes: usize) {
    let patience = Some(Duration::from_secs(10));
    carry_out_with(patience, graph, script, interrupt, max_writes).await;
}

async fn carry_out_with(
    patience: Option<Duration>,
    graph: &Graph<TestAction>,
    script: &Script,
    interrupt: &Interrupt,
    max_writes: usize,
) {
    let (server, notes) = (server(), WaitNotes::default());
    let mut driver = Driver::new(&server, interrupt, &notes, patience, max_writes);
    driver.run(graph, script, &mut |_| {}).await;
}

#[tokio::test(start_paused = true)]
async fn one_object_finds_out_for_all_whether_a_webhook_can_be_called() {
    let names = ["a", "b", "c", "d", "e"];
    let graph: Graph<TestAction> = names
        .map(|name| TestAction::Judged(name, "webhook"))
        .into_iter()
        .collect();
    let script = Script::new(Duration::from_mins(1));
    carry_out_with(None, &graph, &script, &Interrupt::default(), 8).await;
    assert_eq!(script.ended().len(), 5);
    assert!(script.ended().iter().all(|(_, is_done)| *is_done));
    // All once, then one after the other with pauses of up to four seconds, and in the end the four others.
    let probes = script.attempts.borrow().len() - 5 - 4;
    assert!((10..=15).contains(&probes), "{probes}");
}

#[tokio::test(start_paused = true)]
async fn the_next_step_does_not_wait_for_a_webhook() {
    let mut graph = Graph::default();
    let judged = TestAction::Judged("a", "webhook");
    let id = graph.add(judged, []);
    let barrier = graph.add_barrier(Barrier::EndedOrPostponed, [id]);
    graph.add(TestAction::Write("Pods"), [(barrier, EdgeKind::Follows)]);
    let script = Script::new(Duration::from_secs(1_000));
    carry_out(&graph, &script, &Interrupt::default(), 8).await;
    assert_eq!(
        script.ended(),
        [(TestAction::Write("Pods"), true), (judged, false)]
    );
}

#[tokio::test(start_paused = true)]
async fn the_time_of_a_webhook_runs_only_while_nothing_else_is_left() {
    let mut graph = Graph::default();
    let other = graph.add(TestAction::Write("other"), []);
    graph.add(TestAction::Judged("a", "webhook"), []);
    let wait = graph.add(TestAction::Wait("other"), [(other, EdgeKind::Needs)]);
    graph.add(TestAction::Write("late"), [(wait, EdgeKind::Needs)]);
    // The webhook starts while the run waits for something else, long after its own time.
    let script = Script::new(Duration::from_secs(90));
    carry_out(&graph, &script, &Interrupt::default(), 8).await;
    assert!(
        script.ended().iter().all(|(_, is_done)| *is_done),
        "{:?}",
        script.ended()
    );

    let never = Script::new(Duration::from_secs(1_000));
    let begun = Instant::now();
    carry_out(&graph, &never, &Interrupt::default(), 8).await;
    let failed: Vec<TestAction> = never
        .ended()
        .iter()
        .filter(|(_, is_done)| !is_done)
        .map(|(action, _)| *action)
        .collect();
    assert_eq!(failed, [TestAction::Judged("a", "webhook")]);
    let seconds = begun.elapsed().as_secs();
    assert!((110..120).contains(&seconds), "{seconds}");
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_ends_what_is_postponed_and_begins_nothing() {
    let mut graph = Graph::default();
    let judged = graph.add(TestAction::Judged("a", "webhook"), []);
    graph.add(TestAction::Write("after"), [(judged, EdgeKind::Follows)]);
    let script = Script::new(Duration::from_secs(1_000));
    let interrupt = Interrupt::default();
    let asking = interrupt.clone();
    let work = carry_out(&graph, &script, &interrupt, 8);
    let ((), ()) = tokio::join!(
        async {
            sleep(Duration::from_secs(3)).await;
            asking.request_more_urgently(|_| {});
        },
        work
    );
    assert_eq!(script.ended(), [(TestAction::Judged("a", "webhook"), false)]);
    assert_eq!(script.attempts(TestAction::Write("after")), 0);
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_what_is_postponed_and_begins_nothing() {
    let mut graph = Graph::default();
    graph.add(TestAction::Judged("a", "webhook"), []);
    let stop = graph.add(TestAction::Stop, []);
    graph.add(TestAction::Write("after"), [(stop, EdgeKind::Follows)]);
    graph.add(TestAction::Wait("never begun"), []);
    let script = Script::new(Duration::from_secs(1_000));
    let begun = Instant::now();
    carry_out(&graph, &script, &Interrupt::default(), 8).await;
    let mut ended = script.ended();
    ended.sort_unstable();
    assert_eq!(
        ended,
        [
            (TestAction::Judged("a", "webhook"), false),
            (TestAction::Stop, true)
        ]
    );
    assert!(begun.elapsed() < Duration::from_secs(10));
    assert_eq!(script.attempts(TestAction::Write("after")), 0);
}

#[tokio::test(start_paused = true)]
async fn no_more_writes_run_at_once_than_the_user_allows() {
    for most in [1, 3] {
        let graph: Graph<TestAction> = (0..10).map(|_| TestAction::Write("one")).collect();
        let script = Script::new(Duration::ZERO);
        carry_out(&graph, &script, &Interrupt::default(), most).await;
        assert_eq!(script.ended().len(), 10);
        assert_eq!(script.most_under_way.get(), most);
    }
}
