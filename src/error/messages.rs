//! The messages of an error, each with its hints below it. Equal errors about several objects are one
//! message that lists them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::Error;
use crate::execute::ParentWriteError;
use crate::manifest::MAX_FAULTS;
use crate::manifest::desired::{InvalidObject, InvalidObjectProblem};
use crate::model::identity::ObjectKey;
use crate::model::message::Message;
use crate::model::permission::Permission;
use crate::model::text::{counted, with_more};
use crate::plan::Refusal;
use crate::plan::saved::ChangeSincePlan;

impl Error {
    /// Returns the messages for people, each with its hints.
    ///
    /// A hint that holds for all of them is below the last one.
    pub fn messages(&self) -> Vec<Message> {
        let mut messages = self.messages_alone();
        if let (Some(last), Some(hint)) = (messages.last_mut(), self.hint()) {
            last.hints.push(hint);
        }
        messages
    }

    /// Returns the hints of all messages, without repetition.
    pub fn hints(&self) -> Vec<String> {
        let mut seen = BTreeSet::new();
        let hints = self.messages().into_iter().flat_map(|message| message.hints);
        hints.filter(|hint| seen.insert(hint.clone())).collect()
    }

    /// Returns the messages without the hint of the error as a whole.
    fn messages_alone(&self) -> Vec<Message> {
        match self {
            Self::Manifests(errors) => errors
                .0
                .iter()
                .map(|error| Message::new(error.to_string()).with_hint(error.hint()))
                .collect(),
            Self::InvalidObjects(objects) => invalid_objects(objects),
            Self::Refused(refusals) => Refusal::messages(refusals),
            Self::ParentWrite(ParentWriteError::Refused(refusals)) if self.is_of_another_run() => {
                Refusal::messages(refusals)
            }
            Self::ParentWrite(error @ ParentWriteError::Refused(refusals)) => {
                let first = Message::new(error.to_string());
                std::iter::once(first)
                    .chain(Refusal::messages(refusals))
                    .collect()
            }
            Self::Altered(alterations) => each(alterations),
            Self::MissingNamespaces(missing) => each(missing),
            Self::MissingDependencies(missing) => each(missing),
            Self::MissingPermissions(missing) => forbidden(missing),
            Self::Overtaken(drift) => stale(drift),
            Self::Unpredicted(objects) => unpredicted(objects),
            Self::MembersWithoutParent { parent, left_out } => members_without_parent(parent, left_out),
            // The advice of the inner error would be too much here.
            Self::GrantedByRbac(error) => error.messages_alone(),
            other => vec![Message::new(other.to_string())],
        }
    }
}

/// Returns the text of messages without their hints.
pub(super) fn text_without_hints(messages: &[Message]) -> String {
    let lines = messages.iter().map(|message| {
        let mut alone = message.clone();
        alone.hints.clear();
        alone.to_string()
    });
    lines.collect::<Vec<_>>().join("\n")
}

pub(super) fn each<T: fmt::Display>(errors: &[T]) -> Vec<Message> {
    errors
        .iter()
        .map(|error| Message::new(error.to_string()))
        .collect()
}

/// Returns a message for each object. Objects of one kind that cannot be applied are one message.
pub(super) fn invalid_objects(objects: &[InvalidObject]) -> Vec<Message> {
    let mut of_kind: BTreeMap<String, Vec<&InvalidObject>> = BTreeMap::new();
    for object in objects.iter().filter(|object| is_about_kind(object)) {
        let alike = of_kind.entry(object.problem.to_string()).or_default();
        alike.push(object);
    }
    let messages = objects.iter().filter_map(|object| {
        match of_kind.get_mut(&object.problem.to_string()).map(std::mem::take) {
            Some(alike) if alike.is_empty() => None,
            Some(alike) if alike.len() > 1 => {
                let count = counted(alike.len(), "object");
                let positions = alike.iter().map(|object| &object.position);
                Some(
                    Message::new(format!("{}: {count}", object.problem))
                        .with_details(with_more(positions))
                        .with_hint(object.hint()),
                )
            }
            _ => Some(Message::new(object.to_string()).with_hint(object.hint())),
        }
    });
    let mut messages: Vec<Message> = messages.take(MAX_FAULTS + 1).collect();
    if let Some(next) = messages.get_mut(MAX_FAULTS) {
        let text = format!("too many errors: only the first {MAX_FAULTS} are shown");
        *next = Message::new(text).with_hint("fix these first");
    }
    messages
}

