//! Asks the server which of the permissions that a run needs the user lacks, and who the user is.
//!
//! For an administrator, one review is enough; for most other users, it takes one more for each namespace. A permission
//! is missing only if the server denies it. If the server does not answer a review, the permission counts as granted,
//! because the server checks every write again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream;
use k8s_openapi::api::authorization::v1::SubjectRulesReviewStatus;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::namespaces::read_namespaces;
use super::parent::read_metadata_at;
use crate::cluster::apiserver::{ApiRequest, ApiServer};
use crate::model::permission::{NeededPermissions, Permission, Verb, rules_allow};

const API_VERSION: &str = "authorization.k8s.io/v1";
const USER_API_VERSION: &str = "authentication.k8s.io/v1";
/// The time limit for reading the name of the user. It is short, since no decision depends on the name.
const TIME_FOR_USER_NAME: Duration = Duration::from_secs(1);

/// The namespace whose rules are read to learn the permissions in the whole cluster: the server lists only the rules of
/// one namespace, which include those for the whole cluster. Every cluster has this namespace, and usually no role is
/// bound in it. If one is, too many permissions are assumed, and writes fail later.
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
    /// The user is an administrator, or the server does not say. Errs towards permission: the server checks every
    /// write.
    Assumed,
    /// The user is not an administrator.
    No,
    /// The server was not asked.
    NotAsked,
}

/// Asks the server whether the user is an administrator.
pub async fn ask_whether_administrator(server: &ApiServer) -> Administrator {
    let attributes = json!({"verb": "*", "group": "*", "resource": "*"});
    match review_access(server, attributes).await {
        Some(Access { allowed: false }) => Administrator::No,
        _ => Administrator::Assumed,
    }
}

/// Returns the needed permissions that the user lacks. If the user lacks several permissions on objects of a resource,
/// one permission on all its objects stands for them. `user` is the answer of [`ask_whether_administrator`], if that
/// was asked before. Sends nothing if no permission is needed.
pub async fn find_missing_permissions(
    server: &ApiServer,
    mut user: Administrator,
    needed: &NeededPermissions,
    concurrency: usize,
) -> Vec<Permission> {
    if needed.permissions.is_empty() {
        return Vec::new();
    }
    if user == Administrator::NotAsked {
        user = ask_whether_administrator(server).await;
    }
    if user == Administrator::Assumed {
        return Vec::new();
    }
    let rules = read_rules(server, needed, concurrency).await;
    // Groups permissions on single objects by the permission on all such objects: if that is granted, one review is
    // enough.
    let mut reviews: BTreeMap<Permission, Vec<Permission>> = BTreeMap::new();
    for permission in &needed.permissions {
        reviews
            .entry(permission.without_name())
            .or_default()
            .push(permission.clone());
    }
    let verdicts: Vec<Vec<Permission>> = stream::iter(reviews)
        .map(|(on_all, permissions)| find_missing(server, needed, on_all, permissions, &rules))
        .buffer_unordered(concurrency)
        .collect()
        .await;
    let mut missing: Vec<Permission> = verdicts.into_iter().flatten().collect();
    let created_by_run = find_namespaces_to_create(server, needed, &missing).await;
    missing.retain(|Permission { namespace, .. }| {
        namespace
            .as_ref()
            .is_none_or(|name| !created_by_run.contains(name))
    });
    missing.sort();
    missing
}

