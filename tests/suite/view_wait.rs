//! `view --wait`: a wait for a set that applies nothing.

use controlplane::{ControlPlane, Grant, User};
use serde_json::{Value, json};

use crate::support::{
    Program, Run, Running, Set, cluster, config_map, deployment, identities, named, namespace, with,
};

/// A Deployment with one replica that no controller works on, and a `ConfigMap`.
fn applied() -> (Set, [Value; 2]) {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects = [deployment(&home, "web", 1), config_map(&home, "one", "1")];
    set.apply(&objects);
    (set, objects)
}

fn make_ready(deployment: &Value) {
    let status = json!({
        "observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1,
        "conditions": [
            {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
            {"type": "Available", "status": "True"},
        ],
    });
    cluster().patch_status(deployment, &status);
}

fn start(set: &Set, program: Program, flags: &[&str]) -> Running {
    let view = set.invocation(program, "view", &["-v", "-o", "json"]);
    view.args(flags).start()
}

/// A user who may do this in the namespace of the set, with its parent, its members and other objects.
fn user(set: &Set, resources: &[&str], verbs: &[&str]) -> User {
    let rules = json!({"apiGroups": ["", "apps"], "resources": resources, "verbs": verbs});
    let grant = Grant::in_namespace(set.namespace.as_str(), [rules]);
    ControlPlane::shared().user(&[grant]).expect("a user")
}

fn names(run: &Run, list: &str) -> Vec<String> {
    let document = run.document();
    let entries = document[list]
        .as_array()
        .unwrap_or_else(|| panic!("{document:#}"));
    let mut names: Vec<String> = entries.iter().map(|entry| entry["name"].to_string()).collect();
    names.sort();
    names
}

#[test]
fn a_wait_ends_when_all_members_are_current_and_writes_nothing() {
    let (set, objects) = applied();
    let mut waiting = start(&set, Program::new(), &["--wait=0"]);
    waiting.wait_for_message("0 of 1 replicas");
    make_ready(&objects[0]);
    let before = cluster().state(&[&set.namespace]);
    let run = waiting.finish().expect(0);
    assert_eq!(cluster().state(&[&set.namespace]), before);
    let document = run.document();
    assert_eq!(
        [&document["waiting"], &document["error"]],
        [&json!([]), &Value::Null]
    );
    for member in document["members"].as_array().expect("members") {
        assert_eq!(member["status"], "Current");
    }
    // There is nothing to wait for now.
    let run = set
        .invocation(Program::new(), "view", &["--wait"])
        .run()
        .expect(0);
    assert!(
        run.stdout.contains("Members:    2 (2 Current)\n"),
        "{}",
        run.stdout
    );
}

#[test]
fn a_user_who_may_only_get_and_list_can_wait() {
    let (set, objects) = applied();
    let reader = user(&set, &["secrets", "configmaps", "deployments"], &["get", "list"]);
    let program = Program::with_kubeconfig(&reader.kubeconfig);
    let mut waiting = start(&set, program, &["--wait=0"]);
    waiting.wait_for_message("0 of 1 replicas");
    make_ready(&objects[0]);
    waiting.finish().expect(0);
}

#[test]
fn members_that_cannot_be_listed_are_not_waited_for() {
    let (set, _) = applied();
    let reader = user(&set, &["secrets", "configmaps"], &["get", "list"]);
    let program = Program::with_kubeconfig(&reader.kubeconfig);
    let run = set.invoke_by(program, "view", &["--wait=0"]).expect(4);
    assert_eq!(run.document()["error"]["exitCode"], 4);
    assert!(
        run.stderr.contains("deployments.apps: cannot be listed"),
        "{}",
        run.stderr
    );
}

#[test]
fn what_is_not_ready_in_time_is_shown_with_its_reason() {
    let (set, _) = applied();
    let run = set.invoke("view", &["--wait=1s"]).expect(1);
    assert_eq!(names(&run, "waiting"), ["\"web\""]);
    assert_eq!(names(&run, "members"), ["\"one\"", "\"web\""]);
    assert_eq!(run.document()["error"]["exitCode"], 1);
    let run = set
        .invocation(Program::new(), "view", &["--wait=1s"])
        .run()
        .expect(1);
    assert!(
        run.stdout.contains("(1 Current, 1 InProgress)\n"),
        "{}",
        run.stdout
    );
    let errors = run.errors().join("\n");
    for text in [
        "0 of 1 replicas",
        "timed out waiting for the condition after 1s: 1 of 2 objects",
    ] {
        assert!(errors.contains(text), "{errors}");
    }
}

#[test]
fn a_failed_member_ends_the_wait_at_once() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let pod = json!({"restartPolicy": "Never", "containers": [{"name": "app", "image": "app"}]});
    let job = with(
        named("batch/v1", "Job", Some(&home), "migrate"),
        &json!({"spec": {"template": {"spec": pod}}}),
    );
    set.apply(&[job.clone(), deployment(&home, "web", 1)]);
    let run = set.invoke("view", &["--wait=1s", "--wait-for-jobs"]).expect(1);
    assert_eq!(names(&run, "waiting"), ["\"migrate\"", "\"web\""]);
    cluster().fail_job(&job);
    // Without a limit only the failure can end it.
    let run = set.invoke("view", &["--wait=0"]).expect(1);
    assert!(
        run.stderr.contains("BackoffLimitExceeded: too often"),
        "{}",
        run.stderr
    );
}

