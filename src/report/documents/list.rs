//! The output of `list`: a document, or a table.

use serde::Serialize;

use super::set_summary::{SetSummary, UNKNOWN};
use super::{ErrorDocument, Listing};
use crate::cluster::discovery::Discovery;
use crate::error::Error;
use crate::read::found_set::{FoundSet, Visibility};
use crate::report::layout::align_columns::format_table;
use crate::report::style::{Format, Style};

/// The document of `list`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListDocument {
    /// The sets, sorted by namespace and name.
    pub sets: Vec<SetListing>,
    /// Warnings about inconsistent sets and about failed reads.
    pub warnings: Vec<String>,
    error: Option<ErrorDocument>,
}

/// A set in the document of `list`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SetListing {
    #[serde(flatten)]
    summary: SetSummary,
    /// The number of visible members; null if none could be listed.
    members: Option<usize>,
}

impl ListDocument {
    pub fn new(sets: Vec<SetListing>, warnings: Vec<String>) -> Self {
        Self {
            sets,
            warnings,
            error: None,
        }
    }

    /// Creates the document of a command that failed.
    pub fn from_error(error: &Error) -> Self {
        Self {
            error: Some(error.into()),
            ..Self::new(Vec::new(), Vec::new())
        }
    }
}

impl SetListing {
    pub fn new(set: &FoundSet, discovery: &Discovery) -> Self {
        let summary = SetSummary::new(set, discovery);
        Self {
            members: (summary.visibility != Visibility::Nothing).then_some(set.members.len()),
            summary,
        }
    }

    fn row(&self, format: Format) -> Vec<String> {
        let SetSummary {
            set,
            group_kinds,
            namespaces,
            ..
        } = &self.summary;
        let list_or_count = |list: &Option<Vec<String>>| match list {
            None => UNKNOWN.to_owned(),
            Some(list) if format == Format::Wide => list.join(","),
            Some(list) => list.len().to_string(),
        };
        let mut row = vec![
            set.namespace.clone().unwrap_or_default(),
            set.reference(),
            self.summary.member_count_text(self.members),
            list_or_count(group_kinds),
            list_or_count(namespaces),
            self.summary.record_status_word(),
            set.tooling.clone().unwrap_or_default(),
        ];
        row.extend((format == Format::Wide).then(|| set.id.clone().unwrap_or_default()));
        row.push(self.summary.describe_last_run());
        row.extend((format == Format::Wide).then(|| self.summary.expires.clone().unwrap_or_default()));
        row
    }
}

impl Listing for ListDocument {
    fn lines(&self, style: Style) -> Vec<String> {
        let mut header = vec![
            "NAMESPACE",
            "SET",
            "MEMBERS",
            "KINDS",
            "NAMESPACES",
            "STATUS",
            "TOOLING",
        ];
        header.extend((style.format == Format::Wide).then_some("ID"));
        header.push("LAST RUN");
        header.extend((style.format == Format::Wide).then_some("EXPIRES"));
        let mut rows: Vec<Vec<String>> = vec![header.into_iter().map(str::to_owned).collect()];
        for listing in &self.sets {
            rows.push(listing.row(style.format));
        }
        format_table(rows, style.table_width(), &["TOOLING", "KINDS", "NAMESPACES"])
    }

    fn names(&self) -> Vec<String> {
        let sets = self.sets.iter();
        sets.map(|listing| listing.summary.set.reference()).collect()
    }
}
