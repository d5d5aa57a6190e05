//! The text of exported manifests. kubectl and this program read it back as the same objects.

use serde_json::Value;

use crate::model::digest::sha256;
use crate::model::identity::{GroupKind, ObjectKey};
use crate::model::text::{contains_hostile_text, escape_as_one_line, printable_json_as_yaml};

/// An exported manifest, and the comments above it.
#[derive(Debug, Clone)]
pub struct ManifestText {
    pub key: ObjectKey,
    /// The object as an apply of the file would send it.
    pub manifest: Value,
    comments: Vec<String>,
}

/// The most bytes of the name of a file without its extension and its digest. File systems allow 255 in all.
const MAX_FILE_NAME_BYTES: usize = 200;

impl ManifestText {
    pub fn new(key: ObjectKey, manifest: Value, comments: Vec<String>) -> Self {
        Self {
            key,
            manifest,
            comments,
        }
    }

    /// Returns whether the object is a Secret, whose file only its owner may read.
    pub fn is_secret(&self) -> bool {
        self.key.group_kind == GroupKind::new("", "Secret")
    }

    /// Returns the YAML of the manifest, with the comments above it.
    pub fn document(&self) -> String {
        let comments = self.comments.iter().map(String::as_str);
        let comments: String = comments.map(comment_line).collect();
        format!("{comments}{}", manifest_yaml(&self.manifest))
    }

    /// Returns a file name that no other object has, unless two kinds of a group differ only in upper and lower case:
    /// `service_shop_web.yaml`. If the key has characters that not all
    /// file systems allow, or is too long, a digest makes the name unique.
    pub fn file_name(&self) -> String {
        let kind = self.key.group_kind.to_string().to_lowercase();
        let whole = match &self.key.namespace {
            Some(namespace) => format!("{kind}_{namespace}_{}", self.key.name),
            None => format!("{kind}_{}", self.key.name),
        };
        let portable: String = whole
            .chars()
            .map(|character| match character {
                'a'..='z' | '0'..='9' | '.' | '-' | '_' => character,
                _ => '-',
            })
            .take(MAX_FILE_NAME_BYTES)
            .collect();
        if portable == whole {
            format!("{portable}.yaml")
        } else {
            format!("{portable}-{:.8}.yaml", sha256(whole))
        }
    }
}

/// Returns the text of a file with the manifests of a set: comments with the command that applies them and with the
/// objects that are `left_out`, then a document for each manifest.
pub fn manifest_file_text(
    set: &ObjectKey,
    flags: &[String],
    left_out: &[String],
    manifests: &[ManifestText],
) -> String {
    let purpose = format!("The objects of the set {set}, as they were last applied.");
    let command = format!("Apply them with: {}", apply_command(set, "FILE", flags));
    let mut heading = vec![purpose, command];
    if manifests.is_empty() {
        heading.push("There were none: add --allow-prune-all.".to_owned());
    }
    heading.extend_from_slice(left_out);
    let mut file: String = heading.iter().map(|line| comment_line(line)).collect();
    for manifest in manifests {
        file.extend(["---\n", &manifest.document()]);
    }
    file
}

/// Returns the command that applies exported manifests. `file` is one word of a shell.
pub fn apply_command(set: &ObjectKey, file: &str, flags: &[String]) -> String {
    let mut command = format!("kubectl applyset apply {} -f {file}", set.shell_arguments());
    command.extend(flags.iter().flat_map(|flag| [" ", flag]));
    command
}

fn comment_line(text: &str) -> String {
    format!("# {}\n", escape_as_one_line(text))
}

