//! `move --to-namespace`: a set whose parent is in the wrong namespace gets one in another; its members stay
//! where they are.

use controlplane::Grant;
use serde_json::Value;

use super::rights::{rule, user};
use crate::support::{
    Files, ID, Program, ProgramEnd, Proxy, Set, cluster, config_map, custom_resource, definition, fresh,
    identities, namespace, objects_file, service,
};

/// The set `oops` in the wrong namespace and in the right one, and its members in both.
fn scenario(of: impl Fn(&str) -> Set) -> (Set, Set, Vec<Value>) {
    let [wrong, right] = [namespace("wrong"), namespace("right")];
    let objects = vec![config_map(&wrong, "one", "1"), service(&right, "web", 80)];
    (of(&wrong), of(&right), objects)
}

/// Moves the set, and asserts what is left in both namespaces.
#[track_caller]
fn assert_moves(old: &Set, new: &Set, objects: &[Value]) {
    let contents = || -> Vec<Value> { objects.iter().map(|object| cluster().content(object)).collect() };
    let before = contents();
    let arguments = [&*new.reference, "--to-namespace", &new.namespace];
    let state = cluster().state(&[&old.namespace, &new.namespace]);
    for dry_run in ["--dry-run=client", "--dry-run=server"] {
        let run = old
            .invoke("move", &[&arguments[..], &[dry_run]].concat())
            .expect(0);
        assert_eq!(run.results("adopted"), identities(objects), "{dry_run}");
        assert_eq!(cluster().state(&[&old.namespace, &new.namespace]), state);
    }

    let run = old.invoke("move", &arguments).expect(0);

    assert_eq!(run.results("adopted"), identities(objects));
    let note = format!("set metadata.namespace: {} in them", old.namespace);
    let has_stayed = objects
        .iter()
        .any(|object| object["metadata"]["namespace"] == *old.namespace);
    assert_eq!(run.stderr.contains(&note), has_stayed, "{}", run.stderr);
    assert_eq!(run.document()["set"]["namespace"], *new.namespace);
    assert_eq!(contents(), before);
    new.assert_holds(objects);
    assert_eq!(old.members(), Vec::<String>::new());
    let bookkeeping = old
        .live_parent()
        .map(|parent| parent["metadata"]["labels"][ID].clone());
    assert!(matches!(bookkeeping, None | Some(Value::Null)), "{bookkeeping:?}");
    for namespace in [&old.namespace, &new.namespace] {
        let verify = ["verify", "-n", namespace, &new.reference];
        let expected = if *namespace == new.namespace { 0 } else { 2 };
        Program::new().args(verify).run().expect(expected);
    }
    let again = old.invoke("move", &arguments).expect(2);
    assert!(
        again.stderr.contains("an earlier move may have finished"),
        "{}",
        again.stderr
    );
    let run = new.apply(objects);
    assert_eq!(run.results("unchanged"), identities(objects));
    let run = new.apply(&objects[1..]);
    assert_eq!(run.results("pruned"), identities(&objects[..1]));
}

#[test]
fn a_set_in_the_wrong_namespace_keeps_its_name_and_members() {
    for of in [Set::secret, Set::config_map] {
        let (old, new, objects) = scenario(|home| of(home, "oops"));
        old.apply(&objects);
        assert_moves(&old, &new, &objects);
    }
}

#[test]
fn the_new_parent_may_be_a_custom_resource_that_is_there() {
    let group = format!("{}.example.com", fresh("g"));
    cluster().define(&definition(&group, "Namespaced"));
    let (old, new, objects) = scenario(|home| Set::custom(&group, Some(home), home));
    cluster().create(&custom_resource(&group, Some(&old.namespace), "web"));
    old.apply(&objects);
    let arguments = [&*new.reference, "--to-namespace", &new.namespace];
    let run = old.invoke("move", &arguments).expect(2);
    assert!(run.stderr.contains("does not exist"), "{}", run.stderr);
    cluster().create(&custom_resource(&group, Some(&new.namespace), "web"));
    assert_moves(&old, &new, &objects);
}

