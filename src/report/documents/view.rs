//! The output of `view`: a document, a page with the members as a tree, or a table of the members.

use std::collections::BTreeMap;
use std::iter;

use k8s_openapi::jiff::Timestamp;
use serde::Serialize;

use super::set_summary::{SetSummary, UNKNOWN, format_age};
use super::{ErrorDocument, Listing, RunEnd, SetDocument};
use crate::cluster::discovery::Discovery;
use crate::compare::status::State;
use crate::error::Error;
use crate::event::Awaited;
use crate::model::identity::GroupKind;
use crate::model::live::Live;
use crate::model::text::escape_as_one_line;
use crate::read::MemberState;
use crate::read::found_set::{FoundSet, Visibility};
use crate::report::layout::paint::{NameColumn, wrap};
use crate::report::layout::plan_rows::widest;
use crate::report::layout::tables::align_columns;
use crate::report::reporter::Reporter;
use crate::report::style::{Format, Style, Verbosity};

/// The width of the column of field names.
const FIELD_WIDTH: usize = 12;
/// The width of the two branches before a member of the tree.
const TREE_WIDTH: usize = 6;

/// The document of `view`.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ViewDocument {
    #[serde(flatten)]
    summary: SetSummary,
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
    group: String,
    version: String,
    kind: String,
    namespace: Option<String>,
    name: String,
    uid: String,
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
            members,
            waiting: None,
            warnings,
            error: None,
        }
    }

    /// Adds what a wait has reported, and removes its progress. A member that has failed by its Pods is shown as the
    /// wait has judged it: the members themselves do not show that.
    #[must_use]
    pub fn with_wait(mut self, reporter: Reporter) -> Self {
        let wait = reporter.finish_wait();
        self.warnings.extend(wait.warnings);
        let waiting = wait.waiting.unwrap_or_default();
        for member in self.members.iter_mut().flatten() {
            member.correct_by_wait(&waiting);
        }
        Self {
            waiting: Some(waiting),
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
    /// Returns the page of the set, or the table of its members with `-o wide`.
    fn lines(&self, style: Style) -> Vec<String> {
        match style.format {
            Format::Wide => members_table(self.members.iter().flatten()),
            _ => page_lines(self, style),
        }
    }

    /// The names of the visible members: `deployment.apps/web`.
    fn names(&self) -> Vec<String> {
        let members = self.members.iter().flatten();
        members.map(MemberDocument::object_name).collect()
    }
}

impl MemberDocument {
    /// Replaces the status of a member that is in progress if the wait has found that it has failed.
    fn correct_by_wait(&mut self, waiting: &[Awaited]) {
        let failed = waiting.iter().find(|awaited| {
            let subject = &awaited.subject;
            awaited.status == State::Failed && subject.uid.as_deref() == Some(self.uid.as_str())
        });
        if let Some(failed) = failed.filter(|_| self.status == State::InProgress) {
            self.status = State::Failed;
            self.reason.clone_from(&failed.reason);
            "Pods of the newest revision".clone_into(&mut self.rule);
        }
    }

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
            rule: readiness.map_or_else(String::new, |readiness| readiness.rule.to_string()),
            created: state.and_then(|state| state.created.clone()),
        }
    }

    fn object_name(&self) -> String {
        GroupKind::new(&self.group, &self.kind).object_name(&self.name)
    }
}

/// Returns the lines of the set's fields, then the tree of its members by namespace and kind.
fn page_lines(document: &ViewDocument, style: Style) -> Vec<String> {
    let columns = style.output.max_line_width();
    let mut lines = field_lines(document, columns);
    let members = document.members.as_deref().unwrap_or_default();
    let mut leaves = member_leaves(members, style.verbosity, columns.saturating_sub(TREE_WIDTH)).into_iter();
    for in_namespace in members.chunk_by(|one, other| one.namespace == other.namespace) {
        lines.push(String::new());
        lines.push(match &in_namespace[0].namespace {
            Some(namespace) => format!("namespace {namespace}"),
            None => "cluster-scoped".to_owned(),
        });
        let mut kinds = Vec::new();
        for of_kind in
            in_namespace.chunk_by(|one, other| (&one.group, &one.kind) == (&other.group, &other.kind))
        {
            let members = to_branches(leaves.by_ref().take(of_kind.len()).collect());
            let name = GroupKind::new(&of_kind[0].group, &of_kind[0].kind).to_string();
            kinds.push(iter::once(name).chain(members).collect());
        }
        lines.extend(to_branches(kinds));
    }
    lines
}

/// Draws blocks of lines as branches of a tree.
fn to_branches(blocks: Vec<Vec<String>>) -> Vec<String> {
    let count = blocks.len();
    let mut lines = Vec::new();
    for (number, block) in blocks.into_iter().enumerate() {
        let [first, below] = if number + 1 == count {
            ["└─ ", "   "]
        } else {
            ["├─ ", "│  "]
        };
        for (index, line) in block.into_iter().enumerate() {
            lines.push(format!("{}{line}", if index == 0 { first } else { below }));
        }
    }
    lines
}

