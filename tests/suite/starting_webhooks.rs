//! Webhooks that start while a run waits for something else, or that judge its parent and its deletes.

use std::sync::atomic::{AtomicUsize, Ordering};

use http::Method;
use serde_json::{Value, json};

use super::depends_on::{after, files, rolled_out};
use super::webhooks::{at, client_of, judged, register, webhook};
use crate::support::{
    Answer, Fault, Program, ProgramEnd, Proxy, Running, Sent, Set, Web, cluster, config_map, deployment,
    eventually, fresh, identities, namespace, namespace_object, secret, unused_address, with,
};

/// Starts a run that reports everything, and returns once it waits for the webhook.
fn start(set: &Set, objects: &[Value], flags: &[&str]) -> Running {
    let manifests = files(objects);
    let mut running = set
        .command(Program::new(), &manifests)
        .args(["-v", "-o", "json"])
        .args(flags)
        .start();
    running.wait_for_message("waiting for webhook");
    running
}

/// A certificate that a webhook judges, a Deployment that becomes Current once the certificate exists,
/// and an object that depends on the Deployment.
fn issuer(home: &str) -> [Value; 3] {
    let app = deployment(home, "app", 1);
    let user = after(config_map(home, "user", "1"), &[&app]);
    [judged(config_map(home, "certificate", "1")), app, user]
}

#[test]
fn what_a_dependency_needs_is_sent_again_while_the_run_waits_for_the_dependency() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let address = unused_address();
    let objects = issuer(&home);
    let [certificate, app, user] = &objects;
    let webhook = at(&home, address);
    register(&webhook, certificate);
    let mut running = start(&set, &objects, &["--timeout=5m"]);
    running.wait_for_message("0 of 1 replicas");
    let _web = Web::encrypted_at(address, |_, _| Answer::allowed());
    // Its controller can make the Secret of the Deployment now.
    eventually("the certificate", || cluster().live(certificate));
    assert_eq!(cluster().live(user), None);
    cluster().patch_status(app, &rolled_out());
    let run = running.finish().expect(0);
    assert_eq!(run.results("created").len(), 3);
    set.assert_holds(&objects);
    cluster().delete(&webhook);
}

#[test]
fn an_interrupt_ends_both_waits_and_the_next_run_finishes() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let address = unused_address();
    let objects = issuer(&home);
    let [certificate, app, user] = &objects;
    let webhook = at(&home, address);
    register(&webhook, certificate);
    let mut running = start(&set, &objects, &["--timeout=5m"]);
    running.wait_for_message("0 of 1 replicas");
    running.interrupt();
    let run = running.finish().expect(130);
    assert_eq!(run.document()["results"].as_array().map(Vec::len), Some(3));
    assert_eq!(run.results("created"), identities([app]));
    assert_eq!(run.results("skipped"), identities([user]));
    set.assert_records(&objects);
    let _web = Web::encrypted_at(address, |_, _| Answer::allowed());
    cluster().patch_status(app, &rolled_out());
    set.apply(&objects);
    set.assert_holds(&objects);
    cluster().delete(&webhook);
}

#[test]
fn a_run_that_waits_for_both_can_be_killed_between_any_two_writes() {
    for writes in 0.. {
        let home = namespace("home");
        let set = Set::secret(&home, "web");
        let objects = issuer(&home);
        let [certificate, app, _] = &objects;
        let address = unused_address();
        let webhook = at(&home, address);
        register(&webhook, certificate);
        let proxy = Proxy::holding_after(writes);
        let program = Program::with_kubeconfig(&proxy.kubeconfig());
        let manifests = files(&objects);
        let command = set.command(program, &manifests).args(["--timeout=5m"]);
        let end = std::thread::scope(|scope| {
            let end = scope.spawn(|| command.run_until_held(&proxy));
            let is_stopped = || end.is_finished() || proxy.holds();
            eventually("the Deployment", || {
                (is_stopped() || cluster().live(app).is_some()).then_some(())
            });
            if !is_stopped() {
                let _web = Web::encrypted_at(address, |_, _| Answer::allowed());
                eventually("the certificate", || {
                    (is_stopped() || cluster().live(certificate).is_some()).then_some(())
                });
            }
            if cluster().live(app).is_some() {
                cluster().patch_status(app, &rolled_out());
            }
            end.join().expect("no panic")
        });
        assert_eq!(set.unrecorded(), Vec::<String>::new(), "after {writes} writes");
        cluster().delete(&webhook);
        if end == ProgramEnd::Finished {
            assert!(writes >= 4, "only {writes} writes");
            set.assert_holds(&objects);
            return;
        }
        eventually("a run without the webhook", || {
            let run = set
                .command(Program::new(), &manifests)
                .args(["--timeout=2s"])
                .run();
            if let Some(live) = cluster()
                .live(app)
                .filter(|live| live["status"]["readyReplicas"].is_null())
            {
                cluster().patch_status(&live, &rolled_out());
            }
            (run.code == 0).then_some(())
        });
        set.assert_holds(&objects);
    }
}

