//! The kinds that the API server serves: lookups for every later stage, and the requests that read them.
//!
//! A `Discovery` is a plain value; only `fetch` sends requests. A group-version that could not be read is kept with the
//! reason. Its kinds must not count as absent: a run drops absent kinds from the record of a set, and their objects
//! would never be pruned. This module knows nothing of sets and parents.

mod custom_resources;
mod fetch;
mod missing_kinds;
mod parse;
mod resource_argument;
mod similar_kinds;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;

use serde_json::Value;

use crate::model::identity::{GroupKind, GroupVersionKind};
use crate::model::resource::{Origin, Resource};

pub use fetch::{fetch, request};
pub use missing_kinds::{
    AggregatedApi, Definition, Evidence, Forbidden, KeptKind, MissingKind, ReasonToExpectKind,
    ReasonToKeepKind, judge as judge_missing_kind,
};
pub use parse::null_is_empty;

/// The resources that the server serves, and the group-versions that could not be read.
#[derive(Debug, Clone)]
pub struct Discovery {
    /// In order of preference: the core group, the other groups in the server's order, in each the
    /// preferred version first; resources that are not served yet come last.
    resources: Vec<Resource>,
    /// Positions in `resources`, ordered by kind, and within a kind by preference.
    kind_order: Vec<usize>,
    failures: Vec<FailedVersion>,
    /// Recorded kinds that are not among `resources`.
    missing_kinds: BTreeMap<GroupKind, MissingKind>,
}

/// A group-version of the server whose resources could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct FailedVersion {
    /// API group; empty for the core group.
    pub group: String,
    /// API version.
    pub version: String,
    /// The reason, for messages.
    pub reason: String,
}

impl FailedVersion {
    /// Returns the name of the `APIService` that this version has if it is aggregated.
    pub fn api_service_name(&self) -> String {
        format!("{}.{}", self.version, self.group)
    }
}

impl fmt::Display for FailedVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.group.is_empty() {
            write!(f, "{}/", self.group)?;
        }
        write!(f, "{}: {}", self.version, self.reason)
    }
}

