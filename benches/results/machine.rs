//! Where and when the bench ran.

use std::fs;
use std::process::Command;

use serde::{Deserialize, Serialize};

/// The machine, the API server and the day.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Machine {
    pub(crate) processors: usize,
    /// Of the processors.
    pub(crate) model: Option<String>,
    /// In bytes.
    pub(crate) memory: Option<u64>,
    /// The release of the Linux kernel, without what a distribution adds to it.
    pub(crate) kernel: Option<String>,
    /// Of the API server.
    pub(crate) kubernetes: String,
    /// The day on which the bench began, in UTC: `2026-11-23`.
    pub(crate) date: Option<String>,
    /// Programs that wanted a processor on average over a minute, before the bench began:
    /// others at work make every number doubtful.
    pub(crate) load_before: Option<f64>,
}

impl Machine {
    /// What two runs have to share to be comparable.
    pub(super) fn place(&self) -> (usize, &Option<String>, Option<u64>, &Option<String>, &str) {
        let Self {
            processors,
            model,
            memory,
            kernel,
            kubernetes,
            ..
        } = self;
        (*processors, model, *memory, kernel, kubernetes)
    }

    /// This machine, now.
    pub(crate) fn here() -> Self {
        let load = fs::read_to_string("/proc/loadavg").ok();
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").ok();
        let date = Command::new("date").args(["-u", "+%F"]).output().ok();
        Self {
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            model: field("/proc/cpuinfo", "model name"),
            memory: field("/proc/meminfo", "MemTotal")
                .and_then(|text| Some(text.strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)),
            kernel: kernel
                .as_deref()
                .and_then(|text| text.trim().split('-').next())
                .map(str::to_owned),
            kubernetes: String::new(),
            date: date.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()),
            load_before: load.and_then(|text| text.split(' ').next()?.parse().ok()),
        }
    }
}

/// The value of the first line `NAME: VALUE` in a file of the kernel.
fn field(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}
