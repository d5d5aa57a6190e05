//! Reads the style of the output: from flags, the terminal, and environment variables about
//! terminals.

use std::io::IsTerminal;

use crate::cli::{ColorChoice, GlobalFlags, OutputFormat};
use crate::report::{Colors, Format, Loudness, Progress, Style};

/// Reads the style of the output.
pub fn style(shared: &GlobalFlags) -> Style {
    let stderr_is_terminal = std::io::stderr().is_terminal();
    let colors = colors(shared, &std::io::stderr());
    let may_draw = stderr_is_terminal && !shared.no_progress && !shared.quiet && !is_dumb() && !is_set("CI");
    Style {
        format: match shared.output {
            None => Format::Lines,
            Some(OutputFormat::Name) => Format::Names,
            Some(OutputFormat::Json) => Format::Json,
            Some(OutputFormat::Yaml) => Format::Yaml,
            Some(OutputFormat::Wide) => Format::Wide,
        },
        loudness: match (shared.quiet, shared.verbosity()) {
            (true, _) => Loudness::Quiet,
            (false, 0) => Loudness::Normal,
            (false, _) => Loudness::Verbose,
        },
        colors,
        progress: if may_draw {
            Progress::Drawn
        } else {
            Progress::Hidden
        },
    }
}

/// The colors of output to `stream`.
pub(super) fn colors(shared: &GlobalFlags, stream: &impl IsTerminal) -> Colors {
    match shared.color {
        ColorChoice::Always => Colors::On,
        ColorChoice::Auto if stream.is_terminal() && !is_set("NO_COLOR") && !is_dumb() => Colors::On,
        ColorChoice::Auto | ColorChoice::Never => Colors::Off,
    }
}

fn is_set(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| !value.is_empty())
}

fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}
