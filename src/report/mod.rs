//! Prints all output of the program: lines, documents, progress, errors.
//!
//! Data goes to standard output, messages to standard error. Nothing else prints, and nothing is
//! decided here.

mod age;
mod columns;
mod conflicts;
mod context_header;
mod diff;
mod difference_kinds;
mod document;
mod envelope;
mod external_diff;
mod hints;
mod history;
mod list;
mod manifests;
mod markdown;
mod objects_without_result;
mod output;
mod paint;
mod plan_screen;
mod plan_view;
mod progress;
mod prompt;
mod prompt_screen;
mod reporter;
mod rows;
mod runs;
mod set_summary;
mod style;
mod taken_in;
mod text_lines;
mod verify;
mod view;
mod wait_screen;

use serde::Serialize;
use serde_json::{Value, json};

pub use context_header::ContextAndServer;
pub use diff::{Comparison, DiffLayout, DiffSummary, Differences, RecordChange, RecordDocument};
pub use difference_kinds::{Cause, DifferenceKind};
pub use document::{Report, RequestsAndSeconds, SetDocument};
use envelope::Envelope;
pub use external_diff::show as show_externally;
pub use external_diff::{ExternalDiff, ExternalVerdict};
pub use history::HistoryDocument;
pub use list::{ListDocument, SetListing};
pub use manifests::{ManifestText, manifest_file};
pub use markdown::BYTES_OF_COMMENT;
pub use output::{has_lost_output, write as text};
use output::{print, print_document, print_message};
pub use progress::{SearchBar, clear as clear_progress};
pub use prompt::{PlanOutline, Question, WrittenBefore, confirm};
pub use reporter::Reporter;
pub use style::{Colors, Device, Format, Loudness, Progress, Style, UnchangedLines, Width};
pub use verify::VerifyDocument;
pub use view::ViewDocument;

use crate::error::Error;
use crate::event::Resume;
use crate::model::identity::GroupVersionKind;
use crate::model::text::one_line;
use crate::verify::Finding;

/// The end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunEnd {
    /// It was complete.
    Complete,
    /// The user interrupted it.
    Interrupted(Resume),
}

/// Prints an error with its hints to standard error.
pub fn error(error: &Error, colors: Colors) {
    for message in hints::shared_hints_last(error.messages.clone()) {
        print_message(text_lines::Label::Error, &message, colors);
    }
}

/// Prints a note, unless `--quiet` is set.
pub fn note(text: &str, style: Style) {
    if style.loudness > Loudness::Quiet {
        print_message(text_lines::Label::Note, &text.into(), style.colors);
    }
}

/// Prints a hint, unless `--quiet` is set.
fn hint(text: &str, style: Style) {
    if style.loudness > Loudness::Quiet {
        print_message(text_lines::Label::Hint, &text.into(), style.colors);
    }
}

/// Prints a line without a label, unless `--quiet` is set.
fn plain(text: &str, style: Style) {
    if style.loudness > Loudness::Quiet {
        print_message(text_lines::Label::Plain, &text.into(), style.colors);
    }
}

/// Prints a warning, unless `--quiet` is set.
pub fn warning(text: &str, style: Style) {
    if style.loudness > Loudness::Quiet {
        print_message(text_lines::Label::Warning, &text.into(), style.colors);
    }
}

/// Prints the lines of findings before the question whether to repair them. Returns whether this
/// format has lines.
pub fn findings_to_repair(findings: &[Finding], style: Style) -> bool {
    let has_lines = matches!(style.format, Format::Lines | Format::Wide);
    if has_lines {
        print_findings(verify::lines_of(findings), style);
    }
    has_lines
}

/// Prints a line for each finding; at a terminal, it is wrapped between words.
fn print_findings(lines: Vec<String>, style: Style) {
    let columns = match style.output {
        Device::Terminal { columns, .. } => columns,
        Device::Stream => usize::MAX,
    };
    for line in lines {
        let parts = paint::wrapped(&one_line(&line), columns.saturating_sub(2));
        for (index, part) in parts.iter().enumerate() {
            let margin = if index == 0 { "" } else { "  " };
            print(&format!("{margin}{part}"));
        }
    }
}

