//! The output of `view`: a document, or the fields of the set and a table of its members.

use std::collections::BTreeMap;

use k8s_openapi::jiff::Timestamp;
use serde::Serialize;

use super::set_summary::{SetSummary, UNKNOWN, format_age};
use super::{ErrorDocument, Listing, RunEnd, SetDocument};
use crate::cluster::discovery::Discovery;
use crate::compare::status::State;
use crate::error::Error;
use crate::event::{Awaited, Subject};
use crate::model::live::Live;
use crate::read::MemberState;
use crate::read::found_set::{FoundSet, Visibility};
use crate::report::layout::align_columns::align_columns;
use crate::report::layout::paint::cut_middle;
use crate::report::reporter::Reporter;
use crate::report::style::{Format, Style, Verbosity};

/// The width of the column of field names.
const FIELD_WIDTH: usize = 12;

/// The document of `view`.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ViewDocument {
    #[serde(flatten)]
    summary: SetSummary,
    /// Why the set is unfinished, for people.
    #[serde(skip)]
    unused_record: Option<String>,
    /// Null if no collection could be listed.
    members: Option<Vec<MemberDocument>>,
    /// The members that the command has waited for in vain; `None` if it has not waited.
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting: Option<Vec<Awaited>>,
    /// Warnings about the set, and failed reads.
    pub warnings: Vec<String>,
    error: Option<ErrorDocument>,
}

/// A member in the document of `view`.
#[derive(Debug, Serialize)]
struct MemberDocument {
    #[serde(flatten)]
    subject: Subject,
    /// The status of kstatus.
    status: State,
    reason: String,
    /// The rule that decided the status.
    rule: String,
    /// `metadata.creationTimestamp`; null if it is unknown.
    created: Option<String>,
}

impl ViewDocument {
    /// Creates the document of a set. `states` has the status of its members by UID.
    pub fn new(
        set: &FoundSet,
        discovery: &Discovery,
        states: &BTreeMap<String, MemberState>,
        warnings: Vec<String>,
    ) -> Self {
        let summary = SetSummary::new(set, discovery);
        let members = (summary.visibility != Visibility::Nothing).then(|| {
            let members = set.members.iter();
            members
                .map(|live| MemberDocument::new(live, states.get(&live.uid)))
                .collect()
        });
        Self {
            summary,
            unused_record: set.describe_unused_record(discovery),
            members,
            waiting: None,
            warnings,
            error: None,
        }
    }

    /// Adds what a wait has reported, if the command has waited, and removes its progress.
    #[must_use]
    pub fn with_wait(mut self, reporter: Option<Reporter>) -> Self {
        let Some(wait) = reporter.map(Reporter::finish_wait) else {
            return self;
        };
        self.warnings.extend(wait.warnings);
        Self {
            waiting: Some(wait.waiting.unwrap_or_default()),
            error: self
                .error
                .or_else(|| ErrorDocument::new(RunEnd::Complete, &wait.failures)),
            ..self
        }
    }

    /// Returns whether the command has failed.
    pub fn has_error(&self) -> bool {
        self.error.is_some()
    }

    /// Creates the document of a command that failed.
    pub fn from_error(set: SetDocument, error: &Error) -> Self {
        Self {
            summary: SetSummary {
                set,
                ..SetSummary::default()
            },
            error: Some(error.into()),
            ..Self::default()
        }
    }
}

impl Listing for ViewDocument {
    /// Returns the fields of the set and the table of its members; only the table with `-o wide`.
    fn lines(&self, style: Style) -> Vec<String> {
        let table = members_table(self.members.as_deref().unwrap_or_default(), style);
        if style.format == Format::Wide {
            return table;
        }
        let mut lines = field_lines(self);
        lines.extend((!table.is_empty()).then(String::new));
        lines.extend(table);
        lines
    }

    /// The names of the visible members: `deployment.apps/web`.
    fn names(&self) -> Vec<String> {
        let members = self.members.iter().flatten();
        members.map(MemberDocument::object_name).collect()
    }
}

