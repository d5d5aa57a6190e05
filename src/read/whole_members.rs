//! Reads the members of a set as whole objects, each in the API version in which it was applied, because the fields
//! that `managedFields` names are those of that version.

use std::collections::BTreeSet;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::{Value, json};

use super::cluster::Cluster;
use super::error::unknowable_kind;
use super::list::{Selector, WHOLE_OBJECTS};
use super::list_collections::{list_collections, unique_by_uid};
use super::single_objects::read_object;
use crate::cluster::discovery::{Discovery, KindLookup, ResourceLookup};
use crate::compare::ownership::{APPLIERS, applied_api_version};
use crate::error::Error;
use crate::model::identity::{GroupVersionKind, ObjectKey};
use crate::model::list_targets::ListTargets;
use crate::model::live::{Live, Presence};
use crate::model::resource::{Origin, Resource};
use crate::model::set::Set;

/// The members of a set that are exported.
pub struct WholeMembers {
    pub objects: Vec<(ObjectKey, Value)>,
    /// Objects whose label was not written by an applier of the set, so that no run would prune them.
    pub only_labeled: Vec<Live>,
    /// Any member, if the field manager has labeled none: then another field manager applies the set.
    pub of_another_manager: Option<Live>,
}

/// Lists the members in these places. Those that are being deleted, and copies of labels that controllers have made,
/// are left out.
///
/// # Errors
///
/// Something could not be read: a shorter list would be taken for the whole set.
pub async fn list_whole_members(
    cluster: &Cluster,
    set: &Set,
    places: &ListTargets,
    manager: &str,
    concurrency: usize,
) -> Result<WholeMembers, Error> {
    let selector = Selector::for_members(&set.id, WHOLE_OBJECTS);
    let appliers: BTreeSet<String> = APPLIERS.into_iter().chain([manager]).map(str::to_owned).collect();
    let mut found = list_collections(
        &cluster.server,
        places,
        &selector,
        concurrency,
        |item, resource| {
            let live = Live::from_object(item, resource)?;
            let is_member = live.presence == Presence::Present
                && !set.is_parent(&live)
                && !live.is_copy_with_foreign_owner(set.parent_uid.as_deref(), &appliers);
            is_member.then(|| (live, with_type(item.clone(), resource)))
        },
    )
    .await?;
    unique_by_uid(&mut found, |(live, _)| live, |_| false);
    let (found, only_labeled): (Vec<_>, Vec<_>) = found
        .into_iter()
        .partition(|(live, _)| live.has_part_of_label_written_by(&appliers));
    let labeled = found.iter().chain(&only_labeled).map(|(live, _)| live);
    let mut writers = labeled.clone().flat_map(|live| &live.part_of_writers);
    let of_another_manager = if writers.any(|writer| writer == manager) {
        None
    } else {
        labeled.clone().next().cloned()
    };
    let objects = found.into_iter().map(|(live, listed)| (live.key, listed));
    Ok(WholeMembers {
        objects: reread_in_applied_versions(cluster, objects.collect(), manager, concurrency).await?,
        only_labeled: only_labeled.into_iter().map(|(live, _)| live).collect(),
        of_another_manager,
    })
}

/// Reads these objects, which are not members. Leaves out objects that do not exist or are being deleted.
pub async fn read_whole_objects(
    cluster: &Cluster,
    keys: impl Iterator<Item = ObjectKey>,
    manager: &str,
    concurrency: usize,
) -> Result<Vec<(ObjectKey, Value)>, Error> {
    let reads = keys.map(async |key| match served_resource(&cluster.discovery, &key)? {
        Some(resource) => read_whole_object(cluster, key, resource).await,
        None => Ok(None),
    });
    let read: Vec<_> = stream::iter(reads).buffered(concurrency).try_collect().await?;
    let mut found: Vec<_> = read.into_iter().flatten().collect();
    found.retain(|(_, object)| object["metadata"]["deletionTimestamp"].is_null());
    reread_in_applied_versions(cluster, found, manager, concurrency).await
}

