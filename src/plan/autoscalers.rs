//! The kinds of autoscalers, and what they target: objects whose number of replicas was removed from the manifest.
//!
//! While an autoscaler targets the object, the number is an ignored field. If no autoscaler does, the number is removed
//! from the object, and the server fills in the default. If autoscalers cannot be listed, the number is kept: a wrong
//! removal could scale a busy workload down.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;

use serde_json::Value;

use super::dependencies::find_live_dependencies;
use super::{Judge, Policy, ReasonToKeep};
use crate::compare::ownership::ReplicasPath;
use crate::manifest::desired::Desired;
use crate::model::identity::{GroupKind, GroupVersionKind, ObjectKey};
use crate::model::live::Live;
use crate::model::set::Set;
use crate::model::text::first_names_and_more;

/// Returns the kinds that scale other objects, as [`read_scale_target`] reads them. For a `ScaledObject`, KEDA creates
/// a `HorizontalPodAutoscaler`, but not at once, so the `ScaledObject` counts, too.
pub fn autoscalers() -> [GroupKind; 2] {
    [
        GroupKind::new("autoscaling", "HorizontalPodAutoscaler"),
        GroupKind::new("keda.sh", "ScaledObject"),
    ]
}

/// Returns the object that an autoscaler of this kind targets.
pub fn read_scale_target(kind: &GroupKind, autoscaler: &Value, namespace: Option<&str>) -> Option<ObjectKey> {
    let target = autoscaler.pointer("/spec/scaleTargetRef")?;
    let text = |field: &str| target[field].as_str().filter(|text| !text.is_empty());
    let (default_api_version, default_kind) = match kind.group.as_str() {
        "keda.sh" => ("apps/v1", Some("Deployment")),
        _ => ("", None),
    };
    let api_version = text("apiVersion").unwrap_or(default_api_version);
    let target_kind = text("kind").or(default_kind)?;
    let gvk = GroupVersionKind::from_api_version(api_version, target_kind);
    Some(ObjectKey {
        group_kind: GroupKind::new(gvk.group, gvk.kind),
        namespace: namespace.map(str::to_owned),
        name: text("name")?.to_owned(),
    })
}

/// Returns the autoscalers among the members that are gone after the run: they scale nothing any more. If the run may
/// keep one because of a dependency, it does not count as gone.
pub fn find_autoscalers_gone_after_run(
    set: &Set,
    desired: &Desired,
    members: &[Live],
    policy: &Policy,
) -> BTreeSet<ObjectKey> {
    let contents = BTreeMap::new();
    let mut judge = Judge::new(set, policy, desired, &contents, HashSet::new());
    let staying: Vec<&Live> = members.iter().filter(|live| judge.is_desired(live)).collect();
    judge.note_dependencies_of_desired(&find_live_dependencies(staying.into_iter()));
    let (prunes, skips) = judge.divide_into_prunes_and_skips(members);
    let going = skips.into_iter().filter(|skip| {
        matches!(
            skip.reason,
            ReasonToKeep::Terminating { .. } | ReasonToKeep::OwnedCopy(_)
        )
    });
    let leaving = prunes.into_iter().chain(going.map(|skip| skip.live));
    let kinds = autoscalers();
    leaving
        .map(|live| live.key)
        .filter(|key| kinds.contains(&key.group_kind))
        .collect()
}

/// Returns the autoscalers in the manifests. Key: the targeted object. Value: the autoscaler.
pub fn desired_autoscalers_by_target(desired: &Desired) -> BTreeMap<ObjectKey, ObjectKey> {
    let kinds = autoscalers();
    let autoscalers = desired
        .members
        .iter()
        .filter(|member| kinds.contains(&member.key.group_kind));
    let targets = autoscalers.filter_map(|member| {
        let key = &member.key;
        let target = read_scale_target(&key.group_kind, &member.object.value(), key.namespace.as_deref())?;
        Some((target, key.clone()))
    });
    targets.collect()
}

/// Returns the note about numbers of replicas that are left to autoscalers. `autoscalers_by_target` has the scaled
/// objects as keys.
pub fn left_to_autoscalers_note(autoscalers_by_target: &BTreeMap<&ObjectKey, &ObjectKey>) -> Option<String> {
    let objects = autoscalers_by_target
        .iter()
        .map(|(key, autoscaler)| format!("{key} to {}", autoscaler.object_name()));
    (!autoscalers_by_target.is_empty()).then(|| {
        format!(
            "replicas are left to autoscalers: {}",
            first_names_and_more(objects)
        )
    })
}

