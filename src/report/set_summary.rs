//! The fields of a set that `list` and `view` share, and their text.

use serde::Serialize;

use super::SetDocument;
use super::runs::RunUnderWay;
use crate::cluster::discovery::Discovery;
use crate::model::applyset::parent::Reading;
use crate::model::identity::GroupKind;
use crate::read::found_set::{FoundSet, RecordStatus, Visibility};

/// The fields of a set in `list` and `view`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SetSummary {
    #[serde(flatten)]
    pub(super) set: SetDocument,
    /// Null if the record cannot be read.
    pub(super) group_kinds: Option<Vec<String>>,
    /// Null if the record cannot be read.
    pub(super) namespaces: Option<Vec<String>>,
    /// Null if the set could not be read.
    pub(super) status: Option<RecordStatus>,
    pub(super) faults: Vec<String>,
    /// The runs that have not ended.
    pub(super) runs: Vec<RunUnderWay>,
}

impl SetSummary {
    pub(super) fn new(set: &FoundSet, discovery: &Discovery) -> Self {
        let (tooling, faults) = match &set.reading {
            Reading::Parent(applyset_record) => (Some(applyset_record.tooling.to_string()), Vec::new()),
            Reading::Unfinished(tooling) => (Some(tooling.to_string()), Vec::new()),
            Reading::Faulty(faults) => (None, faults.iter().map(ToString::to_string).collect()),
            Reading::NoRecord => (None, vec!["it has no record".to_owned()]),
        };
        Self {
            set: SetDocument {
                id: Some(set.id.to_string()),
                kind: Some(set.identity.group_kind.kind.clone()),
                group: Some(set.identity.group_kind.group.clone()),
                namespace: set.identity.namespace.clone(),
                name: set.identity.name.clone(),
                tooling,
            },
            group_kinds: set.group_kinds(discovery),
            namespaces: set
                .namespaces()
                .map(|namespaces| namespaces.into_iter().collect()),
            status: Some(set.status(discovery)),
            faults,
            runs: RunUnderWay::all_on(set),
        }
    }
}

/// Text for an unknown value.
pub(super) const UNKNOWN: &str = "?";

pub(super) fn record_status(status: Option<&RecordStatus>) -> &'static str {
    match status {
        Some(RecordStatus::Consistent) => "consistent",
        Some(RecordStatus::Unfinished) => "unfinished",
        Some(RecordStatus::Invalid) => "invalid",
        Some(RecordStatus::Unknown) => "unknown",
        None => UNKNOWN,
    }
}

/// `3`, or `3+` if there may be more.
pub(super) fn member_count(members: Option<usize>, sight: Visibility) -> String {
    let more = if sight == Visibility::Part { "+" } else { "" };
    members.map_or_else(|| UNKNOWN.to_owned(), |count| format!("{count}{more}"))
}

/// The name of a set's parent as the command line takes it: `secret/web`.
pub(super) fn reference(set: &SetDocument) -> String {
    let group = set.group.as_deref().unwrap_or_default();
    GroupKind::new(group, set.kind.as_deref().unwrap_or_default()).object_name(&set.name)
}
