//! Waits against a server that is a function.

#![expect(clippy::disallowed_types, reason = "the server of the test is a closure")]

use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Bytes;
use kube::client::Body;
use serde_json::{Value, json};

use super::*;
use crate::model::applyset::{PART_OF_LABEL, ParentIdentity};
use crate::model::identity::GroupKind;
use crate::model::resource::{Scope, Subresource};

/// The kinds of reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Read {
    List,
    Get,
}

/// Counts the reads of each kind that a server has got.
#[derive(Clone, Default)]
struct Reads(Arc<[AtomicUsize; 2]>);

impl Reads {
    fn count(&self, read: Read) -> usize {
        self.0[read as usize].load(Ordering::SeqCst)
    }

    /// Returns a server. `answer` gets the kind of a read, its namespace, and the number of earlier reads of that kind. If
    /// it returns `None`, it is called again a little later; the answer `null` is never sent.
    fn build_server(
        &self,
        answer: impl Fn(Read, &str, usize) -> Option<Value> + Send + Sync + 'static,
    ) -> ApiServer {
        let reads = self.clone();
        let answer = Arc::new(answer);
        let service = tower::service_fn(move |request: Request<Body>| {
            let path = request.uri().path().to_owned();
            let read = match request.uri().query() {
                Some(query) if query.contains("labelSelector") => Read::List,
                _ => Read::Get,
            };
            let before = reads.0[read as usize].fetch_add(1, Ordering::SeqCst);
            let namespace = path.split('/').skip_while(|part| *part != "namespaces").nth(1);
            let namespace = namespace.unwrap_or_default().to_owned();
            let answer = Arc::clone(&answer);
            async move {
                let body = loop {
                    if let Some(answer) = answer(read, &namespace, before) {
                        if answer.is_null() {
                            std::future::pending::<()>().await;
                        }
                        break Full::new(Bytes::from(answer.to_string()));
                    }
                    tokio::task::yield_now().await;
                };
                Ok::<_, Infallible>(Response::new(body))
            }
        });
        let client = kube::Client::new(service, "default");
        ApiServer::new(client, "https://127.0.0.1:6443", Duration::from_mins(1))
    }
}

fn widgets() -> Arc<Resource> {
    Arc::new(Resource {
        status: Subresource::Listed,
        ..Resource::with_regular_names("example.com", "v1", "Widget", Scope::Namespaced)
    })
}

fn widget(namespace: &str, name: &str, status: &Value) -> Value {
    json!({
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {
            "name": name, "namespace": namespace, "uid": name, "resourceVersion": "1",
            "creationTimestamp": "2020-01-01T00:00:00Z", "labels": {PART_OF_LABEL: id().as_str()},
        },
        "status": status,
    })
}

fn ready(is_ready: bool) -> Value {
    let status = if is_ready { "True" } else { "False" };
    json!({"conditions": [{"type": "Ready", "status": status, "reason": "Any", "message": "any"}]})
}

fn list(items: &[Value]) -> Value {
    json!({"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": items})
}

fn id() -> ApplySetId {
    ApplySetId::for_parent(&ParentIdentity {
        group_kind: GroupKind::new("", "Secret"),
        namespace: Some("a".to_owned()),
        name: "any".to_owned(),
    })
}

fn target(namespace: &str, name: &str) -> Target {
    Target {
        key: ObjectKey {
            group_kind: GroupKind::new("example.com", "Widget"),
            namespace: Some(namespace.to_owned()),
            name: name.to_owned(),
        },
        resource: widgets(),
        uid: None,
        goal: Goal::Ready,
        lookup: Lookup::Label,
    }
}

/// Waits for the targets, and returns the outcome with the last reason of each object that was missed.
async fn wait(server: &ApiServer, targets: Vec<Target>, patience: Patience) -> (Ending, Vec<String>) {
    let mut missed = Vec::new();
    let mut sink = |event: Event| {
        if let Event::Awaited(awaited) = event
            && awaited.wait_status == WaitStatus::Missed
        {
            missed.push(awaited.reason);
        }
    };
    let outcome = wait_with(server, targets, patience, &mut sink).await;
    (outcome, missed)
}

