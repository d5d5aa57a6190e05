//! The changes within a text of several lines, such as a file in a `ConfigMap`.

use similar::ChangeTag;

use crate::compare::diff;

/// The most lines that are shown of one text.
const LINES: usize = 10;

/// Returns the lines that differ, each with its sign and one line of context, and the number of the
/// others.
pub(super) fn hunks(before: &str, after: &str) -> Vec<(char, String)> {
    let diff = diff::lines(before, after);
    let mut lines = Vec::new();
    for (index, group) in diff.grouped_ops(1).iter().enumerate() {
        if index > 0 {
            lines.push((' ', "…".to_owned()));
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let sign = match change.tag() {
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
                ChangeTag::Equal => ' ',
            };
            lines.push((sign, change.value().trim_end_matches(['\n', '\r']).to_owned()));
        }
    }
    if lines.len() > LINES {
        let more = lines.len() - LINES + 1;
        lines.truncate(LINES - 1);
        lines.push((' ', format!("… {more} more lines: --full")));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(before: &str, after: &str) -> Vec<String> {
        let hunks = hunks(before, after);
        hunks.iter().map(|(sign, line)| format!("{sign}{line}")).collect()
    }

    #[test]
    fn only_lines_around_a_change_are_shown() {
        let before = "a\nb\nc\nd\ne\nf\ng\n";
        let after = "a\nb\nC\nd\ne\nf\nG\n";
        assert_eq!(
            shown(before, after),
            [" b", "-c", "+C", " d", " …", " f", "-g", "+G"]
        );
        let long = "line\n".repeat(50);
        let lines = shown("", &long);
        assert_eq!(lines.len(), LINES);
        assert_eq!(lines[LINES - 1], " … 41 more lines: --full");
    }
}
