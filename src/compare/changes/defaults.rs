//! How the server writes values of built-in kinds back: defaults inside atomic
//! values, zero values that are left out, quantities in canonical form.
//!
//! The tables hold what the Go types and defaulting functions of every served
//! version say (`k8s.io/api`, `pkg/apis/*/v1/defaults.go`). They are applied to
//! nothing but the kinds of [`Place::is_built_in`](super::kinds::Place).

use serde_json::{Map, Value};

use super::kinds::Place;
use super::quantity;

/// Whether the server writes `desired` as `live`. `name` is the field's, and
/// `container` that of the field it is in.
pub(super) fn same(desired: &Value, live: &Value, name: &str, container: &str, kind: &str) -> bool {
    match (desired, live) {
        // A schema is data here, and in data an absent value is not a zero.
        _ if kind == "CustomResourceDefinition" => desired == live,
        (Value::Object(desired), Value::Object(live)) if kind == "LimitRange" && name == "limits" => {
            same_fields(&completed_limits(desired), live, name, container, kind)
        }
        (Value::Object(desired), Value::Object(live)) => same_fields(desired, live, name, container, kind),
        (Value::Array(desired), Value::Array(live)) => {
            desired.len() == live.len()
                && desired
                    .iter()
                    .zip(live)
                    .all(|(desired, live)| same(desired, live, name, container, kind))
        }
        _ if desired == live => true,
        // Where a type has no `omitempty`, an empty list is read as null.
        (Value::Array(_), Value::Null) => vanishes(desired, name, container, kind),
        (Value::String(desired), Value::String(live)) if is_bytes(name, container, kind) => {
            desired.replace(['\r', '\n'], "") == *live
        }
        (_, Value::String(live)) if is_quantity(name, container, kind) => {
            written_quantity(desired).as_ref() == Some(live)
        }
        _ => false,
    }
}

fn same_fields(
    desired: &Map<String, Value>,
    live: &Map<String, Value>,
    name: &str,
    container: &str,
    kind: &str,
) -> bool {
    let wanted = desired.iter().all(|(field, value)| match live.get(field) {
        Some(live) => same(value, live, field, name, kind),
        None => vanishes(value, field, name, kind),
    });
    wanted
        && live
            .iter()
            .filter(|(field, _)| !desired.contains_key(*field))
            .all(|(field, value)| is_default(field, value, desired, name, container, kind))
}

/// Whether the server fills in this value where a manifest leaves it out.
fn is_default(
    field: &str,
    value: &Value,
    desired: &Map<String, Value>,
    name: &str,
    container: &str,
    kind: &str,
) -> bool {
    let text = match (name, field) {
        ("fieldRef" | "volumeClaimTemplates", "apiVersion") => "v1",
        ("resourceFieldRef", "divisor") => "0",
        ("ports", "protocol") if matches!(kind, "EndpointSlice" | "NetworkPolicy") => "TCP",
        ("ports", "name") if kind == "EndpointSlice" => "",
        ("endpoints", "conditions") => return value.as_object().is_some_and(Map::is_empty),
        ("roleRef", "apiGroup") => "rbac.authorization.k8s.io",
        ("subjects", "apiGroup") => {
            let subject = desired.get("kind").and_then(Value::as_str);
            if !matches!(subject, Some("User" | "Group")) {
                return false;
            }
            "rbac.authorization.k8s.io"
        }
        ("rules", "scope") if kind.ends_with("WebhookConfiguration") => "*",
        ("serviceAccountToken", "expirationSeconds") => return *value == 3600,
        ("volumeClaimTemplates", "kind") => "PersistentVolumeClaim",
        ("volumeClaimTemplates", "status") => {
            return *value == serde_json::json!({"phase": "Pending"});
        }
        ("metadata", "creationTimestamp") if container == "volumeClaimTemplates" => {
            return value.is_null();
        }
        ("spec", "volumeMode") if container == "volumeClaimTemplates" => "Filesystem",
        ("status", "phase") if container == "volumeClaimTemplates" => "Pending",
        ("onPodConditions", "status") => "True",
        _ => return false,
    };
    value.as_str() == Some(text)
}

