//! `--prune-when=ready` and `PruneLast=true`: what left the manifests is deleted once what they hold
//! is Current. No workload is ever run here, so the tests write the status that a controller would.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use crate::support::{
    Files, Program, ProgramEnd, Proxy, Sent, Set, Verdict, Watch, cluster, config_map, deployment,
    identities, named, namespace, namespace_object, objects_file, secret, with,
};

/// The status of a Deployment that is rolled out.
fn rolled_out() -> Value {
    json!({
        "observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1,
        "availableReplicas": 1,
        "conditions": [
            {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
            {"type": "Available", "status": "True"},
        ],
    })
}

fn job(namespace: &str, name: &str) -> Value {
    with(
        named("batch/v1", "Job", Some(namespace), name),
        &json!({"spec": {"template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "app", "image": "app"}],
        }}}}),
    )
}

pub(super) fn last(object: Value) -> Value {
    let annotations = json!({"argocd.argoproj.io/sync-options": "PruneLast=true"});
    with(object, &json!({"metadata": {"annotations": annotations}}))
}

fn held(object: Value) -> Value {
    with(object, &json!({"metadata": {"finalizers": ["example.com/held"]}}))
}

fn let_go(object: &Value) {
    cluster().patch(object, &json!({"metadata": {"finalizers": null}}));
}

fn files(objects: &[Value]) -> Files {
    Files::new().with("objects.yaml", &objects_file(objects))
}

const READY: [&str; 3] = ["-v", "--wait=0", "--prune-when=ready"];

/// The names of the objects that were deleted, in their order.
fn deleted(proxy: &Proxy) -> Vec<String> {
    let sent = proxy.sent();
    let deletes = sent.iter().filter(|sent| sent.method == Method::DELETE);
    let name = |sent: &Sent| sent.path.rsplit('/').next().unwrap_or_default().to_owned();
    deletes.map(name).collect()
}

#[test]
fn what_left_the_manifests_is_pruned_once_all_of_them_is_ready() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    // A broken one must not block its own removal.
    let broken = deployment(&home, "broken", 1);
    let slow = held(secret(&home, "slow"));
    set.apply(&[broken.clone(), slow.clone()]);
    let web = deployment(&home, "web", 1);
    let wanted = [web.clone(), config_map(&home, "one", "1")];
    let files = files(&wanted);

    let mut running = set.command(Program::new(), &files).args(READY).start();
    running.wait_for_message("0 of 1 replicas");
    assert!(cluster().live(&broken).is_some());
    // It changes while it is waited for, as broken objects do.
    cluster().patch_status(&broken, &json!({"replicas": 1, "unavailableReplicas": 1}));
    cluster().patch_status(&web, &rolled_out());
    // The record names its kind until it is gone.
    running.wait_for_message("finalizer example.com/held");
    assert_eq!(cluster().live(&broken), None);
    set.assert_records(&[web, config_map(&home, "one", "1"), slow.clone(), broken]);
    let_go(&slow);
    running.finish().expect(0);
    set.assert_holds(&wanted);
}

#[test]
fn members_that_needed_what_was_pruned_are_looked_at_again() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let slow = held(secret(&home, "slow"));
    let web = deployment(&home, "web", 1);
    set.apply(&[web.clone(), slow.clone()]);
    cluster().patch_status(&web, &rolled_out());
    let files = files(std::slice::from_ref(&web));

    let flags = ["-v", "--wait=5s", "--prune-when=ready"];
    let mut running = set.command(Program::new(), &files).args(flags).start();
    running.wait_for_message("finalizer example.com/held");
    let broken = json!({"readyReplicas": 0, "availableReplicas": 0, "unavailableReplicas": 1});
    cluster().patch_status(&web, &broken);
    let_go(&slow);
    let run = running.finish().expect(1);
    assert!(run.stderr.contains("0 of 1 replicas"), "{}", run.stderr);
}

