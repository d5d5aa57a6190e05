//! What `list` and `view` print: documents for scripts, a table and a page for people.

use serde::Serialize;

use super::document::ErrorDocument;
use super::{API_VERSION, SetDocument};
use crate::applyset::parent::Reading;
use crate::discovery::Discovery;
use crate::error::Error;
use crate::identity::GroupKind;
use crate::inspect::{FoundSet, Sight, Status};
use crate::observe::{Live, Presence};

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
    summary: SetSummary,
    /// Null where nobody could look.
    members: Option<Vec<ViewedMember>>,
    /// What is in doubt, and what could not be looked at.
    pub warnings: Vec<String>,
    error: Option<ErrorDocument>,
    #[serde(skip)]
    sight: Sight,
}

/// What `list` and `view` both say of a set.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct SetSummary {
    #[serde(flatten)]
    set: SetDocument,
    /// Null where the record cannot be read.
    group_kinds: Option<Vec<String>>,
    /// Null where the record cannot be read.
    namespaces: Option<Vec<String>>,
    /// Null where the set could not be looked at.
    status: Option<Status>,
    faults: Vec<String>,
}

/// One member of `view`.
#[derive(Debug, Serialize)]
struct ViewedMember {
    group: String,
    version: String,
    kind: String,
    namespace: Option<String>,
    name: String,
    uid: String,
    status: Presence,
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
    pub fn new(set: &FoundSet, discovery: &Discovery, warnings: Vec<String>) -> Self {
        let sight = set.sight(discovery);
        let members = || set.members.iter().map(ViewedMember::new).collect();
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
    fn new(live: &Live) -> Self {
        Self {
            group: live.resource.group.clone(),
            version: live.resource.version.clone(),
            kind: live.resource.kind.clone(),
            namespace: live.key.namespace.clone(),
            name: live.key.name.clone(),
            uid: live.uid.clone(),
            status: live.presence,
        }
    }

    fn object_name(&self) -> String {
        GroupKind::new(&self.group, &self.kind).object_name(&self.name)
    }
}

/// What people read where nobody knows.
const UNKNOWN: &str = "?";

fn status(status: Option<&Status>) -> &'static str {
    match status {
        Some(Status::Consistent) => "consistent",
        Some(Status::Unfinished) => "unfinished",
        Some(Status::InDoubt) => "in doubt",
        None => UNKNOWN,
    }
}

/// `3`, or `3+` where there may be more.
fn member_count(members: Option<usize>, sight: Sight) -> String {
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

pub(super) fn table(document: &ListDocument) -> String {
    let header = ["NAMESPACE", "SET", "MEMBERS", "STATUS", "TOOLING"].map(str::to_owned);
    let rows = document.sets.iter().map(|listing| {
        let SetSummary {
            set, status: state, ..
        } = &listing.summary;
        [
            set.namespace.clone().unwrap_or_default(),
            reference(set),
            member_count(listing.members, listing.sight),
            status(state.as_ref()).to_owned(),
            set.tooling.clone().unwrap_or_default(),
        ]
    });
    columns(&std::iter::once(header).chain(rows).collect::<Vec<_>>())
}

pub(super) fn page(document: &ViewDocument) -> String {
    let ViewDocument { summary, .. } = document;
    let members = document.members.as_deref();
    let or_none = |list: Option<&Vec<String>>| match list {
        None => UNKNOWN.to_owned(),
        Some(list) if list.is_empty() => "none".to_owned(),
        Some(list) => list.join(", "),
    };
    let home = summary.set.namespace.as_ref();
    let fields = [
        (
            "Set",
            reference(&summary.set)
                + &home.map_or_else(String::new, |namespace| format!(" in namespace {namespace}")),
        ),
        ("Id", summary.set.id.clone().unwrap_or_default()),
        ("Tooling", summary.set.tooling.clone().unwrap_or_default()),
        ("Kinds", or_none(summary.group_kinds.as_ref())),
        ("Namespaces", or_none(summary.namespaces.as_ref())),
        (
            "Status",
            std::iter::once(status(summary.status.as_ref()))
                .chain(summary.faults.iter().map(String::as_str))
                .collect::<Vec<_>>()
                .join("; "),
        ),
        ("Members", member_count(members.map(<[_]>::len), document.sight)),
    ];
    let mut lines: Vec<String> = fields
        .into_iter()
        .map(|(name, value)| format!("{:<12}{value}", format!("{name}:")))
        .collect();
    for group in members
        .unwrap_or_default()
        .chunk_by(|one, other| one.namespace == other.namespace)
    {
        let place = group[0].namespace.as_ref();
        lines.push(String::new());
        lines.push(place.map_or_else(
            || "cluster-scoped".to_owned(),
            |namespace| format!("namespace {namespace}"),
        ));
        lines.extend(group.iter().map(|member| match member.status {
            Presence::Present => format!("  {}", member.object_name()),
            Presence::Terminating => format!("  {} (being deleted)", member.object_name()),
        }));
    }
    lines.join("\n")
}

/// Left-aligned columns, three blanks apart, as kubectl prints tables.
fn columns<const N: usize>(rows: &[[String; N]]) -> String {
    let mut widths = [0; N];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let lines: Vec<String> = rows
        .iter()
        .map(|row| {
            let cells: Vec<String> = row
                .iter()
                .zip(widths)
                .map(|(cell, width)| format!("{cell:width$}"))
                .collect();
            cells.join("   ").trim_end().to_owned()
        })
        .collect();
    lines.join("\n")
}
