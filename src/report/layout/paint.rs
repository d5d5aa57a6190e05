//! Lines with colors, and texts cut to a width. The parts of a line are escaped one by one, so that text from the
//! cluster or from manifests cannot change colors or move the cursor.

use std::collections::{BTreeSet, HashSet};

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

/// Cuts the beginning of a path off, with `…` in its place, if the path is wider than `width`: the end is more
/// specific.
pub(in crate::report) fn cut_beginning(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return text.to_owned();
    }
    let tail: String = text
        .chars()
        .skip(length - width.saturating_sub(1).min(length))
        .collect();
    format!("…{tail}")
}

/// Wraps a text to `width` at blanks. A command in backquotes is not wrapped, because users copy it.
pub(in crate::report) fn wrap(text: &str, width: usize) -> Vec<String> {
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

/// Cuts a name in the middle if it is wider than `width`: the kind at its beginning and the characters at its end tell
/// it from other names.
pub(in crate::report) fn cut_middle_of_name(name: &str, width: usize) -> String {
    NameColumn::for_width(width).fit(name)
}

/// A column of names. Names that are wider than the column are all cut at the same place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::report) struct NameColumn {
    /// The width of the widest name after cutting.
    pub(in crate::report) width: usize,
    /// The number of characters that a cut name keeps of its beginning.
    head: usize,
}

impl NameColumn {
    /// Creates a column of at most `max_width`. Names are cut at a third, or at the nearest place to it that leaves all
    /// names different; at a third if there is no such place.
    pub(in crate::report) fn new<'n>(names: impl IntoIterator<Item = &'n str>, max_width: usize) -> Self {
        let names: BTreeSet<&str> = names.into_iter().collect();
        let longest = names.iter().map(|name| name.chars().count()).max();
        let usual = Self::for_width(max_width.min(longest.unwrap_or_default()));
        let mut heads: Vec<usize> = (0..usual.width).collect();
        heads.sort_by_key(|head| head.abs_diff(usual.head));
        let columns = heads.into_iter().map(|head| Self { head, ..usual });
        for column in columns {
            let mut seen = HashSet::new();
            if names.iter().all(|name| seen.insert(column.fit(name))) {
                return column;
            }
        }
        usual
    }

    const fn for_width(width: usize) -> Self {
        let head = width.saturating_sub(1) / 3;
        Self { width, head }
    }

    /// Returns the name, cut if it is wider than the column.
    pub(in crate::report) fn fit(self, name: &str) -> String {
        let length = name.chars().count();
        if length <= self.width {
            return name.to_owned();
        }
        let room = self.width.saturating_sub(1);
        let head = self.head.min(room);
        let tail = name.chars().skip(length - (room - head));
        name.chars().take(head).chain(['…']).chain(tail).collect()
    }
}

/// If two texts are cut, at least this many characters are shown of each, beginning where they differ.
const MIN_SHOWN_DIFFERENCE: usize = 12;

/// Cuts two texts that are shown one above the other to `width`, so that their difference is seen: cuts the end off,
/// or, if that would hide the difference, a part of the beginning that both have in common.
pub(in crate::report) fn fit_showing_difference(first: &str, second: &str, width: usize) -> [String; 2] {
    let texts = [first, second];
    let [one, other] = texts.map(|text| text.chars().count());
    let longest = one.max(other);
    let pairs = first.chars().zip(second.chars());
    let common = pairs.take_while(|(one, other)| one == other).count();
    if longest <= width || common + MIN_SHOWN_DIFFERENCE < width {
        return texts.map(|text| fit(text, width));
    }
    // The beginning is cut off only as far as the longer text is too wide, and a third of the width still shows what
    // both have in common.
    let most = common.saturating_sub(width / 3).max(1);
    let left_out = (longest + 1).saturating_sub(width).clamp(1, most);
    texts.map(|text| {
        let rest: String = text.chars().skip(left_out).collect();
        fit(&format!("…{rest}"), width)
    })
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
    fn long_text_is_cut_where_it_says_least() {
        assert_eq!(fit("abcdef", 6), "abcdef");
        assert_eq!(fit("abcdefg", 6), "abcde…");
        assert_eq!(cut_beginning("a/b/c.yaml:1", 9), "…c.yaml:1");
        assert_eq!(cut_beginning("c.yaml:1", 9), "c.yaml:1");
    }
    #[test]
    fn names_are_cut_only_as_far_as_they_stay_different() {
        assert_eq!(
            cut_middle_of_name("deployment.apps/web", 19),
            "deployment.apps/web"
        );
        assert_eq!(
            cut_middle_of_name("deployment.apps/web-blue", 13),
            "depl…web-blue"
        );
        let names = ["deployment.apps/a-long-name-blue", "service/a-long-name-blue"];
        assert_eq!(NameColumn::new(names, 13), NameColumn::for_width(13));
        assert_eq!(NameColumn::new(["a", "bb"], 13).width, 2);
        assert_eq!(NameColumn::new([], 13).width, 0);
        assert_eq!(NameColumn::new(["a"], usize::MAX).width, 1);
        let [one, other] = ["service/eu-west-1-production", "service/us-east-1-production"];
        let column = NameColumn::new([one, other, one], 15);
        assert_eq!(column.width, 15);
        assert_eq!(
            [one, other].map(|name| column.fit(name)),
            ["service/e…ction", "service/u…ction"]
        );
        // No place distinguishes all of them: no wider than there is room for.
        let numbered: Vec<String> = (0..600)
            .map(|number| format!("{}{number:04}{}", "a".repeat(120), "b".repeat(120)))
            .collect();
        let column = NameColumn::new(numbered.iter().map(String::as_str), 40);
        assert_eq!(column, NameColumn::for_width(40));
        assert_eq!(column.fit(&numbered[0]).chars().count(), 40);
    }

    #[test]
    fn two_texts_are_cut_so_that_their_difference_is_seen() {
        let image = |digest: &str| format!("registry.example.com/team/a-long-path/web@sha256:{digest}");
        let rest = "0".repeat(60);
        for (first, second, expected) in [
            ("abc", "abd", ["abc", "abd"]),
            (
                &*image(&format!("aa{rest}")),
                &*image(&format!("bb{rest}")),
                [
                    "…/web@sha256:aa00000000000000000000…",
                    "…/web@sha256:bb00000000000000000000…",
                ],
            ),
            (
                &*image("1"),
                &*image("2"),
                [
                    "…e.com/team/a-long-path/web@sha256:1",
                    "…e.com/team/a-long-path/web@sha256:2",
                ],
            ),
            (
                &*image(""),
                "short",
                ["registry.example.com/team/a-long-pa…", "short"],
            ),
            (
                &*image("1"),
                &*image("12"),
                [
                    "….com/team/a-long-path/web@sha256:1",
                    "….com/team/a-long-path/web@sha256:12",
                ],
            ),
        ] {
            let cut = fit_showing_difference(first, second, 36);
            assert_eq!(cut, expected);
            assert_ne!(cut[0], cut[1]);
        }
    }
}
