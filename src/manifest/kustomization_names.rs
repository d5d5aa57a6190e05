//! Finds out whether kustomize's message about a kustomization may show a secret.
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

/// The reason not to show a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Withheld {
    /// A URL has a user, a query or a fragment that may be secret.
    Url,
    /// A Secret's values are in a kustomization itself.
    SecretValues,
    /// A kustomization cannot be read, so it may have either.
    Unreadable,
}

/// The parameters that kustomize itself reads from the query of a URL.
const PARAMETERS: [&str; 5] = ["ref", "version", "timeout", "submodules", "depth"];

/// Returns why a message about the argument of `-k`, its kustomization, or one that this leads to may show a secret;
/// `None` if it does not.
pub(super) fn reason_to_withhold(argument: &str) -> Option<Withheld> {
    if !Path::new(argument).is_dir() && may_be_secret(argument) {
        return Some(Withheld::Url);
    }
    let mut seen = BTreeSet::new();
    let mut directories = vec![PathBuf::from(argument)];
    while let Some(directory) = directories.pop() {
        let Ok(directory) = fs::canonicalize(directory) else {
            continue;
        };
        for file in FILE_NAMES.map(|name| directory.join(name)) {
            if !file.exists() || !seen.insert(file.clone()) {
                continue;
            }
            let Some(values) = values(&file).and_then(|values| with_plugins(values, &directory)) else {
                return Some(Withheld::Unreadable);
            };
            if values.iter().any(holds_secret_values) {
                return Some(Withheld::SecretValues);
            }
            let mut names = Vec::new();
            for value in values {
                add_names(value, &mut names);
            }
            if names.iter().any(|name| may_be_secret(name)) {
                return Some(Withheld::Url);
            }
            directories.extend(names.iter().map(|name| directory.join(name)));
        }
    }
    None
}

/// Returns whether a part of this text may be the password or the token of a URL. An address such as
/// `team@example.com`, an image's digest and the `?ref=` of a remote base are not.
fn may_be_secret(text: &str) -> bool {
    let text = text.trim();
    let has_user = text.split_once('@').is_some_and(|(user, rest)| {
        user.contains(':') || (rest.contains('/') && user != "git" && !rest.starts_with("sha256:"))
    });
    let has_parameters = text.split_once('?').is_some_and(|(_, query)| {
        query.split('&').any(|pair| {
            let key = pair.split_once('=').map_or(pair, |(key, _)| key);
            !PARAMETERS.contains(&key)
        })
    });
    has_user || has_parameters || text.contains('#')
}

/// Returns whether a kustomization makes Secrets from literals, or patches one in its own text.
fn holds_secret_values(kustomization: &Value) -> bool {
    let generators = kustomization["secretGenerator"].as_array();
    let has_literals = generators
        .into_iter()
        .flatten()
        .any(|generator| generator["literals"].is_array());
    has_literals || patches_secret(kustomization)
}

fn patches_secret(value: &Value) -> bool {
    match value {
        Value::String(text) => {
            let mut lines = text.lines().map(|line| line.trim().replace(['"', '\''], ""));
            lines.any(|line| line == "kind: Secret")
        }
        Value::Array(values) => values.iter().any(patches_secret),
        Value::Object(fields) => fields.values().any(patches_secret),
        _ => false,
    }
}

/// The fields of a kustomization that name files with settings of kustomize's own steps, or hold them as text: a
/// generator may have the URL of a chart's repository.
const PLUGINS: [&str; 3] = ["generators", "transformers", "validators"];

/// Returns the documents of a kustomization and of its plugins; `None` if one cannot be read.
fn with_plugins(mut values: Vec<Value>, directory: &Path) -> Option<Vec<Value>> {
    let fields = values
        .iter()
        .flat_map(|value| PLUGINS.map(|field| value[field].as_array()));
    let texts: Vec<String> = fields
        .flatten()
        .flatten()
        .filter_map(|text| Some(text.as_str()?.to_owned()))
        .collect();
    for text in texts {
        let file = directory.join(&text);
        if text.trim_end().contains('\n') {
            values.extend(values_of(&text)?);
        } else if file.is_file() {
            values.extend(self::values(&file)?);
        }
    }
    Some(values)
}

