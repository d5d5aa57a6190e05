//! What becomes of the claims of an object that is deleted and created again.

use serde_json::Value;

use super::adopts_pods;
use crate::event::Claims;
use crate::manifest::desired::DesiredObject;
use crate::model::identity::GroupKind;

/// Returns what becomes of the claims of the live object, and of the data in them.
pub fn claims_after_recreation(object: &DesiredObject, live: &Value) -> Claims {
    if adopts_pods(object, live) {
        Claims::Stay
    } else if data_of_volumes(&object.key.group_kind, live).is_some() {
        Claims::Lost
    } else {
        Claims::NotTouched
    }
}

/// Returns the data that is deleted with an object, and in no manifest.
pub fn data_of_volumes(kind: &GroupKind, live: &Value) -> Option<&'static str> {
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
    use serde_json::json;

    use super::super::fixtures::desired;
    use super::*;
    use crate::model::object::Object;

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
