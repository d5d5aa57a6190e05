//! Leaves out the values of a manifest that say nothing: what is empty where the server makes no difference between
//! empty and absent.
//!
//! The server drops such a value, or puts a default in its place. So an apply of it would write each time (a
//! `NetworkPolicy` with `ingress: []` gets a new generation), conflict with the controller that fills the field in
//! (`rules: []` of an aggregated `ClusterRole`), or fail: `protocol: ""` is another key of a port than `TCP`.
//!
//! In the metadata of an object no empty value means anything. Of all other fields this is known for built-in kinds:
//! null is absent, and so is an empty list. Whether an empty text, number or map is, the `OpenAPI` document does not
//! say: if its Go field has `omitempty` and no pointer. These tables are typed from the `types.go` of every served
//! version (`k8s.io/api` 1.36).

use serde_json::{Map, Value, json};

use crate::model::built_in_kinds::TypeMeta;
use crate::model::identity::GroupVersionKind;
use crate::model::object::Object;

/// Leaves out what is empty in the metadata of an object of any kind.
pub(super) fn leave_out_of_metadata(metadata: &mut Map<String, Value>) {
    metadata.retain(|name, value| name == "name" || !is_empty(value));
}

/// Returns an object of a built-in kind without the empty values that the server would leave out, except in its
/// metadata.
pub(super) fn without_empty_values(gvk: &GroupVersionKind, object: Object) -> Object {
    let api_version = gvk.api_version();
    let type_meta = TypeMeta {
        api_version: &api_version,
        kind: &gvk.kind,
    };
    if !type_meta.is_built_in() || !object.may_have_empty_values() {
        return object;
    }
    let Value::Object(mut fields) = object.value() else {
        return object;
    };
    let root = Field {
        type_meta,
        around: "",
        container: "",
        name: "",
    };
    let metadata = fields.remove("metadata");
    root.leave_out_of(&mut fields);
    fields.extend(metadata.map(|metadata| ("metadata".to_owned(), metadata)));
    Object::of(&fields)
}

/// A field: its name, the names of the fields that it is in, and the kind of the object. Items of a list are in the
/// field of the list.
#[derive(Debug, Clone, Copy)]
struct Field<'a> {
    type_meta: TypeMeta<'a>,
    around: &'a str,
    container: &'a str,
    name: &'a str,
}