fn is_about_kind(object: &InvalidObject) -> bool {
    matches!(
        object.problem,
        InvalidObjectProblem::UnknownKind { .. } | InvalidObjectProblem::NoMembersOfThisKind { .. }
    )
}

/// Returns one message for all permissions that are missing.
pub(super) fn forbidden(missing: &[Permission]) -> Vec<Message> {
    vec![match missing {
        [one] => Message::new(format!("forbidden: you {}", one.denial())),
        all => Message::new(format!("forbidden: {} missing", counted(all.len(), "permission")))
            .with_details(all.iter().map(Permission::denial)),
    }]
}

pub(super) fn stale(drift: &[ChangeSincePlan]) -> Vec<Message> {
    let details = drift.iter().map(ToString::to_string);
    vec![Message::new("plan is stale: the cluster has changed").with_details(details)]
}

pub(super) fn members_without_parent(parent: &ObjectKey, left_out: &[String]) -> Vec<Message> {
    vec![
        Message::new(format!(
            "{parent}: not the parent of a set, but objects have the label of this set"
        ))
        .with_details(left_out.iter().cloned()),
    ]
}

pub(super) fn unpredicted(objects: &[(ObjectKey, Message)]) -> Vec<Message> {
    let reported = objects.iter().take(SHOWN_OBJECTS).map(|(key, reason)| {
        reason
            .clone()
            .with_prefix(format_args!("{key}: dry run failed: "))
    });
    let more = objects.len().saturating_sub(SHOWN_OBJECTS);
    let more =
        (more > 0).then(|| Message::new(format!("dry run failed for {} more", counted(more, "object"))));
    reported.chain(more).collect()
}

/// Limit of objects that an error lists: usually they share one reason.
const SHOWN_OBJECTS: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;
    use std::sync::Arc;

    use crate::manifest::{Position, Source};
    use crate::model::identity::GroupVersionKind;
    use crate::plan::fixtures;

    #[test]
    fn an_unknown_kind_is_one_message_however_many_objects_have_it() {
        let object = |line, kind: &str| InvalidObject {
            position: Position {
                source: Arc::new(Source::Path(PathBuf::from("web.yaml"))),
                line,
            },
            problem: InvalidObjectProblem::UnknownKind {
                kind: GroupVersionKind::from_api_version("example.com/v1", kind),
                served_versions: Vec::new(),
                similar: Vec::new(),
                definition: None,
            },
        };
        let objects = [object(1, "Widget"), object(5, "Gadget"), object(9, "Widget")];
        let messages = invalid_objects(&objects);
        let texts: Vec<&str> = messages.iter().map(|message| message.text.as_str()).collect();
        let unknown = |kind| format!("no matches for kind {kind:?} in version \"example.com/v1\"");
        assert_eq!(
            texts,
            [
                format!("{}: 2 objects", unknown("Widget")),
                format!("web.yaml:5: {}", unknown("Gadget"))
            ]
        );
        assert_eq!(messages[0].details, ["web.yaml:1", "web.yaml:9"]);
        assert_eq!(messages[0].hints.len(), 1);
    }

    #[test]
    fn objects_that_are_defined_twice_are_printed_up_to_a_limit() {
        let position = |line| Position {
            source: Arc::new(Source::Path(PathBuf::from("web.yaml"))),
            line,
        };
        let objects: Vec<InvalidObject> = (0..1000)
            .map(|line| InvalidObject {
                position: position(line),
                problem: InvalidObjectProblem::DefinedTwice {
                    key: fixtures::live("ConfigMap", Some("shop"), "web").key,
                    first: position(line),
                },
            })
            .collect();
        let messages = invalid_objects(&objects);
        assert_eq!(messages.len(), MAX_FAULTS + 1);
        assert_eq!(
            messages[MAX_FAULTS].text,
            "too many errors: only the first 100 are shown"
        );
    }
}
