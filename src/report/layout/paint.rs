//! Lines with colors, and texts cut to a width. The parts of a line are escaped one by one, so that text from the
//! cluster or from manifests cannot change colors or move the cursor.

use crate::model::text::escape_as_one_line;
use crate::report::style::Colors;

/// The color of a part of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::report) enum Color {
    Plain,
    Bold,
    Dim,
    Green,
    Yellow,
    /// Warnings.
    BoldYellow,
    Red,
    /// Bold red: deletions and losses.
    Danger,
    Cyan,
}

impl Color {
    fn code(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Bold => Some("1"),
            Self::Dim => Some("2"),
            Self::Green => Some("32"),
            Self::Yellow => Some("33"),
            Self::BoldYellow => Some("33;1"),
            Self::Red => Some("31"),
            Self::Danger => Some("31;1"),
            Self::Cyan => Some("36"),
        }
    }

    /// Returns the text in this color; unchanged if colors are off.
    pub(in crate::report) fn paint(self, text: &str, colors: Colors) -> String {
        match self.code() {
            Some(code) if colors == Colors::On && !text.is_empty() => format!("\x1b[{code}m{text}\x1b[0m"),
            _ => text.to_owned(),
        }
    }
}

/// A line of parts, each in one color.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::report) struct Line(Vec<(Color, String)>);

impl Line {
    /// Creates a line in one color.
    pub(in crate::report) fn new(color: Color, text: impl Into<String>) -> Self {
        Self::default().with(color, text)
    }

    /// Returns the line with one more part.
    pub(in crate::report) fn with(mut self, color: Color, text: impl Into<String>) -> Self {
        self.push(color, text);
        self
    }

    /// Adds a part.
    pub(in crate::report) fn push(&mut self, color: Color, text: impl Into<String>) {
        self.0.push((color, text.into()));
    }

    /// Returns the escaped text of the line, with colors if they are on, and without blanks at its end.
    pub(in crate::report) fn text(&self, colors: Colors) -> String {
        let plain: String = self.0.iter().map(|(_, text)| text.as_str()).collect();
        let plain = plain.trim_end();
        if colors == Colors::Off {
            return escape_as_one_line(plain);
        }
        let mut bytes_left = plain.len();
        let mut line = String::new();
        for (color, text) in &self.0 {
            let text = &text[..text.len().min(bytes_left)];
            bytes_left -= text.len();
            line.push_str(&color.paint(&escape_as_one_line(text), colors));
        }
        line
    }
}

/// Cuts the end of a text off, with `…` in its place, if the text is wider than `width`.
pub(in crate::report) fn fit(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let head: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{head}…")
}

/// Wraps a text to `width` at blanks, but not within a command in backticks, which users copy.
pub(in crate::report) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match words.last_mut() {
            Some(last) if last.matches('`').count() % 2 == 1 => last.extend([" ", word]),
            _ => words.push(word.to_owned()),
        }
    }
    let mut lines = vec![String::new()];
    for word in words {
        let used = lines.last().map_or(0, |line| line.chars().count());
        if used > 0 && used + 1 + word.chars().count() > width {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(&word);
        }
    }
    lines
}

/// Cuts a text in the middle if it is wider than `width`: the kind at the beginning of a name and the characters at its
/// end tell it from other names.
pub(in crate::report) fn cut_middle(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return text.to_owned();
    }
    let room = width.saturating_sub(1);
    let head = room / 3;
    let tail = text.chars().skip(length - (room - head));
    text.chars().take(head).chain(['…']).chain(tail).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_escaped_and_colors_only_repeat_the_words() {
        let line = Line::new(Color::Green, "+ ")
            .with(Color::Plain, "a\x1b[31mb\nc")
            .with(Color::Red, "  ");
        assert_eq!(line.text(Colors::Off), "+ a\\u{1b}[31mb\\nc");
        assert_eq!(line.text(Colors::On), "\x1b[32m+ \x1b[0ma\\u{1b}[31mb\\nc");
    }

    #[test]
    fn the_end_of_a_long_text_is_cut_off() {
        assert_eq!(fit("abcdef", 6), "abcdef");
        assert_eq!(fit("abcdefg", 6), "abcde…");
    }

    #[test]
    fn names_keep_their_beginning_and_their_end() {
        assert_eq!(cut_middle("deployment.apps/web", 19), "deployment.apps/web");
        assert_eq!(cut_middle("deployment.apps/web-blue", 13), "depl…web-blue");
        assert_eq!(cut_middle("web", 0), "…");
    }
}
