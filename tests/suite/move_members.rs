//! `move`: a set is renamed or split, and no object is in no set at any moment.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use controlplane::{ControlPlane, Grant};
use serde_json::{Value, json};

use super::rights::{rule, user};
use crate::support::{
    Files, ID, Program, ProgramEnd, Proxy, Sent, Set, TOOLING, Verdict, cluster, cluster_role, config_map,
    fresh, identities, kubectl_apply, named, namespace, namespace_object, objects_file, secret, service,
    with,
};

struct Scenario {
    old: Set,
    new: Set,
    objects: Vec<Value>,
}

fn scenario() -> Scenario {
    let [a, b] = [namespace("a"), namespace("b")];
    let scenario = Scenario {
        old: Set::secret(&a, "old"),
        new: Set::config_map(&a, "new"),
        objects: vec![
            config_map(&a, "one", "1"),
            config_map(&b, "two", "1"),
            with(
                service(&b, "web", 80),
                &json!({"metadata": {"labels": {"tier": "front"}}}),
            ),
            cluster_role(&fresh("role")),
        ],
    };
    scenario.old.apply(&scenario.objects);
    scenario
}

fn contents(objects: &[Value]) -> Vec<Value> {
    objects.iter().map(|object| cluster().content(object)).collect()
}

#[test]
fn a_move_into_a_set_with_members_says_what_its_next_apply_does() {
    let Scenario { old, new, objects } = scenario();
    let own = config_map(&new.namespace, "own", "1");
    new.apply(std::slice::from_ref(&own));
    let note = "already had 1 member";

    let run = old
        .invoke("move", &[&new.reference, "--dry-run=server"])
        .expect(0);
    assert!(run.stderr.contains(note), "{}", run.stderr);
    let run = old.invoke("move", &[&new.reference]).expect(0);

    assert!(run.stderr.contains(note), "{}", run.stderr);
    new.assert_holds(&[&objects[..], std::slice::from_ref(&own)].concat());
}

#[test]
fn a_renamed_set_continues_where_the_old_one_was() {
    let Scenario { old, new, objects } = scenario();
    let before = contents(&objects);
    for flag in ["--dry-run=client", "--dry-run=server"] {
        let run = old.invoke("move", &[&new.reference, flag]).expect(0);
        assert_eq!(run.results("adopted"), identities(&objects), "{flag}");
        assert_eq!(run.results("deleted"), identities([&old.parent]), "{flag}");
        old.assert_holds(&objects);
        assert_eq!(new.live_parent(), None);
    }

    let run = old.invoke("move", &[&new.reference]).expect(0);

    assert_eq!(run.results("adopted"), identities(&objects));
    assert_eq!(run.results("deleted"), identities([&old.parent]));
    assert_eq!(run.document()["set"]["name"], "new");
    assert_eq!(run.document()["summary"]["deleted"], 1);
    assert_eq!(run.warnings(), Vec::<String>::new());
    assert_eq!(contents(&objects), before);
    new.assert_holds(&objects);
    assert_eq!(old.live_parent(), None);
    let again = old.invoke("move", &[&new.reference]).expect(2);
    assert!(
        again.stderr.contains("an earlier move may have finished"),
        "{}",
        again.stderr
    );

    // The objects are the new set's in every respect, and no more the old one's.
    new.apply(&objects);
    assert_eq!(contents(&objects), before);
    let run = new.apply(&objects[..1]);
    assert_eq!(run.results("pruned"), identities(&objects[1..]));
    new.assert_holds(&objects[..1]);
}

/// An apply of unchanged objects says so, and sends no write; a diff says the same.
fn assert_unchanged(set: &Set, objects: &[Value], flags: &[&str]) {
    let files = Files::new().with("objects.yaml", &objects_file(objects));
    Program::new()
        .args(["diff", &set.reference, "-n", &set.namespace, "-f"])
        .args([files.directory()])
        .args(flags)
        .run()
        .expect(0);
    let proxy = Proxy::transparent();
    let run = set.apply_through(&proxy, objects, flags).expect(0);
    assert_eq!(run.results("unchanged"), identities(objects));
    let writes = proxy.sent().into_iter().filter(Sent::is_write);
    assert_eq!(
        writes.map(|sent| sent.path).collect::<Vec<_>>(),
        Vec::<String>::new()
    );
}

