//! The two streams, and the forms of what is written to them. Nothing else prints.

use std::io::{self, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
use serde_json::json;

use super::{Colors, human};
use crate::wording::{printable, printable_json};

/// Prints a line of data.
pub(super) fn print(line: &str) {
    let mut stdout = io::stdout().lock();
    let written = writeln!(stdout, "{}", printable(line.trim_end()));
    heed(written.and_then(|()| stdout.flush()));
}

/// Prints a document.
///
/// The serialisers escape what a terminal would act upon in the way of their own format.
pub(super) fn print_document(text: &str) {
    let mut stdout = io::stdout().lock();
    let written = writeln!(stdout, "{}", text.strip_suffix('\n').unwrap_or(text));
    heed(written.and_then(|()| stdout.flush()));
}

/// Prints a message for people.
///
/// Each line gets the label, but for lines that are indented: they go with the one above,
/// or give a hint.
pub(super) fn print_message(label: human::Label, message: &str, colors: Colors) {
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

/// The JSON of a document.
pub(super) fn json<T: Serialize>(document: &T) -> String {
    serde_json::to_string_pretty(document).map_or_else(
        |error| json!({"error": error.to_string()}).to_string(),
        |text| printable_json(&text),
    )
}

/// The YAML of a document.
pub(super) fn yaml<T: Serialize>(document: &T) -> String {
    serde_saphyr::to_string(document).unwrap_or_else(|error| format!("error: {:?}", error.to_string()))
}

/// Prints a text, such as a completion script, as it is.
pub fn write(text: &str) {
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

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

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
