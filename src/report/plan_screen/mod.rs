//! `diff` at a terminal: a summary, the changes by namespace, and last the prunes.
//!
//! Pure: differences in, lines out. Only the full text has the bodies of new and pruned objects, and
//! defaults.

mod entry;
mod fields;
mod text;

use std::collections::BTreeMap;

use super::diff::{Differences, RecordChange};
use super::paint::{Color, Line, NameColumn, fitted};
use super::plan_view::{Effect, Entry, PlanView};
use crate::model::text::counted;

/// The widest column of names.
const NAME: usize = 36;

/// The hint at the end of the last line.
const FULL: &str = "full text: --full";

/// The lines of the screen, below this header.
pub(super) fn lines(header: Line, found: &Differences, columns: usize) -> Vec<Line> {
    let view = PlanView::of(found);
    let mut lines = vec![header, plan(&view)];
    let parent = view.parent.iter().filter(|parent| entry::has_fields(parent));
    let (pruned, changed): (Vec<&Entry>, Vec<&Entry>) = view
        .entries
        .iter()
        .chain(parent)
        .partition(|entry| entry.effect == Effect::Pruned);
    for (namespace, entries) in by_namespace(changed) {
        lines.push(Line::default());
        let title = namespace.unwrap_or("cluster-scoped");
        lines.push(Line::new(Color::Cyan, title));
        let width = width_of(entries.iter().map(|(_, name, _)| name.as_str()));
        for (_, name, entry) in entries {
            lines.extend(entry::lines(entry, &name, width, columns));
        }
    }
    lines.push(Line::default());
    lines.extend(prunes(&pruned, columns));
    lines.push(last(&found.record, columns));
    lines
}

/// `Plan: +2 create  ~3 change  -4 PRUNE  (25 unchanged)`
fn plan(view: &PlanView) -> Line {
    let counts = view.counts("kept");
    let mut line = counts.line("PRUNE");
    if counts.effects.is_empty() {
        line.push(Color::Plain, view.no_changes());
    }
    line.with(Color::Plain, counts.in_parentheses())
}

/// Cluster-scoped objects first.
fn by_namespace<'e>(
    entries: Vec<&'e Entry<'e>>,
) -> BTreeMap<Option<&'e str>, Vec<(Effect, String, &'e Entry<'e>)>> {
    let mut groups: BTreeMap<Option<&str>, Vec<_>> = BTreeMap::new();
    for entry in entries {
        let group = groups.entry(entry.key.namespace.as_deref()).or_default();
        group.push((entry.effect, entry.name(), entry));
    }
    for entries in groups.values_mut() {
        entries.sort_by(|(one, a, _), (other, b, _)| (one, a).cmp(&(other, b)));
    }
    groups
}

fn width_of<'n>(names: impl Iterator<Item = &'n str>) -> usize {
    let widths = names.map(|name| name.chars().count());
    widths.max().unwrap_or_default().min(NAME)
}

fn prunes(pruned: &[&Entry], columns: usize) -> Vec<Line> {
    if pruned.is_empty() {
        return Vec::new();
    }
    let title = "PRUNE: removed from the manifests, will be deleted";
    let mut lines = vec![Line::new(Color::Danger, title)];
    let row = |entry: &&Entry| {
        let loss = entry.loss.clone().unwrap_or_default();
        (loss.is_empty(), entry.key.namespace.clone(), entry.name(), loss)
    };
    let mut rows: Vec<_> = pruned.iter().map(row).collect();
    rows.sort();
    let namespaces = rows.iter().filter_map(|(_, namespace, ..)| namespace.as_deref());
    let namespace_width = width_of(namespaces);
    let losses = rows.iter().map(|(.., loss)| loss.chars().count());
    let others = 8 + namespace_width + losses.max().unwrap_or_default();
    let names = rows.iter().map(|(_, _, name, _)| name.as_str());
    let least = NAME.min(columns.saturating_sub(4));
    let column = NameColumn::of(names.clone(), columns.saturating_sub(others).max(least));
    let name_width = width_of(names).min(column.width);
    for (is_harmless, namespace, name, loss) in rows {
        let name = column.fitted(&name);
        let sign = if is_harmless { "  - " } else { "  ! " };
        let place = match namespace {
            Some(namespace) => format!("{name:name_width$}  {namespace:namespace_width$}  "),
            None => format!("{name:name_width$}  "),
        };
        let line = Line::new(Color::Danger, sign).with(Color::Plain, place);
        lines.push(line.with(Color::Danger, loss));
    }
    lines
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
