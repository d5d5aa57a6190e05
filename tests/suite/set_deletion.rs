//! `delete`: a whole set goes, members first and the parent last; what is kept keeps its
//! parent, and wherever a run ends, the next one continues.

use std::sync::{Arc, Mutex};

use controlplane::{ControlPlane, Grant};
use http::Method;
use serde_json::{Value, json};

use crate::support::{
    Fault, ID, PART_OF, Program, ProgramEnd, Proxy, Run, Set, TOOLING, Verdict, cluster, cluster_role,
    config_map, custom_resource, definition, deployment, eventually, fresh, identities, kubectl_apply, named,
    namespace, namespace_object, secret, service, with,
};

const KEEP: &str = "helm.sh/resource-policy";

fn kept(object: Value) -> Value {
    with(object, &json!({"metadata": {"annotations": {KEEP: "keep"}}}))
}

fn held(object: Value) -> Value {
    with(object, &json!({"metadata": {"finalizers": ["example.com/held"]}}))
}

fn let_go(object: &Value) {
    cluster().patch(object, &json!({"metadata": {"finalizers": null}}));
    eventually("the object is gone", || {
        cluster().live(object).is_none().then_some(())
    });
}

/// Asserts that nothing is left of the set.
#[track_caller]
fn assert_gone(set: &Set) {
    assert_eq!(cluster().members(&set.id), []);
    assert_eq!(set.live_parent(), None);
}

#[test]
fn members_go_in_reverse_order_and_the_parent_last() {
    let [a, b] = [namespace("a"), namespace("b")];
    let set = Set::secret(&a, "web");
    let objects = [
        config_map(&a, "one", "1"),
        deployment(&b, "web", 1),
        cluster_role(&fresh("role")),
    ];
    set.apply(&objects);
    let bystander = config_map(&b, "bystander", "1");
    let before = cluster().create(&bystander);
    let proxy = Proxy::transparent();

    let run = set
        .delete_with(Program::with_kubeconfig(&proxy.kubeconfig()), &[])
        .expect(0);

    assert_gone(&set);
    assert_eq!(cluster().live(&bystander), Some(before));
    let everything = [objects.as_slice(), std::slice::from_ref(&set.parent)].concat();
    assert_eq!(run.results("deleted"), identities(&everything));
    assert_eq!(run.document()["summary"]["deleted"], 4);
    let sent = proxy.sent();
    let deletes: Vec<&str> = sent
        .iter()
        .filter(|sent| sent.method == Method::DELETE)
        .map(|sent| sent.path.rsplit('/').nth(1).unwrap_or_default())
        .collect();
    assert_eq!(
        (deletes[0], deletes[3]),
        ("deployments", "secrets"),
        "{deletes:?}"
    );
    assert_eq!(sent.iter().filter(|sent| sent.is_write()).count(), 5);
}

#[test]
fn without_a_terminal_nothing_goes_before_it_is_confirmed() {
    let home = namespace("home");
    let set = Set::config_map(&home, "web");
    set.apply(&[secret(&home, "one"), secret(&home, "two")]);
    let before = cluster().state(&[&home]);
    let run = set.deletion(Program::new()).args(["-o", "json"]).run().expect(3);
    for text in ["secret/one", "secret/two", "configmap/web", "--yes"] {
        assert!(run.stderr.contains(text), "no {text:?} in\n{}", run.stderr);
    }
    assert_eq!(run.document()["error"]["exitCode"], 3);
    for mode in ["client", "server"] {
        let mode = format!("--dry-run={mode}");
        let run = set
            .deletion(Program::new())
            .args(["-o", "json", &mode])
            .run()
            .expect(0);
        assert_eq!(run.document()["summary"]["deleted"], 3);
    }
    assert_eq!(cluster().state(&[&home]), before);
}

#[test]
fn a_set_that_is_not_there() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    set.delete(&[]).expect(2);
    set.delete(&["--ignore-not-found"]).expect(0);
    // An object of that name that is not a parent.
    let plain = cluster().create(&secret(&home, "web"));
    set.delete(&[]).expect(2);
    assert_eq!(set.live_parent(), Some(plain));
}

