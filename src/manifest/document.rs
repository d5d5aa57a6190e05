//! The text of one source to its documents, divided as kubectl divides it.
//!
//! The rules are those of `decoder.go` in `k8s.io/apimachinery/pkg/util/yaml`: a text that
//! begins with `{` is a stream of JSON values, and falls back to YAML where it is none;
//! YAML is cut at each line that begins with `---`, before it is parsed.

use std::ops::ControlFlow;

use serde_json::Deserializer;
use serde_json::error::Category;

use super::error::Problem;
use super::node::{MAX_VALUES, Node};
use super::yaml::{self, Fault};

/// A run of documents of about this many bytes is worth a turn of its own.
const PART: usize = 64 << 10;

/// Documents that follow each other in a text, and need no others to be read.
pub(super) enum Part<'text> {
    /// A stream of JSON values, which only reading divides.
    Json(&'text str),
    Yaml(Vec<YamlDocument<'text>>),
}

/// Divides a text into parts, which may be read in any order.
pub(super) fn divide(text: &str) -> Vec<Part<'_>> {
    if text.trim_start().starts_with('{') {
        return vec![Part::Json(text)];
    }
    let mut parts = Vec::new();
    let mut run = Vec::new();
    let mut size = 0;
    for document in yaml_documents(text, 1) {
        size += document.text.len();
        run.push(document);
        if size >= PART {
            parts.push(Part::Yaml(std::mem::take(&mut run)));
            size = 0;
        }
    }
    if !run.is_empty() {
        parts.push(Part::Yaml(run));
    }
    parts
}

impl Part<'_> {
    /// Reads every document and hands each one, or what is wrong with it, to `found`.
    /// Documents that are empty, hold only comments or are null are passed over. Ends at the
    /// first one where `found` breaks off.
    pub(super) fn read(&self, found: &mut impl FnMut(Document) -> ControlFlow<()>) -> ControlFlow<()> {
        let mut keep = |document: Document| match document {
            Ok(node) if node.is_null() => ControlFlow::Continue(()),
            document => found(document),
        };
        match self {
            Self::Json(text) => read_json(text, &mut keep),
            Self::Yaml(documents) => documents.iter().try_for_each(|document| document.read(&mut keep)),
        }
    }
}

/// One document, or what is wrong with it.
pub(super) type Document = Result<Node, Vec<Fault>>;

/// What the actions of Go's templates begin with, as Helm has them, and those of Jinja.
const TEMPLATE: &str = "{{";

fn read_json(text: &str, found: &mut impl FnMut(Document) -> ControlFlow<()>) -> ControlFlow<()> {
    if let Some(line) = line_with_too_many_values(text) {
        return found(Err(vec![(line, Problem::TooManyValues)]));
    }
    let mut stream = Deserializer::from_str(text).into_iter::<Node>();
    let mut count = 0;
    let error = loop {
        let start = stream.byte_offset();
        match stream.next() {
            None => return ControlFlow::Continue(()),
            Some(Ok(node)) => {
                found(Ok(node.at_line(line_of_content(text, start))))?;
                count += 1;
            }
            Some(Err(error)) => break error,
        }
    };
    let rest = &text[stream.byte_offset()..];
    let fault = json_fault(&error);
    // After two values kubectl knows the stream to be JSON. A number out of range is JSON,
    // too, and would be a string in YAML.
    let is_json =
        count > 1 || error.classify() == Category::Data || matches!(fault.1, Problem::NumberTooLarge);
    if is_json {
        return found(Err(vec![fault]));
    }
    // The line break behind a JSON value belongs to it.
    let blank = rest.len() - rest.trim_start().len();
    let skipped = rest[..blank].find('\n').map_or(blank, |newline| newline + 1);
    let rest = &rest[skipped..];
    let first_line = line_at(text, text.len() - rest.len());
    let mut json_fault = (looks_like_json(rest) && !rest.trim_start().starts_with(TEMPLATE)).then_some(fault);
    yaml_documents(rest, first_line).iter().try_for_each(|document| {
        document.read(&mut |document| {
            let fault = json_fault.take();
            match (document, fault) {
                (Err(_), Some(fault)) => found(Err(vec![fault])),
                (document, _) => found(document),
            }
        })
    })
}

/// The line at which one of these JSON values has come to hold too many others. Commas and opening
/// brackets are counted, outside of strings: no value is without the one or the other before it.
fn line_with_too_many_values(text: &str) -> Option<usize> {
    // Two bytes are the least that a value takes.
    if text.len() < 2 * MAX_VALUES {
        return None;
    }
    let (mut line, mut depth, mut values) = (1, 0_usize, 0);
    let (mut is_string, mut is_escaped) = (false, false);
    for byte in text.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_string => is_escaped = true,
            b'"' => is_string = !is_string,
            b'\n' => line += 1,
            _ if is_string => {}
            b',' | b'[' | b'{' => {
                values = if depth == 0 { 1 } else { values + 1 };
                depth += usize::from(byte != b',');
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if values > MAX_VALUES {
            return Some(line);
        }
    }
    None
}

/// Whether a text that is neither JSON nor YAML was meant to be JSON.
fn looks_like_json(text: &str) -> bool {
    text.trim_start()
        .strip_prefix('{')
        .is_some_and(|inner| inner.trim_start().starts_with('"'))
}

fn json_fault(error: &serde_json::Error) -> Fault {
    let message = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    let message = message.strip_suffix(&position).unwrap_or(&message);
    let problem = match message {
        "number out of range" => Problem::NumberTooLarge,
        "recursion limit exceeded" => Problem::TooDeep,
        _ => Problem::Syntax {
            format: "JSON",
            message: message.to_owned(),
        },
    };
    (error.line(), problem)
}

