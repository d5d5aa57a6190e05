//! Keeps the values of Secrets out of the file of a plan. When the plan is carried out, the values are read from the
//! manifests again. A value that has changed since the plan was made is not accepted.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

use super::{MAKE_A_NEW_PLAN, Salt, SavedManifest, SavedPlan, SavedSource};
use crate::error::{Error, ErrorKind};
use crate::manifest::{self, Manifest, Recursion, Source};
use crate::model::identity::{GroupKind, GroupVersionKind, ObjectKey};
use crate::model::message::Message;
use crate::model::pointer::escape_segment;
use crate::model::secret_value::{METADATA_WITH_COPIES, may_hold_copy, secret_fields};
use crate::model::text::HIDDEN;

/// Returns whether a manifest has secret values that would be lost in a saved plan: they are not saved, and a later run
/// cannot read their source again.
pub fn would_lose_secret_values(manifest: &Manifest) -> bool {
    is_secret(&manifest.gvk)
        && SavedSource::new(&manifest.position.source) == SavedSource::Elsewhere
        && !find_pointers_to_hide(&manifest.object.value()).is_empty()
}

/// Hides the values of a Secret, and its annotations and labels, which may have copies of them. Returns the object, and
/// the digests of the hidden values by JSON pointers. Any other object is returned as it is.
pub(super) fn hide_secret_values(
    gvk: &GroupVersionKind,
    mut object: Value,
    salt: &Salt,
) -> (Value, BTreeMap<String, String>) {
    let mut hidden = BTreeMap::new();
    if !is_secret(gvk) {
        return (object, hidden);
    }
    for pointer in find_pointers_to_hide(&object) {
        if let Some(value) = object.pointer_mut(&pointer) {
            let digest = digest(&pointer, value, salt);
            *value = json!(HIDDEN);
            hidden.insert(pointer, digest);
        }
    }
    (object, hidden)
}

impl SavedManifest {
    /// Returns the identity of a Secret, in `default_namespace` if its manifest has none; `None` for any other object.
    pub fn object_key_if_secret(&self, default_namespace: &str) -> Option<ObjectKey> {
        if !is_saved_secret(self) {
            return None;
        }
        let metadata = &self.object["metadata"];
        let text = |field: &str| metadata[field].as_str().filter(|text| !text.is_empty());
        Some(ObjectKey {
            group_kind: GroupKind::new("", "Secret"),
            namespace: Some(text("namespace").unwrap_or(default_namespace).to_owned()),
            name: text("name")?.to_owned(),
        })
    }
}

/// Returns the manifests of a plan, with the values of Secrets read from their sources again.
///
/// # Errors
///
/// If a source cannot be read, or Secrets have changed since the plan.
pub fn restore_manifests_with_secrets(plan: &SavedPlan) -> Result<Vec<Manifest>, Error> {
    let mut manifests_by_source = BTreeMap::new();
    for saved in plan.manifests.iter().filter(|saved| !saved.hidden.is_empty()) {
        if !manifests_by_source.contains_key(&saved.source)
            && let Some(source) = saved.source.to_source()
        {
            let manifests = manifest::read(&[source], Recursion::Flat)?;
            manifests_by_source.insert(&saved.source, manifests);
        }
    }
    let mut restored = Vec::new();
    let mut changed = Vec::new();
    for saved in &plan.manifests {
        let found = if saved.hidden.is_empty() {
            saved.to_manifest()
        } else {
            let mut candidates = manifests_by_source.get(&saved.source).into_iter().flatten();
            candidates
                .find(|manifest| was_made_from(saved, manifest, &plan.salt))
                .cloned()
        };
        match found {
            Some(manifest) => restored.push(manifest),
            None => changed.push(describe_changed_secret(saved)),
        }
    }
    if changed.is_empty() {
        Ok(restored)
    } else {
        Err(Error::from_messages(ErrorKind::Outdated, changed).with_hint(MAKE_A_NEW_PLAN))
    }
}

fn describe_changed_secret(saved: &SavedManifest) -> Message {
    let origin = saved.source.to_source().unwrap_or(Source::StandardInput);
    let name = saved.object["metadata"]["name"].as_str().unwrap_or_default();
    let text = format!("{origin}:{}: secret/{name} changed since the plan", saved.line);
    Message::new(text)
}

