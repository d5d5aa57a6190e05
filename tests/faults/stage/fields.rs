//! Commands that leave fields to others: replicas to an autoscaler, and ignored fields.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{OtherKind, Sequel, Stage, identity, with_bystanders};
use crate::support::{Files, cluster, config_map, deployment, named, objects_file, with};

const SCALED_KINDS: [OtherKind; 2] = [
    OtherKind {
        kind: "Deployment",
        api_version: "apps/v1",
        plural: "deployments",
    },
    OtherKind {
        kind: "HorizontalPodAutoscaler",
        api_version: "autoscaling/v2",
        plural: "horizontalpodautoscalers",
    },
];

/// The managers that own a field, given as a pointer in `fieldsV1`.
pub(super) fn owners<'l>(live: &'l Value, pointer: &str) -> Vec<&'l str> {
    let entries = live["metadata"]["managedFields"].as_array();
    let owning = entries
        .into_iter()
        .flatten()
        .filter(|entry| entry["fieldsV1"].pointer(pointer).is_some());
    let mut owners: Vec<&str> = owning.filter_map(|entry| entry["manager"].as_str()).collect();
    owners.sort_unstable();
    owners
}

/// Leaves the replicas of a Deployment that changes to its autoscaler. They are left again, or return to the
/// manifest.
pub(super) fn autoscaled_apply() -> Stage {
    const REPLICAS: &str = "/f:spec/f:replicas";
    let (mut stage, _) = with_bystanders();
    let [a, b] = &stage.namespaces;
    let set = &stage.sets[0];
    let scaled = deployment(b, "web", 5);
    set.apply(&[
        scaled.clone(),
        config_map(a, "one", "1"),
        config_map(a, "two", "1"),
    ]);
    let autoscaler = with(
        named(
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            Some(b),
            "of-an-autoscaler",
        ),
        &json!({"spec": {"minReplicas": 2, "maxReplicas": 10, "scaleTargetRef": {
            "apiVersion": "apps/v1", "kind": "Deployment", "name": "web",
        }}}),
    );
    cluster().create(&autoscaler);
    stage.bystanders.push(autoscaler);
    stage.other_kinds = &SCALED_KINDS;
    stage.kept_fields = vec![(identity(&scaled), "/spec/replicas", json!(5))];

    let image = json!({"spec": {"template": {"spec": {"containers": [{"name": "app", "image": "app:2"}]}}}});
    let next = with(scaled.clone(), &image);
    let mut left_out = next.clone();
    left_out["spec"]
        .as_object_mut()
        .expect("a spec")
        .remove("replicas");
    let one = config_map(a, "one", "2");
    let mut leaving = Sequel::apply(set, &[next, one.clone()]);
    leaving.files = Some(Files::new().with("objects.yaml", &objects_file(&[left_out, one.clone()])));
    leaving.owners = vec![(identity(&scaled), REPLICAS, &["applyset"])];
    let mut returning = Sequel::apply(set, &[deployment(b, "web", 3), one]);
    returning.owners = vec![(identity(&scaled), REPLICAS, &["applyset"])];
    stage.sequels = vec![leaving, returning];
    stage
}

/// Applies objects of which a field is left to others: to a manager that has applied it, and to one that
/// has updated it.
pub(super) fn ignoring_apply() -> Stage {
    let (mut stage, _) = with_bystanders();
    let [a, b] = &stage.namespaces;
    let set = &stage.sets[0];
    let objects = |key: &str, more: &str| {
        let more = json!({"data": {"more": more}});
        [config_map(a, "one", key), config_map(b, "four", key)].map(|object| with(object, &more))
    };
    let before = objects("1", "1");
    set.apply(&[&before[..], &[config_map(a, "two", "1")]].concat());
    let [applied, updated] = &before;
    cluster().apply_as("others", &config_map(a, "one", "theirs"));
    cluster().patch(updated, &json!({"data": {"key": "theirs"}}));
    let theirs = json!("theirs");
    stage.kept_fields = [applied, updated]
        .map(|object| (identity(object), "/data/key", theirs.clone()))
        .to_vec();

    let rules = Arc::new(Files::new().with("ignore.yaml", "ignore:\n- paths: [/data/key]\n"));
    let flag = format!("--ignore={}", rules.path("ignore.yaml").display());
    let ignoring = |manifests: &[Value], leaves: &[Value]| {
        let mut ignoring = Sequel::apply(set, leaves);
        ignoring.files = Some(Files::new().with("objects.yaml", &objects_file(manifests)));
        ignoring.arguments.push(flag.clone());
        ignoring.owners = vec![(identity(applied), "/f:data/f:key", &["others"])];
        ignoring
    };
    stage.sequels = vec![
        ignoring(&objects("2", "2"), &objects("theirs", "2")),
        ignoring(&objects("3", "3"), &objects("theirs", "3")),
    ];
    stage.kept_files = Some(rules);
    stage
}

/// Takes a field from the manager that has applied it.
pub(super) fn forcing_apply() -> Stage {
    let (mut stage, _) = with_bystanders();
    let [a, b] = &stage.namespaces;
    let set = &stage.sets[0];
    let objects = |value: &str| [config_map(a, "one", value), config_map(b, "four", value)];
    let before = objects("1");
    set.apply(&[&before[..], &[config_map(a, "two", "1")]].concat());
    let taken = identity(&before[0]);
    cluster().apply_as("others", &config_map(a, "one", "theirs"));
    let forcing = |value: &str| {
        let mut forcing = Sequel::apply(set, &objects(value));
        forcing.arguments.push("--force-conflicts=others".to_owned());
        forcing.owners = vec![(taken.clone(), "/f:data/f:key", &["applyset"])];
        forcing
    };
    stage.sequels = vec![forcing("2"), forcing("3")];
    stage
}