async fn wait_with(
    server: &ApiServer,
    targets: Vec<Target>,
    patience: Patience,
    sink: &mut Sink<'_>,
) -> Ending {
    let id = id();
    let rules = StatusRules::default();
    let waiting = Waiting {
        server,
        id: &id,
        rules: &rules,
        deadline: Deadline::new(patience),
        interrupt: &Interrupt::default(),
        concurrency: 1,
        after_failure: AfterFailure::Stop,
        failures: NonZeroU32::new(5),
        done_before: "",
    };
    waiting.run(targets, sink).await
}

#[tokio::test(start_paused = true)]
async fn a_kind_is_listed_until_its_objects_are_ready() {
    let reads = Reads::default();
    let server = reads.build_server(|_, _, before| Some(list(&[widget("a", "one", &ready(before >= 2))])));
    let (outcome, _) = wait(&server, vec![target("a", "one")], Patience::Unlimited).await;
    assert_eq!(outcome, Ending::Done);
    assert_eq!((reads.count(Read::List), reads.count(Read::Get)), (3, 0));
}

#[tokio::test(start_paused = true)]
async fn an_object_stays_ready_while_one_in_another_namespace_is_not() {
    let reads = Reads::default();
    let server = reads.build_server(|_, namespace, before| {
        // The server is asked for two namespaces in each look.
        let (name, is_ready) = if namespace == "a" {
            ("one", true)
        } else {
            ("two", before >= 4)
        };
        Some(list(&[widget(namespace, name, &ready(is_ready))]))
    });
    let targets = vec![target("a", "one"), target("b", "two")];
    let mut changes = Vec::new();
    let mut sink = |event: Event| {
        if let Event::Awaited(awaited) = event {
            changes.push((awaited.subject.name, awaited.wait_status));
        }
    };
    let patience = Patience::Limited(Duration::from_mins(1));
    assert_eq!(
        wait_with(&server, targets, patience, &mut sink).await,
        Ending::Done
    );
    changes.retain(|(name, status)| name == "one" && *status != WaitStatus::Arrived);
    assert_eq!(changes, []);
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_when_all_are_ready_at_the_same_time() {
    let reads = Reads::default();
    // `one` becomes unready after the first list, while `two`, which is read by its name, is still waited for.
    let server = reads.build_server(|read, namespace, before| {
        Some(match read {
            Read::List => list(&[widget(namespace, "one", &ready(before != 1))]),
            Read::Get => widget(namespace, "two", &ready(before >= 2)),
        })
    });
    let by_name = Target {
        lookup: Lookup::Name,
        ..target("a", "two")
    };
    let mut changes = Vec::new();
    let mut sink = |event: Event| {
        if let Event::Awaited(awaited) = event {
            changes.push((awaited.subject.name, awaited.wait_status));
        }
    };
    let targets = vec![target("a", "one"), by_name];
    let outcome = wait_with(&server, targets, Patience::Unlimited, &mut sink).await;
    assert_eq!(outcome, Ending::Done);
    changes.retain(|(name, _)| name == "one");
    let (arrived, changed) = (WaitStatus::Arrived, WaitStatus::Changed);
    let of_one = [arrived, changed, arrived].map(|status| ("one".to_owned(), status));
    assert_eq!(changes, of_one);
    // Once `two` is ready, both are looked at again, until one look at each is enough.
    assert_eq!((reads.count(Read::List), reads.count(Read::Get)), (4, 5));
}

#[tokio::test(start_paused = true)]
async fn a_list_that_takes_long_is_asked_for_less_often() {
    let lists = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&lists);
    let service = tower::service_fn(move |request: Request<Body>| {
        // Other requests ask for reasons.
        let is_list = request
            .uri()
            .query()
            .is_some_and(|query| query.contains("part-of"));
        let before = counter.fetch_add(usize::from(is_list), Ordering::SeqCst);
        async move {
            if is_list {
                sleep_until(Instant::now() + Duration::from_secs(1)).await;
            }
            let answer = list(&[widget("a", "one", &ready(before >= 2))]);
            Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(answer.to_string()))))
        }
    });
    let client = kube::Client::new(service, "default");
    let server = ApiServer::new(client, "https://127.0.0.1:6443", Duration::from_mins(1));
    let begun = Instant::now();
    let (outcome, _) = wait(&server, vec![target("a", "one")], Patience::Unlimited).await;
    assert_eq!((outcome, lists.load(Ordering::SeqCst)), (Ending::Done, 3));
    // Three lists of a second, and two pauses of ten.
    assert_eq!(begun.elapsed().as_secs(), 23);
}

