//! One run of a command that writes: its connection, its report, its interrupt, its questions and its end.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use super::connect::{self, connect, discover};
pub use super::prompt::Agreed;
use super::prompt::{self, Questions, ask_user};
use super::signals::listen;
use super::time_limit::TimeLimit;
use crate::cli::GlobalFlags;
use crate::cluster::apiserver::ApiServer;
use crate::cluster::connection::Connection;
use crate::error::Error;
use crate::event::{Ending, Event, Interrupt, InterruptCause, NotDone, Operation, Resume};
use crate::exit::Exit;
use crate::model::history_annotation::format_abandonment_time;
use crate::model::write_settings::DryRun;
use crate::plan::{Consent, Proposal};
use crate::read::{Cluster, KindWaits, Wanted};
use crate::report::{self, ContextAndServer, PlanOutline, Question, Reporter, RunEnd, SetDocument, Style};

/// A note is printed once a request has waited for this long because the server has no capacity.
const CAPACITY_NOTE_AFTER: Duration = Duration::from_secs(2);

/// One run of a command that writes.
pub struct CommandRun {
    /// The set that the run is about: only its name until its parent's kind was resolved.
    pub set: SetDocument,
    /// The context and the server, for the report; empty until there is a connection.
    pub place: ContextAndServer,
    pub reporter: Reporter,
    /// The request to stop, by the user or by `--timeout`.
    pub interrupt: Interrupt,
    /// The server, whose requests the report counts; `None` until there is a connection.
    pub server: Option<ApiServer>,
    limit: TimeLimit,
    style: Style,
    /// The advice on how to resume the run after an interrupt.
    pub resume: Resume,
    questions: Questions,
    /// The texts of the notes and warnings so far. A run that reads again, after a question or after another run, would
    /// report the same ones a second time otherwise.
    reported: HashSet<String>,
    /// The time at which the run began; `--exclusive` waits from then on.
    pub(super) began: tokio::time::Instant,
    /// How many times the run has planned again because another run began first.
    pub(super) replans: usize,
}

