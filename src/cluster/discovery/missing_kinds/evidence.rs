//! The evidence on kinds that discovery does not list: the `CustomResourceDefinition`s in the cluster, and the APIs
//! that another server than the API server itself answers.

use serde_json::Value;

use super::{KeptKind, MissingKind, ReasonToExpectKind, ReasonToKeepKind};
use crate::cluster::discovery::Discovery;
use crate::model::identity::GroupKind;

/// The objects that prove whether kinds are gone, or the missing permission to read them.
#[derive(Debug, Clone)]
pub struct Evidence {
    /// The definitions that may define one of the kinds.
    pub definitions: Result<Vec<Definition>, Forbidden>,
    pub aggregated: Result<Vec<AggregatedApi>, Forbidden>,
}

/// The user lacks this permission, so the evidence could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Forbidden(pub &'static str);

/// The part of a `CustomResourceDefinition` that is about its kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// `metadata.name`, which is the plural with the group.
    pub name: String,
    pub kind: GroupKind,
    /// Plural and singular name, in lower case.
    names: Vec<String>,
    /// Names of all versions, served or not.
    versions: Vec<String>,
    pub(super) state: DefinitionState,
}

/// The state of a definition. If several states apply, the last of them in this order counts. If several definitions
/// name one kind, the first counts: the server refuses the kind to the others, which are never established.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum DefinitionState {
    Served,
    NoVersionServed,
    NotEstablished,
    Terminating,
}

impl Definition {
    /// Reads a `CustomResourceDefinition` of the server; `None` for any other object.
    pub fn from_object(object: &Value) -> Option<Self> {
        let metadata = &object["metadata"];
        let spec = &object["spec"];
        let versions = spec["versions"].as_array()?;
        let names = [&spec["names"]["plural"], &spec["names"]["singular"]];
        let is_established = object
            .pointer("/status/conditions")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .any(|condition| condition["type"] == "Established" && condition["status"] == "True");
        let state = if metadata["deletionTimestamp"].is_string() {
            DefinitionState::Terminating
        } else if !is_established {
            DefinitionState::NotEstablished
        } else if versions.iter().any(|version| version["served"] == true) {
            DefinitionState::Served
        } else {
            DefinitionState::NoVersionServed
        };
        Some(Self {
            name: metadata["name"].as_str()?.to_owned(),
            kind: GroupKind::defined_by_crd(object)?,
            names: names
                .into_iter()
                .filter_map(Value::as_str)
                .map(str::to_lowercase)
                .collect(),
            versions: versions
                .iter()
                .filter_map(|version| version["name"].as_str())
                .map(str::to_owned)
                .collect(),
            state,
        })
    }

    /// Returns whether a recorded entry names the kind of this definition: by the kind, by the plural or singular, or
    /// with a version between the name and the group.
    pub(super) fn is_named_by_entry(&self, entry: &GroupKind) -> bool {
        let group = &self.kind.group;
        let is_group = entry.group == *group
            || self
                .versions
                .iter()
                .any(|version| entry.group == format!("{version}.{group}"));
        let name = entry.kind.to_lowercase();
        is_group && (name == self.kind.kind.to_lowercase() || self.names.contains(&name))
    }

    /// Judges the kind of this definition, which discovery does not list.
    pub fn judge_missing_kind(&self) -> MissingKind {
        let reason: fn(String) -> ReasonToKeepKind = match self.state {
            DefinitionState::Served => return MissingKind::Expected(self.reason_to_expect_kind()),
            DefinitionState::NoVersionServed => ReasonToKeepKind::NoVersionServed,
            DefinitionState::NotEstablished => ReasonToKeepKind::NotEstablished,
            DefinitionState::Terminating => ReasonToKeepKind::DefinitionTerminating,
        };
        MissingKind::Kept(KeptKind {
            kind: Some(self.kind.clone()),
            reason: reason(self.name.clone()),
        })
    }

    /// Returns whether the server serves the kind, or is about to.
    pub fn is_served(&self) -> bool {
        self.state == DefinitionState::Served
    }

    /// Returns whether there may be stored objects of the kind that no list shows.
    pub fn hides_objects(&self) -> bool {
        matches!(self.judge_missing_kind(), MissingKind::Kept(kept) if kept.reason.hides_objects())
    }

    /// Returns the reason to wait for the kind of this definition.
    pub fn reason_to_expect_kind(&self) -> ReasonToExpectKind {
        ReasonToExpectKind::Defined(self.name.clone())
    }
}

/// An APIService that delegates a group-version to another API server. A local APIService is no evidence for a kind: it
/// stays after the kind's definition was deleted, if the group has other definitions.
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
        let spec = &object["spec"];
        spec["service"].as_object()?;
        Some(Self {
            name: object["metadata"]["name"].as_str()?.to_owned(),
            group: spec["group"].as_str()?.to_owned(),
            version: spec["version"].as_str()?.to_owned(),
        })
    }

    /// Returns whether discovery lists the resources of this API, or reports that the API does not answer.
    pub fn is_known_to_discovery(&self, discovery: &Discovery) -> bool {
        discovery.has_version(&self.group, &self.version)
            || discovery
                .failures()
                .iter()
                .any(|failed| failed.group == self.group && failed.version == self.version)
    }
}