#[test]
fn what_does_not_become_ready_prunes_nothing_and_the_next_run_finishes() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let old = secret(&home, "old");
    let [web, migrate] = [deployment(&home, "web", 1), job(&home, "migrate")];
    let first = [old.clone(), config_map(&home, "kept", "1")];
    set.apply(&first);
    let wanted = [web.clone(), config_map(&home, "kept", "1")];
    let everything = [wanted.as_slice(), std::slice::from_ref(&old)].concat();

    let run = set
        .apply_with(&wanted, &["--wait=1s", "--prune-when=ready"])
        .expect(1);
    assert_eq!(run.results("skipped"), identities([&old]));
    assert!(run.reason("old").contains("not all objects"), "{}", run.stdout);
    set.assert_holds(&everything);

    // What has failed ends the wait at once.
    set.apply_with(std::slice::from_ref(&migrate), &["--prune=false"]);
    cluster().fail_job(&migrate);
    let with_job = [wanted.as_slice(), std::slice::from_ref(&migrate)].concat();
    set.apply_with(&with_job, &["--wait=0", "--prune-when=ready"])
        .expect(1);
    set.assert_holds(&[everything.as_slice(), std::slice::from_ref(&migrate)].concat());

    cluster().patch_status(&web, &rolled_out());
    let run = set
        .apply_with(&wanted, &["--wait=0", "--prune-when=ready"])
        .expect(0);
    assert_eq!(run.results("pruned").len(), 2, "{}", run.stdout);
    set.assert_holds(&wanted);
}

#[test]
fn candidates_are_judged_as_they_are_after_the_wait() {
    let home = namespace("home");
    let inside = namespace("inside");
    let set = Set::secret(&home, "web");
    let names = ["marked", "released", "replaced", "gone", "plain"];
    let old = names.map(|name| config_map(&inside, name, "1"));
    let container = namespace_object(&inside);
    let first = [old.as_slice(), std::slice::from_ref(&container)].concat();
    set.apply(&first);
    let web = deployment(&home, "web", 1);
    let files = files(std::slice::from_ref(&web));
    let mut running = set
        .command(Program::new(), &files)
        .args(READY)
        .args(["--allow-prune-all"])
        .args(["-o", "json"])
        .start();
    running.wait_for_message("0 of 1 replicas");
    let annotation = json!({"metadata": {"annotations": {"helm.sh/resource-policy": "keep"}}});
    cluster().patch(&old[0], &annotation);
    let no_label = json!({"metadata": {"labels": {"applyset.kubernetes.io/part-of": null}}});
    cluster().patch(&old[1], &no_label);
    cluster().delete(&old[2]);
    cluster().create(&old[2]);
    cluster().delete(&old[3]);
    cluster().patch_status(&web, &rolled_out());
    let run = running.finish().expect(0);

    let is_live = old.each_ref().map(|object| cluster().live(object).is_some());
    assert_eq!(is_live, [true, true, true, false, false], "{}", run.stderr);
    assert!(cluster().live(&container).is_some());
    assert!(run.reason("marked").contains("resource-policy"), "{}", run.stdout);
    set.assert_records(&[web, old[0].clone(), container]);
}

#[test]
fn an_object_that_leaves_the_set_during_the_wait_prevents_all_prunes() {
    let no_label = json!({"metadata": {"labels": {"applyset.kubernetes.io/part-of": null}}});
    for (is_deleted, is_held) in [(true, false), (true, true), (false, false)] {
        let home = namespace("home");
        let set = Set::secret(&home, "web");
        let old = secret(&home, "old");
        set.apply(std::slice::from_ref(&old));
        let [new, web] = [config_map(&home, "new", "1"), deployment(&home, "web", 1)];
        let wanted = [new.clone(), web.clone()];
        let files = files(&wanted);
        let mut running = set
            .command(Program::new(), &files)
            .args(["-v", "--wait=10s", "--prune-when=ready"])
            .args(["-o", "json"])
            .start();
        running.wait_for_message("0 of 1 replicas");
        if is_held {
            let finalizer = json!({"metadata": {"finalizers": ["example.com/held"]}});
            cluster().patch(&new, &finalizer);
        }
        if is_deleted {
            cluster().delete(&new);
        } else {
            cluster().patch(&new, &no_label);
        }
        cluster().patch_status(&web, &rolled_out());
        let run = running.finish().expect(1);
        assert_eq!(run.results("skipped"), identities([&old]), "{}", run.stderr);
        assert!(cluster().live(&old).is_some());

        if is_held {
            let_go(&new);
        }
        set.apply_with(&wanted, &["--wait=0", "--prune-when=ready"])
            .expect(0);
        set.assert_holds(&wanted);
    }
}

