//! Exports the objects of a set as manifests, for `export` and for `apply --undo-out`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::compare::changes::CrdVersion;
use crate::compare::manifest_from_live_object::{
    Exported, ExportedFields, export, export_before_deletion, export_live,
};
use crate::compare::ownership::{ReplicasPath, needs_definition_for_owned_fields};
use crate::error::Error;
use crate::manifest::desired::DesiredObject;
use crate::model::built_in_kinds::is_built_in;
use crate::model::identity::{GroupKind, GroupVersionKind, ObjectKey};
use crate::model::list_targets::ListTargets;
use crate::model::resource::Resource;
use crate::model::set::Set;
use crate::model::text::first_names_and_more;
use crate::plan::{apply_sort_key, autoscalers, describe_lost_volume_data, read_scale_target};
use crate::read::{self, Cluster, Definitions, list_whole_members, read_crds_by_kind, read_whole_objects};
use crate::report::ManifestText;

/// The set to export, and where its members are.
pub struct ExportSource<'a> {
    pub cluster: &'a Cluster,
    pub set: &'a Set,
    pub parent_resource: &'a Resource,
    /// The collections that are listed for members.
    pub places: &'a ListTargets,
    /// The field manager that has applied the members.
    pub field_manager: &'a str,
    /// The concurrency limit.
    pub concurrency: usize,
}

/// The changes that a run is about to make, for the undo file; empty for `export`, which changes nothing.
#[derive(Default)]
pub struct PlannedChanges<'a> {
    /// The existing objects that the run takes into the set.
    pub taken_in: BTreeSet<ObjectKey>,
    /// The objects that the run applies.
    pub applied: &'a [DesiredObject],
    /// The objects that the run deletes. The fields of other field managers are deleted with them, so the undo file has
    /// these fields too.
    pub deleted: BTreeSet<&'a ObjectKey>,
    /// The objects that the run deletes and creates again if the server refuses their update.
    pub recreatable: BTreeSet<ObjectKey>,
}

/// Manifests, and the objects without one.
pub struct ExportedManifests {
    pub manifests: Vec<ManifestText>,
    /// Sentences about the objects that are left out, with the reasons.
    pub left_out: Vec<String>,
}

