//! `config.kubernetes.io/depends-on`: an object is applied when what it depends on is Current, and
//! pruned and deleted before that. No workload is ever run here, so the tests write the status that a
//! controller would.

use http::Method;
use serde_json::{Value, json};

use crate::support::{
    Files, Program, ProgramEnd, Proxy, Sent, Set, cluster, config_map, deployment, eventually, identities,
    named, namespace, namespace_object, objects_file, secret, with,
};

pub(super) fn rolled_out() -> Value {
    json!({
        "observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1,
        "availableReplicas": 1,
        "conditions": [
            {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
            {"type": "Available", "status": "True"},
        ],
    })
}

/// What the annotation calls an object.
pub(super) fn reference(object: &Value) -> String {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let group = text("/apiVersion").and_then(|version| version.split_once('/'));
    let group = group.map_or("", |(group, _)| group);
    let kind = text("/kind").expect("a kind");
    let name = text("/metadata/name").expect("a name");
    match text("/metadata/namespace") {
        Some(namespace) => format!("{group}/namespaces/{namespace}/{kind}/{name}"),
        None => format!("{group}/{kind}/{name}"),
    }
}

fn annotated(object: Value, value: &str) -> Value {
    let annotations = json!({"config.kubernetes.io/depends-on": value});
    with(object, &json!({"metadata": {"annotations": annotations}}))
}

pub(super) fn after(object: Value, dependencies: &[&Value]) -> Value {
    let references: Vec<String> = dependencies.iter().map(|object| reference(object)).collect();
    annotated(object, &references.join(","))
}

/// Annotates a live object with its dependencies.
pub(super) fn depend(object: &Value, value: &str) {
    let annotations = json!({"config.kubernetes.io/depends-on": value});
    cluster().patch(object, &json!({"metadata": {"annotations": annotations}}));
}

pub(super) fn held(object: Value) -> Value {
    with(object, &json!({"metadata": {"finalizers": ["example.com/held"]}}))
}

pub(super) fn let_go(object: &Value) {
    cluster().patch(object, &json!({"metadata": {"finalizers": null}}));
}

pub(super) fn files(objects: &[Value]) -> Files {
    Files::new().with("objects.yaml", &objects_file(objects))
}

/// The names of the objects that were written with this method, in their order.
pub(super) fn sent(proxy: &Proxy, method: &Method) -> Vec<String> {
    let sent = proxy.sent();
    let writes = sent.iter().filter(|sent| sent.method == *method);
    let name = |sent: &Sent| {
        let path = sent.path.split('?').next().unwrap_or_default();
        path.rsplit('/').next().unwrap_or_default().to_owned()
    };
    writes.map(name).collect()
}

#[test]
fn an_object_is_applied_when_what_it_depends_on_is_current() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let database = deployment(&home, "database", 1);
    // By their kinds, both would come before the Deployment.
    let settings = after(config_map(&home, "settings", "1"), &[&database]);
    let last = after(secret(&home, "last"), &[&settings, &database]);
    let objects = [last.clone(), settings.clone(), database.clone()];
    let manifests = files(&objects);
    let mut running = set.command(Program::new(), &manifests).args(["-v"]).start();
    running.wait_for_message("0 of 1 replicas");
    assert_eq!(cluster().live(&settings), None);
    cluster().patch_status(&database, &rolled_out());
    running.finish().expect(0);
    set.assert_holds(&objects);

    // Where nothing changed, the order costs nothing.
    let plain = Set::secret(&home, "plain");
    let names = ["a", "b", "c"];
    let others = [
        deployment(&home, names[0], 1),
        config_map(&home, names[1], "1"),
        secret(&home, names[2]),
    ];
    plain.apply(&others);
    let requests = |set: &Set, objects: &[Value]| set.apply(objects).document()["requests"].clone();
    assert_eq!(requests(&set, &objects), requests(&plain, &others));

    // Nor where only a dependent changes, and what it depends on is Current.
    let changed = after(config_map(&home, "settings", "2"), &[&database]);
    let changed = [last, changed, database.clone()];
    let others = [others[0].clone(), config_map(&home, "b", "2"), others[2].clone()];
    assert_eq!(requests(&set, &changed), requests(&plain, &others));
    set.assert_holds(&changed);
}

