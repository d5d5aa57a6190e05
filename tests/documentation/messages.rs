//! The tables of docs/troubleshooting.md hold messages that the program has.

use std::fs;
use std::path::Path;

use regex::Regex;

use super::{checkout, read};

/// Shorter pieces of a message are found anywhere.
const SHORTEST: usize = 12;

#[test]
fn tables_hold_messages_of_the_program() {
    let program = source(&checkout("src"));
    let page = read("docs/troubleshooting.md");
    // Placeholders, alternatives, and the marks around them.
    let variable = Regex::new(r#": |\*[^*]+\*|\([^)]*\)|["`…]|\\.|\[[^\]]*\]"#).expect("a pattern");
    let messages = page
        .lines()
        .filter_map(|line| line.strip_prefix("| "))
        .filter_map(|line| line.split_once(" | "))
        .map(|(message, _)| message)
        .filter(|message| *message != "message");
    let mut count = 0;
    let mut unknown = Vec::new();
    for message in messages {
        let pieces = variable.split(message).map(str::trim);
        for piece in pieces.filter(|piece| piece.len() >= SHORTEST) {
            count += 1;
            if !program.contains(piece.trim_matches([',', ';', ':', '.'])) {
                unknown.push(piece);
            }
        }
    }
    assert!(count > 20, "only {count} pieces of messages");
    assert!(unknown.is_empty(), "the program does not say {unknown:#?}");
}

/// All source files, with string literals on one line each.
fn source(directory: &Path) -> String {
    let continued = Regex::new(r"\\\n\s*").expect("a pattern");
    let mut text = String::new();
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            text.push_str(&source(&path));
        } else {
            let file = fs::read_to_string(&path).unwrap_or_default();
            text.push_str(&continued.replace_all(&file, ""));
        }
    }
    text
}