#[test]
fn an_interrupted_wait_prunes_nothing_and_the_next_run_converges() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let old = [secret(&home, "old"), last(config_map(&home, "late", "1"))];
    set.apply(&old);
    let web = deployment(&home, "web", 1);
    let wanted = std::slice::from_ref(&web);
    let files = files(wanted);
    let mut running = set
        .command(Program::new(), &files)
        .args(READY)
        .args(["-o", "json"])
        .start();
    running.wait_for_message("0 of 1 replicas");
    running.interrupt();
    let run = running.finish().expect(130);
    assert_eq!(run.results("skipped"), identities(&old));
    assert_eq!(run.results("created"), identities(wanted));
    set.assert_holds(&[old.as_slice(), wanted].concat());

    let run = set
        .apply_with(wanted, &["--wait=0", "--prune-when=ready", "--timeout=2s"])
        .expect(1);
    assert!(run.stderr.contains("--timeout"), "{}", run.stderr);
    assert_eq!(run.results("skipped"), identities(&old));
    cluster().patch_status(&web, &rolled_out());
    set.apply_with(wanted, &["--wait=0", "--prune-when=ready"])
        .expect(0);
    set.assert_holds(wanted);
}

#[test]
fn a_run_that_prunes_when_all_is_ready_can_be_killed_between_any_two_writes() {
    for writes in 0.. {
        let [home, other] = [namespace("home"), namespace("other")];
        let set = Set::secret(&home, "web");
        set.apply(&[
            secret(&other, "old"),
            last(config_map(&other, "late", "1")),
            config_map(&home, "kept", "1"),
        ]);
        let wanted = [config_map(&home, "kept", "2"), config_map(&home, "new", "1")];
        let proxy = Proxy::holding_after(writes);
        let objects = files(&wanted);
        let program = Program::with_kubeconfig(&proxy.kubeconfig());
        let end = set
            .command(program, &objects)
            .args(["--wait=0", "--prune-when=ready"])
            .run_until_held(&proxy);
        assert_eq!(set.unrecorded(), Vec::<String>::new(), "after {writes} writes");
        if end == ProgramEnd::Finished {
            assert!(writes >= 5, "only {writes} writes");
            set.assert_holds(&wanted);
            return;
        }
        set.assert_put_in_order(&wanted, &wanted);
    }
}

#[test]
fn what_is_to_be_pruned_last_is_pruned_last() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let kept = config_map(&home, "kept", "1");
    // A Deployment would be pruned first by its kind.
    let late = last(deployment(&home, "late", 1));
    let objects = [kept.clone(), late, secret(&home, "early")];
    set.apply(&objects);
    let proxy = Proxy::transparent();
    set.apply_through(&proxy, std::slice::from_ref(&kept), &[])
        .expect(0);
    assert_eq!(deleted(&proxy), ["early", "late"]);
    set.assert_holds(std::slice::from_ref(&kept));

    set.apply(&objects);
    let proxy = Proxy::transparent();
    set.deletion(Program::with_kubeconfig(&proxy.kubeconfig()))
        .args(["--yes"])
        .run()
        .expect(0);
    assert_eq!(deleted(&proxy)[2..], ["late", "web"]);
}