#[test]
fn what_depends_on_a_failure_is_skipped_and_nothing_is_pruned() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let old = secret(&home, "old");
    set.apply(std::slice::from_ref(&old));
    let slow = deployment(&home, "slow", 1);
    let first = after(config_map(&home, "first", "1"), &[&slow]);
    let second = after(config_map(&home, "second", "1"), &[&first]);
    let free = config_map(&home, "free", "1");
    let objects = [second.clone(), first.clone(), slow.clone(), free.clone()];

    let run = set.apply_with(&objects, &["--wait=1s"]).expect(1);
    assert_eq!(run.results("created"), identities([&free, &slow]));
    assert_eq!(run.results("skipped"), identities([&first, &second, &old]));
    assert!(
        run.reason("first").contains("deployment.apps/slow"),
        "{}",
        run.stdout
    );
    assert!(run.reason("second").contains("configmap/first"), "{}", run.stdout);
    set.assert_records(&[first.clone(), slow.clone(), old.clone()]);
    assert!(cluster().live(&old).is_some());

    // An object that the server refuses.
    let refused = with(service_of(&home), &json!({"spec": {"ports": [{"port": 0}]}}));
    let broken = after(config_map(&home, "broken", "1"), &[&refused]);
    let run = set
        .apply_with(&[refused.clone(), broken.clone(), free.clone()], &[])
        .expect(1);
    assert!(run.reason("broken").contains("service/refused"), "{}", run.stdout);
    assert_eq!(cluster().live(&broken), None);

    cluster().patch_status(&slow, &rolled_out());
    set.apply(&objects);
    set.assert_holds(&objects);
}

fn service_of(namespace: &str) -> Value {
    named("v1", "Service", Some(namespace), "refused")
}

#[test]
fn a_dependent_is_pruned_and_gone_before_what_it_depends_on() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let database = deployment(&home, "database", 1);
    let web = after(held(config_map(&home, "web", "1")), &[&database]);
    let kept = secret(&home, "kept");
    cluster().create(&with(
        database.clone(),
        &json!({"metadata": {"labels": {"applyset.kubernetes.io/part-of": set.id}}}),
    ));
    cluster().patch_status(&database, &rolled_out());
    let all = [database.clone(), web.clone(), kept.clone()];
    set.apply_with(&all, &["--force-conflicts"]).expect(0);
    let wanted = std::slice::from_ref(&kept);

    // The time runs out while the dependent is being deleted.
    let run = set.apply_with(wanted, &["--wait=1s"]).expect(1);
    assert_eq!(run.results("pruned"), identities([&web]));
    assert!(run.reason("database").contains("configmap/web"), "{}", run.stdout);
    assert!(cluster().live(&database).is_some());
    set.assert_records(&[database.clone(), web.clone(), kept.clone()]);

    let manifests = files(wanted);
    let mut running = set.command(Program::new(), &manifests).args(["-v"]).start();
    running.wait_for_message("finalizer example.com/held");
    assert!(cluster().live(&database).is_some());
    let_go(&web);
    running.finish().expect(0);
    assert_eq!(cluster().members(&set.id).len(), 1);
    // What was being deleted when the run began stays recorded for the next one.
    set.apply(wanted);
    set.assert_holds(wanted);
}