/// Cuts a text whose first line has this number at its separators.
fn yaml_documents(text: &str, first_line: usize) -> Vec<YamlDocument<'_>> {
    let mut documents = Vec::new();
    let (mut start, mut end) = (0, 0);
    let mut line_of_start = first_line;
    let mut separator = None;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        end += line.len();
        let Some(trailer) = line.strip_prefix("---") else {
            continue;
        };
        let number = first_line + index;
        let before = end - line.len();
        // A separator belongs to the document below it only where nothing precedes it.
        if before > start {
            documents.push(YamlDocument {
                text: &text[start..before],
                first_line: line_of_start,
                separator: separator.take(),
            });
            start = end;
            line_of_start = number + 1;
        } else {
            line_of_start = number;
        }
        let trailer = trailer.trim();
        if !trailer.is_empty() && !trailer.starts_with('#') {
            separator = Some((number, line.trim_end()));
        }
    }
    documents.push(YamlDocument {
        text: &text[start..end],
        first_line: line_of_start,
        separator,
    });
    documents
}

/// One document of YAML that is still to be read.
pub(super) struct YamlDocument<'text> {
    text: &'text str,
    first_line: usize,
    /// The line above it, where that is no separator although it begins as one.
    separator: Option<(usize, &'text str)>,
}

impl YamlDocument<'_> {
    fn read(&self, found: &mut impl FnMut(Document) -> ControlFlow<()>) -> ControlFlow<()> {
        if let Some((line, text)) = self.separator {
            return found(Err(vec![(line, Problem::Separator(text.to_owned()))]));
        }
        // kubectl ends the last line, which matters to a block scalar in it.
        let document = if self.text.ends_with('\n') {
            yaml::read(self.text, self.first_line)
        } else {
            yaml::read(&format!("{}\n", self.text), self.first_line)
        };
        match document {
            Ok(None) => ControlFlow::Continue(()),
            Ok(Some(node)) => found(Ok(node)),
            Err(faults) => found(Err(faults.into_iter().map(|fault| self.named(fault)).collect())),
        }
    }

    /// Calls a template by its name: what YAML makes of its braces misleads.
    fn named(&self, (line, problem): Fault) -> Fault {
        let is_of_syntax = matches!(
            problem,
            Problem::Syntax { .. } | Problem::Key(_) | Problem::FlowPlain | Problem::FlowColon(_)
        );
        // A fault may be noticed in the line behind.
        let last = line.saturating_sub(self.first_line);
        let mut lines = self.text.lines().take(last + 1).skip(last.saturating_sub(1));
        if is_of_syntax && lines.any(|text| text.contains(TEMPLATE)) {
            (line, Problem::Template)
        } else {
            (line, problem)
        }
    }
}

fn line_at(text: &str, offset: usize) -> usize {
    1 + text[..offset].matches('\n').count()
}

fn line_of_content(text: &str, offset: usize) -> usize {
    let blank = text[offset..].len() - text[offset..].trim_start().len();
    line_at(text, offset + blank)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a text holds: the value of `a` of each document, or its first fault.
    fn documents(text: &str) -> Vec<String> {
        let mut seen = Vec::new();
        for part in divide(text) {
            let read = part.read(&mut |document| {
                seen.push(match document {
                    Ok(node) => {
                        let value = serde_json::to_value(&node).expect("a value");
                        format!("{}: {}", node.line, value["a"])
                    }
                    Err(faults) => format!("{}! {}", faults[0].0, faults[0].1),
                });
                ControlFlow::Continue(())
            });
            assert_eq!(read, ControlFlow::Continue(()));
        }
        seen
    }

    #[test]
    fn texts_are_divided_as_kubectl_divides_them() {
        let table: [(&str, &[&str]); 18] = [
            ("", &[]),
            ("# c\n---\n---\n \n--- # c\nnull\n---", &[]),
            ("a: 1", &["1: 1"]),
            ("---\na: 1\n---\na: 2\n", &["2: 1", "4: 2"]),
            ("---\r\na: 1\r\n---\r\n\r\na: 2\r\n", &["2: 1", "5: 2"]),
            ("a: |\n  x", &["1: \"x\\n\""]),
            ("a: 1\n---  \t# c\n# d\na: 2\n...\n", &["1: 1", "4: 2"]),
            (
                "a: 1\n---b\na: 2\n---\na: 3\n",
                &["1: 1", "2! \"---b\" is not a document separator", "5: 3"],
            ),
            ("--- a\nb\n", &["1! \"--- a\" is not a document separator"]),
            (
                "a: 1\n...\na: 2\n---\na: 3\n",
                &[
                    "3! kubectl ignores everything from here to the next \"---\"",
                    "5: 3",
                ],
            ),
            (" \n{\"a\": 1}", &["2: 1"]),
            ("{\"a\": 1}{\"a\": 2}\n\n{\"a\": 3}", &["1: 1", "1: 2", "3: 3"]),
            (
                "{\"a\": 1}\n---\n{\"a\": 0x10}\n---\na: 3",
                &["1: 1", "3: 16", "5: 3"],
            ),
            ("{a: 1}\n---\n{\"a\": 2}\n", &["1: 1", "3: 2"]),
            (
                "{}{}\n---\n",
                &["1: null", "1: null", "2! JSON syntax error: invalid number"],
            ),
            ("{\"a\": 1,\n\"b\" 2}", &["2! JSON syntax error: expected `:`"]),
            (
                "{\"a\": 1,\n \"a\": 2}",
                &["2! JSON syntax error: key \"a\" is set twice"],
            ),
            ("{\"a\":\n1e999}", &["2! a number is too large"]),
        ];
        for (text, expected) in table {
            assert_eq!(documents(text), expected, "{text:?}");
        }
    }
}
