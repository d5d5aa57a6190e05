//! Random and broken bytes for everything that reads what others wrote: nothing panics,
//! nothing is read that is not there, no message carries control characters.
//!
//! `HOSTILE_SEED` sets the seed, `HOSTILE_CASES` how many cases each test tries.

#![expect(clippy::disallowed_types, reason = "the server of the test is a closure")]

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use http::{Request, Response};
use kube::client::Body;
use kubectl_applyset::internals::{
    ADDITIONAL_NAMESPACES_ANNOTATION, ApiServer, ApplySetId, GROUP_KINDS_ANNOTATION,
    GROUP_RESOURCES_ANNOTATION, GroupKind, ID_LABEL, Pairs, ParentIdentity, Reading, Record, RecordedKinds,
    Recursion, Resource, Scope, Source, TOOLING_ANNOTATION, Tooling, Verdict, annotations, compare,
    fetch_discovery, labels, read_labels_and_annotations, read_parents, read_with_standard_input,
};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::support::Random;

fn number(name: &str, default: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.map_or(default, |text| text.parse().expect("a number"))
}

/// Runs so many cases, and reports which one failed.
fn cases(default: u64, mut case: impl FnMut(&mut Random)) {
    let seed = number("HOSTILE_SEED", 1);
    for number in 0..number("HOSTILE_CASES", default) {
        let mut random = Random::new(seed, number);
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| case(&mut random)));
        assert!(outcome.is_ok(), "HOSTILE_SEED={seed}, case {number}");
    }
}

/// Broken in a few places: bytes changed, left out, doubled and put in.
fn broken(random: &mut Random, bytes: &[u8]) -> Vec<u8> {
    const INSERTS: [&[u8]; 16] = [
        b"\0",
        b"\xff",
        b"\xc3",
        b"\t",
        b"\n",
        b"\r",
        b"&a ",
        b"*a ",
        b"<<: ",
        b"? ",
        b"---\n",
        b"!!binary ",
        b"{",
        b"]",
        b"\"",
        b"\xe2\x80\xa8",
    ];
    let mut bytes = bytes.to_vec();
    for _ in 0..=random.below(6) {
        let place = random.below(bytes.len() + 1);
        let end = bytes.len().min(place + random.below(20));
        match random.below(4) {
            0 => drop(bytes.drain(place..end)),
            1 => {
                let copy = bytes[place..end].to_vec();
                bytes.splice(place..place, copy);
            }
            2 => {
                let insert = *random.pick(&INSERTS);
                bytes.splice(place..place, insert.iter().copied());
            }
            _ => {
                if let Some(byte) = bytes.get_mut(place) {
                    *byte = u8::try_from(random.below(256)).expect("a byte");
                }
            }
        }
    }
    bytes
}

/// Bytes of no meaning, or with the signs that mean something in YAML and JSON.
fn noise(random: &mut Random) -> Vec<u8> {
    const SIGNS: &[u8] = b"{}[]:,-?&*!|>'\"%@`#\\ \n\t0aA~.=<";
    let only_signs = random.percent(70);
    (0..random.below(200))
        .map(|_| {
            if only_signs {
                *random.pick(SIGNS)
            } else {
                u8::try_from(random.below(256)).expect("a byte")
            }
        })
        .collect()
}

fn read_manifests(bytes: &[u8]) {
    let read = read_with_standard_input(&[Source::StandardInput], Recursion::Flat, bytes);
    match read {
        Ok(manifests) => {
            for manifest in manifests {
                assert!(!manifest.name.is_empty());
                assert!(manifest.object.value().is_object());
                assert!(!manifest.name.contains(char::is_control));
            }
        }
        Err(errors) => {
            assert!(!errors.0.is_empty());
            for error in &errors.0 {
                let reported = format!("{error} {}", error.problem.hint());
                let raw = reported
                    .chars()
                    .find(|character| character.is_control() && *character != '\n');
                assert_eq!(raw, None, "{reported:?}");
            }
        }
    }
}