#[test]
fn what_is_kept_keeps_its_parent_with_an_exact_record() {
    let [a, b, c] = [namespace("a"), namespace("b"), namespace("c")];
    let set = Set::secret(&a, "web");
    let marked = kept(config_map(&b, "marked", "1"));
    let owner = cluster().create(&config_map(&b, "owner", "1"));
    let owned = with(
        service(&b, "owned", 80),
        &json!({"metadata": {"ownerReferences": [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]},
        ]}}),
    );
    let staying = [marked.clone(), owned];
    let going = [secret(&c, "gone"), cluster_role(&fresh("role"))];
    set.apply(&[staying.as_slice(), &going].concat());

    let run = set.delete(&[]).expect(0);

    assert_eq!(run.results("deleted"), identities(&going));
    let skipped = [staying.as_slice(), std::slice::from_ref(&set.parent)].concat();
    assert_eq!(run.results("skipped"), identities(&skipped));
    assert_ne!(run.reason("marked"), "");
    assert_ne!(run.reason("web"), "");
    assert!(
        run.warnings().iter().any(|warning| warning.contains("disband")),
        "{}",
        run.stderr
    );
    set.assert_holds(&staying);

    cluster().patch(&marked, &json!({"metadata": {"annotations": {KEEP: null}}}));
    cluster().patch(&staying[1], &json!({"metadata": {"ownerReferences": null}}));
    set.delete(&[]).expect(0);
    assert_gone(&set);
}

#[test]
fn what_a_controller_labeled_and_what_is_another_sets_stays() {
    let home = namespace("home");
    let [set, other] = [Set::secret(&home, "web"), Set::secret(&home, "other")];
    set.apply(&[config_map(&home, "one", "1")]);
    let theirs = config_map(&home, "theirs", "1");
    other.apply(std::slice::from_ref(&theirs));
    let copy = with(
        config_map(&home, "copy", "1"),
        &json!({"metadata": {"labels": {PART_OF: set.id}}}),
    );
    cluster().create(&copy);

    let run = set.delete(&[]).expect(1);

    assert_eq!(
        run.results("deleted"),
        identities([&config_map(&home, "one", "1")])
    );
    // It may be a member that was applied under another name.
    assert_names(&run, &["configmap/copy", "tests", "--field-manager"]);
    set.assert_holds(std::slice::from_ref(&copy));
    other.assert_holds(&[theirs]);
    cluster().patch(&copy, &json!({"metadata": {"labels": {PART_OF: null}}}));
    set.delete(&[]).expect(0);
    assert_gone(&set);
}

/// An object that a controller made for another one, whose labels it copied.
fn copy_for(owner: &Value, object: Value, id: &str) -> Value {
    let owner = cluster().live(owner).expect("the owner");
    let metadata = &owner["metadata"];
    let reference = json!({"apiVersion": owner["apiVersion"], "kind": owner["kind"],
        "name": metadata["name"], "uid": metadata["uid"]});
    with(
        object,
        &json!({"metadata": {"labels": {PART_OF: id}, "ownerReferences": [reference]}}),
    )
}

#[test]
fn a_copied_label_that_another_object_owns_holds_neither_parent_nor_namespace() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let away = fresh("away");
    let objects = [namespace_object(&away), config_map(&away, "one", "1")];
    set.apply(&objects);
    let [operator, inside] = [
        config_map(&home, "operator", "1"),
        config_map(&away, "operator", "1"),
    ];
    for object in [&operator, &inside] {
        cluster().create(object);
    }
    let outside = copy_for(&operator, config_map(&home, "copy", "1"), &set.id);
    cluster().create(&outside);
    cluster().create(&copy_for(&inside, config_map(&away, "copy", "1"), &set.id));
    let expected = identities(objects.iter().chain([&set.parent]));
    let dry_run = set.delete(&["--allow-data-loss", "--dry-run=server"]).expect(0);
    assert_eq!(dry_run.results("deleted"), expected);

    let run = set.delete(&["--allow-data-loss"]).expect(0);

    assert_eq!(run.results("deleted"), expected);
    assert_eq!(run.reason("copy"), "owned by ConfigMap operator");
    assert_eq!(set.live_parent(), None);
    assert_eq!(set.members(), identities([&outside]));
}

