//! What `list` and `view` print: documents for scripts, a table and a page for people.

use serde::Serialize;

use super::{API_VERSION, SetDocument};
use crate::applyset::parent::Reading;
use crate::discovery::Discovery;
use crate::identity::GroupKind;
use crate::inspect::{FoundSet, Status};
use crate::observe::{Live, Presence};

/// The document of `list`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListDocument {
    /// `kubectl-applyset/v1`
    pub api_version: &'static str,
    /// The sets, by namespace and name.
    pub sets: Vec<SetListing>,
    /// What could not be looked at.
    pub warnings: Vec<String>,
}

/// One set of `list`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SetListing {
    #[serde(flatten)]
    summary: SetSummary,
    /// How many members there are.
    members: usize,
}

/// The document of `view`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ViewDocument {
    api_version: &'static str,
    #[serde(flatten)]
    summary: SetSummary,
    members: Vec<ViewedMember>,
}

/// What `list` and `view` both say of a set.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct SetSummary {
    #[serde(flatten)]
    set: SetDocument,
    group_kinds: Vec<String>,
    namespaces: Vec<String>,
    status: Status,
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

impl SetListing {
    /// What `list` says of a set.
    pub fn new(set: &FoundSet, discovery: &Discovery) -> Self {
        Self {
            summary: SetSummary::new(set, discovery),
            members: set.members.len(),
        }
    }

    /// The name of the parent, as the command line takes it: `secret/web`.
    pub fn reference(&self) -> String {
        reference(&self.summary.set)
    }
}

impl ViewDocument {
    /// What `view` says of a set.
    pub fn new(set: &FoundSet, discovery: &Discovery) -> Self {
        Self {
            api_version: API_VERSION,
            summary: SetSummary::new(set, discovery),
            members: set.members.iter().map(ViewedMember::new).collect(),
        }
    }

    /// The names of the members: `deployment.apps/web`.
    pub fn member_names(&self) -> Vec<String> {
        self.members.iter().map(ViewedMember::object_name).collect()
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
            group_kinds: set
                .record(discovery)
                .group_kinds
                .iter()
                .map(ToString::to_string)
                .collect(),
            namespaces: set.namespaces(discovery).into_iter().collect(),
            status: set.status(discovery),
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

fn status(status: &Status) -> &'static str {
    match status {
        Status::Consistent => "consistent",
        Status::Unfinished => "unfinished",
        Status::InDoubt => "in doubt",
    }
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
    let rows = document.sets.iter().map(|SetListing { summary, members }| {
        [
            summary.set.namespace.clone().unwrap_or_default(),
            reference(&summary.set),
            members.to_string(),
            status(&summary.status).to_owned(),
            summary.set.tooling.clone().unwrap_or_default(),
        ]
    });
    columns(&std::iter::once(header).chain(rows).collect::<Vec<_>>())
}

pub(super) fn page(document: &ViewDocument) -> String {
    let ViewDocument { summary, members, .. } = document;
    let or_none = |list: &[String]| {
        if list.is_empty() {
            "none".to_owned()
        } else {
            list.join(", ")
        }
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
        ("Kinds", or_none(&summary.group_kinds)),
        ("Namespaces", or_none(&summary.namespaces)),
        (
            "Status",
            std::iter::once(status(&summary.status))
                .chain(summary.faults.iter().map(String::as_str))
                .collect::<Vec<_>>()
                .join("; "),
        ),
        ("Members", members.len().to_string()),
    ];
    let mut lines: Vec<String> = fields
        .into_iter()
        .map(|(name, value)| format!("{:<12}{value}", format!("{name}:")))
        .collect();
    for group in members.chunk_by(|one, other| one.namespace == other.namespace) {
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
