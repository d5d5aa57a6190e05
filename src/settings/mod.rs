//! What the command line means: typed flags turned into values that later stages take.
//!
//! Values that make no sense are refused here, before anything is read.

mod apply;
mod connection;
mod delete;
mod diff;
mod duration;
mod membership;
mod rbac;
mod sources;
mod style;
mod verify;
mod waiting;

use std::collections::BTreeSet;
use std::io::IsTerminal as _;

pub use apply::ApplyOptions;
pub use connection::connection;
pub use delete::{Absence, DeleteOptions};
pub use diff::DiffOptions;
pub use membership::{
    AdoptOptions, Choice, DisbandOptions, InventoryReference, MembershipOptions, MoveOptions, Namespaces,
    Selection,
};
pub use rbac::RbacOptions;
pub use style::style;
pub use verify::{Fix, VerifyOptions, VerifyScope};
pub use waiting::WaitOptions;

use crate::cli::{DryRunFlag, DryRunMode, SetArgument};
use crate::compare::ownership::{
    APPLIERS, FOREIGN_PARENT_FIELD_MANAGER, MEMBER_FIELD_MANAGER, PARENT_FIELD_MANAGER,
};
use crate::error::Error;
use crate::model::applyset::Tooling;
use crate::model::applyset::record::is_dns_subdomain;
use crate::model::settings::DryRun;
use crate::plan::Confirmation;

/// `[RESOURCE[.VERSION][.GROUP]/]NAME` as it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetReference {
    /// The resource; a Secret where there is none.
    pub resource: Option<String>,
    /// The parent's name.
    pub name: String,
}

impl SetReference {
    /// Reads SET or `--applyset`.
    pub fn new(argument: &SetArgument) -> Result<Self, Error> {
        let text = argument.set.as_ref().or(argument.applyset.as_ref());
        Self::parse(text.map_or("", String::as_str))
    }

    fn parse(text: &str) -> Result<Self, Error> {
        let (resource, name) = match text.split_once('/') {
            Some((resource, name)) => (Some(resource), name),
            None => (None, text),
        };
        if resource == Some("") || !is_dns_subdomain(name) {
            return Err(Error::Usage {
                message: format!("{text:?} does not name a set"),
                hint: if is_dns_subdomain(&name.to_lowercase()) && resource != Some("") {
                    format!("names have no capital letters: {}", text.to_lowercase())
                } else {
                    "write NAME for a Secret, or RESOURCE/NAME such as configmap/web".to_owned()
                },
            });
        }
        Ok(Self {
            resource: resource.map(str::to_owned),
            name: name.to_owned(),
        })
    }
}

/// Whether the user wants a parent that is another tool's, or none so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TakeOver {
    /// No.
    No,
    /// Yes; whose it is has to be confirmed.
    Asked,
    /// Yes, whosever it is.
    Confirmed,
}

impl TakeOver {
    fn new(take_over: bool, yes: bool) -> Self {
        match (take_over, yes) {
            (false, _) => Self::No,
            (true, false) => Self::Asked,
            (true, true) => Self::Confirmed,
        }
    }

    /// What is confirmed before anybody is asked.
    pub fn confirmation(self) -> Confirmation {
        match self {
            Self::Confirmed => Confirmation::Given,
            Self::No | Self::Asked => Confirmation::Missing,
        }
    }
}

fn dry_run(flag: &DryRunFlag) -> DryRun {
    match flag.mode {
        DryRunMode::None => DryRun::None,
        DryRunMode::Client => DryRun::Client,
        DryRunMode::Server => DryRun::Server,
    }
}

/// Whether there is a terminal to ask questions at.
fn is_interactive() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

fn tooling(value: Option<&str>) -> Result<Tooling, Error> {
    let Some(value) = value else {
        return Ok(Tooling::ours());
    };
    Tooling::parse(value).map_err(|error| Error::Usage {
        message: format!("--tooling {error}"),
        hint: "write --tooling kubectl/vX.Y.Z to keep a set operable by kubectl".to_owned(),
    })
}

/// Field managers whose part-of labels are those of an applier.
fn appliers(field_manager: &str) -> BTreeSet<String> {
    let known = APPLIERS.into_iter().chain([field_manager]);
    known.map(str::to_owned).collect()
}

/// What `--yes` says.
fn confirmation(yes: bool) -> Confirmation {
    if yes {
        Confirmation::Given
    } else {
        Confirmation::Missing
    }
}

/// Reads the name of a field manager by the server's own rule (apimachinery,
/// `ValidateFieldManager`). A record that is written under the same name as members would take
/// all else off a parent that is a member of another set.
fn field_manager(name: &str) -> Result<String, Error> {
    if [PARENT_FIELD_MANAGER, FOREIGN_PARENT_FIELD_MANAGER].contains(&name) {
        return Err(Error::Usage {
            message: format!("--field-manager {name}: reserved for the records of parents"),
            hint: format!("use another name, such as the default {MEMBER_FIELD_MANAGER}"),
        });
    }
    let is_valid =
        !name.is_empty() && name.len() <= 128 && name.chars().all(|character| !character.is_control());
    if is_valid {
        Ok(name.to_owned())
    } else {
        Err(Error::Usage {
            message: format!("--field-manager {name:?} cannot be the name of a field manager"),
            hint: "use 1 to 128 printable characters".to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_named_as_kubectl_names_them() {
        let table = [
            ("web", None, "web"),
            ("configmap/web", Some("configmap"), "web"),
            (
                "applysets.v1.company.com/my.set",
                Some("applysets.v1.company.com"),
                "my.set",
            ),
        ];
        for (text, resource, name) in table {
            let reference = SetReference::parse(text).expect("a valid reference");
            assert_eq!(
                (reference.resource.as_deref(), reference.name.as_str()),
                (resource, name)
            );
        }
    }

    #[test]
    fn names_of_field_managers_are_checked() {
        let long = "x".repeat(129);
        let table = [
            ("ci", true),
            ("kubectl-applyset", true),
            ("", false),
            ("a\nb", false),
            (&long, false),
            ("kubectl-applyset-parent", false),
            ("kubectl-applyset-foreign-parent", false),
        ];
        for (name, is_valid) in table {
            assert_eq!(field_manager(name).is_ok(), is_valid, "{name:?}");
        }
    }

    #[test]
    fn what_names_no_set_is_refused() {
        for text in [
            "",
            "/web",
            "secret/",
            "secret/a/b",
            "Web",
            "a b",
            "-a",
            "a..b",
            &"x".repeat(254),
        ] {
            assert!(SetReference::parse(text).is_err(), "{text:?}");
        }
        let error = SetReference::parse("configmap/Web").expect_err("a capital letter");
        assert_eq!(error.hints(), ["names have no capital letters: configmap/web"]);
    }
}