#[test]
fn a_dependent_that_loses_its_label_while_it_terminates_is_not_gone() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let base = secret(&home, "base");
    let top = after(held(config_map(&home, "top", "1")), &[&base]);
    let kept = secret(&home, "kept");
    set.apply(&[base.clone(), top.clone(), kept.clone()]);
    let wanted = std::slice::from_ref(&kept);

    let manifests = files(wanted);
    let mut running = set
        .command(Program::new(), &manifests)
        .args(["-v", "--wait=6s"])
        .start();
    running.wait_for_message("finalizer example.com/held");
    let unlabeled = json!({"metadata": {"labels": {"applyset.kubernetes.io/part-of": null}}});
    cluster().patch(&top, &unlabeled);
    running.finish().expect(1);

    assert!(cluster().live(&base).is_some());
    assert!(cluster().live(&top).is_some());
    let_go(&top);
    set.apply(wanted);
    assert_eq!(cluster().live(&base), None);
    set.assert_holds(wanted);
}

#[test]
fn a_member_that_loses_its_label_while_it_terminates_is_waited_for() {
    let unlabeled = json!({"metadata": {"labels": {"applyset.kubernetes.io/part-of": null}}});
    for is_deletion in [false, true] {
        let home = namespace("home");
        let set = Set::secret(&home, "web");
        let going = held(config_map(&home, "going", "1"));
        let kept = secret(&home, "kept");
        set.apply(&[going.clone(), kept.clone()]);
        let manifests = files(std::slice::from_ref(&kept));
        let program = if is_deletion {
            set.deletion(Program::new()).args(["--yes"])
        } else {
            set.command(Program::new(), &manifests)
        };
        let running = program.args(["-v", "--wait=6s"]).start();
        eventually("it terminates", || {
            let live = cluster().live(&going)?;
            live["metadata"]["deletionTimestamp"].is_string().then_some(())
        });
        cluster().patch(&going, &unlabeled);

        let run = running.finish().expect(1);

        assert!(run.stderr.contains("configmap/going"), "{}", run.stderr);
        assert!(cluster().live(&going).is_some());
        let_go(&going);
    }
}

#[test]
fn a_set_is_deleted_dependents_first() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let database = secret(&home, "database");
    let [middle, web] = ["middle", "web"].map(|name| config_map(&home, name, "1"));
    let middle = after(middle, &[&database]);
    let web = after(held(web), &[&middle, &database]);
    set.apply(&[database.clone(), middle.clone(), web.clone()]);

    let run = set.delete(&["--wait=1s"]).expect(1);
    assert_eq!(run.results("deleted"), identities([&web]));
    assert!(cluster().live(&middle).is_some());
    assert!(set.live_parent().is_some());

    let proxy = Proxy::transparent();
    let mut running = set
        .deletion(Program::with_kubeconfig(&proxy.kubeconfig()))
        .args(["--yes", "-v"])
        .start();
    running.wait_for_message("finalizer example.com/held");
    let_go(&web);
    running.finish().expect(0);
    assert_eq!(sent(&proxy, &Method::DELETE), ["middle", "database", "web"]);
    assert_eq!(cluster().members(&set.id), []);
    assert_eq!(set.live_parent(), None);
}

#[test]
fn what_a_kept_object_depends_on_is_kept() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let keep = json!({"metadata": {"annotations": {"helm.sh/resource-policy": "keep"}}});
    let deep = secret(&home, "deep");
    let database = after(secret(&home, "database"), &[&deep]);
    let web = after(with(config_map(&home, "web", "1"), &keep), &[&database]);
    let [free, one] = [secret(&home, "free"), config_map(&home, "one", "1")];
    let old = [deep.clone(), database.clone(), web.clone()];
    set.apply(&[old.as_slice(), &[free.clone(), one.clone()]].concat());

    let run = set.apply(std::slice::from_ref(&one));
    assert_eq!(run.results("pruned"), identities([&free]));
    assert_eq!(run.results("skipped"), identities(&old));
    assert!(run.reason("database").contains("configmap/web"), "{}", run.stdout);
    set.assert_holds(&[old.as_slice(), &[one]].concat());

    // So is what an object of the manifests depends on.
    let needing = after(config_map(&home, "needing", "1"), &[&deep]);
    cluster().patch(
        &web,
        &json!({"metadata": {"annotations": {"helm.sh/resource-policy": null}}}),
    );
    let wanted = std::slice::from_ref(&needing);
    let run = set.apply_with(wanted, &["--allow-prune-all"]).expect(0);
    assert_eq!(run.results("skipped"), identities([&deep]));
    set.assert_holds(&[deep, needing]);
}

