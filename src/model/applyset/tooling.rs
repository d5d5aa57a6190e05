//! The tooling annotation: which program manages a set.
//!
//! `plan` decides whether a run stops if another program manages the set.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::record::later_format_prefix;
use crate::model::text::{escape_as_one_line, shell_word};

/// `<name>/<version>` of the program that manages a set; a bare name has no version.
///
/// Two values name the same program when their names are equal; versions are not compared.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Tooling {
    /// The text before the last slash.
    pub name: String,
    /// The text after the last slash, usually a semantic version with a leading `v`; `None` without a slash.
    pub version: Option<String>,
}

/// The name of Config Sync as a tool, which is also the group of its kinds.
pub const CONFIG_SYNC: &str = "configsync.gke.io";

/// A tooling value without a valid name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTooling {
    /// The value is empty, or has no name before its slash.
    #[error("{0:?} has no program name: expected NAME/vX.Y.Z")]
    NoName(String),
    /// The value holds a control character, a line break or a character that changes the direction
    /// of text.
    #[error("{0:?} is not a program name: expected NAME/vX.Y.Z")]
    NotPrintable(String),
    /// The value begins with the prefix of a later format, such as `v2:`, so that tools refuse to read it.
    #[error("{0:?} has a newer format: expected NAME/vX.Y.Z")]
    LaterFormat(String),
}

impl Tooling {
    /// Returns the value for this program.
    pub fn this_program() -> Self {
        Self {
            name: env!("CARGO_PKG_NAME").to_owned(),
            version: Some(concat!("v", env!("CARGO_PKG_VERSION")).to_owned()),
        }
    }

    /// Parses a value, splitting it at the last slash (kubectl, `applyset.go`, `toolingBaseName`).
    ///
    /// A value of `--tooling` is parsed here and then written to a parent, so everything is refused here that would
    /// make that parent unreadable.
    pub fn parse(value: &str) -> Result<Self, InvalidTooling> {
        if escape_as_one_line(value) != value {
            return Err(InvalidTooling::NotPrintable(value.to_owned()));
        }
        if later_format_prefix(value, ':').is_some() {
            return Err(InvalidTooling::LaterFormat(value.to_owned()));
        }
        let (name, version) = match value.rsplit_once('/') {
            Some((name, version)) => (name, Some(version.to_owned())),
            None => (value, None),
        };
        if name.trim().is_empty() {
            return Err(InvalidTooling::NoName(value.to_owned()));
        }
        Ok(Self {
            name: name.to_owned(),
            version,
        })
    }

    /// Returns whether the value has a version, as KEP-3659 asks of tools. A bare name is more likely a mistake of the
    /// user, and so is a placeholder that was copied from documentation (`vX.Y.Z`, `<version>`). Everything else counts
    /// as a version: tools choose their own forms, and [`Self::is_same_program`] compares names alone.
    pub fn has_real_version(&self) -> bool {
        let version = self.version.as_deref().unwrap_or_default().trim();
        let number = version.trim_start_matches(['v', 'V']);
        let is_x_y_z = number
            .split('.')
            .all(|part| ["x", "y", "z"].contains(&part.to_lowercase().as_str()));
        let is_placeholder =
            version.eq_ignore_ascii_case("version") || number.starts_with(['<', '{', '[', '$']) || is_x_y_z;
        !number.is_empty() && !is_placeholder
    }

    /// Returns the value for `--tooling` that names the same program, for a hint. If it has no version, one is made up,
    /// since `--tooling` requires one.
    pub fn shell_flag_value_with_version(&self) -> String {
        if self.has_real_version() {
            shell_word(&self.to_string())
        } else {
            shell_word(&format!("{}/v0.0.0", self.name))
        }
    }

    /// Returns whether the program records no kinds on its parents, which KEP-3659 leaves to it: Config Sync finds its
    /// members by an inventory of its own (kpt-config-sync, `pkg/metadata/applyset.go`).
    pub fn records_no_kinds(&self) -> bool {
        self.name == CONFIG_SYNC
    }

