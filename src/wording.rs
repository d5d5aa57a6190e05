//! Small rules of wording that all messages share.

/// `1 object`, `2 objects`.
pub fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// The text with everything replaced that a terminal would act upon.
///
/// Names, messages and annotations come from clusters and files that somebody else
/// may have written.
pub fn printable(text: &str) -> String {
    let is_hostile = |character: char| character.is_control() && character != '\n';
    if !text.contains(is_hostile) {
        return text.to_owned();
    }
    text.chars()
        .map(|character| {
            if is_hostile(character) {
                character.escape_default().to_string()
            } else {
                character.to_string()
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_their_plural() {
        assert_eq!(
            [0, 1, 2].map(|count| counted(count, "object")),
            ["0 objects", "1 object", "2 objects"]
        );
    }

    #[test]
    fn escape_sequences_do_not_reach_a_terminal() {
        assert_eq!(printable("a\x1b[31mb\tc"), "a\\u{1b}[31mb\\tc");
        assert_eq!(printable("two\nlines"), "two\nlines");
    }
}