#[test]
fn what_has_moved_is_unchanged_for_the_next_apply() {
    let Scenario {
        old,
        new,
        mut objects,
    } = scenario();
    // Objects of which nothing but the label was applied.
    objects.push(named("v1", "ServiceAccount", Some(&old.namespace), "bare"));
    objects.push(named("v1", "ConfigMap", Some(&old.namespace), "bare"));
    old.apply(&objects);
    old.invoke("move", &[&new.reference]).expect(0);

    assert_unchanged(&new, &objects, &[]);
    new.assert_holds(&objects);

    // Back again, with a change on the way.
    new.invoke("move", &[&old.reference]).expect(0);
    objects[0] = config_map(&old.namespace, "one", "2");
    let run = old.apply(&objects);
    assert_eq!(run.results("configured"), identities(&objects[..1]));
    assert_unchanged(&old, &objects, &[]);
    // Under another manager the label is not our own.
    old.invoke("move", &[&new.reference, "--field-manager=ci"])
        .expect(0);
    let run = new.apply_with(&objects, &["--force-conflicts"]).expect(0);
    assert_eq!(run.results("configured"), identities(&objects));
    assert_unchanged(&new, &objects, &[]);
    // The label goes, for every writer.
    new.invoke("move", &[&old.reference]).expect(0);
    let run = old.apply(&objects[..1]);
    assert_eq!(run.results("pruned"), identities(&objects[1..]));
    old.invoke("disband", &["--yes"]).expect(0);
    assert_eq!(old.members(), Vec::<String>::new());
    let files = Files::new().with("objects.yaml", &objects_file(&objects[..1]));
    let directory = files.directory().to_string_lossy();
    old.invoke("adopt", &["--take-over-set", "--yes", "-f", &directory])
        .expect(0);
    assert_unchanged(&old, &objects[..1], &[]);
    old.assert_holds(&objects[..1]);
}

#[test]
fn a_set_is_split_by_labels() {
    let Scenario { old, new, objects } = scenario();
    let run = old
        .invoke("move", &[&new.reference, "-l", "tier=front"])
        .expect(0);
    assert_eq!(run.results("adopted"), identities(&objects[2..3]));
    new.assert_holds(&objects[2..3]);
    let rest = [&objects[..2], &objects[3..]].concat();
    old.assert_holds(&rest);
    let again = old
        .invoke("move", &[&new.reference, "-l", "tier=front"])
        .expect(0);
    assert_eq!(again.results("unchanged"), identities(&objects[2..3]));
    old.invoke("move", &[&new.reference, "-l", "tier=none"]).expect(2);
    old.invoke("move", &[&new.reference, "-l", "a b"]).expect(2);

    // The last part takes the old set with it.
    let run = old
        .invoke("move", &[&new.reference, "-l", "tier!=front"])
        .expect(0);
    assert_eq!(run.results("adopted"), identities(&rest));
    assert_eq!(run.results("deleted"), identities([&old.parent]));
    assert_eq!(old.live_parent(), None);
    new.assert_holds(&objects);
}

#[test]
fn an_old_parent_that_is_something_else_too_loses_only_the_record() {
    let home = namespace("home");
    let [data, member] = [Set::secret(&home, "data"), Set::config_map(&home, "member")];
    let outer = Set::secret(&home, "outer");
    cluster().create(&secret(&home, "data"));
    outer.apply(&[config_map(&home, "member", "1")]);
    for old in [&data, &member] {
        let object = config_map(&home, &fresh("one"), "1");
        old.apply_with(std::slice::from_ref(&object), &["--take-over-set", "--yes"])
            .expect(0);
        let new = Set::secret(&home, &fresh("new"));

        let dry_run = old
            .invoke("move", &[&new.reference, "--dry-run=server"])
            .expect(0);
        let run = old.invoke("move", &[&new.reference]).expect(0);

        for run in [dry_run, run] {
            assert_eq!(run.results("adopted"), identities([&object]));
            assert_eq!(run.results("skipped"), identities([&old.parent]));
        }
        new.assert_holds(&[object]);
        let live = old.live_parent().expect("the object");
        assert_eq!(live["metadata"]["labels"].get(ID), None);
        assert_ne!(live["data"], Value::Null);
        old.invoke("move", &[&new.reference]).expect(2);
    }
    outer.assert_holds(&[config_map(&home, "member", "1")]);
}

