//! The words of the project. Code, names, comments, messages and pages are searched for words that
//! belong to a dialect of their own, and that say nothing that a plain word does not say.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::packaging::CHECKOUT;

/// Words and phrases, each with what to write instead.
const WORDS: &[(&str, &str)] = &[
    ("told", "reported, printed, warned of"),
    ("tells", "reports, prints, shows"),
    ("tell", "report, print, warn of"),
    ("telling", "reporting"),
    ("mend", "repair, fix"),
    ("mends", "repairs, fixes"),
    ("mending", "repairing, fixing"),
    ("mended", "repaired, fixed"),
    ("anew", "again"),
    ("heed", "respect"),
    ("heeds", "respects"),
    ("heeded", "respected"),
    ("whoever", "name the actor"),
    ("somebody", "name the actor"),
    ("nobody", "name the actor"),
    ("foresee", "predict"),
    ("foresees", "predicts"),
    ("foreseen", "predicted"),
    ("rehearse", "dry run"),
    ("rehearses", "dry run"),
    ("rehearsed", "dry run"),
    ("survey", "scope"),
    ("surveys", "scopes"),
    ("situation", "cluster state"),
    ("situations", "cluster states"),
    ("standing", "status"),
    ("besides", "also"),
    ("meanwhile", "during the run, since then"),
    ("for ever", "forever"),
    ("in doubt", "unknown, unsure"),
    ("as it stands", "as it is"),
    ("go on", "continue"),
    ("goes on", "continues"),
    ("going on", "continuing"),
    ("gone on", "continued"),
    ("is no", "is not a"),
    // The spelling of the Kubernetes API.
    ("labelled", "labeled"),
    ("relabelled", "relabeled"),
    ("unlabelled", "unlabeled"),
    ("colour", "color"),
    ("neighbour", "neighbor"),
    ("behaviour", "behavior"),
    ("favour", "favor"),
    ("honour", "honor"),
    ("licence", "license"),
];

/// Words that make another phrase of `is no`.
const BEFORE_IS_NO: &[&str] = &["there"];
const AFTER_IS_NO: &[&str] = &["longer", "more", "such"];

/// What is searched, below the checkout.
const SEARCHED: &[&str] = &[
    "src",
    "tests",
    "testdata/help",
    "benches",
    "yaml/src",
    "docs",
    "README.md",
    "CHANGELOG.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
];

/// Files and directories that are not searched, each with the reason.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("tests/language", "names the words"),
    ("tests/changes_property/templates.yaml", "fields of the API"),
];

#[test]
fn no_word_belongs_to_a_dialect() {
    let mut found = Vec::new();
    for path in SEARCHED {
        search(path, &mut found);
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn words_are_found_in_names_sentences_and_across_lines() {
    let table = [
        ("fn tells_of_it()", &["1: tells"][..]),
        ("struct NobodyKnows;", &["1: nobody"]),
        ("/// It goes\n/// on.", &["1: goes on"]),
        ("it is no file", &["1: is no"]),
        ("there is no file; it is no longer one", &[]),
        ("amended, surveyor, retold, understanding", &[]),
    ];
    for (text, expected) in table {
        let found: Vec<String> = findings(text)
            .into_iter()
            .map(|(line, word, _)| format!("{line}: {word}"))
            .collect();
        assert_eq!(found, expected, "{text}");
    }
}

#[test]
fn every_exception_is_of_a_file() {
    for (path, _) in EXCEPTIONS {
        assert!(Path::new(CHECKOUT).join(path).exists(), "{path}");
    }
}

/// Searches a file, or all files of a directory.
fn search(path: &str, found: &mut Vec<String>) {
    if EXCEPTIONS.iter().any(|(exception, _)| path == *exception) {
        return;
    }
    let full = Path::new(CHECKOUT).join(path);
    if full.is_dir() {
        let mut names: Vec<String> = fs::read_dir(&full)
            .expect("a directory")
            .map(|entry| {
                entry
                    .expect("an entry")
                    .file_name()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect();
        names.sort();
        for name in names {
            search(&format!("{path}/{name}"), found);
        }
    } else if full.extension().is_some_and(|extension| {
        ["rs", "md", "txt", "yaml"]
            .iter()
            .any(|searched| extension == *searched)
    }) {
        let text = fs::read_to_string(&full).expect("UTF-8");
        found.extend(
            findings(&text)
                .into_iter()
                .map(|(line, word, instead)| format!("{path}:{line}: {word:?}: write {instead}")),
        );
    }
}

/// Returns the words and phrases in a text, each with its line and what to write instead.
fn findings(text: &str) -> Vec<(usize, &'static str, &'static str)> {
    let words = words(text);
    let at = |index: usize| words.get(index).map_or("", |(_, word)| word.as_str());
    let mut by_first_word: BTreeMap<&str, Vec<(&'static str, &'static str)>> = BTreeMap::new();
    for &(phrase, instead) in WORDS {
        let first = phrase.split(' ').next().unwrap_or_default();
        by_first_word.entry(first).or_default().push((phrase, instead));
    }
    let mut found = Vec::new();
    for (index, (line, word)) in words.iter().enumerate() {
        for &(phrase, instead) in by_first_word.get(word.as_str()).into_iter().flatten() {
            let is_here = phrase
                .split(' ')
                .enumerate()
                .all(|(offset, word)| at(index + offset) == word);
            let is_other = phrase == "is no"
                && (index
                    .checked_sub(1)
                    .is_some_and(|before| BEFORE_IS_NO.contains(&at(before)))
                    || AFTER_IS_NO.contains(&at(index + 2)));
            if is_here && !is_other {
                found.push((*line, phrase, instead));
            }
        }
    }
    found
}

/// Returns the words of a text with their lines, in lower case. Names are divided into their words; a
/// word in capital letters is one word.
fn words(text: &str) -> Vec<(usize, String)> {
    let mut words = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let mut word = String::new();
        let mut was_lower = false;
        for character in line.chars().chain([' ']) {
            let begins = character.is_uppercase() && was_lower;
            if (begins || !character.is_alphabetic()) && !word.is_empty() {
                words.push((index + 1, std::mem::take(&mut word)));
            }
            if character.is_alphabetic() {
                word.extend(character.to_lowercase());
            }
            was_lower = character.is_lowercase();
        }
    }
    words
}
