//! Objects that a plan keeps, each with the reason.

use super::{INDENT, wrapped};
use crate::model::identity::ObjectKey;
use crate::plan::SkipReason;
use crate::report::paint::{Color, Line, fitted};

/// Limit of kept objects that are named.
const NAMED: usize = 5;

/// Returns the lines that name the first of these objects, and the number of the others. Objects that a run
/// does not concern are only counted, in the line of the plan.
pub(super) fn lines(kept: &[(ObjectKey, SkipReason)], columns: usize) -> Vec<Line> {
    let mut named: Vec<String> = kept
        .iter()
        .filter(|(_, reason)| reason.is_reported())
        .map(|(key, reason)| format!("{key}: {}", reason.cause()))
        .collect();
    let more = named.len().saturating_sub(NAMED);
    named.truncate(NAMED);
    let mut lines = Vec::new();
    for text in named {
        let room = columns.saturating_sub(INDENT.len());
        for (place, part) in wrapped(&text, room).into_iter().enumerate() {
            let margin = if place == 0 { "  = " } else { INDENT };
            lines.push(Line::new(
                Color::Plain,
                format!("{margin}{}", fitted(&part, room)),
            ));
        }
    }
    if more > 0 {
        lines.push(Line::new(Color::Plain, format!("    … and {more} more kept")));
    }
    lines
}