#[test]
fn an_old_parent_with_data_of_its_own_manifests_loses_only_the_record() {
    let home = namespace("home");
    let old = Set::config_map(&home, "old");
    let object = secret(&home, "one");
    old.apply(&[config_map(&home, "old", "1"), object.clone()]);
    let new = Set::config_map(&home, "new");
    let dry_run = old
        .invoke("move", &[&new.reference, "--dry-run=server"])
        .expect(0);
    let run = old.invoke("move", &[&new.reference]).expect(0);
    for run in [dry_run, run] {
        assert_eq!(run.results("skipped"), identities([&old.parent]));
    }
    new.assert_holds(&[object]);
    let live = old.live_parent().expect("the object");
    assert_eq!(live["metadata"]["labels"].get(ID), None);
    assert_eq!(live["data"], config_map(&home, "old", "1")["data"]);
}

#[test]
fn a_set_moves_together_with_the_namespace_of_its_parent() {
    let home = fresh("home");
    let [old, new] = [Set::secret(&home, "old"), Set::secret(&home, "new")];
    let objects = [namespace_object(&home), config_map(&home, "one", "1")];
    old.apply(&objects);
    old.invoke("move", &[&new.reference]).expect(0);
    new.assert_holds(&objects);
    assert_eq!(old.live_parent(), None);
}

#[test]
fn what_an_old_parent_owns_keeps_it() {
    let Scenario { old, new, objects } = scenario();
    let files = Files::new().with("objects.yaml", &objects_file(&objects[..1]));
    let directory = files.directory().to_string_lossy().into_owned();
    old.invoke("move", &[&new.reference, "-f", &directory]).expect(0);
    let parent = old.live_parent().expect("it");
    let reference = json!({"apiVersion": "v1", "kind": "Secret", "name": "old",
        "uid": parent["metadata"]["uid"]});
    cluster().patch(
        &objects[0],
        &json!({"metadata": {"ownerReferences": [reference]}}),
    );
    old.invoke("move", &[&new.reference]).expect(0);
    new.assert_holds(&objects);
    old.assert_holds(&[]);
}

fn reference_to(parent: &Set) -> Value {
    let uid = parent.live_parent().expect("it")["metadata"]["uid"].clone();
    json!({"metadata": {"ownerReferences": [
        {"apiVersion": "v1", "kind": "Secret", "name": "old", "uid": uid},
    ]}})
}

#[test]
fn what_the_old_parent_owns_by_the_time_it_would_go_keeps_it() {
    let Scenario { old, new, objects } = scenario();
    let own = secret(&old.namespace, "own");
    new.apply(std::slice::from_ref(&own));
    let owned = (own.clone(), reference_to(&old));
    let proxy = Proxy::before_write(1, move || {
        cluster().patch(&owned.0, &owned.1);
    });
    let program = Program::with_kubeconfig(&proxy.kubeconfig());
    let run = old.invoke_by(program, "move", &[&new.reference]).expect(0);
    assert!(run.stderr.contains("names it as its owner"), "{}", run.stderr);
    new.assert_holds(&[&objects[..], &[own]].concat());
    old.assert_holds(&[]);
}