/// Returns the documents of a kustomization; `None` if it cannot be read.
fn values(file: &Path) -> Option<Vec<Value>> {
    values_of(&regular_file::read_text(file, SMALL).ok()?)
}

fn values_of(text: &str) -> Option<Vec<Value>> {
    let values = documents(text).map(|document| Some(document.ok()?.to_value()));
    values.collect()
}

/// Adds the texts of one line.
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
    fn what_may_be_secret_counts_wherever_it_is() {
        let base = |resource: &str| format!("resources: [{resource}]\n");
        let listed = |resource: &str| format!("resources:\n- {resource}\n");
        let table = [
            ("base", base("a.yaml"), None),
            ("base", base("https://h/x.yaml"), None),
            ("base", listed("https://h//x?ref=v3.3.1&timeout=9"), None),
            ("base", listed("git@h:team/x?ref=v1"), None),
            (
                "base",
                "commonAnnotations: {owner: team@example.com}
"
                .to_owned(),
                None,
            ),
            (
                "base",
                "images: [{name: 'h/x@sha256:01'}]
"
                .to_owned(),
                None,
            ),
            ("base", listed("https://h/x.yaml?sig=S3CRET"), Some(Withheld::Url)),
            (
                "base",
                listed("https://h/x.yaml?ref=v1&token=S3CRET"),
                Some(Withheld::Url),
            ),
            ("base", base("user:S3CRET@h/x"), Some(Withheld::Url)),
            ("base", base("S3CRET@h/x"), Some(Withheld::Url)),
            ("base", base("[\"https://user:S3C\x40h/x\"]"), Some(Withheld::Url)),
            ("base", base("https://h/x#token"), Some(Withheld::Url)),
            (
                "base",
                "resources:
- |
  user:S3CRET@h/x
"
                .to_owned(),
                Some(Withheld::Url),
            ),
            (
                "base",
                "# a@b?
patches:
- patch: |-
    # a@b?
    kind: A
"
                .to_owned(),
                None,
            ),
            (
                "base",
                "patches:
- patch: |-
    kind: Secret
    stringData: {a: S3CRET}
"
                .to_owned(),
                Some(Withheld::SecretValues),
            ),
            (
                "base",
                "secretGenerator: [{name: a, literals: ['a:S3CRET']}]
"
                .to_owned(),
                Some(Withheld::SecretValues),
            ),
            ("base", "generators: [gen.yaml]\n".to_owned(), Some(Withheld::Url)),
            ("base", base("gen.yaml"), None),
            (
                "base",
                "transformers:\n- |-\n  kind: A\n  repo: https://h/x?token=S3CRET\n".to_owned(),
                Some(Withheld::Url),
            ),
            ("base", "resources: [".to_owned(), Some(Withheld::Unreadable)),
            ("at@home", base("a.yaml"), None),
        ];
        for (directory, text, expected) in table {
            let root = tempfile::tempdir().expect("a directory");
            let directory = root.path().join(directory);
            let overlay = root.path().join("overlay");
            for directory in [&directory, &overlay] {
                fs::create_dir(directory).expect("a directory");
            }
            fs::write(directory.join("kustomization.yml"), &text).expect("a file");
            let generator = "kind: A\nrepo: https://user:S3CRET@h/x\n";
            fs::write(directory.join("gen.yaml"), generator).expect("a file");
            fs::write(overlay.join("Kustomization"), "bases: [../base, .]\n").expect("a file");
            let argument = directory.to_string_lossy();
            assert_eq!(reason_to_withhold(&argument), expected, "{text}");
            if argument.ends_with("base") {
                assert_eq!(reason_to_withhold(&overlay.to_string_lossy()), expected, "{text}");
            }
        }
    }
}
