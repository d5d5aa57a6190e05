//! Keeps the values of Secrets out of the file of a plan, and takes them from the manifests
//! again when it is carried out: only those that the plan was made with.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

use super::{MAKE_A_NEW_PLAN, Salt, SavedManifest, SavedPlan, SavedSource};
use crate::compare::diff::{LAST_APPLIED, SECRET_FIELDS, copies};
use crate::error::{Error, ErrorKind};
use crate::manifest::{self, Manifest, Recursion, Source};
use crate::model::identity::{GroupKind, GroupVersionKind, ObjectKey};
use crate::model::message::Message;
use crate::model::text::HIDDEN;

/// Returns whether a manifest has values that are not saved and cannot be read again.
pub fn is_lost(manifest: &Manifest) -> bool {
    is_secret(&manifest.gvk)
        && SavedSource::new(&manifest.position.source) == SavedSource::Elsewhere
        && !pointers(&manifest.object.value()).is_empty()
}

/// Hides the values of a Secret, and returns their digests by JSON pointers.
pub(super) fn hide(gvk: &GroupVersionKind, object: Value, salt: &Salt) -> (Value, BTreeMap<String, String>) {
    if !is_secret(gvk) {
        return (object, BTreeMap::new());
    }
    let mut hidden = copies(&object, &[&object]);
    hidden.extend(pointers(&object));
    hide_at(&hidden, object, salt)
}

/// Hides what is at these JSON pointers.
fn hide_at<'p>(
    pointers: impl IntoIterator<Item = &'p String>,
    mut object: Value,
    salt: &Salt,
) -> (Value, BTreeMap<String, String>) {
    let mut hidden = BTreeMap::new();
    for pointer in pointers {
        if let Some(value) = object.pointer_mut(pointer) {
            hidden.insert(pointer.clone(), digest(pointer, value, salt));
            *value = json!(HIDDEN);
        }
    }
    (object, hidden)
}

impl SavedManifest {
    /// Hides annotations and labels that hold a value of the live Secret, as a note of the former password does.
    pub fn hide_copies_of_live(&mut self, live: &Value, salt: &Salt) {
        let copies = copies(&self.object, &[live]);
        let (object, hidden) = hide_at(&copies, std::mem::take(&mut self.object), salt);
        self.object = object;
        self.hidden.extend(hidden);
    }

    /// Returns whether the key of an annotation or label holds a value. Digests are saved by keys.
    pub fn has_value_in_key(&self) -> bool {
        FIELDS_WITH_COPIES
            .iter()
            .any(|field| self.hidden.contains_key(*field))
    }

    /// Returns the key of a Secret; `None` for any other object.
    pub fn secret_key(&self, namespace: &str) -> Option<ObjectKey> {
        let metadata = &self.object["metadata"];
        let text = |field: &str| metadata[field].as_str().filter(|text| !text.is_empty());
        is_saved_secret(self).then_some(())?;
        Some(ObjectKey {
            group_kind: GroupKind::new("", "Secret"),
            namespace: Some(text("namespace").unwrap_or(namespace).to_owned()),
            name: text("name")?.to_owned(),
        })
    }
}

/// The manifests of a plan, with the values of Secrets read from their files again.
///
/// # Errors
///
/// If files cannot be read, or Secrets have changed.
pub fn restore(plan: &SavedPlan) -> Result<Vec<Manifest>, Error> {
    let mut read = BTreeMap::new();
    for saved in plan.manifests.iter().filter(|saved| !saved.hidden.is_empty()) {
        if !read.contains_key(&saved.source)
            && let Some(source) = saved.source.open()
        {
            read.insert(&saved.source, manifest::read(&[source], Recursion::Flat)?);
        }
    }
    let mut restored = Vec::new();
    let mut altered = Vec::new();
    for saved in &plan.manifests {
        let found = if saved.hidden.is_empty() {
            saved.open()
        } else {
            let mut candidates = read.get(&saved.source).into_iter().flatten();
            candidates
                .find(|manifest| is_same(saved, manifest, &plan.salt))
                .cloned()
        };
        match found {
            Some(manifest) => restored.push(manifest),
            None => altered.push(Message::new(alteration(saved))),
        }
    }
    if altered.is_empty() {
        Ok(restored)
    } else {
        Err(Error::from_messages(ErrorKind::Outdated, altered).with_hint(MAKE_A_NEW_PLAN))
    }
}

