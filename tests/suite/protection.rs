//! Annotations by which the whole field keeps objects: honored, reported, and what they
//! keep stays in the set and in its record.

use serde_json::{Value, json};

use crate::support::{Set, cluster, config_map, identities, namespace, service, with};

const PROTECTIONS: [(&str, &str); 9] = [
    ("helm.sh/resource-policy", "keep"),
    ("argocd.argoproj.io/sync-options", "Prune=false"),
    ("argocd.argoproj.io/sync-options", "Validate=false,Delete=false"),
    ("kustomize.toolkit.fluxcd.io/prune", "disabled"),
    ("helm.toolkit.fluxcd.io/prune", "disabled"),
    ("cli-utils.sigs.k8s.io/on-remove", "keep"),
    ("client.lifecycle.config.k8s.io/deletion", "detach"),
    ("kapp.k14s.io/delete-strategy", "orphan"),
    ("kluctl.io/skip-delete", "true"),
];

fn annotated(object: Value, key: &str, value: &Value) -> Value {
    with(object, &json!({"metadata": {"annotations": {key: value}}}))
}

#[test]
fn what_a_protection_keeps_stays_a_member_and_is_reported_of_at_every_run() {
    let [a, b] = [namespace("a"), namespace("b")];
    let set = Set::secret(&a, "web");
    let kept = config_map(&a, "kept", "1");
    let protected: Vec<Value> = PROTECTIONS
        .iter()
        .enumerate()
        .map(|(index, (key, value))| annotated(service(&b, &format!("p-{index}"), 80), key, &json!(value)))
        .collect();
    let opposite = annotated(
        service(&b, "dropped", 80),
        "kluctl.io/skip-delete",
        &json!("false"),
    );
    set.apply(&[protected.as_slice(), &[kept.clone(), opposite.clone()]].concat());
    let versions: Vec<_> = protected.iter().map(|object| cluster().live(object)).collect();
    let still_held = [protected.as_slice(), std::slice::from_ref(&kept)].concat();

    for flag in [
        "--dry-run=client",
        "--dry-run=server",
        "--dry-run=none",
        "--dry-run=none",
    ] {
        let run = set.apply_with(std::slice::from_ref(&kept), &[flag]).expect(0);
        assert_eq!(run.results("skipped"), identities(&protected), "{flag}");
        for (index, (key, _)) in PROTECTIONS.iter().enumerate() {
            assert!(run.reason(&format!("p-{index}")).contains(key), "{key}");
        }
    }

    set.assert_holds(&still_held);
    let now: Vec<_> = protected.iter().map(|object| cluster().live(object)).collect();
    assert_eq!(now, versions);

    // Without its annotation each is pruned like any other.
    for (object, (key, _)) in protected.iter().zip(PROTECTIONS) {
        cluster().patch(object, &json!({"metadata": {"annotations": {key: null}}}));
    }
    let run = set.apply(std::slice::from_ref(&kept));
    assert_eq!(run.results("pruned"), identities(&protected));
    set.assert_holds(&[kept]);
}

#[test]
fn a_protection_that_was_added_to_the_live_object_counts() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let [kept, precious] = ["kept", "precious"].map(|name| config_map(&home, name, "1"));
    set.apply(&[kept.clone(), precious.clone()]);
    cluster().patch(
        &precious,
        &json!({"metadata": {"annotations": {"helm.sh/resource-policy": "keep"}}}),
    );

    let run = set.apply(std::slice::from_ref(&kept));

    assert_eq!(run.results("skipped"), identities([&precious]));
    set.assert_holds(&[kept, precious]);
}
