//! Turns the `stringData` of a Secret into the `data` that the server makes of it.
//!
//! The server does not store `stringData`: it writes the values into `data`, but records the owner of `stringData` and
//! not of `data`. So the values would have no owner. A key that leaves the manifest would stay in the Secret, and an
//! apply would overwrite the value of another field manager without a conflict. Values that we send as `data` are owned
//! like any other field.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value};

use crate::model::identity::GroupVersionKind;
use crate::model::object::Object;

/// Returns the object with `data` in place of `stringData`, by the rule of `Convert_v1_Secret_To_core_Secret` in
/// `pkg/apis/core/v1/conversion.go`: if both have a key, the value of `stringData` counts. An invalid Secret stays as
/// it is, so that the server rejects it. Nulls must have been left out before.
pub(super) fn move_string_data(gvk: &GroupVersionKind, object: Object) -> Object {
    let is_secret = gvk.group.is_empty() && gvk.version == "v1" && gvk.kind == "Secret";
    // Most Secrets have no `stringData`, and need not be parsed.
    if !is_secret || !object.may_mention_key("stringData") {
        return object;
    }
    match object.value() {
        Value::Object(fields) => {
            merge_into_data(fields).map_or(object, |fields| Object::from_fields(&fields))
        }
        _ => object,
    }
}

/// Returns the fields with `data` in place of `stringData`; `None` if there is no `stringData`, or one of the two is
/// invalid.
fn merge_into_data(mut fields: Map<String, Value>) -> Option<Map<String, Value>> {
    let Value::Object(typed) = fields.remove("stringData")? else {
        return None;
    };
    if typed.is_empty() {
        return Some(fields);
    }
    let entry = fields.entry("data").or_insert_with(|| Value::Object(Map::new()));
    let data = entry.as_object_mut()?;
    for (key, value) in typed {
        data.insert(key, Value::String(BASE64.encode(value.as_str()?)));
    }
    Some(fields)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of_kind(api_version: &str, kind: &str, fields: &Value) -> Value {
        let gvk = GroupVersionKind::from_api_version(api_version, kind);
        move_string_data(&gvk, Object::from(fields)).value()
    }

    #[test]
    fn string_data_becomes_the_data_that_the_server_makes_of_it() {
        let table = [
            (json!({"stringData": {"a": "x"}}), json!({"data": {"a": "eA=="}})),
            (
                json!({"stringData": {"a": "x"}, "data": {"a": "eQ==", "b": "eg=="}}),
                json!({"data": {"a": "eA==", "b": "eg=="}}),
            ),
            (
                json!({"stringData": {"b": "ü\n", "c": ""}}),
                json!({"data": {"b": "w7wK", "c": ""}}),
            ),
            (json!({"stringData": {}}), json!({})),
            (json!({"data": {}}), json!({"data": {}})),
        ];
        for (mut written, mut sent) in table {
            for fields in [&mut written, &mut sent] {
                fields["metadata"] = json!({"name": "s"});
            }
            assert_eq!(of_kind("v1", "Secret", &written), sent, "{written}");
        }
    }

    #[test]
    fn what_the_server_refuses_it_is_shown_as_it_was_written() {
        for fields in [
            json!({"stringData": "x", "metadata": {}}),
            json!({"stringData": {"a": 5, "b": "x"}, "metadata": {}}),
            json!({"stringData": {"a": {"b": "x"}}, "metadata": {}}),
            json!({"stringData": {"a": "x"}, "data": "eA==", "metadata": {}}),
        ] {
            assert_eq!(of_kind("v1", "Secret", &fields), fields);
        }
    }

    #[test]
    fn other_kinds_may_have_a_field_of_this_name() {
        let fields = json!({"stringData": {"a": "x"}, "metadata": {}});
        for (api_version, kind) in [("example.com/v1", "Secret"), ("v1", "ConfigMap")] {
            assert_eq!(of_kind(api_version, kind, &fields), fields);
        }
    }
}
