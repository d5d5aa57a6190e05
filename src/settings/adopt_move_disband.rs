//! Reads the flags of `disband` and `move`, and those that `adopt` has, too.

use std::collections::BTreeSet;

use super::sources::{recursion, sources};
use super::waiting::exclusive;
use super::{SetReference, appliers, consent, consent_unless_dry, is_interactive};
use crate::cli::{Disband, GlobalFlags, Move, WriteFlags};
use crate::compare::ownership::member_field_manager;
use crate::error::Error;
use crate::manifest::{Recursion, Source};
use crate::model::applyset::Tooling;
use crate::model::applyset::record::is_dns_label;
use crate::model::write_settings::WriteSettings;
use crate::plan::{Consent, Risk};

/// Options that `disband`, `adopt` and `move` have in common.
#[derive(Debug)]
pub struct MembershipOptions {
    pub set: SetReference,
    /// The tool that manages the set, or will.
    pub tooling: Tooling,
    /// The permission to take over a parent of another tool, or an object that is not a parent yet.
    pub take_over: Risk,
    /// What the user has agreed to in advance.
    pub consent: Consent,
    /// Field managers whose part-of labels make an object a member.
    pub appliers: BTreeSet<String>,
    /// True if there is a terminal for questions.
    pub is_interactive: bool,
    pub writing: WriteSettings,
}

/// Options of `move`, except the shared ones.
#[derive(Debug)]
pub struct MoveOptions {
    /// The common options; `set` is the one that members leave.
    pub membership: MembershipOptions,
    /// The set that they join.
    pub new: SetReference,
    /// The members to move.
    pub selection: Selection,
}

/// The members to move.
#[derive(Debug)]
pub enum Selection {
    /// All.
    All,
    /// Those that a label selector matches.
    Labels(String),
    /// Those of manifests.
    Manifests(Vec<Source>, Recursion),
}

impl Selection {
    /// Returns the sources of the manifests that name the members.
    pub fn manifests(&self) -> Option<(&[Source], Recursion)> {
        match self {
            Self::Manifests(sources, recursion) => Some((sources, *recursion)),
            Self::All | Self::Labels(_) => None,
        }
    }
}

impl MembershipOptions {
    /// Reads the flags that are the same in all three commands; nothing is taken over or confirmed.
    pub(super) fn new(
        set: SetReference,
        tooling: Option<&str>,
        field_manager: Option<&str>,
        writes: &WriteFlags,
        shared: &GlobalFlags,
    ) -> Result<Self, Error> {
        let tooling = super::tooling(tooling)?;
        let field_manager = super::field_manager(field_manager.unwrap_or(member_field_manager(&tooling)))?;
        Ok(Self {
            set,
            tooling,
            take_over: Risk::Refused,
            consent: Consent::Missing,
            appliers: appliers(&field_manager),
            is_interactive: is_interactive(),
            writing: WriteSettings {
                exclusive: exclusive(writes)?,
                ..WriteSettings::without_manifests(
                    field_manager,
                    writes.dry_run,
                    usize::from(shared.concurrency),
                )
            },
        })
    }

    /// Reads the flags of `disband`.
    pub fn for_disband(disband: &Disband, shared: &GlobalFlags) -> Result<Self, Error> {
        let set = SetReference::new(&disband.set)?;
        Ok(Self {
            take_over: Risk::allowed_if(disband.take_over_set),
            consent: consent_unless_dry(disband.yes, disband.writes.dry_run),
            ..Self::new(set, None, None, &disband.writes, shared)?
        })
    }
}

impl MoveOptions {
    /// Reads the flags of `move`.
    pub fn new(arguments: &Move, shared: &GlobalFlags) -> Result<Self, Error> {
        let set = SetReference::parse(&arguments.set)?;
        let selection = match &arguments.selector {
            Some(selector) => Selection::Labels(label_selector(selector)?),
            None if arguments.filename.is_empty() && arguments.kustomize.is_none() => Selection::All,
            None => Selection::Manifests(
                sources(&arguments.filename, arguments.kustomize.as_deref())?,
                recursion(arguments.recursive),
            ),
        };
        let membership = MembershipOptions::new(
            set,
            arguments.tooling.as_deref(),
            arguments.field_manager.as_deref(),
            &arguments.writes,
            shared,
        )?;
        Ok(Self {
            membership: MembershipOptions {
                take_over: Risk::allowed_if(arguments.take_over_set),
                consent: consent(arguments.yes),
                ..membership
            },
            new: SetReference {
                namespace: to_namespace(arguments.to_namespace.as_deref())?,
                ..SetReference::parse(&arguments.new)?
            },
            selection,
        })
    }
}

/// Checks the name of the namespace that a set moves to.
fn to_namespace(name: Option<&str>) -> Result<Option<String>, Error> {
    match name {
        Some(name) if !is_dns_label(name) => Err(Error::usage(
            format!("--to-namespace {name:?}: not a valid namespace name"),
            "write the name of the new parent's namespace",
        )),
        name => Ok(name.map(str::to_owned)),
    }
}

/// Checks a label selector. An empty one would match everything, which is never intended.
pub(super) fn label_selector(text: &str) -> Result<String, Error> {
    if text.trim().is_empty() {
        return Err(Error::usage(
            "an empty label selector would match every object",
            "write -l app=web, as it was given to `kubectl apply --prune`",
        ));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_selector_is_refused() {
        assert!(label_selector(" ").is_err());
        assert_eq!(label_selector("app=web").expect("a selector"), "app=web");
    }
}
