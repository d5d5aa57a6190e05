//! One trial: a command of which one request is disturbed, watched at every write, and
//! then what a person does about it.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use serde_json::Value;

use super::lie::Lie;
use super::stage::{Scenario, Snapshot, Stage, custom_group};
use crate::support::{
    Fault, Program, Proxy, Run, Running, Sent, Signal, Verdict, Watch, eventually, without_groups,
};

/// How long a disturbed run may take: the pauses of all attempts, on a busy machine.
const LIMIT: Duration = Duration::from_mins(2);

const NOT_SENT: &str = "the request was not sent";

/// One request of a command: its name, and how many of that name came before.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Target {
    pub(super) request: String,
    pub(super) occurrence: usize,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.occurrence {
            0 => f.write_str(&self.request),
            again => write!(f, "{} ({})", self.request, again + 1),
        }
    }
}

impl Target {
    /// Whether it asks for a change; what a user may do is asked by POST, too.
    pub(super) fn is_write(&self) -> bool {
        !self.request.starts_with("GET ") && !self.request.contains("/apis/authorization.k8s.io/")
    }
}

/// What happens at a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Disturbance {
    /// It fails, and the next one does not.
    Once(Fault),
    /// It fails, and so does every later one.
    FromHereOn(Fault),
    /// The server lies, once: a lie that lasts looks like the truth.
    Lie(Lie),
    /// Discovery leaves the group of the custom resources out.
    Omission(Span),
    /// The program gets a signal.
    Signal(Signal, Moment),
    /// The program gets SIGINT twice, while the request hangs.
    Insistence(Moment),
    /// Before the request, `verify --fix` repairs the sets; after it, the program is killed.
    RepairAndKill,
}

/// How long a disturbance lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Span {
    /// For this request.
    Once,
    /// For this request and every later one.
    FromHereOn,
}

/// When a signal comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Moment {
    /// The server has not got the request.
    Before,
    /// The server has answered it, and the program does not know.
    After,
}

impl fmt::Display for Disturbance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Once(fault) => write!(f, "{fault:?}"),
            Self::FromHereOn(fault) => write!(f, "{fault:?}, lasting"),
            Self::Lie(lie) => write!(f, "{lie:?}"),
            Self::Omission(Span::Once) => f.write_str("Omission"),
            Self::Omission(Span::FromHereOn) => f.write_str("Omission, lasting"),
            Self::Signal(signal, moment) => write!(f, "{signal:?} {moment:?}"),
            Self::Insistence(moment) => write!(f, "Interrupt twice {moment:?}"),
            Self::RepairAndKill => f.write_str("Repair, and Kill After"),
        }
    }
}

impl Disturbance {
    pub(super) fn all() -> Vec<Self> {
        let signals = [Signal::Kill, Signal::Interrupt, Signal::Terminate];
        let moments = [Moment::Before, Moment::After];
        let faults = Fault::ALL.into_iter();
        let faults = faults.flat_map(|fault| [Self::Once(fault), Self::FromHereOn(fault)]);
        let ends = signals
            .into_iter()
            .flat_map(|signal| moments.map(|moment| Self::Signal(signal, moment)));
        let lies = Lie::ALL.into_iter().map(Self::Lie);
        faults
            .chain(lies)
            .chain([Span::Once, Span::FromHereOn].map(Self::Omission))
            .chain(ends)
            .chain(moments.map(Self::Insistence))
            .chain([Self::RepairAndKill])
            .collect()
    }

    /// Whether it can happen at this request.
    pub(super) fn suits(self, target: &Target) -> bool {
        match self {
            // Only a list that is read on expires.
            Self::Once(Fault::Expired) | Self::FromHereOn(Fault::Expired) => {
                target.request.contains("continue=")
            }
            // A webhook judges members, and starts in the end: `suite::webhooks` has one that does not.
            Self::Once(Fault::WebhookStarts) => {
                target.request.starts_with("PATCH ") && !target.request.contains("/secrets/web")
            }
            Self::FromHereOn(Fault::WebhookStarts) => false,
            Self::Omission(_) => target.request == "GET /apis",
            // A server that says that it serves other groups looks like one that does.
            // Under another name in a LIST, the object whose replicas are to be handed over looks new.
            Self::Lie(Lie::AnotherObject) => {
                let is_discovery = ["GET /api", "GET /apis"].contains(&target.request.as_str());
                !is_discovery && !target.request.contains("/deployments?labelSelector")
            }
            // Nor can members elsewhere, where all namespaces are asked for. The record then
            // names a place too much.
            Self::Lie(Lie::AnotherNamespace) => !target.request.ends_with("EVERY KIND"),
            _ => true,
        }
    }