#[test]
fn an_interrupt_while_the_new_set_is_listed_keeps_the_old_parent() {
    let Scenario { old, new, objects } = scenario();
    let own = secret(&old.namespace, "own");
    new.apply(std::slice::from_ref(&own));
    let (reached, is_reached) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let (ends, has_written) = (Mutex::new((reached, released)), AtomicBool::new(false));
    let list_of_new = format!("part-of%3D{}", new.id);
    // The parent of the old set is written before the labels, and the new set listed after them.
    let proxy = Proxy::before_request(
        move |sent| {
            has_written.fetch_or(sent.path.contains("/clusterroles/"), Ordering::SeqCst);
            has_written.load(Ordering::SeqCst) && sent.path.contains(&list_of_new)
        },
        move || {
            let (reached, released) = &*ends.lock().expect("no panic");
            let _ = reached.send(());
            let _ = released.recv();
        },
    );
    let program = Program::with_kubeconfig(&proxy.kubeconfig());
    let mut running = old.invocation(program, "move", &[&new.reference]).start();
    is_reached.recv().expect("the new set is listed");
    running.interrupt();
    running.wait_for_message("stopping");
    release.send(()).expect("the list is held");
    running.finish().expect(130);
    assert!(old.live_parent().is_some());
    old.invoke("move", &[&new.reference]).expect(0);
    assert_eq!(old.live_parent(), None);
    new.assert_holds(&[&objects[..], &[own]].concat());
}

#[test]
fn a_part_of_a_set_moves_without_a_look_at_the_contents_of_the_rest() {
    let Scenario { old, new, objects } = scenario();
    let proxy = Proxy::transparent();
    let program = Program::with_kubeconfig(&proxy.kubeconfig());
    old.invoke_by(program, "move", &[&new.reference, "-l", "tier=front"])
        .expect(0);
    new.assert_holds(&objects[2..3]);
    let lists_of_old = format!("part-of%3D{}", old.id);
    let sent = proxy.sent();
    let forms: BTreeSet<&str> = sent
        .iter()
        .filter(|sent| sent.path.contains(&lists_of_old))
        .map(|sent| sent.accept.as_str())
        .collect();
    let is_metadata = |form: &&str| form.contains("as=PartialObjectMetadataList");
    assert!(!forms.is_empty() && forms.iter().all(is_metadata), "{forms:?}");
}

#[test]
fn a_user_who_may_list_no_more_than_the_places_of_both_sets_ends_the_old_one() {
    let [a, b] = [namespace("a"), namespace("b")];
    let (old, new) = (Set::secret(&a, "old"), Set::config_map(&a, "new"));
    let (moved, settled) = (secret(&a, "one"), service(&b, "web", 80));
    old.apply(std::slice::from_ref(&moved));
    new.apply(std::slice::from_ref(&settled));
    let verbs = ["get", "list", "create", "patch", "delete"];
    let all = |resources: &[&str]| -> Vec<Value> {
        let rules = resources.iter().map(|resource| rule("", resource, &verbs));
        rules.collect()
    };
    let user = user(&[
        Grant::in_namespace(&a, all(&["secrets", "configmaps", "services"])),
        Grant::in_namespace(&b, all(&["services"])),
    ]);
    let program = Program::with_kubeconfig(&user.kubeconfig);
    old.invoke_by(program, "move", &[&new.reference]).expect(0);
    assert_eq!(old.live_parent(), None);
    new.assert_holds(&[moved, settled]);
}

#[test]
fn an_old_parent_that_owns_the_new_one_is_kept() {
    let Scenario { old, new, objects } = scenario();
    let own = secret(&old.namespace, "own");
    new.apply(std::slice::from_ref(&own));
    cluster().patch(&new.parent, &reference_to(&old));
    for mode in ["--dry-run=client", "--dry-run=server"] {
        let run = old.invoke("move", &[&new.reference, mode]).expect(0);
        assert!(run.stderr.contains("names it as its owner"), "{}", run.stderr);
        assert!(run.results("deleted").is_empty(), "{mode}");
    }
    let run = old.invoke("move", &[&new.reference]).expect(0);
    assert!(run.stderr.contains("names it as its owner"), "{}", run.stderr);
    new.assert_holds(&[&objects[..], &[own]].concat());
    old.assert_holds(&[]);
}

#[test]
fn a_copied_label_that_another_object_owns_does_not_hold_the_old_parent() {
    let Scenario { old, new, objects } = scenario();
    let owner = cluster().live(&objects[0]).expect("it");
    let reference =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "one", "uid": owner["metadata"]["uid"]});
    let copy = with(
        config_map(&old.namespace, "copy", "1"),
        &json!({"metadata": {
            "labels": {(crate::support::PART_OF): old.id}, "ownerReferences": [reference],
        }}),
    );
    cluster().create(&copy);
    let run = old.invoke("move", &[&new.reference]).expect(0);
    assert_eq!(run.results("skipped"), identities([&copy]));
    assert_eq!(old.live_parent(), None);
    new.assert_holds(&objects);
}

