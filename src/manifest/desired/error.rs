//! Errors of manifests that cannot be resolved, with their hints.

use std::collections::BTreeMap;

use crate::cluster::discovery::{FailedVersion, KeptReason};
use crate::error::{Error, ErrorKind};
use crate::manifest::{MAX_FAULTS, Position};
use crate::model::depends_on::{DEPENDS_ON, MalformedReference};
use crate::model::identity::{GroupKind, GroupVersionKind, ObjectKey};
use crate::model::message::Message;
use crate::model::text::{counted, with_more};

/// Error if manifests cannot become objects of this cluster.
#[derive(Debug, thiserror::Error)]
pub enum DesiredError {
    /// The manifests are wrong.
    #[error("{} invalid objects in the manifests", .0.len())]
    InvalidObjects(Vec<InvalidObject>),
    /// The definition of the kind of a manifest is being deleted.
    #[error("{position}: {kind} cannot be applied: {reason}")]
    DefinitionTerminating {
        /// Where the object was written.
        position: Position,
        kind: String,
        /// Names the definition.
        reason: KeptReason,
    },
    /// The server could not report whether it serves the kind of a manifest.
    #[error("{position}: cannot determine whether the server has kind {kind}: {failure}")]
    KindUnknowable {
        /// Where the object was written.
        position: Position,
        kind: String,
        /// What the server said.
        failure: FailedVersion,
    },
}

impl From<DesiredError> for Error {
    fn from(error: DesiredError) -> Self {
        let text = error.to_string();
        match error {
            DesiredError::InvalidObjects(objects) => {
                Self::with_messages(ErrorKind::Usage, messages(&objects))
            }
            DesiredError::DefinitionTerminating { .. } => {
                Self::new(ErrorKind::Failed, text).hinted("run the same command again when it is gone")
            }
            DesiredError::KindUnknowable { .. } => Self::kind_unknowable(text),
        }
    }
}

/// A manifest that this cluster cannot take, or that does not go with another one.
#[derive(Debug, thiserror::Error)]
#[error("{position}: {problem}")]
pub struct InvalidObject {
    /// Where the object was written.
    pub position: Position,
    /// What is wrong.
    pub problem: InvalidObjectProblem,
}

/// What is wrong with a manifest in the light of discovery and of the other manifests.
#[derive(Debug, thiserror::Error)]
pub enum InvalidObjectProblem {
    /// The server does not serve the kind in this version.
    #[error("no matches for kind {:?} in version {:?}", .kind.kind, .kind.api_version())]
    UnknownKind {
        /// As the manifest has it.
        kind: GroupVersionKind,
        /// Versions of the same group that have the kind.
        served_versions: Vec<String>,
        /// Kinds that may have been meant.
        similar: Vec<String>,
        /// Why the server does not serve the kind although it is defined.
        definition: Option<KeptReason>,
    },
    /// Objects of this kind could not be found again, or not be pruned.
    #[error("kind {kind} cannot be in a set: the server does not support {} for it", .missing_verbs.join(", "))]
    NoMembersOfThisKind {
        kind: GroupKind,
        /// Verbs that the server does not offer.
        missing_verbs: Vec<&'static str>,
    },
    /// The manifest of a member has ApplySet metadata that only a run of a set writes on its parent.
    #[error("{key}: {metadata_key} is reserved for parents of sets")]
    ApplySetMetadata {
        key: ObjectKey,
        /// The label or annotation.
        metadata_key: String,
    },
    /// A hook that is to be applied has no name of its own.
    #[error("metadata.generateName: cannot use generate name with apply")]
    GeneratedName,
    /// The same object stands in two places of the manifests.
    #[error("{key} is defined twice: first at {first}")]
    DefinedTwice {
        key: ObjectKey,
        /// Where it was given before.
        first: Position,
    },
    /// The annotation of dependencies does not follow its syntax.
    #[error("{key}: annotation {DEPENDS_ON}: {fault}")]
    MalformedDependency {
        key: ObjectKey,
        /// What is wrong with it.
        fault: MalformedReference,
    },
    /// Objects depend on each other.
    #[error("dependencies form a cycle: {}", arrows(.path))]
    DependencyCycle {
        /// The objects, each depending on the next one; the last is the first.
        path: Vec<ObjectKey>,
    },
    /// An object has to exist before the parent of the set, and depends on one that is applied after it.
    #[error("{key}: depends on {dependency}, which is applied after it: the set's parent needs {key} first")]
    NeededByParent {
        key: ObjectKey,
        /// What it depends on.
        dependency: ObjectKey,
    },
}

