//! The parent of a set: its identity, and its ApplySet labels and annotations.
//!
//! Reading is strict: whatever is ambiguous is a fault, and all faults of a parent are returned
//! together. `plan` decides what a fault means for a run.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::record::{InvalidValue, later_format, parse_group_kinds, parse_group_resources, parse_namespaces};
use super::tooling::InvalidTooling;
use super::{
    ADDITIONAL_NAMESPACES_ANNOTATION, ApplySetId, GROUP_KINDS_ANNOTATION, GROUP_RESOURCES_ANNOTATION,
    ID_LABEL, KEY_PREFIX, Record, TOOLING_ANNOTATION, Tooling,
};
use crate::model::identity::{GroupKind, ObjectKey};

/// The key of the parent object, from which the id of the set is computed.
pub type ParentIdentity = ObjectKey;

/// The ApplySet labels and annotations of a parent without faults.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApplySetRecord {
    /// The tool that manages the set.
    pub tooling: Tooling,
    /// The kinds that members may have.
    pub kinds: RecordedKinds,
    /// The namespaces of members, except the parent's own.
    pub additional_namespaces: BTreeSet<String>,
}

/// The kinds of members, in the form of the parent's annotation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum RecordedKinds {
    /// From `contains-group-kinds`.
    GroupKinds(BTreeSet<GroupKind>),
    /// From the deprecated `contains-group-resources`: pairs of resource and group.
    GroupResources(BTreeSet<(String, String)>),
}

/// The ApplySet labels and annotations of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reading {
    /// A parent.
    Parent(ApplySetRecord),
    /// It has no key of the convention.
    NoRecord,
    /// It has only the tooling annotation: a run ended between creating the parent from its manifest
    /// and recording the set on it.
    Unfinished(Tooling),
    /// It has keys of the convention, with faults.
    Faulty(Vec<ParentFault>),
}

/// A fault of a parent's ApplySet labels and annotations.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParentFault {
    /// There are annotations without the id label.
    #[error("label {ID_LABEL} is missing")]
    IdMissing,
    /// The id is not the one that follows from the parent's identity.
    #[error("label {ID_LABEL} is {found:?}, expected {expected}")]
    WrongId {
        /// The label's value.
        found: String,
        /// The correct value.
        expected: ApplySetId,
    },
    /// The id is of a later format.
    #[error("label {ID_LABEL} has a newer format ({0}) than this version supports")]
    LaterIdFormat(String),
    /// The tool that manages the set is missing.
    #[error("annotation {TOOLING_ANNOTATION} is missing")]
    ToolingMissing,
    /// The tool that manages the set cannot be parsed.
    #[error("annotation {TOOLING_ANNOTATION}: {0}")]
    InvalidTooling(#[from] InvalidTooling),
    /// Neither form of the list of kinds exists, so it is unknown where members are.
    #[error("annotation {GROUP_KINDS_ANNOTATION} is missing")]
    KindsMissing,
    /// A list cannot be parsed.
    #[error("annotation {annotation} {fault}")]
    InvalidValue {
        /// The annotation's key.
        annotation: &'static str,
        /// The fault of its value.
        fault: InvalidValue,
    },
    /// The parent has no namespace of its own and names none, but a recorded kind needs one.
    #[error("the cluster-scoped parent records no namespaces for the namespaced kind {0}")]
    NoNamespaceFor(GroupKind),
    /// An entry that is not served, but similar to a kind that is.
    #[error("annotation {GROUP_KINDS_ANNOTATION} has the entry {entry:?}; probably {meant:?}")]
    MisspelledKind {
        /// As recorded.
        entry: String,
        /// As served.
        meant: String,
    },
}

/// The API server's limit for all annotations of an object, keys and values (apimachinery,
/// `TotalAnnotationSizeLimitB`).
pub const ANNOTATIONS_LIMIT: usize = 256 * 1024;

/// Labels or annotations of an object.
pub type Pairs = BTreeMap<String, String>;

