//! Options of `verify`.

use std::collections::BTreeSet;

use super::{SetReference, appliers, field_manager, is_interactive};
use crate::cli::{SetArgument, Verify};
use crate::compare::ownership::MEMBER_FIELD_MANAGER;
use crate::error::Error;
use crate::verify::NewNamespaces;

/// Options of `verify`, apart from the shared ones.
#[derive(Debug)]
pub struct VerifyOptions {
    /// Which sets.
    pub scope: VerifyScope,
    /// Whether anything is written.
    pub fix: Fix,
    /// Whether records gain namespaces in which only labels say that there are members.
    pub new_namespaces: NewNamespaces,
    /// The field manager that has applied members.
    pub field_manager: String,
    /// Field managers whose part-of labels make members.
    pub appliers: BTreeSet<String>,
}

/// Which sets are looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VerifyScope {
    /// One.
    Set(SetReference),
    /// Those of the namespace.
    Namespace,
    /// All, and members of those that are gone.
    Cluster,
}

/// Whether findings are mended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fix {
    /// They are told.
    No,
    /// They are mended, once a person has agreed.
    Asked,
    /// They would be, and there is nobody to ask.
    Unconfirmed,
    /// They are mended.
    Confirmed,
}

impl VerifyOptions {
    /// Reads the flags of `verify`.
    pub fn new(verify: &Verify) -> Result<Self, Error> {
        let named = verify.set.is_some() || verify.applyset.is_some();
        let scope = match (named, verify.all_namespaces) {
            (true, _) => VerifyScope::Set(SetReference::new(&SetArgument {
                set: verify.set.clone(),
                applyset: verify.applyset.clone(),
            })?),
            (false, true) => VerifyScope::Cluster,
            (false, false) => VerifyScope::Namespace,
        };
        let name = verify.field_manager.as_deref().unwrap_or(MEMBER_FIELD_MANAGER);
        let field_manager = field_manager(name)?;
        Ok(Self {
            scope,
            fix: match (verify.fix, verify.yes, is_interactive()) {
                (false, _, _) => Fix::No,
                (true, true, _) => Fix::Confirmed,
                (true, false, true) => Fix::Asked,
                (true, false, false) => Fix::Unconfirmed,
            },
            new_namespaces: if verify.include_namespaces {
                NewNamespaces::Included
            } else {
                NewNamespaces::Excluded
            },
            appliers: appliers(&field_manager),
            field_manager,
        })
    }
}