    /// A flag that makes the run fit for the trial. `seconds` is how long it waits for
    /// answers that do not come.
    fn flag(self, seconds: u32) -> Option<String> {
        match self {
            Self::Once(fault) | Self::FromHereOn(fault) if fault.is_endless() => {
                Some(format!("--request-timeout={seconds}s"))
            }
            Self::Once(_) | Self::FromHereOn(_) | Self::Lie(_) | Self::Omission(_) => None,
            // So that at most one write is under way.
            Self::Signal(..) | Self::Insistence(_) | Self::RepairAndKill => {
                Some("--concurrency=1".to_owned())
            }
        }
    }
}

/// So many requests of one name are disturbed, and the last.
const ALIKE: usize = 3;

/// The requests of this command when nothing disturbs it.
pub(super) fn record(scenario: &Scenario) -> Vec<Target> {
    let stage = Arc::new((scenario.stage)());
    let director = Arc::new(Director::new(&stage, None));
    let proxy = Proxy::watched(director.clone());
    let program = Program::with_kubeconfig(&proxy.kubeconfig());
    stage.sequels[0].command(program).run().expect(0);
    let seen = director.seen.lock().expect("no panic").clone();
    seen.into_iter()
        .flat_map(|(request, count)| {
            // A look at all kinds sends as many requests as there are kinds, and one is like the
            // other: the first ones and the last one stand for them.
            let some = (0..count).filter(move |number| *number < ALIKE || number + 1 == count);
            some.map(move |occurrence| Target {
                request: request.clone(),
                occurrence,
            })
        })
        .collect()
}

/// Disturbs the command at this request, and says what was wrong then. `number` chooses
/// what is run afterwards.
pub(super) fn attempt(
    scenario: &Scenario,
    target: &Target,
    disturbance: Disturbance,
    number: usize,
) -> Result<(), String> {
    let trial = |seconds| {
        let stage = Arc::new((scenario.stage)());
        let director = Arc::new(Director::new(&stage, Some((target.clone(), disturbance))));
        let proxy = Proxy::watched(director.clone());
        let program = Program::with_kubeconfig(&proxy.kubeconfig());
        let command = stage.sequels[0].command(program).args(disturbance.flag(seconds));
        let outcome = disturb(command.start(), &director, &proxy, disturbance);
        director.release();
        proxy.settle();
        let run = outcome?;
        if !director.is_reached() {
            return Err(NOT_SENT.to_owned());
        }
        director.problem()?;
        let now = stage.look();
        stage.check_always(&director.before, &now)?;
        if let Some(run) = &run {
            let writes = director.carried_out();
            check_run(run, &stage, [&director.before, &now], target, disturbance, writes).map_err(
                |problem| {
                    format!(
                        "{problem}\n--- stdout\n{}\n--- stderr\n{}",
                        run.stdout, run.stderr
                    )
                },
            )?;
        }
        put_in_order(&stage, number % stage.sequels.len(), &director.before)?;
        stage.clear();
        Ok(())
    };
    let attempt = |seconds| {
        catch_unwind(AssertUnwindSafe(|| trial(seconds))).unwrap_or_else(|panic| Err(message(&*panic)))
    };
    // On a machine that is busy an earlier request may take longer than is waited for.
    [1, 4, 16]
        .into_iter()
        .map(attempt)
        .find(|outcome| outcome.as_ref().err().is_none_or(|problem| problem != NOT_SENT))
        .unwrap_or_else(|| Err(NOT_SENT.to_owned()))
}

