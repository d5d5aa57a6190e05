//! One object that changes, and its lines.

use serde_json::Value;

use super::fields::{self, FieldChange, plain};
use super::{loses_data_by_recreation, text};
use crate::compare::diff::{AFTER, BEFORE, Difference};
use crate::event::{Claims, ObjectOutcome};
use crate::model::applyset::PART_OF_LABEL;
use crate::model::applyset::parent::is_applyset_key;
use crate::model::identity::GroupVersionKind;
use crate::model::text::{HIDDEN, one_line};
use crate::report::diff::Comparison;
use crate::report::paint::{Color, Line, fitted, fitted_left, fitted_name, fitted_pair};
use crate::report::prompt_screen::wrapped;

/// The most lines about the fields of one object.
const LINES: usize = 24;
/// The widest column of paths.
const PATH: usize = 28;
/// The indentation of fields, and of values below their field.
const INDENT: &str = "        ";
const DEEPER: &str = "          ";

/// The change to an object; in the order of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sign {
    Failed,
    Recreated,
    Changed,
    Renamed,
    Created,
}

impl Sign {
    fn mark(self) -> (Color, &'static str) {
        match self {
            Self::Failed => (Color::Danger, "  x "),
            Self::Recreated => (Color::Danger, "  ± "),
            Self::Changed => (Color::Yellow, "  ~ "),
            Self::Renamed => (Color::Yellow, "  > "),
            Self::Created => (Color::Green, "  + "),
        }
    }
}

/// One object that changes.
pub(super) struct Entry<'a> {
    pub(super) sign: Sign,
    /// `deployment.apps/web`
    pub(super) name: String,
    pub(super) namespace: Option<String>,
    /// False for the parent, which the summary does not count.
    pub(super) is_member: bool,
    /// The note beside the name: its position in the manifests, or another fact.
    note: String,
    /// True if the end of the note matters most.
    is_position: bool,
    live: Option<&'a Value>,
    predicted: Option<&'a Value>,
    error: Option<String>,
    /// What a recreation does, and why.
    recreation: Option<String>,
}

impl<'a> Entry<'a> {
    pub(super) fn new(sign: Sign, object: &'a Comparison) -> Self {
        let subject = &object.outcome.subject;
        let key = subject.key();
        let source = object.outcome.source.as_ref();
        let Difference { live, predicted, .. } = &object.difference;
        Self {
            sign,
            name: key.group_kind.object_name(&key.name),
            namespace: key.namespace,
            is_member: true,
            note: match &object.ownership {
                Some(change) => format!("ownership only: {change}"),
                None => source.map_or_else(String::new, ToString::to_string),
            },
            is_position: object.ownership.is_none(),
            live: live.as_ref(),
            predicted: predicted.as_ref(),
            error: object.outcome.error.as_ref().map(|error| error.text.clone()),
            recreation: (sign == Sign::Recreated).then(|| recreation(&object.outcome)),
        }
    }

    /// An object that a new one replaces.
    pub(super) fn renamed(old: &'a Comparison, new: &'a Comparison) -> Self {
        let entry = Self::new(Sign::Renamed, new);
        let key = old.outcome.subject.key();
        Self {
            name: key.group_kind.object_name(&key.name),
            note: format!("-> {}", new.outcome.subject.name),
            is_position: false,
            live: old.difference.live.as_ref(),
            ..entry
        }
    }

    /// The parent, if its own manifest changes more of it than the record.
    pub(super) fn parent(difference: &'a Difference) -> Option<Self> {
        let (live, predicted) = (difference.live.as_ref()?, difference.predicted.as_ref()?);
        let text = |pointer| predicted.pointer(pointer).and_then(Value::as_str);
        let gvk = GroupVersionKind::from_api_version(text("/apiVersion")?, text("/kind")?);
        let entry = Self {
            sign: Sign::Changed,
            name: gvk.group_kind().object_name(text("/metadata/name")?),
            namespace: text("/metadata/namespace").map(str::to_owned),
            is_member: false,
            note: "the set's parent".to_owned(),
            is_position: false,
            live: Some(live),
            predicted: Some(predicted),
            error: None,
            recreation: None,
        };
        (!entry.changes().is_empty()).then_some(entry)
    }

