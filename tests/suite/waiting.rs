//! `--wait` and `--timeout`: a run ends well when what it wrote has taken effect, and says
//! of what has not why that is so. No workload is ever run here, so the tests write the
//! status that a controller would.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::{Response, StatusCode};
use serde_json::{Value, json};

use crate::support::{
    Files, Program, Proxy, Run, Sent, Set, Verdict, Watch, cluster, config_map, custom_resource, definition,
    deployment, eventually, fresh, identities, kubectl_apply, named, namespace, namespace_object,
    objects_file, secret, with,
};

/// The status of a Deployment that is rolled out.
fn rolled_out(replicas: u32) -> Value {
    json!({
        "observedGeneration": 1, "replicas": replicas, "updatedReplicas": replicas,
        "readyReplicas": replicas, "availableReplicas": replicas,
        "conditions": [
            {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
            {"type": "Available", "status": "True"},
        ],
    })
}

fn held(object: Value) -> Value {
    with(object, &json!({"metadata": {"finalizers": ["example.com/held"]}}))
}

fn let_go(object: &Value) {
    cluster().patch(object, &json!({"metadata": {"finalizers": null}}));
}

fn job(namespace: &str, name: &str) -> Value {
    with(
        named("batch/v1", "Job", Some(namespace), name),
        &json!({"spec": {"template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "app", "image": "app"}],
        }}}}),
    )
}

/// What was waited for in vain: name, status, reason.
fn missed(run: &Run) -> Vec<[String; 3]> {
    let document = run.document();
    let waiting = document["waiting"].as_array().expect("a list");
    let text = |entry: &Value, field: &str| entry[field].as_str().unwrap_or_default().to_owned();
    let fields = ["name", "status", "reason"];
    waiting
        .iter()
        .map(|entry| fields.map(|field| text(entry, field)))
        .collect()
}

/// Once something was deleted, answers every other list of this kind as if its path did not exist.
struct UnknownPath {
    path: String,
    has_deleted: AtomicBool,
    lists: AtomicUsize,
}

impl Watch for UnknownPath {
    fn before(&self, sent: &Sent, _: usize) -> Verdict {
        if sent.method == "DELETE" {
            self.has_deleted.store(true, Ordering::SeqCst);
        }
        Verdict::Forward
    }

    fn after(&self, sent: &Sent, answer: Response<Bytes>) -> Response<Bytes> {
        let is_list = sent.method == "GET" && sent.path.contains(&self.path) && sent.path.contains('?');
        let is_other = || self.lists.fetch_add(1, Ordering::SeqCst).is_multiple_of(2);
        if is_list && self.has_deleted.load(Ordering::SeqCst) && is_other() {
            let (mut parts, _) = answer.into_parts();
            parts.status = StatusCode::NOT_FOUND;
            parts.headers.remove(CONTENT_LENGTH);
            Response::from_parts(parts, Bytes::from("404 page not found\n"))
        } else {
            answer
        }
    }
}

#[test]
fn an_object_whose_path_is_not_known_for_a_moment_is_not_gone() {
    let home = namespace("home");
    let group = format!("{}.example.com", fresh("g"));
    cluster().define(&definition(&group, "Namespaced"));
    let set = Set::secret(&home, "web");
    let kept = config_map(&home, "kept", "1");
    let operator = with(
        config_map(&home, "operator", "1"),
        &json!({"metadata": {"annotations": {"argocd.argoproj.io/sync-options": "PruneLast=true"}}}),
    );
    let widget = held(custom_resource(&group, Some(&home), "widget"));
    set.apply(&[kept.clone(), operator.clone(), widget.clone()]);

    let proxy = Proxy::watched(Arc::new(UnknownPath {
        path: format!("/apis/{group}/v1/namespaces/{home}/widgets"),
        has_deleted: AtomicBool::new(false),
        lists: AtomicUsize::new(0),
    }));
    let run = set.apply_through(&proxy, std::slice::from_ref(&kept), &["--wait", "--timeout=5s"]);
    assert_eq!(run.results("pruned"), identities([&widget]), "{}", run.stderr);
    assert_ne!(run.code, 0);
    assert!(cluster().live(&operator).is_some(), "{}", run.stderr);

    let_go(&widget);
    set.apply(std::slice::from_ref(&kept));
    set.assert_holds(&[kept]);
}

