//! Reads the flags of `disband` and `move`, and the flags that these commands have in common with `adopt`.

use std::collections::BTreeSet;

use super::sources::read_manifest_flags;
use super::waiting::read_exclusive;
use super::{SetReference, is_interactive, list_appliers_including, read_consent};
use crate::cli::{Disband, GlobalFlags, Move, WriteFlags};
use crate::compare::ownership::member_field_manager;
use crate::error::Error;
use crate::manifest::{Recursion, Source};
use crate::model::applyset::Tooling;
use crate::model::applyset::record::is_dns_label;
use crate::model::write_settings::{DryRun, WriteSettings};
use crate::plan::{Consent, Risk};

/// Options that `disband`, `adopt` and `move` have in common.
#[derive(Debug)]
pub struct MembershipOptions {
    pub set: SetReference,
    /// The tool that manages the set, or that will manage it after the run.
    pub tooling: Tooling,
    /// Whether `--take-over-set` allows to take over the set of another tool, or to use an existing object as the
    /// parent.
    pub take_over: Risk,
    /// Whether the user has confirmed the run in advance, by `--yes`.
    pub consent: Consent,
    /// The field managers whose part-of labels make an object a member.
    pub appliers: BTreeSet<String>,
    /// True if the user can be asked at a terminal.
    pub is_interactive: bool,
    pub writing: WriteSettings,
}

/// Options of `move`.
#[derive(Debug)]
pub struct MoveOptions {
    /// The options that `disband`, `adopt` and `move` have in common. Their `set` is the one that members leave.
    pub membership: MembershipOptions,
    /// The set that the members join.
    pub new: SetReference,
    /// The members to move.
    pub selection: MembersToMove,
}

/// The members to move.
#[derive(Debug)]
pub enum MembersToMove {
    /// All members.
    All,
    /// The members that a label selector matches.
    Labels(String),
    /// The members that are in manifests.
    Manifests(Vec<Source>, Recursion),
}

impl MembersToMove {
    /// Returns the sources of the manifests, if manifests name the members.
    pub fn manifests(&self) -> Option<(&[Source], Recursion)> {
        match self {
            Self::Manifests(sources, recursion) => Some((sources, *recursion)),
            Self::All | Self::Labels(_) => None,
        }
    }

    /// Returns the label selector, if one chooses the members.
    pub fn labels(&self) -> Option<&str> {
        match self {
            Self::Labels(labels) => Some(labels),
            Self::All | Self::Manifests(..) => None,
        }
    }
}

impl MembershipOptions {
    /// Reads the flags that are the same in all three commands. `take_over` and `consent` are left at the strictest
    /// values, for the caller to set.
    pub(super) fn new(
        set: SetReference,
        tooling: Option<&str>,
        field_manager: Option<&str>,
        writes: &WriteFlags,
        shared: &GlobalFlags,
    ) -> Result<Self, Error> {
        let tooling = super::read_tooling(tooling)?;
        let field_manager =
            super::read_field_manager(field_manager.unwrap_or(member_field_manager(&tooling)))?;
        Ok(Self {
            set,
            tooling,
            take_over: Risk::Refused,
            consent: Consent::Missing,
            appliers: list_appliers_including(&field_manager),
            is_interactive: is_interactive(),
            writing: WriteSettings {
                exclusive: read_exclusive(writes)?,
                ..WriteSettings::for_commands_without_manifests(
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
            take_over: Risk::from_flag(disband.take_over_set),
            consent: read_consent(disband.yes || disband.writes.dry_run != DryRun::None),
            ..Self::new(set, None, None, &disband.writes, shared)?
        })
    }
}

impl MoveOptions {
    /// Reads the flags of `move`.
    pub fn new(arguments: &Move, shared: &GlobalFlags) -> Result<Self, Error> {
        let set = SetReference::parse(&arguments.set)?;
        let (sources, recursion) = read_manifest_flags(&arguments.manifests);
        let selection = match &arguments.selector {
            Some(selector) => MembersToMove::Labels(check_selector_not_empty(selector)?),
            None if sources.is_empty() => MembersToMove::All,
            None => MembersToMove::Manifests(sources, recursion),
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
                take_over: Risk::from_flag(arguments.take_over_set),
                consent: read_consent(arguments.yes),
                ..membership
            },
            new: SetReference {
                namespace: read_to_namespace(arguments.to_namespace.as_deref())?,
                ..SetReference::parse(&arguments.new)?
            },
            selection,
        })
    }
}

/// Reads `--to-namespace`.
fn read_to_namespace(name: Option<&str>) -> Result<Option<String>, Error> {
    match name {
        Some(name) if !is_dns_label(name) => Err(Error::usage(
            format!("--to-namespace {name:?}: not a valid namespace name"),
            "write the name of the new parent's namespace",
        )),
        name => Ok(name.map(str::to_owned)),
    }
}

/// Refuses an empty label selector, which would match every object; that is never intended.
pub(super) fn check_selector_not_empty(text: &str) -> Result<String, Error> {
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
        assert!(check_selector_not_empty(" ").is_err());
        assert_eq!(
            check_selector_not_empty("app=web").expect("a selector"),
            "app=web"
        );
    }
}
