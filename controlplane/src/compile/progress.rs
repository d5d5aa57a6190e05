//! Prints how far a build is: over itself at a terminal, else a line a minute.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

/// How often a line is printed if it cannot be written over.
const LINE_EVERY: Duration = Duration::from_mins(1);

/// How far a build is that compiles packages one after the other.
pub(super) struct Progress {
    compiled: usize,
    /// How many there are at most: what an earlier build left in the cache is not compiled again.
    all: usize,
    is_terminal: bool,
    start: Instant,
    last_line: Instant,
}

impl Progress {
    pub(super) fn new(all: usize) -> Self {
        let now = Instant::now();
        Self {
            compiled: 0,
            all,
            is_terminal: io::stderr().is_terminal(),
            start: now,
            last_line: now,
        }
    }

    /// Counts another package.
    pub(super) fn count(&mut self) {
        self.compiled += 1;
        let line = self.line();
        if self.is_terminal {
            let _ = write!(io::stderr(), "\r{line}");
        } else if self.last_line.elapsed() >= LINE_EVERY {
            self.last_line = Instant::now();
            super::tell(&line);
        }
    }

    /// Leaves the line as it is.
    pub(super) fn end(&self) {
        if self.is_terminal && self.compiled > 0 {
            let _ = writeln!(io::stderr());
        }
    }

    fn line(&self) -> String {
        let seconds = self.start.elapsed().as_secs();
        format!(
            "compiled {} of {} packages, {}:{:02}",
            self.compiled,
            self.all,
            seconds / 60,
            seconds % 60
        )
    }
}