/// Reads the ApplySet labels and annotations of a parent.
pub fn read(identity: &ParentIdentity, labels: &Pairs, annotations: &Pairs) -> Reading {
    let id = labels.get(ID_LABEL);
    let known = [
        GROUP_KINDS_ANNOTATION,
        GROUP_RESOURCES_ANNOTATION,
        ADDITIONAL_NAMESPACES_ANNOTATION,
    ];
    if id.is_none() && !known.iter().any(|key| annotations.contains_key(*key)) {
        return match annotations
            .get(TOOLING_ANNOTATION)
            .map(|value| Tooling::parse(value))
        {
            Some(Ok(tooling)) => Reading::Unfinished(tooling),
            Some(Err(error)) => Reading::Faulty(vec![error.into()]),
            None => Reading::NoRecord,
        };
    }
    let mut faults: Vec<ParentFault> = id_fault(identity, id).into_iter().collect();
    let tooling = collect(&mut faults, read_tooling(annotations));
    let kinds = collect(&mut faults, read_kinds(annotations));
    let namespaces = collect(&mut faults, read_namespaces(annotations));
    match (tooling, kinds, namespaces) {
        (Some(tooling), Some(kinds), Some(mut additional_namespaces)) if faults.is_empty() => {
            if let Some(own) = &identity.namespace {
                additional_namespaces.remove(own);
            }
            Reading::Parent(ApplySetRecord {
                tooling,
                kinds,
                additional_namespaces,
            })
        }
        _ => Reading::Faulty(faults),
    }
}

/// The labels of a parent, as `metadata.labels`.
pub fn labels(id: &ApplySetId) -> Value {
    json!({ ID_LABEL: id.as_str() })
}

/// The annotations of a parent, as `metadata.annotations`.
///
/// Both lists are always written, an empty one as an empty string, because kubectl
/// does and refuses a parent without `contains-group-kinds`.
pub fn annotations(tooling: &Tooling, record: &Record) -> Value {
    json!({
        TOOLING_ANNOTATION: tooling.to_string(),
        GROUP_KINDS_ANNOTATION: record.group_kinds_value(),
        ADDITIONAL_NAMESPACES_ANNOTATION: record.namespaces_value(),
    })
}

/// Returns whether a label or annotation key belongs to the convention.
pub fn is_applyset_key(key: &str) -> bool {
    key.starts_with(KEY_PREFIX)
}

fn collect<T>(faults: &mut Vec<ParentFault>, result: Result<T, ParentFault>) -> Option<T> {
    result.map_err(|fault| faults.push(fault)).ok()
}

fn id_fault(identity: &ParentIdentity, id: Option<&String>) -> Option<ParentFault> {
    let Some(found) = id else {
        return Some(ParentFault::IdMissing);
    };
    if let Some(format) = later_format(found, '.') {
        return Some(ParentFault::LaterIdFormat(format));
    }
    let expected = ApplySetId::for_parent(identity);
    (found != expected.as_str()).then(|| ParentFault::WrongId {
        found: found.clone(),
        expected,
    })
}

fn read_tooling(annotations: &Pairs) -> Result<Tooling, ParentFault> {
    let value = annotations
        .get(TOOLING_ANNOTATION)
        .ok_or(ParentFault::ToolingMissing)?;
    if let Some(format) = later_format(value, ':') {
        return Err(ParentFault::InvalidValue {
            annotation: TOOLING_ANNOTATION,
            fault: InvalidValue::LaterFormat(format),
        });
    }
    Ok(Tooling::parse(value)?)
}

fn read_kinds(annotations: &Pairs) -> Result<RecordedKinds, ParentFault> {
    if let Some(value) = annotations.get(GROUP_KINDS_ANNOTATION) {
        return match parse_group_kinds(value) {
            Ok(kinds) => Ok(RecordedKinds::GroupKinds(kinds)),
            Err(fault) => Err(ParentFault::InvalidValue {
                annotation: GROUP_KINDS_ANNOTATION,
                fault,
            }),
        };
    }
    let value = annotations
        .get(GROUP_RESOURCES_ANNOTATION)
        .ok_or(ParentFault::KindsMissing)?;
    match parse_group_resources(value) {
        Ok(resources) => Ok(RecordedKinds::GroupResources(resources)),
        Err(fault) => Err(ParentFault::InvalidValue {
            annotation: GROUP_RESOURCES_ANNOTATION,
            fault,
        }),
    }
}

