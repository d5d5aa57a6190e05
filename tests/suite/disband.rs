//! `disband`: the set is forgotten, and every object stays as it is.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use controlplane::{ControlPlane, Grant};
use http::Method;
use serde_json::{Value, json};

use crate::support::{
    Fault, ID, PART_OF, Program, ProgramEnd, Proxy, Set, TOOLING, cluster, cluster_role, config_map, fresh,
    identities, kubectl_apply, named, namespace, secret, service, with,
};

/// Asserts that nothing of the convention is left on the parent, which is otherwise there.
#[track_caller]
fn assert_forgotten(set: &Set) {
    assert_eq!(set.members(), Vec::<String>::new());
    let parent = set.live_parent().expect("the parent stays");
    for field in ["labels", "annotations"] {
        let keys = parent["metadata"][field].as_object().into_iter().flatten();
        let keys: Vec<&String> = keys
            .map(|(key, _)| key)
            .filter(|key| key.contains("applyset"))
            .collect();
        assert_eq!(keys, Vec::<&String>::new());
    }
}

#[test]
fn a_set_without_members_is_reported_as_disbanded() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    set.apply_with(&[], &["--allow-prune-all"]).expect(0);
    let run = set.invoke("disband", &["--yes"]).expect(0);
    assert!(run.stderr.contains("is no longer a parent"), "{}", run.stderr);
    assert!(run.stderr.contains("nothing else to do"), "{}", run.stderr);
    assert_forgotten(&set);
}

#[test]
fn a_record_whose_removal_was_answered_to_nobody_is_removed() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let member = config_map(&home, "member", "1");
    set.apply(std::slice::from_ref(&member));
    let is_lost = AtomicBool::new(false);
    let proxy = Proxy::breaking(Fault::ClosedAfter, move |sent| {
        let removes = sent.method == Method::PATCH && String::from_utf8_lossy(&sent.body).contains("null");
        removes && sent.path.contains("/secrets/web") && !is_lost.swap(true, Ordering::SeqCst)
    });
    let program = Program::with_kubeconfig(&proxy.kubeconfig());
    let run = set
        .invoke_by(program, "disband", &["--yes", "-o", "json"])
        .expect(0);
    assert_eq!(run.results("skipped"), Vec::<String>::new());
    assert_forgotten(&set);
}

#[test]
fn an_object_that_only_carries_the_label_is_not_counted_as_a_member() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let [member, labeled] = ["member", "labeled"].map(|name| config_map(&home, name, "1"));
    set.apply(std::slice::from_ref(&member));
    cluster().create(&labeled);
    let label = format!("{PART_OF}={}", set.id);
    let output = ControlPlane::shared()
        .run_kubectl(["label", "-n", &home, "configmap", "labeled", &label])
        .expect("kubectl runs");
    assert!(output.status.success(), "{output:?}");

    let run = set.invoke("disband", &[]).expect(3);

    let text = format!(
        "1 object would leave it, but stay in the cluster; the label is also removed from 1 object that is not a member: \
         configmap/labeled in namespace {home}"
    );
    assert!(run.stderr.contains(&text), "{}", run.stderr);
    set.invoke("disband", &["--yes"]).expect(0);
    assert_forgotten(&set);
}

#[test]
fn every_object_stays_with_every_other_field() {
    let [home, away] = [namespace("home"), namespace("away")];
    let set = Set::secret(&home, "web");
    let labeled = with(
        config_map(&home, "labeled", "1"),
        &json!({"metadata": {"labels": {"app": "web"}, "annotations": {"note": "y"}, "finalizers": ["example.com/keep"]}}),
    );
    let members = [
        labeled.clone(),
        secret(&away, "two"),
        service(&away, "web", 80),
        cluster_role(&fresh("role")),
    ];
    let own_data = with(
        secret(&home, "web"),
        &json!({"metadata": {"labels": {"mine": "1"}}}),
    );
    set.apply(&[&members[..], &[own_data]].concat());
    // A label that another manager applies, too, would stay if this program only let go of it.
    let label = json!({"metadata": {"labels": {(PART_OF): set.id}}});
    cluster().apply_as(
        "other",
        &with(named("v1", "ConfigMap", Some(&home), "labeled"), &label),
    );
    let before = members.each_ref().map(|object| cluster().content(object));

    let run = set.invoke("disband", &["--yes"]).expect(0);

    assert_eq!(run.results("released"), identities(&members));
    assert_eq!(run.document()["summary"]["released"], 4);
    assert_eq!(members.each_ref().map(|object| cluster().content(object)), before);
    assert_forgotten(&set);
    let parent = set.live_parent().expect("the parent stays");
    assert_eq!(parent["data"], json!({"key": "dmFsdWU="}));
    assert_eq!(parent["metadata"]["labels"], json!({"mine": "1"}));
    set.invoke("disband", &["--yes"]).expect(2);
    cluster().patch(&labeled, &json!({"metadata": {"finalizers": null}}));
}

