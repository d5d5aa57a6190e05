//! The Pods that a new `StatefulSet` adopts from the one that it replaces.

use serde_json::Value;

use crate::manifest::desired::DesiredObject;
use crate::model::identity::GroupKind;

/// Returns whether the new object adopts the Pods of the live one, if they are left to it. A `StatefulSet` adopts those
/// that its selector matches, so they keep running, and their claims stay with them.
pub fn adopts_pods(object: &DesiredObject, live: &Value) -> bool {
    object.key.group_kind == GroupKind::new("apps", "StatefulSet")
        && selects(
            &object.object.value()["spec"]["selector"],
            &live["spec"]["template"]["metadata"]["labels"],
        )
}

/// Returns whether a selector matches these labels (`LabelSelectorAsSelector` in
/// `k8s.io/apimachinery/pkg/apis/meta/v1/helpers.go`).
fn selects(selector: &Value, labels: &Value) -> bool {
    let mut pairs = selector["matchLabels"].as_object().into_iter().flatten();
    let mut requirements = selector["matchExpressions"].as_array().into_iter().flatten();
    pairs.all(|(key, value)| labels.get(key) == Some(value))
        && requirements.all(|requirement| meets(labels, requirement))
}

fn meets(labels: &Value, requirement: &Value) -> bool {
    let value = requirement["key"].as_str().and_then(|key| labels.get(key));
    let values = requirement["values"].as_array();
    let is_listed = values.is_some_and(|values| value.is_some_and(|value| values.contains(value)));
    match requirement["operator"].as_str() {
        Some("In") => is_listed,
        Some("NotIn") => !is_listed,
        Some("Exists") => value.is_some(),
        Some("DoesNotExist") => value.is_none(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_selector_that_is_written_in_another_way_selects_the_same() {
        let expression = |key, operator, values| json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
        for (selector, expected) in [
            (json!({"matchLabels": {"app": "db"}}), true),
            (
                json!({"matchLabels": {"app": "db"}, "matchExpressions": []}),
                true,
            ),
            (json!({"matchLabels": {"app": "other"}}), false),
            (json!({"matchLabels": {"app": "db", "tier": "x"}}), false),
            (expression("app", "In", json!(["x", "db"])), true),
            (expression("app", "In", json!(["x"])), false),
            (expression("tier", "In", json!(["x"])), false),
            (expression("app", "NotIn", json!(["db"])), false),
            (expression("tier", "NotIn", json!(["db"])), true),
            (expression("app", "Exists", json!(null)), true),
            (expression("tier", "Exists", json!(null)), false),
            (expression("app", "DoesNotExist", json!(null)), false),
            (expression("tier", "DoesNotExist", json!(null)), true),
        ] {
            assert_eq!(selects(&selector, &json!({"app": "db"})), expected, "{selector}");
        }
    }
}