impl Field<'_> {
    fn leave_out_of(self, fields: &mut Map<String, Value>) {
        fields.retain(|name, value| {
            let field = Field {
                type_meta: self.type_meta,
                around: self.container,
                container: self.name,
                name,
            };
            field.clean(value);
            !field.leaves_out(value)
        });
    }

    fn clean(self, value: &mut Value) {
        match value {
            // A schema is data: there an absent value is not null.
            Value::Object(_) if self.name == "openAPIV3Schema" => {}
            Value::Object(fields) if self.type_meta.has_chosen_keys(self.name) => {
                for (name, value) in fields.iter_mut().filter(|(_, value)| value.is_null()) {
                    let is_quantity = self.type_meta.is_quantity(self.name, name);
                    *value = if is_quantity { json!("0") } else { json!("") };
                }
            }
            Value::Object(fields) => self.leave_out_of(fields),
            Value::Array(items) => items.iter_mut().for_each(|item| self.clean(item)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// Returns whether an object without this value is the same. A value of another type than that of its field is
    /// not left out, so that the server says what is wrong.
    fn leaves_out(self, value: &Value) -> bool {
        // The fields in the lists of an EndpointSlice are pointers: an explicit zero differs from an absent one.
        if self.type_meta.kind == "EndpointSlice" && !self.container.is_empty() {
            return value.is_null();
        }
        match value {
            Value::Null => true,
            Value::Array(items) => items.is_empty(),
            Value::Object(fields) if fields.is_empty() => self.is_one_of(MAPS) || self.is_selector_of_job(),
            Value::Bool(false) => self.is_one_of(FLAGS),
            Value::String(text) if text.is_empty() => self.is_one_of(TEXTS) && !self.is_pointer_to_protocol(),
            Value::Number(number) if number.as_i64() == Some(0) => self.is_one_of(NUMBERS),
            _ => false,
        }
    }

    fn is_one_of(self, names: &[&str]) -> bool {
        let path = format!("{}.{}", self.container, self.name);
        names.contains(&self.name) || names.contains(&path.as_str())
    }

    /// Returns whether it is the selector that the server makes for a `Job` (`pkg/registry/batch/job/strategy.go`).
    fn is_selector_of_job(self) -> bool {
        let is_of_job = matches!(
            (self.type_meta.kind, self.around),
            ("Job", "") | ("CronJob", "jobTemplate")
        );
        is_of_job && self.container == "spec" && self.name == "selector"
    }

    fn is_pointer_to_protocol(self) -> bool {
        self.type_meta.kind == "NetworkPolicy" && self.name == "protocol"
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_i64() == Some(0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
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
    "ports.protocol",
    "priorityClassName",
    "resourceFieldRef.containerName",
    "schedulerName",
    "scheme",
    "serviceAccount",
    "serviceAccountName",
    "sessionAffinity",
    "secrets.name",
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

/// Maps; a struct is written whether it is empty or not.
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
    use super::*;

    fn cleaned(api_version: &str, kind: &str, fields: &Value) -> Value {
        let gvk = GroupVersionKind::from_api_version(api_version, kind);
        let mut cleaned = without_empty_values(&gvk, Object::from(fields)).value();
        // Every object has some.
        cleaned
            .as_object_mut()
            .and_then(|fields| fields.remove("metadata"));
        cleaned
    }

    #[test]
    fn what_says_nothing_is_left_out() {
        let table = [
            (
                "networking.k8s.io/v1",
                "NetworkPolicy",
                json!({"spec": {"ingress": []}}),
                json!({"spec": {}}),
            ),
            (
                "networking.k8s.io/v1",
                "NetworkPolicy",
                json!({"spec": {"podSelector": {"matchLabels": {}}, "ingress": [{"ports": [{"protocol": ""}]}]}}),
                json!({"spec": {"podSelector": {}, "ingress": [{"ports": [{"protocol": ""}]}]}}),
            ),
            (
                "v1",
                "Service",
                json!({"spec": {"ports": [{"port": 80, "protocol": "", "name": null}], "selector": {"a": null}}}),
                json!({"spec": {"ports": [{"port": 80}], "selector": {"a": ""}}}),
            ),
            (
                "rbac.authorization.k8s.io/v1",
                "ClusterRole",
                json!({"aggregationRule": {"clusterRoleSelectors": []}, "rules": []}),
                json!({"aggregationRule": {}}),
            ),
            (
                "batch/v1",
                "Job",
                json!({"spec": {"selector": {}}}),
                json!({"spec": {}}),
            ),
            (
                "v1",
                "Pod",
                json!({"spec": {"volumes": [{"emptyDir": {}}], "containers": [
                    {"tty": false, "resources": {"limits": {"cpu": null}, "requests": {}}, "env": [{"value": ""}], "args": []},
                ]}}),
                json!({"spec": {"volumes": [{"emptyDir": {}}], "containers": [
                    {"resources": {"limits": {"cpu": "0"}}, "env": [{}]},
                ]}}),
            ),
            (
                "v1",
                "Secret",
                json!({"data": {"k": null, "j": ""}}),
                json!({"data": {"k": "", "j": ""}}),
            ),
        ];
        for (api_version, kind, fields, expected) in table {
            assert_eq!(cleaned(api_version, kind, &fields), expected, "{fields}");
        }
    }

    #[test]
    fn what_says_something_stays() {
        for (api_version, kind, fields) in [
            (
                "apps/v1",
                "Deployment",
                json!({"spec": {"replicas": 0, "paused": "", "template": {"metadata": {}}}}),
            ),
            ("v1", "ConfigMap", json!({"data": {"hostname": "", "labels": ""}})),
            (
                "v1",
                "Pod",
                json!({"spec": {"securityContext": {}, "automountServiceAccountToken": false}}),
            ),
            (
                "discovery.k8s.io/v1",
                "EndpointSlice",
                json!({"ports": [{"name": ""}], "endpoints": [{"zone": "", "addresses": []}]}),
            ),
            (
                "apiextensions.k8s.io/v1",
                "CustomResourceDefinition",
                json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": {"default": null, "enum": []}}}]}}),
            ),
            ("example.com/v1", "Service", json!({"spec": {"ports": []}})),
        ] {
            assert_eq!(cleaned(api_version, kind, &fields), fields);
        }
    }

    #[test]
    fn nothing_empty_in_metadata_means_anything() {
        let mut metadata = json!({
            "name": "", "labels": {}, "annotations": null, "finalizers": [], "generateName": "", "generation": 0,
            "ownerReferences": [{}],
        });
        let fields = metadata.as_object_mut().expect("a mapping");
        leave_out_of_metadata(fields);
        assert_eq!(metadata, json!({"name": "", "ownerReferences": [{}]}));
    }
}