#[test]
fn a_set_without_members_needs_no_yes() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    set.apply(&[config_map(&home, "one", "1")]);
    set.apply_with(&[], &["--allow-prune-all"]).expect(0);
    set.invoke("disband", &[]).expect(0);
    assert_forgotten(&set);
}

#[test]
fn it_needs_a_yes_without_a_terminal() {
    let home = namespace("home");
    let set = Set::config_map(&home, "web");
    let objects = [config_map(&home, "one", "1"), config_map(&home, "two", "1")];
    set.apply(&objects);
    let before = cluster().state(&[&home]);

    let run = set.invoke("disband", &[]).expect(3);
    assert_eq!(run.document()["error"]["exitCode"], 3);
    assert!(run.stderr.contains("--yes"), "{}", run.stderr);
    for flag in ["--dry-run=client", "--dry-run=server"] {
        let run = set.invoke("disband", &[flag]).expect(0);
        assert_eq!(run.results("released"), identities(&objects), "{flag}");
    }
    assert_eq!(cluster().state(&[&home]), before);
}

#[test]
fn what_is_not_a_set_cannot_be_disbanded() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    set.invoke("disband", &["--yes"]).expect(2);
    cluster().create(&secret(&home, "web"));
    set.invoke("disband", &["--yes"]).expect(2);
}

#[test]
fn a_parent_that_cannot_be_trusted_is_left_alone() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    set.apply(&[config_map(&home, "one", "1")]);
    cluster().patch(
        &set.parent,
        &json!({"metadata": {"labels": {(ID): "applyset-x-v1"}}}),
    );
    let before = cluster().state(&[&home]);
    set.invoke("disband", &["--yes", "--take-over-set"]).expect(3);
    assert_eq!(cluster().state(&[&home]), before);
}

#[test]
fn a_set_of_kubectl_also_wants_to_be_taken_over() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects = [config_map(&home, "one", "1"), service(&home, "web", 80)];
    let applyset = format!("--applyset={}", set.reference);
    kubectl_apply(&objects, &["--prune", &applyset, "-n", &home]).expect(0);
    let before = cluster().state(&[&home]);
    for flags in [&["--yes"][..], &["--take-over-set"], &["--dry-run=server"]] {
        let run = set.invoke("disband", flags).expect(3);
        assert!(run.stderr.contains("kubectl/v1."), "{}", run.stderr);
    }
    assert_eq!(cluster().state(&[&home]), before);
    let contents = objects.each_ref().map(|object| cluster().content(object));

    let run = set.invoke("disband", &["--take-over-set", "--yes"]).expect(0);

    assert_eq!(run.results("released"), identities(&objects));
    assert_eq!(
        objects.each_ref().map(|object| cluster().content(object)),
        contents
    );
    assert_forgotten(&set);
    assert_eq!(set.annotation(TOOLING), None);
}

#[test]
fn a_parent_that_is_a_member_of_another_set_stays_one() {
    let home = namespace("home");
    let [outer, inner] = [Set::secret(&home, "outer"), Set::config_map(&home, "inner")];
    inner.apply(&[config_map(&home, "one", "1")]);
    outer.apply(&[config_map(&home, "two", "1")]);
    let label = json!({"metadata": {"labels": {(PART_OF): outer.id}}});
    cluster().patch(&inner.parent, &label);

    inner.invoke("disband", &["--yes"]).expect(0);

    assert_eq!(inner.members(), Vec::<String>::new());
    let parent = inner.live_parent().expect("it stays");
    assert_eq!(parent["metadata"]["labels"], label["metadata"]["labels"]);
}

#[test]
fn a_parent_that_is_labeled_into_its_own_set_loses_that_label_too() {
    for command in ["disband", "delete"] {
        let home = namespace("home");
        let set = Set::secret(&home, "web");
        cluster().create(&secret(&home, "web"));
        set.apply_with(&[config_map(&home, "one", "1")], &["--take-over-set", "--yes"])
            .expect(0);
        // As kubectl does with a parent among its manifests.
        cluster().patch(&set.parent, &json!({"metadata": {"labels": {(PART_OF): set.id}}}));
        set.invoke(command, &["--yes"]).expect(0);
        assert!(set.live_parent().is_some());
        assert_forgotten(&set);
    }
}