#[test]
fn one_webhook_that_stays_away_does_not_hold_what_waits_for_another() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let [late, early] = [unused_address(), unused_address()];
    let second = judged(config_map(&home, "second", "1"));
    // The Pods of the webhook for the Secret come with an object that waits for the other webhook.
    let first = judged(secret(&home, "first"));
    let starter = after(config_map(&home, "starter", "1"), &[&second]);
    let objects = [first, second, starter.clone()];
    let kind = "ValidatingWebhookConfiguration";
    let webhooks = [
        webhook(kind, &home, "", "secrets", &client_of(late)),
        at(&home, early),
    ];
    register(&webhooks[0], &objects[0]);
    register(&webhooks[1], &objects[1]);
    let running = start(&set, &objects, &["--timeout=5m"]);
    let _early = Web::encrypted_at(early, |_, _| Answer::allowed());
    eventually("the object that starts the other webhook", || {
        cluster().live(&starter)
    });
    let _late = Web::encrypted_at(late, |_, _| Answer::allowed());
    let run = running.finish().expect(0);
    assert_eq!(run.results("created").len(), 3);
    set.assert_holds(&objects);
    for webhook in &webhooks {
        cluster().delete(webhook);
    }
}

#[test]
fn what_a_postponed_namespace_holds_is_postponed_with_it() {
    let home = namespace("home");
    let inner = format!("inner-{home}");
    let set = Set::secret(&home, "web");
    let address = unused_address();
    let settings = judged(config_map(&home, "settings", "1"));
    let objects = [
        config_map(&inner, "inside", "1"),
        after(namespace_object(&inner), &[&settings]),
        settings.clone(),
    ];
    let webhook = at(&home, address);
    register(&webhook, &settings);
    let running = start(&set, &objects, &["--timeout=5m"]);
    let _web = Web::encrypted_at(address, |_, _| Answer::allowed());
    let run = running.finish().expect(0);
    assert_eq!(run.results("created").len(), 3);
    set.assert_holds(&objects);
    cluster().delete(&webhook);
}

/// The webhook, asked about other operations, and about objects without the label as well.
fn asked_about(mut webhook: Value, operations: &Value, selector: &Value) -> Value {
    webhook["webhooks"][0]["rules"][0]["operations"] = operations.clone();
    webhook["webhooks"][0]["objectSelector"] = selector.clone();
    webhook
}

#[test]
fn the_sets_parent_waits_for_a_webhook_that_starts() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let address = unused_address();
    let kind = "ValidatingWebhookConfiguration";
    let webhook = webhook(kind, &home, "", "secrets", &client_of(address));
    let webhook = asked_about(webhook, &json!(["CREATE", "UPDATE"]), &json!({}));
    register(&webhook, &secret(&home, "any"));
    let old = config_map(&home, "old", "1");
    let objects = [old.clone()];
    let failed = set.apply_with(&objects, &["--wait=1s"]).expect(1);
    assert!(
        failed.stderr.contains("failed calling webhook"),
        "{}",
        failed.stderr
    );
    let running = start(&set, &objects, &["--timeout=5m"]);
    running.interrupt();
    running.finish().expect(130);
    assert_eq!(set.live_parent(), None);
    assert_eq!(cluster().live(&old), None);
    let running = start(&set, &objects, &["--timeout=5m"]);
    let web = Web::encrypted_at(address, |_, calls| {
        // Away again when the record is to be narrowed.
        if calls == 1 || calls == 2 {
            Answer::status(503)
        } else {
            Answer::allowed()
        }
    });
    running.finish().expect(0);
    set.assert_holds(&objects);
    assert!(!web.asked().is_empty());
    cluster().delete(&webhook);
}