    /// Returns whether both values name the same program.
    pub fn is_same_program(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl fmt::Display for Tooling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.version {
            Some(version) => write!(f, "{}/{version}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

impl From<Tooling> for String {
    fn from(tooling: Tooling) -> Self {
        tooling.to_string()
    }
}

impl TryFrom<String> for Tooling {
    type Error = InvalidTooling;

    fn try_from(value: String) -> Result<Self, Self::Error> {
        Self::parse(&value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_split_at_the_last_slash() {
        let table = [
            ("kubectl/v1.36.3", "kubectl", Some("v1.36.3")),
            ("example.com/tool/v2", "example.com/tool", Some("v2")),
            ("kubectl", "kubectl", None),
        ];
        for (value, name, version) in table {
            let tooling = Tooling::parse(value).expect("a valid value");
            assert_eq!(
                (tooling.name.as_str(), tooling.version.as_deref()),
                (name, version)
            );
            assert_eq!(tooling.to_string(), value);
        }
    }

    #[test]
    fn values_without_a_name_are_refused() {
        for value in ["", "/v1", "  ", " /v1"] {
            assert_eq!(
                Tooling::parse(value),
                Err(InvalidTooling::NoName(value.to_owned()))
            );
        }
    }

    #[test]
    fn values_that_could_pass_for_other_text_are_refused() {
        for value in [
            "kubectl/v1\nfoo  set",
            "a\u{1b}[2K/v1",
            "\u{202e}ltcebuk/v1",
            "::add-mask::x/v1",
        ] {
            assert_eq!(
                Tooling::parse(value),
                Err(InvalidTooling::NotPrintable(value.to_owned()))
            );
        }
    }

    #[test]
    fn values_of_later_formats_are_refused() {
        for value in ["v2:x/v1", "v10:"] {
            assert_eq!(
                Tooling::parse(value),
                Err(InvalidTooling::LaterFormat(value.to_owned()))
            );
        }
        for value in ["v2/v1", "x/v2:1", "version:x"] {
            assert!(Tooling::parse(value).is_ok(), "{value}");
        }
    }

    #[test]
    fn programs_are_compared_without_versions() {
        let ours = Tooling::this_program();
        let older = Tooling::parse("kubectl-applyset/v0.0.1").expect("a valid value");
        assert!(ours.is_same_program(&older));
        assert!(!ours.is_same_program(&Tooling::parse("kubectl").expect("a valid value")));
    }

    #[test]
    fn a_value_of_a_tool_has_a_version() {
        for (value, expected) in [
            ("kubectl/v1.36.3", true),
            ("example.com/tool/1.0", true),
            ("kubectl/v0.0.0-master+$Format:%H$", true),
            ("tool/main-8f3a", true),
            ("tool/8f3a", true),
            ("tool/latest", true),
            ("tool/x86", true),
            ("my tool/v1", true),
            ("kubectl", false),
            ("kubectl/", false),
            ("kubectl/ ", false),
            ("kubectl/v", false),
            ("kubectl/vX.Y.Z", false),
            ("kubectl/x.y", false),
            ("kubectl/VERSION", false),
            ("kubectl/<version>", false),
            ("kubectl/v{version}", false),
            ("kubectl/$VERSION", false),
        ] {
            let tooling = Tooling::parse(value).expect("a valid value");
            assert_eq!(tooling.has_real_version(), expected, "{value}");
        }
        let argument =
            |value: &str| Tooling::parse(value).map(|tooling| tooling.shell_flag_value_with_version());
        assert_eq!(argument("kubectl/v1.36.3").as_deref(), Ok("kubectl/v1.36.3"));
        assert_eq!(argument("kubectl").as_deref(), Ok("kubectl/v0.0.0"));
        assert_eq!(argument("my tool/v1").as_deref(), Ok("'my tool/v1'"));
    }
}
