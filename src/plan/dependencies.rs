//! What a plan knows about dependencies (`config.kubernetes.io/depends-on`), of manifests and of live objects.
//! `apply_steps` and `prune_waves` order objects by them.

use std::collections::{BTreeMap, BTreeSet};

use crate::manifest::desired::Desired;
use crate::model::depends_on::{DEPENDS_ON, Dependencies};
use crate::model::identity::ObjectKey;
use crate::model::live::Live;

/// Objects that the manifests depend on, as they were read before the run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnownDependencies {
    /// The dependencies that were Current when they were read.
    pub current: BTreeSet<ObjectKey>,
    /// The dependencies that are not among the manifests.
    pub outside: BTreeMap<ObjectKey, Live>,
}

/// The dependencies between objects that a run respects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DependencyEdges {
    /// The objects that the manifests depend on.
    pub known: KnownDependencies,
    /// Key: an object to prune. Value: its dependents, which have to be gone before it is deleted.
    pub prune_after: BTreeMap<ObjectKey, Vec<Live>>,
    /// Key: an object that the annotation of a live member names as a dependency. Value: one such member.
    pub needed: BTreeMap<ObjectKey, ObjectKey>,
    /// Warnings about dependencies of live objects that are ignored, each with the reason.
    pub ignored: Vec<String>,
}

/// Returns the dependencies of live objects, each with one object that depends on it.
pub(super) fn find_live_dependencies<'l>(
    objects: impl Iterator<Item = &'l Live>,
) -> BTreeMap<ObjectKey, ObjectKey> {
    objects
        .flat_map(|live| {
            let dependencies = live.dependencies.objects.iter();
            dependencies.map(|key| (key.clone(), live.key.clone()))
        })
        .collect()
}

/// Returns the dependencies that manifests name, each with a desired object that depends on it.
pub(super) fn find_manifest_dependencies(desired: &Desired) -> BTreeMap<ObjectKey, ObjectKey> {
    let members = desired.members.iter();
    members
        .flat_map(|member| {
            let depends_on = member.depends_on.iter();
            depends_on.map(|key| (key.clone(), member.key.clone()))
        })
        .collect()
}

/// Returns the warnings about dependencies of a live object that are ignored: a reference that cannot be parsed, and a
/// dependency on itself.
pub(super) fn ignored_dependency_warnings(live: &Live) -> Vec<String> {
    let Dependencies {
        objects,
        first_malformed,
    } = &live.dependencies;
    let mut warnings = Vec::new();
    if let Some(fault) = first_malformed {
        warnings.push(format!(
            "{}: annotation {DEPENDS_ON}: {fault}, and is ignored",
            live.key
        ));
    }
    for key in objects.iter().filter(|key| **key == live.key) {
        warnings.push(format!(
            "{key}: annotation {DEPENDS_ON}: the dependency on itself is ignored"
        ));
    }
    warnings
}
