//! Prints the events of a run that writes, and its summary and document at the end.

mod conflicts;
mod objects_without_result;
pub(super) mod repeated_messages;
mod summary;

use std::cell::Cell;
use std::mem;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::documents::report::{Collected, Report, RequestsAndSeconds};
use super::documents::{ContextAndServer, RunEnd, SetDocument};
use super::markdown::{BYTES_OF_COMMENT, Page, run_page};
use super::output::{
    print_document_text, print_escaped_line, print_line, print_message, save_document, write_stderr,
};
use super::progress::PhaseBar;
use super::progress::wait_screen::WaitScreen;
use super::style::{Format, Style, UnchangedLines, Verbosity};
use super::text_lines::{self, Label, header, set_title};
use super::{print_if_json_or_yaml, prompt};
use crate::cluster::apiserver::{ApiServer, WriteResult};
use crate::event::{
    Action, ActionCounts, Awaited, Event, NotDone, ObjectOutcome, Operation, Phase, StateAfterDelete,
    Subject, WaitStatus,
};
use crate::exit::Exit;
use crate::model::identity::ObjectKey;
use crate::model::message::Message;
use crate::model::write_settings::DryRun;
use crate::plan::Refusal;
use conflicts::FieldConflicts;
use objects_without_result::{ObjectsWithoutResult, Unfinished};
use repeated_messages::{MessagesSoFar, TakenIn};

/// Prints the events of a run, and collects them for its summary and document.
pub struct Reporter {
    pub(super) style: Style,
    /// The file for a page that fits in a comment; `None` if the user wants only the page on standard output.
    pub brief_out: Option<PathBuf>,
    pub(super) bars: PhaseBar,
    pub(super) summary: ActionCounts,
    /// The summary if it counts nothing. It does not count the set's parent.
    pub(super) without_counts: &'static str,
    pub(super) collected: Collected,
    /// The planned objects whose results were not reported yet.
    without_result: ObjectsWithoutResult,
    /// The parents that the run writes. They have no result of their own.
    parents: Vec<Subject>,
    /// The objects to which no request was sent, because the run or a part of it ended before their turn.
    not_sent: Vec<ObjectKey>,
    /// The hints and messages that were printed. Many objects may fail for one reason, which is not repeated for each.
    hints: MessagesSoFar,
    /// The field conflicts of all objects.
    conflicts: FieldConflicts,
    /// The objects that existed outside of any set and have joined this one.
    pub(super) taken_in: TakenIn,
    /// The pruned objects that still exist because of finalizers.
    still_being_deleted: Vec<ObjectKey>,
    /// The start of the run, moved forward by the time that the user took to answer questions.
    started: Cell<Instant>,
}

impl Reporter {
    /// Creates the reporter of one run.
    pub fn new(operation: Operation, style: Style, dry_run: DryRun) -> Self {
        Self {
            style,
            brief_out: None,
            bars: PhaseBar::new(style.progress, style.messages),
            summary: ActionCounts::default(),
            without_counts: "nothing to do",
            collected: Collected {
                operation,
                dry_run,
                results: Vec::new(),
                losses: Vec::new(),
                waiting: None,
                warnings: Vec::new(),
                failures: Vec::new(),
            },
            without_result: ObjectsWithoutResult::default(),
            parents: Vec::new(),
            not_sent: Vec::new(),
            hints: MessagesSoFar::default(),
            conflicts: FieldConflicts::default(),
            taken_in: TakenIn::default(),
            still_being_deleted: Vec::new(),
            started: Cell::new(Instant::now()),
        }
    }

    /// Excludes this time from the duration of the run.
    pub fn exclude_from_duration(&self, time: Duration) {
        self.started.set(self.started.get() + time);
    }

    /// Prints the set and the cluster at a terminal, above a dry run.
    pub fn print_header_at_terminal(&self, set: &SetDocument, place: &ContextAndServer) {
        if self.style.messages.is_terminal() && self.style.verbosity > Verbosity::Quiet {
            let line = header(&set_title(set), place, self.style.messages.columns_or_default());
            write_stderr(&format!("{}\n", line.text(self.style.colors)));
        }
    }

