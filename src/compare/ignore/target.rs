//! The objects that a rule is for, matched as Flux (`fluxcd/pkg`, `ssa/jsondiff/selector.go`) and Argo CD
//! (`util/argo/normalizers/diff_normalizer.go`) match them.

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::{Map, Value};

use super::labels::LabelSelector;
use crate::manifest::desired::DesiredObject;

/// The conditions of a rule for an object; all of them have to hold.
#[derive(Debug, Clone, Default)]
pub(super) struct Target {
    pub(super) group: Option<Regex>,
    pub(super) version: Option<Regex>,
    pub(super) kind: Option<Regex>,
    pub(super) name: Option<Regex>,
    pub(super) namespace: Option<Regex>,
    pub(super) labels: Option<LabelSelector>,
    pub(super) annotations: Option<LabelSelector>,
}

impl Target {
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
    let pairs = metadata.get(field).and_then(Value::as_object);
    let pairs = pairs.into_iter().flatten();
    pairs
        .filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
        .collect()
}

/// Compiles a pattern of Flux, which has to match the whole text; an empty one matches any.
pub(super) fn anchored(pattern: &str) -> Result<Option<Regex>, regex::Error> {
    if pattern.is_empty() {
        return Ok(None);
    }
    Regex::new(&format!("^(?:{pattern})$")).map(Some)
}

/// Compiles a pattern of Argo CD, with `*` for any text and `?` for a character.
pub(super) fn glob(pattern: &str) -> Result<Option<Regex>, regex::Error> {
    let parts = pattern.chars().map(|sign| match sign {
        '*' => ".*".to_owned(),
        '?' => ".".to_owned(),
        sign => regex::escape(&sign.to_string()),
    });
    Regex::new(&format!("^(?:{})$", parts.collect::<String>())).map(Some)
}
