//! The file of a plan: JSON with a digest of its content, so that a damaged or edited plan is not applied.
//!
//! The digest is not a signature: everyone who can write the file can also compute its digest.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::SavedPlan;
use super::secrets::hides_only_secret_values;
use crate::model::text::format_os_error;
use crate::plan::preconditions::plain_digest;
use crate::regular_file;

const API_VERSION: &str = "kubectl-applyset/v1";
const KIND: &str = "Plan";
/// Version of the format. It has to be raised if a newer program would read another plan from the same file.
const VERSION: u64 = 1;
/// The longest plan that is read, in bytes: twice the longest source of manifests, because a plan contains its
/// manifests.
const LIMIT: u64 = 512 << 20;

/// Error if a file is not a saved plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanFileError {
    /// The file cannot be read.
    #[error("{}", format_os_error(.0))]
    Io(#[from] io::Error),
    /// The file is not JSON.
    #[error("not valid JSON: {0}")]
    Syntax(serde_json::Error),
    /// The file is JSON of another format.
    #[error("not a saved plan")]
    Other,
    /// The file has a version of the format that this program does not read.
    #[error("plan version {0} is not supported, only version {VERSION}")]
    Version(Value),
    /// The digest does not match the content.
    #[error("the file was changed after it was saved")]
    Changed,
    /// The digest matches the content, and the content is not a valid plan.
    #[error("the file is damaged: {0}")]
    Damaged(serde_json::Error),
}

/// Writes the file of a plan atomically: if the write fails, the old file is still there. Only its owner may read the
/// file.
///
/// # Errors
///
/// If the path exists and is not a regular file, such as a device, or the file cannot be written.
pub fn write(path: &Path, plan: &SavedPlan) -> io::Result<()> {
    let text = to_text_with_digest(plan);
    let file = resolve_link(path)?;
    regular_file::write_temporary_beside(&file, text.as_bytes())?.persist(&file)?;
    Ok(())
}

/// Removes an existing plan before a new one is made, and returns whether there was one. Otherwise, if no new plan can
/// be made, the user might apply the old one by mistake. A file that is not a plan is kept.
///
/// # Errors
///
/// If there is a plan, and it cannot be removed.
pub fn remove_existing_plan(path: &Path) -> io::Result<bool> {
    let Ok(file) = resolve_link(path) else {
        return Ok(false);
    };
    // A file that cannot be read does not count as a plan: it cannot be applied.
    let was_plan = regular_file::read_text(&file, LIMIT)
        .ok()
        .and_then(|text| serde_json::from_str(&text).ok())
        .is_some_and(|document| is_plan(&document));
    if was_plan && path.is_symlink() {
        // If the target of the link were removed, the link would dangle, and `resolve_link` would refuse it.
        fs::write(file, "")?;
    } else if was_plan {
        fs::remove_file(file)?;
    }
    Ok(was_plan)
}

fn is_plan(document: &Value) -> bool {
    document["apiVersion"] == API_VERSION && document["kind"] == KIND
}

/// Returns the file to replace: the target if the path is a symbolic link, so that the link stays. A path that does not
/// exist is returned as it is.
///
/// # Errors
///
/// If the path is not a regular file, or a symbolic link whose target does not exist.
fn resolve_link(path: &Path) -> io::Result<PathBuf> {
    match fs::canonicalize(path) {
        Ok(target) if fs::metadata(&target)?.is_file() => Ok(target),
        Ok(_) => Err(io::Error::other("not a regular file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound && !path.is_symlink() => Ok(path.to_owned()),
        Err(error) => Err(error),
    }
}

/// Reads the file of a plan.
pub fn read(path: &Path) -> Result<SavedPlan, PlanFileError> {
    parse(&regular_file::read_text(path, LIMIT)?)
}

/// Returns the text of the file for a plan. The digest covers all other fields.
pub(super) fn to_text_with_digest(plan: &SavedPlan) -> String {
    let mut document = json!({
        "apiVersion": API_VERSION,
        "kind": KIND,
        "version": VERSION,
        "plan": plan,
    });
    document["digest"] = json!(plain_digest(document.to_string()));
    format!("{document:#}\n")
}

/// Reads a plan from the text of its file, and checks the digest.
pub(super) fn parse(text: &str) -> Result<SavedPlan, PlanFileError> {
    let mut document: Value = serde_json::from_str(text).map_err(PlanFileError::Syntax)?;
    if !is_plan(&document) {
        return Err(PlanFileError::Other);
    }
    if document["version"] != VERSION {
        return Err(PlanFileError::Version(document["version"].clone()));
    }
    let digest = document
        .as_object_mut()
        .and_then(|document| document.remove("digest"));
    if digest != Some(json!(plain_digest(document.to_string()))) {
        return Err(PlanFileError::Changed);
    }
    let plan: SavedPlan = serde_json::from_value(document["plan"].take()).map_err(PlanFileError::Damaged)?;
    // The digest has no key, so an attacker can compute a new one after an edit. Check what such an edit could abuse.
    if !plan.manifests.iter().all(hides_only_secret_values) {
        return Err(PlanFileError::Changed);
    }
    Ok(plan)
}