#[test]
fn faulty_dependencies_of_manifests_are_refused() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let [one, two] = ["one", "two"].map(|name| config_map(&home, name, "1"));
    let missing = secret(&home, "missing");
    let table = [
        (
            vec![annotated(one.clone(), "ConfigMap/two")],
            "is not a reference",
        ),
        (vec![annotated(one.clone(), "")], "is not a reference"),
        (vec![after(one.clone(), &[&one])], "form a cycle"),
        (
            vec![after(one.clone(), &[&two]), after(two.clone(), &[&one])],
            "configmap/two in namespace",
        ),
        (vec![after(one.clone(), &[&missing])], "secret/missing"),
        (
            vec![after(set.parent.clone(), &[&one]), one.clone()],
            "is written before all other objects",
        ),
        (
            vec![after(namespace_object(&home), &[&one]), one.clone()],
            "the set's parent needs namespace/",
        ),
        (
            vec![annotated(one.clone(), "nowhere.example.com/Thing/it")],
            "thing.nowhere.example.com/it",
        ),
    ];
    for (objects, text) in table {
        let run = set.apply_with(&objects, &[]).expect(2);
        assert!(run.stderr.contains(text), "{text}: {}", run.stderr);
        assert!(run.stderr.contains("objects.yaml:"), "{}", run.stderr);
        assert_eq!(set.live_parent(), None);
    }
}

#[test]
fn faulty_dependencies_of_live_objects_do_not_keep_a_set_from_being_deleted() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects = ["one", "two", "three"].map(|name| config_map(&home, name, "1"));
    set.apply(&objects);
    let depend = |object: &Value, value: &str| {
        let annotations = json!({"config.kubernetes.io/depends-on": value});
        cluster().patch(object, &json!({"metadata": {"annotations": annotations}}));
    };
    depend(&objects[0], &reference(&objects[1]));
    depend(&objects[1], &reference(&objects[0]));
    depend(&objects[2], "what");
    let run = set.delete(&[]).expect(0);
    let warnings = run.warnings().join("\n");
    assert!(warnings.contains("form a cycle"), "{warnings}");
    assert!(warnings.contains("\"what\""), "{warnings}");
    assert_eq!(cluster().members(&set.id), []);
}

#[test]
fn an_object_outside_of_the_set_may_be_depended_on() {
    let [home, other] = [namespace("home"), namespace("other")];
    let set = Set::secret(&home, "web");
    let outside = deployment(&other, "outside", 1);
    cluster().create(&outside);
    let web = after(config_map(&home, "web", "1"), &[&outside]);
    let objects = [web.clone()];
    let manifests = files(&objects);
    let mut running = set.command(Program::new(), &manifests).args(["-v"]).start();
    running.wait_for_message("0 of 1 replicas");
    assert_eq!(cluster().live(&web), None);
    cluster().patch_status(&outside, &rolled_out());
    running.finish().expect(0);
    set.assert_holds(&objects);

    let directory = manifests.directory().to_str().expect("a path");
    let rbac = set
        .invocation(Program::new(), "rbac", &["-f", directory])
        .run()
        .expect(0);
    assert!(rbac.stdout.contains("- outside"), "{}", rbac.stdout);
}

#[test]
fn previews_say_what_is_waited_for() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let [one, two] = ["one", "two"].map(|name| config_map(&home, name, "1"));
    let old = [one.clone(), after(two, &[&one])];
    set.apply(&old);
    let database = deployment(&home, "database", 1);
    let objects = [after(secret(&home, "user"), &[&database]), database];
    let manifests = files(&objects);
    let directory = manifests.directory().to_str().expect("a path");
    let diff = set.invoke("diff", &["-f", directory]).expect(1);
    let dry_run = set.apply_with(&objects, &["--dry-run=server"]).expect(0);
    for run in [diff, dry_run] {
        let text = "applied once deployment.apps/database";
        assert!(run.stderr.contains(text), "{}", run.stderr);
        assert!(run.reason("one").contains("configmap/two"), "{}", run.stdout);
    }
    set.assert_holds(&old);
}

