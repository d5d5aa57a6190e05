//! The lines of one object that changes: its name, and its fields below.

use serde_json::Value;

use super::fields::{self, FieldChange, format_value};
use super::text_diff;
use crate::compare::diff::{AFTER, BEFORE};
use crate::event::Claims;
use crate::model::applyset::PART_OF_LABEL;
use crate::model::applyset::parent::is_applyset_key;
use crate::model::text::{HIDDEN, escape_as_one_line};
use crate::report::layout::paint::{Color, Line, cut_middle, fit, wrap};
use crate::report::plan_view::{Effect, Entry};

/// The most lines about the fields of one object.
const MAX_FIELD_LINES: usize = 24;
/// The indentation of fields.
const INDENT: &str = "        ";
/// The indentation of values that are below their field.
const VALUE_INDENT: &str = "          ";

/// Returns whether fields of the object are shown. The fields of the parent's record are not: the last line of the
/// screen describes the record.
pub(super) fn has_changed_fields_to_show(entry: &Entry) -> bool {
    !changed_fields_to_show(entry).is_empty()
}

/// Returns the lines of an entry. Its name is padded to `name_width`.
pub(super) fn entry_lines(entry: &Entry, name_width: usize, columns: usize) -> Vec<Line> {
    let name = cut_middle(&entry.key.object_name(), columns.saturating_sub(4));
    let room = columns.saturating_sub(4 + name_width.max(name.chars().count()) + 2);
    let note = text_beside_name(entry);
    let (sign, color) = entry.effect.sign_and_color();
    let head = Line::new(color, format!("  {sign} ")).with(Color::Plain, format!("{name:name_width$}"));
    let below = columns.saturating_sub(INDENT.len());
    let indented = |color, text: &str| Line::new(color, format!("{INDENT}{}", fit(text, below)));
    let mut lines = if note.chars().count() > room {
        vec![head, indented(Color::Dim, &note)]
    } else {
        vec![head.with(Color::Dim, format!("  {note}"))]
    };
    for text in describe_recreation(entry)
        .iter()
        .flat_map(|text| wrap(text, below))
    {
        lines.push(indented(Color::Danger, &text));
    }
    if entry.effect != Effect::Created {
        lines.extend(limit_lines(field_lines(entry, columns)));
    }
    lines
}

/// Returns the text beside the name: what is special about the entry, or else its position in the manifests.
fn text_beside_name(entry: &Entry) -> String {
    let Some(outcome) = entry.outcome else {
        return "the set's parent".to_owned();
    };
    match entry.ownership_change_text() {
        Some(change) => change,
        None if entry.effect == Effect::Renamed => format!("-> {}", outcome.subject.name),
        None => outcome
            .source
            .as_ref()
            .map_or_else(String::new, ToString::to_string),
    }
}

fn changed_fields_to_show(entry: &Entry) -> Vec<FieldChange> {
    let (Some(live), Some(predicted)) = (&entry.difference.live, &entry.difference.predicted) else {
        return Vec::new();
    };
    let mut changes = fields::changes(live, predicted);
    changes.retain(|change| match entry.effect {
        Effect::Renamed => change.path != "metadata.name",
        _ if entry.outcome.is_none() => !is_field_of_record(&change.path),
        _ => true,
    });
    changes
}

/// Returns the lines of all changes.
fn field_lines(entry: &Entry, columns: usize) -> Vec<Line> {
    let mut lines: Vec<Line> = describe_joining(entry)
        .into_iter()
        .map(|text| Line::new(Color::Plain, format!("{INDENT}{text}")))
        .collect();
    let room = columns.saturating_sub(INDENT.len());
    let changes = changed_fields_to_show(entry);
    lines.extend(changes.iter().flat_map(|change| change.lines(room)));
    lines
}

/// Describes a change of the set's label, which is not shown as a field; `None` if the label does not change.
fn describe_joining(entry: &Entry) -> Option<&'static str> {
    let objects = [&entry.difference.live, &entry.difference.predicted];
    match objects.map(|object| object.as_ref()?["metadata"]["labels"][PART_OF_LABEL].as_str()) {
        _ if entry.effect != Effect::Changed || entry.outcome.is_none() => None,
        [None, Some(_)] => Some("joins the set"),
        [Some(before), Some(after)] if before != after => Some("joins the set, leaving another one"),
        _ => None,
    }
}

