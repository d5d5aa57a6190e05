//! How results are shown, as values; `options` chooses them.

/// How results are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// On standard output.
    pub format: Format,
    /// On standard error.
    pub loudness: Loudness,
    /// On standard error.
    pub colors: Colors,
    /// On standard error.
    pub progress: Progress,
}

/// What standard output holds.
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

/// How much standard error holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Loudness {
    /// Errors.
    Quiet,
    /// Errors, warnings, the summary.
    Normal,
    /// The phases, too.
    Verbose,
}

/// Whether messages are coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colors {
    /// They are.
    On,
    /// They are not.
    Off,
}

/// Whether progress is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// It is.
    Drawn,
    /// It is not.
    Hidden,
}

/// How much a table shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// What fits a terminal.
    Usual,
    /// All there is.
    Wide,
}
