//! One bar on standard error while objects are applied and pruned, or a cluster is
//! looked through.
//!
//! It is drawn only at a terminal, appears only when a phase takes long enough to
//! wonder about, and leaves nothing behind.

use std::fmt;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use super::{Progress, human};
use crate::event::{Action, Phase};
use crate::model::identity::ObjectKey;
use crate::model::text::one_line;

/// Characters of a message beside the bar.
const MESSAGE: usize = 60;

/// Redraws in a second.
const REDRAWS: u8 = 10;

/// The bar of the present phase, if it is drawn at all.
pub(super) struct Bars {
    progress: Progress,
    /// What is done now, as people call it.
    phase: String,
    bar: ProgressBar,
}

impl Bars {
    pub(super) fn new(progress: Progress) -> Self {
        Self {
            progress,
            phase: String::new(),
            bar: ProgressBar::hidden(),
        }
    }

    pub(super) fn begin(&mut self, phase: Phase, total: usize) {
        self.bar.finish_and_clear();
        if self.progress == Progress::Hidden || total == 0 {
            return;
        }
        self.phase = phase.to_string();
        self.bar = drawn(&self.phase, total);
    }

    pub(super) fn advance(&self, action: Action) {
        if action != Action::Skipped {
            self.bar.inc(1);
        }
    }

    /// One object less to wait for.
    pub(super) fn arrive(&self) {
        self.bar.inc(1);
    }

    /// Shows for how long the server has been at work on one object, if it has.
    pub(super) fn dwell(&self, slowest: Option<(ObjectKey, Duration)>) {
        match slowest {
            Some((key, elapsed)) => self.tell(&human::slowest(&self.phase, &key, elapsed)),
            None => self.bar.set_message(self.phase.clone()),
        }
    }

    /// Shows what is waited for, as much of it as fits.
    pub(super) fn tell(&self, text: &str) {
        let text: String = one_line(text).chars().take(MESSAGE).collect();
        self.bar.set_message(text);
    }

    /// Runs `print` with the bar out of the way.
    pub(super) fn suspend(&self, print: impl FnOnce()) {
        self.bar.suspend(print);
    }

    pub(super) fn clear(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// The bar of a look through all kinds of a cluster; gone when it is dropped.
pub struct LookBar(ProgressBar);

impl LookBar {
    /// Begins to look through this many kinds.
    pub fn begin(progress: Progress, total: usize) -> Self {
        Self(match progress {
            Progress::Drawn => drawn("looking", total),
            Progress::Hidden => ProgressBar::hidden(),
        })
    }

    /// One kind is done with.
    pub fn advance(&self) {
        self.0.inc(1);
    }
}

impl Drop for LookBar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

fn drawn(message: &str, total: usize) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(total as u64), ProgressDrawTarget::stderr_with_hz(REDRAWS));
    if let Ok(style) = ProgressStyle::with_template("{msg:>9} [{wide_bar}] {pos}/{len} {rate:>6}") {
        let rate = |state: &ProgressState, out: &mut dyn fmt::Write| {
            // A bar that cannot be written is not worth a word.
            let _ = write!(out, "{:.0}/s", state.per_sec());
        };
        bar.set_style(style.with_key("rate", rate).progress_chars("=> "));
    }
    bar.set_message(message.to_owned());
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}
