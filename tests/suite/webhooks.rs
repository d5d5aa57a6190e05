//! Admission webhooks that the server cannot call yet. The tests play the webhooks.

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use controlplane::ControlPlane;
use http::Method;
use serde_json::{Value, json};

use super::depends_on::sent;
use crate::support::{
    Answer, Files, Program, Proxy, Running, Set, Web, cluster, config_map, custom_resource, definition,
    deployment, eventually, fresh, named, namespace, objects_file, service, unused_address, with,
};

/// The label of objects that the webhooks of these tests judge.
const JUDGED: &str = "judged";

/// A webhook that judges labeled objects of these resources in one namespace.
pub(super) fn webhook(kind: &str, namespace: &str, groups: &str, resources: &str, client: &Value) -> Value {
    let name = fresh("webhook");
    with(
        named("admissionregistration.k8s.io/v1", kind, None, &name),
        &json!({"webhooks": [{
            "name": format!("{name}.example.com"),
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "failurePolicy": "Fail",
            "timeoutSeconds": 1,
            "clientConfig": client,
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
            "objectSelector": {"matchLabels": {JUDGED: "yes"}},
            "rules": [{
                "apiGroups": [groups], "apiVersions": ["v1"], "resources": [resources],
                "operations": ["CREATE", "UPDATE"],
            }],
        }]}),
    )
}

/// A webhook for ConfigMaps at an address of this machine.
pub(super) fn at(namespace: &str, address: SocketAddr) -> Value {
    webhook(
        "ValidatingWebhookConfiguration",
        namespace,
        "",
        "configmaps",
        &client_of(address),
    )
}

pub(super) fn client_of(address: SocketAddr) -> Value {
    let authority = fs::read(ControlPlane::shared().certificate_authority()).expect("an authority");
    json!({"url": format!("https://{address}/validate"), "caBundle": STANDARD.encode(authority)})
}

pub(super) fn judged(object: Value) -> Value {
    with(object, &json!({"metadata": {"labels": {JUDGED: "yes"}}}))
}

/// Registers the webhook, and returns once the server asks it.
pub(super) fn register(webhook: &Value, judged: &Value) {
    cluster().create(webhook);
    let name = webhook["webhooks"][0]["name"].as_str().expect("a name");
    eventually("the server asks the webhook", || {
        let message = cluster().dry_run_create(judged)?;
        message.contains(name).then_some(())
    });
}

/// Starts an apply, and returns once it waits for the webhook.
pub(super) fn start(set: &Set, files: &Files, flags: &[&str]) -> Running {
    let mut running = set
        .command(Program::new(), files)
        .args(["-o", "json"])
        .args(flags)
        .start();
    running.wait_for_message("note: waiting for webhook");
    running
}

#[test]
fn objects_wait_for_a_webhook_that_starts_and_the_others_do_not() {
    let shop = namespace("shop");
    let set = Set::secret(&shop, "web");
    let address = unused_address();
    let objects = [
        judged(config_map(&shop, "a", "1")),
        judged(config_map(&shop, "b", "1")),
        config_map(&shop, "c", "1"),
        service(&shop, "web", 80),
    ];
    let webhook = at(&shop, address);
    register(&webhook, &objects[0]);
    let files = Files::new().with("objects.yaml", &objects_file(&objects));
    let running = start(&set, &files, &["--timeout=2m"]);
    eventually("the other object of the wave", || cluster().live(&objects[2]));
    assert_eq!(cluster().live(&objects[0]), None);
    let web = Web::encrypted_at(address, |_, _| Answer::allowed());
    let run = running.finish().expect(0);
    assert_eq!(run.results("created").len(), 4);
    assert_eq!(
        run.stderr.matches("waiting for webhook").count(),
        1,
        "{}",
        run.stderr
    );
    assert!(run.stderr.contains("connection refused"), "{}", run.stderr);
    assert_eq!(web.asked().len(), 2);
    set.assert_holds(&objects);
    cluster().delete(&webhook);
}

