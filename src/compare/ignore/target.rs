//! The objects that an ignore rule is for, matched as Flux matches them (`fluxcd/pkg`, `ssa/jsondiff/selector.go`).

use regex::{Regex, RegexBuilder};

use crate::manifest::desired::DesiredObject;
use crate::model::label_selector::LabelSelector;

/// The conditions of a rule for an object; all of them have to hold.
#[derive(Debug, Clone, Default)]
pub(super) struct RuleTarget {
    pub(super) group: Option<Regex>,
    pub(super) version: Option<Regex>,
    pub(super) kind: Option<Regex>,
    pub(super) name: Option<Regex>,
    pub(super) namespace: Option<Regex>,
    pub(super) labels: LabelSelector,
    pub(super) annotations: LabelSelector,
}

impl RuleTarget {
    /// Returns whether the rule is for this object, as it is sent.
    pub(super) fn matches(&self, object: &DesiredObject) -> bool {
        let matches = |pattern: &Option<Regex>, text: &str| {
            pattern.as_ref().is_none_or(|pattern| pattern.is_match(text))
        };
        let resource = &object.resource;
        let namespace = object.key.namespace.as_deref().unwrap_or_default();
        matches(&self.group, &resource.group)
            && matches(&self.version, &resource.version)
            && matches(&self.kind, &resource.kind)
            && matches(&self.name, &object.key.name)
            && matches(&self.namespace, namespace)
            && self.selectors_match(object)
    }

    fn selectors_match(&self, object: &DesiredObject) -> bool {
        if self.labels.is_empty() && self.annotations.is_empty() {
            return true;
        }
        let metadata = object.object.metadata();
        self.labels.matches_json(metadata.get("labels"))
            && self.annotations.matches_json(metadata.get("annotations"))
    }
}

/// The limit of the text of one expression in bytes. The limit of the compiled expression does not bound the memory that
/// parsing the text takes.
pub const LONGEST_EXPRESSION: usize = 1024;
/// The limit of one compiled expression in bytes.
pub const LARGEST_EXPRESSION: usize = 1 << 20;

/// Compiles a pattern, which has to match a whole text.
///
/// # Errors
///
/// The reason why the pattern cannot be used.
pub(super) fn compile_whole_text_pattern(pattern: &str) -> Result<Regex, String> {
    if pattern.len() > LONGEST_EXPRESSION {
        return Err(format!("longer than {LONGEST_EXPRESSION} bytes"));
    }
    let compiled = RegexBuilder::new(&format!("^(?:{pattern})$"))
        .size_limit(LARGEST_EXPRESSION)
        .build();
    // The message of the parser has several lines: the pattern, a mark, and the reason.
    compiled.map_err(|error| {
        let message = error.to_string();
        let reason = message.lines().last().unwrap_or_default();
        reason.strip_prefix("error: ").unwrap_or(reason).to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::super::rule_parser::read;

    #[test]
    fn an_expression_is_neither_long_nor_large() {
        for (name, expected) in [
            (r"web-\d{1,3}".to_owned(), None),
            (r"\pL{1000}".to_owned(), Some("size limit")),
            // Reading it would take gigabytes.
            (r"\w".repeat(100_000), Some("longer than 1024 bytes")),
        ] {
            let found = read(&format!("- paths: [/a]\n  target:\n    name: '{name}'\n"));
            let error = found.err().map(|error| error.to_string());
            assert_eq!(error.is_some(), expected.is_some(), "{error:?}");
            assert!(error.unwrap_or_default().contains(expected.unwrap_or_default()));
        }
    }
}
