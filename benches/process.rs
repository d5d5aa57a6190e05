//! Runs a program and tells how long it took and how much memory it had.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::Result;

/// How often the memory of a running program is looked at.
const LOOK: Duration = Duration::from_millis(4);

/// A program that ran and succeeded.
#[derive(Debug)]
pub(crate) struct Finished {
    /// From before its start until it had ended.
    pub(crate) seconds: f64,
    /// The most memory that was resident; `None` where the system does not tell.
    pub(crate) peak_memory: Option<u64>,
    /// Standard output.
    pub(crate) output: String,
}

/// Runs the command to its end; its output goes through files in `scratch`, so that
/// reading it costs no time. A failure is an error with the end of what it said.
pub(crate) fn run(command: &mut Command, scratch: &Path) -> Result<Finished> {
    let (output, messages) = (scratch.join("stdout"), scratch.join("stderr"));
    command
        .stdin(Stdio::null())
        .stdout(File::create(&output)?)
        .stderr(File::create(&messages)?);
    let has_ended = AtomicBool::new(false);
    let start = Instant::now();
    let mut child = command.spawn().map_err(|error| format!("{command:?}: {error}"))?;
    let pid = child.id();
    let (status, seconds, peak_memory) = thread::scope(|scope| {
        let watcher = scope.spawn(|| watch(pid, &has_ended));
        let status = child.wait();
        let seconds = start.elapsed().as_secs_f64();
        has_ended.store(true, Ordering::Relaxed);
        (status, seconds, watcher.join().unwrap_or_default())
    });
    if !status?.success() {
        let messages = fs::read_to_string(&messages)?;
        let lines: Vec<&str> = messages.lines().collect();
        let end = lines[lines.len().saturating_sub(10)..].join("\n");
        return Err(format!("{command:?} failed:\n{end}").into());
    }
    Ok(Finished {
        seconds,
        peak_memory,
        output: fs::read_to_string(output)?,
    })
}

/// Looks at the high-water mark of the program's memory until it ends. The usage that
/// waiting for a process reports would include the memory of the bench itself, which the
/// process shares before it becomes another program.
fn watch(pid: u32, has_ended: &AtomicBool) -> Option<u64> {
    let path = format!("/proc/{pid}/status");
    let mut peak = None;
    while !has_ended.load(Ordering::Relaxed) {
        if let Ok(status) = fs::read_to_string(&path) {
            peak = high_water_mark(&status).max(peak);
        }
        thread::sleep(LOOK);
    }
    peak
}

/// In bytes.
fn high_water_mark(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes * 1024)
}
