//! Finds out whether a kustomization names a URL that may hold a secret.
//!
//! kustomize tries a name as a file, as a directory and as the address of a repository, and quotes parts of it in
//! its messages. No rule recognizes a password in such a part, so the names themselves decide.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use kubernetes_yaml::documents;
use serde_json::Value;

use super::kustomize::FILE_NAMES;
use crate::regular_file::{self, SMALL};

/// The characters that end credentials, and begin a query or a fragment.
const BEFORE_OR_BEHIND_SECRETS: [char; 3] = ['@', '?', '#'];

/// Returns whether a URL in the argument of `-k`, in its kustomization, or in one that this leads to may hold a secret.
pub(super) fn may_hold_secrets(argument: &str) -> bool {
    let mut seen = BTreeSet::new();
    let mut directories = vec![PathBuf::from(argument)];
    if argument.contains(BEFORE_OR_BEHIND_SECRETS) {
        return true;
    }
    while let Some(directory) = directories.pop() {
        let Ok(directory) = fs::canonicalize(directory) else {
            continue;
        };
        for file in FILE_NAMES.map(|name| directory.join(name)) {
            if !file.exists() || !seen.insert(file.clone()) {
                continue;
            }
            let Some(names) = names(&file) else {
                return true;
            };
            if names.iter().any(|name| name.contains(BEFORE_OR_BEHIND_SECRETS)) {
                return true;
            }
            directories.extend(names.iter().map(|name| directory.join(name)));
        }
    }
    false
}

/// Returns the texts of one line in a kustomization; `None` if it cannot be read.
fn names(file: &Path) -> Option<Vec<String>> {
    let text = regular_file::read_text(file, SMALL).ok()?;
    let mut names = Vec::new();
    for document in documents(&text) {
        add_names(document.ok()?.to_value(), &mut names);
    }
    Some(names)
}

fn add_names(value: Value, names: &mut Vec<String>) {
    match value {
        Value::String(text) if !text.trim_end().contains('\n') => names.push(text),
        Value::Array(values) => values.into_iter().for_each(|value| add_names(value, names)),
        Value::Object(fields) => fields.into_iter().for_each(|(_, value)| add_names(value, names)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_a_mark_of_secrets_counts_wherever_it_is() {
        let base = |resource: &str| format!("resources: [{resource}]\n");
        let table = [
            ("base", base("a.yaml"), false),
            ("base", base("https://h/x.yaml"), false),
            ("base", base("https://h/x.yaml?sig=S3CRET"), true),
            ("base", base("user:S3CRET@h/x"), true),
            ("base", base("[\"https://user:S3C\\x40h/x\"]"), true),
            ("base", base("https://h/x#token"), true),
            ("base", "resources:\n- |\n  user:S3CRET@h/x\n".to_owned(), true),
            (
                "base",
                "# a@b?\npatches:\n- patch: |-\n    # a@b?\n    kind: A\n".to_owned(),
                false,
            ),
            ("base", "resources: [".to_owned(), true),
            ("user:S3CRET@h", base("a.yaml"), true),
        ];
        for (directory, text, expected) in table {
            let root = tempfile::tempdir().expect("a directory");
            let directory = root.path().join(directory);
            let overlay = root.path().join("overlay");
            for directory in [&directory, &overlay] {
                fs::create_dir(directory).expect("a directory");
            }
            fs::write(directory.join("kustomization.yml"), &text).expect("a file");
            fs::write(overlay.join("Kustomization"), "bases: [../base, .]\n").expect("a file");
            let argument = directory.to_string_lossy();
            assert_eq!(may_hold_secrets(&argument), expected, "{text}");
            if argument.ends_with("base") {
                assert_eq!(may_hold_secrets(&overlay.to_string_lossy()), expected, "{text}");
            }
        }
    }
}
