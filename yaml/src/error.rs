//! What can be wrong with a text, where, and how to put it right.
//!
//! Keys and tags are shown quoted and escaped, so that a message cannot carry control
//! characters to a terminal. Values are not shown: they may be secret.

use std::fmt;

use crate::Position;
use crate::limits::{MAX_ALIAS_BYTES, MAX_ALL_VALUES, MAX_DEPTH, MAX_VALUES};

/// Everything that is wrong with one document, in reading order; never empty.
///
/// Displays one error per line. A document reports about a hundred errors at most.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Errors(Vec<Error>);

impl Errors {
    pub(crate) fn new(first: Error) -> Self {
        Self(vec![first])
    }

    /// The errors, if there are any.
    pub(crate) fn of(errors: Vec<Error>) -> Result<(), Self> {
        if errors.is_empty() {
            Ok(())
        } else {
            Err(Self(errors))
        }
    }

    pub(crate) fn map(self, change: impl FnMut(Error) -> Error) -> Self {
        Self(self.0.into_iter().map(change).collect())
    }

    /// Returns the errors in reading order.
    pub fn iter(&self) -> std::slice::Iter<'_, Error> {
        self.0.iter()
    }
}

impl IntoIterator for Errors {
    type Item = Error;
    type IntoIter = std::vec::IntoIter<Error>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'errors> IntoIterator for &'errors Errors {
    type Item = &'errors Error;
    type IntoIter = std::slice::Iter<'errors, Error>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Errors {}

/// A problem and its position. Displays as `12:3: a tab cannot indent a line`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{position}: {problem}")]
#[non_exhaustive]
pub struct Error {
    /// The place in the text.
    pub position: Position,
    /// What is wrong there.
    pub problem: Problem,
}

impl Error {
    pub(crate) fn new(position: Position, problem: Problem) -> Self {
        Self { position, problem }
    }
}

/// What is wrong with a document: its sentence says what was found, [`Problem::hint`] what to
/// change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// A character that YAML does not allow.
    #[error("character U+{:04X} is not allowed in a manifest", *.0 as u32)]
    ForbiddenCharacter(char),
    /// YAML or JSON that cannot be parsed.
    #[error("{format} syntax error: {message}")]
    Syntax {
        /// `YAML` or `JSON`.
        format: &'static str,
        /// The parser's message.
        message: String,
    },
    /// `---` with text behind it.
    #[error("{0:?} is not a document separator")]
    Separator(String),
    /// Text behind `...` or behind the first value: kubectl does not read it.
    #[error("kubectl ignores everything from here to the next \"---\"")]
    Ignored,
    /// The same key twice in one mapping.
    #[error("key {key:?} was already set in line {first}")]
    DuplicateKey {
        /// The key.
        key: String,
        /// The line where it was set first.
        first: usize,
    },
    /// A line that is indented with a tab.
    #[error("a tab cannot indent a line")]
    Tab,
    /// A question mark or a leading colon in a plain scalar within `[…]` or `{…}`.
    #[error("kubectl does not read this as a string within brackets")]
    FlowPlain,
    /// `{key:, …}`.
    #[error("kubectl reads the colon after {0:?} as part of the key")]
    FlowColon(String),
    /// A list, a mapping, null or a large integer as key.
    #[error("{0} cannot be a key")]
    Key(&'static str),
    /// `{{ .Values.replicas }}`, as a chart has it.
    #[error("this looks like an unrendered template")]
    Template,
    /// `<<` with a value that is not a mapping.
    #[error("\"<<\" can only merge a mapping or a list of mappings")]
    Merge,
    /// `*name` inside `&name`.
    #[error("alias inside its own anchor")]
    RecursiveAlias,
    /// Aliases that multiply.
    #[error("the aliases of all documents together expand to more than {} MiB", MAX_ALIAS_BYTES >> 20)]
    TooManyAliases,
    /// Mappings and lists nested too deeply.
    #[error("nested more than {MAX_DEPTH} levels deep")]
    TooDeep,
    /// A document with more values than any object has.
    #[error("more than {MAX_VALUES} values in one document")]
    TooManyValues,
    /// Documents that have too many values together.
    #[error("more than {MAX_ALL_VALUES} values in all documents together")]
    TooManyValuesInAll,
    /// A tag that its value does not fit.
    #[error("this cannot be read as {tag}")]
    TagMismatch {
        /// The tag, in short form.
        tag: String,
    },
    /// A JSON number beyond the range of a double.
    #[error("a number is too large")]
    NumberTooLarge,
    /// Infinity or not-a-number.
    #[error("{0:?} is not a number that JSON can hold")]
    NotANumber(String),
}

impl Problem {
    /// Returns what to change: an imperative sentence without a full stop.
    pub fn hint(&self) -> String {
        let hint = match self {
            Self::ForbiddenCharacter(character) => {
                return format!(
                    "remove it, or write it as \"\\u{:04x}\" in a double-quoted string",
                    *character as u32
                );
            }
            Self::Syntax { .. } => "fix the text at this line or just above it",
            Self::Separator(_) => "put \"---\" on a line of its own",
            Self::Ignored => "separate documents with \"---\"",
            Self::DuplicateKey { key, .. } if matches!(&**key, "true" | "false") => {
                "keep one of the two, or quote them: y, yes and on are read as true, n, no and off as false"
            }
            Self::DuplicateKey { .. } => "keep one of the two",
            Self::Tab => "indent with spaces",
            Self::FlowPlain => "quote it",
            Self::FlowColon(_) => "put a space after the colon, or quote the key",
            Self::Key(_) => "quote it: keys are strings",
            Self::Template => "render it first: `helm template CHART`; quote literal {{",
            Self::Merge => "write <<: *anchor with the anchor of a mapping",
            Self::RecursiveAlias => "write out the value",
            Self::TooManyAliases => "write values out instead of aliases, or split the set",
            Self::TooDeep | Self::TooManyValues => "reduce the nesting, or split it into several documents",
            Self::TooManyValuesInAll => "split the set",
            Self::TagMismatch { .. } => "correct the value, or drop the tag",
            Self::NotANumber(_) | Self::NumberTooLarge => "quote it to make it a string",
        };
        hint.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use crate::documents;

    #[test]
    fn keys_that_are_read_as_booleans_are_explained() {
        let hints = |text: &str| -> Vec<String> {
            let errors = documents(text).filter_map(Result::err);
            errors
                .flat_map(|errors| errors.0)
                .map(|error| error.problem.hint())
                .collect()
        };
        assert_eq!(hints("a: 1\na: 2\n"), ["keep one of the two"]);
        assert!(hints("y: 1\non: 2\n")[0].contains("quote them"));
    }
}
