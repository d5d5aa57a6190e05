//! Reads the flags of `verify`.

use std::collections::BTreeSet;

use super::{SetReference, appliers, consent, field_manager, is_interactive};
use crate::cli::{SetArgument, Verify};
use crate::compare::ownership::MEMBER_FIELD_MANAGER;
use crate::error::Error;
use crate::plan::Consent;
use crate::verify::{NewNamespaces, RunsUnderWay};

/// Options of `verify`, except the shared ones.
#[derive(Debug)]
pub struct VerifyOptions {
    /// The sets to verify.
    pub scope: VerifyScope,
    /// True if findings are repaired, once the user agrees.
    pub fix: bool,
    /// What the user has agreed to in advance.
    pub consent: Consent,
    /// True if there is a terminal for questions.
    pub is_interactive: bool,
    /// The treatment of namespaces for which a label is the only evidence of members.
    pub new_namespaces: NewNamespaces,
    /// The treatment of runs under way.
    pub runs_under_way: RunsUnderWay,
    /// The field manager that applied the members.
    pub field_manager: String,
    /// Field managers whose part-of labels make an object a member.
    pub appliers: BTreeSet<String>,
}

/// The sets to verify.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VerifyScope {
    /// One set.
    Set(SetReference),
    /// All sets of the namespace.
    Namespace,
    /// All sets of the cluster, and members of sets that are gone.
    Cluster,
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
        // Only a person can know that a run was killed.
        let asks = verify.fix && !verify.yes && is_interactive();
        Ok(Self {
            runs_under_way: if named && asks {
                RunsUnderWay::Ended
            } else {
                RunsUnderWay::Kept
            },
            scope,
            fix: verify.fix,
            consent: consent(verify.yes),
            is_interactive: is_interactive(),
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