#[test]
fn manifests() {
    let directories = ["yaml/corpus", "testdata/objects"];
    let directories = directories.map(|path| Path::new(env!("CARGO_MANIFEST_DIR")).join(path));
    let files = directories.map(|path| std::fs::read_dir(path).expect("a corpus"));
    let mut paths: Vec<_> = files
        .into_iter()
        .flatten()
        .map(|entry| entry.expect("a file").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .collect();
    paths.sort();
    assert!(paths.len() > 100);
    let texts: Vec<Vec<u8>> = paths
        .iter()
        .map(|path| std::fs::read(path).expect("a file"))
        .collect();
    cases(3000, |random| {
        let bytes = if random.percent(30) {
            noise(random)
        } else {
            let text = random.pick(&texts).clone();
            broken(random, &text)
        };
        read_manifests(&bytes);
    });
}

fn parent() -> ParentIdentity {
    ParentIdentity {
        group_kind: GroupKind::new("", "Secret"),
        namespace: Some("home".to_owned()),
        name: "web".to_owned(),
    }
}

#[test]
fn parents() {
    let parent = parent();
    let id = ApplySetId::for_parent(&parent);
    let record = Record {
        group_kinds: [
            GroupKind::new("", "ConfigMap"),
            GroupKind::new("apps", "Deployment"),
        ]
        .into(),
        additional_namespaces: ["a".to_owned(), "b".to_owned()].into(),
    };
    let pairs = |value: Value| -> Pairs { serde_json::from_value(value).expect("pairs") };
    let good = pairs(annotations(&Tooling::this_program(), &record));
    assert!(matches!(
        read_labels_and_annotations(&parent, &pairs(labels(&id)), &good),
        Reading::Parent(_)
    ));
    cases(20_000, |random| {
        let mut labels = pairs(labels(&id));
        let mut annotations = good.clone();
        let text = |random: &mut Random, from: &str| {
            let bytes = if random.percent(30) {
                noise(random)
            } else {
                broken(random, from.as_bytes())
            };
            String::from_utf8_lossy(&bytes).into_owned()
        };
        for _ in 0..=random.below(3) {
            let key = *random.pick(&[
                TOOLING_ANNOTATION,
                GROUP_KINDS_ANNOTATION,
                GROUP_RESOURCES_ANNOTATION,
                ADDITIONAL_NAMESPACES_ANNOTATION,
            ]);
            if random.percent(20) {
                annotations.remove(key);
            } else {
                let value = annotations.get(key).cloned().unwrap_or_default();
                annotations.insert(key.to_owned(), text(random, &value));
            }
        }
        if random.percent(20) {
            labels.insert(ID_LABEL.to_owned(), text(random, id.as_str()));
        }
        match read_labels_and_annotations(&parent, &labels, &annotations) {
            Reading::Parent(found) => {
                assert_eq!(labels[ID_LABEL], id.as_str());
                // What was read can be asked of the server.
                for namespace in &found.additional_namespaces {
                    assert!(
                        namespace
                            .chars()
                            .all(|character| character.is_ascii_alphanumeric() || character == '-'),
                        "{namespace:?}"
                    );
                }
                if let RecordedKinds::GroupKinds(kinds) = &found.kinds {
                    for kind in kinds {
                        let name = kind.to_string();
                        assert!(
                            !name.contains(['/', ' ', '?', '%', ',']) && !name.contains(char::is_control),
                            "{name:?}"
                        );
                    }
                }
            }
            Reading::Faulty(faults) => {
                for fault in faults {
                    let reported = fault.to_string();
                    assert!(!reported.contains(char::is_control), "{reported:?}");
                }
            }
            Reading::NoRecord | Reading::Unfinished(_) | Reading::Unrecorded(_) => {}
        }
    });
}

/// A JSON value with something replaced, left out or put in.
fn twisted(random: &mut Random, value: &Value) -> Value {
    match value {
        _ if random.percent(4) => random
            .pick(&[
                json!(null),
                json!({}),
                json!([]),
                json!(""),
                json!(-1),
                json!({"f:x": {}}),
                json!({".": {}}),
                json!("f:"),
            ])
            .clone(),
        Value::Object(fields) => fields
            .iter()
            .filter_map(|(key, value)| {
                if random.percent(3) {
                    return None;
                }
                let key = if random.percent(4) {
                    random
                        .pick(&[
                            "f:",
                            "k:",
                            "v:",
                            "i:",
                            "k:{",
                            "k:{\"name\":}",
                            "v:{",
                            "i:-1",
                            ".",
                            "",
                            "f:a\u{0}b",
                        ])
                        .to_string()
                } else {
                    key.clone()
                };
                Some((key, twisted(random, value)))
            })
            .collect(),
        Value::Array(items) => items.iter().map(|item| twisted(random, item)).collect(),
        scalar => scalar.clone(),
    }
}

#[test]
fn managed_fields() {
    let desired = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "labels": {"app": "web"}},
        "spec": {"replicas": 1, "template": {"spec": {"containers": [
            {"name": "web", "image": "a", "ports": [{"containerPort": 80}], "args": ["x", "y"]},
        ]}}},
    });
    let fields = json!({
        "f:metadata": {"f:labels": {"f:app": {}}},
        "f:spec": {"f:replicas": {}, "f:template": {"f:spec": {"f:containers": {
            "k:{\"name\":\"web\"}": {".": {}, "f:name": {}, "f:image": {}, "f:args": {},
                "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}}},
        }}}},
    });
    let mut live = desired.clone();
    live["spec"]["template"]["spec"]["containers"][0]["ports"][0]["protocol"] = json!("TCP");
    live["metadata"]["managedFields"] = json!([
        {"manager": "us", "operation": "Apply", "apiVersion": "apps/v1", "fieldsType": "FieldsV1", "fieldsV1": fields},
    ]);
    assert_eq!(compare(&desired, &live, "us", None), Verdict::Unchanged);
    let mut unchanged = 0;
    cases(20_000, |random| {
        let twisted_live = twisted(random, &live);
        let verdict = compare(&desired, &twisted_live, "us", None);
        if verdict == Verdict::Unchanged {
            unchanged += 1;
            // What we own and the manifest says is as it was.
            assert_eq!(twisted_live["spec"]["replicas"], 1);
            assert_eq!(twisted_live["metadata"]["labels"]["app"], "web");
            assert_eq!(
                twisted_live["spec"]["template"]["spec"]["containers"][0]["image"],
                "a"
            );
        }
        compare(&twisted(random, &desired), &live, "us", None);
    });
    assert!(unchanged > 0, "nothing was left as it was");
}

