//! The lines of one object that changes: its name, and its fields below.

use serde_json::Value;

use super::fields::{self, FieldChange, format_value};
use super::text_diff;
use crate::compare::diff::{AFTER, BEFORE};
use crate::event::Claims;
use crate::model::applyset::PART_OF_LABEL;
use crate::model::applyset::parent::is_applyset_key;
use crate::model::text::{HIDDEN, escape_as_one_line};
use crate::report::layout::paint::{
    Color, Line, cut_beginning, cut_middle_of_name, fit, fit_showing_difference, wrap,
};
use crate::report::plan_view::{Effect, Entry};

/// The most lines about the fields of one object.
const MAX_FIELD_LINES: usize = 24;
/// The most characters of the column of paths.
const MAX_PATH_WIDTH: usize = 28;
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
    let name = cut_middle_of_name(&entry.key.object_name(), columns.saturating_sub(4));
    let room = columns.saturating_sub(4 + name_width.max(name.chars().count()) + 2);
    let [note, shown] = texts_beside_name(entry, room);
    let (sign, color) = entry.effect.sign_and_color();
    let head = Line::new(color, format!("  {sign} ")).with(Color::Plain, format!("{name:name_width$}"));
    // A description that does not fit beside the name is below. In very little room, even a cut position would not fit.
    let is_below = shown.chars().count() > room || (room < 12 && !shown.is_empty());
    let below = columns.saturating_sub(INDENT.len());
    let indented = |color, text: &str| Line::new(color, format!("{INDENT}{}", fit(text, below)));
    let mut lines = if is_below {
        vec![head, indented(Color::Dim, &note)]
    } else {
        vec![head.with(Color::Dim, format!("  {shown}"))]
    };
    for text in describe_recreation(entry)
        .iter()
        .flat_map(|text| wrap(text, below))
    {
        lines.push(indented(Color::Danger, &text));
    }
    if let Some(error) = entry.outcome.and_then(|outcome| outcome.error.as_ref()) {
        lines.push(indented(Color::Red, &error.text));
    }
    if entry.effect != Effect::Created {
        lines.extend(limit_changes(field_lines(entry, columns)));
    }
    lines
}

/// Returns the text beside the name, in full and cut to `room`. Only a position in the manifests is cut, at its
/// beginning, because its end matters most.
fn texts_beside_name(entry: &Entry, room: usize) -> [String; 2] {
    let fact = match (entry.outcome, entry.ownership_change_text()) {
        (None, _) => "the set's parent".to_owned(),
        (Some(_), Some(change)) => change,
        (Some(outcome), None) if entry.effect == Effect::Renamed => format!("-> {}", outcome.subject.name),
        (Some(outcome), None) => {
            let position = outcome
                .source
                .as_ref()
                .map_or_else(String::new, ToString::to_string);
            let shown = cut_beginning(&position, room);
            return [position, shown];
        }
    };
    [fact.clone(), fact]
}

fn changed_fields_to_show(entry: &Entry) -> Vec<FieldChange> {
    let (Some(live), Some(predicted)) = (&entry.difference.live, &entry.difference.predicted) else {
        return Vec::new();
    };
    let mut changes = match entry.effect {
        Effect::Recreated => fields::changes(&fields::without_lost_finalizers(live, predicted), predicted),
        _ => fields::changes(live, predicted),
    };
    changes.retain(|change| match entry.effect {
        Effect::Renamed => change.path != "metadata.name",
        _ if entry.outcome.is_none() => !is_field_of_record(&change.path),
        _ => true,
    });
    changes
}

/// Returns the lines of each change.
fn field_lines(entry: &Entry, columns: usize) -> Vec<Vec<Line>> {
    let mut lines: Vec<Vec<Line>> = describe_joining(entry)
        .into_iter()
        .map(|text| vec![Line::new(Color::Plain, format!("{INDENT}{text}"))])
        .collect();
    let changes = changed_fields_to_show(entry);
    let room = columns.saturating_sub(INDENT.len());
    let widths = changes
        .iter()
        .filter(|change| change.single_line_values().is_some())
        .map(|change| change.path.chars().count());
    let width = widths
        .filter(|width| *width <= MAX_PATH_WIDTH)
        .max()
        .unwrap_or_default();
    lines.extend(changes.iter().map(|change| change.lines(width, room)));
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

/// `will be deleted and created again: spec.template: field is immutable`
fn describe_recreation(entry: &Entry) -> Option<String> {
    let outcome = entry.outcome.filter(|_| entry.effect == Effect::Recreated)?;
    let mut text = "will be deleted and created again".to_owned();
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

/// Returns the lines of the first changes, and a line with the number of the other lines. A change is shown with all of
/// its lines or not at all.
fn limit_changes(changes: Vec<Vec<Line>>) -> Vec<Line> {
    let count: usize = changes.iter().map(Vec::len).sum();
    let most = if count > MAX_FIELD_LINES {
        MAX_FIELD_LINES - 1
    } else {
        count
    };
    let mut shown = Vec::new();
    for lines in changes {
        if shown.len() + lines.len() > most {
            break;
        }
        shown.extend(lines);
    }
    let more = count - shown.len();
    if more > 0 {
        let more = format!("{INDENT}… {more} more lines: --full");
        shown.push(Line::new(Color::Dim, more));
    }
    shown
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

    fn lines(&self, width: usize, room: usize) -> Vec<Line> {
        let Some(mut values) = self.single_line_values() else {
            return self.multiline_diff_lines(room);
        };
        let lengths = values.iter().map(|(_, value)| value.chars().count() + 2);
        if width.max(self.path.chars().count()) + 2 + lengths.sum::<usize>() <= room {
            let head = Line::new(Color::Plain, format!("{INDENT}{:width$}  ", self.path));
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
        if let [(_, before), (_, after)] = &mut values[..] {
            [*before, *after] = fit_showing_difference(before, after, room);
        }
        let values = values
            .iter()
            .map(|(sign, value)| value_line(*sign, &fit(value, room)));
        std::iter::once(self.path_line(room)).chain(values).collect()
    }

    fn path_line(&self, room: usize) -> Line {
        Line::new(
            Color::Plain,
            format!("{INDENT}{}", cut_beginning(&self.path, room)),
        )
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
