//! `adopt --from`: finds the objects that another tool has in its inventory, and what people
//! have to do with that tool.
//!
//! What inventories look like is known to `inventory`.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::{Found, Search, find_labelled, find_named, missing_verb, served};
use crate::commands::opening::Cluster;
use crate::discovery::{Resource, Scope};
use crate::error::Error;
use crate::identity::ObjectKey;
use crate::inventory::{self, Inventory, LeftOut, Unusable};
use crate::observe::{self, Places, Selector};
use crate::options::InventoryReference;
use crate::wording::listed;

/// Finds what is in the inventory.
pub(super) async fn find(
    cluster: &Cluster,
    reference: &InventoryReference,
    concurrency: usize,
) -> Result<Found, Error> {
    let tool = reference.tool;
    let namespace = reference.namespace.as_deref().unwrap_or(&cluster.namespace);
    let (source, inventory) = read_inventory(cluster, reference, namespace).await?;
    let search = |selector| Search::Tracked(tool, Box::new(source.clone()), selector);
    let mut found = match inventory {
        Inventory::Objects(keys) => {
            let mut wanted = Vec::new();
            let mut warnings = Vec::new();
            for key in keys {
                match served(cluster, &key.group_kind)? {
                    Some(resource) if missing_verb(&resource).is_none() => {
                        wanted.push((placed(key, &resource, namespace), resource));
                    }
                    Some(_) => warnings.push(format!("{key} cannot be a member of a set, and is left out")),
                    None => warnings.push(format!("{key} is left out: the server has no such kind")),
                }
            }
            Found {
                warnings,
                ..find_named(cluster, wanted, search(None), concurrency).await?
            }
        }
        Inventory::Labelled { selector, kinds } => {
            let resources = match kinds {
                Some(kinds) => {
                    let mut resources = Vec::new();
                    for kind in &kinds {
                        resources.extend(served(cluster, kind)?);
                    }
                    resources
                }
                None => cluster.discovery.listable().cloned().map(Arc::new).collect(),
            };
            let resources = resources
                .into_iter()
                .filter(|resource| missing_verb(resource).is_none())
                .collect();
            {
                let search = search(Some(selector.clone()));
                find_labelled(cluster, resources, None, &selector, search, concurrency).await?
            }
        }
    };
    found.warnings.extend(tool.left_out(&source).iter().map(left_out));
    found.advice = Some(tool.advice(&source));
    Ok(found)
}

fn left_out(LeftOut { place, objects }: &LeftOut) -> String {
    if objects.is_empty() {
        return format!("{place}; if it made any objects, they are left out");
    }
    format!(
        "{place}, and only it has {}: left out, and to be adopted with -f if it is to stay",
        listed(objects)
    )
}

/// Inventories may leave out the namespace that the tool fills in.
fn placed(key: ObjectKey, resource: &Resource, namespace: &str) -> ObjectKey {
    ObjectKey {
        namespace: match resource.scope {
            Scope::Cluster => None,
            Scope::Namespaced => Some(key.namespace.unwrap_or_else(|| namespace.to_owned())),
        },
        ..key
    }
}

/// Reads the inventory from the first of its places where there is something.
async fn read_inventory(
    cluster: &Cluster,
    reference: &InventoryReference,
    namespace: &str,
) -> Result<(inventory::Found, Inventory), Error> {
    let InventoryReference { tool, name, .. } = reference;
    let unusable = |reason: &Unusable| Error::Usage {
        message: format!("the inventory {name} in namespace {namespace} cannot be adopted: {reason}"),
        hint: reason.hint().to_owned(),
    };
    for place in tool.places(name) {
        let kind = place.group_kind().clone();
        let Some(resource) = served(cluster, &kind)? else {
            continue;
        };
        let found = inventory::Found {
            name: name.clone(),
            namespace: namespace.to_owned(),
            kind,
            objects: look(cluster, &place, &resource, namespace).await?,
        };
        if !found.objects.is_empty() {
            let inventory = tool.read(&found).map_err(|error| unusable(&error))?;
            return Ok((found, inventory));
        }
    }
    let kinds = tool.places(name);
    let kinds: BTreeSet<String> = kinds.iter().map(|place| place.group_kind().to_string()).collect();
    let kinds: Vec<String> = kinds.into_iter().collect();
    let nowhere = format!("there is no {} of it", kinds.join(" and no "));
    Err(unusable(&Unusable::Unreadable(nowhere)))
}

async fn look(
    cluster: &Cluster,
    place: &inventory::Place,
    resource: &Arc<Resource>,
    namespace: &str,
) -> Result<Vec<Value>, Error> {
    match place {
        inventory::Place::Object(group_kind, name) => {
            let key = ObjectKey {
                group_kind: group_kind.clone(),
                namespace: Some(namespace.to_owned()),
                name: name.clone(),
            };
            let read = observe::object(&cluster.server, resource, &key).await;
            let read = read.map_err(|error| Error::Read {
                what: key.to_string(),
                error,
            })?;
            Ok(read.into_iter().collect())
        }
        inventory::Place::Labelled(_, labels) => {
            let places = Places {
                resources: vec![Arc::clone(resource)],
                namespaces: BTreeSet::from([namespace.to_owned()]),
            };
            let selector = Selector {
                labels: labels.clone(),
                accept: observe::WHOLE_OBJECTS,
            };
            let whole = |object: &Value, _: &Arc<Resource>| Some(object.clone());
            let listed = observe::members(&cluster.server, &places, &selector, 1, whole).await;
            listed.map_err(|(place, error)| Error::List { place, error })
        }
    }
}