impl MemberDocument {
    fn new(live: &Live, state: Option<&MemberState>) -> Self {
        let readiness = state.map(|state| &state.readiness);
        Self {
            subject: Subject::from_live(live),
            status: readiness.map_or(State::Unknown, |readiness| readiness.state),
            reason: readiness.map_or_else(String::new, |readiness| readiness.reason.clone()),
            rule: readiness.map_or_else(String::new, |readiness| readiness.rule.to_string()),
            created: state.and_then(|state| state.created.clone()),
        }
    }

    fn object_name(&self) -> String {
        self.subject.key().object_name()
    }
}

/// Returns the reason of the member's status: empty for a member that is Current, unless `-v` or `-o wide` is set. With
/// `-v`, adds the rule.
fn reason_to_show(member: &MemberDocument, style: Style) -> String {
    let reason = without_line_breaks(&member.reason);
    match style.verbosity {
        Verbosity::Verbose if member.rule.is_empty() || member.rule == reason => reason,
        Verbosity::Verbose => format!("{reason} [{}]", without_line_breaks(&member.rule)),
        _ if member.status != State::Current || style.format == Format::Wide => reason,
        _ => String::new(),
    }
}

/// Joins the lines of a reason: it may be the message of a condition, which may have several lines.
fn without_line_breaks(reason: &str) -> String {
    reason.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the table of members; empty without members.
fn members_table(members: &[MemberDocument], style: Style) -> Vec<String> {
    if members.is_empty() {
        return Vec::new();
    }
    let mut header = vec!["NAMESPACE", "NAME", "STATUS", "AGE"];
    header.extend((style.format == Format::Wide).then_some("UID"));
    header.push("REASON");
    let now = Timestamp::now();
    // The reason may be longer than the line, but names must not take all of it.
    let name_width = style.table_width() / 2;
    let mut rows = vec![header.into_iter().map(str::to_owned).collect()];
    for member in members {
        let mut row = vec![
            member.subject.namespace.clone().unwrap_or_default(),
            cut_middle(&member.object_name(), name_width),
            member.status.to_string(),
            format_age(member.created.as_deref(), now),
        ];
        row.extend((style.format == Format::Wide).then(|| member.subject.uid.clone().unwrap_or_default()));
        row.push(reason_to_show(member, style));
        rows.push(row);
    }
    align_columns(&rows)
}

/// Joins names; `None` if they are not known.
fn names_or_none(names: Option<&[String]>) -> String {
    match names {
        None => UNKNOWN.to_owned(),
        Some([]) => "none".to_owned(),
        Some(names) => names.join(", "),
    }
}

fn field_lines(document: &ViewDocument) -> Vec<String> {
    let summary = &document.summary;
    let mut set = summary.set.reference();
    if let Some(namespace) = &summary.set.namespace {
        set.extend([" in namespace ", namespace]);
    }
    let mut status = vec![summary.record_status_word()];
    status.extend(summary.faults.iter().chain(&document.unused_record).cloned());
    let mut fields = vec![
        ("Set", set),
        ("Id", summary.set.id.clone().unwrap_or_default()),
        ("Tooling", summary.set.tooling.clone().unwrap_or_default()),
        ("Kinds", names_or_none(summary.group_kinds.as_deref())),
        ("Namespaces", names_or_none(summary.namespaces.as_deref())),
        ("Status", status.join("; ")),
        ("Members", describe_member_counts(document)),
    ];
    if let Some(run) = &summary.last_run {
        fields.push(("Last run", summary.describe_last_run()));
        fields.extend(run.message.clone().map(|message| ("Message", message)));
    }
    fields.extend(summary.expires.clone().map(|expires| ("Expires", expires)));
    let mut lines = Vec::new();
    for (name, value) in fields {
        let name = format!("{name}:");
        lines.push(format!("{name:FIELD_WIDTH$}{value}"));
    }
    lines
}

/// `3 (2 Current, 1 InProgress)`
fn describe_member_counts(document: &ViewDocument) -> String {
    let members = document.members.as_deref();
    let count = document.summary.member_count_text(members.map(<[_]>::len));
    let mut states: BTreeMap<State, usize> = BTreeMap::new();
    for member in members.unwrap_or_default() {
        *states.entry(member.status).or_default() += 1;
    }
    if states.is_empty() {
        return count;
    }
    let states = states
        .into_iter()
        .map(|(state, count)| format!("{count} {state}"));
    format!("{count} ({})", states.collect::<Vec<_>>().join(", "))
}
