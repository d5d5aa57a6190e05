//! The error about manifests that cannot become objects of this cluster: one message for each object, or for each kind
//! if all objects of the kind have the same problem. `resolve` finds the problems.

use std::collections::BTreeMap;

use crate::cluster::discovery::ReasonToKeepKind;
use crate::error::{Error, ErrorKind};
use crate::manifest::{MAX_FAULTS, Position};
use crate::model::identity::GroupVersionKind;
use crate::model::message::Message;
use crate::model::text::{counted, first_lines_and_more};

/// A manifest that cannot be applied to this cluster, or contradicts another manifest.
pub(super) struct InvalidObject {
    /// The line where the object was written.
    pub(super) position: Position,
    /// The message about the object, with its hint.
    pub(super) problem: Message,
    /// All objects of the kind have the same problem, so the report has one message for all of them.
    pub(super) affects_whole_kind: bool,
}

impl InvalidObject {
    /// Makes an object with a problem that other objects of its kind need not have.
    pub(super) fn new(position: Position, problem: Message) -> Self {
        Self {
            position,
            problem,
            affects_whole_kind: false,
        }
    }

    /// Makes an object with a problem that all objects of its kind have.
    pub(super) fn of_whole_kind(position: Position, problem: Message) -> Self {
        Self {
            position,
            problem,
            affects_whole_kind: true,
        }
    }
}

/// Returns the problem of a kind that the server does not serve in this version. `served_versions` are the other
/// versions in which the server serves it, `similar` are the kinds that may have been meant, and `not_served` is the
/// reason why the kind is not served although a CRD defines it.
pub(super) fn unknown_kind_message(
    kind: &GroupVersionKind,
    served_versions: Vec<String>,
    similar: &[String],
    not_served: Option<&ReasonToKeepKind>,
) -> Message {
    let hint = if !served_versions.is_empty() {
        let api_versions: Vec<String> = served_versions
            .into_iter()
            .map(|version| {
                GroupVersionKind {
                    version,
                    ..kind.clone()
                }
                .api_version()
            })
            .collect();
        format!("use apiVersion {}", api_versions.join(" and "))
    } else if let Some(reason) = not_served {
        format!("fix its CustomResourceDefinition first: {reason}")
    } else if !similar.is_empty() {
        format!("did you mean {}?", similar.join(" or "))
    } else {
        "ensure CRDs are installed first, or add its CustomResourceDefinition to the manifests".to_owned()
    };
    let text = format!(
        "no matches for kind {:?} in version {:?}",
        kind.kind,
        kind.api_version()
    );
    Message::new(text).with_hint(hint)
}

/// Returns the error with a message for each object. Objects of one kind that cannot be applied are one message.
pub(super) fn to_error(objects: Vec<InvalidObject>) -> Error {
    let mut positions_by_problem: BTreeMap<String, Vec<Position>> = BTreeMap::new();
    for object in objects.iter().filter(|object| object.affects_whole_kind) {
        positions_by_problem
            .entry(object.problem.text.clone())
            .or_default()
            .push(object.position.clone());
    }
    let messages = objects.into_iter().filter_map(|object| {
        let InvalidObject {
            position,
            mut problem,
            ..
        } = object;
        match positions_by_problem.get_mut(&problem.text).map(std::mem::take) {
            // The message of an earlier object of the kind lists this object.
            Some(positions) if positions.is_empty() => None,
            Some(positions) if positions.len() > 1 => {
                problem.text = format!("{}: {}", problem.text, counted(positions.len(), "object"));
                Some(problem.with_details(first_lines_and_more(positions)))
            }
            _ => Some(problem.with_words_before_text_and_group(&format!("{position}: "))),
        }
    });
    let mut messages: Vec<Message> = messages.take(MAX_FAULTS + 1).collect();
    if let Some(one_too_many) = messages.get_mut(MAX_FAULTS) {
        let text = format!("too many errors: only the first {MAX_FAULTS} are shown");
        *one_too_many = Message::new(text).with_hint("fix these first");
    }
    Error::from_messages(ErrorKind::Usage, messages)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;

    use super::*;
    use crate::manifest::Source;

    #[test]
    fn an_unknown_kind_is_one_message_however_many_objects_have_it() {
        let object = |line, kind: &str| InvalidObject {
            position: Position {
                source: Arc::new(Source::Path(PathBuf::from("web.yaml"))),
                line,
            },
            problem: unknown_kind_message(
                &GroupVersionKind::from_api_version("example.com/v1", kind),
                Vec::new(),
                &[],
                None,
            ),
            affects_whole_kind: true,
        };
        let objects = [object(1, "Widget"), object(5, "Gadget"), object(9, "Widget")];
        let messages = to_error(objects.into()).messages;
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
            .map(|line| InvalidObject::new(position(line), Message::new("configmap/web is defined twice")))
            .collect();
        let messages = to_error(objects).messages;
        assert_eq!(messages.len(), MAX_FAULTS + 1);
        assert_eq!(
            messages[MAX_FAULTS].text,
            "too many errors: only the first 100 are shown"
        );
    }
}
