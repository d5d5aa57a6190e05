//! Waits for workloads whose Pods have problems, against a server that is a function.

#![expect(clippy::disallowed_types, reason = "the server of the test is a closure")]

use std::sync::Mutex;

use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Bytes;
use kube::client::Body;
use serde_json::{Value, json};

use super::*;
use crate::model::applyset::ParentIdentity;
use crate::model::identity::GroupKind;
use crate::model::resource::Scope;

/// A Deployment whose controller has written its second revision.
fn deployment(available: u32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "name": "web", "namespace": "a", "uid": "d", "resourceVersion": "1", "generation": 2,
            "annotations": {"deployment.kubernetes.io/revision": "2"},
        },
        "spec": {
            "replicas": 1, "selector": {"matchLabels": {"app": "web"}},
            "template": {"spec": {"containers": [{"name": "app"}]}},
        },
        "status": {
            "observedGeneration": 2, "replicas": 1, "updatedReplicas": 1,
            "readyReplicas": available, "availableReplicas": available,
            "conditions": [
                {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
                {"type": "Available", "status": "True"},
            ],
        },
    })
}

fn replica_set(revision: &str) -> Value {
    json!({"metadata": {
        "name": format!("web-{revision}"), "uid": format!("rs-{revision}"),
        "annotations": {"deployment.kubernetes.io/revision": revision},
        "ownerReferences": [{"uid": "d", "controller": true}],
    }})
}

/// A Pod of this revision with this status.
fn pod(revision: &str, status: &Value) -> Value {
    json!({
        "metadata": {
            "name": format!("web-{revision}-x"), "uid": format!("p-{revision}"),
            "ownerReferences": [{"uid": format!("rs-{revision}"), "controller": true}],
        },
        "status": status,
    })
}

fn cannot_pull() -> Value {
    json!({"containerStatuses": [{"name": "app", "state": {"waiting": {"reason": "ErrImagePull"}}}]})
}

fn crash_loop(restarts: u32) -> Value {
    json!({"containerStatuses": [{
        "name": "app", "restartCount": restarts, "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": {"exitCode": 1, "startedAt": "2999-01-01T00:00:00Z"}},
    }]})
}

