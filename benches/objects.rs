//! The objects that are applied: applications of ten objects each, 40% `ConfigMaps`, 30%
//! Deployments, 20% Services, 10% `ServiceAccounts`, of the sizes that such objects have.
//! The same number always makes the same objects.

use std::fmt::Write as _;

use serde_json::{Value, json};

/// Objects of one application.
pub(crate) const OBJECTS_OF_AN_APPLICATION: usize = 10;

/// One application, in the order in which a person would write it down.
pub(crate) fn application(number: usize) -> Vec<Value> {
    let name = format!("shop-{number:04}");
    let mut objects = vec![service_account(&name)];
    for (part, role) in ["web", "api", "worker"].into_iter().enumerate() {
        objects.push(settings(&name, role, number * 4 + part));
        objects.push(deployment(&name, role, number * 3 + part));
        if role != "worker" {
            objects.push(service(&name, role));
        }
    }
    objects.push(server_configuration(&name, number));
    objects
}

/// The same application with another value in one field of one object.
pub(crate) fn changed(mut application: Vec<Value>) -> Vec<Value> {
    let settings = application
        .iter_mut()
        .find(|object| object["kind"] == "ConfigMap");
    if let Some(settings) = settings {
        settings["data"]["LOG_LEVEL"] = json!("debug");
    }
    application
}

fn metadata(application: &str, name: &str, role: &str) -> Value {
    json!({
        "name": name,
        "labels": {
            "app.kubernetes.io/name": role,
            "app.kubernetes.io/instance": application,
            "app.kubernetes.io/part-of": "shop",
            "app.kubernetes.io/version": "2.14.3",
            "app.kubernetes.io/managed-by": "platform-team",
        },
        "annotations": {
            "example.com/owner": "team-checkout@example.com",
            "example.com/runbook": format!("https://runbooks.example.com/{application}/{role}"),
        },
    })
}

fn selector(application: &str, role: &str) -> Value {
    json!({"app.kubernetes.io/name": role, "app.kubernetes.io/instance": application})
}

fn service_account(application: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata(application, application, "all"),
        "automountServiceAccountToken": false,
        "imagePullSecrets": [{"name": "registry"}],
    })
}

fn settings(application: &str, role: &str, seed: usize) -> Value {
    let mut data = json!({
        "LOG_LEVEL": "info",
        "LOG_FORMAT": "json",
        "HTTP_PORT": "8080",
        "DATABASE_URL": format!("postgres://{application}-db.databases.svc:5432/{role}?sslmode=verify-full"),
        "CACHE_URL": format!("redis://{application}-cache.caches.svc:6379/{}", seed % 16),
        "FEATURES": "checkout-v2,recommendations,gift-cards,new-search",
    });
    for number in 0..seed % 12 {
        data[format!("LIMIT_{number:02}")] = json!((seed * 37 + number * 101).to_string());
    }
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(application, &format!("{application}-{role}-settings"), role),
        "data": data,
    })
}

/// A file in a ConfigMap: from half a kilobyte to four.
fn server_configuration(application: &str, seed: usize) -> Value {
    let mut file = String::from("worker_processes auto;\nevents {\n  worker_connections 4096;\n}\nhttp {\n");
    for number in 0..3 + seed % 20 {
        let upstream = format!("{application}-{number:02}");
        // Writing into a String cannot fail.
        let _ = write!(
            file,
            "  upstream {upstream} {{\n    server {upstream}.internal:8080 max_fails=3;\n  }}\n  \
             server {{\n    listen {};\n    location / {{ proxy_pass http://{upstream}; }}\n  }}\n",
            8000 + number
        );
    }
    file.push_str("}\n");
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(application, &format!("{application}-nginx"), "web"),
        "data": {"nginx.conf": file, "mime.types": "types {\n  text/html html;\n  text/css css;\n}\n"},
    })
}

fn service(application: &str, role: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(application, &format!("{application}-{role}"), role),
        "spec": {
            "selector": selector(application, role),
            "ports": [
                {"name": "http", "port": 80, "targetPort": "http"},
                {"name": "metrics", "port": 9090, "targetPort": "metrics", "protocol": "TCP"},
            ],
        },
    })
}

fn deployment(application: &str, role: &str, seed: usize) -> Value {
    let pod_labels = selector(application, role);
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(application, &format!("{application}-{role}"), role),
        "spec": {
            // Else the controllers would still be at work for one contender while the next is measured.
            "paused": true,
            "replicas": 2 + seed % 4,
            "revisionHistoryLimit": 3,
            "selector": {"matchLabels": pod_labels},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 0}},
            "template": {
                "metadata": {"labels": pod_labels, "annotations": {"prometheus.io/scrape": "true"}},
                "spec": {
                    "serviceAccountName": application,
                    "securityContext": {"runAsNonRoot": true, "runAsUser": 65532},
                    "containers": [container(application, role), log_shipper()],
                    "volumes": [
                        {"name": "nginx", "configMap": {"name": format!("{application}-nginx")}},
                        {"name": "temporary", "emptyDir": {}},
                    ],
                    "topologySpreadConstraints": [{
                        "maxSkew": 1,
                        "topologyKey": "kubernetes.io/hostname",
                        "whenUnsatisfiable": "ScheduleAnyway",
                        "labelSelector": {"matchLabels": pod_labels},
                    }],
                },
            },
        },
    })
}

fn container(application: &str, role: &str) -> Value {
    let probe = |path: &str| json!({"httpGet": {"path": path, "port": "http"}, "periodSeconds": 10});
    json!({
        "name": role,
        "image": format!("registry.example.com/shop/{role}:2.14.3"),
        "args": ["serve", "--listen=:8080", "--metrics=:9090"],
        "envFrom": [{"configMapRef": {"name": format!("{application}-{role}-settings")}}],
        "env": [
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "GOMAXPROCS", "value": "2"},
            {"name": "DATABASE_PASSWORD", "valueFrom": {"secretKeyRef": {"name": "database", "key": "password"}}},
        ],
        "ports": [{"name": "http", "containerPort": 8080}, {"name": "metrics", "containerPort": 9090}],
        "resources": {
            "requests": {"cpu": "100m", "memory": "128Mi"},
            "limits": {"memory": "256Mi"},
        },
        "readinessProbe": probe("/ready"),
        "livenessProbe": probe("/live"),
        "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": [
            {"name": "nginx", "mountPath": "/etc/nginx", "readOnly": true},
            {"name": "temporary", "mountPath": "/tmp"},
        ],
    })
}

fn log_shipper() -> Value {
    json!({
        "name": "logs",
        "image": "registry.example.com/platform/logs:1.9.0",
        "env": [{"name": "SINK", "value": "https://logs.example.com:8443"}],
        "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}},
        "volumeMounts": [{"name": "temporary", "mountPath": "/tmp"}],
    })
}