#[test]
fn a_member_of_an_owner_that_goes_is_waited_for() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let owner = config_map(&home, "owner", "1");
    set.apply(std::slice::from_ref(&owner));
    let uid = cluster().live(&owner).expect("it")["metadata"]["uid"].clone();
    let owned = with(
        service(&home, "owned", 80),
        &json!({"metadata": {"ownerReferences": [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid},
        ]}}),
    );
    set.apply(&[owner, owned]);
    set.delete(&[]).expect(0);
    assert_gone(&set);
}

#[test]
fn a_definition_and_a_namespace_are_waited_for() {
    let home = namespace("home");
    let group = format!("{}.example.com", fresh("g"));
    let away = fresh("away");
    let set = Set::secret(&home, "web");
    let objects = [
        definition(&group, "Namespaced"),
        namespace_object(&away),
        custom_resource(&group, Some(&away), "one"),
        config_map(&away, "one", "1"),
    ];
    set.apply(&objects);
    let expected = identities(objects.iter().chain([&set.parent]));
    let run = set.delete(&[]).expect(0);
    assert_eq!(run.results("deleted"), expected);
    assert_gone(&set);
    for object in &objects[..2] {
        assert_eq!(cluster().live(object), None);
    }
}

#[test]
fn a_namespace_that_does_not_go_is_named() {
    let home = namespace("home");
    let away = fresh("away");
    let set = Set::secret(&home, "web");
    let slow = held(config_map(&away, "slow", "1"));
    let objects = [namespace_object(&away), slow.clone()];
    set.apply(&objects);
    let run = set.delete(&["--timeout=5s"]).expect(1);
    assert_names(&run, &["--timeout"]);
    let names = |warning: &String| warning.contains(&format!("namespace/{away}"));
    assert!(run.warnings().iter().any(names), "{}", run.stderr);
    assert_eq!(set.unrecorded(), Vec::<String>::new());
    let_go(&slow);
    set.delete(&[]).expect(0);
    assert_gone(&set);
}

#[test]
fn a_parent_that_is_still_being_deleted_is_named() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    set.apply(&[config_map(&home, "one", "1")]);
    cluster().patch(
        &set.parent,
        &json!({"metadata": {"finalizers": ["example.com/held"]}}),
    );
    for _ in 0..2 {
        let run = set.delete(&[]).expect(1);
        assert_names(&run, &["secret/web", "example.com/held"]);
        assert_eq!(run.results("deleted").last(), identities([&set.parent]).last());
    }
    let_go(&set.parent);
    set.delete(&["--ignore-not-found"]).expect(0);
}

#[test]
fn orphans_that_are_still_being_deleted_are_named() {
    let [a, b] = [namespace("a"), namespace("b")];
    let set = Set::secret(&a, "web");
    let slow = held(config_map(&b, "slow", "1"));
    set.apply(&[slow.clone(), secret(&a, "fast")]);
    cluster().delete(&set.parent);
    for _ in 0..2 {
        let run = set.delete(&[]).expect(1);
        assert_names(&run, &["configmap/slow", "example.com/held"]);
    }
    let_go(&slow);
    set.delete(&["--ignore-not-found"]).expect(0);
}

/// Asserts that the document says why the exit code is 1, with all of these words.
#[track_caller]
fn assert_names(run: &Run, words: &[&str]) {
    let error = &run.document()["error"];
    assert_eq!(error["exitCode"], 1, "{}", run.stderr);
    let message = error["message"].as_str().unwrap_or_default();
    for word in words {
        assert!(message.contains(word), "no {word:?} in {message:?}");
    }
}

#[test]
fn what_would_be_lost_with_a_set_is_refused_until_allowed() {
    let home = namespace("home");
    let away = fresh("away");
    let set = Set::secret(&home, "web");
    let claim = with(
        named("v1", "PersistentVolumeClaim", Some(&home), "data"),
        &json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}),
    );
    let inner = secret(&home, "inner");
    set.apply(&[namespace_object(&away), claim.clone(), inner]);
    Set::secret(&home, "inner")
        .apply_with(
            &[config_map(&home, "of-inner", "1")],
            &["--take-over-set", "--yes"],
        )
        .expect(0);
    cluster().create(&config_map(&away, "stranger", "1"));
    let before = cluster().state(&[&home, &away]);
    let run = set.delete(&[]).expect(3);
    assert_eq!(run.errors().len(), 3, "{}", run.stderr);
    assert_eq!(cluster().state(&[&home, &away]), before);

    let run = set.delete(&["--allow-data-loss"]).expect(1);
    assert_names(&run, &["persistentvolumeclaim/data"]);
    cluster().patch(&claim, &json!({"metadata": {"finalizers": null}}));
    eventually("all is gone", || {
        cluster().members(&set.id).is_empty().then_some(())
    });
    set.delete(&[]).expect(0);
    assert_gone(&set);
}

