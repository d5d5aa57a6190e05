//! The style of the output, as values; `settings` chooses them.

use clap::ValueEnum;

/// The style of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// The format of standard output.
    pub format: Format,
    /// The messages on standard error.
    pub verbosity: Verbosity,
    /// Colors on standard error.
    pub colors: Colors,
    /// Colors on standard output.
    pub output_colors: Colors,
    /// Progress bars on standard error.
    pub progress: Progress,
    /// The kind of standard output.
    pub output: Device,
    /// The kind of standard error.
    pub messages: Device,
    /// The lines about objects that do not change.
    pub unchanged: UnchangedLines,
    /// The most bytes of a document in Markdown.
    pub max_bytes: usize,
}

impl Style {
    /// Returns whether standard output is a document for programs.
    pub fn has_document(self) -> bool {
        matches!(self.format, Format::Json | Format::Yaml | Format::Kyaml)
    }

    /// Returns the most characters of a line of a table; no limit with `-o wide`.
    pub(super) fn table_width(self) -> usize {
        match self.format {
            Format::Wide => usize::MAX,
            _ => self.output.max_line_width(),
        }
    }
}

/// The destination of standard output or standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Device {
    /// A terminal of this size.
    Terminal { columns: usize, rows: usize },
    /// A pipe or a file.
    Stream,
}

impl Device {
    /// Returns whether the device is a terminal.
    pub fn is_terminal(self) -> bool {
        self != Self::Stream
    }

    /// Returns the most characters of a line; no limit for a pipe or a file. See also [`Device::columns_or_default`].
    pub(super) fn max_line_width(self) -> usize {
        match self {
            Self::Terminal { columns, .. } => columns,
            Self::Stream => usize::MAX,
        }
    }

    /// Returns the number of characters for a layout that needs one: that of the terminal, or 80.
    pub fn columns_or_default(self) -> usize {
        match self {
            Self::Terminal { columns, .. } => columns,
            Self::Stream => 80,
        }
    }

    /// Returns the number of lines for a layout that needs one: that of the terminal, or 24.
    pub fn rows_or_default(self) -> usize {
        match self {
            Self::Terminal { rows, .. } => rows,
            Self::Stream => 24,
        }
    }
}

/// The lines about objects that do not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnchangedLines {
    /// One line for each object.
    Shown,
    /// No lines: only the summary counts the objects.
    Folded,
}

/// The format of standard output. The doc comments of the variants are the help of `-o`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Lines as kubectl prints them.
    #[value(skip)]
    Lines,
    /// One document.
    Json,
    /// One document.
    Yaml,
    /// One document, as YAML with braces.
    Kyaml,
    /// Only the names, one per line.
    #[value(name = "name")]
    Names,
    /// A table with more columns; of `list`, `view` and `history`.
    Wide,
    /// For a pull request or a job summary; of `diff` and `apply`.
    Markdown,
}

/// The amount of messages on standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbosity {
    /// Errors only.
    Quiet,
    /// Errors, warnings, the summary.
    Normal,
    /// Also phases, and the reason for each write.
    Verbose,
}

/// Colors in text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colors {
    /// Colored.
    On,
    /// Plain.
    Off,
}

/// Progress bars.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Drawn while a phase runs.
    Drawn,
    /// Never drawn.
    Hidden,
}
