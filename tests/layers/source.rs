//! Rust source as far as the scan needs it: words without comments, literals and tests, and the
//! modules that they name.

use std::collections::BTreeSet;

/// A file without its tests.
pub(super) struct Code {
    pub(super) tokens: Vec<String>,
    /// The modules with files of their own that are there for tests alone.
    pub(super) test_modules: Vec<String>,
}

impl Code {
    pub(super) fn of(source: &str) -> Self {
        without_tests(&tokens(&without_text(source)))
    }
}

/// The source without comments, and with empty literals, so that only code names a module.
fn without_text(source: &str) -> String {
    let characters: Vec<char> = source.chars().collect();
    let at = |index: usize| characters.get(index).copied().unwrap_or('\0');
    let mut code = String::new();
    let mut index = 0;
    while index < characters.len() {
        let character = at(index);
        let is_after_word = index > 0 && is_word(at(index - 1));
        let end = match (character, at(index + 1)) {
            ('/', '/') => end_of_line(&characters, index),
            ('/', '*') => end_of_comment(&characters, index),
            ('"', _) => end_of_text(&characters, index),
            ('r', '"' | '#') if !is_after_word => end_of_raw_text(&characters, index),
            ('b', 'r') if !is_after_word => end_of_raw_text(&characters, index + 1),
            ('\'', '\\') => end_of_character(&characters, index),
            // `'x'` is a character, `'x` a lifetime.
            ('\'', _) if at(index + 2) == '\'' => index + 3,
            _ => index,
        };
        if end == index {
            code.push(character);
            index += 1;
        } else {
            code.push(' ');
            index = end;
        }
    }
    code
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// Where this is found next, or the end of all.
fn find(characters: &[char], from: usize, wanted: &[char]) -> usize {
    (from..characters.len())
        .find(|&index| characters[index..].starts_with(wanted))
        .unwrap_or(characters.len())
}

fn end_of_line(characters: &[char], start: usize) -> usize {
    find(characters, start, &['\n'])
}

/// Comments nest.
fn end_of_comment(characters: &[char], start: usize) -> usize {
    let (mut index, mut depth) = (start + 2, 1);
    while depth > 0 && index < characters.len() {
        if characters[index..].starts_with(&['/', '*']) {
            depth += 1;
            index += 2;
        } else if characters[index..].starts_with(&['*', '/']) {
            depth -= 1;
            index += 2;
        } else {
            index += 1;
        }
    }
    index
}

fn end_of_text(characters: &[char], start: usize) -> usize {
    let mut index = start + 1;
    while index < characters.len() && characters[index] != '"' {
        index += if characters[index] == '\\' { 2 } else { 1 };
    }
    index + 1
}

/// The end of a raw text whose `r` is at `start`; `start` itself where it is none.
fn end_of_raw_text(characters: &[char], start: usize) -> usize {
    let hashes = characters[start + 1..]
        .iter()
        .take_while(|character| **character == '#')
        .count();
    let quote = start + 1 + hashes;
    if characters.get(quote) != Some(&'"') {
        return start;
    }
    let closing: Vec<char> = ['"']
        .into_iter()
        .chain(std::iter::repeat_n('#', hashes))
        .collect();
    find(characters, quote + 1, &closing) + closing.len()
}

/// The end of `'\n'` or `'\u{41}'`, whose second character may be the quote.
fn end_of_character(characters: &[char], start: usize) -> usize {
    find(characters, start + 3, &['\'']) + 1
}

/// Words, `::`, and all other characters one by one.
fn tokens(code: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let mut characters = code.chars().peekable();
    while let Some(character) = characters.next() {
        if is_word(character) {
            let mut word = String::from(character);
            while let Some(next) = characters.next_if(|next| is_word(*next)) {
                word.push(next);
            }
            tokens.push(word);
        } else if character == ':' && characters.next_if_eq(&':').is_some() {
            tokens.push("::".to_owned());
        } else if !character.is_whitespace() {
            tokens.push(character.to_string());
        }
    }
    tokens
}

fn without_tests(tokens: &[String]) -> Code {
    let mut code = Code {
        tokens: Vec::new(),
        test_modules: Vec::new(),
    };
    let mut index = 0;
    while index < tokens.len() {
        if !starts_with(&tokens[index..], &["#", "[", "cfg", "(", "test", ")", "]"]) {
            code.tokens.push(tokens[index].clone());
            index += 1;
            continue;
        }
        let end = end_of_item(tokens, index);
        let item = &tokens[index..end];
        if let [.., module, name, semicolon] = item
            && (module.as_str(), semicolon.as_str()) == ("mod", ";")
        {
            code.test_modules.push(name.clone());
        }
        index = end;
    }
    code
}

fn starts_with(tokens: &[String], wanted: &[&str]) -> bool {
    tokens.len() >= wanted.len() && tokens.iter().zip(wanted).all(|(token, wanted)| token == wanted)
}

/// The end of the item whose attributes begin at `start`: a semicolon or a block, whichever
/// comes first; of an import, the semicolon.
fn end_of_item(tokens: &[String], start: usize) -> usize {
    let (mut depth, mut is_import) = (0, false);
    for (index, token) in tokens.iter().enumerate().skip(start) {
        match token.as_str() {
            "use" if depth == 0 => is_import = true,
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        let is_end = match token.as_str() {
            ";" => true,
            "}" => !is_import,
            _ => false,
        };
        if depth == 0 && is_end {
            return index + 1;
        }
    }
    tokens.len()
}

/// The end of the group, attribute or block that opens at `start`.
fn end_of_group(tokens: &[String], start: usize) -> usize {
    let mut depth = 0;
    for (index, token) in tokens.iter().enumerate().skip(start) {
        match token.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return index + 1;
        }
    }
    tokens.len()
}

/// The top-level modules that code of this module names by a path from the crate or from a
/// parent, groups of imports included.
pub(super) fn named_by(tokens: &[String], module: &[String]) -> BTreeSet<String> {
    let mut named = BTreeSet::new();
    // Modules that are written out in the file, each with its end.
    let mut inner: Vec<(String, usize)> = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        inner.retain(|(_, end)| index < *end);
        if token == "mod" && tokens.get(index + 2).is_some_and(|brace| brace == "{") {
            inner.push((tokens[index + 1].clone(), end_of_group(tokens, index + 2)));
        }
        let begins = matches!(token.as_str(), "crate" | "self" | "super")
            && tokens.get(index + 1).is_some_and(|next| next == "::")
            && (index == 0 || tokens[index - 1] != "::");
        if begins {
            let inner = inner.iter().map(|(name, _)| name.clone());
            let base = module.iter().cloned().chain(inner).collect();
            follow(tokens, index, base, &mut named);
        }
    }
    named
}

/// Follows a path from its segment at `index`; `base` is what the segments before it name.
fn follow(tokens: &[String], mut index: usize, mut base: Vec<String>, named: &mut BTreeSet<String>) {
    while let Some(token) = tokens.get(index) {
        match token.as_str() {
            "crate" => base.clear(),
            "self" => {}
            "super" => {
                base.pop();
            }
            "{" => {
                let end = end_of_group(tokens, index);
                let mut item = index + 1;
                while item + 1 < end {
                    follow(tokens, item, base.clone(), named);
                    item = end_of_branch(tokens, item, end);
                }
                return;
            }
            name => {
                if base.is_empty() {
                    named.insert(name.to_owned());
                }
                return;
            }
        }
        if tokens.get(index + 1).is_none_or(|next| next != "::") {
            return;
        }
        index += 2;
    }
}

/// What comes after the comma that ends a branch of a group of imports.
fn end_of_branch(tokens: &[String], start: usize, end: usize) -> usize {
    let mut index = start;
    while index < end && tokens[index] != "," {
        index = if tokens[index] == "{" {
            end_of_group(tokens, index)
        } else {
            index + 1
        };
    }
    index + 1
}
