//! A progress bar on standard error while objects are applied and pruned, or a cluster is searched.
//!
//! It is drawn only at a terminal, appears only in phases that take a while, and is removed at the
//! end.

use std::fmt;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use super::{Progress, human};
use crate::event::{Action, Phase};
use crate::model::identity::ObjectKey;
use crate::model::text::one_line;

/// The most characters of the message next to the bar.
const MESSAGE: usize = 60;

/// Redraws per second.
const REDRAWS: u8 = 10;

/// The bar of the current phase, if it is drawn.
pub(super) struct Bars {
    progress: Progress,
    /// The name of the phase.
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

    /// Advances the bar by one object that is ready.
    pub(super) fn arrive(&self) {
        self.bar.inc(1);
    }

    /// Shows the object that the server has been working on for the longest time, if it is slow.
    pub(super) fn dwell(&self, slowest: Option<(ObjectKey, Duration)>) {
        match slowest {
            Some((key, elapsed)) => self.set_message(&human::slowest(&self.phase, &key, elapsed)),
            None => self.bar.set_message(self.phase.clone()),
        }
    }

    /// Shows this text, truncated to fit.
    pub(super) fn set_message(&self, text: &str) {
        let text: String = one_line(text).chars().take(MESSAGE).collect();
        self.bar.set_message(text);
    }

    /// Runs `print` with the bar hidden.
    pub(super) fn suspend(&self, print: impl FnOnce()) {
        self.bar.suspend(print);
    }

    pub(super) fn clear(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// The bar of a search through all kinds of a cluster; removed when it is dropped.
pub struct SearchBar(ProgressBar);

impl SearchBar {
    /// Begins a search through this many kinds.
    pub fn begin(progress: Progress, total: usize) -> Self {
        Self(match progress {
            Progress::Drawn => drawn("looking", total),
            Progress::Hidden => ProgressBar::hidden(),
        })
    }

    /// Advances the bar by one kind.
    pub fn advance(&self) {
        self.0.inc(1);
    }
}

impl Drop for SearchBar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

fn drawn(message: &str, total: usize) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(total as u64), ProgressDrawTarget::stderr_with_hz(REDRAWS));
    if let Ok(style) = ProgressStyle::with_template("{msg:>9} [{wide_bar}] {pos}/{len} {rate:>6}") {
        let rate = |state: &ProgressState, out: &mut dyn fmt::Write| {
            // A bar that cannot be drawn is not reported.
            let _ = write!(out, "{:.0}/s", state.per_sec());
        };
        bar.set_style(style.with_key("rate", rate).progress_chars("=> "));
    }
    bar.set_message(message.to_owned());
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}
