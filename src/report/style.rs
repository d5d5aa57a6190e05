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
    /// The characters that a line of a table may have.
    pub(super) fn table_width(self) -> usize {
        match self.format {
            Format::Wide => usize::MAX,
            _ => self.output.width(),
        }
    }
}

/// The destination of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Device {
    /// A terminal of this size, in characters.
    Terminal {
        /// Characters in a line.
        columns: usize,
        /// Lines.
        rows: usize,
    },
    /// A pipe or a file.
    Stream,
}

impl Device {
    /// Returns whether it is a terminal.
    pub fn is_terminal(self) -> bool {
        self != Self::Stream
    }

    /// The characters that a line may have: any number if it is not a terminal.
    pub(super) fn width(self) -> usize {
        match self {
            Self::Terminal { columns, .. } => columns,
            Self::Stream => usize::MAX,
        }
    }

    /// The characters in a line; 80 if that is not a terminal.
    pub fn columns(self) -> usize {
        match self {
            Self::Terminal { columns, .. } => columns,
            Self::Stream => 80,
        }
    }

    /// The visible lines; 24 if that is not a terminal.
    pub fn rows(self) -> usize {
        match self {
            Self::Terminal { rows, .. } => rows,
            Self::Stream => 24,
        }
    }
}

/// The lines about objects that do not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnchangedLines {
    /// One for each.
    Shown,
    /// None: the summary counts them.
    Folded,
}

/// The format of standard output. The comments of values are on the page of `-o`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Lines as kubectl prints them.
    #[value(skip)]
    Lines,
    /// One document.
    Json,
    /// One document.
    Yaml,
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
