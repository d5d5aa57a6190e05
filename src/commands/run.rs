//! One run of a command that writes: who is told of it, how it is stopped, and how it
//! ends.
//!
//! What is written is the business of each command.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::opening::Waits;
use crate::cluster::apiserver::ApiServer;
use crate::error::{Error, Exit};
use crate::event::{Ending, Event, NotDone, Operation, Resume};
use crate::execute::{Cause, Interrupt, Wish};
use crate::model::settings::DryRun;
use crate::plan::Refusal;
use crate::report::{self, Colors, Completeness, Cost, Reporter, SetDocument, Style};

/// How long the requests under way are waited for when the time of a run is over.
const LAST_REQUESTS: Duration = Duration::from_secs(5);

/// One run.
pub(super) struct Run {
    /// What is known of the set so far.
    pub(super) set: SetDocument,
    /// Who is told.
    pub(super) reporter: Reporter,
    /// The user's wish to stop.
    pub(super) interrupt: Interrupt,
    /// Whose requests are counted, once there is a connection.
    pub(super) server: Option<ApiServer>,
    /// When it began.
    pub(super) started: Instant,
    /// When its time is over, where that is limited.
    end: Option<Instant>,
    style: Style,
    /// How to finish it if it is interrupted.
    pub(super) resume: Resume,
    questions: Questions,
}

/// Whether there is a person to ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Questions {
    /// There is.
    Asked,
    /// There is not, or standard input is wanted for something else.
    Impossible,
}

impl Run {
    /// Begins a run, and listens for signals from here on.
    pub(super) fn begin(
        operation: Operation,
        set: SetDocument,
        style: Style,
        dry_run: DryRun,
        questions: Questions,
    ) -> Self {
        Self {
            set,
            reporter: Reporter::new(operation, style, dry_run),
            interrupt: listen(),
            server: None,
            questions,
            started: Instant::now(),
            end: None,
            style,
            resume: Resume::default(),
        }
    }

    /// How long it may wait for kinds that are not served yet.
    pub(super) fn waits(&self) -> Waits {
        Waits {
            end_of_run: self.end.map(tokio::time::Instant::from_std),
            style: self.style,
        }
    }

    /// Lets the run stop when this time is over, as if somebody had interrupted it; a moment
    /// later at once.
    pub(super) fn limit(&mut self, time: Option<Duration>) {
        let Some(time) = time else { return };
        self.end = Some(Instant::now() + time);
        let interrupt = self.interrupt.clone();
        tokio::spawn(async move {
            tokio::time::sleep(time).await;
            interrupt.run_out();
            tokio::time::sleep(LAST_REQUESTS).await;
            interrupt.run_out();
        });
    }

    /// Carries `work` on until the user insists that it stops.
    ///
    /// What is under way then is neither waited for nor told: whether the server has got
    /// it, only the next run can find out.
    pub(super) async fn until_insisted<E>(
        interrupt: &Interrupt,
        work: impl Future<Output = Result<Ending, E>>,
    ) -> Result<Ending, E> {
        tokio::select! {
            ending = work => ending,
            () = interrupt.insisted() => Ok(Ending::Interrupted),
        }
    }

    /// Prints what belongs at the end, and says how the program ends.
    pub(super) fn finish(mut self, outcome: Result<Ending, Error>) -> Result<Exit, Error> {
        if matches!(outcome, Ok(Ending::Interrupted)) && self.interrupt.is_insisted() {
            let text = format!(
                "stopped at once: the requests under way may have been carried out; {}",
                self.resume
            );
            self.reporter.event(Event::Warning(text));
        }
        let is_over = self.interrupt.cause() == Cause::Time && matches!(outcome, Ok(Ending::Interrupted));
        if is_over {
            let text = "the time that --timeout gives was over before everything was done";
            self.reporter.event(Event::failure(text.to_owned()));
        }
        if let Some(reason) = self.reason_of_what_is_left(&outcome) {
            self.reporter.event(NotDone::all(reason));
        }
        let seconds = self.started.elapsed().as_secs_f64();
        let requests = self.server.as_ref().map_or(0, ApiServer::requests);
        let error = outcome.as_ref().err();
        let completeness = match outcome {
            Ok(Ending::Interrupted) => Completeness::BrokenOff(self.resume),
            Ok(Ending::Done | Ending::Incomplete) | Err(_) => Completeness::ToTheEnd,
        };
        if error.is_none_or(|error| error.exit() != Exit::Usage) {
            let cost = Cost { requests, seconds };
            self.reporter.finish(self.set, error, completeness, cost);
        }
        Ok(match outcome? {
            Ending::Done => Exit::Done,
            Ending::Incomplete => Exit::Failed,
            Ending::Interrupted if is_over => Exit::Failed,
            Ending::Interrupted => Exit::Interrupted,
        })
    }

