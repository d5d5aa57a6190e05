//! The manifests of `diff --base`: those that a pull request starts from.

use std::collections::{HashMap, HashSet};

use tokio::task::spawn_blocking;

use crate::compare::changes::Verdict;
use crate::error::Error;
use crate::manifest::desired::{self, Desired, DesiredObject};
use crate::manifest::{self, Manifest, Manifests, Recursion, Source};
use crate::model::identity::ObjectKey;
use crate::plan::Observed;
use crate::read::{Cluster, NamedSet};
use crate::session::connect::unwrap_joined;

/// The objects of the base, compared with the desired objects.
pub struct Base {
    /// The objects whose manifests are equal.
    equal: HashSet<ObjectKey>,
    /// The objects that have another manifest now, or none.
    pub different: Desired,
}

impl Base {
    pub(super) fn new(desired: &Desired, mut base: Desired) -> Self {
        let desired_objects = desired.members.iter().chain(&desired.parent);
        let by_key: HashMap<&ObjectKey, &DesiredObject> =
            desired_objects.map(|object| (&object.key, object)).collect();
        let base_objects = base.members.iter().chain(&base.parent);
        let equal: HashSet<ObjectKey> = base_objects
            .filter(|object| {
                by_key
                    .get(&object.key)
                    .is_some_and(|new| has_same_content(new, object))
            })
            .map(|object| object.key.clone())
            .collect();
        base.members.retain(|object| !equal.contains(&object.key));
        Self {
            equal,
            different: base,
        }
    }

    /// Returns whether the object has the same manifest in both.
    pub fn is_equal(&self, key: &ObjectKey) -> bool {
        self.equal.contains(key)
    }

    /// Returns whether the manifest of the parent is new, or has changed.
    pub fn changes_parent(&self, desired: &Desired) -> bool {
        let parent = desired.parent.as_ref();
        parent.is_some_and(|parent| !self.is_equal(&parent.key))
    }

    /// Makes the plan send the members that differ from the base, also those that the cluster has already: the dry run
    /// shows what they are.
    pub(super) fn mark_as_changed(&self, desired: &Desired, observed: &mut Observed) {
        observed.comparisons.retain(|index, verdict| {
            *verdict != Verdict::Unchanged || self.is_equal(&desired.members[*index].key)
        });
    }
}

/// Returns whether both are equal as they are sent, in whatever order their fields are written. An object that is nested
/// too deeply to be parsed is compared by its text.
fn has_same_content(one: &DesiredObject, other: &DesiredObject) -> bool {
    if one.object == other.object {
        return true;
    }
    let parsed = one.object.value();
    !parsed.is_null() && parsed == other.object.value()
}

/// Reads the base, and resolves it as if the CRDs of the base were in the cluster. They are not added to the discovery
/// that the plan is made with.
pub(super) async fn read(
    sources: Vec<Source>,
    recursion: Recursion,
    divide: impl FnOnce(Vec<Manifest>) -> Manifests,
    cluster: &mut Cluster,
    named: &NamedSet,
) -> Result<Desired, Error> {
    let reading = spawn_blocking(move || manifest::read(&sources, recursion)).await;
    let manifests = unwrap_joined(reading).map_err(|errors| name_base(errors.into()))?;
    let manifests = divide(manifests);
    let discovery = cluster.discovery.clone();
    cluster
        .complete_discovery_for_manifests(&manifests.applied)
        .await?;
    let resolved = desired::resolve(manifests, named.context_for_manifests(cluster));
    cluster.discovery = discovery;
    resolved.map_err(name_base)
}

/// Says that an error is about the base: its files may have the same names as those of `-f`.
fn name_base(mut error: Error) -> Error {
    for message in &mut error.messages {
        message.text.insert_str(0, "--base: ");
    }
    error
}
