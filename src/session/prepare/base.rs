//! The manifests of `diff --base`: those that a pull request starts from.

use std::collections::{BTreeMap, HashMap};

use tokio::task::spawn_blocking;

use crate::compare::changes::Verdict;
use crate::error::Error;
use crate::manifest::desired::{self, Desired, DesiredObject};
use crate::manifest::{self, Manifest, Manifests, Recursion, Source};
use crate::model::identity::ObjectKey;
use crate::plan::Observed;
use crate::read::{Cluster, NamedSet};
use crate::session::connect::unwrap_joined;

/// What has become of the manifest of an object since the base.
#[derive(Debug, PartialEq)]
pub enum ManifestChange {
    /// Both have the same manifest.
    Equal,
    /// Both have a manifest, and these differ. The object is that of the base.
    Changed(Box<DesiredObject>),
    /// Only the new manifests have the object.
    New,
    /// Only the base has the object.
    Removed(Box<DesiredObject>),
    /// The object has no manifest in both.
    Neither,
}

/// The objects of the base, compared with the desired objects.
pub struct Base(BTreeMap<ObjectKey, ManifestChange>);

impl Base {
    /// Compares the members and the parent, once the fields that both leave to autoscalers are known. A parent that only
    /// the base has stays as it is, so it counts as an object without a manifest.
    pub fn new(desired: &Desired, base: Desired) -> Self {
        let parent = base.parent.filter(|_| desired.parent.is_some());
        let old_objects = base.members.into_iter().chain(parent);
        let mut old_objects: HashMap<ObjectKey, Box<DesiredObject>> =
            old_objects.map(|old| (old.key.clone(), Box::new(old))).collect();
        let mut changes = BTreeMap::new();
        for new in desired.members.iter().chain(&desired.parent) {
            let change = match old_objects.remove(&new.key) {
                None => ManifestChange::New,
                Some(old) if old.ignored == new.ignored && have_same_content(&old, new) => {
                    ManifestChange::Equal
                }
                Some(old) => ManifestChange::Changed(old),
            };
            changes.insert(new.key.clone(), change);
        }
        let removed = old_objects.into_iter();
        changes.extend(removed.map(|(key, old)| (key, ManifestChange::Removed(old))));
        Self(changes)
    }

    /// Returns what has become of the manifest of this object.
    pub fn change_of(&self, key: &ObjectKey) -> &ManifestChange {
        self.0.get(key).unwrap_or(&ManifestChange::Neither)
    }

    /// Returns the objects that only the base has.
    pub fn removed(&self) -> impl Iterator<Item = &DesiredObject> {
        self.0.values().filter_map(|change| match change {
            ManifestChange::Removed(old) => Some(&**old),
            _ => None,
        })
    }

    /// Makes the plan send the members whose manifests have changed, also those that the cluster has already: the dry
    /// run shows what they are.
    pub(super) fn mark_as_changed(&self, desired: &Desired, observed: &mut Observed) {
        observed.comparisons.retain(|index, verdict| {
            let change = self.change_of(&desired.members[*index].key);
            *verdict != Verdict::Unchanged || !matches!(change, ManifestChange::Changed(_))
        });
    }
}

/// Returns whether both are equal as they are sent, in whatever order their fields are written. An object that is nested
/// too deeply to be parsed is compared by its text.
fn have_same_content(one: &DesiredObject, other: &DesiredObject) -> bool {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::object::Object;
    use crate::model::pointer::Pointer;
    use crate::plan::fixtures;

    fn object(name: &str, value: &str) -> DesiredObject {
        DesiredObject {
            object: Object::from(&json!({"metadata": {}, "data": value})),
            ..fixtures::desired("ConfigMap", Some("shop"), name)
        }
    }

    fn left_to_autoscaler(object: DesiredObject) -> DesiredObject {
        DesiredObject {
            ignored: vec![Pointer::from_segments(["spec", "replicas"].map(str::to_owned))],
            ..object
        }
    }

    fn desired(members: Vec<DesiredObject>, parent: Option<DesiredObject>) -> Desired {
        Desired {
            members,
            parent,
            ..Desired::default()
        }
    }

    #[test]
    fn each_object_has_one_change() {
        let of = |name: &str| object(name, "1");
        let new = desired(
            vec![
                of("equal"),
                object("changed", "2"),
                of("new"),
                of("scaled"),
                left_to_autoscaler(of("both-scaled")),
            ],
            Some(object("parent", "2")),
        );
        let base = desired(
            vec![
                of("equal"),
                of("changed"),
                of("removed"),
                left_to_autoscaler(of("scaled")),
                left_to_autoscaler(of("both-scaled")),
            ],
            Some(of("parent")),
        );
        let base = Base::new(&new, base);
        let table = [
            ("equal", ManifestChange::Equal),
            ("changed", ManifestChange::Changed(Box::new(of("changed")))),
            ("new", ManifestChange::New),
            ("removed", ManifestChange::Removed(Box::new(of("removed")))),
            (
                "scaled",
                ManifestChange::Changed(Box::new(left_to_autoscaler(of("scaled")))),
            ),
            ("both-scaled", ManifestChange::Equal),
            ("parent", ManifestChange::Changed(Box::new(of("parent")))),
            ("other", ManifestChange::Neither),
        ];
        for (name, expected) in table {
            assert_eq!(*base.change_of(&of(name).key), expected, "{name}");
        }
        let removed: Vec<&str> = base.removed().map(|object| object.key.name.as_str()).collect();
        assert_eq!(removed, ["removed"]);
    }

    #[test]
    fn a_parent_is_compared_only_if_it_still_has_a_manifest() {
        let parent = object("parent", "1");
        let with = || desired(Vec::new(), Some(parent.clone()));
        let table = [
            (with(), with(), ManifestChange::Equal),
            (with(), Desired::default(), ManifestChange::New),
            (Desired::default(), with(), ManifestChange::Neither),
        ];
        for (new, base, expected) in table {
            assert_eq!(*Base::new(&new, base).change_of(&parent.key), expected);
        }
    }
}