/// Runs the command to its end, for whichever reason; `None` where it was killed.
fn disturb(
    mut running: Running,
    director: &Director,
    proxy: &Proxy,
    disturbance: Disturbance,
) -> Result<Option<Run>, String> {
    let mut signals = Vec::new();
    match disturbance {
        Disturbance::Once(_)
        | Disturbance::FromHereOn(_)
        | Disturbance::Lie(_)
        | Disturbance::Omission(_) => {}
        Disturbance::Signal(signal, _) => signals.push(signal),
        Disturbance::RepairAndKill => signals.push(Signal::Kill),
        Disturbance::Insistence(_) => signals.extend([Signal::Interrupt; 2]),
    }
    if !signals.is_empty() {
        eventually("the request is sent", || {
            (director.is_reached() || running.has_ended()).then_some(())
        });
        if !director.is_reached() {
            return Err(format!(
                "it ended before the request: {}",
                running.finish().stderr
            ));
        }
    }
    if signals == [Signal::Kill] {
        running.signal(Signal::Kill);
        running.finish();
        return Ok(None);
    }
    for signal in &signals {
        running.signal(*signal);
        running.wait_for_message("stopping");
    }
    let sent = proxy.sent().len();
    if signals.len() == 1 {
        director.release();
    }
    let run = running
        .finish_within(LIMIT)
        .ok_or_else(|| "it does not end".to_owned())?;
    let later = proxy.sent().split_off(sent);
    let begun = later
        .iter()
        .find(|sent| sent.is_write() && !director.stage.is_of_a_record(sent));
    match begun {
        Some(sent) if !signals.is_empty() => Err(format!(
            "{} was begun after the signal",
            director.stage.request(sent)
        )),
        _ => Ok(Some(run)),
    }
}

/// What has to hold of every run that ended by itself, with the snapshots from before and after it.
fn check_run(
    run: &Run,
    stage: &Stage,
    [before, now]: [&Snapshot; 2],
    target: &Target,
    disturbance: Disturbance,
    writes: usize,
) -> Result<(), String> {
    if run.stderr.contains("panicked") {
        return Err("it panicked".to_owned());
    }
    // What cannot be looked into is not deleted.
    let is_look_inside = target.request.contains("EVERYTHING IN");
    let codes: &[i32] = match disturbance {
        Disturbance::Once(fault) if fault.passes() => &[0],
        Disturbance::Once(_) | Disturbance::FromHereOn(_) if is_look_inside => &[0, 1, 3, 4],
        Disturbance::Once(_) | Disturbance::FromHereOn(_) | Disturbance::Omission(Span::FromHereOn) => {
            &[0, 1, 4]
        }
        // If kinds are not served, the manifests are wrong.
        Disturbance::Lie(_) => &[0, 1, 2, 3, 4],
        // What is missing for a moment is waited for.
        Disturbance::Omission(Span::Once) => &[0],
        // The last request may have been answered.
        Disturbance::Signal(..) | Disturbance::Insistence(_) | Disturbance::RepairAndKill => &[0, 130],
    };
    if !codes.contains(&run.code) {
        return Err(format!("exit code {} is none of {codes:?}", run.code));
    }
    if matches!(run.code, 2..=4) && writes > 0 {
        return Err(format!("exit code {} after {writes} writes", run.code));
    }
    if run.code == 2 {
        return Ok(());
    }
    let document: Value =
        serde_json::from_str(&run.stdout).map_err(|error| format!("no document: {error}"))?;
    if run.code == 130 && document["error"]["exitCode"] != 130 {
        return Err("the document does not say that it was interrupted".to_owned());
    }
    let results = document["results"].as_array().ok_or("no results")?;
    // Only the next run can show what was done after a lie.
    if matches!(disturbance, Disturbance::Lie(_)) {
        return Ok(());
    }
    for result in results {
        check_claim(result, now)?;
    }
    if run.code == 0 {
        stage.check_done(&stage.sequels[0], now)?;
        // What is on its way out while the run looks stays recorded, and may be gone by now.
        if !stage.has_deleted_container(before) {
            stage.assert_records(&stage.sequels[0]);
        }
    } else if results.iter().all(|result| result["action"] != "failed")
        && document["error"].is_null()
        && run.code != 130
    {
        return Err("the document does not say what failed".to_owned());
    }
    Ok(())
}

