//! Rule files, which `--wait-rules` and `--ignore` read.
//!
//! A rule file is a YAML list of rules, a mapping with the list under a known key, or an object of Flux with the list in
//! its spec.

use kubernetes_yaml::Node;

/// A fault in a rule file, with its line. `F` has the faults that only this kind of rule can have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{fault}")]
pub struct RuleFileError<F> {
    /// The line of the fault; `None` if the fault is in the whole file, or if the message names the line.
    pub line: Option<usize>,
    pub fault: Fault<F>,
}

/// The faults that every rule file can have, and `F`, the faults that only this kind of rule can have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault<F> {
    /// The file is not YAML.
    #[error("{0}")]
    Yaml(String),
    /// The file holds no rules.
    #[error("no rules: must be {expected}")]
    NoRules { expected: &'static str },
    /// A value has the wrong type.
    #[error("{name} is {found}, not {expected}")]
    Type {
        /// The name of the field, or a phrase such as `a rule`.
        name: String,
        found: &'static str,
        expected: &'static str,
    },
    /// A field is missing.
    #[error("a rule without {0}")]
    Missing(&'static str),
    /// A field that such a rule cannot have.
    #[error("unknown field {name:?}; {known}")]
    UnknownField {
        name: String,
        /// A sentence that lists the known fields.
        known: &'static str,
    },
    /// A fault that only this kind of rule can have.
    #[error("{0}")]
    Rule(F),
}

/// The format of a rule file.
pub(super) struct RuleFormat {
    /// The field that holds a list of rules, at the top level of a document or in its spec.
    pub(super) list_field: &'static str,
    /// The end of the message about a file without rules, after "must be".
    pub(super) expected: &'static str,
}

impl RuleFormat {
    /// Calls `read_rule` for each rule of a file, in the order of the file. Fails at the first fault.
    pub(super) fn for_each_rule<F>(
        &self,
        text: &str,
        mut read_rule: impl FnMut(&Node) -> Result<(), RuleFileError<F>>,
    ) -> Result<(), RuleFileError<F>> {
        let mut has_rules = false;
        for document in kubernetes_yaml::documents(text) {
            let document = document.map_err(|errors| RuleFileError {
                line: None,
                fault: Fault::Yaml(errors.to_string()),
            })?;
            if let Some(list) = self.find_list(&document) {
                let items = list
                    .items()
                    .ok_or_else(|| wrong_type(list, self.list_field, "a list"))?;
                for item in items {
                    if !item.is_mapping() {
                        return Err(wrong_type(item, "a rule", "a mapping"));
                    }
                    read_rule(item)?;
                    has_rules = true;
                }
            }
        }
        if has_rules {
            Ok(())
        } else {
            Err(RuleFileError {
                line: None,
                fault: Fault::NoRules {
                    expected: self.expected,
                },
            })
        }
    }

    /// Returns the list of rules of a document. If the field is not a list, it is returned all the same, and the caller
    /// reports the wrong type.
    fn find_list<'d>(&self, document: &'d Node) -> Option<&'d Node> {
        if document.items().is_some() {
            return Some(document);
        }
        document.get(self.list_field).or_else(|| {
            let list = document.get("spec")?.get(self.list_field)?;
            // Sources of Flux have a `spec.ignore` that is a string, with patterns of file names.
            list.as_str().is_none().then_some(list)
        })
    }
}

/// Returns an error if a rule has a field that is not in `fields`. `known` is a sentence for the message, which lists
/// the known fields.
pub(super) fn check_no_unknown_field<F>(
    item: &Node,
    fields: &[&str],
    known: &'static str,
) -> Result<(), RuleFileError<F>> {
    match item.entries().find(|(name, _)| !fields.contains(&name.as_str())) {
        None => Ok(()),
        Some((name, entry)) => Err(RuleFileError {
            line: Some(entry.position().line()),
            fault: Fault::UnknownField {
                name: name.clone(),
                known,
            },
        }),
    }
}

/// Returns a field of a rule that must be a string; `None` if the rule does not have the field.
pub(super) fn read_string<'n, F>(item: &'n Node, name: &str) -> Result<Option<&'n str>, RuleFileError<F>> {
    item.get(name)
        .map(|value| value.as_str().ok_or_else(|| wrong_type(value, name, "a string")))
        .transpose()
}

/// Returns a field of a rule that must be a list of strings; empty if the rule does not have the field. Each string
/// comes with its node, so that a caller can report its line.
pub(super) fn read_strings<'n, F>(
    item: &'n Node,
    name: &str,
) -> Result<Vec<(&'n str, &'n Node)>, RuleFileError<F>> {
    let Some(list) = item.get(name) else {
        return Ok(Vec::new());
    };
    let items = list.items().ok_or_else(|| wrong_type(list, name, "a list"))?;
    items
        .iter()
        .map(|value| match value.as_str() {
            Some(text) => Ok((text, value)),
            None => Err(wrong_type(value, &format!("an item of {name}"), "a string")),
        })
        .collect()
}

/// Returns an error about a fault on the line where the node begins.
pub(super) fn error_at<F>(node: &Node, fault: Fault<F>) -> RuleFileError<F> {
    RuleFileError {
        line: Some(node.position().line()),
        fault,
    }
}

/// Returns the error that the node, which is the field `name`, has another type than expected.
pub(super) fn wrong_type<F>(node: &Node, name: &str, expected: &'static str) -> RuleFileError<F> {
    let fault = Fault::Type {
        name: name.to_owned(),
        found: node.description(),
        expected,
    };
    error_at(node, fault)
}
