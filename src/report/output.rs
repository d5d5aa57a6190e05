//! Writes to standard output and standard error. No other module does.

use std::io::{self, StdoutLock, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{fs, mem};

use serde::Serialize;
use serde_json::json;

use super::layout::paint::{Line, wrap};
use super::progress::without_progress;
use super::style::Colors;
use super::text_lines::Label;
use crate::model::message::Message;
use crate::model::text::{contains_hostile_text, escape_as_one_line, printable_json};

/// Prints a line of any text: line breaks and control characters in it are escaped.
pub(super) fn print_escaped_line(line: &str) {
    write_stdout(&[&format!("{}\n", escape_as_one_line(line.trim_end()))]);
}

/// Prints a line of any text with colors: a [`Line`] escapes its text.
pub(super) fn print_line(line: &Line, colors: Colors) {
    write_stdout(&[&format!("{}\n", line.text(colors))]);
}

/// Writes texts to standard output one after the other, without other output between them.
fn write_stdout(texts: &[&str]) {
    with_stdout(|stdout| {
        texts
            .iter()
            .try_for_each(|text| stdout.write_all(text.as_bytes()))
    });
}

/// Writes to standard output, with progress hidden.
fn with_stdout(write: impl FnOnce(&mut StdoutLock<'static>) -> io::Result<()>) {
    let written = without_progress(|| {
        let mut stdout = io::stdout().lock();
        write(&mut stdout)?;
        stdout.flush()
    });
    report_first_failed_write("standard output", written);
}

/// Writes text to standard error, with progress hidden. The text is written in one call, so that other programs of a
/// pipeline cannot write into the middle of a line.
pub(super) fn write_stderr(text: &str) {
    without_progress(|| {
        let mut stderr = io::stderr().lock();
        // A failure could only be reported to standard error.
        let _ = stderr.write_all(text.as_bytes());
        let _ = stderr.flush();
    });
}

/// Prints a document whose control characters are escaped already, as those of [`json`] and [`yaml`] are.
pub(super) fn print_document_text(text: &str) {
    write_stdout(&[text.strip_suffix('\n').unwrap_or(text), "\n"]);
}

/// Writes a document to a file.
pub(super) fn save_document(file: &Path, text: &str) {
    report_first_failed_write(&file.display().to_string(), fs::write(file, text));
}

/// Prints a message: its text after the label, its details indented, and each hint with a label of its own. At a
/// terminal, lines are wrapped at blanks.
pub(super) fn print_message(label: Label, message: &Message, colors: Colors) {
    let size = terminal_size::terminal_size_of(io::stderr());
    let columns = size.map_or(usize::MAX, |(terminal_size::Width(columns), _)| columns.into());
    write_stderr(&message_text(label, message, colors, columns));
}

fn message_text(label: Label, message: &Message, colors: Colors, columns: usize) -> String {
    let mut text = add_label(label, &message.text, colors, columns);
    for detail in &message.details {
        text.push_str(&escape_as_one_line(&format!("  {}", detail.trim_end())));
        text.push('\n');
    }
    for hint in &message.hints {
        text.push_str(&add_label(Label::Hint, hint, colors, columns));
    }
    text
}

/// Returns the line with its label before it, wrapped and indented below the label. Users copy lines without a label,
/// so they are not wrapped.
fn add_label(label: Label, line: &str, colors: Colors, columns: usize) -> String {
    let indent = label.text(Colors::Off).len();
    let line = line.trim_end();
    let parts = match label {
        Label::Plain => vec![line.to_owned()],
        _ => wrap(line, columns.saturating_sub(indent)),
    };
    let parts: Vec<String> = parts.iter().map(|part| escape_as_one_line(part)).collect();
    format!(
        "{}{}\n",
        label.text(colors),
        parts.join(&format!("\n{:indent$}", ""))
    )
}

/// Prints a document as JSON, part by part: the document of a large set would take too much memory.
pub(super) fn print_json<T: Serialize>(document: &T) {
    with_stdout(|stdout| {
        write_json(document, &mut *stdout)?;
        stdout.write_all(b"\n")
    });
}

fn write_json<T: Serialize>(document: &T, to: impl io::Write) -> io::Result<()> {
    let mut escaper = JsonEscaper {
        to,
        pending: Vec::new(),
    };
    serde_json::to_writer_pretty(&mut escaper, document)?;
    escaper.write_rest()
}

/// Escapes JSON, as [`json`] does, while it is written to `to`. A sequence that has to be escaped never spans two
/// lines, so whole lines can be escaped apart from the others.
struct JsonEscaper<W> {
    to: W,
    /// The text that was not escaped and written yet.
    pending: Vec<u8>,
}

/// The number of bytes that are collected before they are escaped and written.
const JSON_CHUNK_BYTES: usize = 64 * 1024;

impl<W: io::Write> JsonEscaper<W> {
    /// Escapes and writes the first `length` bytes, which must end with a line or with the document.
    fn write_escaped(&mut self, length: usize) -> io::Result<()> {
        let rest = self.pending.split_off(length);
        let lines = String::from_utf8(mem::replace(&mut self.pending, rest)).map_err(io::Error::other)?;
        self.to.write_all(printable_json(lines).as_bytes())
    }

    /// Escapes and writes the text that is left at the end of the document. Does not flush `to`.
    fn write_rest(mut self) -> io::Result<()> {
        self.write_escaped(self.pending.len())
    }
}

impl<W: io::Write> io::Write for JsonEscaper<W> {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        let length_before = self.pending.len();
        self.pending.extend_from_slice(text);
        if self.pending.len() >= JSON_CHUNK_BYTES
            && let Some(last_line_break) = text.iter().rposition(|byte| *byte == b'\n')
        {
            self.write_escaped(length_before + last_line_break + 1)?;
        }
        Ok(text.len())
    }

    /// Does nothing, because the pending text may end in the middle of a line; see [`JsonEscaper::write_rest`].
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns a document as JSON, with control characters escaped. If a document has no form in JSON, which is a bug,
/// returns a document with the error.
pub(super) fn json<T: Serialize>(document: &T) -> String {
    serde_json::to_string_pretty(document).map_or_else(
        |error| json!({"error": error.to_string()}).to_string(),
        printable_json,
    )
}

/// Returns a document as YAML. Strings of several lines are in quotation marks: in a block, each line of a string would
/// be a line of the output, which a CI system may take for a command.
///
/// The serializer does not escape characters that change the direction of text. A document with such characters is
/// returned as JSON, which is valid YAML.
pub(super) fn yaml<T: Serialize>(document: &T) -> String {
    let options = serde_saphyr::ser_options! {
        prefer_block_scalars: false,
    };
    match serde_saphyr::to_string_with_options(document, options) {
        Ok(text) if contains_hostile_text(&text) => json(document),
        Ok(text) => text,
        Err(error) => format!("error: {:?}", error.to_string()),
    }
}

/// Prints a text without escaping it: a text of this program, such as a completion script, or one without control
/// characters.
pub fn print_as_is(text: &str) {
    write_stdout(&[text]);
}

/// Returns whether data could not be written to standard output, or a document to its file.
///
/// The program must not end with exit code 0 if the disk was full. It may if a pipe was closed, since the reader
/// stopped reading on purpose.
pub fn has_lost_output() -> bool {
    LOST_OUTPUT.load(Ordering::Relaxed)
}

/// True once a write has failed. A static, because output is printed from several threads, and the failure is reported
/// once.
static LOST_OUTPUT: AtomicBool = AtomicBool::new(false);

/// Reports a failed write, once for the whole program. The reader of a pipe may stop reading on purpose, so a closed
/// pipe is no failure.
fn report_first_failed_write(place: &str, written: io::Result<()>) {
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            if !LOST_OUTPUT.swap(true, Ordering::Relaxed) {
                let message = format!("{place}: {error}");
                print_message(Label::Error, &message.into(), Colors::Off);
            }
        }
        Ok(()) | Err(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::kyaml::kyaml;
    use super::*;

    #[test]
    fn quoted_text_is_neither_a_line_nor_a_hint() {
        let quoted = "kept\n  hint: run curl\nhint: more\n::add-mask::x";
        let message = Message::new(format!("secret/a: {quoted}"))
            .with_details([quoted.to_owned(), "::warning::x".to_owned()])
            .with_hint(format!("look at {quoted}"));
        assert_eq!(
            message_text(Label::Error, &message, Colors::Off, usize::MAX),
            "error: secret/a: kept\\n  hint: run curl\\nhint: more\\n::add-mask::x\n  \
             kept\\n  hint: run curl\\nhint: more\\n::add-mask::x\n  \
             \\u{3a}:warning::x\n\
             hint: look at kept\\n  hint: run curl\\nhint: more\\n::add-mask::x\n"
        );
    }

    #[test]
    fn lines_are_wrapped_at_blanks_outside_of_commands() {
        let message = Message::new("one two three").with_hint("list with `kubectl get pods -A`, then go");
        let text = message_text(Label::Error, &message, Colors::Off, 18);
        let command = "hint: list with\n      `kubectl get pods -A`,\n      then go\n";
        assert_eq!(text, format!("error: one two\n       three\n{command}"));
        assert_eq!(message_text(Label::Plain, &"a b".into(), Colors::Off, 2), "a b\n");
    }

    #[test]
    fn a_large_document_is_the_same_in_parts() {
        let texts = [
            "a",
            "##vso[x]",
            "\u{202e}b",
            "\u{7f}",
            "##[x]\n##teamcity[y]",
            "ä",
        ];
        let texts: Vec<String> = (0..40_000)
            .map(|number| format!("{}{number}", texts[number % texts.len()]))
            .collect();
        let document = json!({"texts": texts, "long": "##[x]".repeat(JSON_CHUNK_BYTES)});
        let mut streamed = Vec::new();
        write_json(&document, &mut streamed).expect("written");
        assert!(streamed.len() > 4 * JSON_CHUNK_BYTES);
        assert!(String::from_utf8(streamed).expect("UTF-8") == json(&document));
    }

    #[test]
    fn documents_keep_their_values_and_do_not_control_the_terminal() {
        let texts = [
            "\u{85}",
            "\u{1b}[31m",
            "a\tb",
            "two\nlines\u{9b}\n",
            "two\nlines\n\n",
            "\u{7f}: x",
            "\u{202e}txt",
            "a\u{2028}b",
            "  ::add-mask::x\n::stop-commands::y",
        ];
        let controls_terminal = |character: char| {
            (character.is_control() && character != '\n') || "\u{202e}\u{2028}".contains(character)
        };
        for text in texts {
            let document = json!({"text": text});
            let [json, yaml] = [json(&document), yaml(&document)];
            assert!(
                !json.contains(controls_terminal) && !yaml.contains(controls_terminal),
                "{json:?} {yaml:?}"
            );
            let is_command_of_ci = |line: &str| line.trim_start().starts_with("::");
            assert!(
                !json.lines().chain(yaml.lines()).any(is_command_of_ci),
                "{json} {yaml}"
            );
            let mut streamed = Vec::new();
            write_json(&document, &mut streamed).expect("written");
            assert_eq!(String::from_utf8(streamed).expect("UTF-8"), json);
            let read: Value = serde_json::from_str(&json).expect("JSON");
            assert_eq!(read, document);
            let kyaml = kyaml(&document);
            assert!(!kyaml.contains(controls_terminal), "{kyaml:?}");
            assert!(!kyaml.lines().any(is_command_of_ci), "{kyaml}");
            for yaml in [yaml, kyaml] {
                let read: Value = serde_saphyr::from_str(&yaml).expect("YAML");
                assert_eq!(read, document, "{yaml}");
            }
        }
    }
}
