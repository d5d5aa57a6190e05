//! The output of `view`: a document, a page with the members as a tree, or a table of them.

use std::collections::BTreeMap;

use k8s_openapi::jiff::Timestamp;
use serde::Serialize;

use super::age::age;
use super::columns::columns;
use super::document::ErrorDocument;
use super::runs::runs_in_words;
use super::set_summary::{SetSummary, UNKNOWN, member_count, record_status, reference};
use super::{Loudness, SetDocument, Style};
use crate::cluster::discovery::Discovery;
use crate::compare::status::State;
use crate::error::Error;
use crate::model::identity::GroupKind;
use crate::model::live::Live;
use crate::read::MemberState;
use crate::read::found_set::{FoundSet, Visibility};

/// The document of `view`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ViewDocument {
    #[serde(flatten)]
    summary: SetSummary,
    /// Null if none could be listed.
    members: Option<Vec<MemberDocument>>,
    /// Warnings about the set, and failed reads.
    pub warnings: Vec<String>,
    error: Option<ErrorDocument>,
    #[serde(skip)]
    sight: Visibility,
    #[serde(skip)]
    detail: Detail,
}

/// The detail of each member on the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Detail {
    /// The reason, unless it is Current.
    Reasons,
    /// The reason in any case, and the rule that decided.
    Rules,
}

/// One member of `view`.
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
    /// Its reason.
    reason: String,
    /// The rule that decided its status, or that nothing reports it.
    rule: String,
    /// `metadata.creationTimestamp`; null if it is unknown.
    created: Option<String>,
}

impl ViewDocument {
    /// The document of a set.
    ///
    /// `states` are those of its members, by UID.
    pub fn new(
        set: &FoundSet,
        discovery: &Discovery,
        states: &BTreeMap<String, MemberState>,
        warnings: Vec<String>,
    ) -> Self {
        let sight = set.sight(discovery);
        let member = |live: &Live| MemberDocument::new(live, states.get(&live.uid));
        let members = || set.members.iter().map(member).collect();
        Self {
            summary: SetSummary::new(set, discovery),
            members: (sight != Visibility::Nothing).then(members),
            warnings,
            error: None,
            sight,
            detail: Detail::Reasons,
        }
    }

    /// The same, with this detail.
    #[must_use]
    pub fn as_loud_as(mut self, style: Style) -> Self {
        if style.loudness == Loudness::Verbose {
            self.detail = Detail::Rules;
        }
        self
    }

    /// The document of an error.
    pub fn failed(set: SetDocument, error: &Error) -> Self {
        Self {
            summary: SetSummary {
                set,
                group_kinds: None,
                namespaces: None,
                status: None,
                faults: Vec::new(),
                runs: Vec::new(),
            },
            members: None,
            warnings: Vec::new(),
            error: Some(error.into()),
            sight: Visibility::Nothing,
            detail: Detail::Reasons,
        }
    }

    /// The names of the visible members: `deployment.apps/web`.
    pub fn member_names(&self) -> Vec<String> {
        let members = self.members.iter().flatten();
        members.map(MemberDocument::object_name).collect()
    }
}