/// Whether the server leaves this value out.
pub(super) fn vanishes(desired: &Value, name: &str, container: &str, kind: &str) -> bool {
    // What an EndpointSlice holds are pointers, and a pointer to nothing is something.
    if kind == "EndpointSlice" && IN_ENDPOINT_SLICES.contains(&container) {
        return desired.is_null();
    }
    // A key that people chose stays, whatever it is called and whatever its value.
    if has_chosen_keys(container, kind) {
        return false;
    }
    // Some strategies count a new generation when nothing becomes empty
    // (`reflect.DeepEqual` in `pkg/registry/*/strategy.go`).
    let told_apart = TELL_EMPTY_APART.contains(&kind) && container != "metadata";
    let zero = match desired {
        Value::Null => return true,
        Value::Array(items) => return items.is_empty() && !told_apart,
        Value::Object(fields) => {
            return fields.is_empty() && EMPTY_MAPS.contains(&name) && !told_apart;
        }
        // Of a value of another type the server says that it is wrong.
        Value::Bool(value) => !value && FLAGS.contains(&name),
        Value::String(value) => value.is_empty() && !FLAGS.contains(&name) && !NUMBERS.contains(&name),
        Value::Number(value) => value.as_i64() == Some(0) && NUMBERS.contains(&name),
    };
    zero && (ZEROS.binary_search(&name).is_ok() || ZEROS_IN.contains(&(container, name)))
}

fn has_chosen_keys(container: &str, kind: &str) -> bool {
    EMPTY_MAPS.contains(&container)
        || OTHER_MAPS.contains(&container)
        || container == "selector" && matches!(kind, "ReplicationController" | "Service")
        || kind == "LimitRange" && QUANTITIES_OF_LIMITS.contains(&container)
}

/// Whether the value is bytes in base64, where the server ignores line breaks (Go's
/// `encoding/base64`) and writes none.
fn is_bytes(name: &str, container: &str, kind: &str) -> bool {
    name == "caBundle"
        || matches!(
            (kind, container),
            ("Secret", "data") | ("ConfigMap", "binaryData")
        )
}

/// An item of a `LimitRange` with the limits that follow from its other ones
/// (`SetDefaults_LimitRangeItem`).
fn completed_limits(item: &Map<String, Value>) -> Map<String, Value> {
    let mut completed = item.clone();
    if item.get("type").and_then(Value::as_str) != Some("Container") {
        return completed;
    }
    for (from, into) in [
        ("max", "default"),
        ("default", "defaultRequest"),
        ("min", "defaultRequest"),
    ] {
        let Some(Value::Object(known)) = completed.get(from).cloned() else {
            continue;
        };
        let target = completed.entry(into).or_insert(Value::Null);
        if target.is_null() && !known.is_empty() {
            *target = Value::Object(Map::new());
        }
        if let Value::Object(target) = target {
            for (resource, quantity) in known {
                target.entry(resource).or_insert(quantity);
            }
        }
    }
    completed
}

fn is_quantity(name: &str, container: &str, kind: &str) -> bool {
    matches!(container, "limits" | "requests" | "hard")
        || kind == "LimitRange" && QUANTITIES_OF_LIMITS.contains(&container)
        || matches!(
            (container, name),
            ("emptyDir", "sizeLimit")
                | ("resourceFieldRef", "divisor")
                | ("target", "averageValue" | "value")
        )
}

fn written_quantity(desired: &Value) -> Option<String> {
    match desired {
        Value::String(text) => quantity::canonical(text),
        Value::Number(number) => quantity::canonical(&number.to_string()),
        _ => None,
    }
}

/// Whether a status says nothing, as generators write it: `{}`, `loadBalancer:
/// {}`, and what controller-gen leaves in a `CustomResourceDefinition`.
pub(super) fn is_blank_status(status: &Value, place: Place<'_>) -> bool {
    let Value::Object(fields) = status else {
        return false;
    };
    let empty_text = |value: &Value| value.as_str() == Some("");
    fields
        .iter()
        .all(|(name, value)| match (place.kind, name.as_str(), value) {
            ("Service" | "Ingress", "loadBalancer", Value::Object(inner)) => inner.is_empty(),
            ("CustomResourceDefinition", "acceptedNames", Value::Object(names)) => names
                .iter()
                .all(|(name, value)| matches!(name.as_str(), "kind" | "plural") && empty_text(value)),
            ("CustomResourceDefinition", "conditions" | "storedVersions", Value::Array(items)) => {
                items.is_empty()
            }
            ("CustomResourceDefinition", "conditions" | "storedVersions", Value::Null) => true,
            _ => false,
        })
}

/// Kinds that take an absent list for another value than an empty one.
const TELL_EMPTY_APART: &[&str] = &[
    "MutatingWebhookConfiguration",
    "NetworkPolicy",
    "ValidatingWebhookConfiguration",
];

