//! The output of `list`: a document, or a table.

use serde::Serialize;

use super::ErrorDocument;
use super::set_summary::{SetSummary, UNKNOWN, member_count, record_status, reference, runs_in_words};
use crate::cluster::discovery::Discovery;
use crate::error::Error;
use crate::read::found_set::{FoundSet, Visibility};
use crate::report::layout::columns::{columns, fitting_columns};
use crate::report::style::Width;

/// The document of `list`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListDocument {
    /// The sets, by namespace and name.
    pub sets: Vec<SetListing>,
    /// What is wrong with sets, and failed reads.
    pub warnings: Vec<String>,
    error: Option<ErrorDocument>,
}

/// One set of `list`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SetListing {
    #[serde(flatten)]
    summary: SetSummary,
    /// The number of visible members; null if none could be listed.
    members: Option<usize>,
    #[serde(skip)]
    sight: Visibility,
}

impl ListDocument {
    /// The document of these sets.
    pub fn new(sets: Vec<SetListing>, warnings: Vec<String>) -> Self {
        Self {
            sets,
            warnings,
            error: None,
        }
    }

    /// The document of an error.
    pub fn failed(error: &Error) -> Self {
        Self {
            error: Some(error.into()),
            ..Self::new(Vec::new(), Vec::new())
        }
    }
}

impl SetListing {
    /// The entry of a set.
    pub fn new(set: &FoundSet, discovery: &Discovery) -> Self {
        let sight = set.visibility(discovery);
        Self {
            summary: SetSummary::new(set, discovery),
            members: (sight != Visibility::Nothing).then_some(set.members.len()),
            sight,
        }
    }

    /// The name of the parent, as the command line takes it: `secret/web`.
    pub fn reference(&self) -> String {
        reference(&self.summary.set)
    }
}

/// The table of `list`.
pub(in crate::report) fn table(document: &ListDocument, width: Width) -> Vec<String> {
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
    let has_runs = document
        .sets
        .iter()
        .any(|listing| !listing.summary.runs.is_empty());
    if has_runs {
        header.push("RUNS");
    }
    let mut rows: Vec<Vec<String>> = vec![header.into_iter().map(str::to_owned).collect()];
    for listing in &document.sets {
        let running = has_runs.then(|| runs_in_words(&listing.summary.runs));
        rows.push(row(listing, width).into_iter().chain(running).collect());
    }
    match width {
        Width::Usual | Width::Wide => columns(&rows),
        Width::Fitting(width) => fitting_columns(&rows, width, &["TOOLING", "KINDS", "NAMESPACES"]),
    }
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
        (Some(list), Width::Usual | Width::Fitting(_)) => list.len().to_string(),
        (Some(list), Width::Wide) => list.join(","),
    };
    let mut row = vec![
        set.namespace.clone().unwrap_or_default(),
        reference(set),
        member_count(listing.members, listing.sight),
        shown(group_kinds),
        shown(namespaces),
        record_status(state.as_ref()).to_owned(),
        set.tooling.clone().unwrap_or_default(),
    ];
    if width == Width::Wide {
        row.push(set.id.clone().unwrap_or_default());
    }
    row
}
