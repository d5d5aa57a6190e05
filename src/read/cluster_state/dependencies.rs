//! Finds the objects that the manifests depend on and do not contain.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

use super::ReadSettings;
use crate::cluster::discovery::KindLookup;
use crate::compare::status::{OthersOfKind, State, Surroundings};
use crate::error::{Error, ErrorKind};
use crate::manifest::desired::Desired;
use crate::model::identity::ObjectKey;
use crate::model::live::Live;
use crate::model::message::Message;
use crate::model::resource::{Origin, Resource, Scope};
use crate::plan::KnownDependencies;
use crate::read::error::unknowable_kind;
use crate::read::{Cluster, read_object};

/// Finds the objects that the manifests depend on and do not contain. Members of the set were listed before, and
/// `current` names those that are Current; all other objects are read one by one.
///
/// # Errors
///
/// Some of these objects do not exist.
pub(super) async fn find_dependencies_outside_manifests(
    cluster: &Cluster,
    desired: &Desired,
    members: &[Live],
    current: BTreeSet<ObjectKey>,
    settings: ReadSettings<'_>,
) -> Result<KnownDependencies, Error> {
    let mut known = KnownDependencies {
        current,
        outside: BTreeMap::new(),
    };
    let named = desired.members.iter().flat_map(|member| &member.depends_on);
    let mut outside: BTreeSet<&ObjectKey> = named.collect();
    for member in &desired.members {
        if outside.is_empty() {
            break;
        }
        outside.remove(&member.key);
    }
    if outside.is_empty() {
        return Ok(known);
    }
    let members: HashMap<&ObjectKey, &Live> = members.iter().map(|live| (&live.key, live)).collect();
    let mut unread = Vec::new();
    let mut missing = BTreeSet::new();
    for key in outside {
        if let Some(live) = members.get(key) {
            known.outside.insert(key.clone(), (*live).clone());
            continue;
        }
        match cluster.discovery.find_preferred(&key.group_kind) {
            KindLookup::Found(resource)
                if resource.origin == Origin::Served && has_scope_of(key, resource) =>
            {
                unread.push((key, Arc::new(resource.clone())));
            }
            KindLookup::Found(_) | KindLookup::Absent => {
                missing.insert(key);
            }
            KindLookup::GroupFailed(failure) => {
                return Err(unknowable_kind(&key.group_kind.to_string(), failure));
            }
        }
    }
    for (key, found) in read_whether_current(cluster, unread, settings).await? {
        let Some((live, is_current)) = found else {
            missing.insert(key);
            continue;
        };
        known.outside.insert(key.clone(), live);
        if is_current {
            known.current.insert(key.clone());
        }
    }
    if missing.is_empty() {
        Ok(known)
    } else {
        Err(missing_dependencies_error(desired, &missing))
    }
}

/// Reads objects, and returns each with whether it is Current; `None` for one that does not exist.
async fn read_whether_current<'k>(
    cluster: &Cluster,
    unread: Vec<(&'k ObjectKey, Arc<Resource>)>,
    settings: ReadSettings<'_>,
) -> Result<Vec<(&'k ObjectKey, Option<(Live, bool)>)>, Error> {
    let reads = unread.into_iter().map(async |(key, resource)| {
        let object = read_object(&cluster.server, &resource, key)
            .await
            .map_err(|error| error.to_error_while_reading(key))?;
        let now = cluster.server.now();
        // The wait for this object reads it alone, too. So neither takes into account whether others of its kind
        // report.
        let found = object.and_then(|object| {
            let is_current = is_current(&object, &resource, OthersOfKind::Silent, now, settings);
            Some((Live::from_object(&object, &resource)?, is_current))
        });
        Ok((key, found))
    });
    stream::iter(reads)
        .buffer_unordered(settings.concurrency)
        .try_collect()
        .await
}

/// Returns whether an object is Current. False if the command has no status rules, since it waits for nothing.
pub(super) fn is_current(
    object: &Value,
    resource: &Resource,
    others: OthersOfKind,
    now: Timestamp,
    settings: ReadSettings<'_>,
) -> bool {
    let around = Surroundings {
        others,
        subresource: resource.status,
        now,
    };
    settings
        .status
        .is_some_and(|rules| rules.judge(object, &resource.group_kind(), around).state == State::Current)
}

/// Returns whether the key fits the scope of the resource: it has a namespace if the resource is namespaced, and none
/// if it is cluster-scoped.
fn has_scope_of(key: &ObjectKey, resource: &Resource) -> bool {
    key.namespace.is_some() == (resource.scope == Scope::Namespaced)
}

/// The error about missing objects, with the places in the manifests that name them.
fn missing_dependencies_error(desired: &Desired, missing: &BTreeSet<&ObjectKey>) -> Error {
    let messages = desired.members.iter().flat_map(|member| {
        let named = member.depends_on.iter().filter(|key| missing.contains(key));
        named.map(|dependency| {
            Message::new(format!(
                "{}: {}: depends on {dependency}, which is neither live nor among the manifests",
                member.position, member.key
            ))
        })
    });
    Error::from_messages(ErrorKind::Usage, messages.collect())
        .with_hint("add it to the manifests, create it first, or correct the annotation")
}
