//! Lets runs continue one request at a time, in every order or in a random one.

use std::collections::BTreeSet;
use std::collections::hash_map::DefaultHasher;
use std::convert::Infallible;
use std::hash::{Hash as _, Hasher as _};
use std::time::Duration;

use http::{Request, Response, StatusCode, header};
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, LocalSet};

use super::runs::{self, Script};
use super::server::{Asked, State, World};
use crate::cluster::apiserver::ApiServer;

/// A step of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// The request that this run waits with is answered.
    Answer(usize),
    /// This run is killed before its request.
    Kill(usize),
    /// So much time passes that killed runs are abandoned.
    Wait,
}

/// The schedules that were tried.
pub(super) struct Schedules {
    pub(super) tried: usize,
    /// The first that broke a promise.
    pub(super) failure: Option<String>,
}

/// An answer, with the minutes that have passed on the server's clock.
type Answer = (StatusCode, Value, u32);

/// What a run says to the schedule.
enum Said {
    Asks(Asked, oneshot::Sender<Answer>),
    Ended(Result<(), String>),
}

/// One run as the schedule sees it.
struct Task {
    handle: JoinHandle<()>,
    server: ApiServer,
    heard: mpsc::UnboundedReceiver<Said>,
    waiting: Option<(Asked, oneshot::Sender<Answer>)>,
    /// The digest of all that it has asked and was answered: it is where it is because of that.
    history: u64,
}

/// All runs and what they have come to.
struct Playing {
    world: World,
    tasks: Vec<Task>,
    steps: Vec<String>,
    /// Whether a run may end with an error: a parent that another run has made an ordinary object
    /// is not taken over.
    may_fail: bool,
}

impl Playing {
    async fn begin(before: &[&str], scripts: &[Script]) -> Self {
        let mut playing = Self {
            world: World::new(before, scripts.len()),
            tasks: (0..)
                .zip(scripts)
                .map(|(number, script)| begin(number, *script))
                .collect(),
            steps: Vec::new(),
            may_fail: scripts.iter().any(|script| matches!(script, Script::Disband)),
        };
        for run in 0..scripts.len() {
            playing.hear(run).await;
        }
        playing
    }

    /// Waits for what a run does next.
    async fn hear(&mut self, run: usize) {
        let task = &mut self.tasks[run];
        match task.heard.recv().await.expect("a run says how it ends") {
            Said::Asks(asked, answer) => task.waiting = Some((asked, answer)),
            Said::Ended(Ok(())) => self.world.runs[run].state = State::Done,
            Said::Ended(Err(error)) => {
                self.steps.push(format!("run {run} fails: {error}"));
                self.world.runs[run].state = State::Failed;
                if !self.may_fail {
                    self.world.broken.get_or_insert(format!("run {run} fails"));
                }
            }
        }
    }

    fn steps(&self, kills: usize) -> Vec<Step> {
        let waiting = (0..self.tasks.len()).filter(|run| self.tasks[*run].waiting.is_some());
        let killed = self
            .world
            .runs
            .iter()
            .filter(|run| run.state == State::Killed)
            .count();
        let kill = waiting.clone().filter(|_| killed < kills).map(Step::Kill);
        let can_wait = killed > 0 && self.world.minutes == 0 && !self.is_registered();
        let wait = can_wait.then_some(Step::Wait);
        waiting.map(Step::Answer).chain(kill).chain(wait).collect()
    }