fn read_namespaces(annotations: &Pairs) -> Result<BTreeSet<String>, ParentFault> {
    let value = annotations
        .get(ADDITIONAL_NAMESPACES_ANNOTATION)
        .map_or("", String::as_str);
    parse_namespaces(value).map_err(|fault| ParentFault::InvalidValue {
        annotation: ADDITIONAL_NAMESPACES_ANNOTATION,
        fault,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::applyset::PART_OF_LABEL;

    fn identity() -> ParentIdentity {
        ParentIdentity {
            group_kind: GroupKind::new("", "ConfigMap"),
            namespace: Some("foo".to_owned()),
            name: "set1".to_owned(),
        }
    }

    const ID: &str = "applyset-VNL3L76_SgMeBI1T5fX9ky5G-B2b4SjDbkbQ1-e9Mcg-v1";

    fn pairs(list: &[(&str, &str)]) -> Pairs {
        list.iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect()
    }

    type Case<'a> = (&'a [(&'a str, &'a str)], &'a [(&'a str, &'a str)], usize);

    fn read_pairs(labels: &[(&str, &str)], annotations: &[(&str, &str)]) -> Reading {
        read(&identity(), &pairs(labels), &pairs(annotations))
    }

    #[test]
    fn what_is_written_is_read_back() {
        let mut record = Record::default();
        record.add_place(&GroupKind::new("apps", "Deployment"), Some("bar"), Some("foo"));
        let to_pairs = |value: Value| serde_json::from_value::<Pairs>(value).expect("a map of strings");
        let read = read(
            &identity(),
            &to_pairs(labels(&ApplySetId::for_parent(&identity()))),
            &to_pairs(annotations(&Tooling::this_program(), &record)),
        );
        assert_eq!(
            read,
            Reading::Parent(ApplySetRecord {
                tooling: Tooling::this_program(),
                kinds: RecordedKinds::GroupKinds(record.group_kinds),
                additional_namespaces: record.additional_namespaces,
            })
        );
    }

    #[test]
    fn an_object_without_keys_is_not_a_parent() {
        assert_eq!(read_pairs(&[("app", "x")], &[("note", "y")]), Reading::NoRecord);
    }

    #[test]
    fn the_tooling_annotation_alone_marks_an_unfinished_parent() {
        let ours = Tooling::this_program();
        assert_eq!(
            read_pairs(&[], &[(TOOLING_ANNOTATION, &ours.to_string())]),
            Reading::Unfinished(ours)
        );
    }

    #[test]
    fn the_deprecated_list_is_read_only_where_the_new_one_is_absent() {
        let tooling = (TOOLING_ANNOTATION, "kubectl/v1.27.0");
        let old = (GROUP_RESOURCES_ANNOTATION, "configmaps,deployments.apps");
        let kinds = |reading| match reading {
            Reading::Parent(applyset_record) => applyset_record.kinds,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            kinds(read_pairs(&[(ID_LABEL, ID)], &[tooling, old])),
            RecordedKinds::GroupResources(BTreeSet::from([
                ("configmaps".to_owned(), String::new()),
                ("deployments".to_owned(), "apps".to_owned()),
            ]))
        );
        assert_eq!(
            kinds(read_pairs(
                &[(ID_LABEL, ID)],
                &[tooling, old, (GROUP_KINDS_ANNOTATION, "")]
            )),
            RecordedKinds::GroupKinds(BTreeSet::new())
        );
    }

    #[test]
    fn all_faults_are_found_together() {
        let tooling = (TOOLING_ANNOTATION, "kubectl/v1.36.3");
        let kinds = (GROUP_KINDS_ANNOTATION, "ConfigMap");

        let table: [Case; 8] = [
            (&[], &[tooling, kinds], 1),
            (&[(ID_LABEL, "applyset-other-v1")], &[tooling, kinds], 1),
            (&[(ID_LABEL, "v2.xyz")], &[tooling, kinds], 1),
            (&[(ID_LABEL, ID)], &[kinds], 1),
            (&[(ID_LABEL, ID)], &[(TOOLING_ANNOTATION, ""), kinds], 1),
            (&[(ID_LABEL, ID)], &[tooling], 1),
            (&[(ID_LABEL, ID)], &[tooling, (GROUP_KINDS_ANNOTATION, "v2:x")], 1),
            (
                &[(ID_LABEL, "x")],
                &[(ADDITIONAL_NAMESPACES_ANNOTATION, "A b")],
                4,
            ),
        ];
        for (labels, annotations, count) in table {
            match read_pairs(labels, annotations) {
                Reading::Faulty(faults) => assert_eq!(faults.len(), count, "{faults:?}"),
                other => panic!("{labels:?} {annotations:?}: {other:?}"),
            }
        }
    }

    #[test]
    fn keys_of_the_convention_have_its_prefix() {
        for key in [
            PART_OF_LABEL,
            TOOLING_ANNOTATION,
            "applyset.kubernetes.io/anything",
        ] {
            assert!(is_applyset_key(key), "{key}");
        }
        for key in ["kubernetes.io/anything", "applyset.example.com/id", ""] {
            assert!(!is_applyset_key(key), "{key}");
        }
    }

    #[test]
    fn annotations_have_the_limit_of_the_server() {
        assert_eq!(ANNOTATIONS_LIMIT, 262_144);
    }
}
