//! Signals, by which the user stops a run.

use std::sync::mpsc;
use std::time::Duration;

use crate::error::{Error, Exit};
use crate::execute::{Interrupt, Urgency};
use crate::report;

/// Listens for SIGINT and SIGTERM: the first stops the run after the requests in flight, the second
/// immediately, and the third ends the program in any state.
///
/// It runs on its own thread, so that it handles signals while the run waits for a slow reader of its
/// output. It is listening when this returns: an earlier signal would kill the run.
pub fn listen() -> Interrupt {
    let interrupt = Interrupt::default();
    let asked = interrupt.clone();
    let (listening, is_listening) = mpsc::channel();
    std::thread::spawn(move || {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
            return;
        };
        runtime.block_on(signals(listening, || {
            let urgency = asked.request(|urgency| {
                if urgency == Urgency::Stop {
                    print_soon(report::interrupted);
                }
            });
            if urgency == Urgency::Leave {
                print_soon(report::clear_progress);
                std::process::exit(i32::from(Exit::Interrupted.code()));
            }
        }));
    });
    // An error means that the thread has ended: signals have their usual effect then.
    let _ = is_listening.recv();
    interrupt
}

/// Runs work that writes nothing, until the user stops the run.
pub async fn unless_stopped<T>(
    interrupt: &Interrupt,
    work: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    tokio::select! {
        biased;
        () = interrupt.requested() => Err(Error::Interrupted),
        done = work => done,
    }
}

/// The time to wait for a reader of standard error that does not read.
const SLOW_READER: Duration = Duration::from_secs(3);

/// Prints something, and returns even if it is not read: a user who stops the program must not wait for
/// that.
fn print_soon(print: fn()) {
    let (done, is_done) = mpsc::channel();
    std::thread::spawn(move || {
        print();
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
