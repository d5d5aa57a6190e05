//! An API that another server than the API server itself answers.

use serde_json::Value;

use crate::cluster::discovery::{Discovery, resource_argument};

/// An APIService that delegates a group-version to an API server of its own. Local ones prove
/// nothing: the group of a deleted definition may still have others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AggregatedApi {
    /// `metadata.name`.
    pub name: String,
    /// `spec.group`.
    pub group: String,
    /// `spec.version`.
    pub version: String,
}

impl AggregatedApi {
    /// Reads an APIService; `None` for a local one.
    pub fn from_object(object: &Value) -> Option<Self> {
        let text = |pointer: &str| object.pointer(pointer)?.as_str().map(str::to_owned);
        object.pointer("/spec/service")?.as_object()?;
        Some(Self {
            name: text("/metadata/name")?,
            group: text("/spec/group")?,
            version: text("/spec/version")?,
        })
    }

    /// Returns whether this command-line argument may name a resource of this API.
    pub fn may_serve(&self, argument: &str) -> bool {
        let interpretations = resource_argument::interpretations(argument);
        interpretations.iter().any(|interpretation| {
            interpretation.begins_group(&self.group) && interpretation.is_version(&self.version)
        })
    }

    /// Returns whether discovery lists what this API serves, or that it does not answer.
    pub fn is_discovered(&self, discovery: &Discovery) -> bool {
        let mut failures = discovery.failures().iter();
        discovery.has_version(&self.group, &self.version)
            || failures.any(|failed| failed.group == self.group && failed.version == self.version)
    }
}
