//! `metav1.Status`: how the API server says no, and how that is laid out for people.

use std::fmt;

use serde::Deserialize;

/// The parts of `metav1.Status` that decisions and messages need.
#[derive(Debug, Clone, Default, Deserialize, PartialEq, Eq)]
#[serde(default, rename_all = "camelCase")]
pub struct Status {
    /// HTTP status code.
    pub code: u16,
    /// Machine-readable reason, such as `Conflict`.
    pub reason: String,
    /// Text for people.
    pub message: String,
    /// The object and the causes.
    pub details: StatusDetails,
}

impl Status {
    /// Whether fields belong to another field manager.
    pub fn is_field_conflict(&self) -> bool {
        self.field_conflicts().next().is_some()
    }

    /// The fields that belong to other field managers.
    pub fn field_conflicts(&self) -> impl Iterator<Item = &StatusCause> {
        self.details
            .causes
            .iter()
            .filter(|cause| cause.reason == "FieldManagerConflict")
    }
}

impl fmt::Display for Status {
    /// The message, and for a field conflict each field with its manager.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.is_field_conflict() {
            return f.write_str(&self.message);
        }
        f.write_str("other field managers own fields that the manifest sets:")?;
        for cause in &self.details.causes {
            write!(f, " {} ({})", cause.field, cause.message)?;
        }
        f.write_str("; leave them out of the manifest, or take them with --force-conflicts")
    }
}

/// `metav1.StatusDetails`.
#[derive(Debug, Clone, Default, Deserialize, PartialEq, Eq)]
#[serde(default, rename_all = "camelCase")]
pub struct StatusDetails {
    /// Name of the object; empty where the path itself is unknown to the server.
    pub name: String,
    /// One entry for each field at fault.
    pub causes: Vec<StatusCause>,
    /// Seconds after which the server asks to be tried again.
    pub retry_after_seconds: u32,
}

/// `metav1.StatusCause`.
#[derive(Debug, Clone, Default, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub struct StatusCause {
    /// Machine-readable reason, such as `FieldManagerConflict`.
    pub reason: String,
    /// Text for people.
    pub message: String,
    /// The field, in the path syntax of the server.
    pub field: String,
}