#[tokio::test]
async fn all_objects_are_looked_at_once_more_at_the_deadline() {
    for (last_read, is_two_ready, expected) in [
        (widget("a", "one", &ready(true)), true, Ending::Done),
        (widget("a", "one", &ready(false)), true, Ending::Incomplete),
        (widget("a", "one", &ready(true)), false, Ending::Incomplete),
    ] {
        let reads = Reads::default();
        let server = reads.build_server(move |_, _, before| {
            // The fourth look is the last one.
            let one = if before < 3 {
                widget("a", "one", &ready(false))
            } else {
                last_read.clone()
            };
            Some(list(&[
                one,
                widget("a", "two", &ready(is_two_ready || before < 3)),
            ]))
        });
        let targets = vec![target("a", "one"), target("a", "two")];
        let patience = Patience::Limited(Duration::from_secs(1));
        let (outcome, missed) = wait(&server, targets, patience).await;
        assert_eq!(outcome, expected);
        assert_eq!(missed.len(), usize::from(expected != Ending::Done));
        assert_eq!(reads.count(Read::List), 4);
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_no_longer_answers_is_not_asked_for_reasons() {
    let reads = Reads::default();
    let server = reads.build_server(|_, _, before| {
        Some(if before < 3 {
            list(&[widget("a", "one", &ready(false))])
        } else {
            Value::Null
        })
    });
    let patience = Patience::Limited(Duration::from_secs(1));
    let (outcome, missed) = wait(&server, vec![target("a", "one")], patience).await;
    assert_eq!((outcome, missed.len()), (Ending::Incomplete, 1));
    assert_eq!((reads.count(Read::List), reads.count(Read::Get)), (4, 0));
}

#[tokio::test]
async fn an_object_without_status_waits_for_the_lists_of_all_namespaces() {
    let reads = Reads::default();
    // The list with an object that has a status comes last.
    let asked = AtomicUsize::new(0);
    let server = reads.build_server(move |read, namespace, _| match (read, namespace) {
        (Read::List, "b") if asked.fetch_add(1, Ordering::SeqCst) < 20 => None,
        (Read::List, "b") => Some(list(&[widget("b", "two", &ready(true))])),
        (Read::List, _) => Some(list(&[widget("a", "one", &Value::Null)])),
        _ => Some(widget("a", "one", &Value::Null)),
    });
    let targets = vec![target("a", "one"), target("b", "two")];
    let patience = Patience::Limited(Duration::from_secs(1));
    let (outcome, missed) = wait(&server, targets, patience).await;
    assert_eq!(outcome, Ending::Incomplete);
    assert_eq!(missed, ["it has no status yet, as others of its kind have"]);
    // Without such an object, the other object is Current: no controller of its kind reports a status.
    let alone = reads.build_server(|_, _, _| Some(list(&[widget("a", "one", &Value::Null)])));
    let (outcome, _) = wait(&alone, vec![target("a", "one")], Patience::Unlimited).await;
    assert_eq!(outcome, Ending::Done);
}

#[tokio::test]
async fn a_failure_leaves_time_for_the_others_if_it_may() {
    let failed =
        json!({"conditions": [{"type": "Stalled", "status": "True", "reason": "Any", "message": "any"}]});
    for (after_failure, expected) in [(AfterFailure::Stop, 2), (AfterFailure::WaitForTheOthers, 1)] {
        let failed = failed.clone();
        let server = Reads::default().build_server(move |_, _, before| {
            Some(list(&[
                widget("a", "one", &failed),
                widget("a", "two", &ready(before >= 2)),
            ]))
        });
        let id = id();
        let waiting = Waiting {
            server: &server,
            id: &id,
            rules: &StatusRules::default(),
            deadline: Deadline::new(Patience::Unlimited),
            interrupt: &Interrupt::default(),
            concurrency: 1,
            after_failure,
            failures: None,
            done_before: "",
        };
        let mut missed = 0;
        let mut sink = |event: Event| {
            if let Event::Awaited(awaited) = event {
                missed += usize::from(awaited.wait_status == WaitStatus::Missed);
            }
        };
        let targets = vec![target("a", "one"), target("a", "two")];
        assert_eq!(waiting.run(targets, &mut sink).await, Ending::Incomplete);
        assert_eq!(missed, expected, "{after_failure:?}");
    }
}

#[tokio::test]
async fn what_was_not_looked_at_when_another_object_fails_is_not_an_error() {
    let reads = Reads::default();
    let failed =
        json!({"conditions": [{"type": "Stalled", "status": "True", "reason": "Any", "message": "any"}]});
    let server = reads.build_server(move |_, namespace, _| {
        Some(if namespace == "a" {
            list(&[widget("a", "one", &failed)])
        } else {
            Value::Null
        })
    });
    let mut ends = Vec::new();
    let mut messages = Vec::new();
    let mut sink = |event: Event| match event {
        Event::Awaited(awaited) => ends.push((awaited.subject.name, awaited.wait_status)),
        Event::Failure(message) => messages.push(message.to_string()),
        _ => {}
    };
    let mut other = target("b", "two");
    other.key.group_kind = GroupKind::new("", "ConfigMap");
    other.resource = Arc::new(Resource::with_regular_names(
        "",
        "v1",
        "ConfigMap",
        Scope::Namespaced,
    ));
    let targets = vec![target("a", "one"), other];
    let outcome = wait_with(&server, targets, Patience::Unlimited, &mut sink).await;
    assert_eq!(outcome, Ending::Incomplete);
    let ends: Vec<_> = ends
        .iter()
        .map(|(name, status)| (name.as_str(), *status))
        .collect();
    assert!(ends.contains(&("one", WaitStatus::Missed)), "{ends:?}");
    assert!(ends.contains(&("two", WaitStatus::Unseen)), "{ends:?}");
    assert!(!ends.contains(&("two", WaitStatus::Missed)), "{ends:?}");
    assert!(
        messages[0].ends_with("1 of 2 objects is not ready, and 1 was not looked at"),
        "{messages:?}"
    );
}

/// A target that has to be gone, and that may have lost its label.
fn going() -> Target {
    Target {
        uid: Some("u".to_owned()),
        goal: Goal::Gone,
        lookup: Lookup::LabelThenName,
        ..target("a", "one")
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_without_the_object_does_not_prove_that_it_is_gone() {
    let reads = Reads::default();
    let server = reads.build_server(|read, _, before| {
        Some(match (read, before) {
            (Read::List, _) => list(&[]),
            (_, 0) => json!({"status": "ok"}),
            (_, 1) => widget("a", "other", &ready(true)),
            // Another object of the same name.
            _ => widget("a", "one", &ready(true)),
        })
    });
    let (outcome, _) = wait(&server, vec![going()], Patience::Unlimited).await;
    assert_eq!(outcome, Ending::Done);
    assert_eq!(reads.count(Read::Get), 3);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_lost_its_label_is_found_in_the_version_that_is_served_now() {
    let lists = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&lists);
    let service = tower::service_fn(move |request: Request<Body>| {
        let is_labeled = request
            .uri()
            .query()
            .is_some_and(|query| query.contains("part-of"));
        let (code, body) = match request.uri().path() {
            path if path.contains("customresourcedefinitions") => {
                let versions = [("v1", false), ("v2", true)];
                let versions = versions.map(|(name, served)| json!({"name": name, "served": served}));
                (200, json!({"spec": {"versions": versions}}))
            }
            path if path.contains("/v1/") => (404, json!({"kind": "Status", "code": 404})),
            _ if is_labeled || counter.fetch_add(1, Ordering::SeqCst) > 0 => (200, list(&[])),
            _ => {
                let mut held = widget("a", "one", &ready(true));
                held["metadata"]["uid"] = json!("u");
                (200, list(&[held]))
            }
        };
        let answer = Response::builder().status(code);
        let answer = answer.body(Full::new(Bytes::from(body.to_string())));
        async move { answer }
    });
    let client = kube::Client::new(service, "default");
    let server = ApiServer::new(client, "https://127.0.0.1:6443", Duration::from_mins(1));
    let (outcome, _) = wait(&server, vec![going()], Patience::Unlimited).await;
    assert_eq!(outcome, Ending::Done);
    assert_eq!(lists.load(Ordering::SeqCst), 2);
}
