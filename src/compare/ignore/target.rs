//! The objects that a rule is for, matched as Flux (`fluxcd/pkg`, `ssa/jsondiff/selector.go`) and Argo CD
//! (`util/argo/normalizers/diff_normalizer.go`) match them.

use std::collections::BTreeMap;

use regex::{Regex, RegexBuilder};
use serde_json::{Map, Value};

use super::labels::LabelSelector;
use crate::manifest::desired::DesiredObject;

/// The conditions of a rule for an object; all of them have to hold.
#[derive(Debug, Clone, Default)]
pub(super) struct RuleTarget {
    pub(super) group: Option<Regex>,
    pub(super) version: Option<Regex>,
    pub(super) kind: Option<Regex>,
    pub(super) name: Option<Regex>,
    pub(super) namespace: Option<Regex>,
    pub(super) labels: Option<LabelSelector>,
    pub(super) annotations: Option<LabelSelector>,
}

impl RuleTarget {
    /// Returns whether the rule is for this object, as it is sent.
    pub(super) fn matches(&self, object: &DesiredObject) -> bool {
        let fits = |pattern: &Option<Regex>, text: &str| {
            pattern.as_ref().is_none_or(|pattern| pattern.is_match(text))
        };
        let resource = &object.resource;
        let namespace = object.key.namespace.as_deref().unwrap_or_default();
        fits(&self.group, &resource.group)
            && fits(&self.version, &resource.version)
            && fits(&self.kind, &resource.kind)
            && fits(&self.name, &object.key.name)
            && fits(&self.namespace, namespace)
            && self.selects(object)
    }

    fn selects(&self, object: &DesiredObject) -> bool {
        if self.labels.is_none() && self.annotations.is_none() {
            return true;
        }
        let metadata = object.object.metadata();
        let meets = |selector: &Option<LabelSelector>, field| {
            let selector = selector.as_ref();
            selector.is_none_or(|selector| selector.matches(&pairs(&metadata, field)))
        };
        meets(&self.labels, "labels") && meets(&self.annotations, "annotations")
    }
}

fn pairs<'m>(metadata: &'m Map<String, Value>, field: &str) -> BTreeMap<&'m str, &'m str> {
    metadata
        .get(field)
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
        .collect()
}

/// Returns the expression of a pattern of Flux, which has to match the whole text; an empty one matches any.
pub(super) fn anchor(pattern: &str) -> Option<String> {
    (!pattern.is_empty()).then(|| format!("^(?:{pattern})$"))
}

/// Returns the expression of a pattern of Argo CD, with `*` for any text and `?` for a character.
pub(super) fn glob(pattern: &str) -> String {
    let parts = pattern.chars().map(|sign| match sign {
        '*' => ".*".to_owned(),
        '?' => ".".to_owned(),
        sign => regex::escape(&sign.to_string()),
    });
    format!("^(?:{})$", parts.collect::<String>())
}

/// Returns the expression of a text of Argo CD, which has to be equal; an empty one matches any.
pub(super) fn exactly(text: &str) -> Option<String> {
    anchor(&regex::escape(text))
}

/// The most bytes that the compiled expressions of one file take together.
pub const MAX_BYTES_OF_EXPRESSIONS: usize = 10 << 20;

/// The most bytes of an expression. What it takes to read one does not count for its size.
pub const LONGEST_EXPRESSION: usize = 1024;

/// The least that an expression counts for.
const LEAST: usize = 4 << 10;

/// Compiles the expressions of one file, which share a limit.
pub(super) struct Expressions {
    room: usize,
}

impl Default for Expressions {
    fn default() -> Self {
        Self {
            room: MAX_BYTES_OF_EXPRESSIONS,
        }
    }
}

impl Expressions {
    /// Compiles one more, which must not be too long. It counts for the first of the sizes 4 KiB, 8 KiB, … that is large enough.
    pub(super) fn compile(&mut self, expression: &str) -> Result<Regex, regex::Error> {
        let mut size = LEAST;
        loop {
            let limit = size.min(self.room);
            let mut builder = RegexBuilder::new(expression);
            // What an expression collects while it matches does not count for its own size.
            match builder.size_limit(limit).dfa_size_limit(8 * limit).build() {
                Err(regex::Error::CompiledTooBig(_)) if limit < self.room => size *= 2,
                Err(error) => return Err(error),
                Ok(compiled) => {
                    self.room -= limit;
                    return Ok(compiled);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::file::read;

    fn rules(count: usize, name: &str) -> String {
        format!("- paths: [/spec/replicas]\n  target:\n    kind: Deployment\n    name: '{name}'\n")
            .repeat(count)
    }

    #[test]
    fn the_expressions_of_a_file_share_a_limit() {
        assert!(read(&rules(300, r"web-\d{1,3}")).is_ok());
        for (count, name) in [(1000, r"\pL{100}"), (1, r"\pL{1000}"), (3000, "a")] {
            let error = read(&rules(count, name)).expect_err("too large");
            let text = error.to_string();
            assert!(text.contains("more than 10 MiB of memory"), "{name}: {text}");
            assert!(error.hint().contains("fewer rules"), "{}", error.hint());
        }
        // Reading it would take gigabytes.
        let error = read(&rules(1, &r"\w".repeat(100_000))).expect_err("too long");
        let text = error.to_string();
        assert!(text.contains("200006 bytes, more than 1024"), "{text}");
        assert!(error.hint().contains("shorten it"), "{}", error.hint());
    }
}
