//! Formatting and escaping that all messages share.

use std::time::Duration;

/// The greatest number of names or lines in a message.
const MAX_NAMES: usize = 10;

/// The placeholder for a value that must not be printed, such as a value of a Secret.
pub const HIDDEN: &str = "***";

/// Writes a number with its noun: `1 object`, `2 objects`.
pub fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// Writes the first ten names, separated by commas, and the number of the others: `a, b and 3 more`.
pub fn first_names_and_more<T: ToString>(names: impl IntoIterator<Item = T>) -> String {
    first_names_up_to(MAX_NAMES, names)
}

/// Writes the first `limit` names, separated by commas, and the number of the others: `a, b and 3 more`.
pub fn first_names_up_to<T: ToString>(limit: usize, names: impl IntoIterator<Item = T>) -> String {
    let mut names = names.into_iter();
    let first: Vec<String> = names.by_ref().take(limit).map(|name| name.to_string()).collect();
    match names.count() {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

/// Returns the first ten lines, and one more with the number of the others, if there are any.
pub fn first_lines_and_more<T: ToString>(lines: impl IntoIterator<Item = T>) -> Vec<String> {
    let mut lines = lines.into_iter();
    let mut first_lines: Vec<String> = lines
        .by_ref()
        .take(MAX_NAMES)
        .map(|line| line.to_string())
        .collect();
    let more = lines.count();
    if more > 0 {
        first_lines.push(format!("and {more} more"));
    }
    first_lines
}

/// Parses a boolean as Go's `strconv.ParseBool` does.
pub fn parse_boolean(value: &str) -> Result<bool, &'static str> {
    match value {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err("must be true or false"),
    }
}

/// Writes an error of the operating system with a lower-case first letter and without its number: `No such file or
/// directory (os error 2)` becomes `no such file or directory`. Other errors stay as they are.
pub fn format_os_error(error: &dyn std::fmt::Display) -> String {
    let text = error.to_string();
    let Some((before, behind)) = text.split_once(" (os error ") else {
        return text;
    };
    let mut formatted = before.to_owned();
    if let Some(first) = formatted.get_mut(..1) {
        first.make_ascii_lowercase();
    }
    formatted.push_str(behind.split_once(')').map_or("", |(_, after)| after));
    formatted
}

/// Writes the warning that members may be among the objects of these resources, which cannot be listed.
pub fn members_missed_warning(unlistable_resources: &[String]) -> String {
    format!(
        "cannot list {} in all namespaces, so members may be missed: {}",
        counted(unlistable_resources.len(), "resource"),
        first_names_and_more(unlistable_resources)
    )
}

/// Returns the text on one line, with everything escaped that a terminal or a CI runner would act upon.
///
/// Names, messages and annotations come from clusters and files that others may have written. All output passes through
/// this function or [`printable_text`].
pub fn escape_as_one_line(text: &str) -> String {
    escape_ci_runner_commands(escape_characters(text, is_hostile))
}

/// Returns a text of several lines, with everything escaped that a terminal or a CI runner would act upon, except line
/// breaks and tabs.
pub fn printable_text(text: &str) -> String {
    text.split_inclusive('\n')
        .map(|line| {
            escape_ci_runner_commands(escape_characters(line, |character| {
                is_hostile(character) && !"\n\t".contains(character)
            }))
        })
        .collect()
}

/// Escapes what CI runners would take for commands in a line: `::add-mask::` of GitHub Actions at the beginning of the
/// line, even after blanks; `##[command]` of GitHub Actions, `##vso[…]` of Azure Pipelines and `##teamcity[…]` anywhere
/// in the line (actions/runner, `ActionCommand.cs`).
fn escape_ci_runner_commands(line: String) -> String {
    let line = replace_ci_command_marks(line, "#\\u{23}");
    let command = line.trim_start();
    match command.strip_prefix("::") {
        Some(rest) => format!("{}\\u{{3a}}:{rest}", &line[..line.len() - command.len()]),
        None => line,
    }
}

/// Replaces the `##` of each `##word[` by `replacement`.
fn replace_ci_command_marks(text: String, replacement: &str) -> String {
    let starts: Vec<usize> = find_ci_command_marks(&text).collect();
    if starts.is_empty() {
        return text;
    }
    let mut escaped = String::new();
    let mut end = 0;
    for start in starts {
        escaped.push_str(&text[end..start]);
        escaped.push_str(replacement);
        end = start + "##".len();
    }
    escaped.push_str(&text[end..]);
    escaped
}

/// Returns the byte positions of `##word[` in the text. Of more than two marks in a row, the last two count.
fn find_ci_command_marks(text: &str) -> impl Iterator<Item = usize> {
    text.match_indices('#').map(|(start, _)| start).filter(|start| {
        text[*start..]
            .strip_prefix("##")
            .is_some_and(completes_ci_command)
    })
}

/// Returns whether the text after a `##` makes a command of it: letters, if any, and a bracket.
fn completes_ci_command(rest: &str) -> bool {
    rest.trim_start_matches(|character: char| character.is_ascii_alphabetic())
        .starts_with('[')
}

/// Punctuation that has no meaning in any shell within a word, and needs no quotes.
pub const PLAIN_IN_SHELLS: &str = "_-./:@%+=,";

/// Quotes the text as one word of a shell command, for hints that users copy.
pub fn shell_word(text: &str) -> String {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || PLAIN_IN_SHELLS.contains(character);
    if !text.is_empty() && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// Escapes the text as a JSON string, but without the quotation marks around it.
pub fn escape_json(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// Escapes in serialized JSON everything that a terminal or a CI runner would act upon.
///
/// Serializers escape only what JSON requires, not DEL or U+0080 to U+009F, for example. Hostile characters and `##`
/// occur only within strings of the JSON text, so that an escape `\uXXXX` does not change the value.
///
/// A text without anything to escape is returned without a copy: the document of a large set is large.
pub fn printable_json(json: String) -> String {
    let json = replace_ci_command_marks(json, "#\\u0023");
    let is_escaped = |character| is_hostile(character) && character != '\n';
    // Most documents are plain ASCII, and this comparison of bytes is many times faster than `contains`.
    let is_plain = json.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\n'));
    if is_plain || !json.contains(is_escaped) {
        return json;
    }
    replace_characters(&json, is_escaped, |character, escaped| {
        let mut units = [0; 2];
        let units = character.encode_utf16(&mut units).iter();
        escaped.extend(units.map(|unit| format!("\\u{unit:04x}")));
    })
}

/// Escapes serialized JSON like [`printable_json`], for a reader of YAML: it reads no pairs of surrogates, and has an
/// escape of eight digits instead.
pub fn printable_json_as_yaml(json: String) -> String {
    let json = replace_ci_command_marks(json, "#\\u0023");
    replace_characters(
        &json,
        |character| is_hostile(character) && character != '\n',
        |character, escaped| escaped.extend([format!("\\U{:08x}", u32::from(character))]),
    )
}

/// Returns whether the text contains a command of a CI runner, or a character other than a line break that controls a
/// terminal or is invisible.
pub fn contains_hostile_text(text: &str) -> bool {
    find_ci_command_marks(text).next().is_some()
        || text.contains(|character| is_hostile(character) && character != '\n')
}

/// Returns whether the character must be escaped, because it
///
/// - controls the terminal or breaks a line;
/// - changes the direction of text, so that a reviewer would read characters in another order than the real one;
/// - is invisible, so that two different names would look the same: characters that Unicode says to ignore by default
///   (`Default_Ignorable_Code_Point` in `DerivedCoreProperties.txt`), that look like a blank, or that are for private
///   use.
fn is_hostile(character: char) -> bool {
    let is_invisible = matches!(
        character,
        '\u{a0}'
            | '\u{ad}'
            | '\u{34f}'
            | '\u{600}'..='\u{605}'
            | '\u{61c}'
            | '\u{6dd}'
            | '\u{70f}'
            | '\u{8e2}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{2000}'..='\u{200f}'
            | '\u{202a}'..='\u{202f}'
            | '\u{205f}'..='\u{206f}'
            | '\u{2800}'
            | '\u{3164}'
            | '\u{e000}'..='\u{f8ff}'
            | '\u{fdd0}'..='\u{fdef}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffc}'
            | '\u{1107f}'
            | '\u{110bd}'
            | '\u{13430}'..='\u{1343f}'
            | '\u{16fe4}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d159}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
            | '\u{f0000}'..='\u{10ffff}'
    );
    let breaks_line = matches!(character, '\u{2028}' | '\u{2029}');
    is_invisible || breaks_line || character.is_control()
}

/// Replaces each character for which `is_escaped` holds by an escape of Rust's: `\u{1b}`.
fn escape_characters(text: &str, is_escaped: impl Fn(char) -> bool) -> String {
    if !text.contains(&is_escaped) {
        return text.to_owned();
    }
    replace_characters(text, is_escaped, |character, escaped| {
        escaped.extend(character.escape_default());
    })
}

/// Replaces each character for which `is_replaced` holds by what `write` appends for it.
fn replace_characters(
    text: &str,
    is_replaced: impl Fn(char) -> bool,
    write: impl Fn(char, &mut String),
) -> String {
    let mut result = String::with_capacity(text.len());
    for character in text.chars() {
        if is_replaced(character) {
            write(character, &mut result);
        } else {
            result.push(character);
        }
    }
    result
}

/// Writes a duration as users write it: `1m30s`, `500ms`. Milliseconds are dropped from a minute on.
pub fn format_duration(time: Duration) -> String {
    match (time.as_secs() / 60, time.as_secs() % 60, time.subsec_millis()) {
        (0, 0, millis) => format!("{millis}ms"),
        (0, seconds, 0) => format!("{seconds}s"),
        (0, ..) => format!("{:.1}s", time.as_secs_f64()),
        (minutes, 0, _) => format!("{minutes}m"),
        (minutes, seconds, _) => format!("{minutes}m{seconds}s"),
    }
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
        assert_eq!(first_names_and_more(["a", "b"]), "a, b");
        assert_eq!(first_names_and_more(1..=10), "1, 2, 3, 4, 5, 6, 7, 8, 9, 10");
        assert_eq!(
            first_names_and_more(1..=1000),
            "1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 990 more"
        );
    }

    #[test]
    fn numbers_of_the_operating_system_are_left_out() {
        let table = [
            (
                "No such file or directory (os error 2)",
                "no such file or directory",
            ),
            ("Is a directory (os error 21) at x", "is a directory at x"),
            ("Unexpected end", "Unexpected end"),
        ];
        for (text, expected) in table {
            assert_eq!(format_os_error(&text), expected);
        }
    }

    #[test]
    fn text_of_others_stays_on_its_line() {
        let table = [
            ("a\x1b[31mb\tc", "a\\u{1b}[31mb\\tc"),
            ("two\nlines\r\n", "two\\nlines\\r\\n"),
            ("a\u{85}b\u{2028}c\u{2029}d", "a\\u{85}b\\u{2028}c\\u{2029}d"),
            ("\u{202e}txt.exe", "\\u{202e}txt.exe"),
            (
                "a\u{200b}\u{200d}\u{2060}\u{ad}b",
                "a\\u{200b}\\u{200d}\\u{2060}\\u{ad}b",
            ),
            (
                "a\u{a0}\u{2800}\u{e000}\u{fff9}b\u{3000}",
                "a\\u{a0}\\u{2800}\\u{e000}\\u{fff9}b\u{3000}",
            ),
            (
                "\u{3164}\u{fe0f}\u{feff}\u{e0020}",
                "\\u{3164}\\u{fe0f}\\u{feff}\\u{e0020}",
            ),
            ("ä ✓", "ä ✓"),
            ("::add-mask::x", "\\u{3a}:add-mask::x"),
            ("a ##vso[task]", "a #\\u{23}vso[task]"),
            ("a##[x] ## b", "a#\\u{23}[x] ## b"),
            ("###vso[task] ####[x]", "##\\u{23}vso[task] ###\\u{23}[x]"),
            ("a::b ## c", "a::b ## c"),
        ];
        for (text, expected) in table {
            assert_eq!(escape_as_one_line(text), expected);
        }
    }

    #[test]
    fn text_of_several_lines_keeps_its_lines_and_tabs() {
        assert_eq!(
            printable_text(" a\x1b[31mb\tc\n ::stop-commands::x\n+::x\n"),
            " a\\u{1b}[31mb\tc\n \\u{3a}:stop-commands::x\n+::x\n"
        );
    }

    #[test]
    fn words_of_a_shell_are_quoted() {
        assert_eq!(shell_word("clusterrole/system:node"), "clusterrole/system:node");
        assert_eq!(shell_word("a$(id);b"), "'a$(id);b'");
        assert_eq!(shell_word("it's"), r"'it'\''s'");
    }

    #[test]
    fn json_stays_json() {
        let value = serde_json::json!({"a\u{85}b": "\u{1b}[31m\t\u{7f}\u{9b}\nä\u{2028}\u{e0020}"});
        let text = printable_json(format!("{value:#}"));
        assert!(!text.contains(|character: char| character.is_control() && character != '\n'));
        assert!(text.contains("a\\u0085b"), "{text}");
        let parsed: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(parsed, value);
    }
}
