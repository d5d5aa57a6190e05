//! The lines of a prompt: the plan, the losses, and the other members that would be deleted, by
//! namespace and kind.
//!
//! Pure.

mod kept;
mod plan_line;
mod recreation;

use std::collections::{BTreeMap, BTreeSet};

use super::paint::{Color, Line, fitted, fitted_name};
use super::plan_view::loss;
use super::prompt::Question;
use super::set_summary::reference;
use crate::model::identity::{GroupKind, ObjectKey};
use crate::model::text::counted;
use crate::plan::{Refusal, copies_released, loses_data};

/// The widest column of names, and of namespaces.
const NAMES: usize = 36;
const NAMESPACE: usize = 16;
/// The room for ` and 123 more`.
const AND_MORE: usize = 13;
/// Limit of objects listed below the one that they are deleted with.
const LISTED: usize = 10;
/// The indentation of these.
const INDENT: &str = "        ";

/// The sign of a consequence.
const WARNED: &str = "  ! ";

/// The answer that confirms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AnswerWanted {
    /// `yes`
    Yes,
    /// One of these names of the set.
    SetName(Vec<String>),
}

impl AnswerWanted {
    pub(super) fn is(&self, answer: &str) -> bool {
        match self {
            Self::Yes => answer == "yes",
            Self::SetName(names) => names.iter().any(|name| name == answer),
        }
    }

    /// Returns the message for another answer.
    pub(super) fn expected(&self) -> String {
        match self {
            Self::Yes => "only `yes` confirms".to_owned(),
            Self::SetName(names) => {
                let name = names.first().map_or("", String::as_str);
                format!("only the set's name confirms: {name}")
            }
        }
    }
}

/// The subject of the first line.
pub(super) fn title(question: &Question) -> String {
    match &question.set {
        Some(set) => super::context_header::title(set),
        None => "records to repair".to_owned(),
    }
}

/// A loss or another consequence that needs consent.
struct Danger {
    /// The object with its namespace; `None` if it is about the run.
    object: Option<ObjectKey>,
    sign: &'static str,
    text: String,
    details: Vec<String>,
}

/// The lines below the header, and the expected answer.
pub(super) fn lines(question: &Question) -> (Vec<Line>, AnswerWanted) {
    let columns = question.device.columns();
    let mut lines = Vec::new();
    lines.extend(plan_line::line(question));
    lines.push(Line::default());
    let dangers = dangers(question);
    let rows = question.device.rows().saturating_sub(10).max(6);
    let named: BTreeSet<&ObjectKey> = dangers
        .iter()
        .filter_map(|danger| danger.object.as_ref())
        .collect();
    let removed = question.outline.iter().flat_map(|outline| &outline.removed);
    let removed = folded(removed.filter(|key| !named.contains(key)));
    let recreated = question.outline.iter().flat_map(|outline| &outline.recreated);
    let recreated = folded(recreated.filter(|key| !named.contains(key)));
    let mut rest: Vec<(Color, &str, String, String)> = Vec::new();
    let mut add = |color, sign, folded: Folded<'_>| {
        for ((namespace, kind), names) in folded {
            let namespace = namespace.unwrap_or_default().to_owned();
            rest.push((color, sign, names_of(kind, &names), namespace));
        }
    };
    add(Color::Danger, "  - ", removed);
    add(Color::Danger, "  ± ", recreated);
    if let Some(outline) = &question.outline {
        add(Color::Yellow, "  ~ ", folded(outline.changed.iter()));
        add(Color::Green, "  + ", folded(outline.created.iter()));
        // Of an inventory, the objects that need consent are listed as a danger.
        let is_listed = |refusal: &Refusal| matches!(refusal, Refusal::ReachesOutside { .. });
        if !question.refusals.iter().any(is_listed) {
            add(Color::Yellow, "  ~ ", folded(outline.relabeled.iter().flatten()));
        }
    }
    let hidden = rest.len().saturating_sub(rows);
    rest.truncate(rows);
    let names = dangers
        .iter()
        .filter_map(|danger| danger.object.as_ref())
        .map(|key| (name(key), key.namespace.clone().unwrap_or_default()));
    let listed = rest
        .iter()
        .map(|(_, _, names, namespace)| (names.clone(), namespace.clone()));
    let all: Vec<(String, String)> = names.chain(listed).collect();
    let width = |text: fn(&(String, String)) -> &String, most| {
        let widths = all.iter().map(|row| text(row).chars().count());
        widths.max().unwrap_or_default().min(most)
    };
    let (name_width, namespace_width) = (width(|row| &row.0, NAMES), width(|row| &row.1, NAMESPACE));
    for danger in &dangers {
        lines.extend(danger.lines(name_width, namespace_width, columns));
    }
    for (color, sign, names, namespace) in rest {
        let line = format!("{names:name_width$}   {namespace}");
        lines.push(
            Line::new(color, sign).with(Color::Plain, fitted(line.trim_end(), columns.saturating_sub(4))),
        );
    }
    if hidden > 0 {
        let more = counted(hidden, "more kind");
        lines.push(Line::new(Color::Plain, format!("    … and objects of {more}")));
    }
    if let Some(outline) = &question.outline {
        lines.extend(kept::lines(&outline.kept, columns));
        lines.extend(recreation::lines(&outline.recreatable, columns));
    }
    (lines, wanted(question))
}

