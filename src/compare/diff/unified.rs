//! Unified diffs as `diff -u -N` prints them for two directories, without the times of the files,
//! so that the same difference is always the same text.

use std::fmt::Write as _;

use gix_imara_diff::{Algorithm, Diff, InternedInput, Token};

/// A part of two texts with lines that differ, and the lines around them.
pub struct Hunk<'t> {
    /// The number of lines before the hunk, in the old text and in the new one.
    start: [u32; 2],
    pub blocks: Vec<Block<'t>>,
}

/// Lines that are deleted and added in one place, or lines that do not change. Each has its line break.
#[derive(Default)]
pub struct Block<'t> {
    pub deleted: Vec<&'t str>,
    pub added: Vec<&'t str>,
    pub equal: Vec<&'t str>,
}

/// Compares the lines of two texts. Up to `context` equal lines are shown on each side of a change.
pub fn compare_lines<'t>(before: &'t str, after: &'t str, context: u32) -> Vec<Hunk<'t>> {
    let input = InternedInput::new(before, after);
    let mut diff = Diff::compute(Algorithm::Myers, &input);
    diff.postprocess_lines(&input);
    let mut hunks: Vec<Hunk<'t>> = Vec::new();
    // The end of the previous change in the old text.
    let mut end = 0;
    for change in diff.hunks() {
        let [start, start_after] = [change.before.start, change.after.start];
        match hunks.last_mut() {
            Some(hunk) if start - end <= 2 * context => hunk.push_equal(&input, end, start),
            last => {
                if let Some(last) = last {
                    last.push_equal(&input, end, end + context);
                }
                let shown_before = context.min(start);
                let mut hunk = Hunk {
                    start: [start - shown_before, start_after - shown_before],
                    blocks: Vec::new(),
                };
                hunk.push_equal(&input, start - shown_before, start);
                hunks.push(hunk);
            }
        }
        if let Some(hunk) = hunks.last_mut() {
            hunk.blocks.push(Block {
                deleted: lines_of(&input, slice(&input.before, start, change.before.end)),
                added: lines_of(&input, slice(&input.after, start_after, change.after.end)),
                equal: Vec::new(),
            });
        }
        end = change.before.end;
    }
    if let Some(last) = hunks.last_mut() {
        last.push_equal(&input, end, end + context);
    }
    hunks
}

impl<'t> Hunk<'t> {
    /// Adds the lines of the old text between these places, as far as there are any.
    fn push_equal(&mut self, input: &InternedInput<&'t str>, start: u32, end: u32) {
        let equal = lines_of(input, slice(&input.before, start, end));
        if !equal.is_empty() {
            self.blocks.push(Block {
                equal,
                ..Block::default()
            });
        }
    }
}

/// Returns the tokens between these places, as far as there are any.
fn slice(tokens: &[Token], start: u32, end: u32) -> &[Token] {
    let end = tokens.len().min(end as usize);
    &tokens[start as usize..end]
}

fn lines_of<'t>(input: &InternedInput<&'t str>, tokens: &[Token]) -> Vec<&'t str> {
    tokens.iter().map(|token| input.interner[*token]).collect()
}

/// Returns the difference of two texts, the contents of these files; empty if they are equal.
pub(super) fn diff_with_file_header([old, new]: [String; 2], live: &str, predicted: &str) -> String {
    if live == predicted {
        return String::new();
    }
    let hunks = format_hunks(live, predicted);
    format!("diff -u -N {old} {new}\n--- {old}\n+++ {new}\n{hunks}")
}

/// Returns the hunks of the difference of two texts, without the lines about the files.
pub(super) fn format_hunks(live: &str, predicted: &str) -> String {
    let mut text = String::new();
    for Hunk { start, blocks } in compare_lines(live, predicted, 3) {
        let count = |lines: fn(&Block) -> usize| blocks.iter().map(lines).sum();
        let old = format_range(start[0], count(|block| block.deleted.len() + block.equal.len()));
        let new = format_range(start[1], count(|block| block.added.len() + block.equal.len()));
        let _ = writeln!(text, "@@ -{old} +{new} @@");
        for block in blocks {
            for (sign, lines) in [('-', block.deleted), ('+', block.added), (' ', block.equal)] {
                for line in lines {
                    text.push(sign);
                    text.push_str(line.trim_end_matches('\n'));
                    text.push('\n');
                }
            }
        }
    }
    text
}

/// Returns a range of lines as `diff -u` writes it: the first line from 1, and the number of lines unless there is one.
/// An empty range has the number of the line before it.
fn format_range(lines_before: u32, count: usize) -> String {
    match count {
        0 => format!("{lines_before},0"),
        1 => format!("{}", lines_before + 1),
        _ => format!("{},{count}", lines_before + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of one letter, in an order without a pattern.
    fn letters(mut seed: u64) -> String {
        let mut text = String::new();
        for _ in 0..450_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            text.push(char::from(
                b'a' + u8::try_from((seed >> 33) % 26).unwrap_or_default(),
            ));
            text.push('\n');
        }
        text
    }

    #[test]
    fn large_texts_with_all_lines_changed_are_compared_in_bounded_time() {
        let before = letters(1);
        let after = letters(2);
        let hunks = format_hunks(&before, &after);
        let count = |sign: char| hunks.lines().filter(|line| line.starts_with(sign)).count();
        assert!(count('+') > 0);
        assert_eq!(count('+'), count('-'));
    }
}