/// Returns the warning about a number of replicas that is removed, since no autoscaler targets the object. `position`
/// is the position of its manifest. `None` if the number is the default of a built-in kind already.
pub fn removed_replicas_warning(
    position: &impl fmt::Display,
    key: &ObjectKey,
    path: &ReplicasPath,
    value: &Value,
) -> Option<String> {
    let is_built_in = ["apps", ""].contains(&key.group_kind.group.as_str());
    let becomes = match is_built_in {
        true if *value == 1 => return None,
        true => format!("it is scaled from {value} to the default of 1"),
        false => format!("the default of its kind replaces {value}"),
    };
    Some(format!(
        "{position}: {key}: {path} left the manifest and no autoscaler targets it, so {becomes}; \
         to keep {value}, write `{name}: {value}` in {position}, or add its HorizontalPodAutoscaler to the manifests",
        name = path.name(),
    ))
}

/// Returns the warning about a number of replicas that is kept because autoscalers cannot be listed.
pub fn unlisted_autoscalers_warning(
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
    use crate::manifest::desired::DesiredObject;
    use crate::model::depends_on::Dependencies;
    use crate::model::live::Presence;
    use crate::plan::Pruning;
    use crate::plan::fixtures::{desired, live, policy, set};

    #[test]
    fn autoscalers_name_their_targets() {
        let [pods, keda] = autoscalers();
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
            assert_eq!(
                read_scale_target(kind, &autoscaler, Some("shop")),
                expected,
                "{target}"
            );
        }
    }

    #[test]
    fn an_autoscaler_that_the_run_keeps_is_not_leaving() {
        let shop = Some("shop");
        let kind = "HorizontalPodAutoscaler.autoscaling";
        let scaler = || live(kind, shop, "web");
        let key = scaler().key;
        let depends = || Dependencies {
            objects: vec![scaler().key],
            first_malformed: None,
        };
        let needed = Live {
            dependencies: depends(),
            ..live("ConfigMap", shop, "a")
        };
        let kept = Live {
            keep_annotation: Some("helm.sh/resource-policy: keep".to_owned()),
            dependencies: depends(),
            ..live("ConfigMap", shop, "kept")
        };
        let going = Live {
            presence: Presence::Terminating,
            ..scaler()
        };
        let desired = Desired {
            members: vec![desired("ConfigMap", shop, "a")],
            ..Desired::default()
        };
        let needing = Desired {
            members: vec![DesiredObject {
                depends_on: vec![key.clone()],
                ..desired.members[0].clone()
            }],
            ..Desired::default()
        };
        let disabled = Policy {
            pruning: Pruning::Disabled,
            ..policy()
        };
        for (members, desired, policy, is_leaving) in [
            (vec![scaler()], &desired, policy(), true),
            (vec![going], &desired, policy(), true),
            (vec![scaler()], &desired, disabled, false),
            (vec![scaler()], &needing, policy(), false),
            (vec![scaler(), needed], &desired, policy(), false),
            (vec![scaler(), kept], &desired, policy(), false),
        ] {
            let leaving = find_autoscalers_gone_after_run(&set(), desired, &members, &policy);
            assert_eq!(leaving.contains(&key), is_leaving, "{members:?}");
        }
    }

    #[test]
    fn only_a_default_that_changes_the_number_is_worth_a_warning() {
        let key = |group: &str| ObjectKey {
            group_kind: GroupKind::new(group, "Deployment"),
            namespace: Some("shop".to_owned()),
            name: "web".to_owned(),
        };
        let path = ReplicasPath::spec_replicas();
        let warning = |group: &str, value: u32| {
            removed_replicas_warning(&"web.yaml:3", &key(group), &path, &json!(value))
        };
        assert_eq!(warning("apps", 1), None);
        let text = warning("apps", 5).expect("a warning");
        assert!(text.contains("from 5 to the default of 1"), "{text}");
        assert!(text.contains("`replicas: 5` in web.yaml:3"), "{text}");
        assert!(warning("example.com", 1).is_some());
    }
}