impl MemberDocument {
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

/// The set's fields, and its members by namespace and kind.
pub(super) fn page(document: &ViewDocument) -> Vec<String> {
    let mut lines = fields(document);
    let members = document.members.as_deref().unwrap_or_default();
    let now = Timestamp::now();
    // All leaves are aligned, on any branch.
    let leaves: Vec<Vec<String>> = members
        .iter()
        .map(|member| leaf(member, now, document.detail))
        .collect();
    let leaves = columns(&leaves);
    let mut leaves = leaves.into_iter();
    for place in members.chunk_by(|one, other| one.namespace == other.namespace) {
        lines.push(String::new());
        let namespace = place[0].namespace.as_ref();
        lines.push(namespace.map_or_else(
            || "cluster-scoped".to_owned(),
            |namespace| format!("namespace {namespace}"),
        ));
        let kinds: Vec<&[MemberDocument]> = place
            .chunk_by(|one, other| (&one.group, &one.kind) == (&other.group, &other.kind))
            .collect();
        for (index, kind) in kinds.iter().enumerate() {
            let is_last_kind = index + 1 == kinds.len();
            let (branch, trunk) = if is_last_kind {
                ("└─", "   ")
            } else {
                ("├─", "│  ")
            };
            let name = GroupKind::new(&kind[0].group, &kind[0].kind);
            lines.push(format!("{branch} {name}"));
            for (index, _) in kind.iter().enumerate() {
                let twig = if index + 1 == kind.len() {
                    "└─"
                } else {
                    "├─"
                };
                lines.push(format!("{trunk}{twig} {}", leaves.next().unwrap_or_default()));
            }
        }
    }
    lines
}

/// The cells of a member in the tree: name, status, age, and the reason unless it is Current;
/// with rules, the reason in any case and the rule.
fn leaf(member: &MemberDocument, now: Timestamp, detail: Detail) -> Vec<String> {
    let word = member.status.as_str().to_owned();
    let mut leaf = vec![member.name.clone(), word, age(member.created.as_deref(), now)];
    let reason = on_one_line(&member.reason);
    match detail {
        Detail::Rules if member.rule.is_empty() || member.rule == reason => leaf.push(reason),
        Detail::Rules => leaf.push(format!("{reason} [{}]", on_one_line(&member.rule))),
        Detail::Reasons if member.status != State::Current => leaf.push(reason),
        Detail::Reasons => {}
    }
    leaf
}

/// The reason on one line: messages of conditions may have several.
fn on_one_line(reason: &str) -> String {
    reason.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The table of members.
pub(super) fn table(document: &ViewDocument) -> Vec<String> {
    let header = ["NAMESPACE", "NAME", "STATUS", "AGE", "UID", "REASON"];
    let now = Timestamp::now();
    let members = document.members.as_deref().unwrap_or_default();
    let rows = members.iter().map(|member| {
        vec![
            member.namespace.clone().unwrap_or_default(),
            member.object_name(),
            member.status.as_str().to_owned(),
            age(member.created.as_deref(), now),
            member.uid.clone(),
            on_one_line(&member.reason),
        ]
    });
    let header = header.into_iter().map(str::to_owned).collect();
    columns(&std::iter::once(header).chain(rows).collect::<Vec<_>>())
}

fn fields(document: &ViewDocument) -> Vec<String> {
    let ViewDocument { summary, .. } = document;
    let or_none = |list: Option<&Vec<String>>| match list {
        None => UNKNOWN.to_owned(),
        Some(list) if list.is_empty() => "none".to_owned(),
        Some(list) => list.join(", "),
    };
    let in_namespace = summary.set.namespace.as_ref();
    let in_namespace =
        in_namespace.map_or_else(String::new, |namespace| format!(" in namespace {namespace}"));
    let state = std::iter::once(record_status(summary.status.as_ref()));
    let state = state.chain(summary.faults.iter().map(String::as_str));
    let fields = [
        ("Set", reference(&summary.set) + &in_namespace),
        ("Id", summary.set.id.clone().unwrap_or_default()),
        ("Tooling", summary.set.tooling.clone().unwrap_or_default()),
        ("Kinds", or_none(summary.group_kinds.as_ref())),
        ("Namespaces", or_none(summary.namespaces.as_ref())),
        ("Status", state.collect::<Vec<_>>().join("; ")),
        ("Members", members(document)),
    ];
    let running = ("Runs", runs_in_words(&summary.runs));
    let running = Some(running).filter(|_| !summary.runs.is_empty());
    fields
        .into_iter()
        .chain(running)
        .map(|(name, value)| format!("{:<12}{value}", format!("{name}:")))
        .collect()
}

/// `3 (2 Current, 1 InProgress)`
fn members(document: &ViewDocument) -> String {
    let members = document.members.as_deref();
    let count = member_count(members.map(<[_]>::len), document.sight);
    let mut states: BTreeMap<State, usize> = BTreeMap::new();
    for member in members.unwrap_or_default() {
        *states.entry(member.status).or_default() += 1;
    }
    if states.is_empty() {
        return count;
    }
    let states = states
        .into_iter()
        .map(|(state, count)| format!("{count} {}", state.as_str()));
    format!("{count} ({})", states.collect::<Vec<_>>().join(", "))
}
