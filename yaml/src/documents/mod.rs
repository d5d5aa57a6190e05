//! The documents of a text, divided as kubectl divides it.
//!
//! The rules are those of `decoder.go` in `k8s.io/apimachinery/pkg/util/yaml`: a text that
//! begins with `{` is a stream of JSON values, and falls back to YAML if it is not; YAML is cut
//! at each line that begins with `---`, before it is parsed.

use std::vec;

use crate::compose;
use crate::json::{JsonValues, Stop};
use crate::{Budget, Error, Errors, Node, Position, Problem};

/// The least bytes of YAML that make a part.
const PART: usize = 64 << 10;

/// What the actions of Go's templates begin with, as Helm has them, and those of Jinja.
const TEMPLATE: &str = "{{";

/// Reads the documents of a text, one after another: each one, or what is wrong with it. Empty
/// documents, and those that hold only comments or null, are left out.
///
/// ```
/// let text = "kind: Pod\n---\nkind: Pod\nkind: Job\n---\n# nothing\n";
/// let documents: Vec<_> = kubernetes_yaml::documents(text).collect();
/// assert_eq!(documents.len(), 2);
/// assert_eq!(documents[0].as_ref().map(|pod| pod.position().line()), Ok(1));
/// let errors = documents[1].as_ref().expect_err("a duplicate key");
/// assert_eq!(errors.to_string(), "4:1: key \"kind\" was already set in line 3");
/// ```
pub fn documents(text: &str) -> Documents<'_> {
    let budget = Budget::default();
    if text.trim_start().starts_with('{') {
        Documents::of_json(text, budget)
    } else {
        Documents::of_yaml(split(text, Position::START), budget)
    }
}

/// Divides a text into parts that can be read in any order, and in parallel. A part holds whole
/// documents, of YAML 64 KiB or more. A stream of JSON values is one part: only reading divides
/// it. All of them, and what else is read with this budget, share the limits on aliases and
/// on values.
///
/// ```
/// let text = "kind: Pod\n---\nkind: Job\n".repeat(10_000);
/// let documents = std::thread::scope(|scope| {
///     let parts = kubernetes_yaml::parts(&text, &Default::default()).into_iter();
///     let count = |part: kubernetes_yaml::Part<'_>| part.into_iter().count();
///     let threads: Vec<_> = parts.map(|part| scope.spawn(move || count(part))).collect();
///     threads.into_iter().map(|thread| thread.join().expect("a count")).sum::<usize>()
/// });
/// assert_eq!(documents, 10_001);
/// ```
pub fn parts<'text>(text: &'text str, budget: &Budget) -> Vec<Part<'text>> {
    if text.trim_start().starts_with('{') {
        return vec![Part(Documents::of_json(text, budget.clone()))];
    }
    let mut parts = Vec::new();
    let mut run = Vec::new();
    let mut size = 0;
    for document in split(text, Position::START) {
        size += document.text.len();
        run.push(document);
        if size >= PART {
            let run = std::mem::take(&mut run);
            parts.push(Part(Documents::of_yaml(run, budget.clone())));
            size = 0;
        }
    }
    if !run.is_empty() {
        parts.push(Part(Documents::of_yaml(run, budget.clone())));
    }
    parts
}

/// Documents that follow each other in a text, and need no others to be read.
pub struct Part<'text>(Documents<'text>);

impl<'text> IntoIterator for Part<'text> {
    type Item = Result<Node, Errors>;
    type IntoIter = Documents<'text>;

    fn into_iter(self) -> Documents<'text> {
        self.0
    }
}

/// The documents of a text, read one by one. Made by [`documents`] and [`Part`].
pub struct Documents<'text> {
    format: Format<'text>,
    budget: Budget,
}

enum Format<'text> {
    Json(JsonValues<'text>),
    Yaml {
        documents: vec::IntoIter<YamlDocument<'text>>,
        /// Why the text before the first document is not JSON, if it looks as if it were.
        json_error: Option<Error>,
    },
}

impl<'text> Format<'text> {
    fn of_yaml(documents: Vec<YamlDocument<'text>>, json_error: Option<Error>) -> Self {
        let documents = documents.into_iter();
        Self::Yaml {
            documents,
            json_error,
        }
    }
}

impl<'text> Documents<'text> {
    fn of_json(text: &'text str, budget: Budget) -> Self {
        let format = Format::Json(JsonValues::new(text));
        Self { format, budget }
    }

    fn of_yaml(documents: Vec<YamlDocument<'text>>, budget: Budget) -> Self {
        let format = Format::of_yaml(documents, None);
        Self { format, budget }
    }