/// Returns the YAML of an object, with strings of several lines as blocks. If the YAML would not read back as the same
/// object, it is written as JSON, which is YAML, too.
fn manifest_yaml(manifest: &Value) -> String {
    let written = serde_saphyr::to_string(manifest).ok();
    let written = written.filter(|text| !contains_hostile_text(text) && reads_as(text, manifest));
    let mut text = written.unwrap_or_else(|| printable_json_as_yaml(format!("{manifest:#}")));
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

fn reads_as(text: &str, manifest: &Value) -> bool {
    // As in a file with others, where it is not the first.
    let text = format!("---\n{text}");
    let mut documents = kubernetes_yaml::documents(&text);
    matches!((documents.next(), documents.next()), (Some(Ok(node)), None) if node.to_value() == *manifest)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::plan::fixtures::live;

    #[test]
    fn every_text_reads_back_as_it_was() {
        let texts = [
            "",
            " ",
            "a\nb\n",
            "a\nb",
            "\n\na",
            "  a\nb",
            "a \n b \n",
            "a\r\nb\r\n",
            "\ta\nb",
            "a\n\n\n",
            "---\na: b",
            "a\n---\nb\n",
            "yes",
            "no",
            "on",
            "y",
            "~",
            "null",
            "0644",
            "0o17",
            "1_000",
            "1e3",
            ".5",
            "0x1f",
            "1:30",
            "2026-01-01",
            "<<",
            "=",
            "!tag",
            "&a",
            "*a",
            "- a",
            "? a",
            "a: b",
            "a #b",
            "#a",
            "%a",
            "@a",
            "`a`",
            "{a}",
            "[a]",
            "'",
            "\"",
            "\\",
            "\u{7f}",
            "\u{85}",
            "\u{2028}",
            "\u{feff}",
            "\u{202e}",
            "\u{1f3f4}\u{e0067}\u{e007f}",
            "\\ud83d\u{e000}\u{10ffff}",
            "ä\n🎉\n",
            "::set-env name=a::b",
            "a\n::warning::b\n",
            "\u{1b}[0m",
        ];
        for text in texts {
            let manifest = json!({"data": {"a": text, "list": [text, {"b": text}]}, (text): 1});
            let written = manifest_yaml(&manifest);
            assert!(reads_as(&written, &manifest), "{text:?}: {written}");
            // go-yaml reads no pairs of surrogates.
            assert!(!written.replace("\\\\", "").contains("\\ud"), "{written}");
        }
        let manifest =
            json!({"a": [], "b": {}, "c": null, "d": [[1], []], "e": 1.5, "f": -3, "g": i64::MAX, "h": true});
        assert!(reads_as(&manifest_yaml(&manifest), &manifest));
    }

    #[test]
    fn several_lines_are_a_block() {
        let written = manifest_yaml(&json!({"data": {"a": "one\ntwo\n"}}));
        assert_eq!(written, "data:\n  a: |\n    one\n    two\n");
    }

    #[test]
    fn names_of_files_are_portable_and_different() {
        let name = |kind, namespace, name| {
            ManifestText::new(live(kind, namespace, name).key, json!({}), Vec::new()).file_name()
        };
        assert_eq!(
            name("Deployment.apps", Some("shop"), "web"),
            "deployment.apps_shop_web.yaml"
        );
        let roles = ["system:a", "system-a", "System-a", "system-a\n"];
        let names: std::collections::BTreeSet<String> = roles
            .iter()
            .map(|role| name("ClusterRole.rbac.authorization.k8s.io", None, role).to_lowercase())
            .collect();
        assert_eq!(names.len(), roles.len());
        assert!(name("ConfigMap", Some("shop"), &"a".repeat(253)).len() < 255);
    }

    #[test]
    fn comments_stay_comments() {
        let text = ManifestText::new(
            live("ConfigMap", Some("shop"), "a").key,
            json!({"kind": "ConfigMap"}),
            vec!["one\ntwo: 3".to_owned()],
        );
        let set = live("Secret", Some("shop"), "web").key;
        let file = manifest_file_text(&set, &[], &["a\nb".to_owned()], &[text]);
        let documents: Vec<Value> = kubernetes_yaml::documents(&file)
            .map(|document| document.expect("a document").to_value())
            .collect();
        assert_eq!(documents, [json!({"kind": "ConfigMap"})]);
    }
}