fn alteration(saved: &SavedManifest) -> String {
    let origin = saved.source.open().unwrap_or(Source::StandardInput);
    let name = saved.object["metadata"]["name"].as_str().unwrap_or_default();
    format!("{origin}:{}: secret/{name} changed since the plan", saved.line)
}

/// Returns the manifest of a plan to compare with the live object, and whether it is complete. A hidden value that the
/// live Secret has, by its digest, is the live one; each other is a placeholder that differs from it. `None` if it is not
/// an object.
pub fn fill_in_for_comparison(
    saved: &SavedManifest,
    live: Option<&Value>,
    salt: &Salt,
) -> Option<(Manifest, bool)> {
    let mut filled = saved.clone();
    let mut is_complete = true;
    for (pointer, hidden) in &saved.hidden {
        let live = live_value(pointer, live);
        let found = live
            .iter()
            .chain([&Value::Null])
            .find(|value| digest(pointer, value, salt) == *hidden)
            .cloned();
        is_complete &= found.is_some();
        if let Some(value) = filled.object.pointer_mut(pointer) {
            *value = found.unwrap_or_else(|| placeholder(live.as_ref()));
        }
    }
    Some((filled.open()?, is_complete))
}

/// Returns what a live Secret has of a value, in the writing of the manifest.
fn live_value(pointer: &str, live: Option<&Value>) -> Option<Value> {
    let Some(key) = pointer.strip_prefix("/stringData/") else {
        return live?.pointer(pointer).cloned();
    };
    let encoded = live?.pointer(&format!("/data/{key}"))?.as_str()?;
    String::from_utf8(BASE64.decode(encoded).ok()?)
        .ok()
        .map(Value::from)
}

/// Returns a value that differs from the live one.
fn placeholder(live: Option<&Value>) -> Value {
    if live == Some(&json!(HIDDEN)) {
        json!(format!("{HIDDEN} "))
    } else {
        json!(HIDDEN)
    }
}

/// Returns the digest of a hidden value. The server ignores line breaks in base64.
fn digest(pointer: &str, value: &Value, salt: &Salt) -> String {
    match value.as_str().filter(|text| text.contains(['\n', '\r'])) {
        Some(text) if pointer.starts_with("/data/") => {
            salt.digest(pointer, &json!(text.replace(['\n', '\r'], "")))
        }
        _ => salt.digest(pointer, value),
    }
}

fn is_same(saved: &SavedManifest, manifest: &Manifest, salt: &Salt) -> bool {
    // What was hidden for a value of the live Secret of that time is known by its place alone.
    let (object, hidden) = hide_at(saved.hidden.keys(), manifest.object.value(), salt);
    object == saved.object && hidden == saved.hidden
}

/// Returns whether the values of a Secret are hidden, and nothing else but annotations and labels. If anything else were,
/// live values of a Secret could be put into a field that is printed. These are printed only if they hold no value.
pub(super) fn hides_values_of_a_secret(saved: &SavedManifest) -> bool {
    let mut pointers = pointers(&saved.object);
    pointers.retain(|pointer| !is_copy(pointer));
    pointers.sort();
    let values = saved.hidden.keys().filter(|pointer| !is_copy(pointer));
    saved.hidden.is_empty() || (is_saved_secret(saved) && values.eq(&pointers))
}

fn is_saved_secret(saved: &SavedManifest) -> bool {
    saved.object["apiVersion"] == "v1" && saved.object["kind"] == "Secret"
}

fn is_secret(gvk: &GroupVersionKind) -> bool {
    gvk.group.is_empty() && gvk.kind == "Secret"
}