/// Whether what the document says of an object is so.
fn check_claim(result: &Value, now: &Snapshot) -> Result<(), String> {
    let text = |field: &str| result[field].as_str().unwrap_or("-");
    let dot = if text("group").is_empty() { "" } else { "." };
    let identity = format!(
        "{}{dot}{} {}/{}",
        text("kind"),
        text("group"),
        text("namespace"),
        text("name")
    );
    let live = now.get(&identity);
    let is_true = match text("action") {
        "created" | "configured" | "recreated" | "unchanged" | "adopted" | "released" => {
            live.is_some_and(|live| live["metadata"]["uid"] == result["uid"])
        }
        "pruned" | "deleted" => live.is_none(),
        _ => true,
    };
    if is_true {
        Ok(())
    } else {
        Err(format!(
            "{identity} is said to be {}, and is {live:?}",
            text("action")
        ))
    }
}

/// What a person does next puts all in order, and once more changes nothing.
fn put_in_order(stage: &Stage, number: usize, before: &Snapshot) -> Result<(), String> {
    // Without its undo file, a run has not written anything: it is repeated.
    let number = if stage.sequels[number].need.is_missing() {
        0
    } else {
        number
    };
    let sequel = &stage.sequels[number];
    stage.settle();
    stage.abandon_runs();
    let reports_done = sequel.code_when_done != 0;
    let expected = if reports_done && stage.check_done(sequel, &stage.look()).is_ok() {
        sequel.code_when_done
    } else {
        0
    };
    let had_container = stage.has_container();
    let run = sequel.command(Program::new()).run();
    if run.code != expected {
        return Err(format!("the run after it ends with {}: {}", run.code, run.stderr));
    }
    if had_container && (!stage.has_container() || stage.is_container_going()) {
        // This run has deleted it, and the next one forgets it.
        stage.settle();
        sequel.command(Program::new()).run();
    }
    let now = stage.look();
    let in_order = |problem| format!("after the run after it: {problem}");
    stage.check_done(sequel, &now).map_err(in_order)?;
    stage.assert_records(sequel);
    if number == 0 {
        stage.check_always(before, &now).map_err(in_order)?;
    }
    let run = sequel.command(Program::new()).run();
    if run.code != sequel.code_when_done {
        return Err(format!("the third run ends with {}: {}", run.code, run.stderr));
    }
    let changed = if sequel.reports_unchanged() {
        let document = run.document();
        let mut results = document["results"].as_array().expect("results").iter();
        results.find(|result| result["action"] != "unchanged").cloned()
    } else {
        None
    };
    match changed {
        Some(result) => Err(format!("the third run finds something to do: {result}")),
        None if stage.look() != now => Err("the third run changed something".to_owned()),
        None => Ok(()),
    }
}

/// Disturbs one request, and looks at everything after each write.
struct Director {
    stage: Arc<Stage>,
    before: Snapshot,
    /// What there was after the last write.
    last: Mutex<Snapshot>,
    plan: Option<(Target, Disturbance)>,
    /// How often each request was sent.
    seen: Mutex<BTreeMap<String, usize>>,
    /// The number of the request that is disturbed.
    reached: Mutex<Option<usize>>,
    is_there: AtomicBool,
    released: (Mutex<bool>, Condvar),
    writes: Mutex<usize>,
    problem: Mutex<Option<String>>,
}

impl Director {
    fn new(stage: &Arc<Stage>, plan: Option<(Target, Disturbance)>) -> Self {
        let before = stage.look();
        Self {
            stage: Arc::clone(stage),
            last: Mutex::new(before.clone()),
            before,
            plan,
            seen: Mutex::default(),
            reached: Mutex::default(),
            is_there: AtomicBool::new(false),
            released: (Mutex::new(false), Condvar::new()),
            writes: Mutex::default(),
            problem: Mutex::default(),
        }
    }

    /// Whether the request that is disturbed is where it is to be disturbed.
    fn is_reached(&self) -> bool {
        self.is_there.load(Ordering::SeqCst)
    }

    /// Lets the request continue that a signal waits for.
    fn release(&self) {
        *self.released.0.lock().expect("no panic") = true;
        self.released.1.notify_all();
    }