    /// Sets the losses of data that the user has agreed to.
    pub fn set_accepted_data_losses(&mut self, losses: &[Refusal]) {
        self.collected.losses = losses.to_vec();
    }

    /// Forgets the planned objects, because the run plans again before it has written anything.
    pub fn forget_plan(&mut self) {
        self.without_result = ObjectsWithoutResult::default();
        self.parents.clear();
    }

    /// Prints or collects one event.
    pub fn take_event(&mut self, event: Event) {
        match event {
            Event::Phase { phase, total } => {
                if self.style.verbosity == Verbosity::Verbose {
                    super::print_note(&text_lines::phase_line(phase, total), self.style);
                }
                if phase == Phase::Waiting {
                    self.collected.waiting.get_or_insert_default();
                }
                self.bars.begin(phase, total);
            }
            Event::Slowest(slowest) => self.bars.show_slowest(slowest),
            Event::Warning(text) => self.warn(text),
            Event::WarningOfObject { object, text } => {
                self.collected.warnings.push(format!("{object}: {text}"));
                self.hints.add_warning(object, text);
            }
            Event::Failure(text) => {
                self.print_unless_repeated(Label::Error, &text);
                self.collected.failures.push(text);
            }
            Event::Note(text) => super::print_note(&text, self.style),
            Event::Hint(text) => super::print_unless_quiet(Label::Hint, &text, self.style),
            Event::Object(outcome) => self.report_object(outcome),
            Event::Planned(outcomes) => self.without_result.add_planned(outcomes),
            Event::ParentWithoutResult(parent) => self.parents.push(parent),
            Event::NotDone(not_done) => {
                for outcome in self.without_result.take_not_done(&not_done) {
                    self.report_not_sent(outcome, &not_done);
                }
            }
            Event::Parent(parent, action) => {
                self.print_parent_note(&text_lines::parent_line(&parent, action, self.collected.dry_run));
            }
            Event::Waiting { objects, limit } => {
                let screen = WaitScreen::new(self.collected.operation, &objects, limit);
                self.bars.begin_wait(screen, &self.counts_above_wait());
            }
            Event::Awaited(awaited) => self.report_awaited(awaited),
        }
    }

    /// Reports each planned object without a result at the end of a run: as skipped for this reason, or as failed if a
    /// write of the object was sent to `server` and may have taken effect. Returns what is left; `None` if nothing is.
    pub fn report_unfinished(&mut self, reason: &str, server: Option<&ApiServer>) -> Option<Unfinished> {
        let server = server.filter(|_| self.collected.dry_run == DryRun::None);
        let mut unfinished = Unfinished {
            failed: self.summary.count(Action::Failed),
            ..Unfinished::default()
        };
        let not_done = NotDone {
            objects: None,
            reason: reason.to_owned(),
        };
        for outcome in self.without_result.take_not_done(&not_done) {
            let key = outcome.subject.key();
            let path = outcome.subject.resource.path_of(&key);
            // A parent may be a planned object, too. Then its last write was that of the beginning or the end of the
            // run, and not a write of the object.
            let is_parent = self.parents.iter().any(|parent| parent.key() == key);
            let last_write = server
                .and_then(|server| server.result_of_last_write(&path))
                .filter(|write| !(is_parent && *write == WriteResult::Done));
            let error = match last_write {
                None => {
                    self.report_not_sent(outcome, &not_done);
                    continue;
                }
                // An object with a source is in the manifests, so the run has deleted it only to create it again.
                Some(WriteResult::Deleted) if outcome.source.is_some() => {
                    unfinished.deleted.push(key);
                    Message::new("deleted, not created again")
                        .with_hint("run the same command again to create it")
                }
                Some(WriteResult::Unanswered | WriteResult::Done | WriteResult::Deleted) => {
                    unfinished.unanswered.push(key);
                    Message::new("outcome unknown: the request may have taken effect")
                }
            };
            self.report_object(ObjectOutcome {
                source: outcome.source,
                ..ObjectOutcome::from_error(outcome.subject, error)
            });
        }
        for parent in mem::take(&mut self.parents) {
            let key = parent.key();
            let path = parent.resource.path_of(&key);
            let last_write = server.and_then(|server| server.result_of_last_write(&path));
            if last_write == Some(WriteResult::Unanswered) && !unfinished.unanswered.contains(&key) {
                unfinished.unanswered.push(key);
            }
        }
        unfinished.not_sent = mem::take(&mut self.not_sent);
        (unfinished != Unfinished::default()).then_some(unfinished)
    }

