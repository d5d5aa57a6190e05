//! What `list` and `view` print: documents for scripts, a table and a page for people.

use std::collections::BTreeMap;

use serde::Serialize;

use super::document::ErrorDocument;
use super::{API_VERSION, SetDocument, Width};
use crate::cluster::discovery::Discovery;
use crate::compare::status::State;
use crate::error::Error;
use crate::model::applyset::parent::Reading;
use crate::model::identity::GroupKind;
use crate::model::live::Live;
use crate::model::text::one_line;
use crate::read::inspect::{FoundSet, MemberState, Sight, Status};

/// The document of `list`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListDocument {
    api_version: &'static str,
    /// The sets, by namespace and name.
    pub sets: Vec<SetListing>,
    /// What is in doubt, and what could not be looked at.
    pub warnings: Vec<String>,
    error: Option<ErrorDocument>,
}

/// One set of `list`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SetListing {
    #[serde(flatten)]
    summary: SetSummary,
    /// How many members were seen; null where nobody could look.
    members: Option<usize>,
    #[serde(skip)]
    sight: Sight,
}

/// The document of `view`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ViewDocument {
    api_version: &'static str,
    #[serde(flatten)]
    pub(super) summary: SetSummary,
    /// Null where nobody could look.
    pub(super) members: Option<Vec<ViewedMember>>,
    /// What is in doubt, and what could not be looked at.
    pub warnings: Vec<String>,
    error: Option<ErrorDocument>,
    #[serde(skip)]
    pub(super) sight: Sight,
}

/// What `list` and `view` both say of a set.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SetSummary {
    #[serde(flatten)]
    pub(super) set: SetDocument,
    /// Null where the record cannot be read.
    pub(super) group_kinds: Option<Vec<String>>,
    /// Null where the record cannot be read.
    pub(super) namespaces: Option<Vec<String>>,
    /// Null where the set could not be looked at.
    pub(super) status: Option<Status>,
    pub(super) faults: Vec<String>,
}

/// One member of `view`.
#[derive(Debug, Serialize)]
pub(super) struct ViewedMember {
    pub(super) group: String,
    version: String,
    pub(super) kind: String,
    pub(super) namespace: Option<String>,
    pub(super) name: String,
    pub(super) uid: String,
    /// The word of kstatus.
    pub(super) status: State,
    /// Why it is that.
    pub(super) reason: String,
    /// When it was made; null where that is not known.
    pub(super) created: Option<String>,
}

impl ListDocument {
    /// What `list` found.
    pub fn new(sets: Vec<SetListing>, warnings: Vec<String>) -> Self {
        Self {
            api_version: API_VERSION,
            sets,
            warnings,
            error: None,
        }
    }

    /// What there is to say where nothing could be read.
    pub fn failed(error: &Error) -> Self {
        Self {
            error: Some(error.into()),
            ..Self::new(Vec::new(), Vec::new())
        }
    }
}

impl SetListing {
    /// What `list` says of a set.
    pub fn new(set: &FoundSet, discovery: &Discovery) -> Self {
        let sight = set.sight(discovery);
        Self {
            summary: SetSummary::new(set, discovery),
            members: (sight != Sight::Nothing).then_some(set.members.len()),
            sight,
        }
    }

    /// The name of the parent, as the command line takes it: `secret/web`.
    pub fn reference(&self) -> String {
        reference(&self.summary.set)
    }
}

impl ViewDocument {
    /// What `view` says of a set.
    ///
    /// `states` are those of its members, by UID.
    pub fn new(
        set: &FoundSet,
        discovery: &Discovery,
        states: &BTreeMap<String, MemberState>,
        warnings: Vec<String>,
    ) -> Self {
        let sight = set.sight(discovery);
        let member = |live: &Live| ViewedMember::new(live, states.get(&live.uid));
        let members = || set.members.iter().map(member).collect();
        Self {
            api_version: API_VERSION,
            summary: SetSummary::new(set, discovery),
            members: (sight != Sight::Nothing).then(members),
            warnings,
            error: None,
            sight,
        }
    }

    /// What there is to say where the set could not be looked at.
    pub fn failed(set: SetDocument, error: &Error) -> Self {
        Self {
            api_version: API_VERSION,
            summary: SetSummary {
                set,
                group_kinds: None,
                namespaces: None,
                status: None,
                faults: Vec::new(),
            },
            members: None,
            warnings: Vec::new(),
            error: Some(error.into()),
            sight: Sight::Nothing,
        }
    }