impl ExportSource<'_> {
    /// Returns the manifests of all members, of the objects that a run is about to take in, and of the parent if it was
    /// applied from a manifest; in the order in which they are applied.
    ///
    /// # Errors
    ///
    /// An object could not be read. Or the set has members, the field manager has labeled none of them, and the run
    /// takes no objects in, so that there are no other manifests that are worth writing.
    pub async fn export(&self, run: &PlannedChanges<'_>) -> Result<ExportedManifests, Error> {
        let (cluster, manager) = (self.cluster, self.field_manager);
        let members = list_whole_members(cluster, self.set, self.places, manager, self.concurrency).await?;
        if let Some(live) = members.of_another_manager
            && run.taken_in.is_empty()
        {
            return Err(Error::usage(
                format!(
                    "no member was applied by the field manager {manager}: {} labeled {}",
                    first_names_and_more(&live.part_of_writers),
                    live.key
                ),
                "pass --field-manager with the name that applied the set",
            ));
        }
        let taken_in = run.taken_in.iter().filter(|key| **key != self.set.parent);
        let others = read_whole_objects(cluster, taken_in.cloned(), manager, self.concurrency).await?;
        let exported_objects = || members.objects.iter().chain(&others);
        let autoscalers = exported_objects().filter(|(key, _)| autoscalers().contains(&key.group_kind));
        // The objects that an autoscaler among them scales. If the run deletes such an object, nothing keeps its number
        // of replicas, so it is exported.
        let scaled: BTreeSet<ObjectKey> = autoscalers
            .filter_map(|(key, object)| read_scale_target(&key.group_kind, object, key.namespace.as_deref()))
            .filter(|target| !run.deleted.contains(target))
            .collect();
        let definitions = self.read_definitions(exported_objects(), &scaled).await?;
        let applied: BTreeMap<&ObjectKey, &DesiredObject> =
            run.applied.iter().map(|object| (&object.key, object)).collect();
        let only_labeled = &members.only_labeled;
        let of_members = members.objects.iter().map(|(key, object)| {
            let desired = applied.get(key).map(|desired| desired.object.value());
            let definition = definitions
                .get(&key.group_kind)
                .and_then(|crd| CrdVersion::from_definition(crd, &version_of(object)));
            let exported = if run.deleted.contains(key) || run.recreatable.contains(key) {
                export_before_deletion(object, manager, desired, definition)
            } else {
                export(object, manager, desired, definition)
            };
            (key, object, exported)
        });
        // Objects to be taken in are exported with all fields, even those that this set's field manager owns already:
        // they were made by others.
        let of_others = others
            .iter()
            .map(|(key, object)| (key, object, export_live(object)));
        let of_all = of_members.chain(of_others).map(|(key, object, mut exported)| {
            if scaled.contains(key) {
                let crd = definitions.get(&key.group_kind);
                exported.leave_out_replicas(&ReplicasPath::from_definition(crd, &version_of(object)));
            }
            to_manifest_text(key, object, exported, run)
        });
        let mut manifests: Vec<ManifestText> =
            of_all.chain(self.export_parent_if_needed(run).await?).collect();
        manifests.sort_by(|one, other| apply_sort_key(&one.key).cmp(&apply_sort_key(&other.key)));
        let left_out = only_labeled.iter().map(|live| {
            let writers = match &live.part_of_writers[..] {
                [] => "no known field manager".to_owned(),
                writers => first_names_and_more(writers),
            };
            format!(
                "Not exported: {}, whose label was written by {writers}.",
                live.key
            )
        });
        Ok(ExportedManifests {
            manifests,
            left_out: left_out.collect(),
        })
    }

    /// Reads the CRDs that show which fields of custom resources were applied, and where those of the `scaled` objects
    /// have the number of replicas. If the user may not read a CRD, the values of its objects are exported as they are,
    /// and `spec.replicas` counts as the number.
    async fn read_definitions<'o>(
        &self,
        objects: impl Iterator<Item = &'o (ObjectKey, Value)>,
        scaled: &BTreeSet<ObjectKey>,
    ) -> Result<Definitions, Error> {
        let kinds: BTreeSet<&GroupKind> = objects
            .filter(|(key, object)| {
                needs_definition_for_owned_fields(object, self.field_manager) || scaled.contains(key)
            })
            .map(|(key, _)| &key.group_kind)
            .collect();
        let mut resources: Vec<_> = self.places.resources.iter().collect();
        resources.retain(|resource| {
            kinds.contains(&resource.group_kind()) && !is_built_in(&resource.api_version(), &resource.kind)
        });
        let server = &self.cluster.server;
        read_crds_by_kind(server, &resources, self.concurrency).await
    }

    /// Returns the manifest of the parent, if the parent was applied from a manifest or the run is going to take it in;
    /// `None` otherwise, because the next run creates such a parent itself.
    async fn export_parent_if_needed(&self, run: &PlannedChanges<'_>) -> Result<Option<ManifestText>, Error> {
        let key = &self.set.parent;
        let object = read::read_object(&self.cluster.server, self.parent_resource, key)
            .await
            .map_err(|error| error.to_error_while_reading(format_args!("the set's parent {key}")))?;
        let exported = object.map(|object| export(&object, self.field_manager, None, None));
        let needed = exported
            .filter(|exported| exported.fields == ExportedFields::Applied || run.taken_in.contains(key));
        Ok(needed.map(|exported| ManifestText::new(key.clone(), exported.manifest, Vec::new())))
    }
}

/// Returns the version in which an object was read.
fn version_of(object: &Value) -> String {
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    GroupVersionKind::from_api_version(api_version, "").version
}

fn to_manifest_text(
    key: &ObjectKey,
    object: &Value,
    exported: Exported,
    run: &PlannedChanges<'_>,
) -> ManifestText {
    let comments = list_manifest_comments(key, object, &exported, run);
    ManifestText::new(key.clone(), exported.manifest, comments)
}

/// Returns the comments above a manifest: where its fields come from if the set has not applied them, and the data that
/// an apply of the manifest does not restore.
fn list_manifest_comments(
    key: &ObjectKey,
    object: &Value,
    exported: &Exported,
    run: &PlannedChanges<'_>,
) -> Vec<String> {
    let data = describe_lost_volume_data(&key.group_kind, object)
        .map(|data| format!("Not in this manifest: {data}."));
    let origin = match exported.fields {
        _ if run.taken_in.contains(key) => Some(
            "This object was not in the set before the run. Applying this manifest restores its fields, and the object \
             stays in the set.",
        ),
        ExportedFields::Live => {
            Some("The set has taken this object in, but never applied it: these are its live fields.")
        }
        ExportedFields::Applied => None,
    };
    origin.map(str::to_owned).into_iter().chain(data).collect()
}
