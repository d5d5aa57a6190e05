//! The file of a plan: JSON with a digest over all of it, so that a damaged or edited plan
//! is not applied. The digest is not a signature: who can
//! write the file can make one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::SavedPlan;
use super::plain_digest;
use super::secrets::hides_values_of_a_secret;
use crate::model::text::os_cause;
use crate::regular_file;

const API_VERSION: &str = "kubectl-applyset/v1";
const KIND: &str = "Plan";
/// Version of the format; raised if the same file would mean another plan.
const VERSION: u64 = 1;

/// Error if a file is not a saved plan.
#[derive(Debug, thiserror::Error)]
pub enum Unsealable {
    /// It cannot be read.
    #[error("{}", os_cause(.0))]
    Io(#[from] io::Error),
    /// It is not JSON.
    #[error("not valid JSON: {0}")]
    Syntax(serde_json::Error),
    /// It is something else.
    #[error("not a saved plan")]
    Other,
    /// Another version of this program made it.
    #[error("plan version {0} is not supported, only version {VERSION}")]
    Version(Value),
    /// Its digest is not that of its content.
    #[error("the file was changed after it was saved")]
    Changed,
    /// It is invalid.
    #[error("the file is damaged: {0}")]
    Damaged(serde_json::Error),
}

/// Writes the file of a plan atomically: there is the old file or the new one, whatever
/// happens. Only its owner may read it.
///
/// # Errors
///
/// If the path exists and is not a regular file, such as a device.
pub fn write(path: &Path, plan: &SavedPlan) -> io::Result<()> {
    let sealed = seal(plan);
    let path = target(path)?;
    regular_file::write_beside(&path, sealed.as_bytes())?.persist(&path)?;
    Ok(())
}

/// Removes an existing plan, so that it cannot be applied in place of the one
/// that is about to be written. A file that is not a plan is kept.
///
/// # Errors
///
/// If there is one, and it cannot be removed.
pub fn discard(path: &Path) -> io::Result<bool> {
    let Ok(file) = target(path) else {
        return Ok(false);
    };
    let is_plan = regular_file::read_text(&file, LIMIT)
        .ok()
        .and_then(|text| serde_json::from_str(&text).ok())
        .is_some_and(|document| is_plan(&document));
    match is_plan {
        false => {}
        // A dangling link could point anywhere.
        true if path.is_symlink() => fs::write(file, "")?,
        true => fs::remove_file(file)?,
    }
    Ok(is_plan)
}

fn is_plan(document: &Value) -> bool {
    document["apiVersion"] == API_VERSION && document["kind"] == KIND
}

/// The file that is replaced: that to which a symbolic link leads, so that the link stays.
fn target(path: &Path) -> io::Result<PathBuf> {
    match fs::canonicalize(path) {
        Ok(target) if fs::metadata(&target)?.is_file() => Ok(target),
        Ok(_) => Err(io::Error::other("not a regular file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound && !path.is_symlink() => Ok(path.to_owned()),
        Err(error) => Err(error),
    }
}

/// Reads the file of a plan.
pub fn read(path: &Path) -> Result<SavedPlan, Unsealable> {
    unseal(&regular_file::read_text(path, LIMIT)?)
}

/// The longest plan that is read, in bytes: twice the longest source of manifests, which it holds.
const LIMIT: u64 = 512 << 20;

pub(super) fn seal(plan: &SavedPlan) -> String {
    let mut document = json!({
        "apiVersion": API_VERSION,
        "kind": KIND,
        "version": VERSION,
        "plan": plan,
    });
    document["digest"] = json!(plain_digest(document.to_string()));
    format!("{document:#}\n")
}

pub(super) fn unseal(text: &str) -> Result<SavedPlan, Unsealable> {
    let mut document: Value = serde_json::from_str(text).map_err(Unsealable::Syntax)?;
    if !is_plan(&document) {
        return Err(Unsealable::Other);
    }
    if document["version"] != VERSION {
        return Err(Unsealable::Version(document["version"].clone()));
    }
    let digest = document
        .as_object_mut()
        .and_then(|document| document.remove("digest"));
    if digest != Some(json!(plain_digest(document.to_string()))) {
        return Err(Unsealable::Changed);
    }
    let plan: SavedPlan = serde_json::from_value(document["plan"].take()).map_err(Unsealable::Damaged)?;
    // The digest has no key.
    if !plan.manifests.iter().all(hides_values_of_a_secret) {
        return Err(Unsealable::Changed);
    }
    Ok(plan)
}
