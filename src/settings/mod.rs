//! Turns the flags of the command line into values for the later stages. Invalid values are refused here, before a
//! manifest or the cluster is read.

mod adopt;
mod adopt_move_disband;
mod apply;
mod connection;
mod delete;
mod diff;
mod rbac;
mod recreate;
mod rule_files;
mod sources;
mod style;
mod verify;
mod view;
mod waiting;

use std::collections::BTreeSet;
use std::io::IsTerminal as _;

pub use adopt::{AdoptOptions, InventoryReference, ObjectsToAdopt};
pub use adopt_move_disband::{MembersToMove, MembershipOptions, MoveOptions};
pub use apply::{ApplyOptions, Confirm};
pub use connection::{format_connection_flags_for_hints, read_connection};
pub use delete::DeleteOptions;
pub use diff::{DiffOptions, check_plan_can_be_saved};
pub use rbac::RbacOptions;
pub use rule_files::Ignore;
pub use style::{read_style, read_style_with_markdown};
pub use verify::{VerifyOptions, VerifyScope};
pub use view::ViewOptions;
pub use waiting::WaitOptions;

use crate::cli::SetArgument;
use crate::compare::ownership::{
    APPLIERS, FOREIGN_PARENT_FIELD_MANAGER, MEMBER_FIELD_MANAGER, PARENT_FIELD_MANAGER,
};
use crate::error::Error;
use crate::model::applyset::Tooling;
use crate::model::applyset::record::is_dns_subdomain;
pub use crate::model::write_settings::SetReference;
use crate::plan::Consent;

impl SetReference {
    /// Reads the argument SET, or `--applyset`. clap requires one of the two.
    pub fn new(argument: &SetArgument) -> Result<Self, Error> {
        let text = argument.set.as_ref().or(argument.applyset.as_ref());
        Self::parse(text.map_or("", String::as_str))
    }

    fn parse(text: &str) -> Result<Self, Error> {
        let (resource, name) = match text.split_once('/') {
            Some((resource, name)) => (Some(resource), name),
            None => (None, text),
        };
        let has_empty_resource = resource == Some("");
        if has_empty_resource || !is_dns_subdomain(name) {
            return Err(Error::usage(
                format!("{text:?} does not name a set"),
                if is_dns_subdomain(&name.to_lowercase()) && !has_empty_resource {
                    format!("names have no capital letters: {}", text.to_lowercase())
                } else {
                    "write NAME for a Secret, or RESOURCE/NAME such as configmap/web".to_owned()
                },
            ));
        }
        Ok(Self {
            resource: resource.map(str::to_owned),
            name: name.to_owned(),
            namespace: None,
        })
    }
}

/// Returns whether the user can be asked a question: both standard input and standard error are a terminal.
fn is_interactive() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Reads `--tooling`; without the flag, this program manages the set.
fn read_tooling(value: Option<&str>) -> Result<Tooling, Error> {
    let Some(value) = value else {
        return Ok(Tooling::this_program());
    };
    let problem = match Tooling::parse(value) {
        Ok(tooling) if tooling.has_real_version() => return Ok(tooling),
        Ok(_) => format!("--tooling {value:?} has no version: expected NAME/vX.Y.Z"),
        Err(error) => format!("--tooling {error}"),
    };
    Err(Error::usage(
        problem,
        "write --tooling kubectl/v1.36.3, with the name and version of the tool that manages the set",
    ))
}

/// Returns the field managers whose part-of labels make an object a member: the field managers of kubectl and of this
/// program, and the one of `--field-manager`.
fn list_appliers_including(field_manager: &str) -> BTreeSet<String> {
    APPLIERS
        .into_iter()
        .chain([field_manager])
        .map(str::to_owned)
        .collect()
}

/// Reads `--yes`.
fn read_consent(yes: bool) -> Consent {
    if yes { Consent::ByFlag } else { Consent::Missing }
}

/// Checks the name of `--field-manager` by the server's own rule (apimachinery, `ValidateFieldManager`).
///
/// The field managers of records are reserved: a parent may be a member of another set. If its record and its manifest
/// were applied under the same name, each apply would remove the fields of the other.
fn read_field_manager(name: &str) -> Result<String, Error> {
    if [PARENT_FIELD_MANAGER, FOREIGN_PARENT_FIELD_MANAGER].contains(&name) {
        return Err(Error::usage(
            format!("--field-manager {name}: reserved for the records of parents"),
            format!("use another name, such as the default {MEMBER_FIELD_MANAGER}"),
        ));
    }
    let is_printable = name.chars().all(|character| !character.is_control());
    let is_valid = !name.is_empty() && name.len() <= 128 && is_printable;
    if is_valid {
        Ok(name.to_owned())
    } else {
        Err(Error::usage(
            format!("--field-manager {name:?} cannot be the name of a field manager"),
            "use 1 to 128 printable characters",
        ))
    }
}

#[cfg(test)]
mod tests {
    use clap::{Arg, Command, CommandFactory as _};

    use super::waiting::{DEFAULT_WAIT, DEFAULT_WAIT_FAILURES};
    use super::*;
    use crate::cli::Cli;
    use crate::cluster::connection::REQUEST_TIMEOUT;
    use crate::model::text::format_duration;
    use crate::report::BYTES_OF_COMMENT;

    #[test]
    fn the_help_names_the_defaults() {
        let root = Cli::command();
        let commands = [&root].into_iter().chain(root.get_subcommands());
        let flags: Vec<&Arg> = commands.flat_map(Command::get_arguments).collect();
        for (flag, default) in [
            ("field_manager", MEMBER_FIELD_MANAGER.to_owned()),
            ("max_bytes", BYTES_OF_COMMENT.to_string()),
            ("request_timeout", format!("{}s", REQUEST_TIMEOUT.as_secs())),
            ("wait", format_duration(DEFAULT_WAIT)),
            ("wait_failures", DEFAULT_WAIT_FAILURES.to_string()),
        ] {
            let named = flags.iter().filter(|named| named.get_id() == flag);
            let helps: Vec<String> = named
                .filter_map(|flag| Some(flag.get_help()?.to_string()))
                .collect();
            let with_default = helps.iter().filter(|help| help.contains("(default "));
            let defaults: BTreeSet<&str> = with_default
                .filter_map(|help| help.split("(default ").nth(1)?.split([';', ')']).next())
                .collect();
            assert_eq!(defaults, BTreeSet::from([default.as_str()]), "{flag}: {helps:?}");
        }
    }

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
    fn a_tooling_without_a_version_is_refused_with_what_to_write() {
        assert!(read_tooling(Some("tool/main-8f3a")).is_ok());
        for value in ["tool", "tool/vX.Y.Z", "my tool", "kubectl", "/v1"] {
            let error = read_tooling(Some(value)).expect_err(value);
            assert!(
                error.hints()[0].contains("--tooling kubectl/v1.36.3, "),
                "{value}: {error}"
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
            assert_eq!(read_field_manager(name).is_ok(), is_valid, "{name:?}");
        }
    }

    #[test]
    fn invalid_names_of_sets_are_refused() {
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
