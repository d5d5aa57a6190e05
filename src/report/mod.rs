//! Everything that people and scripts see: lines, documents, progress, errors.
//!
//! Data goes to standard output, what is for people to standard error. All printing of
//! the program is done here, and nothing is decided here.

mod age;
mod difference;
mod document;
mod external;
mod findings;
mod human;
mod members;
mod progress;
mod sets;

use std::io::{self, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
use serde_json::{Value, json};

pub use difference::{Comparison, Differences, RecordChange, RecordDocument};
use document::Account;
pub use document::{Cost, Report, SetDocument};
pub use external::ExternalVerdict;
pub use external::show as show_externally;
pub use findings::VerifyDocument;
pub use progress::LookBar;
pub use sets::{ListDocument, SetListing, ViewDocument};

use crate::error::Error;
use crate::event::{Action, Awaited, Event, ObjectOutcome, Operation, Phase, Standing, Summary};
use crate::execute::DryRun;
use crate::identity::GroupVersionKind;
use crate::plan::Refusal;
use crate::wording::{printable, printable_json};
use progress::Bars;

/// `apiVersion` of all documents.
pub const API_VERSION: &str = "kubectl-applyset/v1";

/// How results are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// On standard output.
    pub format: Format,
    /// On standard error.
    pub loudness: Loudness,
    /// On standard error.
    pub colors: Colors,
    /// On standard error.
    pub progress: Progress,
}

/// What standard output holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Lines as kubectl prints them.
    Lines,
    /// Tables with more columns.
    Wide,
    /// Names, a line each.
    Names,
    /// One JSON document.
    Json,
    /// One YAML document.
    Yaml,
}

/// How much standard error holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Loudness {
    /// Errors.
    Quiet,
    /// Errors, warnings, the summary.
    Normal,
    /// The phases, too.
    Verbose,
}

/// Whether messages are coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colors {
    /// They are.
    On,
    /// They are not.
    Off,
}

/// Whether progress is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// It is.
    Drawn,
    /// It is not.
    Hidden,
}

/// Whether a run came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completeness {
    /// It did.
    ToTheEnd,
    /// Somebody stopped it.
    BrokenOff,
}

/// Consumes the events of a run, and tells of it at the end.
pub struct Reporter {
    style: Style,
    bars: Bars,
    summary: Summary,
    parent: ParentNews,
    account: Account,
}

/// Whether something was said of the set's parent, which no summary counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ParentNews {
    None,
    Told,
}

impl Reporter {
    /// A reporter of one run.
    pub fn new(operation: Operation, style: Style, dry_run: DryRun) -> Self {
        Self {
            style,
            bars: Bars::new(style.progress),
            summary: Summary::default(),
            parent: ParentNews::None,
            account: Account {
                operation,
                dry_run,
                results: Vec::new(),
                waiting: None,
                warnings: Vec::new(),
                failures: Vec::new(),
            },
        }
    }

    /// Whether what is said beside the report is coloured.
    pub fn colors(&self) -> Colors {
        self.style.colors
    }

    /// Takes one event in.
    pub fn event(&mut self, event: Event) {
        match event {
            Event::Phase { phase, total } => {
                if self.style.loudness == Loudness::Verbose {
                    self.note(&human::phase(phase, total));
                }
                if phase == Phase::Waiting {
                    self.account.waiting.get_or_insert_default();
                }
                self.bars.begin(phase, total);
            }
            Event::Slowest(slowest) => self.bars.dwell(slowest),
            Event::Warning(text) => self.warn(text),
            Event::Failure(text) => {
                self.bars
                    .suspend(|| print_message(human::Label::Error, &text, self.style.colors));
                self.account.failures.push(text);
            }
            Event::Object(outcome) => self.object(outcome),
            Event::Parent(parent, action) => {
                self.parent = ParentNews::Told;
                if self.style.loudness > Loudness::Quiet {
                    self.note(&human::parent(&parent, action));
                }
            }
            Event::Awaited(awaited) => self.awaited(awaited),
        }
    }

