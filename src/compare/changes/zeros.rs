//! Values of built-in kinds that the server leaves out because they are zero.
//!
//! The `OpenAPI` document does not say which: a value is left out if its Go field has
//! `omitempty` and no pointer. The tables are typed from the `types.go` of every served version
//! (`k8s.io/api` 1.36).

use serde_json::{Value, json};

use super::defaults::Field;

/// Returns whether a field without this value is the same: a scalar that is zero and has the
/// type of its field (of another type the server says that it is wrong), or an empty map.
pub(super) fn is_left_out(value: &Value, field: Field<'_>) -> bool {
    zero_of(field.container, field.name).is_some_and(|zero| zero == *value)
}

/// Returns the value that the server leaves out of a field of a built-in kind, if it leaves one out.
pub(in crate::compare) fn zero_of(container: &str, name: &str) -> Option<Value> {
    let path = format!("{container}.{name}");
    let tables = [
        (FLAGS, json!(false)),
        (NUMBERS, json!(0)),
        (TEXTS, json!("")),
        (MAPS, json!({})),
        (LISTS, json!([])),
    ];
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

/// The lists that manifests have empty; the server leaves out every empty list.
const LISTS: &[&str] = &[
    "accessModes",
    "add",
    "allowedTopologies",
    "args",
    "command",
    "drop",
    "egress",
    "env",
    "envFrom",
    "finalizers",
    "hostAliases",
    "imagePullSecrets",
    "ingress",
    "initContainers",
    "matchConditions",
    "matchExpressions",
    "mountOptions",
    "nameservers",
    "options",
    "ownerReferences",
    "ports",
    "resourceNames",
    "rules",
    "searches",
    "secrets",
    "spec.limits",
    "subjects",
    "supplementalGroups",
    "sysctls",
    "tls",
    "tolerations",
    "topologySpreadConstraints",
    "volumeClaimTemplates",
    "volumeDevices",
    "volumeMounts",
    "volumes",
    "webhooks",
];

#[cfg(test)]
mod tests {
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
            (json!({}), "limits", "resources", true),
            (json!([]), "limits", "spec", true),
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
