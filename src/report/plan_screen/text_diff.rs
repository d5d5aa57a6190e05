//! The changes within a text of several lines, such as a file in a `ConfigMap`.

use crate::compare::diff::{self, Block};
use crate::report::layout::paint::{fit, fit_showing_difference};

/// The most lines that are shown of one text.
const MAX_LINES: usize = 10;
/// The most removed lines, and the most added lines, that are shown of one block if the whole text does not fit.
const MAX_LINES_PER_SIDE: usize = 4;

/// Returns the lines that differ and one line of context around them, each with its sign, and a line with the number of
/// lines that are not shown. Lines are cut to `width` characters.
pub(super) fn hunks(before: &str, after: &str, width: usize) -> Vec<(char, String)> {
    let blocks = diff_blocks(before, after);
    let count: usize = blocks.iter().map(count_lines).sum();
    if count <= MAX_LINES {
        return blocks
            .iter()
            .flat_map(|block| format_block(block, width, MAX_LINES))
            .collect();
    }
    let mut lines = Vec::new();
    let mut more = count;
    for block in blocks {
        let side = if block.deleted.is_empty() || block.added.is_empty() {
            (MAX_LINES - 1 - lines.len()).max(1)
        } else {
            MAX_LINES_PER_SIDE
        };
        let shown = format_block(&block, width, side);
        if lines.len() + shown.len() >= MAX_LINES {
            break;
        }
        more -= count_lines(&block);
        lines.extend(shown);
    }
    if more > 0 {
        lines.push((' ', format!("… {more} more lines: --full")));
    }
    lines
}

fn diff_blocks<'t>(before: &'t str, after: &'t str) -> Vec<Block<'t>> {
    let mut blocks = Vec::new();
    for (index, hunk) in diff::compare_lines(before, after, 1).into_iter().enumerate() {
        if index > 0 {
            blocks.push(Block {
                equal: vec!["…"],
                ..Block::default()
            });
        }
        blocks.extend(hunk.blocks);
    }
    blocks
}

fn count_lines(block: &Block<'_>) -> usize {
    block.deleted.len() + block.added.len() + block.equal.len()
}

/// Returns at most `max_lines_per_sign` lines of each sign. A deleted line and the line that replaces it are cut at the
/// same place.
fn format_block(block: &Block<'_>, width: usize, max_lines_per_sign: usize) -> Vec<(char, String)> {
    let [mut deleted, mut added, equal] =
        [&block.deleted, &block.added, &block.equal].map(|lines| without_breaks_and_tabs(lines));
    for (one, other) in deleted.iter_mut().zip(&mut added) {
        [*one, *other] = fit_showing_difference(one, other, width);
    }
    let mut shown = Vec::new();
    for (sign, lines) in [('-', deleted), ('+', added), (' ', equal)] {
        let count = if lines.len() > max_lines_per_sign {
            max_lines_per_sign - 1
        } else {
            lines.len()
        };
        shown.extend(lines[..count].iter().map(|line| (sign, fit(line, width))));
        if count < lines.len() {
            shown.push((sign, format!("… {} more lines: --full", lines.len() - count)));
        }
    }
    shown
}

fn without_breaks_and_tabs(lines: &[&str]) -> Vec<String> {
    lines
        .iter()
        .map(|line| line.trim_end_matches(['\n', '\r']).replace('\t', "    "))
        .collect()
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
        let long = "line\n".repeat(50);
        let lines = shown("", &long);
        assert_eq!(lines.len(), MAX_LINES - 1);
        assert_eq!(lines[MAX_LINES - 2], "+… 42 more lines: --full");
    }

    #[test]
    fn what_replaces_many_lines_is_shown_beside_them() {
        let text = |word: &str| format!("{word}\n").repeat(30);
        assert_eq!(
            shown(
                &format!("{}same\n", text("old")),
                &format!("{}same\n", text("new"))
            ),
            [
                "-old",
                "-old",
                "-old",
                "-… 27 more lines: --full",
                "+new",
                "+new",
                "+new",
                "+… 27 more lines: --full",
                " same",
            ]
        );
    }

    #[test]
    fn long_lines_are_cut_so_that_their_difference_is_seen() {
        let line = |end: &str| format!("image: registry.example.com/a-long-path/of-web:{end}\n");
        let lines = shown(&line("1"), &line("2"));
        assert!(lines[0].ends_with(":1") && lines[1].ends_with(":2"), "{lines:?}");
    }

    #[test]
    fn each_shown_removal_has_what_replaces_it() {
        let text = |word: &str| {
            let lines = (0..40).map(|line| match line % 2 {
                0 => format!("{word} {line}"),
                _ => format!("same {line}"),
            });
            lines.collect::<Vec<_>>().join("\n")
        };
        let lines = shown(&text("old"), &text("new"));
        let count = |sign: char| lines.iter().filter(|line| line.starts_with(sign)).count();
        assert_eq!(count('-'), count('+'), "{lines:?}");
        assert!(
            lines.last().is_some_and(|line| line.contains("more lines")),
            "{lines:?}"
        );
    }
}
