#![expect(clippy::disallowed_types, reason = "the server of the test is a closure")]

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Request, Response};
use kube::client::Body;
use serde_json::json;

use super::*;
use crate::model::resource::Scope;

#[test]
fn pages_are_as_large_as_memory_allows() {
    const MIB: usize = 1 << 20;
    for (limit, bytes, items, expected) in [
        (500, 0, 0, 1000),
        (500, MIB, 500, 1000),
        (1000, MIB, 1000, 2000),
        (2000, MIB, 2000, 2000),
        (500, 8 * MIB, 500, 500),
        (500, 16 * MIB, 500, 250),
        (500, 500 * MIB, 500, 8),
        // One object that is larger than a page should be.
        (8, 20 * MIB, 1, 1),
        // Large objects may come again.
        (8, 1000, 8, 16),
        (400, 1000, 400, 800),
    ] {
        assert_eq!(
            limit_for_next_page(limit, bytes, items, LATER_PAGES),
            expected,
            "{limit} {bytes} {items}"
        );
    }
}

/// The value of a parameter in a query.
fn value(request: &Request<Body>, name: &str) -> Option<String> {
    let query = request.uri().query().unwrap_or_default();
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs
        .find(|(key, _)| *key == name)
        .map(|(_, value)| value.to_owned())
}

fn limit(request: &Request<Body>) -> usize {
    let limit = value(request, "limit").and_then(|limit| limit.parse().ok());
    limit.unwrap_or_default()
}

fn body(objects: usize, padding: usize, next: &str) -> Response<Body> {
    let item = json!({"metadata": {"name": "x", "annotations": {"x": "x".repeat(padding)}}});
    let body = json!({"items": vec![item; objects], "metadata": {"continue": next}}).to_string();
    Response::new(Body::from(body.into_bytes()))
}

/// Lists everything, and returns the number of objects.
async fn count(client: kube::Client) -> usize {
    let server = ApiServer::new(client, "https://127.0.0.1:6443", Duration::from_mins(1));
    let resource = Resource::with_regular_names("", "v1", "ConfigMap", Scope::Namespaced);
    let selector = Selector::new("", WHOLE_OBJECTS);
    let found = list(&server, &resource, None, &selector, |_| Some(())).await;
    found.expect("a list").len()
}

#[tokio::test(start_paused = true)]
async fn a_page_that_takes_too_long_is_read_in_smaller_ones() {
    let service = tower::service_fn(move |request: Request<Body>| async move {
        if limit(&request) > 500 {
            std::future::pending::<()>().await;
        }
        let next = match value(&request, "continue").as_deref() {
            None => "1",
            Some("1") => "2",
            Some(_) => "",
        };
        Ok::<_, Infallible>(body(limit(&request), 1, next))
    });
    let found = count(kube::Client::new(service, "default")).await;
    // No later page is as large again.
    assert_eq!(found, 500 + 250 + 250);
}

#[test]
fn a_page_is_too_large_if_fewer_objects_may_fit() {
    let long = ApiErrorKind::TooLarge(1);
    let slow = ApiErrorKind::Timeout {
        address: "https://one".to_owned(),
        limit: Duration::from_mins(1),
    };
    for (error, limit, expected) in [
        (&long, 2000, true),
        (&long, 2, true),
        (&long, 1, false),
        (&slow, 1000, true),
        (&slow, 500, false),
    ] {
        assert_eq!(may_fit_smaller_page(error, limit), expected, "{error} {limit}");
    }
    assert!(!may_fit_smaller_page(
        &ApiErrorKind::Unreadable(String::new()),
        2000
    ));
}

