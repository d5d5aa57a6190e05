//! The summary of a run: the counts of its actions, printed at the end and above a wait.

use super::Reporter;
use crate::event::{Action, Operation};
use crate::report::documents::RunEnd;
use crate::report::documents::report::RequestsAndSeconds;
use crate::report::layout::paint::{Color, Line};
use crate::report::output::{print_message, write_stderr};
use crate::report::style::Verbosity;
use crate::report::text_lines::{self, Label, sign_and_color};

impl Reporter {
    /// Prints the summary: with signs and colors at a terminal, and with the number of requests elsewhere or with `-v`.
    pub(super) fn print_summary(&self, end: RunEnd, cost: RequestsAndSeconds) {
        if self.style.messages.is_terminal() && self.style.verbosity == Verbosity::Normal {
            let line = self.terminal_summary(end, cost);
            write_stderr(&format!("{}\n", line.text(self.style.colors)));
        } else {
            self.print_summary_with_cost(end, cost);
        }
    }

    /// Prints the counts with the cost of the run, unless `--quiet` is set.
    pub(in crate::report) fn print_summary_with_cost(&self, end: RunEnd, cost: RequestsAndSeconds) {
        if self.style.verbosity > Verbosity::Quiet {
            let line = text_lines::summary_line(&self.describe_counts(end), self.collected.dry_run, cost);
            print_message(Label::Plain, &line.into(), self.style.colors);
        }
    }

    /// Returns the summary that stands above the objects that are waited for; empty if the command writes nothing.
    pub(super) fn summary_above_wait(&self) -> String {
        if self.collected.operation == Operation::View {
            return String::new();
        }
        let line = self.terminal_summary(RunEnd::Complete, self.cost_so_far(0));
        line.text(self.style.colors)
    }

    /// `+ 2 created  ~ 1 configured  = 25 unchanged       0.4 s`
    pub(super) fn terminal_summary(&self, end: RunEnd, cost: RequestsAndSeconds) -> Line {
        let mut actions = self.actions_that_occurred();
        // Objects that the run has not changed come last.
        actions.sort_by_key(|action| matches!(action, Action::Unchanged | Action::Skipped | Action::Failed));
        let mut line = Line::default();
        for (index, action) in actions.iter().enumerate() {
            let (sign, color) = sign_and_color(*action);
            let count = format!("{sign} {} {action}", self.summary.count(*action));
            let gap = if index == 0 { "" } else { "  " };
            line = line.with(Color::Plain, gap).with(color, count);
        }
        if actions.is_empty() {
            line.push(Color::Plain, self.describe_counts(end));
        }
        let dry_run = text_lines::dry_run_suffix(self.collected.dry_run);
        line.with(Color::Plain, format!("{dry_run}       {:.1} s", cost.seconds))
    }

    /// `3 created, 1 pruned`
    fn describe_counts(&self, end: RunEnd) -> String {
        let actions = self.actions_that_occurred().into_iter();
        let counts: Vec<String> = actions
            .map(|action| format!("{} {action}", self.summary.count(action)))
            .collect();
        match end {
            _ if !counts.is_empty() => counts.join(", "),
            RunEnd::Interrupted(..) => "nothing was done".to_owned(),
            RunEnd::Complete | RunEnd::Failed(_) => self.without_counts.to_owned(),
        }
    }

    /// Returns the actions that have a count above 0.
    fn actions_that_occurred(&self) -> Vec<Action> {
        let mut actions = self.collected.operation.actions_in_summary();
        actions.retain(|action| self.summary.count(*action) > 0);
        actions
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Exit;
    use crate::event::Resume;
    use crate::model::write_settings::DryRun;
    use crate::report::style::{Colors, Device, Format, Progress, Style, UnchangedLines};

    const STYLE: Style = Style {
        format: Format::Lines,
        verbosity: Verbosity::Normal,
        colors: Colors::Off,
        output_colors: Colors::Off,
        progress: Progress::Hidden,
        output: Device::Stream,
        messages: Device::Stream,
        unchanged: UnchangedLines::Shown,
        max_bytes: 0,
    };

    #[test]
    fn a_run_that_was_stopped_does_not_say_that_there_was_nothing_to_do() {
        let interrupted = RunEnd::Interrupted(Resume::SameCommand, Exit::Interrupted);
        for (created, end, expected) in [
            (0, RunEnd::Complete, "nothing to do"),
            (0, interrupted, "nothing was done"),
            (1, interrupted, "1 created"),
        ] {
            let mut reporter = Reporter::new(Operation::Apply, STYLE, DryRun::None);
            (0..created).for_each(|_| reporter.summary.add(Action::Created));
            assert_eq!(reporter.describe_counts(end), expected);
        }
    }
}