fn arrows(keys: &[ObjectKey]) -> String {
    let names: Vec<String> = keys.iter().map(ToString::to_string).collect();
    names.join(" -> ")
}

impl InvalidObject {
    /// What to type or change.
    pub fn hint(&self) -> String {
        match &self.problem {
            InvalidObjectProblem::UnknownKind {
                kind,
                served_versions,
                ..
            } if !served_versions.is_empty() => {
                let versions: Vec<String> = served_versions
                    .iter()
                    .map(|version| {
                        GroupVersionKind {
                            version: version.clone(),
                            ..kind.clone()
                        }
                        .api_version()
                    })
                    .collect();
                format!("use apiVersion {}", versions.join(" and "))
            }
            InvalidObjectProblem::UnknownKind {
                definition: Some(reason),
                ..
            } => format!("fix its CustomResourceDefinition first: {reason}"),
            InvalidObjectProblem::UnknownKind { similar, .. } if !similar.is_empty() => {
                format!("did you mean {}?", similar.join(" or "))
            }
            InvalidObjectProblem::UnknownKind { .. } => {
                "ensure CRDs are installed first, or add its CustomResourceDefinition to the manifests"
                    .to_owned()
            }
            InvalidObjectProblem::NoMembersOfThisKind { .. } => {
                "remove it from the manifests, and create it with kubectl".to_owned()
            }
            InvalidObjectProblem::ApplySetMetadata { .. } => "remove it from the manifest".to_owned(),
            InvalidObjectProblem::GeneratedName => {
                "give the hook a name, or leave hooks out with --hooks=skip".to_owned()
            }
            InvalidObjectProblem::DefinedTwice { first, .. } if first.is_same_place(&self.position) => {
                "name this file once with -f, or write the object once on this line".to_owned()
            }
            InvalidObjectProblem::DefinedTwice { .. } => "remove one of the two".to_owned(),
            InvalidObjectProblem::MalformedDependency { .. } => {
                "write group/Kind/name or group/namespaces/NAMESPACE/Kind/name, with an empty group for core kinds: /namespaces/shop/Secret/login"
                    .to_owned()
            }
            InvalidObjectProblem::DependencyCycle { .. } | InvalidObjectProblem::NeededByParent { .. } => {
                format!("remove one of them from the annotation {DEPENDS_ON}")
            }
        }
    }
}

/// Returns a message for each object. Objects of one kind that cannot be applied are one message.
fn messages(objects: &[InvalidObject]) -> Vec<Message> {
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
            problem: InvalidObjectProblem::UnknownKind {
                kind: GroupVersionKind::from_api_version("example.com/v1", kind),
                served_versions: Vec::new(),
                similar: Vec::new(),
                definition: None,
            },
        };
        let objects = [object(1, "Widget"), object(5, "Gadget"), object(9, "Widget")];
        let messages = messages(&objects);
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
                    key: ObjectKey {
                        group_kind: GroupKind::new("", "ConfigMap"),
                        namespace: Some("shop".to_owned()),
                        name: "web".to_owned(),
                    },
                    first: position(line),
                },
            })
            .collect();
        let messages = messages(&objects);
        assert_eq!(messages.len(), MAX_FAULTS + 1);
        assert_eq!(
            messages[MAX_FAULTS].text,
            "too many errors: only the first 100 are shown"
        );
    }
}
