//! A parent that is a member of another set: for every applier and every field
//! manager, its ApplySet metadata stays, and kubectl continues with its set.

use serde_json::{Value, json};

use crate::support::{
    Files, GROUP_KINDS, ID, NAMESPACES, PART_OF, Program, Run, Set, TOOLING, cluster, config_map,
    kubectl_apply, named, namespace, objects_file, secret, with,
};

/// `kubectl apply --prune --applyset=inner` of these objects.
fn apply_inner(home: &str, objects: &[Value]) {
    kubectl_apply(objects, &["-n", home, "--prune", "--applyset=inner"]).expect(0);
}

/// The labels and annotations of the convention, but for the set that the object is in.
fn applyset_metadata(object: &Value) -> Vec<(String, Value)> {
    let live = cluster().live(object).expect("the object");
    let pairs = ["labels", "annotations"].into_iter().flat_map(|field| {
        let pairs = live["metadata"][field].as_object().cloned();
        pairs.unwrap_or_default()
    });
    pairs
        .filter(|(key, _)| key.starts_with("applyset.kubernetes.io/") && key != PART_OF)
        .collect()
}

fn data(object: &Value) -> Value {
    cluster().live(object).expect("the object")["data"].clone()
}

fn diff(set: &Set, objects: &[Value], flags: &[&str]) -> Run {
    let files = Files::new().with("objects.yaml", &objects_file(objects));
    Program::new()
        .args(["diff", &set.reference, "-n", &set.namespace, "-f"])
        .args([files.directory()])
        .args(flags)
        .run()
}

/// All four keys, as kubectl or this program writes them.
fn recorded(set: &Set) -> Value {
    json!({"metadata": {
        "labels": {ID: set.id},
        "annotations": {TOOLING: "kubectl/v1.36.3", GROUP_KINDS: "ConfigMap", NAMESPACES: ""},
    }})
}

#[test]
fn kubectl_continues_with_a_set_whose_parent_is_a_member() {
    let home = namespace("home");
    let member = config_map(&home, "one", "1");
    apply_inner(&home, std::slice::from_ref(&member));
    let inner = Set::secret(&home, "inner");
    let before = applyset_metadata(&inner.parent);
    assert_eq!(before.len(), 4);
    let manifest = secret(&home, "inner");
    let outer = Set::secret(&home, "outer");

    outer.apply(std::slice::from_ref(&manifest));

    assert_eq!(applyset_metadata(&inner.parent), before);
    // And the other way round: what we applied outlives kubectl's next run.
    apply_inner(
        &home,
        &[config_map(&home, "one", "2"), config_map(&home, "two", "1")],
    );
    assert_eq!(applyset_metadata(&inner.parent), before);
    assert_eq!(data(&manifest), manifest["data"]);
    outer.assert_holds(std::slice::from_ref(&manifest));
    let run = outer.apply(std::slice::from_ref(&manifest));
    assert_eq!(run.results("unchanged").len(), 1);
    apply_inner(&home, &[config_map(&home, "two", "1")]);
    assert_eq!(cluster().live(&member), None);
}

#[test]
fn kubectl_makes_a_set_of_a_member() {
    let home = namespace("home");
    let manifest = secret(&home, "inner");
    let outer = Set::secret(&home, "outer");
    let inner = Set::secret(&home, "inner");
    outer.apply(std::slice::from_ref(&manifest));
    // It takes no other object for a parent.
    cluster().patch(&inner.parent, &recorded(&inner));

    apply_inner(&home, &[config_map(&home, "one", "1")]);

    assert_eq!(data(&manifest), manifest["data"]);
    outer.assert_holds(std::slice::from_ref(&manifest));
    let before = applyset_metadata(&inner.parent);
    assert_eq!(before.len(), 4);
    let changed = with(manifest, &json!({"data": {"key": "b3RoZXI="}}));
    outer.apply(std::slice::from_ref(&changed));
    assert_eq!(applyset_metadata(&inner.parent), before);
    apply_inner(&home, &[config_map(&home, "two", "1")]);
    inner.assert_holds(&[config_map(&home, "two", "1")]);
}