/// Maps of quantities in the items of a `LimitRange`.
const QUANTITIES_OF_LIMITS: &[&str] = &["default", "defaultRequest", "max", "maxLimitRequestRatio", "min"];

/// Fields of an `EndpointSlice` that hold others.
const IN_ENDPOINT_SLICES: &[&str] = &[
    "conditions",
    "deprecatedTopology",
    "endpoints",
    "forNodes",
    "forZones",
    "hints",
    "ports",
    "targetRef",
];

/// Maps without a pointer that are left out when empty.
const EMPTY_MAPS: &[&str] = &[
    "annotations",
    "binaryData",
    "data",
    "labels",
    "limits",
    "matchLabels",
    "nodeSelector",
    "requests",
];

/// More maps with keys that people choose.
const OTHER_MAPS: &[&str] = &["hard", "options", "parameters", "volumeAttributes"];

/// Which of [`ZEROS`] and [`ZEROS_IN`] are booleans.
const FLAGS: &[&str] = &[
    "globalDefault",
    "hostIPC",
    "hostNetwork",
    "hostPID",
    "paused",
    "preserveUnknownFields",
    "publishNotReadyAddresses",
    "readOnly",
    "stdin",
    "stdinOnce",
    "tty",
];

/// Which of [`ZEROS`] and [`ZEROS_IN`] are numbers; the others are strings.
const NUMBERS: &[&str] = &[
    "failureThreshold",
    "healthCheckNodePort",
    "hostPort",
    "initialDelaySeconds",
    "minReadySeconds",
    "nodePort",
    "successThreshold",
];

/// Scalars without a pointer that are left out when zero, wherever the kinds
/// have a field of this name; sorted.
const ZEROS: &[&str] = &[
    "description",
    "dnsPolicy",
    "effect",
    "externalName",
    "externalTrafficPolicy",
    "failureThreshold",
    "globalDefault",
    "healthCheckNodePort",
    "hostIP",
    "hostIPC",
    "hostNetwork",
    "hostPID",
    "hostPort",
    "hostname",
    "imagePullPolicy",
    "initialDelaySeconds",
    "loadBalancerIP",
    "medium",
    "minReadySeconds",
    "nodeName",
    "nodePort",
    "paused",
    "priorityClassName",
    "publishNotReadyAddresses",
    "schedulerName",
    "scheme",
    "serviceAccount",
    "serviceAccountName",
    "sessionAffinity",
    "stdin",
    "stdinOnce",
    "subPath",
    "subPathExpr",
    "subdomain",
    "successThreshold",
    "terminationMessagePath",
    "terminationMessagePolicy",
    "tty",
    "volumeNamespace",
    "workingDir",
];

/// As [`ZEROS`], for names that have other types elsewhere: the field that they
/// are in, and the name.
const ZEROS_IN: &[(&str, &str)] = &[
    ("env", "value"),
    ("nfs", "readOnly"),
    ("persistentVolumeClaim", "readOnly"),
    ("resourceFieldRef", "containerName"),
    ("spec", "preserveUnknownFields"),
    ("subjects", "apiGroup"),
    ("subjects", "namespace"),
    ("tls", "secretName"),
    ("tolerations", "key"),
    ("tolerations", "operator"),
    ("tolerations", "value"),
    ("volumeMounts", "readOnly"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zero_vanishes_where_it_has_the_type_of_its_field() {
        let table = [
            (Value::Bool(false), "tty", "containers", true),
            (Value::Bool(false), "namespace", "subjects", false),
            (Value::Bool(false), "hostPort", "ports", false),
            (Value::from(""), "namespace", "subjects", true),
            (Value::from(""), "tty", "containers", false),
            (Value::from(0), "hostPort", "ports", true),
            (Value::from(0), "subPath", "volumeMounts", false),
            (Value::Bool(false), "readOnly", "volumeMounts", true),
        ];
        for (value, name, container, expected) in table {
            let vanishes = vanishes(&value, name, container, "Pod");
            assert_eq!(vanishes, expected, "{container}.{name}: {value}");
        }
    }

    #[test]
    fn every_flag_and_number_is_a_scalar_that_vanishes() {
        for name in FLAGS.iter().chain(NUMBERS) {
            let is_known = ZEROS.contains(name) || ZEROS_IN.iter().any(|(_, known)| known == name);
            assert!(is_known, "{name}");
        }
    }

    #[test]
    fn names_are_sorted_so_that_they_can_be_searched() {
        assert!(ZEROS.is_sorted(), "{ZEROS:?}");
    }
}