#[test]
fn an_interrupted_wait_for_a_dependency_applies_nothing_more() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let database = deployment(&home, "database", 1);
    let web = after(config_map(&home, "web", "1"), &[&database]);
    let objects = [database.clone(), web.clone()];
    let manifests = files(&objects);
    let mut running = set
        .command(Program::new(), &manifests)
        .args(["-v", "-o", "json"])
        .start();
    running.wait_for_message("0 of 1 replicas");
    running.interrupt();
    let run = running.finish().expect(130);
    assert_eq!(run.results("created"), identities([&database]));
    assert_eq!(run.results("skipped"), identities([&web]));
    assert_eq!(cluster().live(&web), None);
    let run = set.apply_with(&objects, &["--timeout=2s"]).expect(1);
    assert_eq!(run.results("skipped"), identities([&web]));
    cluster().patch_status(&database, &rolled_out());
    set.apply(&objects);
    set.assert_holds(&objects);
}

#[test]
fn a_run_in_the_order_of_dependencies_can_be_killed_between_any_two_writes() {
    for writes in 0.. {
        let [home, other] = [namespace("home"), namespace("other")];
        let set = Set::secret(&home, "web");
        let old = secret(&other, "old");
        set.apply(&[old.clone(), after(config_map(&other, "user", "1"), &[&old])]);
        let one = config_map(&home, "one", "1");
        let two = after(config_map(&other, "two", "1"), &[&one]);
        let three = after(secret(&home, "three"), &[&two]);
        let wanted = [three, two, one];
        let proxy = Proxy::holding_after(writes);
        let manifests = files(&wanted);
        let program = Program::with_kubeconfig(&proxy.kubeconfig());
        let end = set.command(program, &manifests).run_until_held(&proxy);
        assert_eq!(set.unrecorded(), Vec::<String>::new(), "after {writes} writes");
        if end == ProgramEnd::Finished {
            assert!(writes >= 5, "only {writes} writes");
            set.assert_holds(&wanted);
            return;
        }
        set.apply(&wanted);
        set.assert_holds(&wanted);
    }
}

#[test]
fn what_a_kept_object_needs_is_kept_by_a_deletion_that_succeeds() {
    let keep = json!({"metadata": {"annotations": {"helm.sh/resource-policy": "keep"}}});
    for is_owned in [false, true] {
        let home = namespace("home");
        let set = Set::secret(&home, "web");
        let base = named("rbac.authorization.k8s.io/v1", "Role", Some(&home), "base");
        let top = after(config_map(&home, "top", "1"), &[&base]);
        let other = config_map(&home, "other", "1");
        set.apply(&[base.clone(), top.clone(), other.clone()]);
        if is_owned {
            let owner = cluster().create(&config_map(&home, "owner", "1"));
            cluster().patch(&top, &owned_by(&owner));
        } else {
            cluster().patch(&top, &keep);
        }
        let kept = [base, top, set.parent.clone()];
        for deleted in [&[other][..], &[]] {
            let run = set.delete_with(Program::new(), &[]).expect(0);
            assert_eq!(run.results("deleted"), identities(deleted));
            assert_eq!(run.results("skipped"), identities(&kept));
            assert!(kept.iter().all(|object| cluster().live(object).is_some()));
            let count = |warning: &String| warning.contains("still has 2 objects");
            assert!(run.warnings().iter().any(count), "{:?}", run.warnings());
        }
        assert_eq!(set.unrecorded(), Vec::<String>::new());
    }
}

/// What makes an object owned by this one.
fn owned_by(owner: &Value) -> Value {
    let owner = json!({
        "apiVersion": owner["apiVersion"], "kind": owner["kind"],
        "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"],
    });
    json!({"metadata": {"ownerReferences": [owner]}})
}