    fn object(&mut self, outcome: ObjectOutcome) {
        self.bars.advance(outcome.action);
        match self.style.format {
            Format::Lines if self.style.loudness > Loudness::Quiet => {
                let line = human::line(&outcome, self.account.dry_run);
                self.bars.suspend(|| print(&line));
            }
            Format::Names if outcome.action != Action::Failed => {
                let name = outcome
                    .subject
                    .key()
                    .group_kind
                    .object_name(&outcome.subject.name);
                self.bars.suspend(|| print(&name));
            }
            _ => {}
        }
        if let Some(detail) = human::detail(&outcome) {
            let loudness = match outcome.action {
                Action::Failed => Loudness::Quiet,
                Action::Pruned | Action::Deleted | Action::Skipped => Loudness::Normal,
                Action::Created
                | Action::Configured
                | Action::Unchanged
                | Action::Released
                | Action::Adopted => Loudness::Verbose,
            };
            if self.style.loudness >= loudness {
                let label = if outcome.action == Action::Failed {
                    human::Label::Error
                } else {
                    human::Label::Note
                };
                self.bars
                    .suspend(|| print_message(label, &detail, self.style.colors));
            }
        }
        self.summary.add(outcome.action);
        if matches!(self.style.format, Format::Json | Format::Yaml) {
            self.account.results.push(outcome);
        }
    }

    fn awaited(&mut self, awaited: Awaited) {
        let text = human::awaited(&awaited);
        let (label, loudness) = match awaited.standing {
            Standing::Changed => {
                self.bars.tell(&text);
                (human::Label::Note, Loudness::Verbose)
            }
            Standing::Arrived => {
                self.bars.arrive();
                (human::Label::Note, Loudness::Verbose)
            }
            Standing::Slow => (human::Label::Note, Loudness::Normal),
            Standing::Missed => (human::Label::Error, Loudness::Quiet),
        };
        if self.style.loudness >= loudness {
            self.bars
                .suspend(|| print_message(label, &text, self.style.colors));
        }
        if awaited.standing == Standing::Missed {
            self.account.waiting.get_or_insert_default().push(awaited);
        }
    }

    fn warn(&mut self, text: String) {
        if self.style.loudness > Loudness::Quiet {
            self.bars
                .suspend(|| print_message(human::Label::Warning, &text, self.style.colors));
        }
        self.account.warnings.push(text);
    }

    fn note(&self, text: &str) {
        self.bars
            .suspend(|| print_message(human::Label::Note, text, self.style.colors));
    }

    /// Prints what belongs at the end of a run, however it ended.
    ///
    /// `set` is what is known of the set.
    pub fn finish(mut self, set: SetDocument, error: Option<&Error>, completeness: Completeness, cost: Cost) {
        self.bars.clear();
        if self.style.loudness > Loudness::Quiet && error.is_none() {
            let dry_run = self.account.dry_run;
            let counts = human::counts(self.account.operation, &self.summary, self.parent, completeness);
            let line = human::summary(&counts, dry_run, cost);
            print_message(human::Label::Plain, &line, self.style.colors);
        }
        let report = Report::new(set, &self.account, error, completeness, cost);
        document(&report, self.style);
    }
}

/// Prints an error with its hints to standard error.
pub fn error(error: &Error, colors: Colors) {
    print_message(human::Label::Error, &error.to_string(), colors);
    for hint in error.hints() {
        print_message(human::Label::Hint, &hint, colors);
    }
}

/// Prints a message for people that is neither an error nor a warning.
pub fn note(text: &str, style: Style) {
    if style.loudness > Loudness::Quiet {
        print_message(human::Label::Note, text, style.colors);
    }
}

/// Prints what people can type next.
fn hint(text: &str, style: Style) {
    if style.loudness > Loudness::Quiet {
        print_message(human::Label::Hint, text, style.colors);
    }
}

