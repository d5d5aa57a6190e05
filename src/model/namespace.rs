//! A namespace as far as decisions need to know it.

use super::live::Presence;

/// What is known of a namespace that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamespaceState {
    /// Its UID; `None` where the user may not read it.
    pub uid: Option<String>,
    /// The set that it is a member of.
    pub part_of: Option<String>,
    /// Whether it is being deleted, with everything in it.
    pub presence: Presence,
    /// The UIDs of its owners.
    pub owners: Vec<String>,
}
