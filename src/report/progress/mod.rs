//! Draws a progress bar on standard error while objects are applied or pruned, and the list of objects that a run waits
//! for.
//!
//! Both are drawn only at a terminal. They are removed while something else is printed, and at the end.

pub(super) mod wait_screen;

use std::sync::Mutex;
use std::time::Duration;

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::style::{Device, Progress};
use crate::event::{Action, Awaited, ObjectOutcome, Phase};
use crate::model::identity::ObjectKey;
use crate::model::text::escape_as_one_line;
use wait_screen::WaitScreen;

/// The most characters of the message next to the bar.
const MAX_MESSAGE: usize = 60;

/// The most redraws per second.
const REDRAWS_PER_SECOND: u8 = 10;

/// The bar that is drawn. A static, because the thread that handles signals prints to the same terminal.
static DRAWN: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// Runs `print` while the bar is removed from the terminal.
pub(super) fn without_progress<T>(print: impl FnOnce() -> T) -> T {
    let bar = DRAWN.lock().ok().and_then(|drawn| drawn.clone());
    match bar {
        Some(bar) => bar.suspend(print),
        None => print(),
    }
}

/// Removes the bar from the terminal for good.
pub fn clear_progress() {
    replace_drawn_bar(None);
}

/// Makes `bar` the bar that is drawn, and removes the former one.
fn replace_drawn_bar(bar: Option<&ProgressBar>) {
    if let Ok(mut drawn) = DRAWN.lock()
        && let Some(former) = std::mem::replace(&mut *drawn, bar.cloned())
    {
        former.finish_and_clear();
    }
}

/// The bar of the current phase, or the list of the objects that the run waits for.
pub(super) struct PhaseBar {
    progress: Progress,
    device: Device,
    phase: Option<Phase>,
    bar: ProgressBar,
    waiting: Option<WaitScreen>,
}

impl PhaseBar {
    pub(super) fn new(progress: Progress, device: Device) -> Self {
        Self {
            progress,
            device,
            phase: None,
            bar: ProgressBar::hidden(),
            waiting: None,
        }
    }

    /// Draws the bar of a phase. The bar of a wait is drawn by [`PhaseBar::begin_wait`], once the objects are known.
    pub(super) fn begin(&mut self, phase: Phase, total: usize) {
        self.clear();
        self.phase = Some(phase);
        if self.progress == Progress::Hidden || total == 0 || phase == Phase::Waiting {
            return;
        }
        self.bar = new_counting_bar(&phase.to_string(), total);
        replace_drawn_bar(Some(&self.bar));
    }

    /// Draws the objects that are waited for, below the summary of the writes.
    pub(super) fn begin_wait(&mut self, screen: WaitScreen, summary: &str) {
        self.clear();
        if self.progress == Progress::Hidden || screen.objects.is_empty() {
            return;
        }
        self.bar = new_wait_bar(&screen, summary);
        self.waiting = Some(screen);
        self.redraw_wait();
        replace_drawn_bar(Some(&self.bar));
    }

    /// Returns whether the objects that are waited for are drawn.
    pub(super) fn shows_wait(&self) -> bool {
        self.waiting.is_some()
    }

    /// Advances the bar by a finished object, if the phase counts it.
    ///
    /// `planned` is the object's planned outcome. A phase also reports unchanged and kept objects, which the total of
    /// the bar does not include.
    pub(super) fn advance_if_counted(&self, outcome: &ObjectOutcome, planned: Option<&ObjectOutcome>) {
        let is_counted = match planned {
            // The bar of a wait counts the objects that have reached their goal.
            _ if self.shows_wait() => false,
            Some(planned) => planned.action != Action::Unchanged && planned.reason.is_empty(),
            None => outcome.action != Action::Skipped,
        };
        if is_counted {
            self.advance_by_one();
        }
    }

    /// Advances the bar by one object, and never beyond its end.
    pub(super) fn advance_by_one(&self) {
        if self
            .bar
            .length()
            .is_none_or(|length| self.bar.position() < length)
        {
            self.bar.inc(1);
        }
    }

    /// Shows the object that the server has been working on for the longest time, if it is slow.
    pub(super) fn show_slowest(&self, slowest: Option<(ObjectKey, Duration)>) {
        if self.shows_wait() {
            return;
        }
        let phase = self.phase.map_or_else(String::new, |phase| phase.to_string());
        let text = match slowest {
            Some((key, elapsed)) => format!("{phase} {key} for {} s", elapsed.as_secs()),
            None => phase,
        };
        let text: String = escape_as_one_line(&text).chars().take(MAX_MESSAGE).collect();
        self.bar.set_message(text);
    }

    /// Shows the status of an object that is waited for.
    pub(super) fn show_awaited(&mut self, awaited: &Awaited) {
        if let Some(screen) = &mut self.waiting {
            screen.update(awaited);
            self.redraw_wait();
        }
    }

    fn redraw_wait(&self) {
        if let Some(screen) = &self.waiting {
            // Three lines are for the summary of the writes, the bar, and the line below the objects.
            let rows = self.device.rows_or_default().saturating_sub(3);
            self.bar.set_position(screen.count_arrived() as u64);
            self.bar
                .set_message(screen.lines(self.device.columns_or_default(), rows).join("\n"));
        }
    }

    pub(super) fn clear(&mut self) {
        self.waiting = None;
        self.bar.finish_and_clear();
        self.bar = ProgressBar::hidden();
        clear_progress();
    }
}

fn new_bar(total: usize) -> ProgressBar {
    ProgressBar::with_draw_target(
        Some(total as u64),
        ProgressDrawTarget::stderr_with_hz(REDRAWS_PER_SECOND),
    )
}

fn new_counting_bar(message: &str, total: usize) -> ProgressBar {
    let bar = new_bar(total);
    if let Ok(style) = ProgressStyle::with_template(&format!(
        "{{msg:>9}} [{{wide_bar}}] {{pos}}/{{len}}{ROOM_FOR_INTERRUPT}"
    )) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.set_message(message.to_owned());
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}

/// The end of the last line: blanks, and back over them. indicatif leaves the cursor at the end of a full line, where
/// the terminal would print the `^C` of an interrupt on the next line, and the first line of the bar would not be
/// removed.
const ROOM_FOR_INTERRUPT: &str = "    \x1b[4D";
/// The columns of [`ROOM_FOR_INTERRUPT`]: enough for `^C` twice.
const WIDTH_OF_INTERRUPT: usize = 4;

fn new_wait_bar(screen: &WaitScreen, summary: &str) -> ProgressBar {
    let bar = new_bar(screen.objects.len());
    let above = if summary.is_empty() { "" } else { "{prefix}\n" };
    let limit = match screen.limit {
        Some(limit) => format!(" of {:#}", HumanDuration(limit)),
        None => String::new(),
    };
    let template = format!(
        "{above}waiting  {{pos}}/{{len}} {}  [{{wide_bar}}]  {{elapsed}}{limit}\n{{msg}}{ROOM_FOR_INTERRUPT}",
        screen.goal
    );
    if let Ok(style) = ProgressStyle::with_template(&template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.set_prefix(summary.to_owned());
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}