fn unschedulable() -> Value {
    json!({"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]})
}

/// What the server has beside the Deployment.
#[derive(Clone, Default)]
struct Stage {
    pods: Vec<Value>,
    /// True if the controller has not seen the latest manifest.
    is_unseen: bool,
    /// How many other Deployments like it there are.
    others: usize,
    /// The number of lists of Pods after which the Deployment is available.
    available_after: Option<usize>,
    /// The second at which the user stops the run. Until then, no list of Pods is answered.
    stopped_at: Option<u64>,
    /// True if the user may not list ReplicaSets.
    hides_replica_sets: bool,
}

/// Waits for the Deployment at most ten minutes. Returns the outcome, the seconds, the lists of Pods, and the events.
async fn wait_on(stage: Stage, failures: u32) -> (Ending, u64, usize, Vec<(WaitStatus, String)>) {
    let lists = Arc::new(Mutex::new(0));
    let counter = Arc::clone(&lists);
    let (others, stopped_at) = (stage.others, stage.stopped_at);
    let service = tower::service_fn(move |request: Request<Body>| {
        let list =
            |items: &[Value]| json!({"kind": "List", "metadata": {"resourceVersion": "1"}, "items": items});
        let path = request.uri().path().to_owned();
        let mut pod_lists = counter.lock().expect("no panic before");
        let is_available = stage.available_after.is_some_and(|after| *pod_lists >= after);
        let mut web = deployment(is_available.into());
        if stage.is_unseen {
            web["status"]["observedGeneration"] = json!(1);
        }
        let (code, body) = match path.rsplit('/').next().unwrap_or_default() {
            "log" => (200, json!("boom")),
            "pods" => {
                *pod_lists += 1;
                (200, list(&stage.pods))
            }
            "replicasets" if stage.hides_replica_sets => (403, json!({"kind": "Status", "code": 403})),
            "replicasets" => (200, list(&[replica_set("1"), replica_set("2")])),
            "events" => (200, list(&[])),
            name if name.starts_with("web") => (200, web),
            _ => (200, list(&[web])),
        };
        let answer = Response::builder()
            .status(code)
            .body(Full::new(Bytes::from(body.to_string())));
        let hangs = stage.stopped_at.is_some() && path.ends_with("/pods");
        async move {
            if hangs {
                std::future::pending::<()>().await;
            }
            answer
        }
    });
    let client = kube::Client::new(service, "default");
    let interrupt = Interrupt::default();
    if let Some(second) = stopped_at {
        let interrupt = interrupt.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(second)).await;
            interrupt.request_more_urgently(|_| {});
        });
    }
    let server = ApiServer::new(client, "https://127.0.0.1:6443", Duration::from_mins(1));
    let waiting = Waiting {
        server: &server,
        id: &ApplySetId::for_parent(&ParentIdentity {
            group_kind: GroupKind::new("", "Secret"),
            namespace: Some("a".to_owned()),
            name: "any".to_owned(),
        }),
        rules: &StatusRules::default(),
        deadline: Deadline::new(Patience::Limited(Duration::from_mins(10))),
        interrupt: &interrupt,
        concurrency: 1,
        after_failure: AfterFailure::Stop,
        failures: NonZeroU32::new(failures),
        done_before: "",
    };
    let target = |name: String| Target {
        key: ObjectKey {
            group_kind: GroupKind::new("apps", "Deployment"),
            namespace: Some("a".to_owned()),
            name,
        },
        resource: Arc::new(Resource::with_regular_names(
            "apps",
            "v1",
            "Deployment",
            Scope::Namespaced,
        )),
        uid: None,
        goal: Goal::Ready,
        lookup: Lookup::Label,
    };
    let mut events = Vec::new();
    let mut sink = |event: Event| {
        if let Event::Awaited(awaited) = event {
            events.push((
                awaited.wait_status,
                format!("{}: {}", awaited.status, awaited.reason),
            ));
        }
    };
    let began = Instant::now();
    let names = std::iter::once("web".to_owned()).chain((0..others).map(|number| format!("web-{number}")));
    let targets = names.map(target).collect();
    let outcome = waiting.run(targets, &mut sink).await;
    let lists = *lists.lock().expect("no panic before");
    (outcome, began.elapsed().as_secs(), lists, events)
}

