//! Exports the objects of a set as manifests, for `export` and for `apply --undo-out`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::compare::changes::CrdVersion;
use crate::compare::exported::{Exported, ExportedFields, export, export_before_deletion, export_live};
use crate::compare::ownership::needs_definition;
use crate::error::Error;
use crate::manifest::desired::DesiredObject;
use crate::model::identity::{GroupKind, GroupVersionKind, ObjectKey};
use crate::model::list_targets::ListTargets;
use crate::model::resource::Resource;
use crate::model::set::Set;
use crate::model::text::listed;
use crate::plan::{apply_order, autoscaler_kinds, data_of_volumes, read_scale_target};
use crate::read::{self, Cluster, Definitions, definitions_by_kind, whole_members, whole_objects};
use crate::report::ManifestText;

/// The set to export, and where its members are.
pub struct ExportSource<'a> {
    pub cluster: &'a Cluster,
    pub set: &'a Set,
    pub parent_resource: &'a Resource,
    /// The scope of members.
    pub places: &'a ListTargets,
    /// The field manager that has applied the members.
    pub field_manager: &'a str,
    /// The concurrency limit.
    pub concurrency: usize,
}

/// The changes that a run is about to make, for the undo file.
#[derive(Default)]
pub struct PlannedChanges<'a> {
    /// Objects that it takes in, as far as they exist.
    pub taken_in: BTreeSet<ObjectKey>,
    /// The objects that it applies.
    pub applied: &'a [DesiredObject],
    /// The objects that it deletes: the fields of all others go with them, and only this file could bring those back.
    pub deleted: BTreeSet<&'a ObjectKey>,
    /// The objects that it deletes and creates again if the server refuses their update.
    pub recreatable: BTreeSet<ObjectKey>,
}

/// Manifests, and what they lack, in sentences.
pub struct ExportedManifests {
    pub manifests: Vec<ManifestText>,
    /// Sentences about the objects that are left out, with the reasons.
    pub left_out: Vec<String>,
}

impl ExportSource<'_> {
    /// Returns the manifests of all members, in the order in which they are applied; with them the parent's, if it was
    /// among the manifests, and those of objects that a run is about to take in.
    ///
    /// # Errors
    ///
    /// Something could not be read, or the members have another field manager.
    pub async fn export(&self, run: &PlannedChanges<'_>) -> Result<ExportedManifests, Error> {
        let (cluster, manager) = (self.cluster, self.field_manager);
        let members = whole_members(cluster, self.set, self.places, manager, self.concurrency).await?;
        if let Some(live) = members.of_another_manager
            && run.taken_in.is_empty()
        {
            return Err(Error::usage(
                format!(
                    "no member was applied by the field manager {manager}: {} labeled {}",
                    listed(&live.part_of_writers),
                    live.key
                ),
                "pass --field-manager with the name that applied the set",
            ));
        }
        let taken_in = run.taken_in.iter().filter(|key| **key != self.set.parent);
        let others = whole_objects(cluster, taken_in.cloned(), manager, self.concurrency).await?;
        let definitions = self.definitions(&members.objects).await?;
        let applied: BTreeMap<&ObjectKey, &DesiredObject> =
            run.applied.iter().map(|object| (&object.key, object)).collect();
        let autoscalers = members
            .objects
            .iter()
            .filter(|(key, _)| autoscaler_kinds().contains(&key.group_kind));
        let scaled: BTreeSet<ObjectKey> = autoscalers
            .filter_map(|(key, object)| read_scale_target(&key.group_kind, object, key.namespace.as_deref()))
            .filter(|target| !run.deleted.contains(target))
            .collect();
        let only_labeled = &members.only_labeled;
        let exported = members.objects.iter().map(|(key, object)| {
            let desired = applied.get(key).map(|desired| desired.object.value());
            let definition = definitions.get(&key.group_kind);
            let api_version = object["apiVersion"].as_str().unwrap_or_default();
            let version = GroupVersionKind::from_api_version(api_version, "").version;
            let definition =
                definition.and_then(|definition| CrdVersion::from_definition(definition, &version));
            let mut found = if run.deleted.contains(key) || run.recreatable.contains(key) {
                export_before_deletion(object, manager, desired, definition)
            } else {
                export(object, manager, desired, definition)
            };
            if scaled.contains(key) {
                found.leave_replicas();
            }
            manifest_text(key, object, found, run)
        });
        // Whatever this set owns of them, they are as others have made them.
        let unowned = others
            .iter()
            .map(|(key, object)| manifest_text(key, object, export_live(object), run));
        let mut manifests: Vec<ManifestText> =
            exported.chain(unowned).chain(self.parent(run).await?).collect();
        manifests.sort_by(|one, other| apply_order(&one.key).cmp(&apply_order(&other.key)));
        let left_out = only_labeled.iter().map(|live| {
            let writers = listed(&live.part_of_writers);
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

    /// Reads the CRDs that show which fields of custom resources were applied. One that this user may not read does not
    /// count: then values are exported as they are.
    async fn definitions(&self, members: &[(ObjectKey, Value)]) -> Result<Definitions, Error> {
        let kinds: BTreeSet<&GroupKind> = members
            .iter()
            .filter(|(_, object)| needs_definition(object, self.field_manager))
            .map(|(key, _)| &key.group_kind)
            .collect();
        let mut resources: Vec<_> = self.places.resources.iter().collect();
        resources.retain(|resource| kinds.contains(&resource.group_kind()));
        let server = &self.cluster.server;
        definitions_by_kind(server, &resources, |_, definition| definition, self.concurrency).await
    }

    /// Returns the manifest of the parent, if one was applied or the run is going to apply one.
    async fn parent(&self, run: &PlannedChanges<'_>) -> Result<Option<ManifestText>, Error> {
        let key = &self.set.parent;
        let read = read::object(&self.cluster.server, self.parent_resource, key).await;
        let object = read.map_err(|error| error.while_reading(format_args!("the set's parent {key}")))?;
        let exported = object.map(|object| export(&object, self.field_manager, None, None));
        let found =
            exported.filter(|found| found.fields == ExportedFields::Applied || run.taken_in.contains(key));
        Ok(found.map(|found| ManifestText::new(key.clone(), found.manifest, Vec::new())))
    }
}

fn manifest_text(
    key: &ObjectKey,
    object: &Value,
    exported: Exported,
    run: &PlannedChanges<'_>,
) -> ManifestText {
    let comments = comments(key, object, &exported, run);
    ManifestText::new(key.clone(), exported.manifest, comments)
}

/// Returns what an apply of the manifest does not bring back.
fn comments(key: &ObjectKey, object: &Value, exported: &Exported, run: &PlannedChanges<'_>) -> Vec<String> {
    let data = data_of_volumes(&key.group_kind, object).map(|data| format!("Not in this manifest: {data}."));
    let origin = match exported.fields {
        _ if run.taken_in.contains(key) => Some(
            "This object was not in the set before the run. Applying this manifest restores its fields, and the object \
             stays in the set.",
        ),
        _ if run.deleted.contains(key) => {
            Some("The run was to delete this object, so these are the fields of all field managers.")
        }
        _ if run.recreatable.contains(key) => Some(
            "The run was to recreate this object if necessary, so these are the fields of all field managers.",
        ),
        ExportedFields::Live => {
            Some("The set has taken this object in, but never applied it: these are its live fields.")
        }
        ExportedFields::Applied => None,
    };
    origin.map(str::to_owned).into_iter().chain(data).collect()
}