/// `would be deleted and created again: spec.template: field is immutable`
fn describe_recreation(entry: &Entry) -> Option<String> {
    let outcome = entry.outcome.filter(|_| entry.effect == Effect::Recreated)?;
    let mut text = "would be deleted and created again".to_owned();
    if let Some(loss) = &entry.loss {
        text = format!("{text}, and {loss}");
    } else if outcome.claims == Claims::Stay {
        text.push_str(", and its Pods and claims stay");
    }
    if !outcome.reason.is_empty() {
        text = format!("{text}: {}", escape_as_one_line(&outcome.reason));
    }
    Some(text)
}

/// Returns whether the field is part of the parent's record.
fn is_field_of_record(path: &str) -> bool {
    let key = path.strip_suffix(']').and_then(|path| path.rsplit_once('['));
    matches!(key, Some(("metadata.labels" | "metadata.annotations", key)) if is_applyset_key(key))
}

/// Returns the first lines, and one with the number of the others.
fn limit_lines(mut lines: Vec<Line>) -> Vec<Line> {
    if lines.len() > MAX_FIELD_LINES {
        let more = lines.split_off(MAX_FIELD_LINES - 1).len();
        let more = format!("{INDENT}… {more} more lines: --full");
        lines.push(Line::new(Color::Dim, more));
    }
    lines
}

impl FieldChange {
    /// Formats the values on one line each, with their signs; `None` if a value has several lines.
    fn single_line_values(&self) -> Option<Vec<(char, String)>> {
        let mut values = Vec::new();
        for (sign, value) in [('-', &self.before), ('+', &self.after)] {
            let Some(value) = value else { continue };
            match value.as_str() {
                Some(text) if text.contains('\n') => return None,
                Some(BEFORE | AFTER | HIDDEN) => values.push((sign, HIDDEN.to_owned())),
                _ => values.push((sign, format_value(value))),
            }
        }
        Some(values)
    }

    fn lines(&self, room: usize) -> Vec<Line> {
        let Some(values) = self.single_line_values() else {
            return self.multiline_diff_lines(room);
        };
        let lengths = values.iter().map(|(_, value)| value.chars().count() + 2);
        if self.path.chars().count() + 2 + lengths.sum::<usize>() <= room {
            let head = Line::new(Color::Plain, format!("{INDENT}{}  ", self.path));
            return vec![match &values[..] {
                [(_, before), (_, after)] => head
                    .with(Color::Red, before)
                    .with(Color::Plain, " -> ")
                    .with(Color::Green, after),
                values => values.iter().fold(head, |head, (sign, value)| {
                    head.with(color_of(*sign), format!("{sign} {value}"))
                }),
            }];
        }
        let room = room.saturating_sub(4);
        let values = values
            .iter()
            .map(|(sign, value)| value_line(*sign, &cut_middle(value, room)));
        std::iter::once(self.path_line(room)).chain(values).collect()
    }

    fn path_line(&self, room: usize) -> Line {
        Line::new(Color::Plain, format!("{INDENT}{}", cut_middle(&self.path, room)))
    }

    /// Formats the lines that differ between two texts of several lines.
    fn multiline_diff_lines(&self, room: usize) -> Vec<Line> {
        let [before, after] = [&self.before, &self.after].map(|value| match value {
            Some(Value::String(text)) => text.clone(),
            Some(other) => format_value(other),
            None => String::new(),
        });
        let mut lines = vec![self.path_line(room)];
        let changed = text_diff::hunks(&before, &after, room.saturating_sub(4));
        lines.extend(changed.iter().map(|(sign, line)| value_line(*sign, line)));
        lines
    }
}

fn color_of(sign: char) -> Color {
    match sign {
        '-' => Color::Red,
        '+' => Color::Green,
        _ => Color::Dim,
    }
}

fn value_line(sign: char, text: &str) -> Line {
    Line::new(color_of(sign), format!("{VALUE_INDENT}{sign} {text}"))
}
