//! The text of one source to its documents, divided as kubectl divides it.
//!
//! The rules are those of `decoder.go` in `k8s.io/apimachinery/pkg/util/yaml`: a text that
//! begins with `{` is a stream of JSON values, and falls back to YAML where it is none;
//! YAML is cut at each line that begins with `---`, before it is parsed.

use serde_json::Deserializer;
use serde_json::error::Category;

use super::error::Problem;
use super::node::Node;
use super::yaml::{self, Fault};

/// Reads every document of a text and hands each one, or what is wrong with it, to `found`.
/// Documents that are empty, hold only comments or are null are passed over.
pub(super) fn read(text: &str, found: &mut impl FnMut(Result<Node, Vec<Fault>>)) {
    let mut keep = |document: Result<Node, Vec<Fault>>| match document {
        Ok(node) if node.is_null() => {}
        document => found(document),
    };
    if text.trim_start().starts_with('{') {
        read_json(text, &mut keep);
    } else {
        read_yaml(text, 1, &mut keep);
    }
}

fn read_json(text: &str, found: &mut impl FnMut(Result<Node, Vec<Fault>>)) {
    let mut stream = Deserializer::from_str(text).into_iter::<Node>();
    let mut count = 0;
    let error = loop {
        let start = stream.byte_offset();
        match stream.next() {
            None => return,
            Some(Ok(node)) => {
                found(Ok(node.at_line(line_of_content(text, start))));
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
        count > 1 || error.classify() == Category::Data || matches!(fault.1, Problem::NotANumber(_));
    if is_json {
        found(Err(vec![fault]));
        return;
    }
    // The line break behind a JSON value belongs to it.
    let blank = rest.len() - rest.trim_start().len();
    let skipped = rest[..blank].find('\n').map_or(blank, |newline| newline + 1);
    let rest = &rest[skipped..];
    let first_line = line_at(text, text.len() - rest.len());
    let mut json_fault = looks_like_json(rest).then_some(fault);
    read_yaml(rest, first_line, &mut |document| {
        let fault = json_fault.take();
        match (document, fault) {
            (Err(_), Some(fault)) => found(Err(vec![fault])),
            (document, _) => found(document),
        }
    });
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
        "number out of range" => Problem::NotANumber("a number of this document".to_owned()),
        "recursion limit exceeded" => Problem::TooDeep,
        _ => Problem::Syntax {
            format: "JSON",
            message: message.to_owned(),
        },
    };
    (error.line(), problem)
}

fn read_yaml(text: &str, first_line: usize, found: &mut impl FnMut(Result<Node, Vec<Fault>>)) {
    let mut reader = YamlStream {
        text,
        start: 0,
        end: 0,
        start_line: first_line,
        separator: Ok(()),
    };
    for (index, line) in text.split_inclusive('\n').enumerate() {
        if let Some(trailer) = line.strip_prefix("---") {
            let is_empty = reader.start == reader.end;
            if !is_empty {
                reader.flush(found);
            }
            let number = first_line + index;
            reader.begin(line, number, is_empty);
            let trailer = trailer.trim();
            if !trailer.is_empty() && !trailer.starts_with('#') {
                reader.separator = Err((number, Problem::Separator(line.trim_end().to_owned())));
            }
        } else {
            reader.end += line.len();
        }
    }
    reader.flush(found);
}

/// The document being gathered from the lines of a text.
struct YamlStream<'text> {
    text: &'text str,
    start: usize,
    end: usize,
    start_line: usize,
    /// Whether the separator above this document can be read at all.
    separator: Result<(), Fault>,
}

impl YamlStream<'_> {
    /// A separator belongs to the document below it only where nothing precedes it.
    fn begin(&mut self, separator: &str, number: usize, is_first: bool) {
        self.end += separator.len();
        if is_first {
            self.start_line = number;
        } else {
            self.start = self.end;
            self.start_line = number + 1;
        }
    }

    fn flush(&mut self, found: &mut impl FnMut(Result<Node, Vec<Fault>>)) {
        let text = &self.text[self.start..self.end];
        if let Err(fault) = std::mem::replace(&mut self.separator, Ok(())) {
            found(Err(vec![fault]));
            return;
        }
        // kubectl ends the last line, which matters to a block scalar in it.
        let document = if text.ends_with('\n') {
            yaml::read(text, self.start_line)
        } else {
            yaml::read(&format!("{text}\n"), self.start_line)
        };
        match document {
            Ok(None) => {}
            Ok(Some(node)) => found(Ok(node)),
            Err(faults) => found(Err(faults)),
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