/// The result of a lookup of a kind in one version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResourceLookup<'a> {
    /// The kind is served in this version, or will be.
    Found(&'a Resource),
    /// The kind is not served in this version.
    UnknownKind {
        /// The versions in which the same group serves the kind, the preferred first.
        served_versions: Vec<String>,
        /// Up to three kinds that may have been meant, as `Kind in apiVersion`.
        similar: Vec<String>,
    },
    /// The group of the kind could not be read.
    GroupFailed(&'a FailedVersion),
}

/// The result of a lookup of a kind or a resource in any version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KindLookup<'a> {
    /// The kind is served, or will be; this is its preferred version.
    Found(&'a Resource),
    /// All versions in question were read, and none has it.
    Absent,
    /// The group of the kind could not be read.
    GroupFailed(&'a FailedVersion),
}

impl Discovery {
    /// Collects the resources of each group-version, in the server's order of preference.
    fn new(versions: impl Iterator<Item = parse::VersionResult>) -> Self {
        let mut resources = Vec::new();
        let mut failures = Vec::new();
        for version in versions {
            match version {
                Ok(mut served) => {
                    // Extension servers may serve one kind by two resources. Lookups must find the listable one first,
                    // since the objects belong to that one.
                    served.sort_by_key(|resource| !resource.supports("list"));
                    resources.extend(served);
                }
                Err(failed) => failures.push(failed),
            }
        }
        Self::from_parts(resources, failures)
    }

    /// The discovery of a server that serves exactly these resources, in this order.
    #[cfg(test)]
    pub fn from_resources(resources: Vec<Resource>) -> Self {
        Self::from_parts(resources, Vec::new())
    }

    fn from_parts(resources: Vec<Resource>, failures: Vec<FailedVersion>) -> Self {
        let mut kind_order: Vec<usize> = (0..resources.len()).collect();
        kind_order.sort_by_key(|&position| (resources[position].kind.as_str(), position));
        Self {
            resources,
            kind_order,
            failures,
            missing_kinds: BTreeMap::new(),
        }
    }

    /// Stores the judgement on kinds that discovery does not list.
    pub fn set_missing_kinds(&mut self, missing_kinds: BTreeMap<GroupKind, MissingKind>) {
        self.missing_kinds = missing_kinds;
    }

    /// Returns the kinds that definitions among the manifests define, and that discovery does not list as served.
    pub fn not_yet_served_kinds(&self) -> BTreeSet<GroupKind> {
        self.not_yet_served()
            .map(Resource::group_kind)
            .filter(|kind| !self.serves(kind))
            .collect()
    }

    /// Returns whether discovery lists this kind as served.
    pub fn serves(&self, kind: &GroupKind) -> bool {
        matches!(self.find_preferred(kind), KindLookup::Found(found) if found.origin == Origin::Served)
    }

    fn not_yet_served(&self) -> impl Iterator<Item = &Resource> {
        self.resources
            .iter()
            .filter(|resource| resource.origin == Origin::NotYetServed)
    }

    /// Returns the judgement on a kind that discovery does not list; `None` if it was not judged.
    pub fn judgement_on_missing_kind(&self, kind: &GroupKind) -> Option<&MissingKind> {
        self.missing_kinds.get(kind)
    }

    /// Returns whether discovery lists this group-version with any resource.
    pub fn has_version(&self, group: &str, version: &str) -> bool {
        self.resources.iter().any(|resource| {
            resource.origin == Origin::Served && resource.group == group && resource.version == version
        })
    }

    /// Returns whether discovery lists any resource of this group, or manifests define one.
    pub fn has_group(&self, group: &str) -> bool {
        self.resources.iter().any(|resource| resource.group == group)
    }

    /// Returns whether discovery lists the resource that a `CustomResourceDefinition` of this name
    /// defines.
    pub fn has_resource_of_definition(&self, name: &str) -> bool {
        let (plural, group) = name.split_once('.').unwrap_or((name, ""));
        self.resources.iter().any(|resource| {
            resource.origin == Origin::Served && resource.plural == plural && resource.group == group
        })
    }

    /// Adds the resources that an earlier discovery took from manifests and marked as not served yet, unless this
    /// discovery lists them.
    #[must_use]
    pub fn with_not_yet_served_of(self, earlier: &Self) -> Self {
        let new: Vec<Resource> = earlier
            .not_yet_served()
            .filter(|resource| {
                let is_failed = self.failures.iter().any(|failed| failed.group == resource.group);
                !is_failed && !self.resources.iter().any(|listed| is_same_gvk(listed, resource))
            })
            .cloned()
            .collect();
        let resources = self.resources.into_iter().chain(new).collect();
        Self::from_parts(resources, self.failures)
    }

    /// Finds the resource of a manifest, with exactly this version and this kind.
    pub fn find_resource(&self, gvk: &GroupVersionKind) -> ResourceLookup<'_> {
        if let Some(resource) = self
            .resources_of_kind_by_preference(&gvk.group, &gvk.kind)
            .find(|resource| resource.version == gvk.version)
        {
            return ResourceLookup::Found(resource);
        }
        let failure = self
            .failures
            .iter()
            .find(|failed| failed.group == gvk.group && failed.version == gvk.version);
        if let Some(failure) = failure {
            return ResourceLookup::GroupFailed(failure);
        }
        let mut served_versions: Vec<String> = self
            .resources_of_kind_by_preference(&gvk.group, &gvk.kind)
            .map(|resource| resource.version.clone())
            .collect();
        served_versions.dedup();
        let other_kinds = self
            .resources
            .iter()
            .filter(|resource| resource.group != gvk.group || resource.kind != gvk.kind);
        ResourceLookup::UnknownKind {
            served_versions,
            similar: similar_kinds::find_similar(gvk, other_kinds),
        }
    }

    /// Finds the resource of a recorded group-kind, in the version that the server prefers.
    pub fn find_preferred(&self, group_kind: &GroupKind) -> KindLookup<'_> {
        self.resources_of_kind_by_preference(&group_kind.group, &group_kind.kind)
            .next()
            .map_or_else(
                || self.absent_unless_group_failed(&group_kind.group),
                KindLookup::Found,
            )
    }

    /// Finds the resource of a command-line argument: `RESOURCE[.VERSION][.GROUP]` with a plural, a singular, a short
    /// name or a kind, in any letter case, as kubectl reads it (client-go's restmapper).
    ///
    /// A group may be abbreviated (`ingresses.networking`). If several resources match, the core
    /// group wins, then the order of the server. A name without a group that matches nothing is
    /// `GroupFailed` if any group failed.
    pub fn find_by_argument(&self, argument: &str) -> KindLookup<'_> {
        resource_argument::find(argument, &self.resources, &self.failures)
    }

    /// Finds the resource of an entry `resource.group` of the deprecated annotation
    /// `contains-group-resources`, in the version that the server prefers.
    pub fn find_by_group_resource(&self, resource: &str, group: &str) -> KindLookup<'_> {
        self.resources
            .iter()
            .find(|served| served.plural == resource && served.group == group)
            .map_or_else(|| self.absent_unless_group_failed(group), KindLookup::Found)
    }

    /// Returns all resources whose objects can be listed, each group-resource once: in the listable version that the
    /// server prefers. Leaves out resources of group-versions that could not be read, and resources that are not served
    /// yet.
    pub fn listable(&self) -> impl Iterator<Item = &Resource> {
        let mut group_resources = HashSet::new();
        self.resources
            .iter()
            .filter(|resource| resource.origin == Origin::Served && resource.supports("list"))
            .filter(move |resource| {
                group_resources.insert((resource.group.as_str(), resource.plural.as_str()))
            })
    }

    /// Returns the group-versions that could not be read.
    pub fn failures(&self) -> &[FailedVersion] {
        &self.failures
    }

    /// Returns a copy with the resources that the `CustomResourceDefinition`s among these manifests will define, marked
    /// as not served yet. Ignores other manifests.
    ///
    /// Served resources stay as they are. A new version of a served kind gets the names and the scope of that kind,
    /// since the server does not let a definition change them. Nothing is added to a group with a version that could
    /// not be read: a kind that is not served yet counts as a kind without objects, but in such a group, it may have
    /// objects.
    #[must_use]
    pub fn with_custom_resources<'v>(&self, manifests: impl Iterator<Item = &'v Value>) -> Self {
        let mut resources = self.resources.clone();
        for new in manifests.flat_map(custom_resources::from_definition) {
            let is_failed = self.failures.iter().any(|failed| failed.group == new.group);
            if is_failed || resources.iter().any(|resource| is_same_gvk(resource, &new)) {
                continue;
            }
            resources.push(match self.find_preferred(&new.group_kind()) {
                KindLookup::Found(served) => Resource {
                    version: new.version,
                    origin: Origin::NotYetServed,
                    ..served.clone()
                },
                KindLookup::Absent | KindLookup::GroupFailed(_) => new,
            });
        }
        Self::from_parts(resources, self.failures.clone())
    }

    /// Returns all resources of the kind of this group, in any version, by preference.
    fn resources_of_kind_by_preference(&self, group: &str, kind: &str) -> impl Iterator<Item = &Resource> {
        self.of_kind(kind).filter(move |resource| resource.group == group)
    }

    /// Returns all resources of the kind, in any group and version, by preference.
    fn of_kind(&self, kind: &str) -> impl Iterator<Item = &Resource> {
        let start = self
            .kind_order
            .partition_point(|&position| self.resources[position].kind.as_str() < kind);
        self.kind_order[start..]
            .iter()
            .map(|&position| &self.resources[position])
            .take_while(move |resource| resource.kind == kind)
    }

    /// Returns the result of the lookup of a kind or resource of this group that discovery does not list.
    fn absent_unless_group_failed(&self, group: &str) -> KindLookup<'_> {
        self.failures
            .iter()
            .find(|failed| failed.group == group)
            .map_or(KindLookup::Absent, KindLookup::GroupFailed)
    }
}

fn is_same_gvk(one: &Resource, other: &Resource) -> bool {
    one.kind == other.kind && one.version == other.version && one.group == other.group
}

#[cfg(test)]
mod tests;
