//! `adopt --from`: finds the objects in the inventory of another tool. `import` has the formats of inventories.
//!
//! A user who may write the inventory could list any object in it. The inventory is therefore trusted for objects in
//! one namespace, and the user has to confirm objects outside of it.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::sync::Arc;

use serde_json::Value;

use super::FoundObjects;
use super::find::{find_labeled, find_missing_verb, find_served, read_named_or_skip};
use super::object_selection::{InventorySelection, ObjectSelection};
use crate::compare::ownership::LastAppliedTreatment;
use crate::error::Error;
use crate::execute;
use crate::import::{self, Inventory, InventoryError, Tool};
use crate::model::applyset::parent::RecordedKinds;
use crate::model::identity::{GroupKind, ObjectKey};
use crate::model::resource::{Resource, Scope};
use crate::model::set::Set;
use crate::model::write_settings::DryRun;
use crate::plan::{self, Consent, MembershipPlan, Refusal};
use crate::read::{self, Cluster, ListTargets, Selector};
use crate::session::command_run::CommandRun;
use crate::settings::{AdoptOptions, InventoryReference, ObjectsToAdopt};

/// Finds the objects of the inventory.
///
/// If the server does not list a kind of the inventory, this waits until it does, or until it is proved that the kind
/// is gone (`await_or_judge_inventory_kinds`): the user may delete the inventory after the run, and objects of that
/// kind would be lost.
pub(super) async fn find_tracked(
    cluster: &mut Cluster,
    reference: &InventoryReference,
    new_owner: Option<(String, LastAppliedTreatment)>,
    concurrency: usize,
) -> Result<FoundObjects, Error> {
    let tool = reference.tool;
    let namespace = reference.namespace.as_ref().unwrap_or(&cluster.namespace).clone();
    let (source, inventory) = read_inventory(cluster, reference, &namespace).await?;
    await_or_judge_inventory_kinds(cluster, &inventory).await?;
    let cluster = &*cluster;
    let selection = ObjectSelection::Tracked(Box::new(InventorySelection {
        tool,
        inventory: source.clone(),
        new_owner,
    }));
    let mut found = match inventory {
        Inventory::Objects(keys) => {
            let mut wanted = Vec::new();
            let mut warnings = Vec::new();
            for key in keys {
                match find_served(cluster, &key.group_kind)? {
                    Some(resource) if find_missing_verb(&resource).is_none() => {
                        wanted.push((fill_in_object_namespace(key, &resource, &namespace), resource));
                    }
                    Some(_) => warnings.push(format!("{key}: ignored: it cannot be in a set")),
                    None => warnings.push(warning_of_ignored(&key)),
                }
            }
            FoundObjects {
                warnings,
                ..read_named_or_skip(cluster, wanted, selection, concurrency).await?
            }
        }
        Inventory::Selector { selector, kinds } => {
            let mut warnings = Vec::new();
            let mut resources: Vec<_> = match kinds {
                Some(kinds) => {
                    let mut resources = Vec::new();
                    for kind in &kinds {
                        match find_served(cluster, kind)? {
                            Some(resource) => resources.push(resource),
                            None => warnings.push(warning_of_ignored(kind)),
                        }
                    }
                    resources
                }
                None => cluster.discovery.listable().cloned().map(Arc::new).collect(),
            };
            resources.retain(|resource| find_missing_verb(resource).is_none());
            FoundObjects {
                warnings,
                ..find_labeled(cluster, resources, None, &selector, selection, concurrency).await?
            }
        }
    };
    found.advice = Some(tool.describe_how_to_stop(&source));
    Ok(found)
}

/// Determines the state of the kinds of an inventory that discovery does not list.
async fn await_or_judge_inventory_kinds(cluster: &mut Cluster, inventory: &Inventory) -> Result<(), Error> {
    let kinds: BTreeSet<GroupKind> = match inventory {
        Inventory::Objects(keys) => keys.iter().map(|key| key.group_kind.clone()).collect(),
        Inventory::Selector { kinds, .. } => kinds.iter().flatten().cloned().collect(),
    };
    cluster
        .await_or_judge_recorded_kinds(&[&RecordedKinds::GroupKinds(kinds)])
        .await
}

/// Returns the warning that an object or kind of an inventory is ignored.
fn warning_of_ignored(ignored: &dyn Display) -> String {
    format!("{ignored}: ignored: the server does not serve this kind")
}

