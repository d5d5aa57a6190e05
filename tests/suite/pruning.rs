//! What left the manifests leaves the cluster, of every kind and in every namespace.

use serde_json::{Value, json};

use crate::support::{
    NAMESPACES, Program, Set, cluster, cluster_role, config_map, custom_resource, definition, eventually,
    fresh, identities, named, namespace, namespace_object, secret, service, with,
};

#[test]
fn a_kind_that_left_the_manifests_is_pruned() {
    let shop = namespace("shop");
    let set = Set::secret(&shop, "web");
    let kept = config_map(&shop, "kept", "1");
    let budget = with(
        named("policy/v1", "PodDisruptionBudget", Some(&shop), "web"),
        &json!({"spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}}),
    );
    set.apply(&[kept.clone(), budget.clone()]);
    set.assert_holds(&[kept.clone(), budget.clone()]);

    let run = set.apply(std::slice::from_ref(&kept));

    assert_eq!(run.results("pruned"), identities([&budget]));
    assert_eq!(cluster().live(&budget), None);
    set.assert_holds(&[kept]);
}

#[test]
fn a_namespace_that_left_the_manifests_is_emptied_and_leaves_the_record() {
    let [a, b] = [namespace("a"), namespace("b")];
    let set = Set::secret(&a, "web");
    let in_a = config_map(&a, "one", "1");
    let in_b = [config_map(&b, "two", "2"), service(&b, "web", 80)];
    let both = [in_a.clone(), in_b[0].clone(), in_b[1].clone()];
    set.apply(&both);
    set.assert_holds(&both);
    assert_eq!(set.annotation(NAMESPACES), Some(b));

    let run = set.apply(std::slice::from_ref(&in_a));

    assert_eq!(run.results("pruned"), identities(&in_b));
    set.assert_holds(&[in_a]);
    assert_eq!(set.annotation(NAMESPACES).as_deref(), Some(""));
}

#[test]
fn objects_that_are_not_members_are_left_alone() {
    let shop = namespace("shop");
    let set = Set::secret(&shop, "web");
    let neighbor = Set::secret(&shop, "neighbor");
    let stranger = config_map(&shop, "stranger", "1");
    cluster().create(&stranger);
    neighbor.apply(&[config_map(&shop, "theirs", "1")]);
    set.apply(&[config_map(&shop, "first", "1")]);

    set.apply(&[config_map(&shop, "second", "1")]);

    set.assert_holds(&[config_map(&shop, "second", "1")]);
    neighbor.assert_holds(&[config_map(&shop, "theirs", "1")]);
    assert!(cluster().live(&stranger).is_some());
}

#[test]
fn everything_is_pruned_where_an_empty_set_is_allowed() {
    let [a, b] = [namespace("a"), namespace("b")];
    let set = Set::secret(&a, "web");
    set.apply(&[
        config_map(&a, "one", "1"),
        secret(&b, "two"),
        cluster_role(&fresh("role")),
    ]);

    set.apply_with(&[], &["--allow-prune-all"]).expect(0);

    set.assert_holds(&[]);
}

#[test]
fn a_namespace_among_the_members_is_pruned_with_its_contents() {
    let home = namespace("home");
    let away = fresh("away");
    let set = Set::secret(&home, "web");
    let kept = config_map(&home, "kept", "1");
    let objects = [
        kept.clone(),
        config_map(&away, "inside", "1"),
        namespace_object(&away),
    ];
    set.apply(&objects);
    set.assert_holds(&objects);

    set.apply(std::slice::from_ref(&kept));

    set.assert_holds_without(&objects[2], &[kept]);
}

/// What a finalizer holds inside of something that is pruned.
fn held(object: Value) -> Value {
    let finalizers = json!({"metadata": {"finalizers": ["example.com/hold"]}});
    with(object, &finalizers)
}

/// Asserts that all of `objects` are pruned, that the record has them until the finalizer of
/// `held` is gone, and that the next run forgets them.
#[track_caller]
fn assert_recorded_until_gone(set: &Set, kept: &Value, objects: &[Value], held: &Value, flags: &[&str]) {
    let kept = std::slice::from_ref(kept);
    let run = set.apply_with(kept, flags).expect(0);
    assert_eq!(run.results("pruned"), identities(objects));
    assert_eq!(set.unrecorded(), Vec::<String>::new());
    set.apply(kept);
    assert_eq!(set.unrecorded(), Vec::<String>::new());
    let deletion = set.deletion(Program::new()).args(["--yes", "--timeout", "1s"]);
    deletion.run().expect(1);
    assert!(set.live_parent().is_some());

    cluster().patch(held, &json!({"metadata": {"finalizers": null}}));
    eventually("all is gone", || {
        let is_gone = |object| cluster().live(object).is_none();
        objects.iter().all(is_gone).then_some(())
    });
    set.apply(kept);
    set.assert_holds(kept);
}

#[test]
fn a_run_that_does_not_wait_names_what_finalizers_hold() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let [kept, free] = ["kept", "free"].map(|name| config_map(&home, name, "1"));
    let held = held(config_map(&home, "held", "1"));
    set.apply(&[kept.clone(), free.clone(), held.clone()]);

    let run = set.apply(std::slice::from_ref(&kept));

    assert_eq!(run.results("pruned"), identities([&free, &held]));
    let note = format!("still being deleted: configmap/held in namespace {home}; wait with --wait");
    assert!(run.stderr.contains(&note), "{}", run.stderr);
    cluster().patch(&held, &json!({"metadata": {"finalizers": null}}));
}

#[test]
fn a_namespace_that_hangs_in_termination_stays_recorded() {
    let home = namespace("home");
    let away = fresh("away");
    let set = Set::secret(&home, "web");
    let [kept, own] = [config_map(&home, "kept", "1"), namespace_object(&away)];
    set.apply(&[kept.clone(), own.clone()]);
    let held = held(config_map(&away, "held", "1"));
    cluster().create(&held);

    assert_recorded_until_gone(&set, &kept, &[own], &held, &["--allow-data-loss"]);
}

#[test]
fn a_kind_stays_recorded_until_its_pruned_definition_is_gone() {
    let home = namespace("home");
    let away = namespace("away");
    let group = format!("{}.example.com", fresh("g"));
    let set = Set::secret(&home, "web");
    let kept = config_map(&home, "kept", "1");
    let held = held(custom_resource(&group, Some(&away), "held"));
    let objects = [definition(&group, "Namespaced"), held.clone()];
    set.apply(&[&objects[..], std::slice::from_ref(&kept)].concat());

    assert_recorded_until_gone(&set, &kept, &objects, &held, &[]);
}

#[test]
fn an_object_of_the_same_name_that_was_made_again_by_others_is_not_pruned() {
    let shop = namespace("shop");
    let set = Set::secret(&shop, "web");
    let dropped = config_map(&shop, "dropped", "1");
    set.apply(&[dropped.clone(), config_map(&shop, "kept", "1")]);
    cluster().delete(&dropped);
    cluster().create(&dropped);

    let run = set.apply(&[config_map(&shop, "kept", "1")]);

    assert_eq!(run.results("pruned"), Vec::<String>::new());
    assert!(cluster().live(&dropped).is_some());
}

#[test]
fn without_pruning_what_left_stays_and_stays_recorded() {
    let [a, b] = [namespace("a"), namespace("b")];
    let set = Set::secret(&a, "web");
    let both = [config_map(&a, "kept", "1"), service(&b, "dropped", 80)];
    set.apply(&both);

    set.apply_with(&both[..1], &["--prune=false"]).expect(0);
    set.assert_holds(&both);

    let run = set.apply(&both[..1]);
    assert_eq!(run.results("pruned"), identities(&both[1..]));
    set.assert_holds(&both[..1]);
}