#[test]
fn only_some_members_can_go_to_a_set_in_another_namespace() {
    let (old, new, objects) = scenario(|home| Set::secret(home, "oops"));
    old.apply(&objects);
    let files = Files::new().with("objects.yaml", &objects_file(&objects[..1]));
    let directory = files.directory().to_string_lossy().into_owned();
    let arguments = ["oops", "--to-namespace", &new.namespace, "-f", &directory];
    old.invoke("move", &arguments).expect(0);
    new.assert_holds(&objects[..1]);
    old.assert_holds(&objects[1..]);
}

#[test]
fn what_cannot_be_the_target_is_refused_before_anything_is_written() {
    let (old, new, objects) = scenario(|home| Set::secret(home, "oops"));
    old.apply(&objects);
    let group = format!("{}.example.com", fresh("g"));
    cluster().define(&definition(&group, "Cluster"));
    cluster().create(&custom_resource(&group, None, "web"));
    let before = cluster().state(&[&old.namespace, &new.namespace]);
    let nowhere = fresh("nowhere");
    let wide = format!("widgets.{group}/web");
    for (arguments, message) in [
        (&["oops"][..], "--to-namespace"),
        (&["oops", "--to-namespace", &old.namespace], "--to-namespace"),
        (&["oops", "--to-namespace", &nowhere], &nowhere),
        (&["oops", "--to-namespace", "No/Name"], "--to-namespace"),
        (&[&wide, "--to-namespace", &new.namespace], "--to-namespace"),
    ] {
        let run = old.invoke("move", arguments).expect(2);
        assert!(run.stderr.contains(message), "{message}: {}", run.stderr);
        assert_eq!(cluster().state(&[&old.namespace, &new.namespace]), before);
    }
    // A set that is there already takes the members in.
    let own = config_map(&new.namespace, "own", "1");
    new.apply(std::slice::from_ref(&own));
    old.invoke("move", &["oops", "--to-namespace", &new.namespace])
        .expect(0);
    new.assert_holds(&[&objects[..], &[own]].concat());
    assert_eq!(old.live_parent(), None);
}

#[test]
fn a_run_that_was_killed_anywhere_is_finished_by_the_same_run() {
    for writes in 0.. {
        let (old, new, objects) = scenario(|home| Set::secret(home, "oops"));
        old.apply(&objects);
        let arguments = [&*new.reference, "--to-namespace", &new.namespace];
        let proxy = Proxy::holding_after(writes);
        let program = Program::with_kubeconfig(&proxy.kubeconfig());
        let end = old.invocation(program, "move", &arguments).run_until_held(&proxy);
        let all = [&old, &new].map(|set| {
            assert_eq!(set.unrecorded(), Vec::<String>::new(), "after {writes} writes");
            set.members()
        });
        let mut all = all.concat();
        all.sort();
        assert_eq!(all, identities(&objects), "after {writes} writes");
        if end == ProgramEnd::Killed {
            old.invoke("move", &arguments).expect(0);
        }
        new.assert_holds(&objects);
        assert_eq!(old.live_parent(), None);
        if end == ProgramEnd::Finished {
            // The new parent twice, two labels, and the end of the old parent.
            // The objects are tried first.
            assert_eq!(writes, 8);
            return;
        }
    }
}

#[test]
fn the_permissions_are_those_on_the_parents_in_both_namespaces() {
    let (old, new, objects) = scenario(|home| Set::secret(home, "oops"));
    old.apply(&objects);
    let members = || {
        ["configmaps", "services", "secrets"].map(|resource| rule("", resource, &["get", "list", "patch"]))
    };
    let granted = |more: &[Value]| {
        let there = Grant::in_namespace(&new.namespace, [&members()[..], more].concat());
        let delete = rule("", "secrets", &["delete"]);
        user(&[
            Grant::in_namespace(&old.namespace, [&members()[..], &[delete]].concat()),
            there,
        ])
    };
    let arguments = ["oops", "--to-namespace", &new.namespace];
    let by = |more: &[Value]| {
        let program = Program::with_kubeconfig(&granted(more).kubeconfig);
        old.invoke_by(program, "move", &arguments)
    };
    let run = by(&[]).expect(4);
    let missing = "cannot create resource \"secrets\"";
    assert!(run.stderr.contains(missing), "{}", run.stderr);
    assert!(run.stderr.contains(&new.namespace), "{}", run.stderr);
    old.assert_holds(&objects);
    by(&[rule("", "secrets", &["create"])]).expect(0);
    new.assert_holds(&objects);
    assert_eq!(old.live_parent(), None);
}
