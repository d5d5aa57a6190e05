//! Permissions that the API server requires because of the content of an object, in addition to the permission to write
//! the object: for roles, bindings, admission policies and trust bundles.
//!
//! The comment of each rule names the file in the Kubernetes source that it follows.

use serde_json::Value;

use crate::cluster::discovery::{Discovery, KindLookup};
use crate::manifest::desired::{Desired, DesiredObject};
use crate::model::identity::{GroupKind, GroupVersionKind};
use crate::model::permission::{Permission, Verb};

const RBAC: &str = "rbac.authorization.k8s.io";

/// Returns the permissions that the content of an object needs.
pub(super) fn needed_for_content(
    object: &DesiredObject,
    desired: &Desired,
    discovery: &Discovery,
) -> Vec<Permission> {
    let GroupKind { group, kind } = &object.key.group_kind;
    match (group.as_str(), kind.as_str()) {
        (RBAC, "Role" | "ClusterRole") => needed_to_escalate(object).into_iter().collect(),
        (RBAC, "RoleBinding" | "ClusterRoleBinding") => needed_to_bind(object).into_iter().collect(),
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy" | "MutatingAdmissionPolicy") => {
            needed_to_read_parameters(object, discovery).into_iter().collect()
        }
        (
            "admissionregistration.k8s.io",
            "ValidatingAdmissionPolicyBinding" | "MutatingAdmissionPolicyBinding",
        ) => needed_to_read_bound_parameters(object, desired, discovery)
            .into_iter()
            .collect(),
        ("certificates.k8s.io", "ClusterTrustBundle") => needed_to_attest(object),
        _ => Vec::new(),
    }
}

/// Returns the permission that a role needs: `escalate`, unless the role grants nothing. Source:
/// `pkg/registry/rbac/escalation_check.go`, `RoleEscalationAuthorized`.
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
/// is a `ClusterRole`. Source: `pkg/registry/rbac/escalation_check.go`, `BindingAuthorized`.
fn needed_to_bind(binding: &DesiredObject) -> Option<Permission> {
    let value = binding.object.value();
    let resource = match read_text_at(&value, "/roleRef/kind")? {
        "Role" => "roles",
        "ClusterRole" => "clusterroles",
        _ => return None,
    };
    Some(Permission {
        namespace: binding.key.namespace.clone(),
        group: RBAC.to_owned(),
        resource: resource.to_owned(),
        verb: Verb::Bind,
        name: Some(read_text_at(&value, "/roleRef/name")?.to_owned()),
    })
}

/// Returns the permission that an admission policy needs: `get` for all objects of its parameters' kind, or for all
/// resources of the group if discovery does not list the kind. Source:
/// `pkg/registry/admissionregistration/validatingadmissionpolicy/authz.go`.
fn needed_to_read_parameters(policy: &DesiredObject, discovery: &Discovery) -> Option<Permission> {
    let value = policy.object.value();
    let kind = read_text_at(&value, "/spec/paramKind/kind")?;
    let api_version = read_text_at(&value, "/spec/paramKind/apiVersion")?;
    let gvk = GroupVersionKind::from_api_version(api_version, kind);
    let resource = match discovery.find_preferred(&gvk.group_kind()) {
        KindLookup::Found(resource) => resource.plural.clone(),
        KindLookup::Absent | KindLookup::GroupFailed(_) => "*".to_owned(),
    };
    Some(Permission {
        namespace: None,
        group: gvk.group,
        resource,
        verb: Verb::Get,
        name: None,
    })
}

/// Returns the permission that the binding of an admission policy needs: to read its parameters. The policy says of
/// which kind they are, so the permission is known only if the manifests hold the policy. Source:
/// `pkg/registry/admissionregistration/validatingadmissionpolicybinding/authz.go`.
fn needed_to_read_bound_parameters(
    binding: &DesiredObject,
    desired: &Desired,
    discovery: &Discovery,
) -> Option<Permission> {
    let value = binding.object.value();
    let reference = value.pointer("/spec/paramRef").filter(|value| !value.is_null())?;
    let policy_name = read_text_at(&value, "/spec/policyName")?;
    let policy_kind = binding.key.group_kind.kind.strip_suffix("Binding")?;
    let policy = desired.members.iter().find(|member| {
        let GroupKind { group, kind } = &member.key.group_kind;
        *group == binding.key.group_kind.group && kind == policy_kind && member.key.name == policy_name
    })?;
    let name = read_text_at(reference, "/name").filter(|name| !name.is_empty());
    Some(Permission {
        namespace: read_text_at(reference, "/namespace").map(str::to_owned),
        // Without a name, a selector chooses the parameters.
        verb: if name.is_some() { Verb::Get } else { Verb::List },
        name: name.map(str::to_owned),
        ..needed_to_read_parameters(policy, discovery)?
    })
}

/// Returns the permission that a trust bundle needs: `attest` for its signer. The server also accepts `attest` for the
/// whole domain of the signer, which is more than needed. Source:
/// `plugin/pkg/admission/certificates/ctbattest` with `IsAuthorizedForSignerName`.
fn needed_to_attest(bundle: &DesiredObject) -> Vec<Permission> {
    let value = bundle.object.value();
    let signer = read_text_at(&value, "/spec/signerName").unwrap_or_default();
    if signer.is_empty() {
        return Vec::new();
    }
    vec![Permission {
        namespace: None,
        group: "certificates.k8s.io".to_owned(),
        resource: "signers".to_owned(),
        verb: Verb::Attest,
        name: Some(signer.to_owned()),
    }]
}

fn read_text_at<'v>(value: &'v Value, pointer: &str) -> Option<&'v str> {
    value.pointer(pointer)?.as_str()
}