#[test]
fn an_interrupt_ends_the_last_write_of_the_parent_as_any_other() {
    for command in ["apply", "delete"] {
        let home = namespace("home");
        let set = Set::secret(&home, "web");
        let kept = config_map(&home, "kept", "1");
        set.apply(&[kept.clone(), secret(&home, "old")]);
        let parent = format!(
            "/secrets/{}",
            set.parent["metadata"]["name"].as_str().expect("a name")
        );
        let writes = AtomicUsize::new(0);
        let is_last = move |sent: &Sent| {
            let is_write = sent.method != Method::GET && sent.path.contains(&parent);
            is_write && writes.fetch_add(1, Ordering::SeqCst) > 0
        };
        let proxy = Proxy::breaking(Fault::WebhookStarts, is_last);
        let program = Program::with_kubeconfig(&proxy.kubeconfig());
        let files = files(std::slice::from_ref(&kept));
        let program = match command {
            "apply" => set.command(program, &files),
            _ => set.deletion(program),
        };
        let mut running = program.args(["--timeout=5m", "--yes"]).start();
        running.wait_for_message("waiting for webhook");
        running.interrupt();
        running.finish().expect(130);
    }
}

#[test]
fn labels_wait_for_a_webhook_that_starts_and_the_run_names_it() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let address = unused_address();
    let objects = [judged(config_map(&home, "a", "1"))];
    cluster().create(&objects[0]);
    let webhook = at(&home, address);
    register(&webhook, &judged(config_map(&home, "any", "1")));
    let manifests = files(&objects);
    let directory = manifests.directory().to_string_lossy().into_owned();
    let mut running = set
        .invocation(Program::new(), "adopt", &["-f", &directory])
        .start();
    running.wait_for_message("waiting for webhook");
    let _web = Web::encrypted_at(address, |_, _| Answer::allowed());
    running.finish().expect(0);
    set.assert_holds(&objects);
    cluster().delete(&webhook);
}

#[test]
fn deletes_wait_for_a_webhook_that_starts() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let address = unused_address();
    let [old, kept] = ["old", "kept"].map(|name| judged(config_map(&home, name, "1")));
    let wanted = std::slice::from_ref(&kept);
    set.apply(&[old.clone(), kept.clone()]);
    let webhook = asked_about(
        at(&home, address),
        &json!(["CREATE", "DELETE"]),
        &json!({"matchLabels": {"judged": "yes"}}),
    );
    register(&webhook, &judged(config_map(&home, "any", "1")));
    let run = set.apply_with(wanted, &["--wait=1s"]).expect(1);
    assert_eq!(run.results("failed"), identities([&old]));
    set.assert_holds(&[old.clone(), kept.clone()]);
    let running = start(&set, wanted, &["--timeout=5m"]);
    running.interrupt();
    running.finish().expect(130);
    set.assert_holds(&[old.clone(), kept.clone()]);

    let running = start(&set, wanted, &["--timeout=5m"]);
    let web = Web::encrypted_at(address, |_, calls| {
        // Away again for the deletion of the set.
        if calls == 1 || calls == 2 {
            Answer::status(503)
        } else {
            Answer::allowed()
        }
    });
    let run = running.finish().expect(0);
    assert_eq!(run.results("pruned"), identities([&old]));
    set.assert_holds(wanted);
    set.delete(&[]).expect(0);
    assert_eq!(cluster().members(&set.id), []);
    assert_eq!(set.live_parent(), None);
    assert!(web.asked().len() >= 3, "{:?}", web.asked());
    cluster().delete(&webhook);
}

#[test]
fn the_deletion_of_a_set_keeps_its_record_while_a_webhook_is_away() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let member = judged(config_map(&home, "member", "1"));
    set.apply(std::slice::from_ref(&member));
    let webhook = asked_about(
        at(&home, unused_address()),
        &json!(["CREATE", "DELETE"]),
        &json!({"matchLabels": {"judged": "yes"}}),
    );
    register(&webhook, &judged(config_map(&home, "any", "1")));
    let run = set.delete(&["--timeout=3s"]).expect(1);
    assert!(run.stderr.contains("waiting for webhook"), "{}", run.stderr);
    set.assert_holds_at_least(std::slice::from_ref(&member));
    cluster().delete(&webhook);
    eventually("the server asks no webhook", || {
        (set.delete(&["--wait=false"]).code == 0).then_some(())
    });
    assert_eq!(cluster().live(&with(member, &json!({}))), None);
}

