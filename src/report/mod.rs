//! Prints all output of the program: lines, documents, progress, errors.
//!
//! Data goes to standard output, messages to standard error. No other module prints, and this module makes no decision
//! about the run.

mod diff;
mod documents;
mod kyaml;
mod layout;
mod manifests;
mod markdown;
mod output;
mod plan_screen;
mod plan_view;
mod progress;
mod prompt;
mod reporter;
mod style;
mod text_lines;

use serde::Serialize;
use serde_json::{Value, json};

pub use diff::external::{ExternalDiff, show_externally};
pub use diff::kinds::{Cause, DifferenceKind};
pub use diff::{Comparison, DiffLayout, Differences, NOT_VALIDATED, RecordChange, RecordDocument};
pub use documents::history::HistoryDocument;
pub use documents::list::{ListDocument, SetListing};
pub use documents::report::RequestsAndSeconds;
pub use documents::verify::VerifyDocument;
use documents::verify::finding_lines;
pub use documents::view::ViewDocument;
pub use documents::{ContextAndServer, RunEnd, SetDocument};
use documents::{Envelope, Listing};
use kyaml::kyaml;
pub use manifests::{ManifestText, apply_command, manifest_file_text};
pub use markdown::BYTES_OF_COMMENT;
pub use output::{has_lost_output, print_as_is as text};
use output::{print_document_text, print_escaped_line, print_message};
pub use progress::clear_progress;
pub use prompt::{PlanOutline, Question, confirm};
pub use reporter::Reporter;
use reporter::repeated_messages;
pub use style::{Colors, Device, Format, Progress, Style, UnchangedLines, Verbosity};
use text_lines::Label;

use crate::error::Error;
use crate::model::identity::{GroupVersionKind, ObjectKey};
use crate::verify::Finding;

/// Prints an error with its hints to standard error.
pub fn print_error(error: &Error, colors: Colors) {
    for message in repeated_messages::keep_shared_hints_on_last(error.messages.clone()) {
        print_message(Label::Error, &message, colors);
    }
}

/// Prints a note, unless `--quiet` is set.
pub fn print_note(text: &str, style: Style) {
    print_unless_quiet(Label::Note, text, style);
}

/// Prints a warning, unless `--quiet` is set.
pub fn print_warning(text: &str, style: Style) {
    print_unless_quiet(Label::Warning, text, style);
}

fn print_unless_quiet(label: Label, text: &str, style: Style) {
    if style.verbosity > Verbosity::Quiet {
        print_message(label, &text.into(), style.colors);
    }
}

/// Prints the findings above the question whether to repair them; nothing if the format of standard output has no lines.
pub fn print_findings_in_line_formats(findings: &[Finding], style: Style) {
    if matches!(style.format, Format::Lines | Format::Wide) {
        print_lines(&finding_lines(findings));
    }
}

/// Prints a document in the chosen format: as a table, as names, or as JSON, YAML or KYAML.
pub fn print_listing<T: Listing>(document: &T, cluster: &ContextAndServer, style: Style) {
    match style.format {
        Format::Lines | Format::Wide => print_lines(&document.lines(style)),
        Format::Names => print_lines(&document.names()),
        Format::Json | Format::Yaml | Format::Kyaml | Format::Markdown => {
            self::print_if_json_or_yaml(document, cluster, style);
        }
    }
}

fn print_lines(lines: &[String]) {
    for line in lines {
        print_escaped_line(line);
    }
}

/// Prints a document as JSON, YAML or KYAML, with the cluster that it is about; nothing in other formats.
pub fn print_if_json_or_yaml<T: Serialize>(document: &T, place: &ContextAndServer, style: Style) {
    let document = Envelope::new(document, place);
    match style.format {
        Format::Json => output::print_json(&document),
        Format::Yaml => print_document_text(&output::yaml(&document)),
        Format::Kyaml => print_document_text(&format!("---\n{}", kyaml(&document))),
        Format::Lines | Format::Wide | Format::Names | Format::Markdown => {}
    }
}

/// Prints objects that `kubectl apply` can read: YAML documents, each with its comment above it, or one JSON List.
pub fn print_objects(objects: &[Value], comment_on: fn(&Value) -> Option<&'static str>, style: Style) {
    match style.format {
        Format::Lines | Format::Wide | Format::Yaml | Format::Kyaml | Format::Markdown => {
            let is_kyaml = style.format == Format::Kyaml;
            for object in objects {
                print_escaped_line("---");
                if let Some(comment) = comment_on(object) {
                    print_escaped_line(&format!("# {comment}"));
                }
                print_document_text(&if is_kyaml {
                    kyaml(object)
                } else {
                    output::yaml(object)
                });
            }
        }
        Format::Json => output::print_json(&json!({"apiVersion": "v1", "kind": "List", "items": objects})),
        Format::Names => {
            let keys = objects.iter().filter_map(object_key);
            print_lines(&keys.map(|key| key.object_name()).collect::<Vec<_>>());
        }
    }
}

/// Prints exported manifests; `file` is their YAML with comments.
pub fn print_exported_manifests(manifests: &[ManifestText], file: &str, style: Style) {
    match style.format {
        Format::Lines | Format::Wide | Format::Yaml | Format::Markdown => output::print_as_is(file),
        Format::Json | Format::Kyaml | Format::Names => {
            let objects: Vec<Value> = manifests.iter().map(|text| text.manifest.clone()).collect();
            self::print_objects(&objects, |_| None, style);
        }
    }
}

/// Returns the key of an object; `None` if the value lacks a kind, an API version or a name.
fn object_key(object: &Value) -> Option<ObjectKey> {
    let gvk = GroupVersionKind::from_api_version(object["apiVersion"].as_str()?, object["kind"].as_str()?);
    let metadata = &object["metadata"];
    Some(ObjectKey {
        group_kind: gvk.group_kind(),
        namespace: metadata["namespace"].as_str().map(str::to_owned),
        name: metadata["name"].as_str()?.to_owned(),
    })
}

/// Prints that the interrupt was received. While a question is open, no request is in flight, so the run ends at once.
pub fn print_interrupt_received() {
    let (label, text) = if prompt::is_question_open() {
        output::write_stderr("\n");
        (Label::Plain, "stopped: nothing was written")
    } else {
        (
            Label::Note,
            "stopping once what is under way is done; a second Ctrl-C or signal stops at once",
        )
    };
    print_message(label, &text.into(), Colors::Off);
}
