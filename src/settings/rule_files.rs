//! Reads files of rules: `--wait-rules` and `--ignore`.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::compare::ignore::IgnoreRules;
use crate::compare::status::{BuiltInRules, RuleSet, StatusRules};
use crate::error::Error;
use crate::plan::saved::SavedIgnore;
use crate::regular_file::{self, SMALL};

/// The value that turns the built-in rules off.
const NONE: &str = "none";

/// Reads `--wait-rules`: the rules by which objects are judged.
pub fn status_rules(file: Option<&str>) -> Result<StatusRules, Error> {
    match file {
        None => Ok(StatusRules::default()),
        Some(NONE) => Ok(StatusRules {
            built_in: BuiltInRules::Unused,
            ..StatusRules::default()
        }),
        Some(file) => Ok(StatusRules {
            own: Some(Arc::new(read(file)?)),
            ..StatusRules::default()
        }),
    }
}

fn read(file: &str) -> Result<RuleSet, Error> {
    let text = rule_text("--wait-rules", file, "name a file of rules, or none for no rules")?;
    RuleSet::read(&text, file).map_err(|error| invalid_rules(file, error.line, &error, error.hint()))
}

/// The fields that the set leaves to others.
#[derive(Debug, Clone)]
pub struct Ignore {
    /// The file as it was named.
    pub file: String,
    pub text: String,
    pub rules: IgnoreRules,
}

impl Ignore {
    /// Reads the file of `--ignore`.
    pub(super) fn read(file: &str) -> Result<Self, Error> {
        let text = rule_text(
            "--ignore",
            file,
            "name a file with rules as in Flux's spec.ignore",
        )?;
        Self::parse(file.to_owned(), text)
    }

    /// Reads the rules that a saved plan was made with.
    pub(super) fn from_plan(saved: &SavedIgnore) -> Result<Self, Error> {
        Self::parse(saved.file.clone(), saved.text.clone())
    }

    /// Returns the rules as they are saved in a plan.
    pub fn to_save(&self) -> SavedIgnore {
        SavedIgnore::new(&self.file, &self.text)
    }

    fn parse(file: String, text: String) -> Result<Self, Error> {
        match IgnoreRules::read(&text) {
            Ok(rules) => Ok(Self { file, text, rules }),
            Err(error) => Err(invalid_rules(&file, error.line, &error, error.hint())),
        }
    }
}

/// Reads the text of a file of rules.
fn rule_text(flag: &str, file: &str, hint: &str) -> Result<String, Error> {
    let text = regular_file::read_any(Path::new(file), SMALL)
        .and_then(|bytes| kubernetes_yaml::decode(bytes).map_err(io::Error::other));
    text.map_err(|error| Error::usage(format!("{flag} {file}: {}", reason(&error)), hint))
}

/// The error of a file of rules, with its line.
fn invalid_rules(file: &str, line: Option<usize>, error: &impl fmt::Display, hint: &str) -> Error {
    let line = line.map_or_else(String::new, |line| format!(":{line}"));
    Error::usage(format!("{file}{line}: {error}"), hint)
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "the file does not exist".to_owned(),
        _ => error.to_string(),
    }
}
