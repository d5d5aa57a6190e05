//! The hand-over of the number of replicas: what happens to it when it leaves the manifest of an object.
//!
//! An autoscaler that targets the object needs the live value. Without one, the manifest decides, and
//! the server fills in the default. Where autoscalers cannot be listed, the value stays.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

use crate::compare::ownership::ReplicasPath;
use crate::manifest::desired::Desired;
use crate::model::identity::{GroupKind, GroupVersionKind, ObjectKey};

/// What a run does about the number of replicas of one member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicasHandover {
    /// The place of the number.
    pub path: ReplicasPath,
    /// The direction, and the reason.
    pub cause: HandoverCause,
}

/// The reason of a hand-over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HandoverCause {
    /// This autoscaler targets the object.
    ScaledBy(ObjectKey),
    /// Autoscalers cannot be listed, so there may be one.
    Unknown,
    /// An earlier run was interrupted after it had handed the field over.
    Begun,
    /// The field is in the manifest again: what was handed over is taken back.
    Returned,
}

impl ReplicasHandover {
    /// Returns the field that stays as it is; `None` if it is taken back.
    pub fn field_left_to_autoscaler(&self) -> Option<String> {
        (self.cause != HandoverCause::Returned).then(|| self.path.to_string())
    }
}

impl fmt::Display for ReplicasHandover {
    /// Writes the reason of an outcome.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, cause } = self;
        match cause {
            HandoverCause::ScaledBy(key) => {
                let scaler = key.group_kind.object_name(&key.name);
                write!(f, "{path} handed over to {scaler}")
            }
            HandoverCause::Unknown => {
                write!(f, "{path} handed over: autoscalers cannot be listed")
            }
            HandoverCause::Begun => write!(f, "{path} handed over by an earlier run"),
            HandoverCause::Returned => write!(f, "{path} taken back from its hand-over"),
        }
    }
}

/// The kinds that scale other objects, as [`target_of`] reads them. KEDA makes a
/// `HorizontalPodAutoscaler` of its own kind, but that may come later.
pub fn autoscaler_kinds() -> [GroupKind; 2] {
    [
        GroupKind::new("autoscaling", "HorizontalPodAutoscaler"),
        GroupKind::new("keda.sh", "ScaledObject"),
    ]
}

/// Returns the object that an autoscaler of this kind targets.
pub fn target_of(kind: &GroupKind, autoscaler: &Value, namespace: Option<&str>) -> Option<ObjectKey> {
    let target = autoscaler.pointer("/spec/scaleTargetRef")?;
    let text = |field: &str| target[field].as_str().filter(|text| !text.is_empty());
    let is_keda = kind.group == "keda.sh";
    let of_keda = |default: &'static str| is_keda.then_some(default);
    let api_version = text("apiVersion")
        .or_else(|| of_keda("apps/v1"))
        .unwrap_or_default();
    let target_kind = text("kind").or_else(|| of_keda("Deployment"))?;
    let gvk = GroupVersionKind::from_api_version(api_version, target_kind);
    Some(ObjectKey {
        group_kind: GroupKind::new(gvk.group, gvk.kind),
        namespace: namespace.map(str::to_owned),
        name: text("name")?.to_owned(),
    })
}

/// Returns the autoscalers among the manifests by the objects that they target.
pub fn autoscalers_by_target(desired: &Desired) -> BTreeMap<ObjectKey, ObjectKey> {
    let kinds = autoscaler_kinds();
    let autoscalers = desired
        .members
        .iter()
        .filter(|member| kinds.contains(&member.key.group_kind));
    let targets = autoscalers.filter_map(|member| {
        let key = &member.key;
        let target = target_of(&key.group_kind, &member.object.value(), key.namespace.as_deref())?;
        Some((target, key.clone()))
    });
    targets.collect()
}

/// Returns the warning about a number of replicas that is not handed over, since nothing scales the
/// object. `position` is that of its manifest.
pub fn not_handed_over(
    position: &impl fmt::Display,
    key: &ObjectKey,
    path: &ReplicasPath,
    value: &Value,
) -> Option<String> {
    let is_built_in = ["apps", ""].contains(&key.group_kind.group.as_str());
    let becomes = match is_built_in {
        true if *value == 1 => return None,
        true => format!("scales it from {value} to the default of 1"),
        false => format!("drops {value} for the default of its kind"),
    };
    Some(format!(
        "{position}: {key}: {path} left the manifest and no autoscaler targets it, which {becomes}; \
         to keep {value}, write `{name}: {value}` in {position}, or add its HorizontalPodAutoscaler to the manifests",
        name = path.name(),
    ))
}

/// Returns the warning about a number of replicas that is kept because it is not known what scales
/// the object.
pub fn kept_unsure(
    position: &impl fmt::Display,
    key: &ObjectKey,
    path: &ReplicasPath,
    value: &Value,
    reason: &impl fmt::Display,
) -> String {
    format!(
        "{position}: {key}: {path} left the manifest and stays {value}: \
         an autoscaler may target it, and autoscalers cannot be listed: {reason}"
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn autoscalers_name_their_targets() {
        let [pods, keda] = autoscaler_kinds();
        let key = |group: &str, kind: &str| ObjectKey {
            group_kind: GroupKind::new(group, kind),
            namespace: Some("shop".to_owned()),
            name: "web".to_owned(),
        };
        let table = [
            (
                &pods,
                json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web"}),
                Some(key("apps", "StatefulSet")),
            ),
            (
                &pods,
                json!({"apiVersion": "v1", "kind": "ReplicationController", "name": "web"}),
                Some(key("", "ReplicationController")),
            ),
            (&pods, json!({"kind": "Deployment"}), None),
            (&pods, json!({"name": "web"}), None),
            (&keda, json!({"name": "web"}), Some(key("apps", "Deployment"))),
            (
                &keda,
                json!({"apiVersion": "example.com/v1", "kind": "Ring", "name": "web"}),
                Some(key("example.com", "Ring")),
            ),
        ];
        for (kind, target, expected) in table {
            let autoscaler = json!({"spec": {"scaleTargetRef": target}});
            assert_eq!(target_of(kind, &autoscaler, Some("shop")), expected, "{target}");
        }
    }

    #[test]
    fn only_a_default_that_changes_the_number_is_worth_a_warning() {
        let key = |group: &str| ObjectKey {
            group_kind: GroupKind::new(group, "Deployment"),
            namespace: Some("shop".to_owned()),
            name: "web".to_owned(),
        };
        let path = ReplicasPath::default();
        let warning =
            |group: &str, value: u32| not_handed_over(&"web.yaml:3", &key(group), &path, &json!(value));
        assert_eq!(warning("apps", 1), None);
        let text = warning("apps", 5).expect("a warning");
        assert!(text.contains("from 5 to the default of 1"), "{text}");
        assert!(text.contains("`replicas: 5` in web.yaml:3"), "{text}");
        assert!(warning("example.com", 1).is_some());
    }
}