    /// The names of the members that were seen: `deployment.apps/web`.
    pub fn member_names(&self) -> Vec<String> {
        let members = self.members.iter().flatten();
        members.map(ViewedMember::object_name).collect()
    }
}

impl SetSummary {
    fn new(set: &FoundSet, discovery: &Discovery) -> Self {
        let (tooling, faults) = match &set.reading {
            Reading::Parent(bookkeeping) => (Some(bookkeeping.tooling.to_string()), Vec::new()),
            Reading::Unfinished(tooling) => (Some(tooling.to_string()), Vec::new()),
            Reading::Faulty(faults) => (None, faults.iter().map(ToString::to_string).collect()),
            Reading::NoBookkeeping => (None, vec!["it has no bookkeeping".to_owned()]),
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
        }
    }
}

impl ViewedMember {
    fn new(live: &Live, state: Option<&MemberState>) -> Self {
        let readiness = state.map(|state| &state.readiness);
        Self {
            group: live.resource.group.clone(),
            version: live.resource.version.clone(),
            kind: live.resource.kind.clone(),
            namespace: live.key.namespace.clone(),
            name: live.key.name.clone(),
            uid: live.uid.clone(),
            status: readiness.map_or(State::Unknown, |readiness| readiness.state),
            reason: readiness.map_or_else(String::new, |readiness| readiness.reason.clone()),
            created: state.and_then(|state| state.created.clone()),
        }
    }

    pub(super) fn object_name(&self) -> String {
        GroupKind::new(&self.group, &self.kind).object_name(&self.name)
    }
}

/// What people read where nobody knows.
pub(super) const UNKNOWN: &str = "?";

pub(super) fn status(status: Option<&Status>) -> &'static str {
    match status {
        Some(Status::Consistent) => "consistent",
        Some(Status::Unfinished) => "unfinished",
        Some(Status::InDoubt) => "in doubt",
        None => UNKNOWN,
    }
}

/// `3`, or `3+` where there may be more.
pub(super) fn member_count(members: Option<usize>, sight: Sight) -> String {
    let more = if sight == Sight::Part { "+" } else { "" };
    members.map_or_else(|| UNKNOWN.to_owned(), |count| format!("{count}{more}"))
}

/// The name of a set's parent as the command line takes it: `secret/web`.
pub(super) fn reference(set: &SetDocument) -> String {
    let kind = set.kind.as_deref().unwrap_or_default().to_lowercase();
    match set.group.as_deref() {
        Some("") | None => format!("{kind}/{}", set.name),
        Some(group) => format!("{kind}.{group}/{}", set.name),
    }
}

pub(super) fn table(document: &ListDocument, width: Width) -> Vec<String> {
    let mut header = vec![
        "NAMESPACE",
        "SET",
        "MEMBERS",
        "KINDS",
        "NAMESPACES",
        "STATUS",
        "TOOLING",
    ];
    if width == Width::Wide {
        header.push("ID");
    }
    let mut rows = vec![header.into_iter().map(str::to_owned).collect()];
    rows.extend(document.sets.iter().map(|listing| row(listing, width)));
    columns(&rows)
}

fn row(listing: &SetListing, width: Width) -> Vec<String> {
    let SetSummary {
        set,
        group_kinds,
        namespaces,
        status: state,
        ..
    } = &listing.summary;
    let shown = |list: &Option<Vec<String>>| match (list, width) {
        (None, _) => UNKNOWN.to_owned(),
        (Some(list), Width::Usual) => list.len().to_string(),
        (Some(list), Width::Wide) => list.join(","),
    };
    let mut row = vec![
        set.namespace.clone().unwrap_or_default(),
        reference(set),
        member_count(listing.members, listing.sight),
        shown(group_kinds),
        shown(namespaces),
        status(state.as_ref()).to_owned(),
        set.tooling.clone().unwrap_or_default(),
    ];
    if width == Width::Wide {
        row.push(set.id.clone().unwrap_or_default());
    }
    row
}

/// Left-aligned columns, three blanks apart, as kubectl prints tables.
pub(super) fn columns(rows: &[Vec<String>]) -> Vec<String> {
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.iter().map(|cell| one_line(cell)).collect())
        .collect();
    let count = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..count).map(width).collect();
    rows.iter()
        .map(|row| {
            let cells: Vec<String> = row
                .iter()
                .zip(&widths)
                .map(|(cell, width)| format!("{cell:width$}"))
                .collect();
            cells.join("   ").trim_end().to_owned()
        })
        .collect()
}