#[test]
fn a_run_ends_when_everything_is_ready() {
    let home = namespace("home");
    let group = format!("{}.example.com", fresh("g"));
    let set = Set::secret(&home, "web");
    let web = deployment(&home, "web", 2);
    let widget = custom_resource(&group, Some(&home), "widget");
    let objects = [
        definition(&group, "Namespaced"),
        widget,
        web.clone(),
        config_map(&home, "one", "1"),
    ];
    let files = Files::new().with("objects.yaml", &objects_file(&objects));
    let start = || set.command(Program::new(), &files).args(["-v", "--wait"]).start();
    let mut running = start();
    running.wait_for_message("deployment.apps/web in namespace");
    let mut status = rolled_out(2);
    status["availableReplicas"] = json!(1);
    cluster().patch_status(&web, &status);
    running.wait_for_message("1 of 2 replicas are available");
    cluster().patch_status(&web, &rolled_out(2));
    running.finish().expect(0);
    set.assert_holds(&objects);

    // What did not change is waited for like the rest.
    cluster().patch_status(&web, &status);
    let mut running = start();
    running.wait_for_message("1 of 2 replicas are available");
    cluster().patch_status(&web, &rolled_out(2));
    let run = running.finish().expect(0);
    assert!(
        run.stdout.contains("deployment.apps/web unchanged"),
        "{}",
        run.stdout
    );
}

#[test]
fn what_is_ready_already_is_not_waited_for() {
    let [a, b] = [namespace("a"), namespace("b")];
    let set = Set::secret(&a, "web");
    let objects = [config_map(&a, "one", "1"), secret(&b, "two")];
    let run = set.apply_with(&objects, &["--wait=0"]).expect(0);
    assert_eq!(run.document()["waiting"], json!([]));
    let run = set
        .apply_with(&objects, &["--wait", "--dry-run=server"])
        .expect(0);
    assert_eq!(run.document().get("waiting"), None);
}

#[test]
fn what_is_not_ready_in_time_is_reported_with_its_reason() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let web = deployment(&home, "web", 2);
    let quiet = deployment(&home, "quiet", 1);
    let pod = with(
        named("v1", "Pod", Some(&home), "web-1"),
        &json!({
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "app", "image": "app"}]},
        }),
    );
    cluster().create(&pod);
    let waiting = json!({"reason": "ImagePullBackOff", "message": "no such image"});
    let container = json!({
        "name": "app", "image": "app", "imageID": "", "ready": false, "restartCount": 0,
        "state": {"waiting": waiting},
    });
    cluster().patch_status(&pod, &json!({"containerStatuses": [container]}));
    set.apply(std::slice::from_ref(&quiet));
    let live = cluster().live(&quiet).expect("it");
    let event = with(
        named("v1", "Event", Some(&home), "quiet.1"),
        &json!({
            "type": "Warning", "reason": "FailedCreate", "message": "exceeded quota",
            "involvedObject": {
                "apiVersion": "apps/v1", "kind": "Deployment", "namespace": home, "name": "quiet",
                "uid": live["metadata"]["uid"],
            },
        }),
    );
    cluster().create(&event);
    let objects = [web, quiet, config_map(&home, "one", "1")];

    let run = set.apply_with(&objects, &["--wait=1s"]).expect(1);

    set.assert_holds(&objects);
    let missed = missed(&run);
    assert_eq!(missed.len(), 2, "{missed:?}");
    let of = |name: &str| missed.iter().find(|entry| entry[0] == name).expect("it");
    assert_eq!(of("web")[1], "InProgress");
    for text in [
        "0 of 2 replicas",
        "pod/web-1",
        "ImagePullBackOff",
        "no such image",
    ] {
        assert!(of("web")[2].contains(text), "{missed:?}");
    }
    assert!(
        of("quiet")[2].contains("FailedCreate: exceeded quota"),
        "{missed:?}"
    );
    assert_eq!(run.document()["error"]["exitCode"], 1);
    assert!(
        run.errors()
            .iter()
            .any(|line| line.contains("deployment.apps/web")),
        "{}",
        run.stderr
    );
}

#[test]
fn what_cannot_heal_ends_the_wait_at_once() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects = [job(&home, "migrate"), deployment(&home, "web", 1)];
    set.apply(&objects);
    cluster().fail_job(&objects[0]);
    // Without a limit only the failure can end it.
    let run = set.apply_with(&objects, &["--wait=0"]).expect(1);
    let missed = missed(&run);
    assert_eq!(
        missed[0],
        ["migrate", "Failed", "BackoffLimitExceeded: too often"]
    );
    assert_eq!(missed[1][0], "web");
}

#[test]
fn what_was_pruned_is_waited_for_until_it_is_gone() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let kept = config_map(&home, "kept", "1");
    let slow = held(config_map(&home, "slow", "1"));
    set.apply(&[kept.clone(), slow.clone()]);
    let only = std::slice::from_ref(&kept);
    let run = set.apply_with(only, &["--wait=1s"]).expect(1);
    let missed = missed(&run);
    assert_eq!(missed.len(), 1);
    assert_eq!(
        (missed[0][0].as_str(), missed[0][1].as_str()),
        ("slow", "Terminating")
    );
    assert!(missed[0][2].contains("example.com/held"), "{missed:?}");

    // It is going since an earlier run.
    let files = Files::new().with("objects.yaml", &objects_file(only));
    let mut running = set
        .command(Program::new(), &files)
        .args(["-v", "--wait=0"])
        .start();
    running.wait_for_message("finalizer example.com/held");
    let_go(&slow);
    running.finish().expect(0);
    assert_eq!(cluster().live(&slow), None);
}

