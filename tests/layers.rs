//! Checks the lines of `src`, read as text: a stage names only stages to its left in `ORDER`, and no file is
//! longer than `MOST_LINES`.
//!
//! It looks at each `crate::STAGE` outside comments and tests, and refuses what would hide one: a group of
//! stages in `crate::{…}`, and a chain of `super` that ends at the crate.

use std::fs;
use std::path::Path;

use crate::packaging::CHECKOUT;

/// The stages from left to right. A new module below `src` needs a place here.
const ORDER: [&str; 20] = [
    "model",
    "exit",
    "error",
    "find_program",
    "regular_file",
    "cluster",
    "manifest",
    "compare",
    "event",
    "import",
    "plan",
    "read",
    "verify",
    "wait",
    "execute",
    "report",
    "cli",
    "settings",
    "session",
    "commands",
];

/// The most lines of a file; `tests.rs` may have more.
const MOST_LINES: usize = 450;

#[test]
fn each_stage_imports_stages_to_its_left() {
    let mut wrong = Vec::new();
    for (file, text) in source_files() {
        let path = file.trim_end_matches(".rs").trim_end_matches("/mod");
        let stage = path.split('/').next().unwrap_or_default();
        if ["lib", "main"].contains(&stage) || file.ends_with("tests.rs") {
            continue;
        }
        let to_the_crate = "super::".repeat(path.split('/').count());
        let code = text.split("\nmod tests {").next().unwrap_or_default();
        for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
            let mut named = line.split("crate::").skip(1).map(first_word);
            if line.contains(&to_the_crate) || named.any(|named| !may_import(stage, named)) {
                wrong.push(format!("src/{file}: {}", line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "not to the left in ORDER: {wrong:#?}");
}

#[test]
fn a_stage_may_import_itself_and_what_is_left_of_it() {
    assert!(may_import("plan", "plan") && may_import("plan", "model"));
    assert!(!may_import("plan", "read"));
    assert!(!may_import("plan", "unknown") && !may_import("unknown", "plan"));
    assert_eq!(
        ["read::list", "read;", "{plan, read}"].map(first_word),
        ["read", "read", ""]
    );
}

#[test]
fn no_file_is_longer_than_a_person_reads() {
    let mut long = Vec::new();
    for (file, text) in source_files() {
        let lines = text.lines().count();
        if lines > MOST_LINES && !file.ends_with("tests.rs") {
            long.push(format!("src/{file}: {lines}"));
        }
    }
    assert!(long.is_empty(), "files above {MOST_LINES} lines: {long:#?}");
}

fn may_import(stage: &str, named: &str) -> bool {
    let place = |stage: &str| ORDER.iter().position(|known| *known == stage);
    place(named).is_some_and(|named| place(stage).is_some_and(|stage| named <= stage))
}

fn first_word(path: &str) -> &str {
    path.split(|character: char| !character.is_alphanumeric() && character != '_')
        .next()
        .unwrap_or_default()
}

/// The files of the program by their path below `src`, with their texts.
fn source_files() -> Vec<(String, String)> {
    let root = Path::new(CHECKOUT).join("src");
    let mut directories = vec![root.clone()];
    let mut files = Vec::new();
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let file = path.strip_prefix(&root).expect("below src");
                let text = fs::read_to_string(&path).expect("a source file");
                files.push((file.to_string_lossy().into_owned(), text));
            }
        }
    }
    assert!(files.len() > 100, "{} files in {}", files.len(), root.display());
    files
}