    /// Prints a note about a change of the set's parent.
    pub fn print_parent_note(&mut self, text: &str) {
        self.without_counts = "nothing else to do";
        super::print_note(text, self.style);
    }

    fn report_object(&mut self, outcome: ObjectOutcome) {
        let planned = self.without_result.remove(&outcome);
        if outcome.remainder == StateAfterDelete::HeldByFinalizers && outcome.action == Action::Pruned {
            self.still_being_deleted.push(outcome.subject.key());
        }
        self.bars.advance_if_counted(&outcome, planned.as_ref());
        match self.style.format {
            Format::Lines => self.print_object_line(&outcome),
            Format::Names if outcome.action != Action::Failed => {
                print_escaped_line(&outcome.subject.key().object_name());
            }
            _ => {}
        }
        self.collect_or_print_reason(
            &outcome,
            match outcome.action {
                Action::Failed => Verbosity::Quiet,
                Action::Recreated | Action::Pruned | Action::Deleted | Action::Skipped => Verbosity::Normal,
                Action::Created
                | Action::Configured
                | Action::Unchanged
                | Action::Released
                | Action::Adopted => Verbosity::Verbose,
            },
        );
        self.count_and_collect(outcome);
    }

    /// Prints the reason or the error of an outcome if the user wants at least this verbosity. Field conflicts and
    /// objects that have joined the set are only collected, and printed together at the end.
    pub(super) fn collect_or_print_reason(&mut self, outcome: &ObjectOutcome, verbosity: Verbosity) {
        self.taken_in.add_if_joined_set(outcome);
        let is_reported_later = self.conflicts.add(outcome) || outcome.has_joined_set();
        if !is_reported_later
            && self.style.verbosity >= verbosity
            && let Some(detail) = text_lines::reason_or_error_message(outcome)
        {
            let label = match outcome.action {
                Action::Failed => Label::Error,
                _ => Label::Note,
            };
            self.print_unless_repeated(label, &detail);
        }
    }

    /// Reports an object that the run did not process. It counts as not sent unless it has a reason of its own. The
    /// reason is printed once, for all of them; `-o name` prints only processed objects.
    fn report_not_sent(&mut self, outcome: ObjectOutcome, not_done: &NotDone) {
        if outcome.reason == not_done.reason {
            self.not_sent.push(outcome.subject.key());
        }
        if self.style.format == Format::Lines && self.style.unchanged == UnchangedLines::Shown {
            self.print_object_line(&outcome);
        }
        self.count_and_collect(outcome);
    }

    fn print_object_line(&self, outcome: &ObjectOutcome) {
        let is_folded = outcome.action == Action::Unchanged && self.style.unchanged == UnchangedLines::Folded;
        if self.style.verbosity > Verbosity::Quiet && !is_folded {
            let line = text_lines::outcome_line(outcome, self.collected.dry_run);
            print_line(&line, self.style.output_colors);
        }
    }

    fn count_and_collect(&mut self, outcome: ObjectOutcome) {
        self.summary.add(outcome.action);
        if self.style.has_document() || self.style.format == Format::Markdown {
            self.collected.results.push(outcome);
        }
    }

