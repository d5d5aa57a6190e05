//! What safety checks refuse: exit code 3, the reason, a hint, and nothing written.

use serde_json::{Value, json};

use crate::support::{
    GROUP_KINDS, ID, NAMESPACES, Set, TOOLING, cluster, config_map, custom_resource, definition, eventually,
    fresh, namespace, secret,
};

/// Asserts that applying `objects` is refused for a reason that holds `text`.
#[track_caller]
fn assert_refused(set: &Set, objects: &[Value], text: &str) {
    for flag in ["--dry-run=none", "--dry-run=client", "--dry-run=server"] {
        let before = cluster().state(&[&set.namespace]);
        let run = set.apply_with(objects, &[flag]).expect(3);
        let errors = run.errors();
        assert_eq!(errors.len(), 1, "{}", run.stderr);
        assert!(errors[0].contains(text), "no {text:?} in\n{}", run.stderr);
        assert!(run.stderr.contains("hint: "), "{}", run.stderr);
        assert_eq!(run.document()["results"], json!([]));
        assert_eq!(run.document()["error"]["exitCode"], 3);
        assert_eq!(cluster().state(&[&set.namespace]), before);
    }
}

/// A set of one `ConfigMap`.
fn made(home: &str) -> Set {
    let set = Set::secret(home, "web");
    set.apply(&[config_map(home, "one", "1")]);
    set
}

#[test]
fn no_manifests_at_all() {
    let home = namespace("home");
    let set = made(&home);
    assert_refused(&set, &[], "no objects in the manifests");
    assert_eq!(set.members(), [format!("ConfigMap {home}/one")]);
    assert_refused(&Set::secret(&home, "new"), &[], "no objects in the manifests");
}

#[test]
fn manifests_of_another_set() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let members = ["a", "b", "settings-2456789bcd"].map(|name| config_map(&home, name, "1"));
    set.apply(&members);
    let wrong = [config_map(&home, "wrong", "1")];
    assert_refused(&set, &wrong, "no object in the manifests is a member");
    set.assert_holds(&members);
    assert_eq!(cluster().live(&wrong[0]), None);
    // Nothing is pruned, so nothing is refused.
    set.apply_with(&wrong, &["--prune=false"]).expect(0);
    cluster().delete(&wrong[0]);

    // The same ConfigMap with another hash, as kustomize names it.
    let renamed = [config_map(&home, "settings-gkmt2h7f9b", "2")];
    set.apply(&renamed);
    set.assert_holds(&renamed);

    set.apply(&[&renamed[..], &members[..2]].concat());
    set.apply_with(&wrong, &["--allow-prune-all"]).expect(0);
    set.assert_holds(&wrong);
}

#[test]
fn invalid_records() {
    let table = [
        (json!({"labels": {ID: "applyset-other-v1"}}), "applyset-other-v1"),
        (json!({"labels": {ID: null}}), ID),
        (json!({"labels": {ID: "v2.abc"}}), "v2"),
        (json!({"annotations": {GROUP_KINDS: "v2:ConfigMap"}}), "v2"),
        (json!({"annotations": {NAMESPACES: "v3:a"}}), "v3"),
        (json!({"annotations": {GROUP_KINDS: null}}), GROUP_KINDS),
        (json!({"annotations": {GROUP_KINDS: "ConfigMap,"}}), GROUP_KINDS),
        (
            json!({"annotations": {GROUP_KINDS: "ConfigMap, Secret"}}),
            GROUP_KINDS,
        ),
        (json!({"annotations": {GROUP_KINDS: "configmaps"}}), "ConfigMap"),
        (
            json!({"annotations": {GROUP_KINDS: "Deployment.apps.,ConfigMap"}}),
            GROUP_KINDS,
        ),
        (json!({"annotations": {NAMESPACES: "A b"}}), NAMESPACES),
        (json!({"annotations": {TOOLING: null}}), TOOLING),
        (json!({"annotations": {TOOLING: ""}}), TOOLING),
    ];
    for (metadata, text) in table {
        let home = namespace("home");
        let set = made(&home);
        cluster().patch(&set.parent, &json!({"metadata": metadata}));
        assert_refused(&set, &[config_map(&home, "two", "1")], text);
        assert_eq!(set.members(), [format!("ConfigMap {home}/one")], "{metadata}");
    }
}

#[test]
fn the_id_of_another_set_on_a_parent() {
    let home = namespace("home");
    let [one, two] = ["one", "two"].map(|name| Set::secret(&home, name));
    one.apply(&[config_map(&home, "of-one", "1")]);
    two.apply(&[config_map(&home, "of-two", "1")]);
    cluster().patch(&one.parent, &json!({"metadata": {"labels": {ID: two.id}}}));
    assert_refused(&one, &[config_map(&home, "of-one", "1")], &two.id);
    two.assert_holds(&[config_map(&home, "of-two", "1")]);
}

#[test]
fn a_cluster_scoped_parent_that_records_no_namespace_for_a_namespaced_kind() {
    let home = namespace("home");
    let group = format!("{}.example.com", fresh("g"));
    cluster().define(&definition(&group, "Cluster"));
    cluster().create(&custom_resource(&group, None, "web"));
    let set = Set::custom(&group, None, &home);
    set.apply(&[config_map(&home, "one", "1")]);
    cluster().patch(
        &set.parent,
        &json!({"metadata": {"annotations": {NAMESPACES: ""}}}),
    );
    assert_refused(&set, &[config_map(&home, "two", "1")], "ConfigMap");
}

#[test]
fn a_parent_that_is_being_deleted() {
    let home = namespace("home");
    let set = made(&home);
    let finalizers = |names: Value| json!({"metadata": {"finalizers": names}});
    cluster().patch(&set.parent, &finalizers(json!(["example.com/wait"])));
    cluster().delete(&set.parent);
    assert_refused(&set, &[config_map(&home, "two", "1")], "deleted");
    cluster().patch(&set.parent, &finalizers(json!(null)));
    eventually("the parent is gone", || set.live_parent().is_none().then_some(()));
}

#[test]
fn a_secret_or_config_map_that_is_not_a_parent() {
    let home = namespace("home");
    cluster().create(&secret(&home, "web"));
    cluster().create(&config_map(&home, "web", "1"));
    let member = [config_map(&home, "one", "1")];
    assert_refused(&Set::secret(&home, "web"), &member, "not the parent");
    assert_refused(&Set::config_map(&home, "web"), &member, "not the parent");
    // Not even where its manifest is among those of the set.
    assert_refused(
        &Set::secret(&home, "web"),
        &[secret(&home, "web")],
        "not the parent",
    );
}