#[test]
fn applyset_metadata_stays_under_any_field_manager() {
    for manager in ["applyset", "kubectl-applyset", "kubectl", "ci"] {
        let home = namespace("home");
        let inner = Set::secret(&home, "inner");
        let outer = Set::secret(&home, "outer");
        apply_inner(&home, &[config_map(&home, "one", "1")]);
        let before = applyset_metadata(&inner.parent);
        let flag = format!("--field-manager={manager}");
        let one = secret(&home, "inner");
        diff(&outer, std::slice::from_ref(&one), &[&flag]).expect(1);
        for manifest in [one.clone(), with(one, &json!({"data": {"more": "bW9yZQ=="}}))] {
            let manifest = std::slice::from_ref(&manifest);
            let run = outer.apply_with(manifest, &[&flag, "--dry-run=server"]).expect(0);
            assert_eq!(run.results("configured").len(), 1, "{manager}");
            outer.apply_with(manifest, &[&flag]).expect(0);
            assert_eq!(applyset_metadata(&inner.parent), before, "{manager}");
            diff(&outer, manifest, &[&flag]).expect(0);
            let version = cluster().live(&inner.parent).expect("it")["metadata"]["resourceVersion"].clone();
            let run = outer.apply_with(manifest, &[&flag]).expect(0);
            assert_eq!(run.results("unchanged").len(), 1, "{manager}");
            assert_eq!(
                cluster().live(&inner.parent).expect("it")["metadata"]["resourceVersion"],
                version
            );
            assert_eq!(data(&manifest[0]), manifest[0]["data"], "{manager}");
            // kubectl continues with the set, and we with ours.
            apply_inner(&home, &[config_map(&home, "one", "2")]);
            assert_eq!(applyset_metadata(&inner.parent), before, "{manager}");
            outer.apply_with(manifest, &[&flag]).expect(0);
            assert_eq!(applyset_metadata(&inner.parent), before, "{manager}");
            assert_eq!(data(&manifest[0]), manifest[0]["data"], "{manager}");
        }
    }
}

#[test]
fn applyset_metadata_stays_for_every_writer() {
    // Server-side by the very manager of members, as from a backup, and from the client's side.
    for flags in [
        &["--server-side", "--field-manager=ci"][..],
        &["--server-side"],
        &[],
    ] {
        for manager in ["--field-manager=ci", "--field-manager=applyset"] {
            let home = namespace("home");
            let inner = Set::secret(&home, "inner");
            let outer = Set::secret(&home, "outer");
            let parent = with(secret(&home, "inner"), &recorded(&inner));
            kubectl_apply(&[parent], flags).expect(0);
            let before = applyset_metadata(&inner.parent);
            assert_eq!(before.len(), 4);
            let one = secret(&home, "inner");
            let two = with(
                named("v1", "Secret", Some(&home), "inner"),
                &json!({"data": {"other": "bW9yZQ=="}}),
            );
            for manifest in [one, two] {
                outer
                    .apply_with(std::slice::from_ref(&manifest), &[manager, "--force-conflicts"])
                    .expect(0);
                assert_eq!(applyset_metadata(&inner.parent), before, "{flags:?} {manager}");
                let run = outer
                    .apply_with(std::slice::from_ref(&manifest), &[manager])
                    .expect(0);
                assert_eq!(run.results("unchanged").len(), 1, "{flags:?} {manager}");
                diff(&outer, std::slice::from_ref(&manifest), &[manager]).expect(0);
            }
            apply_inner(&home, &[config_map(&home, "one", "1")]);
        }
    }
}

#[test]
fn a_parent_in_its_own_manifests_keeps_kubectls_record() {
    for flags in [&["--field-manager=kubectl-applyset"][..], &[]] {
        let home = namespace("home");
        let set = Set::secret(&home, "inner");
        let member = config_map(&home, "one", "1");
        apply_inner(&home, std::slice::from_ref(&member));
        let before = applyset_metadata(&set.parent);
        let tooling = set.annotation(TOOLING).expect("kubectl's");
        let tooling = format!("--tooling={tooling}");
        let flags = [&[&*tooling][..], flags].concat();
        let parent = secret(&home, "inner");
        let more = with(parent.clone(), &json!({"data": {"more": "bW9yZQ=="}}));
        for parent in [parent, more] {
            let objects = [parent, member.clone()];
            diff(&set, &objects, &flags).expect(1);
            set.apply_with(&objects, &flags).expect(0);
            assert_eq!(applyset_metadata(&set.parent), before, "{flags:?}");
            assert_eq!(data(&objects[0]), objects[0]["data"], "{flags:?}");
            diff(&set, &objects, &flags).expect(0);
        }
        apply_inner(&home, &[config_map(&home, "two", "1")]);
        set.assert_holds(&[config_map(&home, "two", "1")]);
    }
}