#[test]
fn members_that_leave_are_not_waited_for_and_members_that_join_are() {
    let (set, objects) = applied();
    let home = &set.namespace;
    let leaving = with(
        config_map(home, "leaving", "1"),
        &json!({"metadata": {"finalizers": ["example.com/held"]}}),
    );
    let [web, one] = &objects;
    set.apply(&[web.clone(), one.clone(), leaving.clone()]);
    let mut waiting = start(&set, Program::new(), &["--wait=0"]);
    waiting.wait_for_message("0 of 1 replicas");
    // The second Deployment comes, and a ConfigMap and the first Deployment go.
    let joined = deployment(home, "joined", 1);
    let wanted = [joined.clone(), one.clone()];
    set.apply_with(&wanted, &["--prune-when=applied"]);
    waiting.wait_for_message("finalizer example.com/held");
    cluster().patch(&leaving, &json!({"metadata": {"finalizers": null}}));
    waiting.wait_for_message("deployment.apps/joined");
    make_ready(&joined);
    let run = waiting.finish().expect(0);
    assert_eq!(names(&run, "members"), ["\"joined\"", "\"one\""]);
    assert_eq!(set.members(), identities(&wanted));
}

#[test]
fn a_set_that_is_deleted_during_the_wait_is_not_ready() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    // With a second member, the wait could end while that one is still there and ready.
    set.apply(&[deployment(&home, "web", 1)]);
    let mut waiting = start(&set, Program::new(), &["--wait=0"]);
    waiting.wait_for_message("0 of 1 replicas");
    set.delete(&[]).expect(0);
    let run = waiting.finish().expect(1);
    assert_eq!(run.document()["error"]["exitCode"], 1);
}

#[test]
fn a_wait_that_is_interrupted_has_a_document() {
    let (set, _) = applied();
    let mut waiting = start(&set, Program::new(), &["--wait=0"]);
    waiting.wait_for_message("0 of 1 replicas");
    waiting.wait_for_message("configmap/one in namespace");
    waiting.interrupt();
    let run = waiting.finish().expect(130);
    assert_eq!(names(&run, "waiting"), ["\"web\""]);
    assert_eq!(run.document()["error"]["exitCode"], 130);
    assert!(run.stderr.contains("nothing was written"), "{}", run.stderr);
    for of_a_write in ["requests in flight", "to finish"] {
        assert!(!run.stderr.contains(of_a_write), "{}", run.stderr);
    }
}

#[test]
fn a_user_who_may_not_read_the_parent_learns_what_to_ask_for() {
    let (set, _) = applied();
    let stranger = user(&set, &["configmaps"], &["list"]);
    let view = set.invocation(
        Program::with_kubeconfig(&stranger.kubeconfig),
        "view",
        &["--wait=0"],
    );
    let run = view.run().expect(4);
    assert!(run.stderr.contains("rbac SET -f … --read-only"), "{}", run.stderr);
}

#[test]
fn wrong_input_is_refused() {
    let (set, _) = applied();
    for flags in [
        &["--wait=soon"][..],
        &["--wait-for-jobs"],
        &["--wait", "--timeout=1s"],
    ] {
        set.invocation(Program::new(), "view", flags).run().expect(2);
    }
    let unknown = Set::secret(&set.namespace, "unknown");
    unknown
        .invocation(Program::new(), "view", &["--wait=0"])
        .run()
        .expect(2);
}
