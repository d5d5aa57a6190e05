//! Decides if kustomize's message about a kustomization may show a secret.
//!
//! kustomize tries each name as a file, as a directory and as the address of a repository, and quotes parts of the name
//! in its messages. A password in such a part cannot be recognized. It also quotes patches, and lines of files from
//! which it makes Secrets. So if a name in the kustomization may hold a secret, or if the kustomization or a file that it
//! names mentions a Secret, the message is not shown at all.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::kustomize::FILE_NAMES;
use super::source::STREAM_LIMIT;
use crate::regular_file::{self, SMALL};

/// The parameters that kustomize itself reads from the query of a URL.
const KUSTOMIZE_PARAMETERS: [&str; 5] = ["ref", "version", "timeout", "submodules", "depth"];

/// Returns whether a message about the argument of `-k` may show a secret: because of the argument itself, its
/// kustomization, or another kustomization that this one leads to.
pub(super) fn may_message_show_secret(argument: &str) -> bool {
    if !Path::new(argument).is_dir() && may_hold_url_secret(argument) {
        return true;
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
            let Some(names) = read_names_unless_secret(&file) else {
                return true;
            };
            for name in names {
                let path = directory.join(&name);
                if may_hold_url_secret(&name) || (path.is_file() && may_hold_secret(&path)) {
                    return true;
                }
                directories.push(path);
            }
        }
    }
    false
}

/// Returns the texts of one line in a kustomization: any of them may be the name of a file, a directory or a repository.
/// Returns `None` if the kustomization mentions a Secret, or cannot be read.
fn read_names_unless_secret(kustomization: &Path) -> Option<Vec<String>> {
    let text = regular_file::read_text(kustomization, SMALL).ok()?;
    if mentions_secret(&text) {
        return None;
    }
    let mut names = Vec::new();
    for document in kubernetes_yaml::documents(&text) {
        add_single_line_texts(document.ok()?.to_value(), &mut names);
    }
    Some(names)
}

/// Returns whether a file mentions a Secret, or cannot be read.
fn may_hold_secret(file: &Path) -> bool {
    regular_file::read(file, STREAM_LIMIT)
        .map_or(true, |text| mentions_secret(&String::from_utf8_lossy(&text)))
}

/// Returns whether a part of this text may be the password or the token of a URL. The `@` of `team@example.com` and of
/// an image's digest, and the `?ref=` of a remote base, do not count.
fn may_hold_url_secret(text: &str) -> bool {
    let text = text.trim();
    let has_user = text.split_once('@').is_some_and(|(user, rest)| {
        user.contains(':') || (rest.contains('/') && user != "git" && !rest.starts_with("sha256:"))
    });
    let has_parameters = text.split_once('?').is_some_and(|(_, query)| {
        query.split('&').any(|pair| {
            let key = pair.split_once('=').map_or(pair, |(key, _)| key);
            !KUSTOMIZE_PARAMETERS.contains(&key)
        })
    });
    has_user || has_parameters || text.contains('#')
}

/// Returns whether a text makes, patches or contains a Secret, in whatever notation. References such as `secretKeyRef`
/// do not count.
fn mentions_secret(text: &str) -> bool {
    let mut words = text.split(|character: char| !character.is_alphanumeric());
    words.any(|word| word == "Secret" || word == "secretGenerator")
}

/// Adds every text of one line in a value to the names. Texts of several lines, such as patches, are no names.
fn add_single_line_texts(value: Value, names: &mut Vec<String>) {
    match value {
        Value::String(text) if !text.trim_end().contains('\n') => names.push(text),
        Value::Array(values) => values
            .into_iter()
            .for_each(|value| add_single_line_texts(value, names)),
        Value::Object(fields) => fields
            .into_iter()
            .for_each(|(_, value)| add_single_line_texts(value, names)),
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
            ("base", base("a.yaml"), false),
            ("base", base("https://h/x.yaml"), false),
            ("base", listed("https://h//x?ref=v3.3.1&timeout=9"), false),
            ("base", listed("git@h:team/x?ref=v1"), false),
            (
                "base",
                "commonAnnotations: {owner: team@example.com}
"
                .to_owned(),
                false,
            ),
            (
                "base",
                "images: [{name: 'h/x@sha256:01'}]
"
                .to_owned(),
                false,
            ),
            ("base", listed("https://h/x.yaml?sig=S3CRET"), true),
            ("base", listed("https://h/x.yaml?ref=v1&token=S3CRET"), true),
            ("base", base("user:S3CRET@h/x"), true),
            ("base", base("S3CRET@h/x"), true),
            ("base", base("[\"https://user:S3C\x40h/x\"]"), true),
            ("base", base("https://h/x#token"), true),
            (
                "base",
                "resources:
- |
  user:S3CRET@h/x
"
                .to_owned(),
                true,
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
                false,
            ),
            (
                "base",
                "patches:
- patch: |-
    kind: Secret
    stringData: {a: S3CRET}
"
                .to_owned(),
                true,
            ),
            (
                "base",
                "secretGenerator: [{name: a, literals: ['a:S3CRET']}]
"
                .to_owned(),
                true,
            ),
            ("base", base("secret.yaml"), true),
            ("base", "resources: [".to_owned(), true),
            ("at@home", base("a.yaml"), false),
        ];
        for (directory, text, expected) in table {
            let root = tempfile::tempdir().expect("a directory");
            let directory = root.path().join(directory);
            let overlay = root.path().join("overlay");
            for directory in [&directory, &overlay] {
                fs::create_dir(directory).expect("a directory");
            }
            fs::write(directory.join("kustomization.yml"), &text).expect("a file");
            fs::write(directory.join("secret.yaml"), "kind: Secret\n").expect("a file");
            fs::write(overlay.join("Kustomization"), "bases: [../base, .]\n").expect("a file");
            let argument = directory.to_string_lossy();
            assert_eq!(may_message_show_secret(&argument), expected, "{text}");
            if argument.ends_with("base") {
                assert_eq!(
                    may_message_show_secret(&overlay.to_string_lossy()),
                    expected,
                    "{text}"
                );
            }
        }
    }

    #[test]
    fn every_mention_of_a_secret_counts() {
        let root = tempfile::tempdir().expect("a directory");
        let patch = "  kind: Secret\nstringData: {a: S3CRET}\n";
        fs::write(root.path().join("patch.yaml"), patch).expect("a file");
        for text in [
            "secretGenerator: [{name: a, envs: [a.env]}]",
            "patches: [{target: {kind: Secret}, patch: '[{op: add, path: /data/a, value: S3CRET}]'}]",
            r#"patches: [{patch: '{"kind":"Secret","stringData":{"a":"S3CRET"}}'}]"#,
            "patches:\n- patch: |-\n    kind: Secret # S3CRET",
            "patches: [{path: patch.yaml}]",
        ] {
            fs::write(root.path().join("kustomization.yaml"), text).expect("a file");
            assert!(may_message_show_secret(&root.path().to_string_lossy()), "{text}");
        }
        // Most resources only refer to a Secret.
        fs::write(root.path().join("app.yaml"), "env: {secretKeyRef: {name: a}}\n").expect("a file");
        for text in ["resources: [app.yaml]", "patches: [{path: app.yaml}]"] {
            fs::write(root.path().join("kustomization.yaml"), text).expect("a file");
            assert!(!may_message_show_secret(&root.path().to_string_lossy()), "{text}");
        }
    }
}
