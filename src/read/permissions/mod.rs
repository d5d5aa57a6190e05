//! Asks the server which of the permissions that a run needs the user lacks, and who the user is.
//!
//! One review is enough for an administrator; most others need one more for each namespace. A permission
//! is missing only if the server denies it; without an answer it counts as granted, and the server
//! checks every write again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::namespaces::read_namespaces;
use super::parent::metadata;
use crate::cluster::apiserver::{ApiRequest, ApiServer};
use crate::model::permission::{NeededPermissions, Permission, SubjectRules, Verb};

const API_VERSION: &str = "authorization.k8s.io/v1";
const USER_API_VERSION: &str = "authentication.k8s.io/v1";
/// The time for the name of the user: it decides nothing, so no run is held up by it.
const TIME_FOR_USER_NAME: Duration = Duration::from_secs(1);

/// The server lists rules of one namespace only, including those that hold in the whole cluster.
/// Every cluster has this namespace, and roles are not bound in it. If some are, too many
/// permissions are assumed, and the writes fail.
const NAMESPACE_WITHOUT_BINDINGS: &str = "kube-node-lease";

/// Limit of objects of one kind and namespace that are reviewed one by one, if the kind as a whole is
/// denied. If all of these are denied, the others count as denied, too; otherwise they are left to the writes.
const OBJECTS_ASKED_ABOUT: usize = 8;

#[derive(Deserialize)]
struct Review<T> {
    status: T,
}

#[derive(Deserialize)]
struct Access {
    allowed: bool,
}

/// Whether the user is an administrator, who has all permissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Administrator {
    /// The user is one, or the server does not decide it.
    Assumed,
    /// The user is not one.
    No,
    /// The server was not asked.
    NotAsked,
}

/// Asks the server whether the user is an administrator.
pub async fn administrator(server: &ApiServer) -> Administrator {
    let attributes = json!({"verb": "*", "group": "*", "resource": "*"});
    match access(server, attributes).await {
        Some(Access { allowed: false }) => Administrator::No,
        _ => Administrator::Assumed,
    }
}

/// Returns the needed permissions that the user lacks, those on many objects of a resource as one. Uses an earlier answer
/// about the user, if there is one. Sends nothing if nothing is needed.
pub async fn missing_permissions(
    server: &ApiServer,
    mut user: Administrator,
    needed: &NeededPermissions,
    concurrency: usize,
) -> Vec<Permission> {
    if needed.rights.is_empty() {
        return Vec::new();
    }
    if user == Administrator::NotAsked {
        user = administrator(server).await;
    }
    if user == Administrator::Assumed {
        return Vec::new();
    }
    let rules = rules(server, needed, concurrency).await;
    // Those on single objects, by the permission on all of them: one review of that may settle them.
    let mut reviews: BTreeMap<Permission, Vec<Permission>> = BTreeMap::new();
    for right in &needed.rights {
        reviews.entry(right.on_all()).or_default().push(right.clone());
    }
    let verdicts: Vec<Vec<Permission>> = stream::iter(reviews)
        .map(|(on_all, rights)| missing_of(server, needed, on_all, rights, &rules))
        .buffer_unordered(concurrency)
        .collect()
        .await;
    let mut missing: Vec<Permission> = verdicts.into_iter().flatten().collect();
    let brought = brought_namespaces(server, needed, &missing).await;
    missing
        .retain(|Permission { namespace, .. }| namespace.as_ref().is_none_or(|name| !brought.contains(name)));
    missing.sort();
    missing
}

/// Reads the rules of the user in each namespace where permissions are needed, as far as the server
/// lists them.
async fn rules(
    server: &ApiServer,
    needed: &NeededPermissions,
    concurrency: usize,
) -> BTreeMap<String, SubjectRules> {
    let places: BTreeSet<&str> = needed.rights.iter().map(place).collect();
    stream::iter(places)
        .map(|namespace| async move {
            let spec = json!({"namespace": namespace});
            let rules = review(server, "SelfSubjectRulesReview", "selfsubjectrulesreviews", spec).await?;
            Some((namespace.to_owned(), rules))
        })
        .buffer_unordered(concurrency)
        .filter_map(std::future::ready)
        .collect()
        .await
}

fn place(right: &Permission) -> &str {
    right.namespace.as_deref().unwrap_or(NAMESPACE_WITHOUT_BINDINGS)
}

/// Returns the missing permissions of one review. The rules are cheap, but may be incomplete: a
/// permission that they lack is missing only if the server denies it.
async fn missing_of(
    server: &ApiServer,
    needed: &NeededPermissions,
    on_all: Permission,
    rights: Vec<Permission>,
    rules: &BTreeMap<String, SubjectRules>,
) -> Vec<Permission> {
    let Some(rules) = rules.get(place(&on_all)) else {
        return Vec::new();
    };
    let asked = rights.len();
    let doubtful: Vec<Permission> = rights.into_iter().filter(|right| !rules.allow(right)).collect();
    if doubtful.is_empty() {
        return doubtful;
    }
    let denied = denied_by_server(server, &on_all, doubtful).await;
    let denied = leave_out_existing(server, needed, denied).await;
    if denied.len() > 1 && denied.len() == asked {
        vec![on_all]
    } else {
        denied
    }
}