/// Returns a manifest of a plan for a comparison with the live object, and whether the manifest is complete.
///
/// If the digest of a hidden value is the digest of the live value, the live value is filled in. Otherwise a
/// placeholder is filled in that differs from the live value, and the manifest is not complete. `None` if the manifest
/// is not valid.
pub fn fill_in_secret_values_for_comparison(
    saved: &SavedManifest,
    live: Option<&Value>,
    salt: &Salt,
) -> Option<(Manifest, bool)> {
    let mut filled = saved.clone();
    let mut is_complete = true;
    for (pointer, hidden) in &saved.hidden {
        let live_value = read_live_value(pointer, live);
        // A manifest may also have a null, which removes the value.
        let found = live_value
            .iter()
            .chain([&Value::Null])
            .find(|value| digest(pointer, value, salt) == *hidden)
            .cloned();
        is_complete &= found.is_some();
        if let Some(value) = filled.object.pointer_mut(pointer) {
            *value = found.unwrap_or_else(|| new_placeholder_other_than(live_value.as_ref()));
        }
    }
    Some((filled.to_manifest()?, is_complete))
}

/// Returns the value that a live Secret has for this JSON pointer of a manifest. For a pointer into `stringData`, that
/// is the decoded value from `data`.
fn read_live_value(pointer: &str, live: Option<&Value>) -> Option<Value> {
    let Some(key) = pointer.strip_prefix("/stringData/") else {
        return live?.pointer(pointer).cloned();
    };
    let encoded = live?.pointer(&format!("/data/{key}"))?.as_str()?;
    String::from_utf8(BASE64.decode(encoded).ok()?)
        .ok()
        .map(Value::from)
}

/// Returns a placeholder that differs from the live value, so that a comparison reports a change.
fn new_placeholder_other_than(live_value: Option<&Value>) -> Value {
    if live_value == Some(&json!(HIDDEN)) {
        json!(format!("{HIDDEN} "))
    } else {
        json!(HIDDEN)
    }
}

/// Returns the digest of a hidden value. Line breaks in base64 are not part of it, because the server ignores them.
fn digest(pointer: &str, value: &Value, salt: &Salt) -> String {
    match value.as_str().filter(|text| text.contains(['\n', '\r'])) {
        Some(text) if pointer.starts_with("/data/") => {
            salt.digest(pointer, &json!(text.replace(['\n', '\r'], "")))
        }
        _ => salt.digest(pointer, value),
    }
}

/// Returns whether the saved manifest was made from this manifest.
fn was_made_from(saved: &SavedManifest, manifest: &Manifest, salt: &Salt) -> bool {
    let (object, hidden) = hide_secret_values(&manifest.gvk, manifest.object.value(), salt);
    object == saved.object && hidden == saved.hidden
}

/// Returns whether a manifest hides nothing, or exactly what a Secret hides.
///
/// An edited plan could declare any other field as hidden, such as one that is printed. Then
/// [`fill_in_secret_values_for_comparison`] would fill a live value of the Secret into that field.
pub(super) fn hides_only_secret_values(saved: &SavedManifest) -> bool {
    let to_hide = find_pointers_to_hide(&saved.object);
    saved.hidden.is_empty() || (is_saved_secret(saved) && saved.hidden.keys().eq(&to_hide))
}

fn is_saved_secret(saved: &SavedManifest) -> bool {
    saved.object["apiVersion"] == "v1" && saved.object["kind"] == "Secret"
}

fn is_secret(gvk: &GroupVersionKind) -> bool {
    gvk.group.is_empty() && gvk.kind == "Secret"
}

/// Returns the JSON pointers of what is hidden of a Secret: its values, and its annotations and labels.
fn find_pointers_to_hide(object: &Value) -> BTreeSet<String> {
    let fields: BTreeSet<String> = secret_fields(object).map(str::to_owned).collect();
    let mut pointers = BTreeSet::new();
    for field in &fields {
        match object.get(field) {
            None | Some(Value::Null) => {}
            Some(Value::Object(values)) => {
                let keys = values.keys();
                pointers.extend(keys.map(|key| format!("/{field}/{}", escape_segment(key))));
            }
            // Not valid in a Secret, but the value may still be secret.
            Some(_) => _ = pointers.insert(format!("/{field}")),
        }
    }
    for field in METADATA_WITH_COPIES {
        let entries = object["metadata"][field].as_object().into_iter().flatten();
        let copies = entries.filter(|(key, _)| may_hold_copy(key, &fields));
        pointers.extend(copies.map(|(key, _)| format!("/metadata/{field}/{}", escape_segment(key))));
    }
    pointers
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
            let (object, hidden) = hide_secret_values(&gvk, manifest, &salt);
            let saved = SavedManifest {
                source: SavedSource::Elsewhere,
                line: 1,
                object,
                hidden,
            };
            let compared =
                fill_in_secret_values_for_comparison(&saved, live.as_ref(), &salt).expect("an object");
            (compared.0.object.value(), compared.1)
        };
        let table = [
            // The live Secret has the same value, so it is filled in.
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
            // The live Secret has another value, so a placeholder is filled in.
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
            // The live Secret has no value, or does not exist.
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
