//! The output of `diff`: text as `kubectl diff` prints it, a page, or a document.

pub(super) mod drift;
pub(super) mod external;
pub(super) mod kinds;

use serde::Serialize;

use super::documents::report::Report;
use super::documents::{ContextAndServer, RunEnd, SetDocument};
use super::layout::paint::Color;
use super::markdown::diff_page;
use super::output::{print_escaped_line, print_line};
use super::plan_view::Entry;
use super::reporter::Reporter;
use super::reporter::repeated_messages::keep_shared_hints_on_last;
use super::style::{Colors, Format, Verbosity};
use super::text_lines::{Label, header, set_title};
use super::{plan_screen, print_if_json_or_yaml, text};
use crate::compare::diff::{Difference, OwnershipChange};
use crate::error::ErrorKind;
use crate::event::{Action, Event, ObjectOutcome};
use crate::model::applyset::Record;
use crate::model::message::Message;
use crate::model::text::{escape_as_one_line, printable_text};
use crate::model::write_settings::DryRun;
use crate::plan::Refusal;
use kinds::Cause;

/// The mark of a result that the server has not validated.
pub const NOT_VALIDATED: &str = "not validated by the server";

/// The differences between the cluster and its state after a run.
#[derive(Debug, Default)]
pub struct Differences {
    /// Who has predicted the objects: the server, or for [`DryRun::Client`] this program, from the live objects alone.
    pub dry_run: DryRun,
    /// The objects of the manifests and of the set, sorted by the file names of their differences.
    pub objects: Vec<Comparison>,
    /// The objects that differ from the manifests of `--base`, sorted by name: the differences that `objects` does not
    /// have. `None` without a base.
    pub drift: Option<Vec<ObjectOutcome>>,
    /// The parent; `None` if it is unknown.
    pub parent: Option<Difference>,
    /// The parent's record before and after a run.
    pub record: RecordChange,
    /// The reasons why a run would be refused.
    pub refusals: Vec<Refusal>,
    /// The losses of data that a flag allows.
    pub losses: Vec<Refusal>,
    /// Failures that are not about an object of the set.
    pub failures: Vec<Message>,
}

/// An object, and the effect of a run on it.
#[derive(Debug)]
pub struct Comparison {
    /// The outcome that the run would have.
    pub outcome: ObjectOutcome,
    /// The object's state before and after a run.
    pub difference: Difference,
    /// The change of field ownership, if nothing else of the object changes.
    pub ownership: Option<OwnershipChange>,
    pub cause: Cause,
}

/// The layout of differences for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiffLayout {
    /// The full text, as `kubectl diff` prints it, and the summary at the end.
    Unified,
    /// A summary, and the changes by namespace, below a line with the set and the cluster.
    Grouped,
}

/// `record` of the document.
#[derive(Debug, Clone, Default, Serialize)]
pub struct RecordChange {
    /// `null` if there is no parent, or one without a record.
    pub before: Option<RecordDocument>,
    /// `null` if it is unknown.
    pub after: Option<RecordDocument>,
}

/// The record of a parent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordDocument {
    /// The tool that manages the set.
    pub tooling: String,
    /// `Kind.group`, or `Kind` in the core group.
    pub group_kinds: Vec<String>,
    /// Namespaces of members, except the parent's own.
    pub additional_namespaces: Vec<String>,
}

impl RecordDocument {
    /// Creates the document of a record that `tooling` writes.
    pub fn new(tooling: &impl ToString, record: &Record) -> Self {
        Self {
            tooling: tooling.to_string(),
            group_kinds: record.group_kinds.iter().map(ToString::to_string).collect(),
            additional_namespaces: record.additional_namespaces.iter().cloned().collect(),
        }
    }
}

impl Differences {
    /// Returns whether a run would find nothing to write, and nothing refuses or prevents it.
    pub fn is_empty(&self) -> bool {
        self.refusals.is_empty()
            && self.failures.is_empty()
            && self.parent.as_ref().is_none_or(Difference::is_empty)
            && self.objects.iter().all(Comparison::is_untouched)
    }