#[test]
fn discovery_documents() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/discovery");
    let texts = ["aggregated-api.json", "aggregated-apis.json"];
    let texts = texts.map(|name| std::fs::read(directory.join(name)).expect("a document"));
    let values = texts
        .each_ref()
        .map(|text| serde_json::from_slice::<Value>(text).expect("JSON"));
    let mut bodies = Vec::new();
    cases(400, |random| {
        bodies.push(if random.percent(50) {
            let text = random.pick(&texts).clone();
            broken(random, &text)
        } else {
            let value = random.pick(&values).clone();
            twisted(random, &value).to_string().into_bytes()
        });
    });
    let runtime = runtime();
    // All at once, for what cannot be read is asked for once more, a moment later.
    runtime.block_on(join_all(bodies.into_iter().map(async |body| {
        let reported = body.clone();
        let server = server(move |_| body.clone());
        match fetch_discovery(&server).await {
            Ok(found) => {
                for resource in found.listable() {
                    let path = resource.path(Some("a"), Some("b"));
                    let is_path = path.parse::<http::Uri>().is_ok();
                    assert!(is_path, "{path:?} of {}", String::from_utf8_lossy(&reported));
                }
            }
            Err(error) => drop(error.to_string()),
        }
    })));
}

#[test]
fn pages_without_end() {
    let runtime = runtime();
    let config_maps = Arc::new(Resource::with_regular_names(
        "",
        "v1",
        "ConfigMap",
        Scope::Namespaced,
    ));
    for is_the_same in [true, false] {
        let answer = move |number| {
            let token = if is_the_same { 1 } else { number };
            json!({"kind": "ConfigMapList", "metadata": {"continue": format!("page-{token}")}, "items": []})
                .to_string()
                .into_bytes()
        };
        let kinds = std::slice::from_ref(&config_maps);
        runtime.block_on(async {
            let server = server(answer);
            let (_, error) = read_parents(&server, kinds, Some("home"))
                .await
                .expect_err("a list without an end");
            assert!(error.to_string().contains("never ends"), "{error}");
            assert!(
                server.request_count() <= 1_200,
                "{} requests",
                server.request_count()
            );
        });
    }
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime")
}

/// A server that gives the answers of a function of the number of requests so far.
fn server(answer: impl Fn(usize) -> Vec<u8> + Clone + Send + 'static) -> ApiServer {
    let requests = Arc::new(AtomicUsize::new(0));
    let service = tower::service_fn(move |_: Request<Body>| {
        let body = answer(requests.fetch_add(1, Ordering::Relaxed));
        async move { Ok::<_, Infallible>(Response::new(Body::from(body))) }
    });
    let client = kube::Client::new(service, "default");
    ApiServer::new(client, "https://127.0.0.1:6443", Duration::from_mins(1))
}