#[test]
fn a_set_is_split_by_manifests() {
    let Scenario { old, new, objects } = scenario();
    let stranger = config_map(&old.namespace, "stranger", "1");
    cluster().create(&stranger);
    let asked = [&objects[..2], std::slice::from_ref(&stranger)].concat();
    let files = Files::new().with("objects.yaml", &objects_file(&asked));
    let directory = files.directory().to_string_lossy().into_owned();
    let run = old.invoke("move", &[&new.reference, "-f", &directory]).expect(0);
    assert_eq!(run.results("adopted"), identities(&objects[..2]));
    assert_eq!(run.results("skipped"), identities([&stranger]));
    new.assert_holds(&objects[..2]);
    old.assert_holds(&objects[2..]);
    let again = old.invoke("move", &[&new.reference, "-f", &directory]).expect(0);
    assert_eq!(again.results("unchanged"), identities(&objects[..2]));
}

#[test]
fn members_are_merged_into_a_set_that_has_some() {
    let Scenario { old, new, objects } = scenario();
    let own = [secret(&old.namespace, "own")];
    new.apply(&own);
    old.invoke("move", &[&new.reference]).expect(0);
    new.assert_holds(&[&own[..], &objects].concat());
}

#[test]
fn what_is_not_a_member_by_will_stays_behind_with_its_record() {
    let Scenario { old, new, objects } = scenario();
    let copy = with(
        config_map(&old.namespace, "copy", "1"),
        &json!({"metadata": {"labels": {(crate::support::PART_OF): old.id}}}),
    );
    cluster().create(&copy);
    let run = old.invoke("move", &[&new.reference]).expect(0);
    assert_eq!(run.results("skipped"), identities([&copy]));
    new.assert_holds(&objects);
    old.assert_holds(&[copy]);
}

#[test]
fn what_cannot_be_moved_to_is_refused() {
    let Scenario { old, new, objects } = scenario();
    let home = old.namespace.clone();
    old.invoke("move", &[&old.reference]).expect(2);
    old.invoke("move", &["namespace/x"]).expect(2);
    Set::secret(&home, "nothing")
        .invoke("move", &[&new.reference])
        .expect(2);
    let ordinary = Set::secret(&home, "ordinary");
    cluster().create(&ordinary.parent);
    old.invoke("move", &[&ordinary.reference]).expect(3);
    let theirs = Set::secret(&home, "theirs");
    let applyset = format!("--applyset={}", theirs.reference);
    kubectl_apply(
        &[config_map(&home, "theirs", "1")],
        &["--prune", &applyset, "-n", &home],
    )
    .expect(0);
    let run = old.invoke("move", &[&theirs.reference]).expect(3);
    assert!(run.stderr.contains("kubectl/v1."), "{}", run.stderr);
    theirs.invoke("move", &[&new.reference]).expect(3);
    let going = Set::config_map(&home, "going");
    let finalizer = json!({"metadata": {"finalizers": ["example.com/keep"]}});
    going.apply(&[secret(&home, "its")]);
    cluster().patch(&going.parent, &finalizer);
    cluster().delete(&going.parent);
    old.invoke("move", &[&going.reference]).expect(3);
    cluster().patch(&going.parent, &json!({"metadata": {"finalizers": null}}));
    old.assert_holds(&objects);
    assert_eq!(new.live_parent(), None);
}

#[test]
fn sets_of_kubectl_are_renamed_for_kubectl() {
    let home = namespace("home");
    let [old, new] = [Set::secret(&home, "old"), Set::secret(&home, "new")];
    let objects = [config_map(&home, "one", "1"), service(&home, "web", 80)];
    let applyset = |set: &Set| format!("--applyset={}", set.reference);
    kubectl_apply(&objects, &["--prune", &applyset(&old), "-n", &home]).expect(0);
    let tooling = old.annotation(TOOLING).expect("a tooling");

    old.invoke("move", &[&new.reference, "--tooling", &tooling])
        .expect(0);

    new.assert_holds(&objects);
    assert_eq!(old.live_parent(), None);
    assert_eq!(new.annotation(TOOLING), Some(tooling));
    kubectl_apply(&objects[..1], &["--prune", &applyset(&new), "-n", &home]).expect(0);
    new.assert_holds(&objects[..1]);
}