#[test]
fn a_time_limit_beyond_all_clocks_never_runs_out() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let one = config_map(&home, "one", "1");
    for flag in ["--timeout", "--wait", "--request-timeout"] {
        let flag = format!("{flag}=2000000000000000h");
        set.apply_with(
            std::slice::from_ref(&one),
            &["--wait", &flag][usize::from(flag.starts_with("--wait"))..],
        )
        .expect(0);
    }
    set.delete_with(Program::new(), &["--timeout=2000000000000000h", "--wait"])
        .expect(0);
}

#[test]
fn interrupted_waiting_has_written_everything() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects = [deployment(&home, "web", 1), config_map(&home, "one", "1")];
    let files = Files::new().with("objects.yaml", &objects_file(&objects));
    let mut running = set
        .command(Program::new(), &files)
        .args(["-v", "--wait=0", "-o", "json"])
        .start();
    running.wait_for_message("0 of 1 replicas");
    running.wait_for_message("configmap/one in namespace");
    running.interrupt();
    let run = running.finish().expect(130);
    assert_eq!(missed(&run).len(), 1);
    set.assert_holds(&objects);
}

#[test]
fn the_time_of_a_whole_run_is_limited() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let web = deployment(&home, "web", 1);
    let run = set.apply_with(&[web], &["--wait=0", "--timeout=2s"]).expect(1);
    assert_eq!(run.document()["error"]["exitCode"], 1);
    assert!(run.stderr.contains("--timeout"), "{}", run.stderr);
    for flag in ["--wait=soon", "--timeout=soon"] {
        set.apply_with(&[config_map(&home, "one", "1")], &[flag])
            .expect(2);
    }
}

#[test]
fn a_deleted_set_is_waited_for_until_it_is_gone() {
    let home = fresh("home");
    let other = fresh("other");
    let set = Set::secret(&home, "web");
    let slow = held(config_map(&other, "slow", "1"));
    let homes = [namespace_object(&home), namespace_object(&other)];
    set.apply(&[homes[0].clone(), homes[1].clone(), slow.clone()]);
    let mut running = set
        .deletion(Program::new())
        .args(["--yes", "-v", "--wait=0"])
        .start();
    running.wait_for_message("example.com/held");
    assert!(set.live_parent().is_some());
    let_go(&slow);
    let run = running.finish().expect(0);
    assert_eq!(cluster().members(&set.id), [], "{}", run.stderr);
    for home in &homes {
        assert_eq!(cluster().live(home), None);
    }
}

#[test]
fn a_deletion_that_is_not_over_in_time_continues_in_the_next_run() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let slow = held(config_map(&home, "slow", "1"));
    let flags = ["-n", &home, "--prune", "--applyset=web"];
    kubectl_apply(&[slow.clone(), secret(&home, "fast")], &flags).expect(0);
    let run = set.delete(&["--take-over-set", "--wait=1s"]).expect(1);
    assert_eq!(
        run.results("deleted"),
        identities([&slow, &secret(&home, "fast")])
    );
    assert_eq!(missed(&run)[0][0], "slow");
    set.assert_records(std::slice::from_ref(&slow));
    let_go(&slow);
    eventually("the object is gone", || {
        cluster().live(&slow).is_none().then_some(())
    });
    set.delete(&["--take-over-set", "--wait"]).expect(0);
    assert_eq!(set.live_parent(), None);
}

#[test]
fn what_is_said_of_an_interrupted_wait_is_true() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let one = held(config_map(&home, "one", "1"));
    set.apply(std::slice::from_ref(&one));
    let mut running = set
        .deletion(Program::new())
        .args(["--yes", "--wait", "-v"])
        .start();
    running.wait_for_message("waiting for");
    running.interrupt();
    let run = running.finish().expect(130);
    assert!(!run.stderr.contains("everything was written"), "{}", run.stderr);
    assert!(
        run.stderr.contains("the set's parent still exists"),
        "{}",
        run.stderr
    );
    assert!(set.live_parent().is_some());
    let_go(&one);

    // The parent goes last, and may be held as well.
    cluster().patch(
        &set.parent,
        &json!({"metadata": {"finalizers": ["example.com/held"]}}),
    );
    let mut running = set
        .deletion(Program::new())
        .args(["--yes", "--wait", "-v"])
        .start();
    running.wait_for_message("waiting for 1 object");
    running.interrupt();
    let run = running.finish().expect(130);
    assert!(run.stderr.contains("everything was deleted"), "{}", run.stderr);
    let_go(&set.parent);
}