/// Reviews all objects first, and each only if that is denied: permissions may be granted by name.
async fn denied_by_server(
    server: &ApiServer,
    on_all: &Permission,
    rights: Vec<Permission>,
) -> Vec<Permission> {
    if may(server, on_all).await {
        return Vec::new();
    }
    let mut denied = Vec::new();
    for right in rights.iter().take(OBJECTS_ASKED_ABOUT) {
        if right == on_all || !may(server, right).await {
            denied.push(right.clone());
        }
    }
    if denied.len() == OBJECTS_ASKED_ABOUT {
        rights
    } else {
        denied
    }
}

/// Leaves out permissions to create objects that exist or may exist.
async fn leave_out_existing(
    server: &ApiServer,
    needed: &NeededPermissions,
    denied: Vec<Permission>,
) -> Vec<Permission> {
    let asked = &denied[..denied.len().min(OBJECTS_ASKED_ABOUT)];
    let mut absent = Vec::new();
    for right in asked {
        let is_absent = match needed.unless_present.get(right) {
            None => true,
            Some(path) => matches!(metadata(server, path).await, Ok(None)),
        };
        if is_absent {
            absent.push(right.clone());
        }
    }
    if absent.len() == asked.len() {
        denied
    } else {
        absent
    }
}

/// Returns the namespaces of missing permissions that do not exist yet, and that this run creates. Their
/// creator may get permissions in them at that moment.
async fn brought_namespaces(
    server: &ApiServer,
    needed: &NeededPermissions,
    missing: &[Permission],
) -> BTreeSet<String> {
    let mut brought: BTreeSet<&str> = missing
        .iter()
        .filter_map(|right| right.namespace.as_deref())
        .filter(|namespace| needed.brought_namespaces.contains(*namespace))
        .collect();
    let found = read_namespaces(server, &brought).await.unwrap_or_default();
    brought.retain(|namespace| !found.contains_key(*namespace));
    brought.into_iter().map(str::to_owned).collect()
}

async fn may(server: &ApiServer, right: &Permission) -> bool {
    access(server, attributes(right))
        .await
        .is_none_or(|access| access.allowed)
}

/// Returns the `ResourceAttributes` that the server derives from the request.
fn attributes(right: &Permission) -> Value {
    let mut attributes = json!({
        "verb": right.verb.as_str(),
        "group": right.group,
        "resource": right.resource,
    });
    // The path of a namespace names itself as the namespace of the request; a create
    // by apply does not (apiserver, `pkg/endpoints/request/requestinfo.go`).
    let is_namespace = right.group.is_empty() && right.resource == "namespaces" && right.verb != Verb::Create;
    let namespace = match &right.namespace {
        None if is_namespace => right.name.as_ref(),
        namespace => namespace.as_ref(),
    };
    if let Some(namespace) = namespace {
        attributes["namespace"] = json!(namespace);
    }
    if let Some(name) = &right.name {
        attributes["name"] = json!(name);
    }
    attributes
}

async fn access(server: &ApiServer, attributes: Value) -> Option<Access> {
    let spec = json!({"resourceAttributes": attributes});
    review(
        server,
        "SelfSubjectAccessReview",
        "selfsubjectaccessreviews",
        spec,
    )
    .await
}

/// Sends a review; `None` if the server does not decide it, for any reason. The writes show whether the
/// user may write.
async fn review<T: DeserializeOwned>(server: &ApiServer, kind: &str, plural: &str, spec: Value) -> Option<T> {
    let body = json!({"apiVersion": API_VERSION, "kind": kind, "spec": spec});
    let path = format!("/apis/{API_VERSION}/{plural}");
    let request = ApiRequest::post(&path, &[], "application/json", Bytes::from(body.to_string()));
    let reply = server.send(request).await.ok()?;
    let review: Review<T> = reply.json().ok()?;
    Some(review.status)
}

/// The name of the user as the server knows it; `None` if the server does not say (the API is
/// served since Kubernetes 1.28), or not soon.
pub async fn user_name(server: &ApiServer) -> Option<String> {
    let asking = async {
        timeout(TIME_FOR_USER_NAME, ask_for_user_name(server))
            .await
            .ok()
            .flatten()
    };
    server.user_name(asking).await
}

async fn ask_for_user_name(server: &ApiServer) -> Option<String> {
    let review = json!({"apiVersion": USER_API_VERSION, "kind": "SelfSubjectReview"});
    let path = format!("/apis/{USER_API_VERSION}/selfsubjectreviews");
    let request = ApiRequest::post(&path, &[], "application/json", Bytes::from(review.to_string()));
    let reply = server.send(request).await.ok()?;
    let answer: Value = reply.json().ok()?;
    let name = answer.pointer("/status/userInfo/username")?.as_str()?;
    Some(name.to_owned())
}

#[cfg(test)]
mod tests;