#[test]
fn a_set_of_kubectl_is_deleted_only_when_asked_for_twice() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects = [config_map(&home, "one", "1"), kept(config_map(&home, "two", "1"))];
    let theirs = ["-n", &home, "--prune", "--applyset=web"];
    kubectl_apply(&objects, &theirs).expect(0);
    let before = cluster().state(&[&home]);
    for flags in [&["--yes"][..], &["--take-over-set"]] {
        let run = set.deletion(Program::new()).args(flags).run().expect(3);
        assert!(!run.stderr.contains("`apply`"), "{}", run.stderr);
        assert_eq!(cluster().state(&[&home]), before);
    }
    set.delete(&["--take-over-set"]).expect(0);
    set.assert_holds(&objects[1..]);
    // It is still kubectl's, and kubectl continues with it.
    assert!(
        set.annotation(TOOLING)
            .expect("a tooling")
            .starts_with("kubectl/")
    );
    kubectl_apply(&objects[1..], &theirs).expect(0);
    cluster().patch(&objects[1], &json!({"metadata": {"annotations": {KEEP: null}}}));
    set.delete(&["--take-over-set"]).expect(0);
    assert_gone(&set);
}

#[test]
fn what_is_still_being_deleted_keeps_the_parent() {
    let [a, b] = [namespace("a"), namespace("b")];
    let set = Set::secret(&a, "web");
    let slow = held(config_map(&b, "slow", "1"));
    set.apply(&[slow.clone(), secret(&a, "fast")]);

    let run = set.delete(&[]).expect(1);
    assert_eq!(run.results("deleted"), identities([&slow, &secret(&a, "fast")]));
    assert_eq!(run.results("skipped"), identities([&set.parent]));
    assert_names(&run, &["configmap/slow", "example.com/held"]);
    set.assert_records(std::slice::from_ref(&slow));

    let again = set.delete(&[]).expect(1);
    assert_eq!(again.results("skipped"), identities([&slow, &set.parent]));
    let_go(&slow);
    let last = set.delete(&[]).expect(0);
    assert_eq!(last.results("deleted"), identities([&set.parent]));
    assert_gone(&set);
}

#[test]
fn a_parent_that_was_somebodys_object_loses_only_the_record() {
    let home = namespace("home");
    let [data, member] = [Set::secret(&home, "data"), Set::config_map(&home, "member")];
    let outer = Set::secret(&home, "outer");
    cluster().create(&secret(&home, "data"));
    outer.apply(&[config_map(&home, "member", "1")]);
    for set in [&data, &member] {
        let object = config_map(&home, &fresh("one"), "1");
        set.apply_with(std::slice::from_ref(&object), &["--take-over-set", "--yes"])
            .expect(0);
        let run = set.delete(&[]).expect(0);
        assert_eq!(run.results("deleted"), identities([&object]));
        assert_eq!(run.results("skipped"), identities([&set.parent]));
        let live = set.live_parent().expect("the object");
        let metadata = &live["metadata"];
        assert_eq!(metadata["labels"].get(ID), None);
        let annotations = metadata["annotations"].as_object();
        assert!(
            annotations.is_none_or(serde_json::Map::is_empty),
            "{annotations:?}"
        );
        assert_ne!(live["data"], Value::Null);
        set.delete(&[]).expect(2);
    }
    outer.assert_holds(&[config_map(&home, "member", "1")]);
}

