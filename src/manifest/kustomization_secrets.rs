//! Decides if kustomize's message about a kustomization may show a secret.
//!
//! kustomize tries each name as a file, as a directory and as the address of a repository, and quotes parts of the name
//! in its messages. A password in such a part cannot be recognized. It also quotes patches, and lines of files from
//! which it makes Secrets. So if a name in the kustomization may hold a secret, or if it has to do with Secrets, the
//! message is not shown at all.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::kustomize::FILE_NAMES;
use super::source::STREAM_LIMIT;
use crate::regular_file::{self, SMALL};

/// The reason for withholding a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Withheld {
    /// A URL has a user, a query or a fragment that may be secret.
    Url,
    /// A kustomization, or a patch that it names, makes or changes a Secret.
    Secret,
    /// A kustomization or such a file cannot be read, so it may have such a URL, or mention Secrets.
    Unreadable,
}

/// The parameters that kustomize itself reads from the query of a URL.
const KUSTOMIZE_PARAMETERS: [&str; 5] = ["ref", "version", "timeout", "submodules", "depth"];

/// Returns why a message about the argument of `-k` may show a secret: because of the argument itself, its
/// kustomization, or another kustomization that this one leads to. `None` if the message can be shown.
pub(super) fn find_reason_to_withhold_message(argument: &str) -> Option<Withheld> {
    if !Path::new(argument).is_dir() && may_hold_url_secret(argument) {
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
            let documents =
                read_documents(&file).and_then(|documents| add_plugin_documents(documents, &directory));
            let Some(documents) = documents else {
                return Some(Withheld::Unreadable);
            };
            if documents
                .iter()
                .any(|document| mentions_secret(&document.to_string()))
            {
                return Some(Withheld::Secret);
            }
            let mut names = Vec::new();
            for document in &documents {
                add_single_line_texts(document, &mut names);
            }
            if names.iter().any(|name| may_hold_url_secret(name)) {
                return Some(Withheld::Url);
            }
            let mut quoted = Vec::new();
            for field in documents
                .iter()
                .flat_map(|document| QUOTED_FIELDS.map(|field| &document[field]))
            {
                add_single_line_texts(field, &mut quoted);
            }
            for file in quoted
                .iter()
                .map(|name| directory.join(name))
                .filter(|path| path.is_file())
            {
                match regular_file::read(&file, STREAM_LIMIT) {
                    Err(_) => return Some(Withheld::Unreadable),
                    Ok(text) if mentions_secret(&String::from_utf8_lossy(&text)) => {
                        return Some(Withheld::Secret);
                    }
                    Ok(_) => {}
                }
            }
            directories.extend(names.iter().map(|name| directory.join(name)));
        }
    }
    None
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

/// The fields of a kustomization that name files which kustomize quotes in its messages.
const QUOTED_FIELDS: [&str; 7] = [
    "patches",
    "patchesStrategicMerge",
    "patchesJson6902",
    "replacements",
    "generators",
    "transformers",
    "validators",
];

/// The fields of a kustomization whose items are plugin configurations: names of files, or the text itself. A generator
/// may have the URL of a chart's repository.
const PLUGIN_FIELDS: [&str; 3] = ["generators", "transformers", "validators"];

/// Returns the documents of a kustomization and of its plugin configurations; `None` if one of them cannot be read.
fn add_plugin_documents(mut documents: Vec<Value>, directory: &Path) -> Option<Vec<Value>> {
    let fields = documents
        .iter()
        .flat_map(|document| PLUGIN_FIELDS.map(|field| document[field].as_array()));
    let texts: Vec<String> = fields
        .flatten()
        .flatten()
        .filter_map(|text| Some(text.as_str()?.to_owned()))
        .collect();
    for text in texts {
        let file = directory.join(&text);
        if text.trim_end().contains('\n') {
            documents.extend(parse_documents(&text)?);
        } else if file.is_file() {
            documents.extend(read_documents(&file)?);
        }
    }
    Some(documents)
}

/// Returns the YAML documents of a file; `None` if it cannot be read.
fn read_documents(file: &Path) -> Option<Vec<Value>> {
    parse_documents(&regular_file::read_text(file, SMALL).ok()?)
}

fn parse_documents(text: &str) -> Option<Vec<Value>> {
    let documents = kubernetes_yaml::documents(text);
    documents
        .map(|document| Some(document.ok()?.to_value()))
        .collect()
}

/// Adds every text of one line in a value to the names: any of them may be the name of a file, a directory or a
/// repository. Texts of several lines, such as patches, are not.
fn add_single_line_texts<'v>(value: &'v Value, names: &mut Vec<&'v str>) {
    match value {
        Value::String(text) if !text.trim_end().contains('\n') => names.push(text),
        Value::Array(values) => values
            .iter()
            .for_each(|value| add_single_line_texts(value, names)),
        Value::Object(fields) => fields
            .values()
            .for_each(|value| add_single_line_texts(value, names)),
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
                Some(Withheld::Secret),
            ),
            (
                "base",
                "secretGenerator: [{name: a, literals: ['a:S3CRET']}]
"
                .to_owned(),
                Some(Withheld::Secret),
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
            assert_eq!(find_reason_to_withhold_message(&argument), expected, "{text}");
            if argument.ends_with("base") {
                assert_eq!(
                    find_reason_to_withhold_message(&overlay.to_string_lossy()),
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
            let reason = find_reason_to_withhold_message(&root.path().to_string_lossy());
            assert_eq!(reason, Some(Withheld::Secret), "{text}");
        }
        // kustomize does not quote resources, and most of them only refer to a Secret.
        fs::write(root.path().join("app.yaml"), "env: {secretKeyRef: {name: a}}\n").expect("a file");
        for text in ["resources: [app.yaml]", "patches: [{path: app.yaml}]"] {
            fs::write(root.path().join("kustomization.yaml"), text).expect("a file");
            assert_eq!(
                find_reason_to_withhold_message(&root.path().to_string_lossy()),
                None,
                "{text}"
            );
        }
    }
}
