//! Unified diffs as `diff -u -N` prints them for two directories, without the times of the files,
//! so that the same difference is always the same text.

use std::time::Duration;

use similar::TextDiff;

/// The time limit of a search for the shortest difference of two texts. After that, the rest of the lines counts as
/// replaced. The search takes longer for two texts of 1 MiB that have many lines in common, in another order.
pub const COMPARISON_TIMEOUT: Duration = Duration::from_millis(200);

/// Returns the difference of two texts, the contents of these files; empty if they are equal.
pub(super) fn diff_with_file_header([old, new]: [String; 2], live: &str, predicted: &str) -> String {
    if live == predicted {
        return String::new();
    }
    let hunks = hunks(live, predicted);
    format!("diff -u -N {old} {new}\n--- {old}\n+++ {new}\n{hunks}")
}

/// Returns the hunks of the difference of two texts, without the lines about the files.
pub(super) fn hunks(live: &str, predicted: &str) -> String {
    compare_lines(live, predicted)
        .unified_diff()
        .context_radius(3)
        .missing_newline_hint(false)
        .to_string()
}

/// Compares the lines of two texts.
pub fn compare_lines<'t>(before: &'t str, after: &'t str) -> TextDiff<'t, 't, str> {
    TextDiff::configure()
        .timeout(COMPARISON_TIMEOUT)
        .diff_lines(before, after)
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
        let hunks = hunks(&before, &after);
        let count = |sign: char| hunks.lines().filter(|line| line.starts_with(sign)).count();
        assert!(count('+') > 0);
        assert_eq!(count('+'), count('-'));
    }
}
