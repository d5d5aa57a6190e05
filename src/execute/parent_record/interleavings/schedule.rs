//! Lets runs continue one request at a time, in every order or in a random one.
//!
//! A run is where it is because of the answers that it got, so it is played once for each list of answers,
//! and orders only combine what was played.

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

/// An answer to a request, with the minutes that have passed on the server's clock.
type Answer = (StatusCode, String, u32);

/// The next action of a run.
#[derive(Debug)]
enum Next {
    Ask(Asked),
    End(Result<(), String>),
}

/// The next action of each run after each list of answers, by the digest of both.
struct Runs<'a> {
    scripts: &'a [Script],
    played: HashMap<u64, Rc<Next>>,
}

impl<'a> Runs<'a> {
    fn new(scripts: &'a [Script]) -> Self {
        Self {
            scripts,
            played: HashMap::new(),
        }
    }

    fn next(&mut self, number: usize, answers: &[Rc<Answer>]) -> Rc<Next> {
        let play = || Rc::new(play(number, self.scripts[number], answers));
        Rc::clone(self.played.entry(digest(&(number, answers))).or_insert_with(play))
    }
}

/// Plays one run from its beginning, and returns what it does after these answers.
fn play(number: usize, script: Script, answers: &[Rc<Answer>]) -> Next {
    let (ask, mut asked) = mpsc::unbounded_channel();
    let answers = answers.iter().rev().map(|answer| (**answer).clone()).collect();
    let run = async {
        let server = server(answers, ask);
        tokio::select! {
            biased;
            ended = runs::run(number, script, &server) => Next::End(ended.map_err(|error| error.to_string())),
            asked = asked.recv() => Next::Ask(asked.expect("the server lives as long as the run")),
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build();
    runtime.expect("a runtime").block_on(run)
}

/// A server that gives these answers, the last of the list first, and none to the request after them.
#[expect(clippy::disallowed_types, reason = "a server that is a function")]
fn server(answers: Vec<Answer>, ask: mpsc::UnboundedSender<Asked>) -> ApiServer {
    let answers = Arc::new(Mutex::new(answers));
    let service = tower::service_fn(move |request: Request<Body>| {
        let (answers, ask) = (Arc::clone(&answers), ask.clone());
        async move {
            let next = answers.lock().expect("no answer panics").pop();
            let Some((status, body, minutes)) = next else {
                let (head, body) = request.into_parts();
                let body = body.collect().await.map(http_body_util::Collected::to_bytes);
                let _ = ask.send(Asked {
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
    /// The request that it waits with, unless it has ended.
    asked: Option<Asked>,
}

/// All runs and what they have come to.
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
                asked: None,
            });
            scene.proceed(run, runs);
        }
        scene
    }

    /// Lets a run come to its next request, or to its end.
    fn proceed(&mut self, run: usize, runs: &mut Runs) {
        let progress = &mut self.runs[run];
        match &*runs.next(run, &progress.answers) {
            Next::Ask(asked) => progress.asked = Some(asked.clone()),
            Next::End(Ok(())) => self.world.runs[run].state = State::Done,
            Next::End(Err(error)) => {
                self.world.runs[run].state = State::Failed;
                // A parent that another run has made an ordinary object is not taken over.
                if !runs
                    .scripts
                    .iter()
                    .any(|script| matches!(script, Script::Disband))
                {
                    let text = format!("run {run} fails: {error}");
                    self.world.broken.get_or_insert(text);
                }
            }
        }
    }

    fn steps(&self, kills: usize) -> Vec<Step> {
        let waiting = (0..self.runs.len()).filter(|run| self.runs[*run].asked.is_some());
        let killed = self.world.runs.iter().filter(|run| run.state == State::Killed);
        let killed = killed.count();
        let kill = waiting.clone().filter(|_| killed < kills).map(Step::Kill);
        let can_wait = killed > 0 && self.world.minutes == 0 && !self.is_registered();
        let wait = can_wait.then_some(Step::Wait);
        waiting.map(Step::Answer).chain(kill).chain(wait).collect()
    }

    /// Returns whether a run under way is in the history, or about to be: it would renew its entry in time.
    fn is_registered(&self) -> bool {
        let asked = self.runs.iter().filter_map(|run| run.asked.as_ref());
        let mut bodies = asked.map(|asked| String::from_utf8_lossy(&asked.body));
        bodies.any(|body| body.contains(r#"\"id\":"#)) || self.world.is_registered()
    }

    fn take(&mut self, step: Step, runs: &mut Runs) {
        self.steps.push(step);
        match step {
            Step::Kill(run) => {
                self.runs[run].asked = None;
                self.world.runs[run].state = State::Killed;
            }
            Step::Wait => self.world.minutes = 11,
            Step::Answer(run) => {
                let asked = self.runs[run].asked.take().expect("it waits");
                let (status, body) = self.world.answer(run, &asked);
                let answer = (status, body.to_string(), self.world.minutes);
                self.runs[run].answers.push(Rc::new(answer));
                self.proceed(run, runs);
            }
        }
        self.world.check();
    }

    /// Returns the promise that was broken, and the steps that led there.
    fn failure(&self, before: &[&str], runs: &mut Runs) -> Option<String> {
        let mut told = self.world.broken.clone()?;
        let mut scene = Self::new(before, runs);
        for step in &self.steps {
            let asked = match step {
                Step::Answer(run) => scene.runs[*run].asked.clone(),
                Step::Kill(_) | Step::Wait => None,
            };
            scene.take(*step, runs);
            let _ = write!(told, "\n{step:?}");
            if let (Step::Answer(run), Some(asked)) = (step, asked) {
                let body = String::from_utf8_lossy(&asked.body);
                let answer = scene.runs[*run].answers.last().map(|answer| answer.0);
                let _ = write!(told, ": {} {} {body} -> {answer:?}", asked.method, asked.path);
            }
        }
        Some(told)
    }

    /// Everything that decides how it continues.
    fn digest(&self) -> u64 {
        let runs = self.runs.iter().map(|run| (&run.answers, run.asked.is_some()));
        digest(&(&self.world, runs.collect::<Vec<_>>()))
    }
}

fn digest(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Tries every order of the requests, with at most so many runs killed. Orders that lead to the
/// same state are continued once.
pub(super) fn explore(before: &[&str], scripts: &[Script], kills: usize) -> Schedules {
    let mut runs = Runs::new(scripts);
    let mut known = HashSet::new();
    let mut open = vec![Scene::new(before, &mut runs)];
    let mut tried = 0;
    while let Some(scene) = open.pop() {
        if scene.world.broken.is_some() {
            let failure = scene.failure(before, &mut runs);
            return Schedules { tried, failure };
        }
        let steps = scene.steps(kills);
        if steps.is_empty() || !known.insert(scene.digest()) {
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

/// Tries random orders, in which any run may be killed, one for each seed below this number.
pub(super) fn sample(before: &[&str], scripts: &[Script], seeds: u64) -> Option<String> {
    let mut runs = Runs::new(scripts);
    (0..seeds).find_map(|seed| {
        let failure = sample_one(before, &mut runs, seed)?;
        Some(format!("seed {seed}: {failure}"))
    })
}

fn sample_one(before: &[&str], runs: &mut Runs, seed: u64) -> Option<String> {
    let mut random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(1);
    let mut next = move |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        usize::try_from(random % 1_000_003).unwrap_or_default() % below
    };
    let mut scene = Scene::new(before, runs);
    while scene.world.broken.is_none() {
        // One step in twenty may kill a run.
        let kills = if next(20) == 0 { runs.scripts.len() - 1 } else { 0 };
        let steps = scene.steps(kills);
        if steps.is_empty() {
            return None;
        }
        scene.take(steps[next(steps.len())], runs);
    }
    scene.failure(before, runs)
}