#[test]
fn what_is_to_be_pruned_last_waits_for_the_members_in_a_run_that_waits() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let [late, early] = [last(secret(&home, "late")), secret(&home, "early")];
    set.apply(&[late.clone(), early.clone()]);
    let web = deployment(&home, "web", 1);
    let wanted = std::slice::from_ref(&web);

    let run = set.apply_with(wanted, &["--wait=1s"]).expect(1);
    assert_eq!(run.results("pruned"), identities([&early]));
    assert_eq!(run.results("skipped"), identities([&late]));
    set.assert_holds(&[web.clone(), late.clone()]);

    cluster().patch_status(&web, &rolled_out());
    let run = set.apply_with(wanted, &["--wait=0"]).expect(0);
    assert_eq!(run.results("pruned"), identities([&late]));
    set.assert_holds(wanted);
}

#[test]
fn what_is_to_be_pruned_last_stays_until_the_others_are_gone() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let kept = config_map(&home, "kept", "1");
    let [late, early] = [last(secret(&home, "late")), held(secret(&home, "early"))];
    let objects = [kept.clone(), late.clone(), early.clone()];
    let wanted = std::slice::from_ref(&kept);
    set.apply(&objects);

    // It may be what releases the finalizers of the others.
    let run = set.apply_with(wanted, &["--wait=1s"]).expect(1);
    assert_eq!(run.results("pruned"), identities([&early]));
    assert_eq!(run.results("skipped"), identities([&late]));
    set.assert_records(&objects);
    assert!(cluster().live(&late).is_some());

    let files = files(wanted);
    let mut running = set
        .command(Program::new(), &files)
        .args(["-v", "--wait=0"])
        .start();
    running.wait_for_message("finalizer example.com/held");
    assert!(cluster().live(&late).is_some());
    let_go(&early);
    running.finish().expect(0);
    assert_eq!(cluster().live(&late), None);
    set.apply(wanted);
    set.assert_holds(wanted);
}

#[test]
fn what_is_to_be_pruned_last_stays_when_another_prune_fails() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let kept = config_map(&home, "kept", "1");
    let [late, early] = [last(secret(&home, "late")), secret(&home, "early")];
    let objects = [kept.clone(), late.clone(), early.clone()];
    set.apply(&objects);
    for flags in [&[][..], &["--wait=0"]] {
        // It becomes the parent of another set, which a prune would lose.
        let patch = |id: Value| json!({"metadata": {"labels": {"applyset.kubernetes.io/id": id}}});
        let (object, becomes) = (early.clone(), patch(json!("applyset-any-v1")));
        let proxy = Proxy::before_write(0, move || {
            cluster().patch(&object, &becomes);
        });
        let run = set
            .apply_through(&proxy, std::slice::from_ref(&kept), flags)
            .expect(1);
        assert_eq!(run.results("failed"), identities([&early]), "{flags:?}");
        assert_eq!(run.results("skipped"), identities([&late]), "{flags:?}");
        cluster().patch(&early, &patch(Value::Null));
        set.assert_holds(&objects);
    }
    set.apply(std::slice::from_ref(&kept));
    set.assert_holds(&[kept]);
}

/// Lets another run narrow the record while this one waits.
struct Narrowing {
    set: Set,
    wanted: Vec<Value>,
    has_applied: AtomicBool,
}

impl Watch for Narrowing {
    fn before(&self, sent: &Sent, _: usize) -> Verdict {
        let is_of_deployments = sent.path.contains("/deployments");
        if is_of_deployments && sent.is_write() {
            self.has_applied.store(true, Ordering::SeqCst);
        } else if is_of_deployments && self.has_applied.swap(false, Ordering::SeqCst) {
            self.set.apply(&self.wanted);
            let web = &self.wanted[0];
            cluster().patch_status(web, &rolled_out());
        }
        Verdict::Forward
    }
}

#[test]
fn another_run_may_prune_while_this_one_waits() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let wanted = vec![deployment(&home, "web", 1)];
    set.apply(&[secret(&home, "old")]);
    let proxy = Proxy::watched(Arc::new(Narrowing {
        set: Set::secret(&home, "web"),
        wanted: wanted.clone(),
        has_applied: AtomicBool::new(false),
    }));
    set.apply_through(&proxy, &wanted, &["--wait=0", "--prune-when=ready"])
        .expect(0);
    set.assert_holds_at_least(&wanted);
    set.apply(&wanted);
    set.assert_holds(&wanted);
}

