//! What becomes of the Pods and `PersistentVolumeClaim`s of an object that is deleted and created again.

use serde_json::Value;

use crate::event::Claims;
use crate::manifest::desired::DesiredObject;
use crate::model::identity::GroupKind;

/// Returns whether the new object adopts the Pods of the live one, if the live one is deleted without its Pods. A
/// `StatefulSet` adopts the Pods that its selector matches: they keep running, and their claims stay.
fn adopts_pods(object: &DesiredObject, live: &Value) -> bool {
    object.key.group_kind == GroupKind::new("apps", "StatefulSet")
        && matches_labels(
            &object.object.value()["spec"]["selector"],
            &live["spec"]["template"]["metadata"]["labels"],
        )
}

/// Returns whether a selector matches these labels (`LabelSelectorAsSelector` in
/// `k8s.io/apimachinery/pkg/apis/meta/v1/helpers.go`).
fn matches_labels(selector: &Value, labels: &Value) -> bool {
    let mut pairs = selector["matchLabels"].as_object().into_iter().flatten();
    let mut requirements = selector["matchExpressions"].as_array().into_iter().flatten();
    pairs.all(|(key, value)| labels.get(key) == Some(value))
        && requirements.all(|requirement| meets_requirement(labels, requirement))
}

fn meets_requirement(labels: &Value, requirement: &Value) -> bool {
    let value = requirement["key"].as_str().and_then(|key| labels.get(key));
    let values = requirement["values"].as_array();
    let is_listed = values.is_some_and(|values| value.is_some_and(|value| values.contains(value)));
    match requirement["operator"].as_str() {
        Some("In") => is_listed,
        Some("NotIn") => !is_listed,
        Some("Exists") => value.is_some(),
        Some("DoesNotExist") => value.is_none(),
        // The server refuses a selector with any other operator.
        _ => false,
    }
}

/// Returns what becomes of the claims of the live object, and of their data, if the object is recreated.
pub fn claims_after_recreation(object: &DesiredObject, live: &Value) -> Claims {
    if adopts_pods(object, live) {
        Claims::Stay
    } else if describe_lost_volume_data(&object.key.group_kind, live).is_some() {
        Claims::Lost
    } else {
        Claims::NotTouched
    }
}

/// Returns the data that is deleted with an object and that no manifest holds, as words for a message; `None` if there
/// is no such data.
pub fn describe_lost_volume_data(kind: &GroupKind, live: &Value) -> Option<&'static str> {
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "PersistentVolumeClaim") => Some("the data of its volume"),
        ("", "PersistentVolume") => Some("the data of the volume"),
        ("apps", "StatefulSet") => {
            let policy = &live["spec"]["persistentVolumeClaimRetentionPolicy"]["whenDeleted"];
            (policy == "Delete").then_some("the data of its volumes")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::object::Object;
    use crate::plan::fixtures::desired;
    use serde_json::json;

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
            assert_eq!(
                matches_labels(&selector, &json!({"app": "db"})),
                expected,
                "{selector}"
            );
        }
    }

    #[test]
    fn claims_stay_with_pods_that_are_adopted_and_else_follow_the_policy() {
        let table = [
            ("StatefulSet.apps", "db", "Delete", Claims::Stay),
            ("StatefulSet.apps", "db", "Retain", Claims::Stay),
            ("StatefulSet.apps", "other", "Delete", Claims::Lost),
            ("StatefulSet.apps", "other", "Retain", Claims::NotTouched),
            ("Deployment.apps", "db", "Delete", Claims::NotTouched),
        ];
        for (kind, app, policy, expected) in table {
            let selector = json!({"matchLabels": {"app": app}});
            let object = DesiredObject {
                object: Object::from(&json!({"metadata": {"name": "db"}, "spec": {"selector": selector}})),
                ..desired(kind, Some("shop"), "db")
            };
            let live = json!({"spec": {
                "template": {"metadata": {"labels": {"app": "db"}}},
                "persistentVolumeClaimRetentionPolicy": {"whenDeleted": policy},
            }});
            assert_eq!(
                claims_after_recreation(&object, &live),
                expected,
                "{kind} {app} {policy}"
            );
        }
    }
}
