//! Rule files, which `--wait-rules` and `--ignore` read.
//!
//! A rule file is a YAML list, a mapping with that list under a known key, or an object of Flux or
//! Argo CD with it in its spec.

use kubernetes_yaml::Node;

/// The fault of a file of rules, with its line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{fault}")]
pub struct RuleFileError<F> {
    /// The line, if the fault has one.
    pub line: Option<usize>,
    pub fault: Fault<F>,
}

/// The faults that all files of rules can have, and those of one sort of rules.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault<F> {
    /// It is not YAML.
    #[error("{0}")]
    Yaml(String),
    /// It holds no rules. The words say what it must hold.
    #[error("no rules: must be {0}")]
    NoRules(&'static str),
    /// A value has another type.
    #[error("{0} is {1}, not {2}")]
    Type(String, &'static str, &'static str),
    /// A field is missing.
    #[error("a rule without {0}")]
    Missing(&'static str),
    /// A field that rules do not have. The words list those that they have.
    #[error("unknown field {0:?}; {1}")]
    UnknownField(String, &'static str),
    /// A fault of this sort of rules.
    #[error("{0}")]
    Rule(F),
}

/// The format of a file of rules.
pub(super) struct RuleFormat {
    /// The names under which documents have their lists.
    pub(super) names: &'static [&'static str],
    /// What a file must be.
    pub(super) described: &'static str,
}

impl RuleFormat {
    /// Passes each rule of a file to `take`, in their order.
    pub(super) fn read<F>(
        &self,
        text: &str,
        mut take: impl FnMut(&Node) -> Result<(), RuleFileError<F>>,
    ) -> Result<(), RuleFileError<F>> {
        let mut has_rules = false;
        for document in kubernetes_yaml::documents(text) {
            let document = document.map_err(|errors| RuleFileError {
                line: None,
                fault: Fault::Yaml(errors.to_string()),
            })?;
            for (name, list) in self.lists(&document) {
                let items = list.items().ok_or_else(|| wrong_type(list, name, "a list"))?;
                for item in items {
                    if !item.is_mapping() {
                        return Err(wrong_type(item, "a rule", "a mapping"));
                    }
                    take(item)?;
                    has_rules = true;
                }
            }
        }
        if has_rules {
            Ok(())
        } else {
            Err(RuleFileError {
                line: None,
                fault: Fault::NoRules(self.described),
            })
        }
    }

    /// Returns the lists of rules of a document. A text in a spec is something else: sources of Flux
    /// have a `spec.ignore` with patterns of file names.
    fn lists<'d>(&self, document: &'d Node) -> Vec<(&'static str, &'d Node)> {
        let Some(&first) = self.names.first() else {
            return Vec::new();
        };
        if document.items().is_some() {
            return vec![(first, document)];
        }
        self.names
            .iter()
            .filter_map(|name| {
                let list = document.get(name).or_else(|| {
                    let list = document.get("spec")?.get(name)?;
                    list.as_str().is_none().then_some(list)
                });
                Some((*name, list?))
            })
            .collect()
    }
}

/// Refuses a field of a rule that is not one of these.
pub(super) fn only_fields<F>(
    item: &Node,
    known: &[&str],
    described: &'static str,
) -> Result<(), RuleFileError<F>> {
    match item.entries().find(|(name, _)| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some((name, entry)) => Err(RuleFileError {
            line: Some(entry.position().line()),
            fault: Fault::UnknownField(name.clone(), described),
        }),
    }
}

/// Returns the text of a field, if the rule has it.
pub(super) fn text<'n, F>(item: &'n Node, name: &str) -> Result<Option<&'n str>, RuleFileError<F>> {
    item.get(name)
        .map(|value| value.as_str().ok_or_else(|| wrong_type(value, name, "a string")))
        .transpose()
}

/// Returns the texts of a list of a rule, each with its value for messages.
pub(super) fn texts<'n, F>(item: &'n Node, name: &str) -> Result<Vec<(&'n str, &'n Node)>, RuleFileError<F>> {
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

/// Returns the fault of this value.
pub(super) fn fault_at<F>(node: &Node, fault: Fault<F>) -> RuleFileError<F> {
    RuleFileError {
        line: Some(node.position().line()),
        fault,
    }
}

/// Returns the fault that this value has another type.
pub(super) fn wrong_type<F>(node: &Node, name: &str, expected: &'static str) -> RuleFileError<F> {
    fault_at(node, Fault::Type(name.to_owned(), node.description(), expected))
}
