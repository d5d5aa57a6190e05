//! The message of a run, as the history keeps it: one line of limited length.

/// The number of characters that are kept of a message.
pub const MAX_MESSAGE_CHARS: usize = 100;

/// Returns the first line of a message that is not blank, as git shows a commit in one line; empty if all are. Control
/// characters and runs of blanks become one blank, and a longer line is cut. A [`Run`](super::Run) has the short
/// message from the start, so that its own entry in the annotation is equal to it.
pub fn shorten_message(text: &str) -> String {
    let message = text
        .lines()
        .map(|line| {
            line.split(|character: char| character.is_whitespace() || character.is_control())
                .filter(|word| !word.is_empty())
                .collect::<Vec<_>>()
                .join(" ")
        })
        .find(|line| !line.is_empty())
        .unwrap_or_default();
    match message.char_indices().nth(MAX_MESSAGE_CHARS - 1) {
        Some((end, _)) if message.chars().count() > MAX_MESSAGE_CHARS => format!("{}…", &message[..end]),
        _ => message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_the_first_line_without_control_characters() {
        let most = "é".repeat(MAX_MESSAGE_CHARS);
        let cut = format!("{}…", "é".repeat(MAX_MESSAGE_CHARS - 1));
        for (text, expected) in [
            ("4f2c1e9 fix the login", "4f2c1e9 fix the login"),
            ("fix the login\n\nIt was broken.\n", "fix the login"),
            ("\n \t\r\n  fix\tthe  login ", "fix the login"),
            ("a\u{1b}[31mb\u{85}c\rd", "a [31mb c d"),
            ("", ""),
            (" \n\t\n", ""),
            (&most, &most),
            (&format!("{most}é"), &cut),
            (&format!("{most}\nmore"), &most),
        ] {
            assert_eq!(shorten_message(text), expected, "{text:?}");
            assert_eq!(shorten_message(expected), expected, "{text:?}: again");
        }
    }
}
