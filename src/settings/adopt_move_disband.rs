//! Reads the flags of `disband` and `move`, and those that `adopt` has, too.

use std::collections::BTreeSet;

use super::exclusive::exclusive;
use super::sources::{recursion, sources};
use super::{
    SetReference, appliers, consent, consent_unless_dry, field_manager, is_interactive, take_over, tooling,
};
use crate::cli::{Disband, DryRunFlag, ExclusiveFlag, GlobalFlags, ManifestFlags, Move};
use crate::compare::ownership::member_field_manager;
use crate::error::Error;
use crate::manifest::{Recursion, Source};
use crate::model::applyset::Tooling;
use crate::model::applyset::record::is_dns_label;
use crate::model::write_settings::WriteSettings;
use crate::plan::{Consent, TakeOver};

/// Options that `disband`, `adopt` and `move` have in common.
#[derive(Debug)]
pub struct MembershipOptions {
    pub set: SetReference,
    /// The tool that manages the set, or will.
    pub tooling: Tooling,
    /// The permission to take over a parent of another tool, or an object that is not a parent yet.
    pub take_over: TakeOver,
    /// What the user has agreed to in advance.
    pub consent: Consent,
    /// Field managers whose part-of labels make an object a member.
    pub appliers: BTreeSet<String>,
    /// True if there is a terminal for questions.
    pub is_interactive: bool,
    pub writing: WriteSettings,
}

/// Options of `disband`, except the shared ones.
#[derive(Debug)]
pub struct DisbandOptions {
    /// The common options.
    pub membership: MembershipOptions,
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

/// The common flags.
pub(super) struct Flags<'a> {
    pub(super) set: SetReference,
    pub(super) dry_run: &'a DryRunFlag,
    pub(super) exclusive: &'a ExclusiveFlag,
    pub(super) take_over: bool,
    pub(super) yes: bool,
    pub(super) tooling: Option<&'a str>,
    pub(super) field_manager: Option<&'a str>,
}

impl MembershipOptions {
    pub(super) fn new(flags: Flags<'_>, shared: &GlobalFlags) -> Result<Self, Error> {
        let tooling = tooling(flags.tooling)?;
        let name = flags.field_manager.unwrap_or(member_field_manager(&tooling));
        let field_manager = field_manager(name)?;
        Ok(Self {
            set: flags.set,
            tooling,
            take_over: take_over(flags.take_over),
            consent: consent(flags.yes),
            appliers: appliers(&field_manager),
            is_interactive: is_interactive(),
            writing: WriteSettings {
                exclusive: exclusive(flags.exclusive, flags.dry_run)?,
                ..WriteSettings::without_manifests(
                    field_manager,
                    flags.dry_run.mode,
                    usize::from(shared.concurrency),
                )
            },
        })
    }
}

impl DisbandOptions {
    /// Reads the flags of `disband`.
    pub fn new(disband: &Disband, shared: &GlobalFlags) -> Result<Self, Error> {
        let flags = Flags {
            set: SetReference::new(&disband.set)?,
            dry_run: &disband.dry_run,
            exclusive: &disband.exclusive,
            take_over: disband.take_over_set,
            yes: disband.yes,
            tooling: None,
            field_manager: None,
        };
        Ok(Self {
            membership: MembershipOptions {
                consent: consent_unless_dry(disband.yes, disband.dry_run.mode),
                ..MembershipOptions::new(flags, shared)?
            },
        })
    }
}

impl MoveOptions {
    /// Reads the flags of `move`.
    pub fn new(arguments: &Move, shared: &GlobalFlags) -> Result<Self, Error> {
        let flags = Flags {
            set: SetReference::parse(&arguments.set)?,
            dry_run: &arguments.dry_run,
            exclusive: &arguments.exclusive,
            take_over: arguments.take_over_set,
            yes: arguments.yes,
            tooling: arguments.tooling.as_deref(),
            field_manager: arguments.field_manager.as_deref(),
        };
        let selection = match &arguments.selector {
            Some(selector) => Selection::Labels(label_selector(selector)?),
            None if arguments.filename.is_empty() && arguments.kustomize.is_none() => Selection::All,
            None => {
                let (sources, recursion) = manifests(
                    &arguments.filename,
                    arguments.recursive,
                    arguments.kustomize.as_deref(),
                )?;
                Selection::Manifests(sources, recursion)
            }
        };
        Ok(Self {
            membership: MembershipOptions::new(flags, shared)?,
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

pub(super) fn manifests(
    filename: &[String],
    recursive: bool,
    kustomize: Option<&str>,
) -> Result<(Vec<Source>, Recursion), Error> {
    let flags = ManifestFlags {
        filename: filename.to_vec(),
        recursive,
        kustomize: kustomize.map(str::to_owned),
    };
    Ok((sources(&flags)?, recursion(&flags)))
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