#[tokio::test(start_paused = true)]
async fn pods_that_do_not_recover_end_the_wait() {
    let young = |mut pod: Value| {
        pod["metadata"]["creationTimestamp"] = json!("2999-01-01T00:00:00Z");
        pod
    };
    let terminating = |mut pod: Value| {
        pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        pod
    };
    let old = |mut pod: Value| {
        pod["metadata"]["creationTimestamp"] = json!("2020-01-01T00:00:00Z");
        pod
    };
    let stage = |pods: Vec<Value>| Stage {
        pods,
        ..Stage::default()
    };
    // The stage, `--wait-failures`, and the second at which the wait ends because the Deployment has failed.
    let table = [
        (stage(vec![pod("2", &crash_loop(5))]), 5, Some(3)),
        (stage(vec![pod("2", &crash_loop(4))]), 5, None),
        (stage(vec![pod("2", &crash_loop(4))]), 4, Some(3)),
        (stage(vec![pod("2", &crash_loop(500))]), 0, None),
        // Pods of an older revision, and Pods that are terminating.
        (stage(vec![pod("1", &crash_loop(500))]), 5, None),
        (stage(vec![terminating(pod("2", &crash_loop(500)))]), 5, None),
        (
            stage(vec![pod("1", &crash_loop(9)), pod("2", &crash_loop(9))]),
            5,
            Some(3),
        ),
        (
            Stage {
                hides_replica_sets: true,
                ..stage(vec![pod("2", &crash_loop(9))])
            },
            5,
            None,
        ),
        (stage(vec![young(pod("2", &cannot_pull()))]), 5, Some(75)),
        (stage(vec![old(pod("2", &cannot_pull()))]), 5, Some(315)),
        (stage(vec![young(pod("2", &cannot_pull()))]), 0, None),
        (stage(vec![old(pod("2", &unschedulable()))]), 5, None),
    ];
    for (stage, failures, expected) in table {
        let pods = json!(stage.pods);
        let (outcome, seconds, lists, events) = wait_on(stage, failures).await;
        assert_eq!(outcome, Ending::Incomplete);
        assert_eq!(seconds, expected.unwrap_or(600), "{failures} {pods}");
        let missed = events.last().expect("an event");
        assert_eq!(missed.0, WaitStatus::Missed);
        let status = if expected.is_some() {
            "Failed: "
        } else {
            "InProgress: "
        };
        assert!(missed.1.starts_with(status), "{missed:?} {pods}");
        // What has ended the wait is said once, and not looked up again.
        let said = events.iter().filter(|(_, reason)| reason.contains("pod/web-2-x"));
        if expected == Some(3) {
            assert_eq!(said.count(), 1, "{events:?}");
        }
        // One list at each look for reasons, and one when the time is over.
        let at_end = u64::from(expected.is_none());
        assert_eq!(lists as u64, 1 + at_end + seconds.min(599) / 15, "{pods}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_deployment_that_recovers_has_not_failed() {
    let stage = Stage {
        pods: vec![pod("2", &cannot_pull())],
        available_after: Some(2),
        ..Stage::default()
    };
    let (outcome, ..) = wait_on(stage, 5).await;
    assert_eq!(outcome, Ending::Done);
}

#[tokio::test(start_paused = true)]
async fn a_new_reason_is_reported_once_with_the_log() {
    let stage = Stage {
        pods: vec![pod("2", &crash_loop(1))],
        ..Stage::default()
    };
    let (_, _, _, events) = wait_on(stage, 5).await;
    let with = |status: WaitStatus| {
        let events = events.iter().filter(move |event| event.0 == status);
        events.map(|event| event.1.as_str()).collect::<Vec<_>>()
    };
    let new = with(WaitStatus::NewReason);
    assert_eq!(
        new,
        [
            "InProgress: container app: CrashLoopBackOff after 1 restart (pod/web-2-x); log of container app: \"boom\"; \
             0 of 1 replicas are available"
        ]
    );
    // The reason is not repeated in the lines that say that the wait continues.
    let slow = with(WaitStatus::Slow);
    assert!(
        !slow.is_empty()
            && slow
                .iter()
                .all(|line| *line == "InProgress: 0 of 1 replicas are available")
    );
}

#[tokio::test(start_paused = true)]
async fn a_pod_of_the_newest_revision_is_named_first() {
    let reasons = async |pods: Vec<Value>| {
        let stage = Stage {
            pods,
            ..Stage::default()
        };
        let (_, _, _, events) = wait_on(stage, 0).await;
        let new = events
            .into_iter()
            .filter(|event| event.0 == WaitStatus::NewReason);
        new.map(|event| event.1).collect::<Vec<_>>()
    };
    let table = [
        (vec![("1", 9), ("2", 1)], "after 1 restart (pod/web-2-x);"),
        (vec![("2", 1), ("1", 9)], "after 1 restart (pod/web-2-x);"),
        (
            vec![("1", 9)],
            "after 9 restarts (pod/web-1-x of an older revision);",
        ),
    ];
    for (pods, expected) in table {
        let pods = pods
            .into_iter()
            .map(|(revision, restarts)| pod(revision, &crash_loop(restarts)));
        let new = reasons(pods.collect()).await;
        assert_eq!(new.len(), 1, "{new:?}");
        assert!(new[0].contains(expected), "{new:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn no_pod_is_named_before_the_controller_has_seen_the_manifest() {
    let stage = Stage {
        pods: vec![pod("1", &crash_loop(9))],
        is_unseen: true,
        ..Stage::default()
    };
    let (_, _, lists, events) = wait_on(stage, 5).await;
    assert_eq!(lists, 0);
    assert!(events.iter().all(|event| !event.1.contains("pod/")), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn one_look_is_at_a_few_objects() {
    let stage = Stage {
        others: 29,
        ..Stage::default()
    };
    let (_, seconds, lists, _) = wait_on(stage, 5).await;
    assert_eq!(seconds, 600);
    assert_eq!(lists, 5 * (2 + 599 / 15));
}

#[tokio::test(start_paused = true)]
async fn a_user_who_stops_the_run_does_not_wait_for_reasons() {
    let stage = Stage {
        stopped_at: Some(4),
        ..Stage::default()
    };
    let (outcome, seconds, ..) = wait_on(stage, 5).await;
    assert_eq!((outcome, seconds), (Ending::Interrupted, 4));
}