#[test]
fn a_parent_with_unknown_writers_keeps_its_data() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let plain = cluster().create(&secret(&home, "web"));
    let one = config_map(&home, "one", "1");
    set.apply_with(std::slice::from_ref(&one), &["--take-over-set", "--yes"])
        .expect(0);
    // Backup and migration tools do this.
    cluster().patch(&set.parent, &json!({"metadata": {"managedFields": [{}]}}));

    let run = set.delete(&[]).expect(0);

    assert_eq!(run.results("deleted"), identities([&one]));
    let live = set.live_parent().expect("the object");
    assert_eq!(live["data"], plain["data"]);
    assert_eq!(live["metadata"]["labels"].get(ID), None);
}

#[test]
fn a_parent_that_came_with_the_manifests_goes() {
    let home = namespace("home");
    let set = Set::config_map(&home, "web");
    set.apply(&[config_map(&home, "web", "1"), secret(&home, "one")]);
    set.delete(&[]).expect(0);
    assert_gone(&set);
}

#[test]
fn a_custom_parent_goes_before_the_definition_of_its_kind() {
    let home = namespace("home");
    let group = format!("{}.example.com", fresh("g"));
    let set = Set::custom(&group, None, &home);
    let definition = definition(&group, "Cluster");
    let member = config_map(&home, "one", "1");
    set.apply(&[
        definition.clone(),
        custom_resource(&group, None, "web"),
        member.clone(),
    ]);
    let run = set.delete(&[]).expect(0);
    assert_eq!(
        run.results("deleted"),
        identities([&definition, &member, &set.parent])
    );
    eventually("the definition is gone", || {
        cluster().live(&definition).is_none().then_some(())
    });
    assert_eq!(cluster().members(&set.id), []);
}

/// A set whose parent lives in a namespace of the set.
fn in_its_own_namespace() -> (Set, Value, Vec<Value>) {
    let home = fresh("home");
    let own = namespace_object(&home);
    let objects = vec![
        own.clone(),
        config_map(&home, "one", "1"),
        service(&home, "web", 80),
    ];
    (Set::secret(&home, "web"), own, objects)
}

#[track_caller]
fn assert_going(object: &Value) {
    let live = cluster().live(object);
    assert!(
        live.is_none_or(|live| !live["metadata"]["deletionTimestamp"].is_null()),
        "{object} is there to stay"
    );
}

#[test]
fn the_namespace_of_the_parent_goes_last() {
    let (set, own, objects) = in_its_own_namespace();
    set.apply(&objects);
    set.delete(&[]).expect(0);
    assert_eq!(set.live_parent(), None);
    assert_going(&own);
}

#[test]
fn the_namespace_of_the_parent_stays_with_what_is_kept() {
    let away = namespace("away");
    let (set, own, objects) = in_its_own_namespace();
    let marked = kept(config_map(&away, "marked", "1"));
    set.apply(&[objects.as_slice(), std::slice::from_ref(&marked)].concat());
    set.delete(&[]).expect(0);
    set.assert_holds(&[own, marked]);
}

#[track_caller]
fn assert_there_to_stay(object: &Value) {
    let live = cluster().live(object).expect("the object");
    assert_eq!(live["metadata"]["deletionTimestamp"], Value::Null, "{object}");
}

/// A proxy that changes an object before the first write.
fn changing(object: &Value, patch: Value) -> Proxy {
    let object = object.clone();
    Proxy::before_write(0, move || {
        cluster().patch(&object, &patch);
    })
}

#[test]
fn a_namespace_stays_with_what_is_marked_to_be_kept_during_the_run() {
    let home = namespace("home");
    let other = config_map(&home, "other", "1");
    let keep = json!({"metadata": {"annotations": {KEEP: "keep"}}});
    let leave = json!({"metadata": {"labels": {PART_OF: Set::secret(&home, "another").id}}});
    // Another set's object is not marked to be kept, and the namespace should have gone.
    for (patch, is_prune, code) in [(&keep, true, 0), (&keep, false, 0), (&leave, false, 1)] {
        let set = Set::secret(&home, &fresh("web"));
        let away = fresh("away");
        let holder = namespace_object(&away);
        let inside = config_map(&away, "inside", "1");
        set.apply(&[holder.clone(), inside.clone(), other.clone()]);
        let proxy = changing(&inside, patch.clone());

        let run = if is_prune {
            set.apply_through(&proxy, std::slice::from_ref(&other), &[])
        } else {
            set.delete_with(Program::with_kubeconfig(&proxy.kubeconfig()), &[])
        };

        run.expect(code);
        assert_there_to_stay(&inside);
        assert_there_to_stay(&holder);
        assert_eq!(set.unrecorded(), Vec::<String>::new());
        cluster().patch(
            &inside,
            &json!({"metadata": {"annotations": null, "labels": null}}),
        );
        cluster().delete(&inside);
        set.delete(&[]).expect(0);
    }
}

