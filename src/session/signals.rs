//! Signals, by which the user stops a run.

use std::sync::mpsc;
use std::time::Duration;

use crate::error::{Error, Exit};
use crate::execute::{Interrupt, Urgency};
use crate::report;

/// Listens for SIGINT, SIGTERM, SIGQUIT and SIGHUP: the first stops the run after the requests in flight, the
/// second immediately, and the third ends the program in any state. So does the second after a moment, in which the
/// run reports its end: its output may have no reader.
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
                    print_soon(report::print_interrupted);
                }
            });
            match urgency {
                Urgency::Continue | Urgency::Stop => {}
                Urgency::StopAtOnce => drop(std::thread::spawn(|| {
                    std::thread::sleep(SLOW_READER);
                    leave();
                })),
                Urgency::Leave => leave(),
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
        () = interrupt.requested() => Err(Error::interrupted()),
        done = work => done,
    }
}

/// Ends the program in any state.
fn leave() -> ! {
    print_soon(report::clear_progress);
    std::process::exit(i32::from(Exit::Interrupted.code()))
}

/// The time to wait for a reader of the output that does not read.
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
    use std::future::poll_fn;
    use std::task::Poll;

    use tokio::signal::unix::{SignalKind, signal};

    let mut kinds = vec![
        SignalKind::interrupt(),
        SignalKind::terminate(),
        SignalKind::quit(),
    ];
    if !is_hangup_ignored() {
        kinds.push(SignalKind::hangup());
    }
    let Ok(mut signals) = kinds.into_iter().map(signal).collect::<Result<Vec<_>, _>>() else {
        return;
    };
    let _ = listening.send(());
    loop {
        poll_fn(|context| {
            let is_received = signals
                .iter_mut()
                .any(|signal| signal.poll_recv(context).is_ready());
            if is_received {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
        received();
    }
}

/// Returns whether the program was started with SIGHUP ignored, as `nohup` does: it must then outlive its terminal.
/// On other systems, `nohup` does not have this effect.
#[cfg(unix)]
fn is_hangup_ignored() -> bool {
    const SIGHUP: u64 = 1;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask & SIGHUP != 0)
}

#[cfg(not(unix))]
async fn signals(listening: mpsc::Sender<()>, mut received: impl FnMut()) {
    let _ = listening.send(());
    while tokio::signal::ctrl_c().await.is_ok() {
        received();
    }
}