/// Prints what a run came to, for people.
fn plain(text: &str, style: Style) {
    if style.loudness > Loudness::Quiet {
        print_message(human::Label::Plain, text, style.colors);
    }
}

/// Prints a warning for people.
pub fn warning(text: &str, style: Style) {
    if style.loudness > Loudness::Quiet {
        print_message(human::Label::Warning, text, style.colors);
    }
}

/// Prints the findings of `verify`, and what people can do about them.
pub fn findings(document: &VerifyDocument, style: Style) {
    match style.format {
        Format::Lines | Format::Wide => findings::lines(document).iter().for_each(|line| print(line)),
        Format::Names => document.object_names().iter().for_each(|name| print(name)),
        Format::Json | Format::Yaml => self::document(document, style),
    }
    document.tell(style);
}

/// Prints data in the chosen format; `lines` is what people get.
pub fn data<T: Serialize>(
    document: &T,
    style: Style,
    lines: impl FnOnce(&T, Width) -> String,
    names: impl FnOnce(&T) -> Vec<String>,
) {
    match style.format {
        Format::Lines => print(&lines(document, Width::Usual)),
        Format::Wide => print(&lines(document, Width::Wide)),
        Format::Names => names(document).iter().for_each(|name| print(name)),
        Format::Json | Format::Yaml => self::document(document, style),
    }
}

/// Prints a document where one was asked for, and nothing where lines or names were.
pub fn document<T: Serialize>(document: &T, style: Style) {
    match style.format {
        Format::Json => print_document(&json(document)),
        Format::Yaml => print_document(&yaml(document)),
        Format::Lines | Format::Wide | Format::Names => {}
    }
}

/// Prints objects of the API for `kubectl apply`: YAML documents, or one JSON List.
pub fn objects(objects: &[Value], style: Style) {
    match style.format {
        Format::Lines | Format::Wide | Format::Yaml => {
            for object in objects {
                print("---");
                print_document(&yaml(object));
            }
        }
        Format::Json => print_document(&json(
            &json!({"apiVersion": "v1", "kind": "List", "items": objects}),
        )),
        Format::Names => objects
            .iter()
            .filter_map(object_name)
            .for_each(|name| print(&name)),
    }
}

fn object_name(object: &Value) -> Option<String> {
    let text = |pointer| object.pointer(pointer)?.as_str();
    let gvk = GroupVersionKind::from_api_version(text("/apiVersion")?, text("/kind")?);
    Some(gvk.group_kind().object_name(text("/metadata/name")?))
}

/// Prints a text, such as a completion script, as it is.
pub fn text(text: &str) {
    let mut stdout = io::stdout().lock();
    heed(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()));
}

/// Whether something that was printed as data did not get through.
///
/// A disk that is full must not end in exit code 0; a pipe that was closed may, since
/// whoever closed it has read enough.
pub fn has_lost_output() -> bool {
    LOST_OUTPUT.load(Ordering::Relaxed)
}

/// There is one standard output, and it fails for the whole program.
static LOST_OUTPUT: AtomicBool = AtomicBool::new(false);

fn heed(written: io::Result<()>) {
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            if !LOST_OUTPUT.swap(true, Ordering::Relaxed) {
                print_message(
                    human::Label::Error,
                    &format!("standard output: {error}"),
                    Colors::Off,
                );
            }
        }
        Ok(()) | Err(_) => {}
    }
}

/// How much a table shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// What fits a terminal.
    Usual,
    /// All there is.
    Wide,
}

/// The table of `list`.
pub fn list_text(document: &ListDocument, width: Width) -> String {
    sets::table(document, width)
}

/// The page of `view`, or the table of its members.
pub fn view_text(document: &ViewDocument, width: Width) -> String {
    match width {
        Width::Usual => members::page(document),
        Width::Wide => members::table(document),
    }
}

