//! The output of `diff`: text as `kubectl diff` prints it, a page, or a document.

pub(super) mod external;
pub(super) mod kinds;

use std::collections::BTreeMap;

use serde::Serialize;

use super::documents::report::Report;
use super::documents::{ContextAndServer, RunEnd, SetDocument};
use super::layout::paint::Color;
use super::markdown::render_diff;
use super::output::{print, print_line};
use super::plan_view::Entry;
use super::reporter::Reporter;
use super::reporter::hints::shared_hints_last;
use super::style::{Colors, Format, Verbosity};
use super::text_lines::{self, Label, header, title};
use super::{document, plan_screen, text};
use crate::compare::diff::{Difference, OwnershipChange};
use crate::error::ErrorKind;
use crate::event::{Action, ObjectOutcome};
use crate::model::applyset::Record;
use crate::model::identity::ObjectKey;
use crate::model::message::Message;
use crate::model::text::{one_line, printable_text};
use crate::plan::Refusal;
use kinds::Cause;

/// The differences between the cluster and its state after a run.
#[derive(Debug, Default)]
pub struct Differences {
    /// The objects of the manifests and of the set, by file name.
    pub objects: Vec<Comparison>,
    /// The parent; `None` if it is unknown.
    pub parent: Option<Difference>,
    /// The parent's record now, and at the end of a run.
    pub record: RecordChange,
    /// The reasons why a run would be refused.
    pub refusals: Vec<Refusal>,
    /// Failures that are not about an object of the set.
    pub failures: Vec<Message>,
}

/// One object, and the effect of a run on it.
#[derive(Debug)]
pub struct Comparison {
    /// The effect.
    pub outcome: ObjectOutcome,
    /// Its state now, and after a run.
    pub difference: Difference,
    /// The change of field ownership, if nothing else of the object changes.
    pub ownership: Option<OwnershipChange>,
    /// What is known about the cause.
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
    /// `Kind.group`, a core kind bare.
    pub group_kinds: Vec<String>,
    /// Namespaces of members, except the parent's own.
    pub additional_namespaces: Vec<String>,
}

impl RecordDocument {
    /// A record as `tooling` writes it.
    pub fn new(tooling: &impl ToString, record: &Record) -> Self {
        Self {
            tooling: tooling.to_string(),
            group_kinds: record.group_kinds.iter().map(ToString::to_string).collect(),
            additional_namespaces: record.additional_namespaces.iter().cloned().collect(),
        }
    }
}

impl Differences {
    /// The refusals that are about one object, by this object.
    pub(super) fn refusals_by_object(&self) -> BTreeMap<&ObjectKey, &Refusal> {
        let refusals = self.refusals.iter();
        refusals
            .filter_map(|refusal| Some((refusal.object()?, refusal)))
            .collect()
    }

    /// Returns whether a run would write nothing.
    pub fn are_none(&self) -> bool {
        self.refusals.is_empty()
            && self.failures.is_empty()
            && self.parent.as_ref().is_none_or(Difference::is_empty)
            && self.objects.iter().all(Comparison::is_untouched)
    }

    /// Returns whether a run would do more than the text of the differences shows: refusals,
    /// failures, and objects of which only the ownership of fields changes.
    pub fn exceed_what_is_shown(&self) -> bool {
        let has_hidden = self.objects.iter().any(|object| match object.outcome.action {
            Action::Failed => true,
            _ => !object.is_untouched() && object.difference.is_empty(),
        });
        has_hidden || !self.refusals.is_empty() || !self.failures.is_empty()
    }

    /// The differences of objects and parent, by file name.
    fn by_file(&self) -> Vec<(&Difference, Option<&Comparison>)> {
        let objects = self
            .objects
            .iter()
            .map(|object| (&object.difference, Some(object)));
        let parent = self.parent.iter().map(|difference| (difference, None));
        let mut all: Vec<_> = objects.chain(parent).collect();
        all.sort_by(|(one, _), (other, _)| one.file.cmp(&other.file));
        all
    }

    /// Those that are not empty.
    pub fn shown(&self) -> Vec<&Difference> {
        let all = self.by_file().into_iter().map(|(difference, _)| difference);
        all.filter(|difference| !difference.is_empty()).collect()
    }

    /// The text of all differences. `patch` ignores the lines that begin with `#`.
    fn text(&self) -> String {
        let mut text = String::new();
        for (difference, object) in self.by_file() {
            if let Some(mark) = object.and_then(Comparison::mark) {
                text.extend(["# ", &one_line(&mark), "\n"]);
            }
            text += &difference.unified();
        }
        text
    }