#[test]
fn later_steps_do_not_wait_for_a_webhook_that_one_of_them_starts() {
    let shop = namespace("shop");
    let set = Set::secret(&shop, "web");
    let address = unused_address();
    let depends_on =
        json!({"config.kubernetes.io/depends-on": format!("/namespaces/{shop}/ConfigMap/settings")});
    let objects = [
        judged(config_map(&shop, "settings", "1")),
        deployment(&shop, "webhook", 0),
        with(
            config_map(&shop, "dependent", "1"),
            &json!({"metadata": {"annotations": depends_on}}),
        ),
    ];
    let webhook = at(&shop, address);
    register(&webhook, &objects[0]);
    let files = Files::new().with("objects.yaml", &objects_file(&objects));
    let running = start(&set, &files, &["--timeout=2m"]);
    eventually("the Deployment of the webhook", || cluster().live(&objects[1]));
    assert_eq!(cluster().live(&objects[0]), None);
    assert_eq!(cluster().live(&objects[2]), None);
    let _web = Web::encrypted_at(address, |_, _| Answer::allowed());
    let run = running.finish().expect(0);
    assert_eq!(run.results("created").len(), 3);
    set.assert_holds(&objects);
    cluster().delete(&webhook);
}

#[test]
fn certificates_are_applied_in_one_run_with_the_webhook_that_judges_them() {
    let shop = namespace("shop");
    let group = format!("{}.example.com", fresh("issuer"));
    let address = unused_address();
    let client = client_of(address);
    let mutating = webhook("MutatingWebhookConfiguration", &shop, &group, "widgets", &client);
    let validating = webhook(
        "ValidatingWebhookConfiguration",
        &shop,
        &group,
        "widgets",
        &client,
    );
    let set = Set::secret(&shop, "issuer");
    let mut objects = vec![definition(&group, "Namespaced"), mutating, validating];
    set.apply(&objects);
    // The next version has a certificate of its own, and starts its webhook again.
    let certificate = judged(custom_resource(&group, Some(&shop), "own"));
    eventually("the server asks the webhook", || {
        cluster()
            .dry_run_create(&certificate)?
            .contains("webhook")
            .then_some(())
    });
    objects.push(certificate);
    objects.push(config_map(&shop, "settings", "1"));
    let files = Files::new().with("objects.yaml", &objects_file(&objects));
    let running = start(&set, &files, &["--wait=2m"]);
    let web = Web::encrypted_at(address, |_, _| Answer::allowed());
    running.finish().expect(0);
    set.assert_holds(&objects);
    assert!(!web.asked().is_empty());
    set.delete(&["--allow-data-loss"]).expect(0);
}

#[test]
fn an_object_fails_as_its_webhook_does_once_the_time_is_over() {
    let shop = namespace("shop");
    let set = Set::secret(&shop, "web");
    let old = config_map(&shop, "old", "1");
    set.apply(std::slice::from_ref(&old));
    let objects: Vec<Value> = (0..6)
        .map(|number| judged(config_map(&shop, &number.to_string(), "1")))
        .collect();
    let webhook = at(&shop, unused_address());
    register(&webhook, &objects[0]);
    let proxy = Proxy::transparent();
    let run = set.apply_through(&proxy, &objects, &["--wait=1s"]).expect(1);
    assert_eq!(run.results("failed").len(), 6);
    assert_eq!(run.results("skipped"), [format!("ConfigMap {shop}/old")]);
    assert!(run.stderr.contains("failed calling webhook"), "{}", run.stderr);
    assert_eq!(
        run.stderr.matches("waiting for webhook").count(),
        1,
        "{}",
        run.stderr
    );
    // Only one object at a time is sent again.
    let sent = proxy.sent();
    let applies = sent
        .iter()
        .filter(|sent| sent.method == Method::PATCH && sent.path.contains("/configmaps/"));
    let applies = applies.count();
    assert!((8..=10).contains(&applies), "{applies}");
    // The record covers what was to be written, and the next run finishes.
    set.assert_holds_at_least(std::slice::from_ref(&old));
    cluster().delete(&webhook);
    eventually("the server asks no webhook", || {
        (set.apply_with(&objects, &["--wait=false"]).code == 0).then_some(())
    });
    set.assert_holds(&objects);
}

