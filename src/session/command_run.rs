//! One run of a command that writes: its report, its interrupt and its end.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use super::connect::{self, connect, discover};
pub use super::prompt::Agreed;
use super::prompt::{self, Questions, answer};
use super::signals::listen;
use super::time_limit::TimeLimit;
use crate::cli::GlobalFlags;
use crate::cluster::apiserver::ApiServer;
use crate::cluster::connection::Connection;
use crate::error::{Error, Exit};
use crate::event::{Ending, Event, Operation, Resume};
use crate::execute::{Cause, Interrupt};
use crate::model::history_annotation::abandoned_from;
use crate::model::write_settings::DryRun;
use crate::plan::{Consent, Proposal};
use crate::read::{Cluster, KindWaits, Wanted};
use crate::report::{
    self, ContextAndServer, PlanOutline, Question, Reporter, RunEnd, SetDocument, Style, WrittenBefore,
};

/// The wait for capacity of the server after which a note is printed.
const SILENCE: Duration = Duration::from_secs(2);

/// One run.
pub struct CommandRun {
    /// The set, as far as it is known.
    pub set: SetDocument,
    /// The cluster, once there is a connection.
    pub place: ContextAndServer,
    /// Its report.
    pub reporter: Reporter,
    /// The user's request to stop.
    pub interrupt: Interrupt,
    /// The server whose requests are counted, once there is a connection.
    pub server: Option<ApiServer>,
    limit: TimeLimit,
    style: Style,
    /// The advice on how to resume it after an interrupt.
    pub resume: Resume,
    questions: Questions,
    /// The notes and warnings so far: a run that reads again after a question finds the same again.
    reported: HashSet<String>,
    /// The time at which it began.
    pub(super) began: tokio::time::Instant,
    /// The number of times that it has planned again because of another run.
    pub(super) attempts: usize,
}

impl CommandRun {
    /// Begins a run, and listens for signals from here on.
    pub fn begin(
        operation: Operation,
        set: SetDocument,
        style: Style,
        dry_run: DryRun,
        questions: Questions,
    ) -> Self {
        Self {
            set,
            place: ContextAndServer::default(),
            reporter: Reporter::new(operation, style, dry_run),
            interrupt: listen(),
            server: None,
            // A preview needs no consent: it says what would be refused.
            questions: match dry_run {
                DryRun::None => questions,
                DryRun::Client | DryRun::Server => Questions::Impossible,
            },
            limit: TimeLimit::none(),
            style,
            resume: Resume::default(),
            reported: HashSet::new(),
            began: tokio::time::Instant::now(),
            attempts: 0,
        }
    }

    /// The waits for kinds that are not served yet.
    pub fn kind_waits(&self) -> KindWaits {
        let style = self.style;
        let limit = self.limit.clone();
        KindWaits::new(move || limit.end(), move |text| report::note(text, style))
    }

    /// Sets up the connection of this run.
    pub async fn connect(&mut self, shared: &GlobalFlags) -> Result<Connection, Error> {
        let connection = connect(shared).await?;
        let server = connection.server.clone();
        self.server = Some(server.clone());
        self.place = connect::place(&connection);
        let interrupt = self.interrupt.clone();
        tokio::spawn(async move {
            interrupt.requested().await;
            server.end_long_pauses();
        });
        let (server, style) = (connection.server.clone(), self.style);
        tokio::spawn(async move {
            server.waits_for_capacity(SILENCE).await;
            report::note(
                "the server has no capacity for this user's requests (429 Too Many Requests); retrying",
                style,
            );
        });
        Ok(connection)
    }

    /// Connects, and asks the server what it serves.
    pub async fn discover(&mut self, shared: &GlobalFlags, wanted: Wanted<'_>) -> Result<Cluster, Error> {
        let connection = self.connect(shared).await?;
        discover(connection, self.kind_waits(), wanted).await
    }

    /// Stops the run when this time is over, if it has a limit.
    pub fn limit(&mut self, time: Option<Duration>) {
        if let Some(time) = time {
            self.limit = TimeLimit::begin(time, self.interrupt.clone());
        }
    }

