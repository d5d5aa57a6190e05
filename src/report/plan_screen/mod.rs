//! The screen of `diff` at a terminal: a summary, the changes by namespace, and the prunes at the end.
//!
//! The contents of new and pruned objects, and fields that the server defaults, are only in the text of `--full`.

mod entry;
mod fields;
mod text_diff;

use std::collections::BTreeMap;

use super::diff::drift::DRIFT;
use super::diff::{Differences, RecordChange};
use super::layout::paint::{Color, Line, fit};
use super::layout::plan_rows::{self, MAX_NAME_WIDTH, PlanRow, widest};
use super::plan_view::{Effect, Entry, PlanView, WARNED};
use crate::model::text::counted;

/// Returns the lines of the screen, with `header` as the first one.
pub(super) fn screen_lines(header: Line, found: &Differences, columns: usize) -> Vec<Line> {
    let view = PlanView::from_differences(found);
    let mut lines = vec![header, plan_line(&view)];
    let parent = view
        .parent
        .iter()
        .filter(|parent| entry::has_changed_fields_to_show(parent));
    let (pruned, changed): (Vec<&Entry>, Vec<&Entry>) = view
        .entries
        .iter()
        .chain(parent)
        .partition(|entry| entry.effect == Effect::Pruned);
    for (namespace, entries) in group_by_namespace(changed) {
        lines.push(Line::default());
        let title = namespace.unwrap_or("cluster-scoped");
        lines.push(Line::new(Color::Cyan, title));
        let names: Vec<String> = entries.iter().map(|entry| entry.key.object_name()).collect();
        let width = widest(names.iter().map(String::as_str)).min(MAX_NAME_WIDTH);
        for entry in entries {
            lines.extend(entry::entry_lines(entry, width, columns));
        }
    }
    lines.push(Line::default());
    let (not_members, pruned): (Vec<&Entry>, Vec<&Entry>) = pruned
        .into_iter()
        .partition(|entry| entry.is_removed_before_deployed());
    let blocks = [
        prune_lines(pruned, columns),
        removed_lines(&not_members, columns),
        drift_lines(found, columns),
    ];
    let blocks: Vec<Vec<Line>> = blocks.into_iter().filter(|block| !block.is_empty()).collect();
    lines.extend(blocks.join(&Line::default()));
    let record = format!("record: {}", describe_record(&found.record));
    lines.push(Line::new(Color::Plain, fit(&record, columns)));
    lines.push(Line::new(Color::Dim, "full text: --full"));
    lines
}

/// `Plan: +2 create  ~3 change  -4 PRUNE  (25 unchanged)`
fn plan_line(view: &PlanView) -> Line {
    let counts = view.counts();
    let mut line = counts.line("PRUNE");
    if counts.effects.is_empty() {
        line.push(Color::Plain, view.describe_no_changes());
    }
    line.with(Color::Plain, counts.beside_effects_in_parentheses())
}

/// Groups entries by namespace, and sorts each group by effect and name. `None` has the cluster-scoped objects, and is
/// first.
fn group_by_namespace<'e>(mut entries: Vec<&'e Entry<'e>>) -> BTreeMap<Option<&'e str>, Vec<&'e Entry<'e>>> {
    entries.sort_by_cached_key(|entry| (entry.effect, entry.key.object_name()));
    let mut groups: BTreeMap<Option<&str>, Vec<&Entry>> = BTreeMap::new();
    for entry in entries {
        groups
            .entry(entry.key.namespace.as_deref())
            .or_default()
            .push(entry);
    }
    groups
}

/// Returns the lines about pruned objects, those with a loss first.
fn prune_lines(mut pruned: Vec<&Entry>, columns: usize) -> Vec<Line> {
    if pruned.is_empty() {
        return Vec::new();
    }
    let title = "PRUNE: removed from the manifests, would be deleted";
    let mut lines = vec![Line::new(Color::Danger, title)];
    pruned.sort_by_cached_key(|entry| {
        let namespace = entry.key.namespace.clone();
        (entry.loss.is_none(), namespace, entry.key.object_name())
    });
    let rows = pruned.iter().map(|entry| match &entry.loss {
        Some(loss) => PlanRow::new(WARNED, Some(&entry.key), loss.as_ref()),
        None => PlanRow::new(entry.effect.sign_and_color(), Some(&entry.key), ""),
    });
    lines.extend(plan_rows::lines(&rows.collect::<Vec<_>>(), columns));
    lines
}

/// Returns the lines about objects that were removed from the manifests, and that are not deleted for a reason.
fn removed_lines(removed: &[&Entry], columns: usize) -> Vec<Line> {
    let rows = removed.iter().filter_map(|entry| {
        let reason = &entry.outcome?.reason;
        Some(PlanRow::new(
            entry.effect.sign_and_color(),
            Some(&entry.key),
            reason.as_str(),
        ))
    });
    titled_lines("removed from the manifests", rows, columns)
}

/// Returns the lines about drift that is listed apart.
fn drift_lines(found: &Differences, columns: usize) -> Vec<Line> {
    let drift = found.short_drift_list().into_iter();
    let rows = drift.map(|line| PlanRow::from_text(' ', line));
    titled_lines(DRIFT, rows, columns)
}

/// Returns the lines of these rows below a title; nothing without rows.
fn titled_lines(title: &str, rows: impl Iterator<Item = PlanRow>, columns: usize) -> Vec<Line> {
    let lines = plan_rows::lines(&rows.collect::<Vec<_>>(), columns);
    let title = (!lines.is_empty()).then(|| Line::new(Color::Yellow, format!("{title}:")));
    title.into_iter().chain(lines).collect()
}

fn describe_record(record: &RecordChange) -> String {
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
