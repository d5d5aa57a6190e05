//! Reads the style of the output: from flags, the terminal, and environment variables about
//! terminals.

use std::io::{self, IsTerminal};

use terminal_size::{Height, Width};

use crate::cli::{ColorChoice, GlobalFlags, MarkdownFlags};
use crate::report::{BYTES_OF_COMMENT, Colors, Device, Format, Progress, Style, UnchangedLines, Verbosity};

/// Reads the style of the output.
pub fn read_style(shared: &GlobalFlags) -> Style {
    let output = describe_device(
        io::stdout().is_terminal(),
        terminal_size::terminal_size_of(io::stdout()),
    );
    let messages = describe_device(
        io::stderr().is_terminal(),
        terminal_size::terminal_size_of(io::stderr()),
    );
    // If standard output is a pipe, the program that reads it may write to the terminal of the messages: a progress bar
    // would be drawn over its lines.
    let may_draw = messages.is_terminal()
        && output.is_terminal()
        && !shared.no_progress
        && !shared.quiet
        && !is_terminal_dumb()
        && !is_environment_variable_set("CI");
    Style {
        format: shared.output.unwrap_or(Format::Lines),
        verbosity: match (shared.quiet, shared.verbosity()) {
            (true, _) => Verbosity::Quiet,
            (false, 0) => Verbosity::Normal,
            (false, _) => Verbosity::Verbose,
        },
        colors: read_colors(shared, &io::stderr()),
        output_colors: read_colors(shared, &io::stdout()),
        progress: if may_draw {
            Progress::Drawn
        } else {
            Progress::Hidden
        },
        output,
        messages,
        unchanged: if output.is_terminal() && shared.verbosity() == 0 {
            UnchangedLines::Folded
        } else {
            UnchangedLines::Shown
        },
        max_bytes: BYTES_OF_COMMENT,
    }
}

/// Reads the style of the output of `diff` and `apply`, which have the flags of Markdown, too.
pub fn read_style_with_markdown(shared: &GlobalFlags, markdown: &MarkdownFlags) -> Style {
    let style = read_style(shared);
    let max_bytes = markdown.max_bytes.and_then(|bytes| usize::try_from(bytes).ok());
    Style {
        max_bytes: max_bytes.unwrap_or(style.max_bytes),
        ..style
    }
}

/// Describes the device of a stream. A terminal of unknown size counts as 80 columns by 24 rows.
fn describe_device(is_terminal: bool, size: Option<(Width, Height)>) -> Device {
    if !is_terminal {
        return Device::Stream;
    }
    match size {
        Some((Width(columns), Height(rows))) if columns > 0 && rows > 0 => Device::Terminal {
            columns: columns.into(),
            rows: rows.into(),
        },
        _ => Device::Terminal {
            columns: 80,
            rows: 24,
        },
    }
}

/// Reads `--color`, `NO_COLOR` and `TERM`, for output to this stream.
pub(super) fn read_colors(shared: &GlobalFlags, stream: &impl IsTerminal) -> Colors {
    match shared.color {
        ColorChoice::Always => Colors::On,
        ColorChoice::Auto
            if stream.is_terminal() && !is_environment_variable_set("NO_COLOR") && !is_terminal_dumb() =>
        {
            Colors::On
        }
        ColorChoice::Auto | ColorChoice::Never => Colors::Off,
    }
}

/// Returns whether the environment variable is set, and not empty (<https://no-color.org>).
fn is_environment_variable_set(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| !value.is_empty())
}

/// Returns whether the terminal cannot move the cursor or print colors.
fn is_terminal_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}
