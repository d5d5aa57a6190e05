//! `diff` at a terminal: a summary, the changes by namespace, and last the prunes.
//!
//! Pure: differences in, lines out. Only the full text has the bodies of new and pruned objects, and
//! defaults.

mod entry;
mod fields;
mod text;

use std::collections::BTreeMap;

use entry::{Entry, Sign};

use super::diff::{Comparison, Differences, RecordChange};
use super::paint::{Color, Line, NameColumn, fitted};
use super::prompt_screen;
use super::renames::Renames;
use crate::event::{Action, Claims, ObjectOutcome};
use crate::model::identity::ObjectKey;
use crate::model::text::counted;
use crate::plan::{Refusal, loses_data};

/// The widest column of names.
const NAME: usize = 36;

/// The hint at the end of the last line.
const FULL: &str = "full text: --full";

/// The lines of the screen, below this header.
pub(super) fn lines(header: Line, found: &Differences, columns: usize) -> Vec<Line> {
    let entries = Entries::of(found);
    let mut lines = vec![header, entries.plan(found)];
    for (namespace, mut entries) in entries.by_namespace() {
        entries.sort_by(|one, other| (one.sign, &one.name).cmp(&(other.sign, &other.name)));
        lines.push(Line::default());
        let title = namespace.unwrap_or("cluster-scoped");
        lines.push(Line::new(Color::Cyan, title));
        let width = width_of(entries.iter().map(|entry| entry.name.as_str()));
        for entry in entries {
            lines.extend(entry.lines(width, columns));
        }
    }
    lines.push(Line::default());
    lines.extend(entries.pruned(columns));
    lines.push(last(&found.record, columns));
    lines
}

fn width_of<'n>(names: impl Iterator<Item = &'n str>) -> usize {
    let widths = names.map(|name| name.chars().count());
    widths.max().unwrap_or_default().min(NAME)
}

/// The changes of a run, sorted out.
struct Entries<'a> {
    changes: Vec<Entry<'a>>,
    pruned: Vec<&'a Comparison>,
    renamed: usize,
    /// The refusals to prune, by object.
    refused: BTreeMap<&'a ObjectKey, &'a Refusal>,
}

impl<'a> Entries<'a> {
    fn of(found: &'a Differences) -> Self {
        let with = |action| {
            let objects = found.objects.iter();
            objects.filter(move |object| object.outcome.action == action)
        };
        let Renames {
            pairs,
            mut pruned,
            created,
        } = Renames::of(&found.objects);
        let mut changes: Vec<Entry> = pairs.iter().map(|(old, new)| Entry::renamed(old, new)).collect();
        changes.extend(
            created
                .into_iter()
                .map(|object| Entry::new(Sign::Created, object)),
        );
        changes.extend(with(Action::Configured).map(|object| Entry::new(Sign::Changed, object)));
        changes.extend(with(Action::Recreated).map(|object| Entry::new(Sign::Recreated, object)));
        let refused = refused(found);
        let (unpruned, failed): (Vec<_>, Vec<_>) =
            with(Action::Failed).partition(|object| refused.contains_key(&object.outcome.subject.key()));
        pruned.extend(unpruned);
        changes.extend(failed.into_iter().map(|object| Entry::new(Sign::Failed, object)));
        changes.extend(found.parent.as_ref().and_then(Entry::parent));
        Self {
            changes,
            pruned,
            renamed: pairs.len(),
            refused,
        }
    }

    /// `Plan: +2 create  ~3 change  -4 PRUNE  (25 unchanged)`
    fn plan(&self, found: &Differences) -> Line {
        let count = |sign| {
            let entries = self.changes.iter().filter(|entry| entry.is_member);
            entries.filter(|entry| entry.sign == sign).count()
        };
        let counts = [
            (count(Sign::Created) + self.renamed, Color::Green, "+", "create"),
            (count(Sign::Changed), Color::Yellow, "~", "change"),
            (count(Sign::Recreated), Color::Danger, "±", "RECREATE"),
            (self.pruned.len() + self.renamed, Color::Danger, "-", "PRUNE"),
            (count(Sign::Failed), Color::Danger, "x", "FAIL"),
        ];
        let mut line = Line::new(Color::Plain, "Plan: ");
        let mut is_first = true;
        for (count, color, sign, word) in counts.into_iter().filter(|(count, ..)| *count > 0) {
            line.push(Color::Plain, if is_first { "" } else { "  " });
            line.push(color, format!("{sign}{count} {word}"));
            is_first = false;
        }
        if is_first {
            line.push(Color::Plain, "no changes to members");
        }
        let with = |action| {
            let objects = found.objects.iter();
            objects.filter(|object| object.outcome.action == action).count()
        };
        let others = [
            (self.renamed, "renamed"),
            (with(Action::Unchanged), "unchanged"),
            (with(Action::Skipped), "kept"),
        ];
        let others = others.into_iter().filter(|(count, _)| *count > 0);
        let others: Vec<String> = others.map(|(count, word)| format!("{count} {word}")).collect();
        if others.is_empty() {
            line
        } else {
            line.with(Color::Plain, format!("  ({})", others.join(", ")))
        }
    }

