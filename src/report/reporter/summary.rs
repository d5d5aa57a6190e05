//! The summary of a run: the counts of its actions, printed at the end and above a wait.

use super::Reporter;
use crate::event::Operation;
use crate::report::documents::RunEnd;
use crate::report::documents::report::RequestsAndSeconds;
use crate::report::output::print_message;
use crate::report::style::Verbosity;
use crate::report::text_lines::{self, Label};

impl Reporter {
    /// Prints the counts with the cost of the run, unless `--quiet` is set.
    pub(in crate::report) fn print_summary(&self, end: RunEnd, cost: RequestsAndSeconds) {
        if self.style.verbosity > Verbosity::Quiet {
            let line = text_lines::summary_line(&self.describe_counts(end), self.collected.dry_run, cost);
            print_message(Label::Plain, &line.into(), self.style.colors);
        }
    }

    /// Returns the counts that stand above the objects that are waited for; empty if the command writes nothing.
    pub(super) fn counts_above_wait(&self) -> String {
        match self.collected.operation {
            Operation::View => String::new(),
            _ => self.describe_counts(RunEnd::Complete),
        }
    }

    /// `3 created, 1 pruned`
    fn describe_counts(&self, end: RunEnd) -> String {
        let actions = self.collected.operation.actions_in_summary().into_iter();
        let counts: Vec<String> = actions
            .map(|action| (self.summary.count(action), action))
            .filter(|(count, _)| *count > 0)
            .map(|(count, action)| format!("{count} {action}"))
            .collect();
        match end {
            _ if !counts.is_empty() => counts.join(", "),
            RunEnd::Interrupted(..) => "nothing was done".to_owned(),
            RunEnd::Complete | RunEnd::Failed(_) => self.without_counts.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Action, Resume};
    use crate::exit::Exit;
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
