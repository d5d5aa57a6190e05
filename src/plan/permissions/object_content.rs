//! Permissions that the API server requires because of the content of an object, in addition to the permission to write
//! the object: for roles and their bindings. Source: `pkg/registry/rbac/escalation_check.go` in Kubernetes.
//!
//! The content of a few other objects needs permissions, too (`ClusterTrustBundle`, admission policies with parameters).
//! They are rarely in a set, and the server names what is missing.

use serde_json::Value;

use crate::manifest::desired::DesiredObject;
use crate::model::identity::GroupKind;
use crate::model::permission::{Permission, Verb};

const RBAC: &str = "rbac.authorization.k8s.io";

/// Returns the permission that the content of an object needs; `None` if it needs none.
pub(super) fn needed_for_content(object: &DesiredObject) -> Option<Permission> {
    let GroupKind { group, kind } = &object.key.group_kind;
    match (group.as_str(), kind.as_str()) {
        (RBAC, "Role" | "ClusterRole") => needed_to_escalate(object),
        (RBAC, "RoleBinding" | "ClusterRoleBinding") => needed_to_bind(object),
        _ => None,
    }
}

/// Returns the permission that a role needs: `escalate`, unless the role grants nothing (`RoleEscalationAuthorized`).
fn needed_to_escalate(role: &DesiredObject) -> Option<Permission> {
    let value = role.object.value();
    let grants_nothing = ["rules", "aggregationRule"]
        .iter()
        .all(|field| value.get(field).is_none_or(is_null_or_empty_array));
    (!grants_nothing).then(|| Permission::on_object(Verb::Escalate, &role.resource, &role.key))
}

fn is_null_or_empty_array(value: &Value) -> bool {
    value.is_null() || value.as_array().is_some_and(Vec::is_empty)
}

/// Returns the permission that a binding needs: `bind` for its role, in the namespace of the binding even if the role
/// is a `ClusterRole` (`BindingAuthorized`).
fn needed_to_bind(binding: &DesiredObject) -> Option<Permission> {
    let value = binding.object.value();
    let resource = match read_text_at(&value, "/roleRef/kind")? {
        "Role" => "roles",
        "ClusterRole" => "clusterroles",
        _ => return None,
    };
    Some(Permission {
        namespace: binding.key.namespace.clone(),
        name: Some(read_text_at(&value, "/roleRef/name")?.to_owned()),
        ..Permission::cluster_wide(Verb::Bind, RBAC, resource)
    })
}

fn read_text_at<'v>(value: &'v Value, pointer: &str) -> Option<&'v str> {
    value.pointer(pointer)?.as_str()
}