/// Returns the lines of each member: name, status, age, and the reason. They are aligned across all branches of the
/// tree. A reason that does not fit into the line of its member is on the lines below.
fn member_leaves(members: &[MemberDocument], verbosity: Verbosity, room: usize) -> Vec<Vec<String>> {
    let now = Timestamp::now();
    let mut states = Vec::new();
    for member in members {
        let status = member.status.to_string();
        states.push(vec![status, format_age(member.created.as_deref(), now)]);
    }
    let states = align_columns(&states);
    let beside = widest(states.iter().map(String::as_str)) + 3;
    let names = members.iter().map(|member| member.name.as_str());
    let column = NameColumn::new(names, room.saturating_sub(beside));
    let mut heads = Vec::new();
    for (member, state) in members.iter().zip(states) {
        heads.push(vec![column.fit(&member.name), state]);
    }
    let heads = align_columns(&heads);
    let width = widest(heads.iter().map(String::as_str));
    let mut leaves = Vec::new();
    for (head, member) in heads.into_iter().zip(members) {
        let reason = escape_as_one_line(&reason_to_show(member, verbosity));
        leaves.push(if reason.is_empty() {
            vec![head]
        } else if width + 3 + reason.chars().count() <= room {
            vec![format!("{head:width$}   {reason}")]
        } else {
            let mut lines = vec![head];
            let parts = wrap(&reason, room.saturating_sub(2)).into_iter();
            lines.extend(parts.map(|part| format!("  {part}")));
            lines
        });
    }
    leaves
}

/// Returns the reason of the member's status: empty for a member that is Current, unless `-v` is set. With `-v`, adds
/// the rule.
fn reason_to_show(member: &MemberDocument, verbosity: Verbosity) -> String {
    let reason = without_line_breaks(&member.reason);
    match verbosity {
        Verbosity::Verbose if member.rule.is_empty() || member.rule == reason => reason,
        Verbosity::Verbose => format!("{reason} [{}]", without_line_breaks(&member.rule)),
        _ if member.status != State::Current => reason,
        _ => String::new(),
    }
}

/// Joins the lines of a reason: it may be the message of a condition, which may have several lines.
fn without_line_breaks(reason: &str) -> String {
    reason.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the table of members.
fn members_table<'m>(members: impl Iterator<Item = &'m MemberDocument>) -> Vec<String> {
    let header = ["NAMESPACE", "NAME", "STATUS", "AGE", "UID", "REASON"];
    let now = Timestamp::now();
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    for member in members {
        rows.push(vec![
            member.namespace.clone().unwrap_or_default(),
            member.object_name(),
            member.status.to_string(),
            format_age(member.created.as_deref(), now),
            member.uid.clone(),
            without_line_breaks(&member.reason),
        ]);
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

fn field_lines(document: &ViewDocument, columns: usize) -> Vec<String> {
    let summary = &document.summary;
    let mut set = summary.set.reference();
    if let Some(namespace) = &summary.set.namespace {
        set.extend([" in namespace ", namespace]);
    }
    let mut status = vec![summary.record_status_word()];
    status.extend(summary.faults.iter().cloned());
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
        let mut name = format!("{name}:");
        for part in wrap(&escape_as_one_line(&value), columns.saturating_sub(FIELD_WIDTH)) {
            lines.push(format!("{name:FIELD_WIDTH$}{part}"));
            name.clear();
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_has_failed_if_the_wait_has_judged_so() {
        use State::{Current, Failed, InProgress};
        let awaited = |status| Awaited {
            subject: crate::event::Subject {
                resource: std::sync::Arc::new(crate::model::resource::Resource::with_regular_names(
                    "apps",
                    "v1",
                    "Deployment",
                    crate::model::resource::Scope::Namespaced,
                )),
                namespace: None,
                name: "web".to_owned(),
                uid: Some("u".to_owned()),
            },
            status,
            reason: "by the wait".to_owned(),
            wait_status: crate::event::WaitStatus::Missed,
        };
        for (before, uid, waited, expected) in [
            (InProgress, "u", Failed, (Failed, "by the wait")),
            (InProgress, "u", InProgress, (InProgress, "as read")),
            (InProgress, "other", Failed, (InProgress, "as read")),
            (Current, "u", Failed, (Current, "as read")),
        ] {
            let mut member = MemberDocument {
                group: "apps".to_owned(),
                version: "v1".to_owned(),
                kind: "Deployment".to_owned(),
                namespace: None,
                name: "web".to_owned(),
                uid: uid.to_owned(),
                status: before,
                reason: "as read".to_owned(),
                rule: String::new(),
                created: None,
            };
            member.correct_by_wait(&[awaited(waited)]);
            assert_eq!(
                (member.status, member.reason.as_str()),
                expected,
                "{before} {waited}"
            );
        }
    }

    #[test]
    fn long_names_and_reasons_do_not_break_the_tree() {
        let member = |end: &str| MemberDocument {
            group: "apps".to_owned(),
            version: "v1".to_owned(),
            kind: "Deployment".to_owned(),
            namespace: Some("shop".to_owned()),
            name: format!("{}-{end}", "long".repeat(20)),
            uid: String::new(),
            status: State::InProgress,
            reason: "some of its Pods are not scheduled, because no node has enough memory".to_owned(),
            rule: String::new(),
            created: None,
        };
        let members = ["blue", "green"].map(member);
        let shown = member_leaves(&members, Verbosity::Normal, 74);
        for (leaf, end) in shown.iter().zip(["-blue ", "-green "]) {
            assert!(leaf[0].contains(end), "{leaf:?}");
            assert!(leaf[1].starts_with("  some of its Pods"), "{leaf:?}");
            assert!(leaf.iter().all(|line| line.chars().count() <= 74), "{leaf:?}");
        }
        let whole = member_leaves(&members, Verbosity::Normal, usize::MAX);
        assert_eq!(whole[0].len(), 1);
        assert!(whole[0][0].starts_with(&members[0].name), "{whole:?}");
        assert_eq!(member_leaves(&members, Verbosity::Verbose, usize::MAX), whole);
    }
}