/// Returns the question, and the answer that confirms.
pub(super) fn prompt(question: &Question) -> Line {
    let lossy = data_losses(question);
    let of_these = match lossy {
        0 => String::new(),
        1 => "1 of these loses data. ".to_owned(),
        lossy => format!("{lossy} of these lose data. "),
    };
    match wanted(question) {
        AnswerWanted::Yes => Line::new(Color::Bold, "Continue? Only 'yes' is accepted:"),
        AnswerWanted::SetName(_) => Line::new(Color::Danger, of_these)
            .with(Color::Bold, "Type the set's name to continue, Enter to stop:"),
    }
}

fn data_losses(question: &Question) -> usize {
    let refused = question.refusals.iter().filter(|refusal| refusal.is_data_loss());
    let refused: BTreeSet<&ObjectKey> = refused.filter_map(Refusal::object).collect();
    let outline = || question.outline.iter();
    let removed = outline().flat_map(|outline| &outline.removed);
    let removed = removed.filter(|key| is_storage(&key.group_kind));
    let recreated = outline().flat_map(|outline| &outline.recreated);
    let recreated = recreated.filter(|key| loses_data(&key.group_kind));
    let others = removed.chain(recreated).filter(|key| !refused.contains(key));
    refused.len() + others.count()
}

fn is_storage(kind: &GroupKind) -> bool {
    kind.group.is_empty() && matches!(kind.kind.as_str(), "PersistentVolumeClaim" | "PersistentVolume")
}

/// A loss of data or the deletion of a whole set must not be confirmed by reflex.
fn wanted(question: &Question) -> AnswerWanted {
    let is_grave = |refusal: &Refusal| {
        refusal.is_data_loss() || refusal.is_prune_all() || matches!(refusal, Refusal::DeletesSet { .. })
    };
    match &question.set {
        Some(set) if data_losses(question) > 0 || question.refusals.iter().any(is_grave) => {
            let full = set.kind.as_ref().map(|_| reference(set));
            AnswerWanted::SetName(std::iter::once(set.name.clone()).chain(full).collect())
        }
        _ => AnswerWanted::Yes,
    }
}