    pub(super) fn lines(&self, width: usize, columns: usize) -> Vec<Line> {
        let (color, mark) = self.sign.mark();
        let name = fitted_name(&self.name, columns.saturating_sub(4));
        let room = columns.saturating_sub(4 + width.max(name.chars().count()) + 2);
        let note = if self.is_position {
            fitted_left(&self.note, room)
        } else {
            self.note.clone()
        };
        let head = Line::new(color, mark).with(Color::Plain, format!("{name:width$}"));
        let is_below = note.chars().count() > room || (room < 12 && !note.is_empty());
        let mut lines = if is_below {
            let below = fitted(&self.note, columns.saturating_sub(INDENT.len()));
            vec![head, Line::new(Color::Dim, format!("{INDENT}{below}"))]
        } else {
            vec![head.with(Color::Dim, format!("  {note}"))]
        };
        let room = columns.saturating_sub(INDENT.len());
        let recreation = self.recreation.iter().flat_map(|text| wrapped(text, room));
        lines.extend(
            recreation.map(|text| Line::new(Color::Danger, format!("{INDENT}{}", fitted(&text, room)))),
        );
        if let Some(error) = &self.error {
            let error = fitted(error, columns.saturating_sub(INDENT.len()));
            lines.push(Line::new(Color::Red, format!("{INDENT}{error}")));
        } else if self.sign != Sign::Created {
            lines.extend(limited(self.field_lines(columns)));
        }
        lines
    }

    fn changes(&self) -> Vec<FieldChange> {
        let (Some(live), Some(predicted)) = (self.live, self.predicted) else {
            return Vec::new();
        };
        let is_shown = |change: &FieldChange| match self.sign {
            Sign::Renamed => change.path != "metadata.name",
            _ if !self.is_member => !is_record(&change.path),
            _ => true,
        };
        let changes = match self.sign {
            Sign::Recreated => fields::changes(&fields::without_old_finalizers(live, predicted), predicted),
            _ => fields::changes(live, predicted),
        };
        changes.into_iter().filter(is_shown).collect()
    }

    /// Returns the lines of each change.
    fn field_lines(&self, columns: usize) -> Vec<Vec<Line>> {
        let mut lines = Vec::new();
        lines.extend(
            self.membership()
                .map(|text| vec![Line::new(Color::Plain, format!("{INDENT}{text}"))]),
        );
        let changes = self.changes();
        let room = columns.saturating_sub(INDENT.len());
        let is_short = |change: &&FieldChange| change.inline().is_some();
        let widths = changes
            .iter()
            .filter(is_short)
            .map(|change| change.path.chars().count());
        let width = widths.filter(|width| *width <= PATH).max().unwrap_or_default();
        lines.extend(changes.iter().map(|change| change.lines(width, room)));
        lines
    }

    /// Returns the note about the set's label, which is not shown as a field.
    fn membership(&self) -> Option<&'static str> {
        let label = |object: Option<&Value>| {
            object?["metadata"]["labels"][PART_OF_LABEL]
                .as_str()
                .map(str::to_owned)
        };
        match (label(self.live), label(self.predicted)) {
            _ if self.sign != Sign::Changed || !self.is_member => None,
            (None, Some(_)) => Some("joins the set"),
            (Some(before), Some(after)) if before != after => Some("joins the set, leaving another one"),
            _ => None,
        }
    }
}

/// `will be deleted and created again: spec.template: field is immutable`
fn recreation(outcome: &ObjectOutcome) -> String {
    let mut text = "will be deleted and created again".to_owned();
    if loses_data_by_recreation(outcome) {
        text.push_str(", and its data will be lost");
    } else if outcome.claims == Claims::Stay {
        text.push_str(", and its Pods and claims stay");
    }
    if !outcome.reason.is_empty() {
        text = format!("{text}: {}", one_line(&outcome.reason));
    }
    text
}