#[test]
fn a_run_that_was_killed_anywhere_is_made_good_by_the_same_run() {
    for writes in 0.. {
        let Scenario { old, new, objects } = scenario();
        let proxy = Proxy::holding_after(writes);
        let program = Program::with_kubeconfig(&proxy.kubeconfig());
        let end = old
            .invocation(program, "move", &[&new.reference])
            .run_until_held(&proxy);
        let [left, moved] = [&old, &new].map(|set| {
            assert_eq!(set.unrecorded(), Vec::<String>::new(), "after {writes} writes");
            set.members()
        });
        let mut all = [left, moved].concat();
        all.sort();
        assert_eq!(all, identities(&objects), "after {writes} writes");
        if end == ProgramEnd::Killed {
            old.invoke("move", &[&new.reference]).expect(0);
        }
        new.assert_holds(&objects);
        assert_eq!(old.live_parent(), None);
        if end == ProgramEnd::Finished {
            // Three of parents, and two of each object, first in a dry run.
            assert_eq!(writes, 12);
            return;
        }
    }
}

#[test]
fn every_object_is_in_one_recorded_set_at_every_write() {
    let Scenario { old, new, objects } = scenario();
    let arguments = [new.reference.clone()];
    let sets = Arc::new([old, new]);
    let faults = Arc::new(Mutex::new(Vec::new()));
    let witness = (Arc::clone(&sets), Arc::clone(&faults), identities(&objects));
    let proxy = Proxy::gated(move |writes| {
        let (sets, faults, expected) = &witness;
        let mut all: Vec<String> = sets.iter().flat_map(Set::members).collect();
        all.sort();
        let unrecorded: Vec<String> = sets.iter().flat_map(Set::unrecorded).collect();
        if all != *expected || !unrecorded.is_empty() {
            let fault = format!("before write {writes}: {all:?}, {unrecorded:?}");
            faults.lock().expect("no panic").push(fault);
        }
        Verdict::Forward
    });
    let program = Program::with_kubeconfig(&proxy.kubeconfig());
    sets[0].invoke_by(program, "move", &[&arguments[0]]).expect(0);
    assert_eq!(*faults.lock().expect("no panic"), Vec::<String>::new());
    sets[1].assert_holds(&objects);
}

#[test]
fn a_concurrent_apply_to_the_old_set_loses_nothing() {
    for write in 0..6 {
        let Scenario { old, new, objects } = scenario();
        let more = secret(&old.namespace, "more");
        let sets = Arc::new([old, new]);
        let done = Arc::new(Mutex::new(false));
        let witness = (Arc::clone(&sets), more.clone(), Arc::clone(&done));
        let proxy = Proxy::before_write(write, move || {
            let (sets, more, done) = &witness;
            let more = std::slice::from_ref(more);
            sets[0].apply_with(more, &["--prune=false"]).expect(0);
            *done.lock().expect("no panic") = true;
        });
        let program = Program::with_kubeconfig(&proxy.kubeconfig());
        let reference = sets[1].reference.clone();
        // The run has not listed what the other one has recorded since, so the old set is kept.
        sets[0].invoke_by(program, "move", &[&reference]).expect(1);
        assert!(*done.lock().expect("no panic"), "write {write} was made");
        for set in sets.iter() {
            assert_eq!(set.unrecorded(), Vec::<String>::new(), "write {write}");
        }
        assert_eq!(sets[0].members(), identities([&more]), "write {write}");
        assert_eq!(sets[1].members(), identities(&objects), "write {write}");
    }
}

