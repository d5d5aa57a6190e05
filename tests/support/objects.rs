//! Small objects to apply, and how they are addressed.

use serde_json::{Value, json};

use super::IS_PARENT_TYPE;

/// A `ConfigMap` whose data is `{"key": value}`.
pub(crate) fn config_map(namespace: &str, name: &str, value: &str) -> Value {
    with(
        named("v1", "ConfigMap", Some(namespace), name),
        &json!({"data": {"key": value}}),
    )
}

/// A Secret whose data is `{"key": "value"}`.
pub(crate) fn secret(namespace: &str, name: &str) -> Value {
    // "value" in base64.
    with(
        named("v1", "Secret", Some(namespace), name),
        &json!({"data": {"key": "dmFsdWU="}}),
    )
}

/// A Service of one port.
pub(crate) fn service(namespace: &str, name: &str, port: u32) -> Value {
    with(
        named("v1", "Service", Some(namespace), name),
        &json!({"spec": {"selector": {"app": name}, "ports": [{"port": port, "protocol": "TCP"}]}}),
    )
}

/// A Deployment, which nothing in the control plane ever makes available.
pub(crate) fn deployment(namespace: &str, name: &str, replicas: u32) -> Value {
    let labels = json!({"app": name});
    with(
        named("apps/v1", "Deployment", Some(namespace), name),
        &json!({"spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "app", "image": "app"}]},
            },
        }}),
    )
}

/// A `StatefulSet` without claims.
pub(crate) fn stateful_set(namespace: &str, name: &str) -> Value {
    let labels = json!({"app": name});
    with(
        named("apps/v1", "StatefulSet", Some(namespace), name),
        &json!({"spec": {
            "serviceName": name,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "app", "image": "app"}]},
            },
        }}),
    )
}

/// What makes a `StatefulSet` take its claims along.
pub(crate) fn deletes_claims() -> Value {
    json!({"spec": {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete"}}})
}

/// A Namespace.
pub(crate) fn namespace_object(name: &str) -> Value {
    named("v1", "Namespace", None, name)
}

/// A `ClusterRole` that allows nothing of interest.
pub(crate) fn cluster_role(name: &str) -> Value {
    with(
        named("rbac.authorization.k8s.io/v1", "ClusterRole", None, name),
        &json!({"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}),
    )
}

/// The CRD of a kind `Widget` in a group of its own; `scope` is `Namespaced` or
/// `Cluster`. A label lets custom resources of this kind be parents.
pub(crate) fn definition(group: &str, scope: &str) -> Value {
    let name = format!("widgets.{group}");
    with(
        named("apiextensions.k8s.io/v1", "CustomResourceDefinition", None, &name),
        &json!({
            "metadata": {"labels": {IS_PARENT_TYPE: "true"}},
            "spec": {
                "group": group,
                "scope": scope,
                "names": {"kind": "Widget", "plural": "widgets", "singular": "widget"},
                "versions": [{
                    "name": "v1",
                    "served": true,
                    "storage": true,
                    "schema": {"openAPIV3Schema": {
                        "type": "object",
                        "properties": {"spec": {
                            "type": "object",
                            "properties": {"size": {"type": "integer"}},
                        }},
                    }},
                }],
            },
        }),
    )
}

/// An object of the kind that [`definition`] defines.
pub(crate) fn custom_resource(group: &str, namespace: Option<&str>, name: &str) -> Value {
    with(
        named(&format!("{group}/v1"), "Widget", namespace, name),
        &json!({"spec": {"size": 1}}),
    )
}

/// An object with nothing but its identity.
pub(crate) fn named(api_version: &str, kind: &str, namespace: Option<&str>, name: &str) -> Value {
    let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}});
    if let Some(namespace) = namespace {
        object["metadata"]["namespace"] = json!(namespace);
    }
    object
}

/// The object with more fields; mappings are merged, all else is replaced.
pub(crate) fn with(mut object: Value, more: &Value) -> Value {
    merge(&mut object, more);
    object
}

fn merge(into: &mut Value, more: &Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            for (key, value) in more {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (into, more) => *into = more.clone(),
    }
}

/// Whether `live` has all that `wanted` has; lists are compared item by item.
pub(crate) fn covers(live: &Value, wanted: &Value) -> bool {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => wanted
            .iter()
            .all(|(key, value)| live.get(key).is_some_and(|live| covers(live, value))),
        (Value::Array(live), Value::Array(wanted)) => {
            live.len() == wanted.len() && live.iter().zip(wanted).all(|(live, wanted)| covers(live, wanted))
        }
        (live, wanted) => live == wanted,
    }
}

/// The path of an object.
pub(crate) fn path_of(object: &Value) -> String {
    let api_version = text(object, "/apiVersion");
    let root = if api_version.contains('/') { "apis" } else { "api" };
    let plural = plural(text(object, "/kind"));
    let name = text(object, "/metadata/name");
    match object.pointer("/metadata/namespace").and_then(Value::as_str) {
        Some(namespace) => format!("/{root}/{api_version}/namespaces/{namespace}/{plural}/{name}"),
        None => format!("/{root}/{api_version}/{plural}/{name}"),
    }
}

/// `Kind.group namespace/name` of each object, sorted; `-` for no namespace.
pub(crate) fn identities<'a>(objects: impl IntoIterator<Item = &'a Value>) -> Vec<String> {
    let mut identities: Vec<String> = objects
        .into_iter()
        .map(|object| {
            let namespace = object.pointer("/metadata/namespace").and_then(Value::as_str);
            format!(
                "{} {}/{}",
                group_kind(object),
                namespace.unwrap_or("-"),
                text(object, "/metadata/name")
            )
        })
        .collect();
    identities.sort();
    identities
}

/// `Kind.group`, a core kind bare.
pub(super) fn group_kind(object: &Value) -> String {
    let kind = text(object, "/kind");
    match text(object, "/apiVersion").split_once('/') {
        Some((group, _)) => format!("{kind}.{group}"),
        None => kind.to_owned(),
    }
}

fn plural(kind: &str) -> String {
    let kind = kind.to_lowercase();
    match kind.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None => format!("{kind}s"),
    }
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_else(|| panic!("{pointer} of {object}"))
}