fn dangers(question: &Question) -> Vec<Danger> {
    let mut dangers: Vec<Danger> = Vec::new();
    for refusal in &question.refusals {
        dangers.extend(danger(refusal));
    }
    let removed = question.outline.iter().flat_map(|outline| &outline.removed);
    for key in removed {
        let is_named = dangers.iter().any(|danger| danger.object.as_ref() == Some(key));
        if let Some(text) = loss(key).filter(|_| !is_named) {
            dangers.push(Danger {
                object: Some(key.clone()),
                sign: WARNED,
                text: text.to_owned(),
                details: Vec::new(),
            });
        }
    }
    let recreated = question.outline.iter().flat_map(|outline| &outline.recreated);
    dangers.extend(recreated.filter_map(recreation::danger));
    // Losses of data come first.
    dangers.sort_by_key(|danger| {
        danger
            .object
            .as_ref()
            .is_none_or(|key| !is_storage(&key.group_kind))
    });
    dangers
}

/// Returns the consequence that a refusal warns of; `None` if the plan shows it.
fn danger(refusal: &Refusal) -> Option<Danger> {
    let of = |object: Option<&ObjectKey>, text: String, details: Vec<String>| {
        Some(Danger {
            object: object.cloned(),
            sign: WARNED,
            text,
            details,
        })
    };
    match refusal {
        Refusal::PrunesStorage { object, .. } => of(Some(object), "DATA IS LOST".to_owned(), Vec::new()),
        Refusal::HoldsOthers {
            container,
            lost,
            unknown,
            ..
        } => {
            let text = match lost.len() {
                0 => "also deletes what could not be listed:".to_owned(),
                count => format!("also deletes {} not in the set:", counted(count, "object")),
            };
            let unknown = unknown.iter().map(|what| format!("{what} (could not be listed)"));
            let container_name = (container.group_kind == GroupKind::namespace()).then_some(&container.name);
            let details = listed(lost, container_name).into_iter().chain(unknown);
            of(Some(container), text, details.collect())
        }
        Refusal::PrunesParent { object, .. } => {
            let text = "is the parent of another set, whose members are kept";
            of(Some(object), text.to_owned(), Vec::new())
        }
        Refusal::OwnsDependents {
            object, dependents, ..
        } => {
            let text = "its owner references are removed from:".to_owned();
            of(Some(object), text, listed(dependents, None))
        }
        Refusal::DeletesSet { .. } => None,
        Refusal::EmptyManifests { objects } => {
            let text = match objects.len() {
                0 => "no objects in the manifests: check the paths given to -f",
                _ => "no objects in the manifests: all members would be pruned",
            };
            of(None, text.to_owned(), Vec::new())
        }
        Refusal::PrunesAll { .. } => {
            let text = "all members would be pruned: check the directory and the set";
            of(None, text.to_owned(), Vec::new())
        }
        Refusal::ForgetsSet { members, copies, .. } => {
            let members = members_released(*members);
            let mut parts = members.into_iter().chain(copies_released(copies));
            let text = parts.next().unwrap_or_default();
            of(None, text, parts.collect())
        }
        Refusal::RepairsParent { parent, changes } => {
            of(Some(parent), "is changed:".to_owned(), changes.clone())
        }
        Refusal::ReachesOutside {
            inventory, objects, ..
        } => {
            let count = counted(objects.len(), "object");
            let text = format!("inventory {inventory} lists {count} elsewhere:");
            of(None, text, objects.iter().map(ToString::to_string).collect())
        }
        other => of(None, other.to_string(), Vec::new()),
    }
}

/// `2 objects leave the set, but stay in the cluster`
fn members_released(members: usize) -> Option<String> {
    let (leave, stay) = match members {
        0 => return None,
        1 => ("leaves", "stays"),
        _ => ("leave", "stay"),
    };
    let objects = counted(members, "object");
    Some(format!("{objects} {leave} the set, but {stay} in the cluster"))
}

/// Returns what a refusal to delete an object warns of, in a few words.
pub(super) fn warning(refusal: &Refusal) -> String {
    match refusal {
        Refusal::HoldsDesired { desired, .. } => {
            format!("holds {} of the manifests", counted(desired.len(), "object"))
        }
        Refusal::OwnsBound { dependents, .. } | Refusal::OwnsDependents { dependents, .. } => {
            format!("owns {} that must stay", counted(dependents.len(), "object"))
        }
        other => {
            danger(other).map_or_else(String::new, |danger| danger.text.trim_end_matches(':').to_owned())
        }
    }
}