#[test]
fn a_webhook_of_a_service_without_endpoints_is_waited_for_until_the_timeout() {
    let shop = namespace("shop");
    let set = Set::secret(&shop, "web");
    cluster().create(&service(&shop, "webhook", 443));
    let client = json!({"service": {"namespace": shop, "name": "webhook", "path": "/validate"}});
    let webhook = webhook("ValidatingWebhookConfiguration", &shop, "", "configmaps", &client);
    let objects = [judged(config_map(&shop, "a", "1"))];
    register(&webhook, &objects[0]);
    let run = set.apply_with(&objects, &["--timeout=4s"]).expect(1);
    assert!(run.stderr.contains("waiting for webhook"), "{}", run.stderr);
    assert!(run.stderr.contains("--timeout"), "{}", run.stderr);
    assert_eq!(cluster().live(&objects[0]), None);
    // Once its operator lets requests pass without it, a waiting run continues.
    let files = Files::new().with("objects.yaml", &objects_file(&objects));
    let running = start(&set, &files, &["--timeout=2m"]);
    let mut ignored = webhook.clone();
    ignored["webhooks"][0]["failurePolicy"] = json!("Ignore");
    cluster().patch(&webhook, &json!({"webhooks": ignored["webhooks"]}));
    running.finish().expect(0);
    set.assert_holds(&objects);
    cluster().delete(&webhook);
}

#[test]
fn an_interrupt_ends_the_wait_and_the_next_run_finishes() {
    let shop = namespace("shop");
    let set = Set::secret(&shop, "web");
    let address = unused_address();
    let objects = [
        judged(config_map(&shop, "a", "1")),
        judged(config_map(&shop, "b", "1")),
    ];
    let webhook = at(&shop, address);
    register(&webhook, &objects[0]);
    let files = Files::new().with("objects.yaml", &objects_file(&objects));
    let running = start(&set, &files, &["--timeout=10m"]);
    running.interrupt();
    let run = running.finish().expect(130);
    assert!(run.results("created").is_empty());
    assert_eq!(run.document()["results"].as_array().map(Vec::len), Some(2));
    let _web = Web::encrypted_at(address, |_, _| Answer::allowed());
    set.apply(&objects);
    set.assert_holds(&objects);
    cluster().delete(&webhook);
}

#[test]
fn dry_runs_and_refusals_are_not_waited_for() {
    let shop = namespace("shop");
    let set = Set::secret(&shop, "web");
    let address = unused_address();
    let objects = [judged(config_map(&shop, "a", "1"))];
    let webhook = at(&shop, address);
    register(&webhook, &objects[0]);
    let dry = set.apply_with(&objects, &["--dry-run=server"]).expect(1);
    assert!(dry.stderr.contains("failed calling webhook"), "{}", dry.stderr);
    assert!(!dry.stderr.contains("waiting for"), "{}", dry.stderr);
    // A webhook that answers nonsense has started.
    let _web = Web::encrypted_at(address, |_, _| Answer::text("{}"));
    let answered = set.apply_with(&objects, &["--timeout=2m"]).expect(1);
    assert!(!answered.stderr.contains("waiting for"), "{}", answered.stderr);
    cluster().delete(&webhook);
}

#[test]
fn two_webhooks_that_judge_the_same_objects_are_asked_with_pauses() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let hooks = [at(&home, unused_address()), at(&home, unused_address())];
    let objects: Vec<Value> = (0..30)
        .map(|number| judged(config_map(&home, &format!("a{number}"), "1")))
        .collect();
    for hook in &hooks {
        cluster().create(hook);
    }
    let mut asked = BTreeSet::new();
    eventually("the server asks both", || {
        let message = cluster().dry_run_create(&objects[0])?;
        let names = hooks
            .iter()
            .map(|hook| hook["webhooks"][0]["name"].as_str().expect("a name"));
        asked.extend(names.filter(|name| message.contains(name)));
        (asked.len() == 2).then_some(())
    });
    let proxy = Proxy::transparent();
    let run = set.apply_through(&proxy, &objects, &["--wait=10s"]).expect(1);
    for hook in &hooks {
        cluster().delete(hook);
    }
    let patches = sent(&proxy, &Method::PATCH);

    assert_eq!(run.results("failed").len(), 30);
    assert!(patches.len() < 100, "{}", patches.len());
}