    /// Returns whether a run under way is in the history, or about to be: it would renew its entry in time.
    fn is_registered(&self) -> bool {
        let asked = self.tasks.iter().filter_map(|task| task.waiting.as_ref());
        let mut bodies = asked.map(|(asked, _)| String::from_utf8_lossy(&asked.body));
        bodies.any(|body| body.contains(r#"\"id\":"#)) || self.world.is_registered()
    }

    async fn take(&mut self, step: Step) {
        match step {
            Step::Kill(run) => {
                self.steps.push(format!("run {run} is killed"));
                self.tasks[run].handle.abort();
                self.tasks[run].waiting = None;
                self.world.runs[run].state = State::Killed;
            }
            Step::Wait => {
                self.steps.push("eleven minutes pass".to_owned());
                self.world.minutes = 11;
                for task in &self.tasks {
                    task.server.advance_clock(11 * 60);
                }
            }
            Step::Answer(run) => {
                let task = &mut self.tasks[run];
                let (asked, reply) = task.waiting.take().expect("it waits");
                let answer = self.world.answer(run, &asked);
                let mut hasher = DefaultHasher::new();
                (task.history, &asked, answer.0.as_u16(), answer.1.to_string()).hash(&mut hasher);
                task.history = hasher.finish();
                let body = String::from_utf8_lossy(&asked.body);
                self.steps.push(format!(
                    "run {run}: {} {} {body} -> {}",
                    asked.method, asked.path, answer.0
                ));
                let _ = reply.send((answer.0, answer.1, self.world.minutes));
                self.hear(run).await;
            }
        }
        self.world.check();
    }

    fn failure(&self) -> Option<String> {
        let broken = self.world.broken.as_ref()?;
        Some(format!("{broken}\n{}", self.steps.join("\n")))
    }

    /// Everything that decides how it continues.
    fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.world.hash(&mut hasher);
        for task in &self.tasks {
            (task.history, task.waiting.is_some()).hash(&mut hasher);
        }
        hasher.finish()
    }
}

fn begin(number: usize, script: Script) -> Task {
    let (said, heard) = mpsc::unbounded_channel();
    let server = server(said.clone());
    let of_run = server.clone();
    let handle = tokio::task::spawn_local(async move {
        let ended = runs::run(number, script, &of_run).await;
        let _ = said.send(Said::Ended(ended.map_err(|error| error.to_string())));
    });
    Task {
        handle,
        server,
        heard,
        waiting: None,
        history: 0,
    }
}

#[expect(clippy::disallowed_types, reason = "a server that is a function")]
fn server(said: mpsc::UnboundedSender<Said>) -> ApiServer {
    let service = tower::service_fn(move |request: Request<Body>| {
        let said = said.clone();
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await.map(http_body_util::Collected::to_bytes);
            let asked = Asked {
                method: head.method,
                path: head.uri.path().to_owned(),
                body: body.unwrap_or_default(),
            };
            let (answer, answered) = oneshot::channel();
            let _ = said.send(Said::Asks(asked, answer));
            // A run that is killed gets no answer, and asks for none.
            let (status, body, minutes) = answered.await.unwrap_or((StatusCode::GONE, Value::Null, 0));
            let mut response = Response::new(Body::from(body.to_string().into_bytes()));
            *response.status_mut() = status;
            let date = format!("Thu, 01 Jan 2026 12:{minutes:02}:30 GMT");
            response
                .headers_mut()
                .insert(header::DATE, date.parse().expect("a date"));
            Ok::<_, Infallible>(response)
        }
    });
    let client = kube::Client::new(service, "default");
    ApiServer::new(client, "https://127.0.0.1:6443", Duration::from_mins(1))
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build();
    LocalSet::new().block_on(&runtime.expect("a runtime"), work)
}

/// Tries every order of the requests, with at most so many runs killed. Orders that lead to the
/// same state are continued once.
pub(super) fn explore(before: &[&str], scripts: &[Script], kills: usize) -> Schedules {
    let mut known = BTreeSet::new();
    let mut open: Vec<Vec<usize>> = vec![Vec::new()];
    let mut tried = 0;
    while let Some(prefix) = open.pop() {
        tried += 1;
        let failure = block_on(async {
            let mut playing = Playing::begin(before, scripts).await;
            for choice in &prefix {
                let step = playing.steps(kills)[*choice];
                playing.take(step).await;
            }
            let mut prefix = prefix;
            loop {
                if playing.world.broken.is_some() {
                    return playing.failure();
                }
                let steps = playing.steps(kills);
                if steps.is_empty() || !known.insert(playing.digest()) {
                    return None;
                }
                for other in 1..steps.len() {
                    open.push([prefix.as_slice(), &[other]].concat());
                }
                prefix.push(0);
                playing.take(steps[0]).await;
            }
        });
        if failure.is_some() {
            return Schedules { tried, failure };
        }
    }
    Schedules { tried, failure: None }
}

/// Tries one random order, in which any run may be killed.
pub(super) fn sample(before: &[&str], scripts: &[Script], seed: u64) -> Option<String> {
    let mut random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(1);
    let mut next = move |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        usize::try_from(random % 1_000_003).unwrap_or_default() % below
    };
    block_on(async {
        let mut playing = Playing::begin(before, scripts).await;
        loop {
            // One step in twenty may kill a run.
            let kills = if next(20) == 0 { scripts.len() - 1 } else { 0 };
            let steps = playing.steps(kills);
            if steps.is_empty() {
                return None;
            }
            let step = steps[next(steps.len())];
            playing.take(step).await;
            if playing.world.broken.is_some() {
                return playing.failure();
            }
        }
    })
}