/// Adds a refusal to the plan if it adopts nothing of the inventory, or if it adopts objects outside of the namespace
/// that the inventory is trusted for. The user may confirm the latter. A dry run only warns that a real run would ask.
pub(super) fn add_inventory_refusal(
    run: &mut CommandRun,
    options: &AdoptOptions,
    selection: &ObjectSelection,
    set: &Set,
    plan: &mut MembershipPlan,
) {
    let (ObjectsToAdopt::Inventory(reference), ObjectSelection::Tracked(tracked)) =
        (&options.choice, selection)
    else {
        return;
    };
    let parent_namespace = set.parent.namespace.as_deref();
    let trusted_namespace = tracked
        .tool
        .namespace_adopted_without_confirmation(&tracked.inventory.namespace, parent_namespace);
    let Some(refusal) =
        plan::refuse_empty_or_unconfirmed_adoption(plan, &reference.to_string(), trusted_namespace)
    else {
        return;
    };
    let is_dry = options.membership.writing.dry_run != DryRun::None;
    match refusal {
        Refusal::ReachesOutside { .. } if is_dry => {
            if options.membership.consent == Consent::Missing {
                run.report_new_warnings(&[format!("adopt would ask for confirmation: {refusal}")]);
            }
        }
        refusal => {
            // Otherwise the user would not see why no object of the inventory is adopted.
            if matches!(refusal, Refusal::NothingToAdopt { .. }) {
                let reporter = &mut run.reporter;
                execute::report_unwritten_objects(plan, &mut |event| reporter.take_event(event));
            }
            plan.refusals.push(refusal);
        }
    }
}

/// Gives an object the namespace of the inventory, if the inventory names none for it; removes the namespace of a
/// cluster-scoped object.
fn fill_in_object_namespace(key: ObjectKey, resource: &Resource, inventory_namespace: &str) -> ObjectKey {
    ObjectKey {
        namespace: match resource.scope {
            Scope::Cluster => None,
            Scope::Namespaced => Some(key.namespace.unwrap_or_else(|| inventory_namespace.to_owned())),
        },
        ..key
    }
}

/// Reads the inventory from the first of the places in which the tool may keep it.
async fn read_inventory(
    cluster: &Cluster,
    reference: &InventoryReference,
    namespace: &str,
) -> Result<(import::FoundInventory, Inventory), Error> {
    let InventoryReference { tool, name, .. } = reference;
    let unusable = |reason: &InventoryError| {
        Error::usage(
            format!("inventory {name} in namespace {namespace}: cannot be adopted: {reason}"),
            reason.hint().to_owned(),
        )
    };
    for place in tool.list_places_of_inventory(name) {
        let kind = place.group_kind().clone();
        let Some(resource) = find_served(cluster, &kind)? else {
            continue;
        };
        if let Some(object) = read_place(cluster, *tool, &place, &resource, namespace).await? {
            let found = import::FoundInventory {
                name: name.clone(),
                namespace: namespace.to_owned(),
                kind,
                object,
            };
            let inventory = tool.read(&found).map_err(|error| unusable(&error))?;
            return Ok((found, inventory));
        }
    }
    let places = tool.list_places_of_inventory(name);
    let kinds: BTreeSet<String> = places
        .iter()
        .map(|place| place.group_kind().to_string())
        .collect();
    let not_found = format!("there is no {}", Vec::from_iter(kinds).join(" and no "));
    Err(unusable(&InventoryError::MissingOrUnreadable(not_found)))
}

/// Reads the object that holds the inventory from one of the places in which the tool may keep it.
async fn read_place(
    cluster: &Cluster,
    tool: Tool,
    place: &import::InventoryPlace,
    resource: &Arc<Resource>,
    namespace: &str,
) -> Result<Option<Value>, Error> {
    match place {
        import::InventoryPlace::Named { group_kind, name } => {
            read_whole(cluster, resource, group_kind, name, namespace).await
        }
        import::InventoryPlace::Selected { group_kind, selector } => {
            // Only metadata is listed, since there may be many large objects, such as the revisions of a Helm release.
            let targets = ListTargets {
                resources: vec![Arc::clone(resource)],
                namespaces: BTreeSet::from([namespace.to_owned()]),
            };
            let selector = Selector {
                labels: selector.clone(),
                accept: read::METADATA_LIST,
            };
            let listed = read::list_collections(&cluster.server, &targets, &selector, 1, |object, _| {
                Some(object.clone())
            })
            .await?;
            let selected = tool.select_inventory(listed);
            let name = selected
                .as_ref()
                .and_then(|object| object["metadata"]["name"].as_str());
            match name {
                Some(name) => read_whole(cluster, resource, group_kind, name, namespace).await,
                None => Ok(None),
            }
        }
    }
}

/// Reads one object; `None` if it does not exist.
async fn read_whole(
    cluster: &Cluster,
    resource: &Resource,
    group_kind: &GroupKind,
    name: &str,
    namespace: &str,
) -> Result<Option<Value>, Error> {
    let key = ObjectKey {
        group_kind: group_kind.clone(),
        namespace: Some(namespace.to_owned()),
        name: name.to_owned(),
    };
    read::read_object(&cluster.server, resource, &key)
        .await
        .map_err(|error| error.to_error_while_reading(&key))
}
