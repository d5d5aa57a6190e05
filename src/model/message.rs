//! Messages for people, as values: text, details below it, and hints.
//!
//! A message may quote text from a cluster, a file or a URL. Such text cannot pass for a line, a
//! label or a hint of this program, because lines are parts of the value, and a line break within a
//! part is escaped when it is printed.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Serialize, Serializer};

use super::identity::{GroupKind, ObjectKey};
use super::pointer::Pointer;

/// A message of one line, with details and hints below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The message itself, on one line.
    pub text: String,
    /// Details, a line each; printed indented.
    pub details: Vec<String>,
    /// Hints, a line each.
    pub hints: Vec<String>,
    /// What this message and others about other objects have in common; if it is repeated, it is
    /// counted.
    pub alike: Option<Box<str>>,
    /// The kind that a hint of it lets the user recreate. The hints of all kinds are printed as one.
    pub recreatable: Option<Box<RecreatableKind>>,
    /// The field conflicts that it is about.
    pub conflicts: Box<[FieldConflict]>,
    /// Bytes of the text before the message itself.
    prefix: usize,
}

impl Message {
    /// A message of one line.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            details: Vec::new(),
            hints: Vec::new(),
            alike: None,
            recreatable: None,
            conflicts: Box::default(),
            prefix: 0,
        }
    }

    /// Returns the message as one of a group of equal ones.
    #[must_use]
    pub fn in_group(mut self, alike: impl Into<String>) -> Self {
        let alike: String = alike.into();
        self.alike = Some(alike.into_boxed_str());
        self
    }

    /// Returns the message with these words before it; others of its group have them, too.
    #[must_use]
    pub fn after_words(mut self, words: &str) -> Self {
        self.text.insert_str(0, words);
        if let Some(alike) = self.alike.take() {
            return self.in_group(format!("{words}{alike}"));
        }
        self
    }

    /// Returns the message as one that is printed whatever others say.
    #[must_use]
    pub fn alone(mut self) -> Self {
        self.alike = None;
        self
    }

    /// Returns what the message is about, as `with_prefix` has put it before the text.
    pub fn subject(&self) -> &str {
        self.text[..self.prefix].trim_end_matches(": ")
    }

    /// The message with these lines below it, after those that it has.
    #[must_use]
    pub fn with_details(mut self, details: impl IntoIterator<Item = String>) -> Self {
        self.details.extend(details);
        self
    }

    /// The message with one more hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// The message with the hint that recreates objects of this kind.
    #[must_use]
    pub fn with_recreation(mut self, kind: RecreatableKind) -> Self {
        self.hints.push(kind.hint());
        self.recreatable = Some(Box::new(kind));
        self
    }

    /// The message with this hint in place of those that it has.
    #[must_use]
    pub fn with_only_hint(mut self, hint: String) -> Self {
        self.hints = vec![hint];
        self.recreatable = None;
        self
    }

    /// The message about these field conflicts.
    #[must_use]
    pub fn with_conflicts(mut self, conflicts: Vec<FieldConflict>) -> Self {
        self.conflicts = conflicts.into();
        self
    }

    /// The message with this prefix, such as its object and a colon.
    #[must_use]
    pub fn with_prefix(mut self, prefix: impl fmt::Display) -> Self {
        let prefix = prefix.to_string();
        self.text.insert_str(0, &prefix);
        self.prefix += prefix.len();
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
    /// All lines, as in output documents.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        for detail in &self.details {
            write!(f, "\n  {detail}")?;
        }
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
    /// The file and line of the field, or those of the object if the line of the field is not known.
    pub place: String,
    /// The field as the server writes it, such as `.spec.replicas`.
    pub field: String,
    /// The owner as the server names it, in quotation marks.
    pub owner: String,
    /// The time of the owner's last write, RFC 3339.
    pub since: Option<String>,
    /// The live value and that of the manifest, shortened; `None` for a Secret, and if one is not known.
    pub values: Option<[String; 2]>,
    /// The field in a rule of `--ignore`; `None` if it cannot be ignored.
    pub pointer: Option<Pointer>,
}

/// A kind of objects that the user may let a run recreate.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecreatableKind {
    pub kind: GroupKind,
    /// Whether data is lost with its objects, which the user has to agree to.
    pub loses_data: bool,
}

impl RecreatableKind {
    /// Returns the hint for an object of this kind.
    pub fn hint(&self) -> String {
        let flags = flags([self], self.loses_data);
        format!("keep the old value, give the object another name, or recreate it with {flags}")
    }

    /// Returns the value of the flag. Groups without a dot are built in, and their kinds come first for a
    /// bare name.
    pub fn name(&self) -> String {
        if self.kind.group.contains('.') {
            self.kind.to_string()
        } else {
            self.kind.kind.clone()
        }
    }
}

/// Returns the hints for objects of all these kinds: one flag for those whose recreation loses nothing,
/// and one for the others.
pub fn recreation_hints(kinds: &BTreeSet<RecreatableKind>) -> Vec<String> {
    let hints = [false, true].into_iter().filter_map(|loses_data| {
        let kinds = kinds.iter().filter(|kind| kind.loses_data == loses_data);
        let kinds: Vec<&RecreatableKind> = kinds.collect();
        match kinds.as_slice() {
            [] => None,
            [kind] => Some(kind.hint()),
            kinds => Some(format!(
                "keep the old values, give the objects other names, or recreate them with {}",
                flags(kinds.iter().copied(), loses_data)
            )),
        }
    });
    hints.collect()
}

fn flags<'k>(kinds: impl IntoIterator<Item = &'k RecreatableKind>, loses_data: bool) -> String {
    let names: Vec<String> = kinds.into_iter().map(RecreatableKind::name).collect();
    let agreed = if loses_data { " --allow-data-loss" } else { "" };
    format!("--recreate={}{agreed}", names.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_hold_all_lines() {
        let message = Message::new("invalid")
            .with_details(["a: one".to_owned(), "b: two".to_owned()])
            .with_hint("leave it")
            .with_prefix("secret/web: ");
        assert_eq!(
            message.to_string(),
            "secret/web: invalid\n  a: one\n  b: two\n  hint: leave it"
        );
    }

    fn kind(group: &str, kind: &str) -> RecreatableKind {
        RecreatableKind {
            kind: GroupKind::new(group, kind),
            loses_data: false,
        }
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
            assert_eq!(kind(group, name).name(), expected);
        }
    }

    #[test]
    fn one_flag_names_all_kinds_that_lose_nothing() {
        let job = kind("batch", "Job");
        let deployment = kind("apps", "Deployment");
        let database = RecreatableKind {
            loses_data: true,
            ..kind("apps", "StatefulSet")
        };
        assert_eq!(recreation_hints(&BTreeSet::new()), Vec::<String>::new());
        assert_eq!(recreation_hints(&[job.clone()].into()), [job.hint()]);
        assert_eq!(
            recreation_hints(&[deployment, job, database].into()),
            [
                "keep the old values, give the objects other names, or recreate them with \
                 --recreate=Deployment,Job",
                "keep the old value, give the object another name, or recreate it with \
                 --recreate=StatefulSet --allow-data-loss",
            ]
        );
    }
}
