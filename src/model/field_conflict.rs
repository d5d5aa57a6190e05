//! Fields of manifests that other field managers own.

use super::identity::ObjectKey;
use super::pointer::Pointer;

/// A field of a manifest that another field manager owns, with another value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldConflict {
    pub object: ObjectKey,
    /// The file and line of the field, or those of the object if the line of the field is not known.
    pub place: String,
    /// The field as the server writes it, such as `.spec.replicas`.
    pub field: String,
    /// The owner as the server names it, in quotation marks.
    pub owner: String,
    /// The time of the owner's last write, RFC 3339.
    pub since: Option<String>,
    /// The live value and that of the manifest, shortened; `None` for a Secret, and if one is not known.
    pub values: Option<[String; 2]>,
    /// The field in a rule of `--ignore`; `None` if it cannot be ignored.
    pub pointer: Option<Pointer>,
}