fn print(line: &str) {
    let mut stdout = io::stdout().lock();
    let written = writeln!(stdout, "{}", printable(line.trim_end()));
    heed(written.and_then(|()| stdout.flush()));
}

/// The serialisers escape what a terminal would act upon in the way of their own format.
fn print_document(text: &str) {
    let mut stdout = io::stdout().lock();
    let written = writeln!(stdout, "{}", text.strip_suffix('\n').unwrap_or(text));
    heed(written.and_then(|()| stdout.flush()));
}

/// Each line gets the label, but for lines that are indented: they go with the one above,
/// or give a hint.
fn print_message(label: human::Label, message: &str, colors: Colors) {
    let mut lines = String::new();
    for line in printable(message).lines() {
        let (label, text) = match line.strip_prefix("  hint: ") {
            Some(hint) => (human::Label::Hint, hint),
            None if line.starts_with("  ") => (human::Label::Plain, line),
            None => (label, line),
        };
        lines.push_str(&label.text(colors));
        lines.push_str(text);
        lines.push('\n');
    }
    // In one piece, so that no other program of a pipeline writes into the middle of a line.
    let _ = io::stderr().lock().write_all(lines.as_bytes());
}

fn json<T: Serialize>(document: &T) -> String {
    serde_json::to_string_pretty(document).map_or_else(
        |error| json!({"error": error.to_string()}).to_string(),
        |text| printable_json(&text),
    )
}

fn yaml<T: Serialize>(document: &T) -> String {
    serde_saphyr::to_string(document).unwrap_or_else(|error| format!("error: {:?}", error.to_string()))
}

/// Shows at a terminal what would happen, and asks whether to go on. Anything but yes is no.
pub fn confirm(refusals: &[Refusal], colors: Colors) -> bool {
    for refusal in refusals {
        print_message(human::Label::Warning, &refusal.question(), colors);
    }
    // Whoever is asked may be told something meanwhile, so nothing is locked.
    ask(&mut io::stdin().lock(), &mut io::stderr())
}

/// The question ends its line: an answer that was typed ahead, or none at all, would leave
/// the next message behind it.
fn ask(answers: &mut impl io::BufRead, questions: &mut impl io::Write) -> bool {
    let _ = writeln!(questions, "Go on all the same? Type yes or no:");
    let _ = questions.flush();
    let mut answer = String::new();
    answers.read_line(&mut answer).is_ok() && answer.trim() == "yes"
}

/// Tells that the wish to stop was heard.
pub fn interrupted() {
    print_message(
        human::Label::Note,
        "stopping after the requests under way; once more stops at once",
        Colors::Off,
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_yes_is_yes_and_the_question_ends_its_line() {
        for (typed, is_yes) in [
            ("yes\n", true),
            ("yes", true),
            ("y\n", false),
            ("no\n", false),
            ("", false),
        ] {
            let mut asked = Vec::new();
            assert_eq!(ask(&mut typed.as_bytes(), &mut asked), is_yes, "{typed:?}");
            assert!(asked.ends_with(b"\n"), "{asked:?}");
        }
    }

    #[test]
    fn documents_hold_what_they_are_made_of_and_steer_no_terminal() {
        let texts = [
            "\u{85}",
            "\u{1b}[31m",
            "a\tb",
            "two\nlines\u{9b}\n",
            "two\nlines\n\n",
            "\u{7f}: x",
        ];
        let is_hostile = |character: char| character.is_control() && !"\n\t".contains(character);
        for text in texts {
            let document = json!({"text": text});
            let [json, yaml] = [json(&document), yaml(&document)];
            assert!(
                !json.contains(is_hostile) && !yaml.contains(is_hostile),
                "{json:?} {yaml:?}"
            );
            let read: Value = serde_json::from_str(&json).expect("JSON");
            assert_eq!(read, document);
            let read: Value = serde_saphyr::from_str(&yaml).expect("YAML");
            assert_eq!(read, document);
        }
    }
}