    /// Returns the next document, null or not.
    fn read(&mut self) -> Option<Result<Node, Errors>> {
        loop {
            match &mut self.format {
                Format::Json(values) => match values.next()? {
                    Ok(node) if self.budget.spend_values(node.values()) => return Some(Ok(node)),
                    Ok(node) => {
                        let error = Error::new(node.position(), Problem::TooManyValuesInAll);
                        return Some(Err(Errors::new(error)));
                    }
                    Err(Stop::Invalid(error)) => {
                        self.format = Format::of_yaml(Vec::new(), None);
                        return Some(Err(Errors::new(error)));
                    }
                    Err(Stop::Other { rest, start, error }) => {
                        let error = looks_like_json(rest).then_some(error);
                        self.format = Format::of_yaml(split(rest, start), error);
                    }
                },
                Format::Yaml {
                    documents,
                    json_error,
                } => {
                    let Some(document) = documents.next()?.read(&self.budget) else {
                        continue;
                    };
                    return Some(match (document, json_error.take()) {
                        (Err(_), Some(error)) => Err(Errors::new(error)),
                        (document, _) => document,
                    });
                }
            }
        }
    }
}

impl Iterator for Documents<'_> {
    type Item = Result<Node, Errors>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if self.budget.is_spent() {
                return None;
            }
            match self.read()? {
                Ok(node) if node.is_null() => {}
                document => return Some(document),
            }
        }
    }
}

/// Returns whether a text that is neither JSON nor YAML was meant to be JSON.
fn looks_like_json(text: &str) -> bool {
    let text = text.trim_start();
    let inner = text.strip_prefix('{').filter(|_| !text.starts_with(TEMPLATE));
    inner.is_some_and(|inner| inner.trim_start().starts_with('"'))
}

/// Cuts a text that begins at this position at its separators.
fn split(text: &str, start: Position) -> Vec<YamlDocument<'_>> {
    let mut documents = Vec::new();
    let (mut begin, mut end) = (0, 0);
    let mut origin = start;
    let mut separator = None;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        end += line.len();
        let Some(trailer) = line.strip_prefix("---") else {
            continue;
        };
        let number = start.line() + index;
        let before = end - line.len();
        // A separator belongs to the document below it only if nothing precedes it.
        let place = if before > begin {
            Place::Between
        } else {
            Place::First
        };
        if place == Place::Between {
            let document = YamlDocument {
                text: &text[begin..before],
                origin,
                separator: separator.take(),
            };
            documents.extend(Some(document).filter(YamlDocument::may_hold_something));
            begin = end;
            origin = Position::new(number + 1, 1);
        }
        if !is_separator(trailer, place) {
            separator = Some((Position::new(number, 1), line.trim_end()));
        }
    }
    documents.push(YamlDocument {
        text: &text[begin..end],
        origin,
        separator,
    });
    documents
}

/// The place of a line that begins with `---`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Below a document: kubectl cuts the text here, and removes the line.
    Between,
    /// The first line of a document, which is read with it.
    First,
}

/// Returns whether a line that has this behind its `---` is a separator: nothing or a comment, as for kubectl. In YAML
/// 1.2 (rule `c-forbidden`), `---#` without a blank begins a string, and it remains one if kubectl keeps the line.
fn is_separator(trailer: &str, place: Place) -> bool {
    let content = trailer.trim();
    let is_comment = content.starts_with('#') && (place == Place::Between || !trailer.starts_with('#'));
    content.is_empty() || is_comment
}

/// One document of YAML that is still to be read.
struct YamlDocument<'text> {
    text: &'text str,
    /// The position where the text begins.
    origin: Position,
    /// The line above it, if it begins as a separator and is not one.
    separator: Option<(Position, &'text str)>,
}

impl YamlDocument<'_> {
    /// Returns whether it has to be read: a text of many megabytes may have nothing but separators and comments.
    fn may_hold_something(&self) -> bool {
        let is_content = |line: &str| {
            let line = line.strip_prefix("---").unwrap_or(line).trim();
            !line.is_empty() && !line.starts_with('#')
        };
        self.separator.is_some() || self.text.lines().any(is_content)
    }

    /// Reads the document; `None` if it holds nothing but comments.
    fn read(&self, budget: &Budget) -> Option<Result<Node, Errors>> {
        if let Some((position, text)) = self.separator {
            let problem = Problem::Separator(text.to_owned());
            return Some(Err(Errors::new(Error::new(position, problem))));
        }
        // kubectl ends the last line, which matters to a block scalar in it.
        let document = if self.text.ends_with('\n') {
            compose::read(self.text, self.origin, budget)
        } else {
            compose::read(&format!("{}\n", self.text), self.origin, budget)
        };
        let document = document.map_err(|errors| errors.map(|error| self.named(error)));
        document.transpose()
    }

    /// Reports a template as such: a parser's message about its braces misleads.
    fn named(&self, mut error: Error) -> Error {
        let is_of_syntax = matches!(
            error.problem,
            Problem::Syntax { .. } | Problem::Key(_) | Problem::FlowPlain | Problem::FlowColon(_)
        );
        // The parser may notice an error in the line behind.
        let last = error.position.line().saturating_sub(self.origin.line());
        let mut lines = self.text.lines().take(last + 1).skip(last.saturating_sub(1));
        if is_of_syntax && lines.any(|text| text.contains(TEMPLATE)) {
            error.problem = Problem::Template;
        }
        error
    }
}

#[cfg(test)]
mod tests;
