//! Objects of twenty kinds, small ones, one of each for every namespace; and where in the
//! API objects of a kind are.

use serde_json::{Value, json};

/// One object of each of the twenty kinds, for one namespace.
pub(crate) fn one_of_each(namespace: &str) -> Vec<Value> {
    let labels = json!({"app": "wide"});
    let pod = json!({
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "main", "image": "registry.example.com/wide:1"}]},
    });
    let selector = json!({"matchLabels": labels});
    let job = json!({"template": {
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "registry.example.com/job:1"}]},
    }});
    let claim = json!({
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    });
    let contents = [
        ("ConfigMap", json!({"data": {"key": "value"}})),
        ("Secret", json!({"data": {"key": "dmFsdWU="}})),
        (
            "Service",
            json!({"spec": {"selector": labels, "ports": [{"port": 80}]}}),
        ),
        ("ServiceAccount", json!({"automountServiceAccountToken": false})),
        ("PersistentVolumeClaim", json!({"spec": claim})),
        ("ResourceQuota", json!({"spec": {"hard": {"pods": "100"}}})),
        (
            "LimitRange",
            json!({"spec": {"limits": [{"type": "Pod", "max": {"memory": "1Gi"}}]}}),
        ),
        (
            "Deployment",
            json!({"spec": {"selector": selector, "template": pod}}),
        ),
        (
            "ReplicaSet",
            json!({"spec": {"selector": selector, "template": pod}}),
        ),
        (
            "DaemonSet",
            json!({"spec": {"selector": selector, "template": pod}}),
        ),
        (
            "StatefulSet",
            json!({"spec": {"serviceName": "wide", "selector": selector, "template": pod}}),
        ),
        ("Job", json!({"spec": job})),
        (
            "CronJob",
            json!({"spec": {"schedule": "*/5 * * * *", "jobTemplate": {"spec": job}}}),
        ),
        (
            "Ingress",
            json!({"spec": {"defaultBackend": {"service": {"name": "wide", "port": {"number": 80}}}}}),
        ),
        (
            "NetworkPolicy",
            json!({"spec": {"podSelector": selector, "policyTypes": ["Ingress"]}}),
        ),
        (
            "Role",
            json!({"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}]}),
        ),
        (
            "RoleBinding",
            json!({
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "wide"},
                "subjects": [{"kind": "ServiceAccount", "name": "wide", "namespace": namespace}],
            }),
        ),
        (
            "PodDisruptionBudget",
            json!({"spec": {"selector": selector, "minAvailable": 1}}),
        ),
        (
            "HorizontalPodAutoscaler",
            json!({"spec": {
                "maxReplicas": 3,
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "wide"},
            }}),
        ),
        (
            "Lease",
            json!({"spec": {"holderIdentity": "wide", "leaseDurationSeconds": 60}}),
        ),
    ];
    let complete = |(kind, mut object): (&str, Value)| {
        object["apiVersion"] = json!(api_version(kind));
        object["kind"] = json!(kind);
        object["metadata"] = json!({"name": "wide", "namespace": namespace, "labels": labels});
        object
    };
    contents.into_iter().map(complete).collect()
}

/// The path of the collection that a namespaced object or a namespace belongs to; in `namespace`, where
/// the object names none itself.
pub(crate) fn collection(object: &Value, namespace: &str) -> String {
    let kind = object["kind"].as_str().unwrap_or_default();
    if kind == "Namespace" {
        return "/api/v1/namespaces".to_owned();
    }
    let version = api_version(kind);
    let root = if version == "v1" { "api" } else { "apis" };
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or(namespace);
    format!("/{root}/{version}/namespaces/{namespace}/{}", plural(kind))
}

fn api_version(kind: &str) -> &'static str {
    match kind {
        "Deployment" | "ReplicaSet" | "DaemonSet" | "StatefulSet" => "apps/v1",
        "Job" | "CronJob" => "batch/v1",
        "Ingress" | "NetworkPolicy" => "networking.k8s.io/v1",
        "Role" | "RoleBinding" => "rbac.authorization.k8s.io/v1",
        "PodDisruptionBudget" => "policy/v1",
        "HorizontalPodAutoscaler" => "autoscaling/v2",
        "Lease" => "coordination.k8s.io/v1",
        _ => "v1",
    }
}

/// The rule by which the names of these kinds' resources are made.
fn plural(kind: &str) -> String {
    let kind = kind.to_lowercase();
    match kind.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None if kind.ends_with('s') => format!("{kind}es"),
        None => format!("{kind}s"),
    }
}