#[test]
fn runs_at_once_agree() {
    let Scenario { old, new, objects } = scenario();
    let codes: Vec<i32> = thread::scope(|scope| {
        let runs: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| old.invoke("move", &[&new.reference]).code))
            .collect();
        let codes = runs.into_iter().map(|run| run.join().expect("no panic"));
        codes.collect()
    });
    // A run that begins when another has finished finds no old set (2). A run whose old parent another one deletes does
    // not know what that recorded last (1): run again, it finds no old set either.
    assert!(codes.contains(&0), "{codes:?}");
    assert!(codes.iter().all(|code| [0, 1, 2].contains(code)), "{codes:?}");
    new.assert_holds(&objects);
    assert_eq!(old.live_parent(), None);
    old.invoke("move", &[&new.reference]).expect(2);
}

#[test]
fn who_may_not_write_one_of_the_parents_hears_it_before_the_first_write() {
    let home = namespace("home");
    let [old, new] = [Set::secret(&home, "old"), Set::config_map(&home, "new")];
    let objects = [service(&home, "one", 80), service(&home, "two", 80)];
    old.apply(&objects);
    let rule =
        |resource: &str, verbs: &[&str]| json!({"apiGroups": [""], "resources": [resource], "verbs": verbs});
    let user = |verbs: [&[&str]; 3]| {
        let rules = [
            rule("services", verbs[0]),
            rule("secrets", verbs[1]),
            rule("configmaps", verbs[2]),
        ];
        ControlPlane::shared()
            .user(&[Grant::in_namespace(&home, rules)])
            .expect("a user")
    };
    for (verbs, what) in [
        (
            [
                &["get", "list"][..],
                &["get", "patch", "delete"][..],
                &["get", "create", "patch"][..],
            ],
            "patch resource \"services\"",
        ),
        (
            [
                &["get", "list", "patch"],
                &["get", "delete"],
                &["get", "create", "patch"],
            ],
            "patch resource \"secrets\" \"old\"",
        ),
        (
            [
                &["get", "list", "patch"],
                &["get", "patch"],
                &["get", "create", "patch"],
            ],
            "delete resource \"secrets\" \"old\"",
        ),
        (
            [&["get", "list", "patch"], &["get", "patch", "delete"], &["get"]],
            "create resource \"configmaps\"",
        ),
    ] {
        let user = user(verbs);
        let before = cluster().state(&[&home]);
        let program = Program::with_kubeconfig(&user.kubeconfig);
        let run = old.invoke_by(program, "move", &[&new.reference]).expect(4);
        assert!(run.stderr.contains(what), "{what}: {}", run.stderr);
        assert_eq!(cluster().state(&[&home]), before);
    }
    let user = user([
        &["get", "list", "patch"],
        &["get", "patch", "delete"],
        &["get", "create", "patch"],
    ]);
    let program = Program::with_kubeconfig(&user.kubeconfig);
    old.invoke_by(program, "move", &[&new.reference]).expect(0);
    new.assert_holds(&objects);
    assert_eq!(old.live_parent(), None);
}

#[test]
fn an_old_set_whose_members_an_interrupted_run_has_moved_goes_with_the_next_run() {
    let Scenario { old, new, objects } = scenario();
    let proxy = Proxy::holding_after(10);
    let program = Program::with_kubeconfig(&proxy.kubeconfig());
    let end = old
        .invocation(program, "move", &[&new.reference])
        .run_until_held(&proxy);
    assert_eq!(end, ProgramEnd::Killed);
    new.assert_holds(&objects);
    assert!(old.live_parent().is_some());
    let run = old.invoke("move", &[&new.reference]).expect(0);
    assert_eq!(run.results("unchanged"), identities(&objects));
    assert_eq!(run.results("deleted"), identities([&old.parent]));
    assert_eq!(old.live_parent(), None);
}

