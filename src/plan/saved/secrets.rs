//! Keeps the values of Secrets out of the file of a plan, and takes them from the manifests
//! again when it is carried out: only those that the plan was made with.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Salt, SavedManifest, SavedPlan, SavedSource};
use crate::compare::diff::{LAST_APPLIED, SECRET_FIELDS};
use crate::manifest::{self, Manifest, ManifestErrors, Recursion, Source};
use crate::model::identity::GroupVersionKind;

const HIDDEN: &str = "***";

/// A Secret of the manifests has changed since the plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{origin}:{line}: secret/{name} changed since the plan")]
pub struct Alteration {
    /// The source that was read again.
    pub origin: String,
    /// Its line when the plan was made.
    pub line: usize,
    /// Its name.
    pub name: String,
}

/// Returns whether a manifest has values that are not saved and cannot be read again.
pub fn is_lost(manifest: &Manifest) -> bool {
    is_secret(&manifest.gvk)
        && SavedSource::of(&manifest.position.source) == SavedSource::Elsewhere
        && !pointers(&manifest.object.value()).is_empty()
}

/// Hides the values of a Secret, and returns their digests by JSON pointers.
pub(super) fn hide(
    gvk: &GroupVersionKind,
    mut object: Value,
    salt: &Salt,
) -> (Value, BTreeMap<String, String>) {
    let mut hidden = BTreeMap::new();
    if is_secret(gvk) {
        for pointer in pointers(&object) {
            if let Some(value) = object.pointer_mut(&pointer) {
                hidden.insert(pointer.clone(), salt.digest(&pointer, value));
                *value = json!(HIDDEN);
            }
        }
    }
    (object, hidden)
}

/// The manifests of a plan, with the values of Secrets read from their files again.
///
/// # Errors
///
/// If files cannot be read, or Secrets have changed.
pub fn restore(plan: &SavedPlan) -> Result<Result<Vec<Manifest>, Vec<Alteration>>, ManifestErrors> {
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
            let is_it = |manifest: &&Manifest| is_same(saved, manifest, &plan.salt);
            let candidates = read.get(&saved.source);
            candidates.and_then(|candidates| candidates.iter().find(is_it).cloned())
        };
        match found {
            Some(manifest) => restored.push(manifest),
            None => altered.push(Alteration {
                origin: saved.source.open().unwrap_or(Source::StandardInput).to_string(),
                line: saved.line,
                name: saved.object["metadata"]["name"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned(),
            }),
        }
    }
    Ok(if altered.is_empty() {
        Ok(restored)
    } else {
        Err(altered)
    })
}

fn is_same(saved: &SavedManifest, manifest: &Manifest, salt: &Salt) -> bool {
    let (object, hidden) = hide(&manifest.gvk, manifest.object.value(), salt);
    object == saved.object && hidden == saved.hidden
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
                pointers.extend(keys.map(|key| format!("/{field}/{}", escaped(key))));
            }
            // Not a valid Secret, but still a value.
            Some(_) => pointers.push(format!("/{field}")),
        }
    }
    let last_applied = format!("/metadata/annotations/{}", escaped(LAST_APPLIED));
    if object.pointer(&last_applied).is_some() {
        pointers.push(last_applied);
    }
    pointers
}

fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}
