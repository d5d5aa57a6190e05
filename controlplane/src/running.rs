//! A started control plane as a process and its files: how it is kept, how it
//! ends, and what its logs say when it does not start.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout};
use std::thread;
use std::time::{Duration, Instant};

use crate::Error;
use crate::error::About as _;

/// How long anything here is waited for before it counts as failed.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);

/// How much of a log an error repeats, in lines.
const LOG_LINES: usize = 20;

/// The name of the file with a line `token,name,uid[,"groups"]` per user.
pub(crate) const TOKENS: &str = "tokens.csv";

/// A control plane that serves. It is ended by dropping it.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) server: String,
    pub(crate) objects: Option<String>,
    pub(crate) admin_kubeconfig: PathBuf,
    pub(crate) certificate_authority: PathBuf,
    pub(crate) data_dir: PathBuf,
    pub(crate) process: Process,
}

impl Running {
    pub(crate) fn pid(&self) -> u32 {
        self.process.child.id()
    }

    /// The token of this user, if there is such a user.
    pub(crate) fn token_of(&self, user: &str) -> Result<Option<String>, Error> {
        let path = self.data_dir.join(TOKENS);
        let tokens = fs::read_to_string(&path).about(&path)?;
        let token = tokens.lines().find_map(|line| {
            let mut fields = line.split(',');
            let token = fields.next()?;
            (fields.next()? == user).then(|| token.to_owned())
        });
        Ok(token)
    }

    /// How many ordinary users there are: all but the admin.
    pub(crate) fn user_count(&self) -> Result<usize, Error> {
        let path = self.data_dir.join(TOKENS);
        let tokens = fs::read_to_string(&path).about(&path)?;
        Ok(tokens.lines().count().saturating_sub(1))
    }
}

/// The process that ends the servers and removes their directory when its
/// standard input, a pipe that only this process writes to, comes to its end.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) child: Child,
    /// Kept open, so that a late line of the servers does not break their pipe.
    pub(crate) output: Option<ChildStdout>,
    pub(crate) data_dir: PathBuf,
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let deadline = Instant::now() + Duration::from_secs(10);
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() > deadline {
                let _ = self.child.kill();
                let _ = self.child.wait();
                break;
            }
            thread::sleep(Duration::from_millis(10));
        }
        // It removes this itself, unless it failed or was killed.
        let _ = fs::remove_dir_all(&self.data_dir);
    }
}

/// The error of servers that do not start, with the ends of the logs in their
/// directory, which is removed soon after.
pub(crate) fn not_started(reason: impl Into<String>, data_dir: &Path) -> Error {
    let mut logs: Vec<PathBuf> = fs::read_dir(data_dir)
        .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default();
    logs.retain(|path| path.extension().is_some_and(|extension| extension == "log"));
    logs.sort();
    let ends: Vec<String> = logs.iter().map(|path| end_of(path)).collect();
    Error::NotStarted {
        reason: reason.into(),
        log: ends.join("\n"),
    }
}

fn end_of(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    let end = &lines[lines.len().saturating_sub(LOG_LINES)..];
    format!("--- the end of {}\n{}", log.display(), end.join("\n"))
}
