//! The parent of a set: its identity, and its ApplySet labels and annotations.
//!
//! Reading is strict: a value that could mean two things is a fault. All faults of a parent are returned together;
//! `plan` decides what a fault means for a run.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::record::{
    InvalidValue, later_format_prefix, parse_group_kinds, parse_group_resources, parse_namespaces,
};
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
pub struct ParentAnnotations {
    /// The tool that manages the set.
    pub tooling: Tooling,
    /// The kinds that members may have.
    pub kinds: RecordedKinds,
    /// The namespaces of members, except the parent's own.
    pub additional_namespaces: BTreeSet<String>,
}

/// The kinds that members may have, in the form that the parent's annotation has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum RecordedKinds {
    /// From `contains-group-kinds`.
    GroupKinds(BTreeSet<GroupKind>),
    /// From the deprecated `contains-group-resources`: pairs of resource and group.
    GroupResources(BTreeSet<(String, String)>),
}

/// The result of reading the ApplySet labels and annotations of an object that may be a parent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reading {
    /// The object is a parent without faults.
    Parent(ParentAnnotations),
    /// The object has none of the labels and annotations of a parent.
    NoRecord,
    /// The object has only the tooling annotation: a run was killed after it had created the parent from its manifest,
    /// and before it wrote the record.
    Unfinished(Tooling),
    /// The object is a parent of a tool that records no kinds.
    Unrecorded(Tooling),
    /// The object has labels and annotations of a parent, but some are missing or invalid.
    Faulty(Vec<ParentFault>),
}

impl Reading {
    /// Returns what a parent without faults says; `None` for any other object.
    pub fn recorded(&self) -> Option<&ParentAnnotations> {
        match self {
            Self::Parent(recorded) => Some(recorded),
            Self::NoRecord | Self::Unfinished(_) | Self::Unrecorded(_) | Self::Faulty(_) => None,
        }
    }

    /// Returns whether a parent without faults names kinds or namespaces that this record lacks. A record in the
    /// deprecated form counts as one that does.
    pub fn records_more_than(&self, record: &Record) -> bool {
        self.recorded()
            .is_some_and(|found| found.record().is_none_or(|found| !record.covers(&found)))
    }
}

impl ParentAnnotations {
    /// Returns the record; `None` if it is in the deprecated form, with resources instead of kinds. No tool writes that
    /// form today.
    pub fn record(&self) -> Option<Record> {
        match &self.kinds {
            RecordedKinds::GroupKinds(group_kinds) => Some(Record {
                group_kinds: group_kinds.clone(),
                additional_namespaces: self.additional_namespaces.clone(),
            }),
            RecordedKinds::GroupResources(_) => None,
        }
    }
}

/// A fault of a parent's ApplySet labels and annotations.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParentFault {
    /// There are annotations of a parent, but not the id label.
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
    /// The id has a later format, such as `v2.…`.
    #[error("label {ID_LABEL} has a newer format ({0}) than this version supports")]
    LaterIdFormat(String),
    /// The tooling annotation is missing.
    #[error("annotation {TOOLING_ANNOTATION} is missing")]
    ToolingMissing,
    /// The tooling annotation cannot be parsed.
    #[error("annotation {TOOLING_ANNOTATION}: {0}")]
    InvalidTooling(#[from] InvalidTooling),
    /// Both `contains-group-kinds` and the deprecated `contains-group-resources` are missing.
    #[error("annotation {GROUP_KINDS_ANNOTATION} is missing")]
    KindsMissing,
    /// The list of kinds, resources or namespaces cannot be parsed.
    #[error("annotation {annotation} {fault}")]
    InvalidValue {
        /// The annotation's key.
        annotation: &'static str,
        /// The fault of its value.
        fault: InvalidValue,
    },
    /// The parent is cluster-scoped and records no namespaces, but a recorded kind is namespaced.
    #[error("the cluster-scoped parent records no namespaces for the namespaced kind {0}")]
    NoNamespaceFor(GroupKind),
    /// The server does not serve a recorded kind, but one with a similar name.
    #[error("annotation {GROUP_KINDS_ANNOTATION} has the entry {entry:?}; probably {meant:?}")]
    MisspelledKind {
        /// The kind as recorded.
        entry: String,
        /// The similar kind that is served.
        meant: String,
    },
}

/// The API server's limit for all annotations of an object, keys and values (apimachinery,
/// `TotalAnnotationSizeLimitB`).
pub const ANNOTATIONS_LIMIT: usize = 256 * 1024;

/// Labels or annotations of an object.
pub type Pairs = BTreeMap<String, String>;

