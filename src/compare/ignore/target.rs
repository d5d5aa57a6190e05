//! The objects that an ignore rule is for, matched as Flux (`fluxcd/pkg`, `ssa/jsondiff/selector.go`) and Argo CD
//! (`util/argo/normalizers/diff_normalizer.go`) match them.

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
    pub(super) labels: Option<LabelSelector>,
    pub(super) annotations: Option<LabelSelector>,
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
        if self.labels.is_none() && self.annotations.is_none() {
            return true;
        }
        let metadata = object.object.metadata();
        let matches = |selector: &Option<LabelSelector>, field| {
            selector
                .as_ref()
                .is_none_or(|selector| selector.matches_json(metadata.get(field)))
        };
        matches(&self.labels, "labels") && matches(&self.annotations, "annotations")
    }
}

/// Returns the expression of a pattern of Flux, which has to match the whole text; `None` for an empty pattern, which
/// matches any text.
pub(super) fn flux_pattern_to_regex(pattern: &str) -> Option<String> {
    (!pattern.is_empty()).then(|| format!("^(?:{pattern})$"))
}

/// Returns the expression of a pattern of Argo CD, with `*` for any text and `?` for a character.
pub(super) fn glob_to_regex(pattern: &str) -> String {
    let parts = pattern.chars().map(|sign| match sign {
        '*' => ".*".to_owned(),
        '?' => ".".to_owned(),
        sign => regex::escape(&sign.to_string()),
    });
    format!("^(?:{})$", parts.collect::<String>())
}

/// Returns the expression of a text of Argo CD, which has to be equal; `None` for an empty text, which matches any
/// text.
pub(super) fn literal_to_regex(text: &str) -> Option<String> {
    flux_pattern_to_regex(&regex::escape(text))
}

/// The limit in bytes of the compiled expressions of one file together.
pub const MAX_BYTES_OF_EXPRESSIONS: usize = 10 << 20;

/// The limit of the text of an expression in bytes. The limit on compiled expressions does not bound the memory that
/// parsing the text takes.
pub const LONGEST_EXPRESSION: usize = 1024;

/// The number of bytes that an expression counts for at least.
const SMALLEST_SIZE: usize = 4 << 10;

/// Compiles the expressions of one file, which share a limit.
pub(super) struct Expressions {
    /// The bytes that further expressions may take.
    bytes_left: usize,
}

impl Default for Expressions {
    fn default() -> Self {
        Self {
            bytes_left: MAX_BYTES_OF_EXPRESSIONS,
        }
    }
}

impl Expressions {
    /// Compiles an expression of at most [`LONGEST_EXPRESSION`] bytes. The crate `regex` does not report the size of a
    /// compiled expression, so limits of 4 KiB, 8 KiB, … are tried, and the first that is large enough counts as its
    /// size.
    pub(super) fn compile_within_memory_limit(&mut self, expression: &str) -> Result<Regex, regex::Error> {
        let mut size = SMALLEST_SIZE;
        loop {
            let limit = size.min(self.bytes_left);
            let mut builder = RegexBuilder::new(expression);
            // The cache that an expression fills while it matches has a limit of its own, and does not count as its
            // size.
            match builder.size_limit(limit).dfa_size_limit(8 * limit).build() {
                Err(regex::Error::CompiledTooBig(_)) if limit < self.bytes_left => size *= 2,
                Err(error) => return Err(error),
                Ok(compiled) => {
                    self.bytes_left -= limit;
                    return Ok(compiled);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rule_parser::read;

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
