//! Leaves out the values of a manifest that have no effect: nulls, empty values in metadata, and a few empty values of
//! built-in kinds that the server replaces.
//!
//! - The server drops a null, or puts a default in its place. So each apply of a null would write the object again, or
//!   fail. Under a key that people choose, the server even turns a null into an empty text or the quantity 0. kubectl
//!   apply drops nulls as well. It also clears the value that others have written to the field, which we do not.
//! - In the metadata of an object, no empty value has an effect.
//! - The server replaces an empty `protocol` by `TCP`, so that the port has another key. It makes the selector of a
//!   Job. A controller fills in the `rules` of an aggregated `ClusterRole`.
//!
//! Any other empty value is sent, because it clears the value of another manager (`ingress: []` of a `NetworkPolicy`).
//! The comparison (`compare/changes`) decides if the live value is the same, written in another way.

use serde_json::{Map, Value};

use crate::model::built_in_kinds::TypeMeta;
use crate::model::identity::GroupVersionKind;
use crate::model::object::Object;

/// Removes from the metadata of an object of any kind what has no effect: empty values and zeros, `selfLink`, and
/// labels and annotations that are null.
pub fn remove_empty_metadata(metadata: &mut Map<String, Value>) {
    for field in ["labels", "annotations"] {
        if let Some(Value::Object(pairs)) = metadata.get_mut(field) {
            pairs.retain(|_, value| !value.is_null());
        }
    }
    // The server resets `selfLink`, and never records an owner of it.
    metadata.retain(|name, value| name != "selfLink" && !is_empty_or_zero(value));
}

/// Removes nulls, and the empty values that the server replaces, from an object of a built-in kind. Its metadata stay.
pub(super) fn remove_empty_values(gvk: &GroupVersionKind, object: Object) -> Object {
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
    let root = NestedField {
        type_meta,
        around: "",
        container: "",
        name: "",
    };
    let metadata = fields.remove("metadata");
    root.remove_empty_fields(&mut fields);
    if fields.contains_key("aggregationRule") && fields.get("rules").is_some_and(is_empty_or_zero) {
        fields.remove("rules");
    }
    fields.extend(metadata.map(|metadata| ("metadata".to_owned(), metadata)));
    Object::from_fields(&fields)
}

/// A field, with the names of the two fields around it, and the kind of the object. The fields of a list item have the
/// list as their container.
#[derive(Debug, Clone, Copy)]
struct NestedField<'a> {
    type_meta: TypeMeta<'a>,
    /// The field that holds the container; empty at the top of the object.
    around: &'a str,
    /// The field that holds this field; empty at the top of the object.
    container: &'a str,
    name: &'a str,
}