#[test]
fn where_nothing_moves_the_old_parent_is_not_written() {
    let home = namespace("home");
    let [old, new] = [Set::secret(&home, "old"), Set::config_map(&home, "new")];
    let objects = [config_map(&home, "one", "1"), service(&home, "two", 80)];
    old.apply(&objects);
    // The record is wider than it needs to be now.
    cluster().delete(&objects[1]);
    let stranger = config_map(&home, "stranger", "1");
    cluster().create(&stranger);
    let rule =
        |resource: &str, verbs: &[&str]| json!({"apiGroups": [""], "resources": [resource], "verbs": verbs});
    let rules = [
        rule("services", &["get", "list"]),
        rule("configmaps", &["get", "list"]),
        rule("secrets", &["get"]),
    ];
    let user = ControlPlane::shared()
        .user(&[Grant::in_namespace(&home, rules)])
        .expect("a user");
    let files = Files::new().with("a.yaml", &objects_file(std::slice::from_ref(&stranger)));
    let directory = files.directory().to_string_lossy().into_owned();
    let before = old.parent_version();
    let program = Program::with_kubeconfig(&user.kubeconfig);
    let run = old
        .invoke_by(program, "move", &[&new.reference, "-f", &directory])
        .expect(1);
    assert_eq!(run.results("skipped"), identities([&stranger]));
    assert_eq!(old.parent_version(), before);
    assert_eq!(new.live_parent(), None);
}

#[test]
fn a_move_once_the_last_member_is_gone_ends_the_old_set() {
    let home = namespace("home");
    let [old, new] = [Set::secret(&home, "old"), Set::config_map(&home, "new")];
    let going = with(
        config_map(&home, "going", "1"),
        &json!({"metadata": {"finalizers": ["example.com/held"]}}),
    );
    old.apply(std::slice::from_ref(&going));
    cluster().delete(&going);
    let run = old.invoke("move", &[&new.reference]).expect(1);
    assert_eq!(run.results("skipped"), identities([&going]));
    old.assert_records(std::slice::from_ref(&going));
    cluster().patch(&going, &json!({"metadata": {"finalizers": null}}));
    for flags in [["--dry-run=server"].as_slice(), &[]] {
        assert!(old.live_parent().is_some());
        let arguments = [&[new.reference.as_str()], flags].concat();
        let run = old.invoke("move", &arguments).expect(0);
        assert_eq!(run.results("deleted"), identities([&old.parent]));
    }
    assert_eq!([&old, &new].map(Set::live_parent), [None, None]);
}

#[test]
fn members_that_another_manager_applied_keep_that_manager() {
    let home = namespace("home");
    let [old, new] = [Set::secret(&home, "old"), Set::config_map(&home, "new")];
    let one = config_map(&home, "one", "1");
    let by_ci = ["--field-manager=ci"];
    old.apply_with(std::slice::from_ref(&one), &by_ci).expect(0);
    let run = old.invoke("move", &[&new.reference]).expect(1);
    assert_eq!(run.results("skipped"), identities([&one]));
    assert!(
        run.reason("one").contains("--field-manager") && run.reason("one").contains("ci"),
        "{}",
        run.reason("one")
    );
    old.invoke("move", &[&new.reference, by_ci[0]]).expect(0);
    new.assert_holds(&[one]);
}

#[test]
fn a_move_looks_once_through_all_kinds_if_the_new_set_has_no_record() {
    let Scenario { old, new, objects } = scenario();
    let sent = |set: &Set, to: &Set| {
        let proxy = Proxy::transparent();
        let program = Program::with_kubeconfig(&proxy.kubeconfig());
        let run = set.invoke_by(program, "move", &[&to.reference]).expect(0);
        assert_eq!(run.results("adopted"), identities(&objects));
        proxy.sent()
    };
    let to_new = sent(&old, &new);
    let paths: BTreeSet<&str> = to_new.iter().map(|sent| sent.path.as_str()).collect();
    let everywhere = |path: &&&str| path.contains(&new.id) && !path.contains("/namespaces/");
    let everywhere = paths.iter().filter(everywhere).count();
    let home = format!("/api/v1/namespaces/{}", new.namespace);
    assert_eq!(to_new.iter().filter(|sent| sent.path == home).count(), 1);
    assert!(!paths.iter().any(|path| path.contains("/componentstatuses")));
    // Discovery, both parents, the members before, after and in between, their labels, what has lost its
    // label, and what the old parent owns.
    assert!(
        to_new.len() <= everywhere + 47,
        "{everywhere} of {}",
        to_new.len()
    );

    // A set with a record is looked for nowhere else.
    let recorded = Set::secret(&new.namespace, "recorded");
    recorded.apply(&[config_map(&new.namespace, "other", "1")]);
    let to_recorded = sent(&new, &recorded);
    assert!(to_recorded.len() <= 47, "{}", to_recorded.len());
}
