//! Text from the cluster and from manifests within Markdown. It is always written as code, so that Markdown, HTML,
//! links and mentions of users in it have no effect.

use crate::model::text::{escape_as_one_line, printable_text};

/// The most bytes of a message or name; the end of a longer one is cut off.
const MAX_TEXT_BYTES: usize = 2000;

/// The most backticks in a row on a page. Delimiters have to be longer than any run of backticks in their text, and
/// GitHub's parser (cmark-gfm) accepts no delimiter of a code span with more than 80, and no fence with more than 255.
const MAX_BACKTICKS: usize = 16;

/// Returns the text as a code span, for paragraphs and lists.
pub(super) fn code(text: &str) -> String {
    let text = clip(
        &escape_long_backtick_runs(&escape_as_one_line(text)),
        MAX_TEXT_BYTES,
    );
    if text.trim().is_empty() {
        return "` `".to_owned();
    }
    let ticks = "`".repeat(longest_backtick_run(&text) + 1);
    // Markdown removes one space at both ends, so a text that begins or ends with a space or a backtick gets another
    // one.
    let space = if text.starts_with(['`', ' ']) || text.ends_with(['`', ' ']) {
        " "
    } else {
        ""
    };
    format!("{ticks}{space}{text}{space}{ticks}")
}

/// Returns the text as a code span of a headline: at most `max_bytes` bytes of it, with apostrophes in place of
/// backticks, so that the delimiters stay short.
pub(super) fn short_code(text: &str, max_bytes: usize) -> String {
    code(&clip(&escape_as_one_line(text).replace('`', "'"), max_bytes))
}

/// Returns the text as an HTML `code` element, for lines of HTML, in which Markdown is not parsed.
pub(super) fn html_code(text: &str) -> String {
    let text = clip(&escape_as_one_line(text), MAX_TEXT_BYTES);
    let escaped = text
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('`', "&#96;");
    format!("<code>{escaped}</code>")
}

/// Returns the lines as a code block, with a fence that is longer than any run of backticks in the lines.
pub(super) fn fence(language: &str, lines: &str) -> String {
    let lines = escape_long_backtick_runs(&printable_text(lines));
    let fence = "`".repeat(longest_backtick_run(&lines).max(2) + 1);
    let end = if lines.is_empty() || lines.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    format!("{fence}{language}\n{lines}{end}{fence}\n")
}

/// Returns the text with every [`MAX_BACKTICKS`]th backtick in a row escaped.
fn escape_long_backtick_runs(text: &str) -> String {
    let mut run = 0;
    let mut written = String::with_capacity(text.len());
    for character in text.chars() {
        run = if character == '`' { run + 1 } else { 0 };
        if run < MAX_BACKTICKS {
            written.push(character);
        } else {
            written.extend(character.escape_unicode());
            run = 0;
        }
    }
    written
}

/// Returns the length of the longest run of backticks.
fn longest_backtick_run(text: &str) -> usize {
    let runs = text.split(|character| character != '`').map(str::len);
    runs.max().unwrap_or_default()
}

/// Cuts the end of a text off between two characters, with `…` in its place, if the text has more than `max_bytes`
/// bytes.
fn clip(text: &str, max_bytes: usize) -> String {
    if text.len() <= max_bytes {
        return text.to_owned();
    }
    let mark = '…';
    let end = text.floor_char_boundary(max_bytes.saturating_sub(mark.len_utf8()));
    format!("{}{mark}", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_and_blocks_cannot_be_left() {
        let table = [
            ("web", "`web`"),
            ("a`b", "``a`b``"),
            ("``a`", "``` ``a` ```"),
            (" a", "`  a `"),
            ("", "` `"),
            ("two\nlines", "`two\\nlines`"),
            ("@all <b>|[x](y)", "`@all <b>|[x](y)`"),
            ("::add-mask::x", "`\\u{3a}:add-mask::x`"),
        ];
        for (text, expected) in table {
            assert_eq!(code(text), expected);
        }
        assert_eq!(
            html_code("</summary><b>&\n@all"),
            "<code>&lt;/summary&gt;&lt;b&gt;&amp;\\n@all</code>"
        );
        assert_eq!(fence("diff", "+a\n"), "```diff\n+a\n```\n");
        assert_eq!(fence("", "````\n~~~"), "`````\n````\n~~~\n`````\n");
        assert_eq!(
            fence("", "a\r\u{1b}[2J\n::x\n"),
            "```\na\\r\\u{1b}[2J\n\\u{3a}:x\n```\n"
        );
    }

    #[test]
    fn text_is_cut_between_characters() {
        for limit in 3..20 {
            let cut = clip("ääääääääääää€", limit);
            assert!(cut.len() <= limit && cut.ends_with('…'), "{cut}");
        }
        assert_eq!(clip("web", 3), "web");
        assert_eq!(short_code("a`b```", 100), "`a'b'''`");
        assert!(code(&"`".repeat(5000)).len() < 7000);
    }

    #[test]
    fn no_run_of_backticks_is_longer_than_github_understands() {
        for count in [15, 16, 17, 79, 80, 81, 254, 255, 256, 1000] {
            let ticks = "`".repeat(count);
            for text in [code(&ticks), html_code(&ticks), fence("", &ticks)] {
                assert!(longest_backtick_run(&text) <= MAX_BACKTICKS, "{count}: {text}");
            }
        }
        assert_eq!(
            escape_long_backtick_runs(&"`".repeat(17)),
            format!("{}\\u{{60}}`", "`".repeat(15))
        );
    }
}
