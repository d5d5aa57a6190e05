//! Rows about objects: a sign, the name, the namespace and a text in columns, and details below.

use super::paint::{Color, Line, NameColumn, cut_middle_of_name, fit, wrap};
use crate::model::identity::ObjectKey;

/// The most characters of the column of names, unless the terminal has room for wider ones.
pub(in crate::report) const MAX_NAME_WIDTH: usize = 36;
/// The most characters of the column of namespaces.
const MAX_NAMESPACE_WIDTH: usize = 16;
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

    fn lines(&self, widths: &Widths) -> Vec<Line> {
        let (sign, color) = self.mark;
        let sign = Line::new(color, format!("  {sign} "));
        let [room, below] = [4, INDENT.len()].map(|margin| widths.terminal.saturating_sub(margin));
        let mut lines = Vec::new();
        if let Some(key) = &self.object {
            let head = widths.format_name_and_namespace(key);
            if format!("{head}{}", self.text).trim_end().chars().count() <= room {
                lines.push(sign.with(Color::Plain, head).with(Color::Danger, &self.text));
            } else {
                lines.push(sign.with(Color::Plain, cut_middle_of_name(head.trim_end(), room)));
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

/// The widths of the columns, and of the terminal.
struct Widths {
    /// The column to which names are cut.
    names: NameColumn,
    /// The width to which names are padded.
    name: usize,
    namespace: usize,
    terminal: usize,
}

impl Widths {
    fn new(rows: &[PlanRow], terminal: usize) -> Self {
        let rows = rows
            .iter()
            .filter_map(|row| Some((row.object.as_ref()?, &row.text)));
        let names: Vec<String> = rows.clone().map(|(key, _)| key.object_name()).collect();
        let namespaces = rows.clone().filter_map(|(key, _)| key.namespace.as_deref());
        let namespace = widest(namespaces).min(MAX_NAMESPACE_WIDTH);
        // The margin of 4, and 3 blanks behind the name and behind the namespace.
        let others = 10 + namespace + widest(rows.map(|(_, text)| text.as_str()));
        let least = MAX_NAME_WIDTH.min(terminal.saturating_sub(4));
        let most = terminal.saturating_sub(others).max(least);
        let column = NameColumn::new(names.iter().map(String::as_str), most);
        Self {
            name: widest(names.iter().map(String::as_str))
                .min(MAX_NAME_WIDTH)
                .min(column.width),
            names: column,
            namespace,
            terminal,
        }
    }

    /// Returns the columns of the name and the namespace.
    fn format_name_and_namespace(&self, key: &ObjectKey) -> String {
        let (width, namespace_width) = (self.name, self.namespace);
        let name = self.names.fit(&key.object_name());
        match &key.namespace {
            None => format!("{name:width$}   "),
            Some(namespace) => format!("{name:width$}   {namespace:namespace_width$}   "),
        }
    }
}

/// Returns the width of the widest of these texts.
pub(in crate::report) fn widest<'t>(texts: impl Iterator<Item = &'t str>) -> usize {
    let widths = texts.map(|text| text.chars().count());
    widths.max().unwrap_or_default()
}

/// Returns the lines of all rows.
pub(in crate::report) fn lines(rows: &[PlanRow], columns: usize) -> Vec<Line> {
    let widths = Widths::new(rows, columns);
    rows.iter().flat_map(|row| row.lines(&widths)).collect()
}