#[test]
fn a_run_that_was_killed_anywhere_is_made_good_by_the_same_run() {
    for writes in 0.. {
        let [a, b] = [namespace("a"), namespace("b")];
        let set = Set::secret(&a, "web");
        let objects = [
            config_map(&a, "one", "1"),
            config_map(&b, "two", "1"),
            service(&b, "web", 80),
        ];
        set.apply(&objects);
        let before = objects.each_ref().map(|object| cluster().content(object));
        let proxy = Proxy::holding_after(writes);
        let program = Program::with_kubeconfig(&proxy.kubeconfig());
        let end = set
            .invocation(program, "disband", &["--yes"])
            .run_until_held(&proxy);
        if end == ProgramEnd::Finished {
            assert_eq!(writes, 5);
            return;
        }
        assert_eq!(set.unrecorded(), Vec::<String>::new(), "after {writes} writes");
        set.invoke("disband", &["--yes"]).expect(0);
        assert_forgotten(&set);
        assert_eq!(objects.each_ref().map(|object| cluster().content(object)), before);
    }
}

/// Applies `inner` before each write of a disbanding run in turn.
#[test]
fn a_concurrent_apply_leaves_no_member_without_a_record() {
    for write in 0..4 {
        let [a, b] = [namespace("a"), namespace("b")];
        let set = Arc::new(Set::secret(&a, "web"));
        let objects = vec![
            config_map(&a, "one", "1"),
            config_map(&b, "two", "1"),
            service(&b, "web", 80),
        ];
        set.apply(&objects);
        let wanted = [&objects[..], &[config_map(&b, "three", "1")]].concat();
        let done = Arc::new(Mutex::new(false));
        let witness = (Arc::clone(&set), wanted.clone(), Arc::clone(&done));
        let proxy = Proxy::before_write(write, move || {
            let (set, wanted, done) = &witness;
            set.apply_with(wanted, &[]);
            *done.lock().expect("no panic") = true;
        });
        let program = Program::with_kubeconfig(&proxy.kubeconfig());
        let run = set.invoke_by(program, "disband", &["--yes"]);
        assert!(*done.lock().expect("no panic"), "write {write} was made");
        assert_eq!(set.unrecorded(), Vec::<String>::new(), "write {write}");
        match run.code {
            0 => assert_forgotten(&set),
            code => {
                assert_eq!(code, 1, "{}", run.stderr);
                set.invoke("disband", &["--yes"]).expect(0);
                assert_forgotten(&set);
            }
        }
        for object in &wanted {
            assert!(cluster().live(object).is_some(), "write {write}");
        }
    }
}

fn rule(resource: &str, verbs: &[&str]) -> Value {
    json!({"apiGroups": [""], "resources": [resource], "verbs": verbs})
}

#[test]
fn who_may_not_write_a_member_or_the_parent_hears_it_before_the_first_write() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects = [config_map(&home, "one", "1"), config_map(&home, "two", "1")];
    set.apply(&objects);
    let user = |members: &[&str], parent: &[&str]| {
        let rules = [rule("configmaps", members), rule("secrets", parent)];
        ControlPlane::shared()
            .user(&[Grant::in_namespace(&home, rules)])
            .expect("a user")
    };
    let disband = |kubeconfig: &Path, code| {
        let program = Program::with_kubeconfig(kubeconfig);
        set.invoke_by(program, "disband", &["--yes"]).expect(code)
    };
    for (members, parent, what) in [
        (
            &["get", "list"][..],
            &["get", "patch"][..],
            "patch resource \"configmaps\"",
        ),
        (
            &["get", "list", "patch"],
            &["get"],
            "patch resource \"secrets\" \"web\"",
        ),
        (&["get", "patch"], &["get", "patch"], "list"),
    ] {
        let user = user(members, parent);
        let before = cluster().state(&[&home]);
        let run = disband(&user.kubeconfig, 4);
        assert!(run.stderr.contains(what), "{what}: {}", run.stderr);
        assert_eq!(cluster().state(&[&home]), before);
    }

    let user = user(&["get", "list", "patch"], &["get", "patch"]);
    disband(&user.kubeconfig, 0);
    assert_forgotten(&set);
}
