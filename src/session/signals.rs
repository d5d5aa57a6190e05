//! Signals, by which the user stops a run.

use std::sync::mpsc;
use std::time::Duration;

use crate::error::Error;
use crate::event::{Interrupt, Urgency};
use crate::exit::Exit;
use crate::report;

/// Listens for SIGINT, SIGTERM, SIGQUIT and SIGHUP. The first signal stops the run after the requests in flight, the
/// second stops the run immediately, and the third ends the program in any state. After the second signal, the run has
/// [`SLOW_READER`] to report its end; then the program ends too, because perhaps no program reads its output.
///
/// Listens on a thread of its own, so that signals are handled while the run is blocked by a slow reader of its output.
/// Returns only once the thread listens: a signal before that would kill the run.
pub fn listen() -> Interrupt {
    let interrupt = Interrupt::default();
    let raised_by_signals = interrupt.clone();
    let (listening, is_listening) = mpsc::channel();
    std::thread::spawn(move || {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
            return;
        };
        runtime.block_on(handle_signals(listening, || {
            let urgency = raised_by_signals.request_more_urgently(|urgency| {
                if urgency == Urgency::Stop {
                    print_with_time_limit(report::print_interrupt_received);
                }
            });
            match urgency {
                Urgency::None | Urgency::Stop => {}
                Urgency::StopAtOnce => drop(std::thread::spawn(|| {
                    std::thread::sleep(SLOW_READER);
                    exit_now();
                })),
                Urgency::Exit => exit_now(),
            }
        }));
    });
    // An error means that the thread could not listen. Signals then kill the program, as they do by default.
    let _ = is_listening.recv();
    interrupt
}

/// Runs work that writes nothing, until the run is interrupted. `work` must not write: it is dropped at any of its
/// awaits.
pub async fn run_unless_interrupted<T>(
    interrupt: &Interrupt,
    work: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    tokio::select! {
        biased;
        () = interrupt.wait_until_requested() => Err(Error::interrupted()),
        done = work => done,
    }
}

/// Exits with the code of an interrupt, whatever the run is doing.
fn exit_now() -> ! {
    print_with_time_limit(report::clear_progress);
    std::process::exit(i32::from(Exit::Interrupted.code()))
}

/// The longest time that the program, when it is to end, waits until its output is read.
const SLOW_READER: Duration = Duration::from_secs(3);

/// Calls `print`, and returns after [`SLOW_READER`] even if the output is not read: a user who stops the program must
/// not have to wait for the reader.
fn print_with_time_limit(print: fn()) {
    let (done, is_done) = mpsc::channel();
    std::thread::spawn(move || {
        print();
        let _ = done.send(());
    });
    let _ = is_done.recv_timeout(SLOW_READER);
}

/// Calls `on_signal` for each signal. Sends through `listening` once it listens, or drops it if it cannot.
#[cfg(unix)]
async fn handle_signals(listening: mpsc::Sender<()>, mut on_signal: impl FnMut()) {
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
    // A signal that cannot be listened to kills the program, as it does by default.
    let mut signals: Vec<_> = kinds.into_iter().filter_map(|kind| signal(kind).ok()).collect();
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
        on_signal();
    }
}

/// Returns whether the program was started with SIGHUP ignored, as `nohup` does: the program must then outlive its
/// terminal. Only Linux shows this in `/proc`; elsewhere, returns `false`, so SIGHUP interrupts a run under `nohup`.
#[cfg(unix)]
fn is_hangup_ignored() -> bool {
    const SIGHUP: u64 = 1;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask & SIGHUP != 0)
}

#[cfg(not(unix))]
async fn handle_signals(listening: mpsc::Sender<()>, mut on_signal: impl FnMut()) {
    let _ = listening.send(());
    while tokio::signal::ctrl_c().await.is_ok() {
        on_signal();
    }
}
