//! Messages for users: text, details below it, and hints.
//!
//! A message may quote text from a cluster, a file or a URL. Such text must not look like a line, a label or a hint of
//! this program. Therefore each line is a field or an entry of [`Message`], and a line break inside of one is escaped
//! when the message is printed.

use std::fmt;

use serde::{Serialize, Serializer};

use super::identity::{GroupKind, ObjectKey};
use super::pointer::Pointer;

/// A message of one line with details and hints below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The message itself, on one line.
    pub text: String,
    /// Details, a line each, printed indented below the text.
    pub details: Vec<String>,
    /// Hints, a line each, printed below the details.
    pub hints: Vec<String>,
    /// The text that this message has in common with messages about other objects, which form a group with it. After
    /// the first few messages of a group, the others are only counted. `None`: the message is always printed.
    pub group: Option<Box<str>>,
    /// The field conflicts that the message reports.
    pub conflicts: Box<[FieldConflict]>,
    /// The length of the prefix that `with_subject_prefix` has put before the text, in bytes.
    prefix_length: usize,
}

impl Message {
    /// Creates a message without details, hints and group.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            details: Vec::new(),
            hints: Vec::new(),
            group: None,
            conflicts: Box::default(),
            prefix_length: 0,
        }
    }

    /// Returns the message as one of a group; see [`Self::group`].
    #[must_use]
    pub fn in_group(mut self, group: impl Into<String>) -> Self {
        let group: String = group.into();
        self.group = Some(group.into_boxed_str());
        self
    }

    /// Returns the message with these words before its text. They become part of the name of its group: equal messages
    /// with other words before them are another group.
    #[must_use]
    pub fn with_words_before_text_and_group(mut self, words: &str) -> Self {
        self.text.insert_str(0, words);
        if let Some(group) = self.group.take() {
            return self.in_group(format!("{words}{group}"));
        }
        self
    }

    /// Returns the message without a group, so that it is always printed.
    #[must_use]
    pub fn without_group(mut self) -> Self {
        self.group = None;
        self
    }

    /// Returns the text and the details, a line each.
    pub fn without_hints(&self) -> String {
        let lines = std::iter::once(self.text.clone());
        let details = self.details.iter().map(|detail| format!("  {detail}"));
        lines.chain(details).collect::<Vec<_>>().join("\n")
    }

    /// Returns the name of the object that the message is about: the prefix of `with_subject_prefix` without its colon;
    /// empty if the message has no prefix.
    pub fn subject(&self) -> &str {
        self.text[..self.prefix_length].trim_end_matches(": ")
    }

    /// Returns the message with these details after its own.
    #[must_use]
    pub fn with_details(mut self, details: impl IntoIterator<Item = String>) -> Self {
        self.details.extend(details);
        self
    }

    /// Returns the message with one more hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Returns the message with this hint in place of its own hints.
    #[must_use]
    pub fn with_only_hint(mut self, hint: String) -> Self {
        self.hints = vec![hint];
        self
    }

    /// Returns the message with these field conflicts in place of its own.
    #[must_use]
    pub fn with_conflicts(mut self, conflicts: Vec<FieldConflict>) -> Self {
        self.conflicts = conflicts.into();
        self
    }

    /// Returns the message with this prefix before its text, such as the name of its object and a colon.
    #[must_use]
    pub fn with_subject_prefix(mut self, prefix: impl fmt::Display) -> Self {
        let prefix = prefix.to_string();
        self.text.insert_str(0, &prefix);
        self.prefix_length += prefix.len();
        self
    }
}

impl<T: Into<String>> From<T> for Message {
    fn from(text: T) -> Self {
        Self::new(text)
    }
}

impl<T: Into<String>> From<T> for Box<Message> {
    fn from(text: T) -> Self {
        Self::new(Message::new(text))
    }
}

impl fmt::Display for Message {
    /// Writes the text, the details and the hints, a line each, as in output documents.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.without_hints())?;
        for hint in &self.hints {
            write!(f, "\n  hint: {hint}")?;
        }
        Ok(())
    }
}

impl Serialize for Message {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A field of a manifest that another field manager owns, with another value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldConflict {
    pub object: ObjectKey,
    /// The file and the line of the field in the manifest; the line of the object if the field's line is not known.
    pub place: String,
    /// The field as the server writes it, such as `.spec.replicas`.
    pub field: String,
    /// The owner as the server names it, in quotation marks.
    pub owner: String,
    /// The time of the owner's last write, RFC 3339.
    pub since: Option<String>,
    /// The live value and the value in the manifest, both shortened; `None` if one of the two is not known, and for a
    /// Secret, whose values are not printed.
    pub values: Option<[String; 2]>,
    /// The field as a rule of `--ignore` names it; `None` if no rule can name it.
    pub pointer: Option<Pointer>,
}

/// Returns a kind as a value of `--recreate`. A group without a dot (`apps`, `batch`) is built in, and can be omitted:
/// if a kind has no group, built-in kinds come first.
fn recreate_flag_value(kind: &GroupKind) -> String {
    if kind.group.contains('.') {
        kind.to_string()
    } else {
        kind.kind.clone()
    }
}

/// Returns the flag that recreates objects of these kinds.
pub fn recreate_flag<'k>(kinds: impl IntoIterator<Item = &'k GroupKind>) -> String {
    let values: Vec<String> = kinds.into_iter().map(recreate_flag_value).collect();
    format!("--recreate={}", values.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_hold_all_lines() {
        let message = Message::new("invalid")
            .with_details(["a: one".to_owned(), "b: two".to_owned()])
            .with_hint("leave it")
            .with_subject_prefix("secret/web: ");
        assert_eq!(
            message.to_string(),
            "secret/web: invalid\n  a: one\n  b: two\n  hint: leave it"
        );
    }

    #[test]
    fn the_flag_names_the_kind_as_it_is_looked_up() {
        for (group, name, expected) in [
            ("batch", "Job", "Job"),
            ("", "Service", "Service"),
            ("example.com", "Job", "Job.example.com"),
            (
                "rbac.authorization.k8s.io",
                "RoleBinding",
                "RoleBinding.rbac.authorization.k8s.io",
            ),
        ] {
            assert_eq!(recreate_flag_value(&GroupKind::new(group, name)), expected);
        }
    }
}