/// Reads the rules of the user in each namespace where permissions are needed, as far as the server
/// lists them.
async fn read_rules(
    server: &ApiServer,
    needed: &NeededPermissions,
    concurrency: usize,
) -> BTreeMap<String, SubjectRulesReviewStatus> {
    let places: BTreeSet<&str> = needed.permissions.iter().map(namespace_of_rules).collect();
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

/// Returns the namespace whose rules show whether the user has this permission.
fn namespace_of_rules(permission: &Permission) -> &str {
    permission
        .namespace
        .as_deref()
        .unwrap_or(NAMESPACE_WITHOUT_BINDINGS)
}

/// Returns which of the `permissions`, which are all parts of `without_name`, are missing. The rules may be
/// incomplete, so a permission that the rules do not grant is missing only if the server denies it in a review.
async fn find_missing(
    server: &ApiServer,
    needed: &NeededPermissions,
    on_all: Permission,
    permissions: Vec<Permission>,
    rules: &BTreeMap<String, SubjectRulesReviewStatus>,
) -> Vec<Permission> {
    // The server did not answer with rules: the permissions count as granted.
    let Some(rules) = rules.get(namespace_of_rules(&on_all)) else {
        return Vec::new();
    };
    let asked = permissions.len();
    let not_in_rules: Vec<Permission> = permissions
        .into_iter()
        .filter(|permission| !rules_allow(rules, permission))
        .collect();
    if not_in_rules.is_empty() {
        return not_in_rules;
    }
    let denied = find_denied(server, &on_all, not_in_rules).await;
    let denied = leave_out_creation_of_existing(server, needed, denied).await;
    if denied.len() > 1 && denied.len() == asked {
        vec![on_all]
    } else {
        denied
    }
}

/// Returns which of these permissions the server denies. Reviews the permission on all objects first. If that is
/// denied, reviews the permissions on single objects, which may be granted by name.
async fn find_denied(
    server: &ApiServer,
    on_all: &Permission,
    permissions: Vec<Permission>,
) -> Vec<Permission> {
    if is_granted_or_unknown(server, on_all).await {
        return Vec::new();
    }
    let mut denied = Vec::new();
    for permission in permissions.iter().take(OBJECTS_ASKED_ABOUT) {
        if permission == on_all || !is_granted_or_unknown(server, permission).await {
            denied.push(permission.clone());
        }
    }
    // If every reviewed permission is denied, those that were not reviewed count as denied, too.
    if denied.len() == OBJECTS_ASKED_ABOUT {
        permissions
    } else {
        denied
    }
}

/// Leaves out permissions to create objects that exist or may exist.
async fn leave_out_creation_of_existing(
    server: &ApiServer,
    needed: &NeededPermissions,
    denied: Vec<Permission>,
) -> Vec<Permission> {
    let asked = &denied[..denied.len().min(OBJECTS_ASKED_ABOUT)];
    let mut absent = Vec::new();
    for permission in asked {
        let is_absent = match needed.unless_present.get(permission) {
            None => true,
            Some(path) => matches!(read_metadata_at(server, path).await, Ok(None)),
        };
        if is_absent {
            absent.push(permission.clone());
        }
    }
    if absent.len() == asked.len() {
        denied
    } else {
        absent
    }
}

/// Returns the namespaces of missing permissions that do not exist yet, and that this run creates. When a namespace is
/// created, its creator may get permissions in it.
async fn find_namespaces_to_create(
    server: &ApiServer,
    needed: &NeededPermissions,
    missing: &[Permission],
) -> BTreeSet<String> {
    let mut brought: BTreeSet<&str> = missing
        .iter()
        .filter_map(|permission| permission.namespace.as_deref())
        .filter(|namespace| needed.created_namespaces.contains(*namespace))
        .collect();
    let found = read_namespaces(server, &brought).await.unwrap_or_default();
    brought.retain(|namespace| !found.contains_key(*namespace));
    brought.into_iter().map(str::to_owned).collect()
}

/// Returns whether the user has this permission, or the server does not say.
async fn is_granted_or_unknown(server: &ApiServer, permission: &Permission) -> bool {
    review_access(server, resource_attributes(permission))
        .await
        .is_none_or(|access| access.allowed)
}

/// Returns the `ResourceAttributes` that the server derives from the request.
fn resource_attributes(permission: &Permission) -> Value {
    let mut attributes = json!({
        "verb": permission.verb,
        "group": permission.group,
        "resource": permission.resource,
    });
    // The path of a namespace names itself as the namespace of the request; a create
    // by apply does not (apiserver, `pkg/endpoints/request/requestinfo.go`).
    let is_namespace =
        permission.group.is_empty() && permission.resource == "namespaces" && permission.verb != Verb::Create;
    let namespace = match &permission.namespace {
        None if is_namespace => permission.name.as_ref(),
        namespace => namespace.as_ref(),
    };
    if let Some(namespace) = namespace {
        attributes["namespace"] = json!(namespace);
    }
    if let Some(name) = &permission.name {
        attributes["name"] = json!(name);
    }
    attributes
}

async fn review_access(server: &ApiServer, attributes: Value) -> Option<Access> {
    let spec = json!({"resourceAttributes": attributes});
    review(
        server,
        "SelfSubjectAccessReview",
        "selfsubjectaccessreviews",
        spec,
    )
    .await
}

/// Sends a review; `None` if the server does not answer it, for any reason.
async fn review<T: DeserializeOwned>(server: &ApiServer, kind: &str, plural: &str, spec: Value) -> Option<T> {
    let body = json!({"apiVersion": API_VERSION, "kind": kind, "spec": spec});
    let path = format!("/apis/{API_VERSION}/{plural}");
    let request = ApiRequest::post(&path, &[], "application/json", Bytes::from(body.to_string()));
    let reply = server.send(request).await.ok()?;
    let review: Review<T> = reply.json().ok()?;
    Some(review.status)
}

/// Returns the name of the user as the server knows it. Returns `None` if the server does not say, as before Kubernetes
/// 1.28, or not within `TIME_FOR_USER_NAME`.
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