#[test]
fn an_owner_reference_that_comes_while_a_webhook_is_away_keeps_the_old_parent() {
    let home = namespace("home");
    let (old, new) = (Set::secret(&home, "old"), Set::config_map(&home, "new"));
    let (moved, own) = (config_map(&home, "moved", "1"), config_map(&home, "own", "1"));
    old.apply(std::slice::from_ref(&moved));
    new.apply(std::slice::from_ref(&own));
    let address = unused_address();
    let kind = "ValidatingWebhookConfiguration";
    let webhook = webhook(kind, &home, "", "secrets", &client_of(address));
    let webhook = asked_about(webhook, &json!(["CREATE", "DELETE"]), &json!({}));
    register(&webhook, &secret(&home, "any"));
    let mut running = old.invocation(Program::new(), "move", &[&new.reference]).start();
    running.wait_for_message("waiting for webhook");
    let uid = old.live_parent().expect("the old parent")["metadata"]["uid"].clone();
    let reference = json!({"apiVersion": "v1", "kind": "Secret", "name": "old", "uid": uid});
    cluster().patch(&own, &json!({"metadata": {"ownerReferences": [reference]}}));
    let _web = Web::encrypted_at(address, |_, _| Answer::allowed());
    running.finish().expect(0);
    new.assert_holds(&[moved, own]);
    old.assert_holds(&[]);
    cluster().delete(&webhook);
}

#[test]
fn what_holds_an_object_is_not_deleted_while_the_objects_webhook_is_away() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let inner = namespace_object(&fresh("inner"));
    let name = inner["metadata"]["name"].as_str().expect("a name");
    let kept = config_map(&home, "kept", "1");
    let held = judged(config_map(name, "held", "1"));
    set.apply(&[inner.clone(), kept.clone(), held.clone()]);
    let webhook = asked_about(
        at(name, unused_address()),
        &json!(["CREATE", "DELETE"]),
        &json!({"matchLabels": {"judged": "yes"}}),
    );
    register(&webhook, &judged(config_map(name, "any", "1")));
    let flags = ["--allow-data-loss", "--timeout=4s"];
    let run = set.apply_with(std::slice::from_ref(&kept), &flags).expect(1);
    assert_eq!(run.results("failed"), identities([&held]));
    assert_eq!(run.results("skipped"), identities([&inner]));
    let live = cluster().live(&inner).expect("the namespace");
    assert_eq!(live["metadata"]["deletionTimestamp"], Value::Null);
    set.assert_holds_at_least(&[held, kept]);
    cluster().delete(&webhook);
    cluster().delete(&inner);
}

#[test]
fn owners_are_judged_again_after_a_wait_for_a_webhook() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let address = unused_address();
    let owner = judged(config_map(&home, "owner", "1"));
    let kept = config_map(&home, "kept", "1");
    // Its delete begins after the first attempt to delete the owner, and before the second one.
    let second = config_map(&home, "second", "1");
    set.apply(&[owner.clone(), second.clone(), kept.clone()]);
    let webhook = asked_about(
        at(&home, address),
        &json!(["CREATE", "DELETE"]),
        &json!({"matchLabels": {"judged": "yes"}}),
    );
    register(&webhook, &judged(config_map(&home, "any", "1")));
    let flags = ["--timeout=5m", "--concurrency=1"];
    let running = start(&set, std::slice::from_ref(&kept), &flags);
    eventually("the second object is gone", || {
        cluster().live(&second).is_none().then_some(())
    });
    let uid = cluster().live(&owner).expect("the owner")["metadata"]["uid"].clone();
    let reference = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid});
    cluster().patch(&kept, &json!({"metadata": {"ownerReferences": [reference]}}));
    let _web = Web::encrypted_at(address, |_, _| Answer::allowed());
    let run = running.finish().expect(1);
    assert_eq!(run.results("failed"), identities([&owner]));
    set.assert_holds_at_least(&[owner, kept]);
    cluster().delete(&webhook);
}

#[test]
fn owners_are_judged_again_after_the_removal_of_references_has_waited_for_a_webhook() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let address = unused_address();
    let owner = config_map(&home, "owner", "1");
    let kept = with(
        judged(config_map(&home, "kept", "1")),
        &json!({"metadata": {"annotations": {"helm.sh/resource-policy": "keep"}}}),
    );
    let desired = config_map(&home, "desired", "1");
    let members = [owner.clone(), kept.clone(), desired.clone()];
    set.apply(&members);
    let uid = cluster().live(&owner).expect("the owner")["metadata"]["uid"].clone();
    let reference = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid});
    let owned = json!({"metadata": {"ownerReferences": [reference]}});
    cluster().patch(&kept, &owned);
    let webhook = at(&home, address);
    register(&webhook, &judged(config_map(&home, "any", "1")));
    let flags = ["--timeout=5m", "--allow-data-loss"];
    let running = start(&set, std::slice::from_ref(&desired), &flags);
    cluster().patch(&desired, &owned);
    let _web = Web::encrypted_at(address, |_, _| Answer::allowed());
    let run = running.finish().expect(1);
    assert_eq!(run.results("failed"), identities([&owner]));
    set.assert_holds_at_least(&members);
    cluster().delete(&webhook);
}
