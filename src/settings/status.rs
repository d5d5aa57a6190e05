//! Reads `--wait-rules`.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::cli::StatusFlags;
use crate::compare::status::{BuiltInRules, RuleSet, StatusRules};
use crate::error::Error;
use crate::regular_file::{self, SMALL};

/// The value that turns the built-in rules off.
const NONE: &str = "none";

/// Reads the rules by which objects are judged.
pub fn status_rules(flags: &StatusFlags) -> Result<StatusRules, Error> {
    match flags.wait_rules.as_deref() {
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

/// Reads the text of a file of rules.
pub(super) fn rule_text(flag: &str, file: &str, hint: &str) -> Result<String, Error> {
    let text = regular_file::read_any(Path::new(file), SMALL)
        .and_then(|bytes| kubernetes_yaml::decode(bytes).map_err(io::Error::other));
    text.map_err(|error| Error::usage(format!("{flag} {file}: {}", reason(&error)), hint))
}

/// The error of a file of rules, with its line.
pub(super) fn invalid_rules(file: &str, line: Option<usize>, error: &impl fmt::Display, hint: &str) -> Error {
    let line = line.map_or_else(String::new, |line| format!(":{line}"));
    Error::usage(format!("{file}{line}: {error}"), hint)
}

fn reason(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "the file does not exist".to_owned(),
        _ => error.to_string(),
    }
}