    fn wait(&self) {
        self.is_there.store(true, Ordering::SeqCst);
        let released = self.released.0.lock().expect("no panic");
        let patience = self
            .released
            .1
            .wait_timeout_while(released, LIMIT, |released| !*released);
        drop(patience.expect("no panic"));
    }

    fn problem(&self) -> Result<(), String> {
        match &*self.problem.lock().expect("no panic") {
            Some(problem) => Err(problem.clone()),
            None => Ok(()),
        }
    }

    fn carried_out(&self) -> usize {
        *self.writes.lock().expect("no panic")
    }
}

impl Watch for Director {
    fn before(&self, sent: &Sent, _writes: usize) -> Verdict {
        let request = self.stage.request(sent);
        let occurrence = {
            let mut seen = self.seen.lock().expect("no panic");
            let count = seen.entry(request.clone()).or_default();
            *count += 1;
            *count - 1
        };
        let Some((target, disturbance)) = &self.plan else {
            return Verdict::Forward;
        };
        let is_target = *target == Target { request, occurrence };
        let was_reached = {
            let mut reached = self.reached.lock().expect("no panic");
            let was_reached = reached.is_some();
            if is_target {
                *reached = Some(sent.number);
            }
            was_reached
        };
        match disturbance {
            Disturbance::Once(fault) if is_target => {
                self.is_there.store(true, Ordering::SeqCst);
                Verdict::Break(*fault)
            }
            Disturbance::FromHereOn(fault) if is_target || was_reached => {
                self.is_there.store(true, Ordering::SeqCst);
                match fault {
                    Fault::Refused => Verdict::Vanish,
                    // The lists that are read from the start have not expired.
                    Fault::Expired if !sent.path.contains("continue=") => Verdict::Forward,
                    fault => Verdict::Break(*fault),
                }
            }
            Disturbance::Lie(_) | Disturbance::Omission(_) if is_target => {
                self.is_there.store(true, Ordering::SeqCst);
                Verdict::Forward
            }
            Disturbance::RepairAndKill if is_target => {
                self.stage.repair();
                Verdict::Forward
            }
            Disturbance::Signal(Signal::Kill, Moment::Before) if is_target => {
                self.is_there.store(true, Ordering::SeqCst);
                Verdict::Hold
            }
            Disturbance::Signal(_, Moment::Before) | Disturbance::Insistence(Moment::Before) if is_target => {
                self.wait();
                Verdict::Forward
            }
            _ => Verdict::Forward,
        }
    }

    fn after(&self, sent: &Sent, answer: Response<Bytes>) -> Response<Bytes> {
        if sent.is_write() {
            *self.writes.lock().expect("no panic") += usize::from(answer.status().is_success());
            let checked = catch_unwind(AssertUnwindSafe(|| {
                let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
                *last = self.stage.look_after(sent, &last);
                self.stage
                    .check_always(&self.before, &last)
                    // What goes by itself may be in the earlier look alone.
                    .or_else(|_| self.stage.check_always(&self.before, &self.stage.look()))
            }));
            if let Err(problem) = checked.unwrap_or_else(|panic| Err(message(&*panic))) {
                let mut first = self.problem.lock().expect("no panic");
                first.get_or_insert(format!("after {}: {problem}", self.stage.request(sent)));
            }
        }
        let reached = *self.reached.lock().expect("no panic");
        let is_target = reached == Some(sent.number);
        if let Some((_, Disturbance::Omission(span))) = &self.plan
            && sent.path == "/apis"
            && reached.is_some_and(|reached| match span {
                Span::Once => reached == sent.number,
                Span::FromHereOn => reached <= sent.number,
            })
        {
            return without_groups(answer, |group| group == custom_group());
        }
        if let Some((_, Disturbance::Lie(lie))) = &self.plan
            && is_target
        {
            return lie.falsify(answer);
        }
        let is_held_after = match &self.plan {
            Some((_, Disturbance::Signal(_, moment) | Disturbance::Insistence(moment))) => {
                *moment == Moment::After
            }
            Some((_, Disturbance::RepairAndKill)) => true,
            _ => false,
        };
        if is_held_after && is_target {
            self.wait();
        }
        answer
    }

    /// So that a few objects are several pages.
    fn page_size(&self) -> Option<usize> {
        Some(2)
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic").to_owned()
}
