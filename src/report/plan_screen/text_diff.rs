//! The changes within a text of several lines, such as a file in a `ConfigMap`.

use crate::compare::diff;
use crate::report::layout::paint::cut_middle;

/// Returns the lines that differ and one line of context around them, each with its sign. Lines are cut to `width`
/// characters.
pub(super) fn hunks(before: &str, after: &str, width: usize) -> Vec<(char, String)> {
    let mut lines = Vec::new();
    for (index, hunk) in diff::compare_lines(before, after, 1).iter().enumerate() {
        if index > 0 {
            lines.push((' ', "…".to_owned()));
        }
        for block in &hunk.blocks {
            for (sign, of_sign) in [('-', &block.deleted), ('+', &block.added), (' ', &block.equal)] {
                lines.extend(of_sign.iter().map(|line| (sign, format_line(line, width))));
            }
        }
    }
    lines
}

fn format_line(line: &str, width: usize) -> String {
    let line = line.trim_end_matches(['\n', '\r']).replace('\t', "    ");
    cut_middle(&line, width)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(before: &str, after: &str) -> Vec<String> {
        let hunks = hunks(before, after, 40);
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
    }

    #[test]
    fn long_lines_are_cut_so_that_their_difference_is_seen() {
        let line = |end: &str| format!("image: registry.example.com/a-long-path/of-web:{end}\n");
        let lines = shown(&line("1"), &line("2"));
        assert!(lines[0].ends_with(":1") && lines[1].ends_with(":2"), "{lines:?}");
    }
}