    /// The objects of which only the ownership of fields changes, a line each.
    pub fn ownership_lines(&self) -> Vec<String> {
        let owned = self.objects.iter().filter(|object| object.ownership.is_some());
        owned.filter_map(Comparison::mark).collect()
    }

    /// A line about the parent if a run would write nothing else. The summary does not count the
    /// parent.
    fn parent_alone(&self) -> Option<String> {
        let parent = self.parent.as_ref().and_then(Entry::from_parent)?;
        if !self.objects.iter().all(Comparison::is_untouched) {
            return None;
        }
        let (name, action) = (parent.key.object_name(), parent.effect.done());
        Some(format!("{name}, the set's parent, would be {action}"))
    }
}

impl Comparison {
    /// Returns whether a run would not write the object.
    fn is_untouched(&self) -> bool {
        matches!(self.outcome.action, Action::Unchanged | Action::Skipped)
    }

    /// A line about what the differences do not show: an object that is taken in or recreated, or of
    /// which only the ownership of fields changes.
    pub(super) fn mark(&self) -> Option<String> {
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
    pub fn advance(&mut self) {
        self.bars.advance_by_one();
    }

    /// Prints all differences as text; nothing if a document was requested.
    pub fn differences(
        &mut self,
        (set, place): (&SetDocument, &ContextAndServer),
        found: &Differences,
        layout: DiffLayout,
    ) {
        self.bars.clear();
        let colors = self.style.output_colors;
        match self.style.format {
            Format::Lines | Format::Wide if layout == DiffLayout::Unified => {
                text(&add_colors(&printable_text(&found.text()), colors));
            }
            Format::Lines | Format::Wide => {
                let columns = self.style.output.columns();
                let header = header(&title(set), place, columns);
                for line in plan_screen::lines(header, found, columns) {
                    print_line(&line, colors);
                }
            }
            Format::Names => found
                .objects
                .iter()
                .filter(|object| !object.is_untouched())
                .for_each(|object| print(&text_lines::name(&object.outcome))),
            Format::Json | Format::Yaml | Format::Markdown => {}
        }
    }

    /// Prints the end of a `diff`; see `finish`.
    pub fn finish_diff(
        mut self,
        (set, place): (SetDocument, &ContextAndServer),
        found: &Differences,
        end: RunEnd,
        requests: u64,
        layout: DiffLayout,
    ) {
        let cost = self.cost(requests);
        self.bars.clear();
        self.print_messages(found, end);
        self.print_rest();
        let is_in_plan =
            layout == DiffLayout::Grouped && matches!(self.style.format, Format::Lines | Format::Wide);
        if !is_in_plan && !matches!(end, RunEnd::Failed(_)) {
            if let Some(text) = found.parent_alone() {
                self.parent_note(&text);
            }
            self.print_full_summary(end, cost);
        }
        self.collected.failures.extend(found.failures.iter().cloned());
        if self.style.format == Format::Markdown {
            let (warned, taken_in) = (&self.collected.warnings, self.taken_in.lines());
            self.print_page(&render_diff((&set, place), found, end, warned, taken_in));
        }
        let report = Report::new(set, &self.collected, Some(found), end, cost);
        document(&report, place, self.style);
    }

    /// Prints to standard error what the text of the differences leaves out. If the error is about
    /// refusals, they are printed even with `--quiet`.
    fn print_messages(&mut self, found: &Differences, end: RunEnd) {
        let refused = found.refusals_by_object();
        for Comparison { outcome, .. } in &found.objects {
            self.summary.add(outcome.action);
            let verbosity = match outcome.action {
                Action::Failed if refused.contains_key(&outcome.subject.key()) => continue,
                Action::Failed => Verbosity::Quiet,
                Action::Skipped => Verbosity::Normal,
                _ => Verbosity::Verbose,
            };
            self.print_detail(outcome, verbosity);
        }
        for failure in &found.failures {
            self.print_unless_repeated(Label::Error, failure);
        }
        if self.style.verbosity > Verbosity::Quiet
            || matches!(end, RunEnd::Failed(error) if error.kind == ErrorKind::NotSaved)
        {
            for refusal in shared_hints_last(Refusal::messages(&found.refusals)) {
                let message = refusal.with_prefix("apply would refuse this: ");
                self.print_unless_repeated(Label::Warning, &message);
            }
        }
    }
}

/// Adds the colors of `diff --color`.
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
