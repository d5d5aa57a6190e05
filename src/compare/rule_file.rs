//! Rule files, which `--wait-rules` and `--ignore` read.
//!
//! A rule file is a YAML list of rules, a mapping with the list under a known key, or an object of Flux with the list in
//! its spec.

use kubernetes_yaml::Node;
use serde::de::DeserializeOwned;

/// A fault in a rule file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RuleFileError {
    /// The line of the rule; `None` if the fault is in the whole file, or if the message names the line.
    pub line: Option<usize>,
    message: String,
}

/// The format of a rule file.
pub(super) struct RuleFormat {
    /// The field that holds a list of rules, at the top level of a document or in its spec.
    pub(super) list_field: &'static str,
    /// The end of the message about a file without rules, after "must be".
    pub(super) expected: &'static str,
}

impl RuleFormat {
    /// Calls `add_rule` with the line and the fields of each rule of a file, in the order of the file. Fails at the
    /// first fault.
    pub(super) fn for_each_rule<R: DeserializeOwned>(
        &self,
        text: &str,
        mut add_rule: impl FnMut(usize, R) -> Result<(), String>,
    ) -> Result<(), RuleFileError> {
        let mut has_rules = false;
        for document in kubernetes_yaml::documents(text) {
            let document = document.map_err(|errors| RuleFileError {
                line: None,
                message: errors.to_string(),
            })?;
            for item in self.find_rules(&document)? {
                let line = item.position().line();
                serde_json::from_value(item.to_value())
                    .map_err(|error| error.to_string())
                    .and_then(|fields| add_rule(line, fields))
                    .map_err(|message| RuleFileError {
                        line: Some(line),
                        message,
                    })?;
                has_rules = true;
            }
        }
        if has_rules {
            Ok(())
        } else {
            Err(RuleFileError {
                line: None,
                message: format!("no rules: must be {}", self.expected),
            })
        }
    }

    /// Returns the rules of a document; none if it has no list of rules.
    fn find_rules<'d>(&self, document: &'d Node) -> Result<&'d [Node], RuleFileError> {
        if let Some(rules) = document.items() {
            return Ok(rules);
        }
        let list = document.get(self.list_field).or_else(|| {
            let list = document.get("spec")?.get(self.list_field)?;
            // Sources of Flux have a `spec.ignore` that is a string, with patterns of file names.
            list.as_str().is_none().then_some(list)
        });
        let Some(list) = list else { return Ok(&[]) };
        list.items().ok_or_else(|| RuleFileError {
            line: Some(list.position().line()),
            message: format!("{} is {}, not a list", self.list_field, list.description()),
        })
    }
}
