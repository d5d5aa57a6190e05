//! Reads `--ignore`.

use super::status::{invalid_rules, rule_text};
use crate::compare::ignore::IgnoreRules;
use crate::error::Error;
use crate::plan::saved::SavedIgnore;

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