    /// Cluster-scoped objects first.
    fn by_namespace(&self) -> BTreeMap<Option<&str>, Vec<&Entry<'a>>> {
        let mut groups: BTreeMap<Option<&str>, Vec<&Entry>> = BTreeMap::new();
        for entry in &self.changes {
            groups.entry(entry.namespace.as_deref()).or_default().push(entry);
        }
        groups
    }

    fn pruned(&self, columns: usize) -> Vec<Line> {
        if self.pruned.is_empty() {
            return Vec::new();
        }
        let title = "PRUNE: removed from the manifests, will be deleted";
        let mut lines = vec![Line::new(Color::Danger, title)];
        let row = |object: &&Comparison| {
            let key = object.outcome.subject.key();
            let refusal = self.refused.get(&key);
            let warning = match refusal {
                Some(refusal) => prompt_screen::warning(refusal),
                None => loss(&key).unwrap_or_default().to_owned(),
            };
            let name = key.group_kind.object_name(&key.name);
            (warning.is_empty(), key.namespace, name, warning)
        };
        let mut rows: Vec<_> = self.pruned.iter().map(row).collect();
        rows.sort();
        let namespaces = rows.iter().filter_map(|(_, namespace, ..)| namespace.as_deref());
        let namespace_width = width_of(namespaces);
        let warnings = rows.iter().map(|(.., warning)| warning.chars().count());
        let others = 8 + namespace_width + warnings.max().unwrap_or_default();
        let names = rows.iter().map(|(_, _, name, _)| name.as_str());
        let least = NAME.min(columns.saturating_sub(4));
        let column = NameColumn::of(names.clone(), columns.saturating_sub(others).max(least));
        let name_width = width_of(names).min(column.width);
        for (is_harmless, namespace, name, warning) in rows {
            let name = column.fitted(&name);
            let sign = if is_harmless { "  - " } else { "  ! " };
            let place = match namespace {
                Some(namespace) => format!("{name:name_width$}  {namespace:namespace_width$}  "),
                None => format!("{name:name_width$}  "),
            };
            let line = Line::new(Color::Danger, sign).with(Color::Plain, place);
            lines.push(line.with(Color::Danger, warning));
        }
        lines
    }
}

/// The refusals to prune objects, by object.
fn refused(found: &Differences) -> BTreeMap<&ObjectKey, &Refusal> {
    let prunes = found.refusals.iter().filter(|refusal| {
        let is_about_prune = matches!(refusal, Refusal::HoldsDesired { .. } | Refusal::OwnsBound { .. });
        refusal.is_data_loss() || is_about_prune
    });
    prunes
        .filter_map(|refusal| Some((refusal.object()?, refusal)))
        .collect()
}

/// Returns whether data are lost if this object is deleted and created again.
pub(super) fn loses_data_by_recreation(outcome: &ObjectOutcome) -> bool {
    outcome.claims == Claims::Lost || loses_data(&outcome.subject.key().group_kind)
}

/// Returns what is lost with an object of this kind.
pub(super) fn loss(key: &ObjectKey) -> Option<&'static str> {
    match (key.group_kind.group.as_str(), key.group_kind.kind.as_str()) {
        ("", "PersistentVolumeClaim" | "PersistentVolume") => Some("DATA IS LOST"),
        ("", "Namespace") => Some("with everything in it"),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => Some("with all objects of its kind"),
        _ => None,
    }
}

/// `record: no change          full text: --full`
fn last(record: &RecordChange, columns: usize) -> Line {
    let room = columns.saturating_sub(FULL.len() + 2);
    let record = fitted(&format!("record: {}", record_text(record)), room);
    let gap = 10.min(columns.saturating_sub(FULL.len() + record.chars().count()));
    Line::new(Color::Plain, record).with(Color::Dim, format!("{}{FULL}", " ".repeat(gap)))
}

fn record_text(record: &RecordChange) -> String {
    let (before, after) = match (&record.before, &record.after) {
        (_, None) => return "unknown".to_owned(),
        (None, Some(after)) => {
            let kinds = counted(after.group_kinds.len(), "kind");
            return format!("new, {kinds}");
        }
        (Some(before), Some(after)) => (before, after),
    };
    let mut changes = Vec::new();
    let lists = [
        (&before.group_kinds, &after.group_kinds, ""),
        (
            &before.additional_namespaces,
            &after.additional_namespaces,
            "namespace ",
        ),
    ];
    for (before, after, what) in lists {
        let added = after.iter().filter(|name| !before.contains(name));
        changes.extend(added.map(|name| format!("+{what}{name}")));
        let removed = before.iter().filter(|name| !after.contains(name));
        changes.extend(removed.map(|name| format!("-{what}{name}")));
    }
    if before.tooling != after.tooling {
        changes.push(format!("tooling {} -> {}", before.tooling, after.tooling));
    }
    if changes.is_empty() {
        "no change".to_owned()
    } else {
        changes.join("  ")
    }
}

#[cfg(test)]
mod tests;
