//! Reads the flags of `verify`.

use std::collections::BTreeSet;

use super::{SetReference, is_interactive, list_appliers_including, read_consent, read_field_manager};
use crate::cli::{SetArgument, Verify};
use crate::compare::ownership::MEMBER_FIELD_MANAGER;
use crate::error::Error;
use crate::plan::Consent;
use crate::verify::{NewNamespaces, RunsUnderWay};

/// Options of `verify`.
#[derive(Debug)]
pub struct VerifyOptions {
    /// The sets to verify.
    pub scope: VerifyScope,
    /// True if the run repairs findings once the user has agreed (`--fix`).
    pub fix: bool,
    /// Whether the user has confirmed the repairs in advance, by `--yes`.
    pub consent: Consent,
    /// True if the user can be asked at a terminal.
    pub is_interactive: bool,
    /// Whether namespaces are recorded for which a label is the only evidence of members.
    pub new_namespaces: NewNamespaces,
    /// Whether the user may end the entries of runs under way.
    pub runs_under_way: RunsUnderWay,
    /// The field manager that applied the members.
    pub field_manager: String,
    /// The field managers whose part-of labels make an object a member.
    pub appliers: BTreeSet<String>,
}

/// The sets to verify.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VerifyScope {
    /// One set.
    Set(SetReference),
    /// All sets of the namespace.
    Namespace,
    /// All sets of the cluster, and orphans: members of sets whose parents are gone.
    Cluster,
}

impl VerifyOptions {
    /// Reads the flags of `verify`.
    pub fn new(verify: &Verify) -> Result<Self, Error> {
        let names_one_set = verify.set.is_some() || verify.applyset.is_some();
        let scope = match (names_one_set, verify.all_namespaces) {
            (true, _) => VerifyScope::Set(SetReference::new(&SetArgument {
                set: verify.set.clone(),
                applyset: verify.applyset.clone(),
            })?),
            (false, true) => VerifyScope::Cluster,
            (false, false) => VerifyScope::Namespace,
        };
        let name = verify.field_manager.as_deref().unwrap_or(MEMBER_FIELD_MANAGER);
        let field_manager = read_field_manager(name)?;
        // Only the user can know that a run was killed and is not still at work, so `--yes` does not end runs.
        let asks_user = verify.fix && !verify.yes && is_interactive();
        Ok(Self {
            runs_under_way: if names_one_set && asks_user {
                RunsUnderWay::Ended
            } else {
                RunsUnderWay::Kept
            },
            scope,
            fix: verify.fix,
            consent: read_consent(verify.yes),
            is_interactive: is_interactive(),
            new_namespaces: if verify.include_namespaces {
                NewNamespaces::Included
            } else {
                NewNamespaces::Excluded
            },
            appliers: list_appliers_including(&field_manager),
            field_manager,
        })
    }
}