#[test]
fn the_namespace_of_the_parent_stays_with_what_becomes_another_sets() {
    let (set, own, objects) = in_its_own_namespace();
    set.apply(&objects);
    let another = Set::secret(&set.namespace, "another");
    let proxy = changing(
        &objects[1],
        json!({"metadata": {"labels": {PART_OF: another.id}}}),
    );
    let run = set
        .delete_with(Program::with_kubeconfig(&proxy.kubeconfig()), &[])
        .expect(1);
    assert_names(&run, &[&format!("namespace/{}", set.namespace)]);
    assert_there_to_stay(&own);
    assert_there_to_stay(&objects[1]);
    set.assert_holds(std::slice::from_ref(&own));
}

#[test]
fn a_run_that_was_killed_anywhere_is_made_good_by_the_next() {
    for writes in 0.. {
        let away = namespace("away");
        let (set, own, mut objects) = in_its_own_namespace();
        objects.push(secret(&away, "two"));
        set.apply(&objects);
        let proxy = Proxy::holding_after(writes);
        let program = set
            .deletion(Program::with_kubeconfig(&proxy.kubeconfig()))
            .args(["--yes"]);
        let end = program.run_until_held(&proxy);
        let mut unrecorded = set.unrecorded();
        if set.live_parent().is_none() {
            // The parent cannot outlive what it lives in.
            unrecorded.retain(|member| !member.starts_with("Namespace"));
        }
        assert_eq!(unrecorded, Vec::<String>::new(), "after {writes} writes");
        if end == ProgramEnd::Finished {
            assert!(writes >= 5, "only {writes} writes");
            assert_going(&own);
            return;
        }
        set.delete(&["--ignore-not-found"]).expect(0);
        assert_going(&own);
        assert_eq!(set.live_parent(), None);
        assert_eq!(cluster().live(&secret(&away, "two")), None);
    }
}

#[test]
fn members_whose_parent_is_gone_are_found_and_deleted() {
    let [a, b] = [namespace("a"), namespace("b")];
    let set = Set::secret(&a, "web");
    let objects = [config_map(&a, "one", "1"), service(&b, "two", 80)];
    set.apply(&objects);
    cluster().delete(&set.parent);
    let run = set.delete(&[]).expect(0);
    assert_eq!(run.results("deleted"), identities(&objects));
    assert_gone(&set);
}

#[test]
fn what_another_run_puts_into_the_set_is_recorded() {
    let [a, b] = [namespace("a"), namespace("b")];
    for before_delete in ["configmaps/one", "secrets/web"] {
        let set = Set::secret(&a, "web");
        set.apply(&[config_map(&a, "one", "1"), config_map(&b, "two", "1")]);
        let newcomer = config_map(&b, &fresh("new"), "1");
        let seen = Arc::new(Mutex::new(0));
        let (other, object) = (set.clone(), newcomer.clone());
        let at = if before_delete == "secrets/web" { 2 } else { 0 };
        let counter = Arc::clone(&seen);
        let proxy = Proxy::gated(move |writes| {
            if writes == at {
                *counter.lock().expect("no panic") += 1;
                other.apply(std::slice::from_ref(&object));
            }
            Verdict::Forward
        });
        let run = set
            .delete_with(Program::with_kubeconfig(&proxy.kubeconfig()), &[])
            .expect(1);
        assert_eq!(*seen.lock().expect("no panic"), 1);
        assert_eq!(set.members(), identities([&newcomer]), "{}", run.stderr);
        assert_eq!(set.unrecorded(), Vec::<String>::new());
        set.delete(&[]).expect(0);
        assert_gone(&set);
    }
}