impl NestedField<'_> {
    /// Leaves out empty values of the fields of this field.
    fn remove_empty_fields(self, fields: &mut Map<String, Value>) {
        let is_manual = fields.get("manualSelector") == Some(&Value::Bool(true));
        fields.retain(|name, value| {
            let field = NestedField {
                type_meta: self.type_meta,
                around: self.container,
                container: self.name,
                name,
            };
            field.remove_empty_values_within(value);
            !field.is_without_effect(value) || (is_manual && field.is_job_selector())
        });
    }

    fn remove_empty_values_within(self, value: &mut Value) {
        match value {
            // In a schema a null may be a value, for example in an `enum`.
            Value::Object(_) if self.name == "openAPIV3Schema" => {}
            Value::Object(fields) => self.remove_empty_fields(fields),
            Value::Array(items) => items
                .iter_mut()
                .for_each(|item| self.remove_empty_values_within(item)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// Returns whether the value of this field has no effect, so that an object without it is the same.
    fn is_without_effect(self, value: &Value) -> bool {
        match value {
            Value::Null => true,
            Value::String(text) => text.is_empty() && self.is_replaced_if_empty(),
            Value::Object(fields) => fields.values().all(is_empty_or_zero) && self.is_job_selector(),
            Value::Array(items) => items.is_empty() && self.is_replaced_if_empty(),
            Value::Bool(_) | Value::Number(_) => false,
        }
    }

    /// Returns whether an empty value of this field does not stay: the server drops it or puts a default in its place,
    /// or, for `caBundle`, a CA injector fills it in.
    fn is_replaced_if_empty(self) -> bool {
        match (self.type_meta.kind, self.container, self.name) {
            ("NetworkPolicy", "spec", "policyTypes") => true,
            // In these kinds an empty `protocol` is invalid, so the server is to report it.
            ("NetworkPolicy" | "EndpointSlice", ..) => false,
            (_, "ports", "protocol")
            | ("ServiceAccount", "secrets", "name")
            | (_, "clientConfig", "caBundle") => true,
            _ => false,
        }
    }

    /// Returns whether this field is the selector that the server makes for a Job
    /// (`pkg/registry/batch/job/strategy.go`).
    fn is_job_selector(self) -> bool {
        let is_in_job = matches!(
            (self.type_meta.kind, self.around),
            ("Job", "") | ("CronJob", "jobTemplate")
        );
        is_in_job && self.container == "spec" && self.name == "selector"
    }
}

/// Returns whether a value has no content.
fn is_empty_or_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(_) => false,
        Value::Number(number) => number.as_i64() == Some(0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cleaned(api_version: &str, kind: &str, fields: &Value) -> Value {
        let gvk = GroupVersionKind::from_api_version(api_version, kind);
        let mut cleaned = remove_empty_values(&gvk, Object::from(fields)).value();
        // Every object has some.
        cleaned
            .as_object_mut()
            .and_then(|fields| fields.remove("metadata"));
        cleaned
    }

    #[test]
    fn what_means_nothing_is_left_out() {
        let table = [
            (
                "v1",
                "Service",
                json!({"spec": {"ports": [{"port": 80, "protocol": "", "name": null}], "selector": {"a": null}}}),
                json!({"spec": {"ports": [{"port": 80}], "selector": {}}}),
            ),
            (
                "rbac.authorization.k8s.io/v1",
                "ClusterRole",
                json!({"aggregationRule": {"clusterRoleSelectors": []}, "rules": []}),
                json!({"aggregationRule": {"clusterRoleSelectors": []}}),
            ),
            (
                "batch/v1",
                "Job",
                json!({"spec": {"selector": {}}}),
                json!({"spec": {}}),
            ),
            (
                "admissionregistration.k8s.io/v1",
                "ValidatingWebhookConfiguration",
                json!({"webhooks": [{"clientConfig": {"url": "https://a", "caBundle": ""}}]}),
                json!({"webhooks": [{"clientConfig": {"url": "https://a"}}]}),
            ),
            (
                "apiextensions.k8s.io/v1",
                "CustomResourceDefinition",
                json!({"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": ""}}}}}),
                json!({"spec": {"conversion": {"webhook": {"clientConfig": {}}}}}),
            ),
            (
                "batch/v1",
                "CronJob",
                json!({"spec": {"jobTemplate": {"spec": {"selector": {"matchLabels": {}, "matchExpressions": []}}}}}),
                json!({"spec": {"jobTemplate": {"spec": {}}}}),
            ),
            (
                "v1",
                "Pod",
                json!({"spec": {"containers": [{"resources": {"limits": {"cpu": null}}, "env": null}]}}),
                json!({"spec": {"containers": [{"resources": {"limits": {}}}]}}),
            ),
            (
                "networking.k8s.io/v1",
                "NetworkPolicy",
                json!({"spec": {"policyTypes": [], "ingress": []}}),
                json!({"spec": {"ingress": []}}),
            ),
            (
                "v1",
                "Secret",
                json!({"data": {"k": null, "j": ""}}),
                json!({"data": {"j": ""}}),
            ),
            (
                "apps/v1",
                "Deployment",
                json!({"spec": {"template": {"metadata": {"labels": {"a": null}}, "spec": {"nodeSelector": {"z": null}}}}}),
                json!({"spec": {"template": {"metadata": {"labels": {}}, "spec": {"nodeSelector": {}}}}}),
            ),
        ];
        for (api_version, kind, fields, expected) in table {
            assert_eq!(cleaned(api_version, kind, &fields), expected, "{fields}");
        }
    }

    #[test]
    fn what_means_something_stays() {
        for (api_version, kind, fields) in [
            (
                "apps/v1",
                "Deployment",
                json!({"spec": {"replicas": 0, "paused": false, "template": {"metadata": {}}}}),
            ),
            ("v1", "ConfigMap", json!({"data": {"hostname": "", "labels": ""}})),
            (
                "networking.k8s.io/v1",
                "NetworkPolicy",
                json!({"spec": {"ingress": [], "egress": [{"ports": [{"protocol": ""}]}]}}),
            ),
            (
                "discovery.k8s.io/v1",
                "EndpointSlice",
                json!({"ports": [], "endpoints": [{"zone": ""}]}),
            ),
            (
                "rbac.authorization.k8s.io/v1",
                "ClusterRole",
                json!({"rules": []}),
            ),
            (
                "apiextensions.k8s.io/v1",
                "CustomResourceDefinition",
                json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": {"default": null, "enum": []}}}]}}),
            ),
            ("example.com/v1", "Service", json!({"spec": {"ports": null}})),
            (
                "batch/v1",
                "Job",
                json!({"spec": {"manualSelector": true, "selector": {"matchLabels": {}}}}),
            ),
        ] {
            assert_eq!(cleaned(api_version, kind, &fields), fields);
        }
    }

    #[test]
    fn nothing_empty_in_metadata_means_anything() {
        let mut metadata = json!({
            "name": "", "labels": {"a": null}, "annotations": null, "finalizers": [], "generateName": "", "generation": 0,
            "ownerReferences": [{}], "selfLink": "/api/v1/things/x",
        });
        let fields = metadata.as_object_mut().expect("a mapping");
        remove_empty_metadata(fields);
        assert_eq!(metadata, json!({"ownerReferences": [{}]}));
    }
}
