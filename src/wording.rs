//! Small rules of wording that all messages share.

/// `1 object`, `2 objects`.
pub fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// The text of one message: lines after the first are indented.
pub fn continued(text: &str) -> String {
    text.trim_end().replace('\n', "\n  ")
}

/// At most ten names, and how many more there are: nobody reads a thousand on one line.
pub fn listed<T: ToString>(names: impl IntoIterator<Item = T>) -> String {
    let mut names = names.into_iter();
    let first: Vec<String> = names
        .by_ref()
        .take(SHOWN_NAMES)
        .map(|name| name.to_string())
        .collect();
    match names.count() {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

/// How many names a message holds.
const SHOWN_NAMES: usize = 10;

/// The text with everything replaced that a terminal would act upon.
///
/// Names, messages and annotations come from clusters and files that somebody else
/// may have written.
pub fn printable(text: &str) -> String {
    with_hostile(text, |character| character.escape_default().to_string())
}

/// The same for text whose lines may be indented by tabs, which no terminal minds.
pub fn printable_text(text: &str) -> String {
    let lines = text.split('\t').map(printable);
    lines.collect::<Vec<_>>().join("\t")
}

/// The text as it stands between quotation marks in JSON.
pub fn json_quoted(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// Serialised JSON with everything escaped that a terminal would act upon.
///
/// Serialisers escape what JSON wants escaped, which leaves DEL and U+0080 to U+009F. All
/// of these stand within strings, so an escape of JSON's own does not change the value.
pub fn printable_json(json: &str) -> String {
    with_hostile(json, |character| format!("\\u{:04x}", u32::from(character)))
}

/// Controls of the terminal, and of the direction of text: what an approver reads must stand in
/// the order in which it is meant.
fn is_hostile(character: char) -> bool {
    let turns = matches!(
        character,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    turns || (character.is_control() && character != '\n')
}

fn with_hostile(text: &str, escaped: impl Fn(char) -> String) -> String {
    if !text.contains(is_hostile) {
        return text.to_owned();
    }
    text.chars()
        .map(|character| {
            if is_hostile(character) {
                escaped(character)
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
    fn many_names_are_cut_short() {
        assert_eq!(listed(["a", "b"]), "a, b");
        assert_eq!(listed(1..=10), "1, 2, 3, 4, 5, 6, 7, 8, 9, 10");
        assert_eq!(listed(1..=1000), "1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 990 more");
    }

    #[test]
    fn one_message_is_one_message_however_many_lines_it_has() {
        assert_eq!(continued("a\n- b\n  c\n"), "a\n  - b\n    c");
    }

    #[test]
    fn escape_sequences_do_not_reach_a_terminal() {
        assert_eq!(printable("a\x1b[31mb\tc"), "a\\u{1b}[31mb\\tc");
        assert_eq!(printable("two\nlines"), "two\nlines");
        assert_eq!(printable_text("a\x1b[31mb\tc\n"), "a\\u{1b}[31mb\tc\n");
    }

    #[test]
    fn json_stays_json() {
        let value = serde_json::json!({"a\u{85}b": "\u{1b}[31m\t\u{7f}\u{9b}\nä\u{2028}"});
        let text = printable_json(&format!("{value:#}"));
        assert!(!text.contains(|character: char| character.is_control() && character != '\n'));
        assert!(text.contains("a\\u0085b"), "{text}");
        let read: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(read, value);
    }
}
