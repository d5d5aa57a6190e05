//! Rows about objects: a sign, the name, the namespace and a text in columns, and details below.

use super::paint::{Color, Line, cut_middle, fit, wrap};
use crate::model::identity::ObjectKey;

/// The most characters to which names are padded.
pub(in crate::report) const MAX_NAME_WIDTH: usize = 44;
/// The most characters to which namespaces are padded.
const MAX_NAMESPACE_WIDTH: usize = 24;
/// The indentation of the lines below a row.
const INDENT: &str = "        ";

/// A row about an object, about several objects of one kind, or about none.
pub(in crate::report) struct PlanRow {
    /// The sign before the row.
    pub(in crate::report) mark: (char, Color),
    /// The object, or the names of several objects of one namespace and kind; `None` if the row is about the run.
    pub(in crate::report) object: Option<ObjectKey>,
    pub(in crate::report) text: String,
    /// The lines below the text.
    pub(in crate::report) details: Vec<String>,
}

impl PlanRow {
    /// Creates a row without details.
    pub(in crate::report) fn new(
        mark: (char, Color),
        object: Option<&ObjectKey>,
        text: impl Into<String>,
    ) -> Self {
        Self {
            mark,
            object: object.cloned(),
            text: text.into(),
            details: Vec::new(),
        }
    }

    /// Creates a row that is only text, without columns for an object.
    pub(in crate::report) fn from_text(sign: char, text: String) -> Self {
        Self::new((sign, Color::Plain), None, text)
    }

    /// Returns the lines of the row, with columns of these widths for the name and the namespace.
    fn lines(&self, [name_width, namespace_width]: [usize; 2], columns: usize) -> Vec<Line> {
        let (sign, color) = self.mark;
        let sign = Line::new(color, format!("  {sign} "));
        let [room, below] = [4, INDENT.len()].map(|margin| columns.saturating_sub(margin));
        let mut lines = Vec::new();
        if let Some(key) = &self.object {
            let mut head = format!("{:name_width$}   ", key.object_name());
            if let Some(namespace) = &key.namespace {
                head = format!("{head}{namespace:namespace_width$}   ");
            }
            if format!("{head}{}", self.text).trim_end().chars().count() <= room {
                lines.push(sign.with(Color::Plain, head).with(Color::Danger, &self.text));
            } else {
                lines.push(sign.with(Color::Plain, cut_middle(head.trim_end(), room)));
                let text = fit(&self.text, below);
                lines.push(Line::new(Color::Danger, format!("{INDENT}{text}")));
            }
        } else {
            let mut parts = wrap(&self.text, room).into_iter();
            lines.push(sign.with(Color::Plain, parts.next().unwrap_or_default()));
            lines.extend(parts.map(|part| Line::new(Color::Plain, format!("    {part}"))));
        }
        let details = self.details.iter().flat_map(|detail| wrap(detail, below));
        lines.extend(details.map(|detail| Line::new(Color::Plain, format!("{INDENT}{detail}"))));
        lines
    }
}

/// Returns the width of the widest of these texts.
pub(in crate::report) fn widest<'t>(texts: impl Iterator<Item = &'t str>) -> usize {
    let widths = texts.map(|text| text.chars().count());
    widths.max().unwrap_or_default()
}

/// Returns the lines of all rows.
pub(in crate::report) fn lines(rows: &[PlanRow], columns: usize) -> Vec<Line> {
    let objects = rows.iter().filter_map(|row| row.object.as_ref());
    let names: Vec<String> = objects.clone().map(ObjectKey::object_name).collect();
    let name_width = widest(names.iter().map(String::as_str)).min(MAX_NAME_WIDTH);
    let namespaces = objects.filter_map(|key| key.namespace.as_deref());
    let namespace_width = widest(namespaces).min(MAX_NAMESPACE_WIDTH);
    rows.iter()
        .flat_map(|row| row.lines([name_width, namespace_width], columns))
        .collect()
}
