//! Lets runs continue one request at a time, in every order or in a random one.
//!
//! The answers that a run has got decide what it does next. So each run is played once for each list of answers, from
//! its beginning, and all schedules in which it gets these answers share the result.

use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::fmt::Write as _;
use std::hash::{Hash, Hasher as _};
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Request, Response, StatusCode, header};
use http_body_util::BodyExt as _;
use kube::client::Body;
use tokio::sync::mpsc;

use super::runs::{self, Script};
use super::server::{SentRequest, State, World};
use crate::cluster::apiserver::ApiServer;
use crate::execute::ParentWriteError;

/// A step of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// The server answers the request of the run with this number.
    Answer(usize),
    /// The run with this number is killed before the server gets its request.
    Kill(usize),
    /// So much time passes that the entries of killed runs count as abandoned.
    Wait,
}

/// The schedules that were tried.
pub(super) struct Schedules {
    pub(super) tried: usize,
    /// The promise that the first failed schedule broke, and the steps of that schedule.
    pub(super) failure: Option<String>,
}

/// An answer to a request, with the minutes that have passed on the server's clock.
type Answer = (StatusCode, String, u32);

/// The next action of a run.
#[derive(Debug)]
enum NextAction {
    Request(SentRequest),
    End(Result<(), String>),
}

/// Remembers the next action of each run after each list of answers.
struct Runs<'a> {
    scripts: &'a [Script],
    /// The actions, by the digest of the number of the run and the answers.
    played: HashMap<u64, Rc<NextAction>>,
}

impl<'a> Runs<'a> {
    fn new(scripts: &'a [Script]) -> Self {
        Self {
            scripts,
            played: HashMap::new(),
        }
    }

    fn next_action(&mut self, number: usize, answers: &[Rc<Answer>]) -> Rc<NextAction> {
        let play = || Rc::new(play(number, self.scripts[number], answers));
        Rc::clone(self.played.entry(digest(&(number, answers))).or_insert_with(play))
    }
}

