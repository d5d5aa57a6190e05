//! One bar on standard error while objects are applied and pruned.
//!
//! It is drawn only at a terminal, appears only when a phase takes long enough to
//! wonder about, and leaves nothing behind.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::Progress;
use crate::event::{Action, Phase};

/// Redraws in a second.
const REDRAWS: u8 = 10;

/// The bar of the present phase, if it is drawn at all.
pub(super) struct Bars {
    progress: Progress,
    bar: ProgressBar,
}

impl Bars {
    pub(super) fn new(progress: Progress) -> Self {
        Self {
            progress,
            bar: ProgressBar::hidden(),
        }
    }

    pub(super) fn begin(&mut self, phase: Phase, total: usize) {
        self.bar.finish_and_clear();
        if self.progress == Progress::Hidden || total == 0 {
            return;
        }
        let word = match phase {
            Phase::Applying => "applying",
            Phase::Pruning => "pruning",
        };
        let bar =
            ProgressBar::with_draw_target(Some(total as u64), ProgressDrawTarget::stderr_with_hz(REDRAWS));
        if let Ok(style) = ProgressStyle::with_template("{msg:>8} [{wide_bar}] {pos}/{len} {per_sec:>8}") {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_message(word);
        bar.enable_steady_tick(Duration::from_millis(500));
        self.bar = bar;
    }

    pub(super) fn advance(&self, action: Action) {
        if action != Action::Skipped {
            self.bar.inc(1);
        }
    }

    /// Runs `print` with the bar out of the way.
    pub(super) fn suspend(&self, print: impl FnOnce()) {
        self.bar.suspend(print);
    }

    pub(super) fn clear(&mut self) {
        self.bar.finish_and_clear();
    }
}