/// Formats the first of these objects, and the number of the others. A namespace that all of them share
/// is left out.
fn listed(objects: &[ObjectKey], namespace: Option<&String>) -> Vec<String> {
    let one = |key: &ObjectKey| {
        if key.namespace.as_ref() == namespace {
            name(key)
        } else {
            key.to_string()
        }
    };
    let more = objects.len().saturating_sub(LISTED);
    let more = (more > 0).then(|| format!("… and {more} more"));
    objects.iter().take(LISTED).map(one).chain(more).collect()
}

impl Danger {
    fn lines(&self, name_width: usize, namespace_width: usize, columns: usize) -> Vec<Line> {
        let line = Line::new(Color::Danger, self.sign);
        let room = columns.saturating_sub(4);
        let mut lines = Vec::new();
        match &self.object {
            Some(key) => {
                let namespace = key.namespace.as_deref().unwrap_or_default();
                let head = match namespace {
                    "" => format!("{:name_width$}   ", name(key)),
                    _ => format!("{:name_width$}   {namespace:namespace_width$}   ", name(key)),
                };
                let length = head.chars().count();
                if length + self.text.chars().count() <= room {
                    lines.push(line.with(Color::Plain, head).with(Color::Danger, &self.text));
                } else {
                    lines.push(line.with(Color::Plain, fitted_name(head.trim_end(), room)));
                    let text = fitted(&self.text, columns.saturating_sub(INDENT.len()));
                    lines.push(Line::new(Color::Danger, format!("{INDENT}{text}")));
                }
            }
            None => {
                for (index, part) in wrapped(&self.text, room).into_iter().enumerate() {
                    let mark = if index == 0 { self.sign } else { "    " };
                    lines.push(Line::new(Color::Danger, mark).with(Color::Plain, part));
                }
            }
        }
        let room = columns.saturating_sub(INDENT.len());
        let details = self.details.iter().flat_map(|detail| wrapped(detail, room));
        lines.extend(details.map(|detail| Line::new(Color::Plain, format!("{INDENT}{detail}"))));
        lines
    }
}

/// Wraps the text to this width at blanks, but not within the backquotes of a command, which is copied.
pub(super) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut is_quoted = false;
    let words = text.split(|character: char| {
        is_quoted ^= character == '`';
        character == ' ' && !is_quoted
    });
    for word in words {
        let used = lines.last().map_or(0, |line| line.chars().count());
        if used > 0 && used + 1 + word.chars().count() > width {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

fn name(key: &ObjectKey) -> String {
    key.group_kind.object_name(&key.name)
}

type Folded<'k> = BTreeMap<(Option<&'k str>, &'k GroupKind), Vec<&'k str>>;

fn folded<'k>(keys: impl Iterator<Item = &'k ObjectKey>) -> Folded<'k> {
    let mut folded = Folded::new();
    for key in keys {
        let place = (key.namespace.as_deref(), &key.group_kind);
        folded.entry(place).or_default().push(&key.name);
    }
    folded
}

/// `deployment.apps/pg, redis and 3 more`
fn names_of(kind: &GroupKind, names: &[&str]) -> String {
    let mut names = names.to_vec();
    names.sort_unstable();
    let all = kind.object_name(&names.join(", "));
    if all.chars().count() <= NAMES {
        return all;
    }
    let mut text = kind.object_name(names.first().copied().unwrap_or_default());
    let mut more = names.len().saturating_sub(1);
    for name in names.iter().skip(1) {
        if text.chars().count() + 2 + name.len() + AND_MORE > NAMES {
            break;
        }
        text.push_str(", ");
        text.push_str(name);
        more -= 1;
    }
    match more {
        0 => text,
        more => format!("{text} and {more} more"),
    }
}

#[cfg(test)]
mod tests;