/// Returns the resource through which the object is read; `None` for a kind that is not served yet, and so has no
/// objects.
fn served_resource<'d>(discovery: &'d Discovery, key: &ObjectKey) -> Result<Option<&'d Resource>, Error> {
    match discovery.find_preferred(&key.group_kind) {
        KindLookup::Found(resource) if resource.origin == Origin::Served => Ok(Some(resource)),
        KindLookup::Found(_) | KindLookup::Absent => Ok(None),
        KindLookup::GroupFailed(failure) => Err(unknowable_kind(&key.group_kind.to_string(), failure)),
    }
}

/// Reads objects again that were applied in another version than they were listed in, if the server still serves that
/// version.
async fn reread_in_applied_versions(
    cluster: &Cluster,
    found: Vec<(ObjectKey, Value)>,
    manager: &str,
    concurrency: usize,
) -> Result<Vec<(ObjectKey, Value)>, Error> {
    let reads = found.into_iter().map(async |(key, listed)| {
        let version = applied_api_version(&listed["metadata"], manager);
        let Some(version) = version.filter(|version| listed["apiVersion"] != *version) else {
            return Ok(Some((key, listed)));
        };
        let gvk = GroupVersionKind::from_api_version(version, &key.group_kind.kind);
        match cluster.discovery.find_resource(&gvk) {
            ResourceLookup::Found(resource) => read_whole_object(cluster, key, resource).await,
            _ => Ok(Some((key, listed))),
        }
    });
    let found: Vec<_> = stream::iter(reads).buffered(concurrency).try_collect().await?;
    Ok(found.into_iter().flatten().collect())
}

async fn read_whole_object(
    cluster: &Cluster,
    key: ObjectKey,
    resource: &Resource,
) -> Result<Option<(ObjectKey, Value)>, Error> {
    match read_object(&cluster.server, resource, &key).await {
        Ok(found) => Ok(found.map(|found| (key, with_type(found, resource)))),
        Err(error) => Err(error.to_error_while_reading(&key)),
    }
}

/// Adds the API version and the kind, which the items of a list lack.
fn with_type(mut object: Value, resource: &Resource) -> Value {
    object["apiVersion"] = json!(resource.api_version());
    object["kind"] = json!(resource.kind);
    object
}

#[cfg(test)]
#[expect(clippy::disallowed_types, reason = "the server of the test is a closure")]
mod tests {
    use std::convert::Infallible;
    use std::time::Duration;

    use http::{Request, Response};
    use kube::client::Body;

    use super::*;
    use crate::cluster::apiserver::ApiServer;
    use crate::cluster::discovery;
    use crate::plan::fixtures::live;

    #[tokio::test]
    async fn an_object_of_a_group_that_cannot_be_discovered_is_an_error() {
        let stale = json!({"metadata": {"name": "down.example.com"}, "versions": [
            {"version": "v1", "freshness": "Stale", "resources": []},
        ]});
        let core = json!({"metadata": {}, "versions": [{"version": "v1", "resources": []}]});
        let root = json!({"kind": "APIGroupDiscoveryList", "items": [core, stale]}).to_string();
        let service = tower::service_fn(move |_: Request<Body>| {
            let body = Body::from(root.clone().into_bytes());
            async move { Ok::<_, Infallible>(Response::new(body)) }
        });
        let client = kube::Client::new(service, "default");
        let server = ApiServer::new(client, "https://127.0.0.1:6443", Duration::from_mins(1));
        let discovery = discovery::fetch(&server).await.expect("a discovery");
        let resource =
            |kind| served_resource(&discovery, &live(kind, None, "a").key).map(|found| found.is_some());
        assert!(matches!(resource("Widget.other.example.com"), Ok(false)));
        assert!(resource("Widget.down.example.com").is_err());
    }
}