    fn report_awaited(&mut self, awaited: Awaited) {
        let text = text_lines::awaited_line(&awaited);
        self.bars.show_awaited(&awaited);
        let (label, verbosity) = match awaited.wait_status {
            WaitStatus::Changed | WaitStatus::Arrived | WaitStatus::Unseen => {
                (Label::Note, Verbosity::Verbose)
            }
            // The screen of the wait shows the object.
            WaitStatus::Slow | WaitStatus::NewReason if self.bars.shows_wait() => {
                (Label::Note, Verbosity::Verbose)
            }
            WaitStatus::Slow | WaitStatus::NewReason => (Label::Note, Verbosity::Normal),
            WaitStatus::Missed => (Label::Error, Verbosity::Quiet),
            WaitStatus::Explained => return,
        };
        if self.style.verbosity >= verbosity {
            print_message(label, &text.into(), self.style.colors);
        }
        if matches!(awaited.wait_status, WaitStatus::Missed | WaitStatus::Unseen) {
            self.collected.waiting.get_or_insert_default().push(awaited);
        }
    }

    /// Prints a message, unless enough messages of its group were printed.
    pub(super) fn print_unless_repeated(&mut self, label: Label, message: &Message) {
        if let Some(shown) = self.hints.hold_back_repeats(message) {
            print_message(label, &shown, self.style.colors);
        }
    }

    fn warn(&mut self, text: String) {
        if self.hints.is_new_warning(&text) {
            super::print_warning(&text, self.style);
        }
        self.collected.warnings.push(text);
    }

    /// Returns whether [`Self::finish`] may print the end of the run. After a mistake in the command line or the
    /// manifests, only the error is printed. With `-o markdown`, the page is printed too, because people read it.
    pub fn may_print_end(&self, end: RunEnd) -> bool {
        self.style.format == Format::Markdown
            || !matches!(end, RunEnd::Failed(error) if error.exit() == Exit::Usage)
    }

    /// Prints the end of a run, whether it failed or not: what was collected, the summary, and the page or document.
    pub fn finish(mut self, (set, place): (SetDocument, &ContextAndServer), end: RunEnd, requests: u64) {
        let cost = self.cost_so_far(requests);
        self.bars.clear();
        self.print_collected_messages();
        // A run that has waited has reported the objects that are still being deleted.
        if self.collected.waiting.is_none()
            && self.collected.dry_run == DryRun::None
            && !self.still_being_deleted.is_empty()
        {
            let line = text_lines::still_being_deleted_line(&self.still_being_deleted);
            super::print_note(&line, self.style);
        }
        // If an interrupt came while a question was open, `print_interrupt_received` has reported the end.
        if !matches!(end, RunEnd::Failed(_)) && !prompt::is_question_open() {
            self.print_summary(end, cost);
        }
        if self.style.format == Format::Markdown {
            let taken_in = self.taken_in.lines();
            self.save_and_print_page(&run_page((&set, place), &self.collected, end, taken_in));
        }
        let report = Report::new(set, &self.collected, None, end, cost);
        print_if_json_or_yaml(&report, place, self.style);
    }

    /// Ends the report of a command that has only waited, and returns what was collected.
    pub(super) fn finish_wait(mut self) -> Collected {
        self.bars.clear();
        self.print_collected_messages();
        self.collected
    }

    /// Returns the cost so far. The time that the user took to answer questions does not count.
    pub(super) fn cost_so_far(&self, requests: u64) -> RequestsAndSeconds {
        RequestsAndSeconds {
            requests,
            seconds: self.started.get().elapsed().as_secs_f64(),
        }
    }

    /// Writes the page for a comment to its file, then prints the page. A script that reads the printed page can rely
    /// on the file.
    pub(super) fn save_and_print_page(&self, page: &Page) {
        if let Some(file) = &self.brief_out {
            save_document(file, &page.text(BYTES_OF_COMMENT));
        }
        print_document_text(&page.text(self.style.max_bytes));
    }

    /// Prints what was collected for the end: counted messages, field conflicts, warnings, and objects that joined the
    /// set.
    pub(super) fn print_collected_messages(&self) {
        self.hints.print_held_back(self.style.colors);
        self.conflicts.print(self.style.colors);
        if self.style.verbosity > Verbosity::Quiet {
            self.hints.print_warnings(self.style.colors);
        }
        for line in self.taken_in.lines() {
            super::print_note(&line, self.style);
        }
    }
}