    /// The reason why planned objects that were not reported are skipped; `None` if none is left.
    fn reason_of_what_is_left(&self, outcome: &Result<Ending, Error>) -> Option<&'static str> {
        Some(match outcome {
            Ok(Ending::Done) => return None,
            Ok(Ending::Incomplete) | Err(_) => "not reached: the run ended early",
            Ok(Ending::Interrupted) if self.interrupt.cause() == Cause::Time => {
                "not reached: --timeout ran out"
            }
            Ok(Ending::Interrupted) if self.interrupt.is_insisted() => {
                "the run was stopped at once; the request may still have been carried out"
            }
            Ok(Ending::Interrupted) => "not reached: the run was interrupted",
        })
    }

    /// Shows at a terminal what stands against the run, and asks whether to go on.
    pub(super) async fn confirm(&self, refusals: Vec<Refusal>) -> Result<(), Error> {
        if self.questions == Questions::Impossible {
            return Err(Error::Refused(refusals));
        }
        if answer(refusals.clone(), self.reporter.colors()).await {
            Ok(())
        } else {
            Err(Error::Refused(refusals))
        }
    }

    /// Passes warnings on.
    pub(super) fn warn(&mut self, texts: &[String]) {
        for text in texts {
            self.reporter.event(Event::Warning(text.clone()));
        }
    }
}

/// Shows what a person is asked about, and waits for the answer.
///
/// On a thread of its own: nothing can wake one that reads a line, so neither signals nor the
/// end of the program may wait for it.
pub(super) async fn answer(refusals: Vec<Refusal>, colors: Colors) -> bool {
    let (tell, told) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || tell.send(report::confirm(&refusals, colors)));
    told.await.unwrap_or(false)
}

/// Listens for SIGINT and SIGTERM: the first asks the run to stop after the requests
/// under way, the second at once, and the third ends the program wherever it is.
///
/// On a thread of its own, so that it hears them while the run waits for a slow reader of
/// its output. It is listening when this returns: a signal before that would kill the run.
pub(super) fn listen() -> Interrupt {
    let interrupt = Interrupt::default();
    let asked = interrupt.clone();
    let (listening, is_listening) = mpsc::channel();
    std::thread::spawn(move || {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
            return;
        };
        runtime.block_on(signals(listening, || {
            let wish = asked.request(|wish| {
                if wish == Wish::Stop {
                    tell_soon(report::interrupted);
                }
            });
            if wish == Wish::Leave {
                std::process::exit(i32::from(Exit::Interrupted.code()));
            }
        }));
    });
    // An error is a thread that has ended: signals have their usual effect then.
    let _ = is_listening.recv();
    interrupt
}

/// Carries on what writes nothing, until the user wants the run to stop.
pub(super) async fn unless_stopped<T>(
    interrupt: &Interrupt,
    work: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    tokio::select! {
        done = work => done,
        () = interrupt.requested() => Err(Error::Interrupted),
    }
}

/// How long is waited for a reader of standard error who does not read.
const SLOW_READER: Duration = Duration::from_secs(3);

/// Tells something, and goes on without having told it where nobody reads: whoever has asked
/// for the end must not wait for that.
fn tell_soon(tell: fn()) {
    let (done, is_done) = mpsc::channel();
    std::thread::spawn(move || {
        tell();
        let _ = done.send(());
    });
    let _ = is_done.recv_timeout(SLOW_READER);
}

#[cfg(unix)]
async fn signals(listening: mpsc::Sender<()>, mut received: impl FnMut()) {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut interrupt), Ok(mut terminate)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return;
    };
    let _ = listening.send(());
    while tokio::select! {
        signal = interrupt.recv() => signal.is_some(),
        signal = terminate.recv() => signal.is_some(),
    } {
        received();
    }
}

#[cfg(not(unix))]
async fn signals(listening: mpsc::Sender<()>, mut received: impl FnMut()) {
    let _ = listening.send(());
    while tokio::signal::ctrl_c().await.is_ok() {
        received();
    }
}