    /// Runs `work` until the user requests an immediate stop.
    ///
    /// Requests in flight are not waited for then: only the next run can find out whether they took effect.
    pub async fn until_insisted<E>(
        interrupt: &Interrupt,
        work: impl Future<Output = Result<Ending, E>>,
    ) -> Result<Ending, E> {
        tokio::select! {
            ending = work => ending,
            () = interrupt.insisted() => Ok(Ending::Interrupted),
        }
    }

    /// Prints the end of the report, and returns how the program ends.
    pub fn finish(mut self, outcome: Result<Ending, Error>) -> Result<Exit, Error> {
        let is_over = self.interrupt.cause() == Cause::Time && matches!(outcome, Ok(Ending::Interrupted));
        if is_over {
            let text = "timed out waiting for the condition: --timeout ran out";
            self.reporter.event(Event::failure(text.to_owned()));
        }
        self.report_what_is_left(&outcome);
        let requests = self.server.as_ref().map_or(0, ApiServer::requests);
        let end = match &outcome {
            Ok(Ending::Interrupted) => RunEnd::Interrupted(self.resume),
            Ok(Ending::Done | Ending::Incomplete) => RunEnd::Complete,
            Err(error) => RunEnd::Failed(error),
        };
        if self.reporter.is_end_printed(end) {
            self.reporter.finish((self.set, &self.place), end, requests);
        }
        Ok(match outcome? {
            Ending::Done => Exit::Done,
            Ending::Incomplete => Exit::Failed,
            Ending::Interrupted if is_over => Exit::Failed,
            Ending::Interrupted => Exit::Interrupted,
        })
    }

    /// Reports planned objects without a result, and what is left of a run that was stopped.
    fn report_what_is_left(&mut self, outcome: &Result<Ending, Error>) {
        let reason = match outcome {
            Ok(Ending::Done) => return,
            Ok(Ending::Interrupted) => format!("not sent: {}", self.interrupt.cause().reason()),
            Ok(Ending::Incomplete) | Err(_) => "not done: the run ended early".to_owned(),
        };
        let left = self.reporter.end(&reason, self.server.as_ref());
        if let (Some(left), Ok(Ending::Interrupted)) = (left, outcome) {
            let text = format!("run ended early: {left}; {}", self.resume);
            self.reporter.event(Event::Warning(text));
        }
        let until = self.server.as_ref().and_then(|server| {
            let renewed = server.now().checked_sub(server.lease_age()?).ok()?;
            abandoned_from(renewed)
        });
        if let Some(until) = until {
            self.reporter.event(Event::Warning(format!(
                "the set lists this run as under way until {until}: it could not write that it has ended; until then `delete`, `disband` and `move` keep the set's parent, unless a run of `kubectl applyset verify SET --fix` at a terminal ends it"
            )));
        }
    }

    /// Returns whether the user agrees to a plan. If the consent so far does not cover it, the plan is shown at a
    /// terminal, and the answer is the new consent. The time until then does not count.
    ///
    /// # Errors
    ///
    /// An answer could not lift all refusals, there is no terminal, or the user does not agree.
    pub(super) async fn agree(
        &self,
        consent: &mut Consent,
        proposal: Proposal,
        outline: impl FnOnce() -> PlanOutline,
    ) -> Result<Agreed, Error> {
        prompt::agree(self.questions, consent, proposal, self.style, async |refusals| {
            let question = Question {
                set: Some(self.set.clone()),
                place: self.place.clone(),
                refusals,
                outline: Some(outline()),
                written: WrittenBefore::Nothing,
                device: self.style.messages,
                colors: self.style.colors,
            };
            let asked = Instant::now();
            let is_confirmed = self.limit.stopped_during(answer(question)).await;
            self.reporter.pause(asked.elapsed());
            is_confirmed
        })
        .await
    }

    /// Reports notes, each once.
    pub fn report_notes(&mut self, texts: Vec<String>) {
        for text in texts {
            if self.reported.insert(text.clone()) {
                self.reporter.event(Event::Note(text));
            }
        }
    }

    /// Reports warnings, each once.
    pub fn report_warnings(&mut self, texts: &[String]) {
        for text in texts {
            if self.reported.insert(text.clone()) {
                self.reporter.event(Event::Warning(text.clone()));
            }
        }
    }
}
