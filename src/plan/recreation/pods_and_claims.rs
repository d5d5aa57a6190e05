//! What becomes of the Pods and `PersistentVolumeClaim`s of an object that is deleted and created again.

use serde_json::Value;

use crate::event::Claims;
use crate::manifest::desired::DesiredObject;
use crate::model::identity::GroupKind;

/// Returns whether the new object adopts the Pods of the live one, if the live one is deleted without its Pods. A
/// `StatefulSet` adopts the Pods that its selector matches: they keep running, and their claims stay.
///
/// The live template does not tell: Pods of an earlier template may lack its labels. But all Pods match the live
/// selector.
fn adopts_pods(object: &DesiredObject, live: &Value) -> bool {
    object.key.group_kind == GroupKind::new("apps", "StatefulSet")
        && implies(
            &live["spec"]["selector"],
            &object.object.value()["spec"]["selector"],
        )
}

/// Returns whether everything that one selector matches is known to match the other.
fn implies(selector: &Value, other: &Value) -> bool {
    let labels = &selector["matchLabels"];
    let requirements = selector["matchExpressions"].as_array();
    let mut pairs = other["matchLabels"].as_object().into_iter().flatten();
    let mut other_requirements = other["matchExpressions"].as_array().into_iter().flatten();
    pairs.all(|(key, value)| labels.get(key) == Some(value))
        && other_requirements.all(|requirement| {
            requirements.is_some_and(|requirements| requirements.contains(requirement))
                || is_surely_met_by_known_labels(labels, requirement)
        })
}

/// Returns whether an object that has these labels, perhaps among others, meets a requirement.
fn is_surely_met_by_known_labels(known_labels: &Value, requirement: &Value) -> bool {
    let Some(value) = requirement["key"].as_str().and_then(|key| known_labels.get(key)) else {
        return false;
    };
    let is_listed = requirement["values"]
        .as_array()
        .is_some_and(|values| values.contains(value));
    match requirement["operator"].as_str() {
        Some("In") => is_listed,
        Some("NotIn") => !is_listed,
        Some("Exists") => true,
        // The server refuses a selector with any other operator than these and `DoesNotExist`.
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
    fn pods_are_adopted_if_their_selector_implies_the_new_one() {
        let expression = |key, operator, values| json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
        let live = json!({
            "matchLabels": {"app": "db"},
            "matchExpressions": [{"key": "old", "operator": "DoesNotExist"}],
        });
        for (selector, expected) in [
            (json!({"matchLabels": {"app": "db"}}), true),
            (
                json!({"matchLabels": {"app": "db"}, "matchExpressions": []}),
                true,
            ),
            (live.clone(), true),
            (json!({"matchLabels": {"app": "other"}}), false),
            // The template may have had this label for a part of the Pods only.
            (json!({"matchLabels": {"app": "db", "tier": "x"}}), false),
            (expression("app", "In", json!(["x", "db"])), true),
            (expression("app", "In", json!(["x"])), false),
            (expression("tier", "In", json!(["x"])), false),
            (expression("app", "NotIn", json!(["db"])), false),
            (expression("app", "NotIn", json!(["x"])), true),
            (expression("tier", "NotIn", json!(["db"])), false),
            (expression("app", "Exists", json!(null)), true),
            (expression("tier", "Exists", json!(null)), false),
            (expression("app", "DoesNotExist", json!(null)), false),
            (expression("tier", "DoesNotExist", json!(null)), false),
        ] {
            assert_eq!(implies(&live, &selector), expected, "{selector}");
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
                "selector": {"matchLabels": {"app": "db"}},
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