    /// Returns whether the unified text lacks a part of the result: a refusal, a failure, or an object of which only
    /// the ownership of fields changes.
    pub fn has_results_beyond_unified_text(&self) -> bool {
        let has_hidden_object = self.objects.iter().any(|object| match object.outcome.action {
            Action::Failed => true,
            _ => !object.is_untouched() && object.difference.is_empty(),
        });
        has_hidden_object || !self.refusals.is_empty() || !self.failures.is_empty()
    }

    /// Returns the differences of the objects and of the parent, sorted by file name. `None` stands for the parent.
    fn sorted_by_file_name(&self) -> Vec<(&Difference, Option<&Comparison>)> {
        let objects = self
            .objects
            .iter()
            .map(|object| (&object.difference, Some(object)));
        let parent = self.parent.iter().map(|difference| (difference, None));
        let mut all: Vec<_> = objects.chain(parent).collect();
        all.sort_by(|(one, _), (other, _)| one.file.cmp(&other.file));
        all
    }

    /// Returns the differences that are not empty, sorted by file name.
    pub fn non_empty(&self) -> Vec<&Difference> {
        let all = self
            .sorted_by_file_name()
            .into_iter()
            .map(|(difference, _)| difference);
        all.filter(|difference| !difference.is_empty()).collect()
    }

    /// Returns the unified text of all differences, with comments: `patch` ignores lines that begin with `#`.
    fn unified_text(&self) -> String {
        let mut text = String::new();
        for (difference, object) in self.sorted_by_file_name() {
            if let Some(comment) = object.and_then(Comparison::comment) {
                text.extend(["# ", &escape_as_one_line(&comment), "\n"]);
            }
            text += &difference.unified();
        }
        for line in self.drift_lines() {
            text.extend(["# ", &escape_as_one_line(&line), "\n"]);
        }
        text
    }

    /// Returns a line for each object of which only the ownership of fields changes.
    pub fn describe_ownership_only_changes(&self) -> Vec<String> {
        let owned = self.objects.iter().filter(|object| object.ownership.is_some());
        owned.filter_map(Comparison::comment).collect()
    }

    /// Returns a line about the parent if a run would write nothing else. Without the line, the summary would say that
    /// there is nothing to do, because it does not count the parent.
    fn line_if_only_parent_changes(&self) -> Option<String> {
        let parent = self.parent.as_ref().and_then(Entry::from_parent)?;
        if !self.objects.iter().all(Comparison::is_untouched) {
            return None;
        }
        let (name, action) = (parent.key.object_name(), parent.effect.run_words());
        Some(format!("{name}, the set's parent, would be {action}"))
    }
}

impl Comparison {
    /// Returns whether a run would not write the object.
    fn is_untouched(&self) -> bool {
        matches!(self.outcome.action, Action::Unchanged | Action::Skipped)
    }

    /// Returns a comment about what the text of the difference does not show: that the object is taken in or recreated,
    /// or that only the ownership of its fields changes.
    pub(super) fn comment(&self) -> Option<String> {
        let key = self.outcome.subject.key();
        match &self.ownership {
            Some(change) => Some(format!("{key} ownership only: {change}")),
            None if self.outcome.taken_in => Some(format!("{key} {}", self.outcome.reason)),
            None if self.outcome.action == Action::Recreated => {
                let reason = &self.outcome.reason;
                let colon = if reason.is_empty() { "" } else { ": " };
                Some(format!("{key} recreated{colon}{reason}"))
            }
            None => None,
        }
    }
}

impl Reporter {
    /// Advances the progress bar by one compared object.
    pub fn advance_progress_bar(&mut self) {
        self.bars.advance_by_one();
    }

    /// Prints all differences as text; nothing if a document was requested.
    pub fn print_differences(
        &mut self,
        (set, place): (&SetDocument, &ContextAndServer),
        found: &Differences,
        layout: DiffLayout,
    ) {
        self.bars.clear();
        let colors = self.style.output_colors;
        match self.style.format {
            Format::Lines | Format::Wide if layout == DiffLayout::Unified => {
                text(&add_colors(&printable_text(&found.unified_text()), colors));
            }
            Format::Lines | Format::Wide => {
                let columns = self.style.output.columns_or_default();
                let header = header(&set_title(set), place, columns);
                for line in plan_screen::screen_lines(header, found, columns) {
                    print_line(&line, colors);
                }
            }
            Format::Names => {
                for object in found.objects.iter().filter(|object| !object.is_untouched()) {
                    print_escaped_line(&object.outcome.subject.key().object_name());
                }
                for line in found.drift_lines() {
                    self.take_event(Event::Note(line));
                }
            }
            Format::Json | Format::Yaml | Format::Kyaml | Format::Markdown => {}
        }
    }