/// Prints the hints and the summary of findings that were printed before.
pub fn findings_below(document: &VerifyDocument, style: Style) {
    document.print_summary(style);
}

/// Prints the findings of `verify`, with their hints.
pub fn findings(document: &VerifyDocument, place: &ContextAndServer, style: Style) {
    match style.format {
        Format::Lines | Format::Wide => print_findings(verify::lines(document), style),
        Format::Names => document.object_names().iter().for_each(|name| print(name)),
        Format::Json | Format::Yaml | Format::Markdown => self::document(document, place, style),
    }
    document.print_summary(style);
}

/// Prints data in the chosen format; `lines` makes the text for people.
pub fn data<T: Serialize>(
    document: &T,
    place: &ContextAndServer,
    style: Style,
    lines: impl FnOnce(&T, Width) -> Vec<String>,
    names: impl FnOnce(&T) -> Vec<String>,
) {
    let width = match style.output {
        Device::Terminal { columns, .. } => Width::Fitting(columns),
        Device::Stream => Width::Usual,
    };
    match style.format {
        Format::Lines => lines(document, width).iter().for_each(|line| print(line)),
        Format::Wide => lines(document, Width::Wide).iter().for_each(|line| print(line)),
        Format::Names => names(document).iter().for_each(|name| print(name)),
        Format::Json | Format::Yaml | Format::Markdown => self::document(document, place, style),
    }
}

/// Prints a document if one was requested, with the cluster that it is about.
pub fn document<T: Serialize>(document: &T, place: &ContextAndServer, style: Style) {
    let document = Envelope::new(document, place);
    match style.format {
        Format::Json => output::print_json(&document),
        Format::Yaml => print_document(&output::yaml(&document)),
        Format::Lines | Format::Wide | Format::Names | Format::Markdown => {}
    }
}

/// Prints objects of the API for `kubectl apply`: YAML documents, or one JSON List.
pub fn objects(objects: &[Value], style: Style) {
    match style.format {
        Format::Lines | Format::Wide | Format::Yaml | Format::Markdown => {
            for object in objects {
                print("---");
                print_document(&output::yaml(object));
            }
        }
        Format::Json => output::print_json(&json!({"apiVersion": "v1", "kind": "List", "items": objects})),
        Format::Names => objects
            .iter()
            .filter_map(object_name)
            .for_each(|name| print(&name)),
    }
}

/// Prints exported manifests; `file` is their text.
pub fn manifests(manifests: &[ManifestText], file: &str, style: Style) {
    match style.format {
        Format::Lines | Format::Wide | Format::Yaml | Format::Markdown => output::write(file),
        Format::Json | Format::Names => {
            let objects: Vec<Value> = manifests.iter().map(|text| text.manifest().clone()).collect();
            self::objects(&objects, style);
        }
    }
}

fn object_name(object: &Value) -> Option<String> {
    let text = |pointer| object.pointer(pointer)?.as_str();
    let gvk = GroupVersionKind::from_api_version(text("/apiVersion")?, text("/kind")?);
    Some(gvk.group_kind().object_name(text("/metadata/name")?))
}

/// The table of `list`.
pub fn list_text(document: &ListDocument, width: Width) -> Vec<String> {
    list::table(document, width)
}

/// The table of `history`.
pub fn history_table(document: &HistoryDocument, width: Width) -> Vec<String> {
    history::table(document, width)
}

/// The page of `view`, or the table of its members.
pub fn view_text(document: &ViewDocument, width: Width) -> Vec<String> {
    match width {
        Width::Usual | Width::Fitting(_) => view::page(document, width),
        Width::Wide => view::table(document),
    }
}

/// Prints that the interrupt was received. Below a question no request is under way.
pub fn interrupted() {
    let (label, text) = match prompt::open() {
        None => (
            text_lines::Label::Note,
            "stopping after the requests in flight and recreations under way; a second Ctrl-C or signal stops at once",
        ),
        Some(WrittenBefore::Nothing) => (text_lines::Label::Plain, "stopped: nothing was written"),
        Some(WrittenBefore::Confirmed) => (text_lines::Label::Plain, "stopped: nothing more was written"),
    };
    if prompt::open().is_some() {
        output::say("\n");
    }
    print_message(label, &text.into(), Colors::Off);
}