#[test]
fn flags_that_contradict_it_are_refused() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let wanted = [config_map(&home, "one", "1")];
    for flags in [
        &["--prune-when=ready"][..],
        &["--prune-when=ready", "--wait=false"],
        &["--prune-when=ready", "--dry-run=server"],
        &["--prune-when=ready", "--wait", "--prune=false"],
        &["--prune-when=later", "--wait"],
    ] {
        set.apply_with(&wanted, flags).expect(2);
    }
    assert_eq!(set.live_parent(), None);
}

#[test]
fn dry_runs_diffs_and_saved_plans_say_when_objects_are_pruned() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let [old, late] = [secret(&home, "old"), last(config_map(&home, "late", "1"))];
    set.apply(&[old.clone(), late.clone()]);
    let wanted = [deployment(&home, "web", 1)];
    let flags = ["--prune-when=ready", "--wait", "--dry-run=server"];
    let run = set.apply_with(&wanted, &flags).expect(0);
    assert_eq!(run.reason("old"), "once all objects of the manifests are Current");
    assert!(run.reason("late").contains("PruneLast=true"), "{}", run.stdout);
    let run = set.apply_with(&wanted, &["--dry-run=client"]).expect(0);
    assert_eq!(run.reason("old"), "");
    assert!(run.reason("late").contains("last"), "{}", run.stdout);

    let files = files(&wanted);
    let manifests = files.directory();
    let out = Files::new();
    let plan = out.path("plan.json");
    let arguments = [
        "--prune-when=ready",
        "--out",
        plan.to_str().expect("a path"),
        "-f",
        manifests.to_str().expect("a path"),
    ];
    let run = set.invoke("diff", &arguments).expect(1);
    assert!(
        run.stderr
            .contains("pruned once all objects of the manifests are Current"),
        "{}",
        run.stderr
    );
    let saved = std::fs::read_to_string(&plan).expect("a plan");
    assert!(saved.contains("PruneLast=true"), "{saved}");
    let apply = |flags: &[&str]| {
        Program::new()
            .args(["apply", "-o", "json", "--plan"])
            .args([&plan])
            .args(flags)
            .run()
    };
    apply(&[]).expect(2);
    assert_eq!(cluster().live(&wanted[0]), None);
    apply(&["--wait=1s"]).expect(1);
    set.assert_holds(&[wanted.as_slice(), &[old, late]].concat());

    cluster().patch_status(&wanted[0], &rolled_out());
    set.invoke("diff", &arguments).expect(1);
    let run = apply(&["--wait=0"]).expect(0);
    assert_eq!(run.results("pruned").len(), 2);
    set.assert_holds(&wanted);
}

#[test]
fn a_run_in_which_a_prune_failed_does_not_wait_for_the_members() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let web = deployment(&home, "web", 1);
    let [late, early] = [last(secret(&home, "late")), secret(&home, "early")];
    set.apply(&[web.clone(), late.clone(), early.clone()]);
    let patch = |id: Value| json!({"metadata": {"labels": {"applyset.kubernetes.io/id": id}}});
    let (object, becomes) = (early.clone(), patch(json!("applyset-any-v1")));
    let proxy = Proxy::before_write(0, move || {
        cluster().patch(&object, &becomes);
    });
    let manifests = files(std::slice::from_ref(&web));
    let run = set
        .command(Program::with_kubeconfig(&proxy.kubeconfig()), &manifests)
        .args(["--wait=0", "-o", "json"])
        .start()
        .finish_within(Duration::from_secs(20))
        .expect("an end")
        .expect(1);
    assert_eq!(run.results("failed"), identities([&early]));
    assert_eq!(run.results("skipped"), identities([&late]));
}
