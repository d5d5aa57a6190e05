//! Unified diffs as `diff -u -N` prints them for two directories, without the times of the files,
//! so that the same difference is always the same text.

use similar::TextDiff;

/// Returns the difference of two texts, both the content of `file`; empty if they are equal.
pub(super) fn text(file: &str, live: &str, predicted: &str) -> String {
    if live == predicted {
        return String::new();
    }
    let hunks = hunks(live, predicted);
    format!("diff -u -N LIVE/{file} MERGED/{file}\n--- LIVE/{file}\n+++ MERGED/{file}\n{hunks}")
}

/// Returns the same without the lines about the files.
pub(super) fn hunks(live: &str, predicted: &str) -> String {
    let difference = TextDiff::from_lines(live, predicted);
    let mut unified = difference.unified_diff();
    unified.context_radius(3).missing_newline_hint(false).to_string()
}
