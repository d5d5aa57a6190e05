//! Values of built-in kinds that the server leaves out because they are zero.
//!
//! The `OpenAPI` document does not say which: a value is left out if its Go field has
//! `omitempty` and no pointer. The tables are typed from the `types.go` of every served version
//! (`k8s.io/api` 1.36).

use serde_json::Value;

use super::defaults::Field;

/// Returns whether a field without this value is the same: a scalar that is zero and has the
/// type of its field (of another type the server says that it is wrong), or an empty map.
pub(super) fn is_left_out(value: &Value, field: Field<'_>) -> bool {
    let names = match value {
        Value::Bool(false) => FLAGS,
        Value::String(text) if text.is_empty() => TEXTS,
        Value::Number(number) if number.as_i64() == Some(0) => NUMBERS,
        Value::Object(fields) if fields.is_empty() => MAPS,
        _ => return false,
    };
    let path = format!("{}.{}", field.container, field.name);
    names.contains(&field.name) || names.contains(&path.as_str())
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
    "externalName",
    "externalTrafficPolicy",
    "hostIP",
    "hostname",
    "imagePullPolicy",
    "loadBalancerIP",
    "medium",
    "nodeName",
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

const MAPS: &[&str] = &[
    "annotations",
    "binaryData",
    "data",
    "labels",
    "limits",
    "matchLabels",
    "nodeSelector",
    "requests",
];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::built_in_kinds::TypeMeta;

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
        ];
        for (value, name, container, expected) in table {
            let field = Field {
                type_meta,
                container,
                name,
            };
            assert_eq!(
                is_left_out(&value, field),
                expected,
                "{container}.{name}: {value}"
            );
        }
    }
}
