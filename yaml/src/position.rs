//! Places in a text.

use std::fmt;

/// A line and a column of a text, both counted from 1. Columns count characters, not bytes.
///
/// Displays as `12:3`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    // Every value has a position: two `usize` would take a third more memory.
    line: u32,
    column: u32,
}

impl Position {
    /// The beginning of a text.
    pub(crate) const START: Self = Self { line: 1, column: 1 };

    pub(crate) fn new(line: usize, column: usize) -> Self {
        let narrow = |number| u32::try_from(number).unwrap_or(u32::MAX);
        Self {
            line: narrow(line),
            column: narrow(column),
        }
    }

    /// The line, counted from 1.
    pub fn line(self) -> usize {
        self.line as usize
    }

    /// The column, counted from 1.
    pub fn column(self) -> usize {
        self.column as usize
    }

    /// The position behind a text that begins here.
    pub(crate) fn after(self, text: &str) -> Self {
        let last = text.rsplit('\n').next().unwrap_or_default().chars().count();
        match text.matches('\n').count() {
            0 => Self::new(self.line(), self.column() + last),
            breaks => Self::new(self.line() + breaks, 1 + last),
        }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}