impl CommandRun {
    /// Begins a run. From then on, signals interrupt it instead of killing the program.
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
            // A dry run does not ask: its report shows what the run would be refused for.
            questions: match dry_run {
                DryRun::None => questions,
                DryRun::Client | DryRun::Server => Questions::Impossible,
            },
            limit: TimeLimit::unlimited(),
            style,
            resume: Resume::default(),
            reported: HashSet::new(),
            began: tokio::time::Instant::now(),
            replans: 0,
        }
    }

    /// Returns the waits for kinds that are not served yet: they end with `--timeout`, and print a note.
    pub fn kind_waits(&self) -> KindWaits {
        let style = self.style;
        let limit = self.limit.clone();
        KindWaits::new(
            move || limit.deadline(),
            move |text| report::print_note(text, style),
        )
    }

    /// Connects to the server, ends its long pauses once the run is interrupted, and prints a note if the server has no
    /// capacity for the user's requests.
    pub async fn connect(&mut self, shared: &GlobalFlags) -> Result<Connection, Error> {
        let connection = connect(shared).await?;
        let server = connection.server.clone();
        self.server = Some(server.clone());
        self.place = connect::context_and_server(&connection);
        let interrupt = self.interrupt.clone();
        tokio::spawn(async move {
            interrupt.wait_until_requested().await;
            server.give_up_long_pauses();
        });
        let (server, style) = (connection.server.clone(), self.style);
        tokio::spawn(async move {
            server.wait_until_throttled_for(CAPACITY_NOTE_AFTER).await;
            report::print_note(
                "the server does not accept requests for now (429 Too Many Requests); retrying",
                style,
            );
        });
        Ok(connection)
    }

    /// Connects, asks the server what it serves, and reads what `wanted` names at the same time. Only discovers the
    /// server again if there is an `outdated` plan with a connection.
    pub async fn discover_or_discover_again(
        &mut self,
        shared: &GlobalFlags,
        wanted: Wanted<'_>,
        outdated: Option<Cluster>,
    ) -> Result<Cluster, Error> {
        if let Some(mut cluster) = outdated {
            cluster.discover_again().await?;
            return Ok(cluster);
        }
        let connection = self.connect(shared).await?;
        discover(connection, self.kind_waits(), wanted).await
    }

    /// Stops the run when this time is over; with `None`, the run may take any time.
    pub fn set_time_limit(&mut self, time: Option<Duration>) {
        if let Some(time) = time {
            self.limit = TimeLimit::start(time, self.interrupt.clone());
        }
    }

    /// Prints the end of the report, and returns how the program ends.
    pub fn finish(mut self, outcome: Result<Ending, Error>) -> Result<Exit, Error> {
        let is_timed_out = self.interrupt.cause() == Some(InterruptCause::Timeout)
            && matches!(outcome, Ok(Ending::Interrupted));
        let interrupted = if is_timed_out {
            Exit::Failed
        } else {
            Exit::Interrupted
        };
        if is_timed_out {
            let text = "timed out waiting for the condition: --timeout ran out";
            self.reporter.take_event(Event::general_failure(text.to_owned()));
        }
        self.report_what_is_left(&outcome);
        self.warn_of_entry_under_way();
        let requests = self.server.as_ref().map_or(0, ApiServer::request_count);
        let end = match &outcome {
            Ok(Ending::Interrupted) => RunEnd::Interrupted(self.resume, interrupted),
            Ok(Ending::Done | Ending::Incomplete) => RunEnd::Complete,
            Err(error) => RunEnd::Failed(error),
        };
        if self.reporter.may_print_end(end) {
            self.reporter.finish((self.set, &self.place), end, requests);
        }
        Ok(match outcome? {
            Ending::Done => Exit::Done,
            Ending::Incomplete => Exit::Failed,
            Ending::Interrupted => interrupted,
        })
    }

    /// Reports the planned objects without a result, and what is left of a run that was stopped.
    fn report_what_is_left(&mut self, outcome: &Result<Ending, Error>) {
        let reason = match (outcome, self.interrupt.cause()) {
            (Ok(Ending::Done), _) => return,
            (Ok(Ending::Interrupted), Some(cause)) => format!("not sent: {}", cause.reason()),
            _ => NotDone::RUN_ENDED_EARLY.to_owned(),
        };
        let left = self.reporter.report_unfinished(&reason, self.server.as_ref());
        if let (Some(left), Ok(Ending::Interrupted)) = (left, outcome) {
            let text = format!("run ended early: {left}; {}", self.resume);
            self.reporter.take_event(Event::Warning(text));
        }
    }

    /// Warns that the parent lists the run as under way, and until when, if the run has not written its end there.
    fn warn_of_entry_under_way(&mut self) {
        // The lease has an age unless the run has given it back by writing its end, or has lost it.
        let listed_until = self.server.as_ref().and_then(|server| {
            let renewed = server.now().checked_sub(server.lease_age()?).ok()?;
            format_abandonment_time(renewed)
        });
        if let Some(until) = listed_until {
            self.reporter.take_event(Event::Warning(format!(
                "could not record that this run has ended, so the set lists this run as under way until {until}; until then, `delete`, `disband` and `move` keep the parent; to end it now, run `kubectl applyset verify SET --fix` at a terminal"
            )));
        }
    }

    /// Returns when the user agreed to a plan. If the consent so far does not cover the plan, it is shown at a
    /// terminal, and the user's answer becomes the consent. The time until the answer counts neither for `--timeout`
    /// nor for the duration in the report.
    ///
    /// # Errors
    ///
    /// A refusal in the plan cannot be lifted by an answer, there is no terminal, or the user does not agree.
    pub(super) async fn ensure_agreement(
        &self,
        consent: &mut Consent,
        proposal: Proposal,
        outline: impl FnOnce() -> PlanOutline,
    ) -> Result<Agreed, Error> {
        prompt::ensure_agreement(self.questions, consent, proposal, self.style, async |refusals| {
            let question = Question {
                set: Some(self.set.clone()),
                place: self.place.clone(),
                refusals,
                outline: Some(outline()),
                device: self.style.messages,
                colors: self.style.colors,
            };
            let asked = Instant::now();
            let is_confirmed = self.limit.pause_during(ask_user(question)).await;
            self.reporter.exclude_from_duration(asked.elapsed());
            is_confirmed
        })
        .await
    }

    /// Reports the notes that this run has not reported yet.
    pub fn report_new_notes(&mut self, texts: Vec<String>) {
        for text in texts {
            if self.reported.insert(text.clone()) {
                self.reporter.take_event(Event::Note(text));
            }
        }
    }

    /// Reports the warnings that this run has not reported yet.
    pub fn report_new_warnings(&mut self, texts: &[String]) {
        for text in texts {
            if self.reported.insert(text.clone()) {
                self.reporter.take_event(Event::Warning(text.clone()));
            }
        }
    }
}