/// Reads the ApplySet labels and annotations of a parent.
pub fn read_labels_and_annotations(
    identity: &ParentIdentity,
    labels: &Pairs,
    annotations: &Pairs,
) -> Reading {
    let id = labels.get(ID_LABEL);
    let has_record = [
        GROUP_KINDS_ANNOTATION,
        GROUP_RESOURCES_ANNOTATION,
        ADDITIONAL_NAMESPACES_ANNOTATION,
    ]
    .iter()
    .any(|key| annotations.contains_key(*key));
    if id.is_none() && !has_record {
        return match annotations
            .get(TOOLING_ANNOTATION)
            .map(|value| Tooling::parse(value))
        {
            Some(Ok(tooling)) => Reading::Unfinished(tooling),
            Some(Err(error)) => Reading::Faulty(vec![error.into()]),
            None => Reading::NoRecord,
        };
    }
    let mut faults: Vec<ParentFault> = find_id_fault(identity, id).into_iter().collect();
    let tooling = value_or_add_fault(&mut faults, read_tooling(annotations));
    if let Some(tooling) = &tooling
        && !has_record
        && faults.is_empty()
        && tooling.records_no_kinds()
    {
        return Reading::Unrecorded(tooling.clone());
    }
    let kinds = value_or_add_fault(&mut faults, read_kinds(annotations));
    let namespaces = value_or_add_fault(&mut faults, read_namespaces(annotations));
    match (tooling, kinds, namespaces) {
        (Some(tooling), Some(kinds), Some(mut additional_namespaces)) if faults.is_empty() => {
            // The parent's own namespace needs no entry; another tool may have written one.
            if let Some(parent_namespace) = &identity.namespace {
                additional_namespaces.remove(parent_namespace);
            }
            Reading::Parent(ParentAnnotations {
                tooling,
                kinds,
                additional_namespaces,
            })
        }
        _ => Reading::Faulty(faults),
    }
}

/// Returns the labels of a parent, as `metadata.labels`.
pub fn labels(id: &ApplySetId) -> Value {
    json!({ ID_LABEL: id.as_str() })
}

/// Returns the annotations of a parent, as `metadata.annotations`.
///
/// An empty list is written as an empty string, as kubectl does. kubectl refuses a parent without
/// `contains-group-kinds`.
pub fn annotations(tooling: &Tooling, record: &Record) -> Value {
    json!({
        TOOLING_ANNOTATION: tooling.to_string(),
        GROUP_KINDS_ANNOTATION: record.group_kinds_value(),
        ADDITIONAL_NAMESPACES_ANNOTATION: record.namespaces_value(),
    })
}

/// Returns whether the key of a label or annotation has the prefix of the ApplySet convention.
pub fn is_applyset_key(key: &str) -> bool {
    key.starts_with(KEY_PREFIX)
}

/// Returns the value of a result, or adds its fault to `faults`.
fn value_or_add_fault<T>(faults: &mut Vec<ParentFault>, result: Result<T, ParentFault>) -> Option<T> {
    result.map_err(|fault| faults.push(fault)).ok()
}

fn find_id_fault(identity: &ParentIdentity, id: Option<&String>) -> Option<ParentFault> {
    let Some(found) = id else {
        return Some(ParentFault::IdMissing);
    };
    if let Some(format) = later_format_prefix(found, '.') {
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
    if let Some(format) = later_format_prefix(value, ':') {
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
        read_labels_and_annotations(&identity(), &pairs(labels), &pairs(annotations))
    }

    #[test]
    fn what_is_written_is_read_back() {
        let mut record = Record::default();
        record.add_kind_and_namespace(&GroupKind::new("apps", "Deployment"), Some("bar"), Some("foo"));
        let to_pairs = |value: Value| serde_json::from_value::<Pairs>(value).expect("a map of strings");
        let reading = read_labels_and_annotations(
            &identity(),
            &to_pairs(labels(&ApplySetId::for_parent(&identity()))),
            &to_pairs(annotations(&Tooling::this_program(), &record)),
        );
        assert_eq!(
            reading,
            Reading::Parent(ParentAnnotations {
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
    fn only_config_sync_may_record_no_kinds() {
        let tooling = Tooling::parse("configsync.gke.io/v1").expect("a valid value");
        let theirs = (TOOLING_ANNOTATION, "configsync.gke.io/v1");
        let id = (ID_LABEL, ID);
        assert_eq!(read_pairs(&[id], &[theirs]), Reading::Unrecorded(tooling));
        for (id, annotations) in [
            ((ID_LABEL, "applyset-another-v1"), &[theirs][..]),
            (id, &[theirs, (ADDITIONAL_NAMESPACES_ANNOTATION, "bar")]),
            (id, &[(TOOLING_ANNOTATION, "kubectl/v1.36.3")]),
            (id, &[(TOOLING_ANNOTATION, "kubectl-applyset/v0.1.0")]),
        ] {
            let read = read_pairs(&[id], annotations);
            assert!(matches!(read, Reading::Faulty(_)), "{id:?} {annotations:?}");
        }
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