/// Returns the JSON pointers of secret values.
fn pointers(object: &Value) -> Vec<String> {
    let mut pointers = Vec::new();
    for field in SECRET_FIELDS {
        match object.get(field) {
            None | Some(Value::Null) => {}
            Some(Value::Object(values)) => {
                let keys = values.keys();
                pointers.extend(keys.map(|key| format!("/{field}/{}", escape_pointer(key))));
            }
            // Not a valid Secret, but still a value.
            Some(_) => pointers.push(format!("/{field}")),
        }
    }
    let last_applied = annotation(LAST_APPLIED);
    if object.pointer(&last_applied).is_some() {
        pointers.push(last_applied);
    }
    pointers
}

/// Returns the JSON pointer of an annotation.
fn annotation(key: &str) -> String {
    format!("{ANNOTATIONS}/{}", escape_pointer(key))
}

fn is_copy(pointer: &str) -> bool {
    FIELDS_WITH_COPIES.iter().any(|field| {
        pointer
            .strip_prefix(field)
            .is_some_and(|entry| entry.starts_with('/'))
    })
}

const ANNOTATIONS: &str = "/metadata/annotations";
const FIELDS_WITH_COPIES: [&str; 2] = [ANNOTATIONS, "/metadata/labels"];

fn escape_pointer(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_compared_with_the_live_one_by_its_digest() {
        let salt = Salt::random().expect("random bytes");
        let gvk = GroupVersionKind::from_api_version("v1", "Secret");
        let filled = |mut manifest: Value, live: Option<Value>| {
            manifest["apiVersion"] = json!("v1");
            manifest["kind"] = json!("Secret");
            manifest["metadata"] = json!({"name": "login"});
            let (object, hidden) = hide(&gvk, manifest, &salt);
            let saved = SavedManifest {
                source: SavedSource::Elsewhere,
                line: 1,
                object,
                hidden,
            };
            let compared = fill_in_for_comparison(&saved, live.as_ref(), &salt).expect("an object");
            (compared.0.object.value(), compared.1)
        };
        let table = [
            // The same value, as it is live.
            (
                json!({"data": {"a": "eA=="}}),
                Some(json!({"data": {"a": "eA=="}})),
                "/data/a",
                json!("eA=="),
            ),
            (
                json!({"data": {"a": "e\nA=="}}),
                Some(json!({"data": {"a": "eA=="}})),
                "/data/a",
                json!("eA=="),
            ),
            (
                json!({"stringData": {"a": "x"}}),
                Some(json!({"data": {"a": "eA=="}})),
                "/stringData/a",
                json!("x"),
            ),
            (
                json!({"data": {"a": null}}),
                Some(json!({"data": {"a": "eA=="}})),
                "/data/a",
                Value::Null,
            ),
            (
                json!({"data": {"a/b": "eA=="}}),
                Some(json!({"data": {"a/b": "eA=="}})),
                "/data/a~1b",
                json!("eA=="),
            ),
            // Another one.
            (
                json!({"data": {"a": "eA=="}}),
                Some(json!({"data": {"a": "eQ=="}})),
                "/data/a",
                json!("***"),
            ),
            (
                json!({"data": {"a": "eA=="}}),
                Some(json!({"data": {"a": "***"}})),
                "/data/a",
                json!("*** "),
            ),
            (
                json!({"stringData": {"a": "x"}}),
                Some(json!({"data": {"a": "Kioq"}})),
                "/stringData/a",
                json!("*** "),
            ),
            (
                json!({"stringData": {"a": "x"}}),
                Some(json!({"data": {"a": "/w=="}})),
                "/stringData/a",
                json!("***"),
            ),
            // None.
            (
                json!({"data": {"a": "eA=="}}),
                Some(json!({})),
                "/data/a",
                json!("***"),
            ),
            (json!({"data": {"a": "eA=="}}), None, "/data/a", json!("***")),
        ];
        for (manifest, live, pointer, expected) in table {
            let (found, is_complete) = filled(manifest.clone(), live.clone());
            assert_eq!(found.pointer(pointer), Some(&expected), "{manifest} {live:?}");
            let is_placeholder = expected.as_str().is_some_and(|text| text.starts_with(HIDDEN));
            assert_eq!(is_complete, !is_placeholder, "{manifest} {live:?}");
        }
    }
}