#[tokio::test]
async fn pages_shrink_after_a_large_one() {
    let limits: Arc<Mutex<Vec<usize>>> = Arc::default();
    let asked = Arc::clone(&limits);
    // Three pages; the items of the first take 64 KiB each.
    let service = tower::service_fn(move |request: Request<Body>| {
        let limit = limit(&request);
        asked.lock().expect("no panic").push(limit);
        let (padding, next) = match value(&request, "continue").as_deref() {
            None => (64 << 10, "1"),
            Some("1") => (1, "2"),
            Some(_) => (1, ""),
        };
        let answer = body(limit, padding, next);
        async move { Ok::<_, Infallible>(answer) }
    });
    let found = count(kube::Client::new(service, "default")).await;
    let limits = limits.lock().expect("no panic").clone();
    assert_eq!((limits.len(), limits[0]), (3, 500));
    assert!(limits[1] < 130 && limits[2] == limits[1] * 2, "{limits:?}");
    assert_eq!(found, limits.iter().sum::<usize>());
}

fn page(body: &str) -> Result<(Vec<i64>, Option<String>), String> {
    let mut found = Vec::new();
    parse_page(body.as_bytes(), &mut found, Value::as_i64)
        .map(|metadata| (found, metadata.continue_token))
        .map_err(|error| error.to_string())
}

#[test]
fn items_have_to_be_what_was_asked_for() {
    let resource = crate::plan::fixtures::resource("ConfigMap", Scope::Namespaced);
    let item_of = |resource: &Resource, more: Value| {
        let mut metadata = json!({"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "1"});
        if let (Some(metadata), Value::Object(more)) = (metadata.as_object_mut(), more) {
            metadata.extend(more);
        }
        find_fault(&json!({"metadata": metadata}), resource, Some("n"))
    };
    let item = |more: Value| item_of(&resource, more);
    assert_eq!(item(json!({})), None);
    let undeletable = Resource::with_regular_names("metrics.k8s.io", "v1", "PodMetrics", Scope::Namespaced);
    for lacking in ["uid", "resourceVersion"] {
        let without = |value: Value| json!({(lacking): value});
        for value in [json!(null), json!("")] {
            let fault = item(without(value.clone()));
            assert_eq!(fault, Some("has an item that lacks a UID or a resourceVersion"));
            assert_eq!(item_of(&undeletable, without(value)), None);
        }
    }
    assert_eq!(item(json!({"name": ""})), Some("has an item without a name"));
    assert_eq!(
        item(json!({"namespace": "m"})),
        Some("has an item of another namespace")
    );
    assert_eq!(
        item_of(&undeletable, json!({"uid": 1})),
        Some("has an item whose metadata cannot be read")
    );
    for (value, fault) in [
        (json!(null), None),
        (json!("2026-01-01T00:00:00Z"), None),
        (json!(1), Some("has an item whose metadata cannot be read")),
    ] {
        assert_eq!(item(json!({"deletionTimestamp": value})), fault);
    }
    for field in ["labels", "annotations"] {
        assert_eq!(item(json!({(field): null})), None);
        for pairs in [json!([]), json!("x"), json!({"a": 1})] {
            let fault = item(json!({(field): pairs}));
            assert_eq!(
                fault,
                Some("has an item whose labels or annotations cannot be read")
            );
        }
    }
    for owners in [json!({}), json!("x"), json!([{"name": "owner"}])] {
        assert_eq!(
            item(json!({"ownerReferences": owners})),
            Some("has an item whose owner references cannot be read")
        );
    }
}

#[test]
fn a_page_is_a_list_to_its_end_or_nothing() {
    let token = Some("next".to_owned());
    for (body, expected) in [
        (r#"{"items":[1,"left out",2]}"#, (vec![1, 2], None)),
        (r#"{"items":null,"metadata":{}}"#, (vec![], None)),
        (
            r#"{"kind":"L","items":[3],"metadata":{"continue":"next","x":[]}}"#,
            (vec![3], token),
        ),
    ] {
        assert_eq!(page(body), Ok(expected), "{body}");
    }
    for body in [
        "",
        "null",
        "[]",
        "{}",
        r#"{"kind":"Status"}"#,
        r#"{"items":[1"#,
        r#"{"items":[1]} x"#,
        r#"{"items":{}}"#,
    ] {
        assert!(page(body).is_err(), "{body}");
    }
}
