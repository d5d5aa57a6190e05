//! Reads the files of `--wait-rules` and `--ignore`.

use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::compare::ignore::{self, IgnoreRules};
use crate::compare::rule_file::RuleFileError;
use crate::compare::status::{self, BuiltInRules, JobGoal, RuleSet, StatusRules};
use crate::error::Error;
use crate::plan::saved::SavedIgnore;
use crate::regular_file::{self, SMALL};

/// The value of `--wait-rules` that turns the built-in rules off.
const NONE: &str = "none";

/// Reads `--wait-rules` and `--wait-for-jobs`: the rules that determine the status of objects.
pub(super) fn read_status_rules(file: Option<&str>, wait_for_jobs: bool) -> Result<StatusRules, Error> {
    let rules = StatusRules {
        job_goal: if wait_for_jobs {
            JobGoal::Completed
        } else {
            JobGoal::Started
        },
        ..StatusRules::default()
    };
    match file {
        None => Ok(rules),
        Some(NONE) => Ok(StatusRules {
            built_in: BuiltInRules::Unused,
            ..rules
        }),
        Some(file) => Ok(StatusRules {
            own: Some(Arc::new(read_rule_set(file)?)),
            ..rules
        }),
    }
}

fn read_rule_set(file: &str) -> Result<RuleSet, Error> {
    let text = read_rule_file("--wait-rules", file, "name a file of rules, or none for no rules")?;
    RuleSet::read(&text, file).map_err(|error| invalid_rules(file, &error, status::HOW_TO_WRITE_RULES))
}

/// The rules of `--ignore` for fields that the set leaves to other field managers.
#[derive(Debug, Clone)]
pub struct Ignore {
    /// The file as the command line or the saved plan names it.
    pub file: String,
    /// The text of the file, as a plan saves it.
    pub text: String,
    pub rules: IgnoreRules,
}

impl Ignore {
    /// Reads the file of `--ignore`; `None` without the flag. The flag is refused if it is given twice: by kubectl's
    /// rule for flags, the last one would win, and the fields of the first one would lose their protection without a
    /// word.
    pub(super) fn read_at_most_one(files: &[String]) -> Result<Option<Self>, Error> {
        match files {
            [] => Ok(None),
            [file] => Self::read(file).map(Some),
            _ => Err(Error::usage(
                "--ignore is given more than once",
                "put all rules into one file",
            )),
        }
    }

    fn read(file: &str) -> Result<Self, Error> {
        let text = read_rule_file(
            "--ignore",
            file,
            "name a file with rules as in Flux's spec.ignore",
        )?;
        Self::parse(file.to_owned(), text)
    }

    /// Parses the rules that a saved plan was made with.
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
            Err(error) => Err(invalid_rules(&file, &error, ignore::HOW_TO_WRITE_RULES)),
        }
    }
}

/// Reads a file of rules as text. `hint` is for a file that cannot be read.
fn read_rule_file(flag: &str, file: &str, hint: &str) -> Result<String, Error> {
    regular_file::read_any(Path::new(file), SMALL)
        .and_then(|bytes| kubernetes_yaml::decode(bytes).map_err(io::Error::other))
        .map_err(|error| Error::usage(format!("{flag} {file}: {}", describe_cause(&error)), hint))
}

/// Returns the error that a file of rules is invalid, with the line if it is known.
fn invalid_rules(file: &str, error: &RuleFileError, hint: &str) -> Error {
    let place = match error.line {
        Some(line) => format!("{file}:{line}"),
        None => file.to_owned(),
    };
    Error::usage(format!("{place}: {error}"), hint)
}

fn describe_cause(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "the file does not exist".to_owned(),
        _ => error.to_string(),
    }
}