    /// Prints the end of a `diff`, as `finish` prints that of a run.
    pub fn finish_diff(
        mut self,
        (set, place): (SetDocument, &ContextAndServer),
        found: &Differences,
        end: RunEnd,
        requests: u64,
        layout: DiffLayout,
    ) {
        let cost = self.cost_so_far(requests);
        self.bars.clear();
        self.count_and_print_messages(found, end);
        self.print_collected_messages();
        // The screen of the plan has the counts and the parent already.
        let has_plan_screen =
            layout == DiffLayout::Grouped && matches!(self.style.format, Format::Lines | Format::Wide);
        if found.drift.is_some() {
            self.without_counts = "the manifests change nothing";
        }
        if !has_plan_screen && !matches!(end, RunEnd::Failed(_)) {
            if let Some(text) = found.line_if_only_parent_changes() {
                self.print_parent_note(&text);
            }
            self.print_summary(end, cost);
        }
        self.collected.failures.extend(found.failures.iter().cloned());
        if self.style.format == Format::Markdown {
            let (warned, taken_in) = (&self.collected.warnings, self.taken_in.lines());
            self.save_and_print_page(&diff_page((&set, place), found, end, warned, taken_in));
        }
        let report = Report::new(set, &self.collected, Some(found), end, cost);
        print_if_json_or_yaml(&report, place, self.style);
    }

    /// Prints to standard error what the text of the differences leaves out: errors, reasons and refusals. With
    /// `--quiet`, refusals are printed only if they are why the plan was not saved.
    fn count_and_print_messages(&mut self, found: &Differences, end: RunEnd) {
        let refused = Refusal::first_by_object(&found.refusals);
        for Comparison { outcome, .. } in &found.objects {
            self.summary.add(outcome.action);
            let verbosity = match outcome.action {
                // The refusal is printed below.
                Action::Failed | Action::Pruned if refused.contains_key(&outcome.subject.key()) => continue,
                Action::Failed => Verbosity::Quiet,
                Action::Skipped => Verbosity::Normal,
                _ => Verbosity::Verbose,
            };
            self.collect_or_print_reason(outcome, verbosity);
        }
        for failure in &found.failures {
            self.print_unless_repeated(Label::Error, failure);
        }
        let is_not_saved = matches!(end, RunEnd::Failed(error) if error.kind == ErrorKind::NotSaved);
        if self.style.verbosity > Verbosity::Quiet || is_not_saved {
            let (answerable, others): (Vec<Refusal>, Vec<Refusal>) = (found.refusals.iter().cloned())
                .partition(|refusal| refusal.is_data_loss() || refusal.is_prune_all());
            let prefixed = [
                ("apply would refuse this: ", others),
                ("apply needs consent: ", answerable),
            ];
            for (prefix, refusals) in prefixed {
                for refusal in keep_shared_hints_on_last(Refusal::messages(&refusals)) {
                    self.print_unless_repeated(Label::Warning, &refusal.with_subject_prefix(prefix));
                }
            }
        }
    }
}

/// Colors the lines of a unified text as `diff --color` does.
fn add_colors(unified: &str, colors: Colors) -> String {
    let mut text = String::new();
    for line in unified.split_inclusive('\n') {
        let color = match line.as_bytes() {
            [b'd', ..] | [b'-', b'-', b'-', b' ', ..] | [b'+', b'+', b'+', b' ', ..] => Color::Bold,
            [b'@', ..] => Color::Cyan,
            [b'-', ..] => Color::Red,
            [b'+', ..] => Color::Green,
            _ => Color::Plain,
        };
        let content = line.trim_end_matches('\n');
        text.extend([&*color.paint(content, colors), &line[content.len()..]]);
    }
    text
}
