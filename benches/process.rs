//! Runs a program and says how long it took, and how much memory and time of the
//! processors it had.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::Result;

/// How often the memory of a running program is looked at.
const LOOK: Duration = Duration::from_millis(4);

/// The unit in which Linux counts processor time, whatever its own clock is.
const TICKS_PER_SECOND: f64 = 100.0;

/// A program that ran and succeeded.
#[derive(Debug)]
pub(crate) struct Finished {
    /// From before its start until it had ended.
    pub(crate) seconds: f64,
    /// Whether it was ended because it took longer than it was given.
    pub(crate) was_ended: bool,
    /// Seconds of all processors that it had; `None` where the system does not say.
    pub(crate) processor: Option<f64>,
    /// The most memory that was resident; `None` where the system does not say.
    pub(crate) peak_memory: Option<u64>,
    /// Standard output.
    pub(crate) output: String,
    /// Standard error.
    pub(crate) messages: String,
}

/// What is asked of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terms {
    /// How long it is waited for; it is ended then, which is not a failure.
    pub(crate) patience: Option<Duration>,
    /// Whether this output makes an exit code other than 0 a success.
    pub(crate) accepts: fn(&str) -> bool,
}

impl Terms {
    /// It succeeds, however long that takes.
    pub(crate) const STRICT: Self = Self {
        patience: None,
        accepts: |_| false,
    };
}

/// Runs the command to its end; its output goes through files in `scratch`, so that
/// reading it costs no time. A failure is an error with the end of what it said.
pub(crate) fn run(command: &mut Command, scratch: &Path, terms: Terms) -> Result<Finished> {
    let (output, messages) = (scratch.join("stdout"), scratch.join("stderr"));
    command
        .stdin(Stdio::null())
        .stdout(File::create(&output)?)
        .stderr(File::create(&messages)?);
    let has_ended = AtomicBool::new(false);
    let before = processor_time_of_children();
    let start = Instant::now();
    let mut child = command.spawn().map_err(|error| format!("{command:?}: {error}"))?;
    let pid = child.id();
    let (status, seconds, watched) = thread::scope(|scope| {
        let watcher = scope.spawn(|| watch(pid, &has_ended, terms.patience));
        let status = child.wait();
        let seconds = start.elapsed().as_secs_f64();
        has_ended.store(true, Ordering::Relaxed);
        (status, seconds, watcher.join().unwrap_or_default())
    });
    let processor = processor_time_of_children()
        .zip(before)
        .map(|(after, before)| after - before);
    let (output, messages) = (fs::read_to_string(output)?, fs::read_to_string(messages)?);
    if !status?.success() && !watched.was_ended && !(terms.accepts)(&output) {
        let lines: Vec<&str> = messages.lines().collect();
        let end = lines[lines.len().saturating_sub(10)..].join("\n");
        return Err(format!("{command:?} failed:\n{end}").into());
    }
    Ok(Finished {
        seconds,
        was_ended: watched.was_ended,
        processor,
        peak_memory: watched.peak_memory,
        output,
        messages,
    })
}

/// What was seen of a program while it ran.
#[derive(Default)]
struct Watched {
    peak_memory: Option<u64>,
    was_ended: bool,
}

/// Looks at the high-water mark of the program's memory until it ends, and ends it when
/// patience does. The usage that waiting for a process reports would include the memory of
/// the bench itself, which the process shares before it becomes another program.
fn watch(pid: u32, has_ended: &AtomicBool, patience: Option<Duration>) -> Watched {
    let path = format!("/proc/{pid}/status");
    let start = Instant::now();
    let mut watched = Watched::default();
    while !has_ended.load(Ordering::Relaxed) {
        if let Ok(status) = fs::read_to_string(&path) {
            watched.peak_memory = high_water_mark(&status).max(watched.peak_memory);
        }
        if !watched.was_ended && patience.is_some_and(|patience| start.elapsed() > patience) {
            let kill = Command::new("kill").args(["-KILL", &pid.to_string()]).status();
            watched.was_ended = kill.is_ok_and(|status| status.success());
        }
        thread::sleep(LOOK);
    }
    watched
}

/// In bytes.
fn high_water_mark(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes * 1024)
}

/// Seconds of processors that the bench itself had so far, and what it waited for had not.
pub(crate) fn own_processor_time() -> Option<f64> {
    processor_times("self").map(|[own, _]| own)
}

fn processor_time_of_children() -> Option<f64> {
    processor_times("self").map(|[_, children]| children)
}

/// Seconds of processors that a process and those which it started have had so far.
pub(crate) fn processor_time_of_family(pid: u32) -> Option<f64> {
    let [own, _] = processor_times(&pid.to_string())?;
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let children = children.split_whitespace().filter_map(processor_times);
    Some(own + children.map(|[own, _]| own).sum::<f64>())
}

/// Of a process, and of its children that ended and were waited for, in user and system.
fn processor_times(process: &str) -> Option<[f64; 2]> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name of the program is in brackets and may hold anything.
    let (_, fields) = stat.rsplit_once(") ")?;
    let fields: Vec<f64> = fields
        .split(' ')
        .skip(11)
        .take(4)
        .filter_map(|field| field.trim().parse().ok())
        .collect();
    let [user, system, user_of_children, system_of_children] = fields[..] else {
        return None;
    };
    Some([user + system, user_of_children + system_of_children].map(|ticks| ticks / TICKS_PER_SECOND))
}
