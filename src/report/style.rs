//! The style of the output, as values; `settings` chooses them.

/// The style of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// The format of standard output.
    pub format: Format,
    /// The messages on standard error.
    pub loudness: Loudness,
    /// Colors on standard error.
    pub colors: Colors,
    /// Progress bars on standard error.
    pub progress: Progress,
}

/// The format of standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Lines as kubectl prints them.
    Lines,
    /// Tables with more columns.
    Wide,
    /// Names, a line each.
    Names,
    /// One JSON document.
    Json,
    /// One YAML document.
    Yaml,
}

/// The amount of messages on standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Loudness {
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

/// The columns of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// Those that fit a terminal.
    Usual,
    /// All columns.
    Wide,
}