#[test]
fn what_may_not_be_deleted_stops_the_run_before_it_begins() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    set.apply(&[config_map(&home, "one", "1")]);
    let rule =
        |resource: &str, verbs: &[&str]| json!({"apiGroups": [""], "resources": [resource], "verbs": verbs});
    let as_user = |on_parent: &[&str]| {
        let rules = [
            rule("configmaps", &["get", "list", "delete"]),
            rule("secrets", on_parent),
        ];
        let user = ControlPlane::shared()
            .user(&[Grant::in_namespace(home.as_str(), rules)])
            .expect("a user");
        set.delete_with(Program::with_kubeconfig(&user.kubeconfig), &[])
    };
    let before = set.parent_version();
    let run = as_user(&["get", "patch"]).expect(4);
    assert!(
        run.errors()
            .iter()
            .any(|line| line.contains("delete resource \"secrets\" \"web\"")),
        "{}",
        run.stderr
    );
    assert_eq!(set.parent_version(), before);
    set.assert_holds(&[config_map(&home, "one", "1")]);
    as_user(&["get", "patch", "delete"]).expect(0);
    assert_gone(&set);
}

#[test]
fn an_interrupted_run_is_finished_by_the_next_one() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects: Vec<Value> = (0..4)
        .map(|index| config_map(&home, &format!("c{index}"), "1"))
        .collect();
    set.apply(&objects);
    let proxy = Proxy::holding_after(2);
    let running = set
        .deletion(Program::with_kubeconfig(&proxy.kubeconfig()))
        .args(["--yes", "--concurrency=1", "--request-timeout=1s"])
        .start();
    eventually("a write is held", || proxy.holds().then_some(()));
    running.interrupt();
    let run = running.finish().expect(130);
    assert!(run.stdout.contains("configmap/c0 deleted"), "{}", run.stdout);
    assert!(set.live_parent().is_some());
    set.delete(&[]).expect(0);
    assert_gone(&set);
}

#[test]
fn what_goes_with_an_owner_that_is_kept_after_all_is_not_waited_for() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let [owner, dependent] = ["owner", "dependent"].map(|name| config_map(&home, name, "1"));
    set.apply(&[owner.clone(), dependent.clone()]);
    let uid = cluster().live(&owner).expect("the owner")["metadata"]["uid"].clone();
    let reference = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid});
    cluster().patch(&dependent, &json!({"metadata": {"ownerReferences": [reference]}}));
    let proxy = changing(&owner, json!({"metadata": {"annotations": {KEEP: "keep"}}}));
    set.delete_with(Program::with_kubeconfig(&proxy.kubeconfig()), &[])
        .expect(0);
    set.assert_holds(&[owner, dependent]);
}

#[test]
fn a_wait_for_the_namespace_of_the_parent_is_reported_and_can_be_interrupted() {
    let (set, own, objects) = in_its_own_namespace();
    set.apply(&objects);
    cluster().patch(&own, &json!({"metadata": {"finalizers": ["example.com/held"]}}));
    let mut running = set.deletion(Program::new()).args(["--yes"]).start();
    running.wait_for_message(&format!("waiting for namespace/{}", set.namespace));
    running.interrupt();
    let run = running.finish().expect(130);
    assert!(run.stderr.contains("still being deleted"), "{}", run.stderr);
    let_go(&own);
}

#[test]
fn a_deletion_that_fails_says_nothing_of_a_parent_that_it_has_not_seen_since() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let member = config_map(&home, "member", "1");
    set.apply(std::slice::from_ref(&member));
    let parent = set.parent.clone();
    let proxy = Proxy::gated(move |writes| {
        if writes == 0 {
            return Verdict::Forward;
        }
        if cluster().live(&parent).is_some() {
            cluster().delete(&parent);
        }
        Verdict::Break(Fault::InternalError)
    });

    let run = set
        .delete_with(Program::with_kubeconfig(&proxy.kubeconfig()), &[])
        .expect(1);

    let failed = run.results("failed");
    assert!(failed.contains(&identities([&member])[0]), "{}", run.stderr);
    assert!(!run.stderr.contains("parent is kept"), "{}", run.stderr);
    assert!(
        run.stderr.contains("run the same command again"),
        "{}",
        run.stderr
    );
    set.delete(&[]).expect(0);
    assert_eq!(cluster().live(&member), None);
}