/// Returns whether the field is part of the parent's record.
fn is_record(path: &str) -> bool {
    let key = path.strip_suffix(']').and_then(|path| path.rsplit_once('['));
    matches!(key, Some(("metadata.labels" | "metadata.annotations", key)) if is_applyset_key(key))
}

/// Returns the lines of the first changes, each with all of its lines, and the number of the others.
fn limited(changes: Vec<Vec<Line>>) -> Vec<Line> {
    let count: usize = changes.iter().map(Vec::len).sum();
    let most = if count > LINES { LINES - 1 } else { count };
    let mut shown = Vec::new();
    for lines in changes {
        if shown.len() + lines.len() > most {
            break;
        }
        shown.extend(lines);
    }
    let more = count - shown.len();
    if more > 0 {
        shown.push(Line::new(
            Color::Dim,
            format!("{INDENT}… {more} more lines: --full"),
        ));
    }
    shown
}

impl FieldChange {
    /// Formats the values on one line, if they have no line breaks.
    fn inline(&self) -> Option<(String, Option<String>)> {
        let text = |value: &Value| match value.as_str() {
            Some(text) if text.contains('\n') => None,
            Some(BEFORE | AFTER | HIDDEN) => Some(HIDDEN.to_owned()),
            _ => Some(plain(value)),
        };
        Some(match (&self.before, &self.after) {
            (Some(before), Some(after)) => (text(before)?, Some(text(after)?)),
            (Some(value), None) | (None, Some(value)) => (text(value)?, None),
            (None, None) => return None,
        })
    }

    fn lines(&self, width: usize, room: usize) -> Vec<Line> {
        let Some((first, second)) = self.inline() else {
            return self.text_lines(room);
        };
        let length = |text: &str| text.chars().count();
        let head = format!("{INDENT}{:width$}  ", self.path);
        let color = if self.before.is_some() {
            Color::Red
        } else {
            Color::Green
        };
        let line = if let Some(second) = &second {
            Line::new(Color::Plain, head)
                .with(Color::Red, &first)
                .with(Color::Plain, " -> ")
                .with(Color::Green, second)
        } else {
            let sign = if self.before.is_some() { "- " } else { "+ " };
            Line::new(Color::Plain, head).with(color, format!("{sign}{first}"))
        };
        let values = length(&first) + second.as_deref().map_or(2, |second| length(second) + 4);
        if width.max(length(&self.path)) + 2 + values <= room {
            return vec![line];
        }
        let room = room.saturating_sub(4);
        let mut lines = vec![self.path_line(room)];
        match second {
            Some(second) => {
                let [first, second] = fitted_pair(&first, &second, room);
                lines.extend([value_line('-', &first), value_line('+', &second)]);
            }
            None if self.before.is_some() => lines.push(value_line('-', &fitted(&first, room))),
            None => lines.push(value_line('+', &fitted(&first, room))),
        }
        lines
    }

    fn path_line(&self, room: usize) -> Line {
        Line::new(Color::Plain, format!("{INDENT}{}", fitted_left(&self.path, room)))
    }

    /// Formats the lines that differ in a text of several lines.
    fn text_lines(&self, room: usize) -> Vec<Line> {
        let text = |value: &Option<Value>| match value {
            Some(Value::String(text)) => text.clone(),
            Some(other) => plain(other),
            None => String::new(),
        };
        let mut lines = vec![self.path_line(room)];
        let changed = text::hunks(&text(&self.before), &text(&self.after), room.saturating_sub(4));
        lines.extend(changed.iter().map(|(sign, line)| value_line(*sign, line)));
        lines
    }
}

fn value_line(sign: char, text: &str) -> Line {
    let color = match sign {
        '-' => Color::Red,
        '+' => Color::Green,
        _ => Color::Dim,
    };
    Line::new(color, format!("{DEEPER}{sign} {text}"))
}
