//! Values of built-in kinds that the server leaves out because they are zero.
//!
//! The `OpenAPI` document does not say which scalars: a value is left out if its Go field has
//! `omitempty` and no pointer. The tables are typed from the `types.go` of every served version
//! (`k8s.io/api` 1.36).

use serde_json::{Value, json};

use super::server_writes_as::FieldOfKind;
use crate::model::built_in_kinds::{Ownership, TypeMeta};

/// Returns whether the server leaves this value out: a zero that has the type of its field, or an empty map whose keys
/// people choose. A zero of another type is an error, which the server is to report.
pub(super) fn is_omitted_zero(value: &Value, field: FieldOfKind<'_>) -> bool {
    match value {
        Value::Object(fields) => fields.is_empty() && field.type_meta.has_user_chosen_keys(field.name),
        value => scalar_zero(field.container, field.name).is_some_and(|zero| zero == *value),
    }
}

/// Returns the empty value of a field of a built-in kind, as far as the type of the field is known.
pub(in crate::compare) fn zero_of(type_meta: TypeMeta<'_>, container: &str, name: &str) -> Option<Value> {
    let path = format!("{container}.{name}");
    scalar_zero(container, name).or_else(|| {
        if type_meta.map_ownership(name) != Ownership::Unknown && !LISTS.contains(&path.as_str()) {
            Some(json!({}))
        } else {
            (type_meta.list_ownership(name) != Ownership::Unknown).then(|| json!([]))
        }
    })
}

fn scalar_zero(container: &str, name: &str) -> Option<Value> {
    let path = format!("{container}.{name}");
    let tables = [(FLAGS, json!(false)), (NUMBERS, json!(0)), (TEXTS, json!(""))];
    [path.as_str(), name]
        .into_iter()
        .find_map(|name| tables.iter().find(|(names, _)| names.contains(&name)))
        .map(|(_, zero)| zero.clone())
}

/// Booleans. A name that has another type elsewhere is `CONTAINER.NAME`, here and below.
const FLAGS: &[&str] = &[
    "globalDefault",
    "hostIPC",
    "hostNetwork",
    "hostPID",
    "nfs.readOnly",
    "paused",
    "persistentVolumeClaim.readOnly",
    "publishNotReadyAddresses",
    "spec.preserveUnknownFields",
    "stdin",
    "stdinOnce",
    "tty",
    "volumeMounts.readOnly",
];

const NUMBERS: &[&str] = &[
    "failureThreshold",
    "healthCheckNodePort",
    "hostPort",
    "initialDelaySeconds",
    "minReadySeconds",
    "nodePort",
    "successThreshold",
];

const TEXTS: &[&str] = &[
    "description",
    "dnsPolicy",
    "effect",
    "env.value",
    "envFrom.prefix",
    "externalName",
    "externalTrafficPolicy",
    "hostIP",
    "hostname",
    "httpGet.host",
    "imagePullPolicy",
    "loadBalancerIP",
    "medium",
    "nodeName",
    "ports.name",
    "priorityClassName",
    "resourceFieldRef.containerName",
    "schedulerName",
    "scheme",
    "serviceAccount",
    "serviceAccountName",
    "sessionAffinity",
    "subPath",
    "subPathExpr",
    "subdomain",
    "subjects.apiGroup",
    "subjects.namespace",
    "terminationMessagePath",
    "terminationMessagePolicy",
    "tls.secretName",
    "tolerations.key",
    "tolerations.operator",
    "tolerations.value",
    "volumeName",
    "volumeNamespace",
    "workingDir",
];

/// Lists with the name of a map of the same kind.
const LISTS: &[&str] = &[
    "dnsConfig.options",
    "podAffinity.requiredDuringSchedulingIgnoredDuringExecution",
    "podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zero_is_left_out_if_it_has_the_type_of_its_field() {
        let type_meta = TypeMeta {
            api_version: "v1",
            kind: "Pod",
        };
        let table = [
            (json!(false), "tty", "containers", true),
            (json!(false), "namespace", "subjects", false),
            (json!(false), "hostPort", "ports", false),
            (json!(""), "namespace", "subjects", true),
            (json!(""), "tty", "containers", false),
            (json!(0), "hostPort", "ports", true),
            (json!(0), "subPath", "volumeMounts", false),
            (json!(false), "readOnly", "volumeMounts", true),
            (json!(false), "readOnly", "rules", false),
            (json!({}), "labels", "metadata", true),
            (json!(true), "tty", "containers", false),
            (json!({}), "limits", "resources", true),
        ];
        for (value, name, container, expected) in table {
            let field = FieldOfKind {
                type_meta,
                container,
                name,
            };
            assert_eq!(
                is_omitted_zero(&value, field),
                expected,
                "{container}.{name}: {value}"
            );
        }
    }
}
