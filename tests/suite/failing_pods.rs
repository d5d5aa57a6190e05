//! Pods that do not recover end `--wait`: the tests write what the controllers and the kubelet would.

use serde_json::{Value, json};

use crate::support::{Run, Set, cluster, deployment, named, namespace, with};

/// An object with the controller `owner`, which exists.
fn owned_by(object: Value, owner: &Value) -> Value {
    let live = cluster().live(owner).expect("the owner");
    let reference = json!({
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
        "uid": live["metadata"]["uid"], "controller": true,
    });
    with(object, &json!({"metadata": {"ownerReferences": [reference]}}))
}

/// Creates the `ReplicaSet` of this revision.
fn create_replica_set(home: &str, web: &Value, revision: &str) -> Value {
    let name = format!("web-{revision}");
    let labels = json!({"app": "web", "revision": revision});
    let containers = json!({"containers": [{"name": "app", "image": "app"}]});
    let set = with(
        named("apps/v1", "ReplicaSet", Some(home), &name),
        &json!({
            "metadata": {"annotations": {"deployment.kubernetes.io/revision": revision}, "labels": labels},
            "spec": {
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": containers},
            },
        }),
    );
    cluster().create(&owned_by(set.clone(), web));
    set
}

/// Creates a Pod of the `ReplicaSet` that has crashed six times.
fn create_crashing_pod(home: &str, set: &Value) {
    let template = &set["spec"]["template"];
    let pod = with(
        named(
            "v1",
            "Pod",
            Some(home),
            set["metadata"]["name"].as_str().expect("a name"),
        ),
        template,
    );
    let pod = owned_by(pod, set);
    cluster().create(&pod);
    let terminated = json!({"exitCode": 1, "startedAt": "2999-01-01T00:00:00Z"});
    cluster().crash_pod(&pod, 5, &terminated);
}

fn set_revision(web: &Value, revision: &str) {
    let annotations = json!({"deployment.kubernetes.io/revision": revision});
    cluster().patch(web, &json!({"metadata": {"annotations": annotations}}));
    let live = cluster().live(web).expect("it");
    cluster().patch_status(
        web,
        &json!({"observedGeneration": live["metadata"]["generation"], "replicas": 1}),
    );
}

fn missed(run: &Run) -> (String, String) {
    let waiting = &run.document()["waiting"][0];
    let text = |field: &str| waiting[field].as_str().unwrap_or_default().to_owned();
    (text("status"), text("reason"))
}

#[test]
fn pods_of_the_newest_revision_that_crash_end_the_wait() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let web = deployment(&home, "web", 1);
    let objects = [web.clone()];
    set.apply(&objects);
    create_crashing_pod(&home, &create_replica_set(&home, &web, "1"));

    // The Pod is of the newest revision. Only that can end a wait without a limit.
    set_revision(&web, "1");
    let run = set.apply_with(&objects, &["--wait=0"]).expect(1);
    let (status, reason) = missed(&run);
    assert_eq!(status, "Failed");
    assert!(
        reason.contains("container app: CrashLoopBackOff after 5 restarts: back-off (pod/web-1)"),
        "{reason}"
    );
    let hints = &run.document()["error"]["hints"];
    assert!(
        hints[1]
            .as_str()
            .is_some_and(|hint| hint.contains("--wait-failures=0")),
        "{hints}"
    );
    let told = run.stderr.matches("CrashLoopBackOff").count();
    assert_eq!(told, 1, "{}", run.stderr);
    let run = set.invoke("view", &["--wait=0"]).expect(1);
    assert_eq!(missed(&run).0, "Failed");

    // It may restart more often, or as often as it does.
    for flag in ["--wait-failures=6", "--wait-failures=0"] {
        let run = set.apply_with(&objects, &["--wait=5s", flag]).expect(1);
        assert_eq!(missed(&run).0, "InProgress", "{flag}");
    }

    // It is of an older revision.
    create_replica_set(&home, &web, "2");
    set_revision(&web, "2");
    let run = set.apply_with(&objects, &["--wait=5s"]).expect(1);
    let (status, reason) = missed(&run);
    assert_eq!(status, "InProgress");
    assert!(reason.contains("(pod/web-1 of an older revision)"), "{reason}");
}

#[test]
fn failures_of_pods_are_counted_only_during_a_wait() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects = [deployment(&home, "web", 1)];
    for flags in [
        &["--wait-failures=3"][..],
        &["--wait", "--wait-failures=-1"],
        &["--wait", "--wait-failures=many"],
    ] {
        set.apply_with(&objects, flags).expect(2);
    }
    assert_eq!(cluster().live(&objects[0]), None);
}