/// Plays one run from its beginning, and returns what it does after these answers.
fn play(number: usize, script: Script, answers: &[Rc<Answer>]) -> NextAction {
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let answers = answers.iter().rev().map(|answer| (**answer).clone()).collect();
    let run = async {
        let server = build_server_that_stops_after_answers(answers, sender);
        tokio::select! {
            biased;
            ended = runs::play_run(number, script, &server) => {
                NextAction::End(ended.map_err(|error| error.to_string()))
            }
            request = receiver.recv() => {
                NextAction::Request(request.expect("the server lives as long as the run"))
            }
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build();
    runtime.expect("a runtime").block_on(run)
}

/// Returns a server that gives these answers, the last of the list first. The next request is sent to `sender`, and
/// never answered.
#[expect(clippy::disallowed_types, reason = "the server of the test is a closure")]
fn build_server_that_stops_after_answers(
    answers_last_first: Vec<Answer>,
    sender: mpsc::UnboundedSender<SentRequest>,
) -> ApiServer {
    let answers = Arc::new(Mutex::new(answers_last_first));
    let service = tower::service_fn(move |request: Request<Body>| {
        let (answers, sender) = (Arc::clone(&answers), sender.clone());
        async move {
            let next = answers.lock().expect("no answer panics").pop();
            let Some((status, body, minutes)) = next else {
                let (head, body) = request.into_parts();
                let body = body.collect().await.map(http_body_util::Collected::to_bytes);
                let _ = sender.send(SentRequest {
                    method: head.method,
                    path: head.uri.path().to_owned(),
                    body: body.unwrap_or_default(),
                });
                return std::future::pending().await;
            };
            let date = format!("Thu, 01 Jan 2026 12:{minutes:02}:30 GMT");
            let answer = Response::builder().status(status).header(header::DATE, date);
            Ok::<_, Infallible>(answer.body(Body::from(body.into_bytes())).expect("an answer"))
        }
    });
    let client = kube::Client::new(service, "default");
    ApiServer::new(client, "https://127.0.0.1:6443", Duration::from_mins(1))
}

/// One run as the schedule sees it.
#[derive(Debug, Clone)]
struct RunProgress {
    answers: Vec<Rc<Answer>>,
    /// The request that the server has not answered yet; `None` if the run has ended or was killed.
    request: Option<SentRequest>,
}

/// The server and all runs after the `steps` of a schedule.
#[derive(Debug, Clone)]
struct Scene {
    world: World,
    runs: Vec<RunProgress>,
    steps: Vec<Step>,
}

impl Scene {
    fn new(before: &[&str], runs: &mut Runs) -> Self {
        let number = runs.scripts.len();
        let mut scene = Self {
            world: World::new(before, number),
            runs: Vec::new(),
            steps: Vec::new(),
        };
        for run in 0..number {
            scene.runs.push(RunProgress {
                answers: Vec::new(),
                request: None,
            });
            scene.proceed(run, runs);
        }
        scene
    }

    /// Lets a run continue to its next request, or to its end.
    fn proceed(&mut self, run: usize, runs: &mut Runs) {
        let progress = &mut self.runs[run];
        match &*runs.next_action(run, &progress.answers) {
            NextAction::Request(request) => progress.request = Some(request.clone()),
            NextAction::End(Ok(())) => self.world.runs[run].state = State::Done,
            NextAction::End(Err(error)) => {
                self.world.runs[run].state = State::Failed;
                // Runs may fail only beside a `Disband`, which makes the parent an ordinary object that others do not
                // take over, and beside a `Delete` that has deleted the parent.
                let may_fail = runs.scripts.contains(&Script::Disband)
                    || (*error == ParentWriteError::Gone.to_string()
                        && runs.scripts.contains(&Script::Delete));
                if !may_fail {
                    let text = format!("run {run} fails: {error}");
                    self.world.broken.get_or_insert(text);
                }
            }
        }
    }

    /// Returns the steps that may come next, if at most `kills` runs may be killed.
    fn possible_steps(&self, kills: usize) -> Vec<Step> {
        let waiting = (0..self.runs.len()).filter(|run| self.runs[*run].request.is_some());
        let killed = self.world.runs.iter().filter(|run| run.state == State::Killed);
        let killed = killed.count();
        let kill = waiting.clone().filter(|_| killed < kills).map(Step::Kill);
        let can_wait = killed > 0 && self.world.minutes == 0 && !self.has_live_entry();
        let wait = can_wait.then_some(Step::Wait);
        waiting.map(Step::Answer).chain(kill).chain(wait).collect()
    }

    /// Returns whether a live run has an entry in the history, or has sent a request that writes it. Such a run would
    /// renew its entry in time.
    fn has_live_entry(&self) -> bool {
        let requests = self.runs.iter().filter_map(|run| run.request.as_ref());
        let mut bodies = requests.map(|request| String::from_utf8_lossy(&request.body));
        bodies.any(|body| body.contains(r#"\"id\":"#)) || self.world.has_live_entry()
    }

    fn take(&mut self, step: Step, runs: &mut Runs) {
        self.steps.push(step);
        match step {
            Step::Kill(run) => {
                self.runs[run].request = None;
                self.world.runs[run].state = State::Killed;
            }
            Step::Wait => self.world.minutes = 11,
            Step::Answer(run) => {
                let request = self.runs[run].request.take().expect("it waits");
                let (status, body) = self.world.answer(run, &request);
                let answer = (status, body.to_string(), self.world.minutes);
                self.runs[run].answers.push(Rc::new(answer));
                self.proceed(run, runs);
            }
        }
        self.world.check();
    }

    /// Returns the promise that was broken, and the steps that led there; `None` if none was broken.
    fn describe_failure(&self, initial_kinds: &[&str], runs: &mut Runs) -> Option<String> {
        let mut text = self.world.broken.clone()?;
        let mut scene = Self::new(initial_kinds, runs);
        for step in &self.steps {
            let request = match step {
                Step::Answer(run) => scene.runs[*run].request.clone(),
                Step::Kill(_) | Step::Wait => None,
            };
            scene.take(*step, runs);
            let _ = write!(text, "\n{step:?}");
            if let (Step::Answer(run), Some(request)) = (step, request) {
                let body = String::from_utf8_lossy(&request.body);
                let status = scene.runs[*run].answers.last().map(|answer| answer.0);
                let _ = write!(text, ": {} {} {body} -> {status:?}", request.method, request.path);
            }
        }
        Some(text)
    }

    /// Returns the digest of everything that decides how the scene may continue.
    fn digest(&self) -> u64 {
        let runs = self.runs.iter().map(|run| (&run.answers, run.request.is_some()));
        digest(&(&self.world, runs.collect::<Vec<_>>()))
    }
}

fn digest(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Tries every order of the requests, with at most `kills` runs killed. If several orders lead to the same state, only
/// one of them is continued.
pub(super) fn explore(initial_kinds: &[&str], scripts: &[Script], kills: usize) -> Schedules {
    let mut runs = Runs::new(scripts);
    let mut continued = HashSet::new();
    let mut open = vec![Scene::new(initial_kinds, &mut runs)];
    let mut tried = 0;
    while let Some(scene) = open.pop() {
        if scene.world.broken.is_some() {
            let failure = scene.describe_failure(initial_kinds, &mut runs);
            return Schedules { tried, failure };
        }
        let steps = scene.possible_steps(kills);
        if steps.is_empty() || !continued.insert(scene.digest()) {
            tried += 1;
            continue;
        }
        for step in steps {
            let mut next = scene.clone();
            next.take(step, &mut runs);
            open.push(next);
        }
    }
    Schedules { tried, failure: None }
}

/// Tries a random order for each seed below `seeds`. All runs but one may be killed. Returns the first failure.
pub(super) fn sample(initial_kinds: &[&str], scripts: &[Script], seeds: u64) -> Option<String> {
    let mut runs = Runs::new(scripts);
    (0..seeds).find_map(|seed| {
        let failure = sample_one(initial_kinds, &mut runs, seed)?;
        Some(format!("seed {seed}: {failure}"))
    })
}

fn sample_one(initial_kinds: &[&str], runs: &mut Runs, seed: u64) -> Option<String> {
    // Xorshift, which needs a state other than zero.
    let mut random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(1);
    let mut random_below = move |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        usize::try_from(random % 1_000_003).unwrap_or_default() % below
    };
    let mut scene = Scene::new(initial_kinds, runs);
    while scene.world.broken.is_none() {
        // One step in twenty may kill a run.
        let kills = if random_below(20) == 0 {
            runs.scripts.len() - 1
        } else {
            0
        };
        let steps = scene.possible_steps(kills);
        if steps.is_empty() {
            return None;
        }
        scene.take(steps[random_below(steps.len())], runs);
    }
    scene.describe_failure(initial_kinds, runs)
}
