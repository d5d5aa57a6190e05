//! A delete concerns the very object that was judged: what changes between the LIST and
//! the DELETE is judged again, and one delete that fails stops no other.

use std::sync::atomic::{AtomicUsize, Ordering};

use http::Method;
use serde_json::{Value, json};

use crate::support::{
    Files, GROUP_KINDS, PART_OF, Program, Proxy, Run, Set, Verdict, cluster, config_map, eventually, fresh,
    identities, named, namespace, namespace_object, objects_file, secret, service, with,
};

/// A set that has lost one object from its manifests, which changes before the DELETE of
/// it reaches the server.
struct Overtaken {
    set: Set,
    kept: Value,
    /// Of a kind and in a namespace that nothing else of the set is in.
    dropped: Value,
    deletions: usize,
    run: Run,
}

/// Prunes an object, and calls `change` with it and the number of deletes so far before
/// each DELETE.
fn overtake(change: impl Fn(&Value, usize) + Send + Sync + 'static) -> Overtaken {
    let [a, b] = [namespace("a"), namespace("b")];
    let set = Set::secret(&a, "web");
    let kept = config_map(&a, "kept", "1");
    let dropped = secret(&b, "dropped");
    set.apply(&[kept.clone(), dropped.clone()]);
    let object = dropped.clone();
    // The record is wide enough already, so the first write is the delete.
    let proxy = Proxy::gated(move |writes| {
        change(&object, writes);
        Verdict::Forward
    });
    let run = set.apply_through(&proxy, std::slice::from_ref(&kept), &[]);
    let requests = proxy.sent();
    let deletions = requests
        .iter()
        .filter(|sent| sent.method == Method::DELETE)
        .count();
    assert!(deletions > 0, "no delete was sent");
    Overtaken {
        set,
        kept,
        dropped,
        deletions,
        run,
    }
}

/// Calls `change` before the first DELETE only.
fn overtake_once(change: impl Fn(&Value) + Send + Sync + 'static) -> Overtaken {
    overtake(move |object, writes| {
        if writes == 0 {
            change(object);
        }
    })
}

impl Overtaken {
    /// Asserts that the object was kept without an error, that it is still recorded, and
    /// that the next run, which finds it kept for good, records exactly `held`.
    #[track_caller]
    fn assert_kept(&self, held: &[&Value]) {
        assert_eq!(self.run.code, 0, "{}", self.run.stderr);
        assert_eq!(self.run.results("skipped"), identities([&self.dropped]));
        assert_eq!(self.deletions, 1);
        let live = cluster().live(&self.dropped).expect("the object");
        assert_eq!(live["metadata"].get("deletionTimestamp"), None);
        assert_eq!(self.set.unrecorded(), Vec::<String>::new());
        self.set
            .assert_records(&[self.kept.clone(), self.dropped.clone()]);
        self.set.apply(std::slice::from_ref(&self.kept));
        let held: Vec<Value> = held.iter().map(|object| (*object).clone()).collect();
        self.set.assert_holds(&held);
        assert!(cluster().live(&self.dropped).is_some());
    }
}

#[test]
fn an_object_that_changed_and_is_still_unwanted_is_deleted() {
    let overtaken = overtake_once(|object| {
        cluster().patch(object, &json!({"metadata": {"labels": {"team": "x"}}}));
    });
    assert_eq!(overtaken.run.code, 0);
    assert_eq!(overtaken.deletions, 2);
    assert_eq!(overtaken.run.results("pruned"), identities([&overtaken.dropped]));
    overtaken.set.assert_holds(&[overtaken.kept]);
}

#[test]
fn an_object_that_went_to_another_set_is_kept() {
    let overtaken = overtake_once(|object| {
        cluster().patch(
            object,
            &json!({"metadata": {"labels": {PART_OF: "applyset-of-another-v1"}}}),
        );
    });
    overtaken.assert_kept(&[&overtaken.kept]);
}

#[test]
fn an_object_that_left_the_set_is_kept() {
    let overtaken = overtake_once(|object| {
        cluster().patch(object, &json!({"metadata": {"labels": {PART_OF: null}}}));
    });
    overtaken.assert_kept(&[&overtaken.kept]);
}

#[test]
fn an_object_that_was_protected_during_the_run_is_kept() {
    let overtaken = overtake_once(|object| {
        let annotation = json!({"helm.sh/resource-policy": "keep"});
        cluster().patch(object, &json!({"metadata": {"annotations": annotation}}));
    });
    overtaken.assert_kept(&[&overtaken.kept, &overtaken.dropped]);
}

#[test]
fn an_object_that_was_made_again_is_kept() {
    let overtaken = overtake_once(|object| {
        cluster().delete(object);
        cluster().create(object);
    });
    overtaken.assert_kept(&[&overtaken.kept]);
}

#[test]
fn an_object_that_was_made_again_by_another_run_of_the_set_is_kept_this_time() {
    let overtaken = overtake_once(|object| {
        let live = cluster().live(object).expect("the object");
        let labels = json!({"metadata": {"labels": live["metadata"]["labels"]}});
        cluster().delete(object);
        cluster().apply_as("applyset", &with(object.clone(), &labels));
    });
    assert_eq!(overtaken.run.code, 0);
    assert_eq!(overtaken.run.results("skipped"), identities([&overtaken.dropped]));
    let held = [overtaken.kept.clone(), overtaken.dropped.clone()];
    overtaken.set.assert_holds(&held);
}

#[test]
fn an_object_that_is_gone_is_as_good_as_deleted() {
    let overtaken = overtake_once(|object| cluster().delete(object));
    assert_eq!(overtaken.run.code, 0);
    assert_eq!(overtaken.deletions, 1);
    assert_eq!(overtaken.run.results("pruned"), identities([&overtaken.dropped]));
    overtaken.set.assert_holds(&[overtaken.kept]);
}

#[test]
fn an_object_that_another_client_deletes_is_not_deleted_again() {
    let overtaken = overtake_once(|object| {
        cluster().patch(object, &json!({"metadata": {"finalizers": ["example.com/wait"]}}));
        cluster().delete(object);
    });
    assert_eq!(overtaken.run.code, 0);
    assert_eq!(overtaken.deletions, 1);
    assert_eq!(overtaken.run.results("skipped"), identities([&overtaken.dropped]));
    assert!(overtaken.run.reason("dropped").contains("example.com/wait"));
    let set = &overtaken.set;
    set.assert_records(&[overtaken.kept.clone(), overtaken.dropped.clone()]);
    cluster().patch(&overtaken.dropped, &json!({"metadata": {"finalizers": null}}));
    set.apply(std::slice::from_ref(&overtaken.kept));
    set.assert_holds(&[overtaken.kept]);
}

#[test]
fn an_object_that_keeps_changing_fails_and_stays_recorded() {
    let changes = AtomicUsize::new(0);
    let overtaken = overtake(move |object, _| {
        let number = changes.fetch_add(1, Ordering::SeqCst).to_string();
        cluster().patch(object, &json!({"metadata": {"labels": {"number": number}}}));
    });
    assert_eq!(overtaken.run.code, 1);
    assert_eq!(overtaken.run.results("failed"), identities([&overtaken.dropped]));
    let set = &overtaken.set;
    set.assert_holds(&[overtaken.kept.clone(), overtaken.dropped]);
    set.apply(std::slice::from_ref(&overtaken.kept));
    set.assert_holds(&[overtaken.kept]);
}

#[test]
fn a_delete_that_admission_denies_stops_no_other_and_leaves_the_record_wide() {
    let [a, b, c] = [namespace("a"), namespace("b"), namespace("c")];
    let set = Set::secret(&a, "web");
    let kept = config_map(&a, "kept", "1");
    let denied = service(&b, "denied", 80);
    let others = [
        service(&b, "allowed", 80),
        secret(&c, "allowed"),
        config_map(&c, "allowed", "1"),
    ];
    set.apply(&[others.as_slice(), &[kept.clone(), denied.clone()]].concat());
    let policy = deny_deletion_in(&b, "services", &denied);

    let files = Files::new().with("objects.yaml", &objects_file(std::slice::from_ref(&kept)));
    let diff = set.invocation(
        Program::new(),
        "diff",
        &["-o", "json", "--exit-code-on=change", "-f"],
    );
    let diff = diff.args([files.directory()]).run().expect(1);
    assert_eq!(diff.results("pruned"), identities(&others));
    assert_eq!(diff.results("failed"), identities([&denied]));
    assert!(
        !diff.stderr.contains("nothing would be pruned"),
        "{}",
        diff.stderr
    );
    for flag in ["--dry-run=server", "--dry-run=none"] {
        let run = set.apply_with(std::slice::from_ref(&kept), &[flag]).expect(1);
        assert_eq!(run.results("pruned"), identities(&others), "{flag}");
        assert_eq!(run.results("failed"), identities([&denied]));
        assert_eq!(run.errors().len(), 1, "{}", run.stderr);
        assert!(run.errors()[0].contains("not this one"), "{}", run.stderr);
    }

    set.assert_records(&[others.as_slice(), &[kept.clone(), denied.clone()]].concat());
    for object in &policy {
        cluster().delete(object);
    }
    eventually("the policy is gone", || {
        cluster().allows_deletion(&denied).then_some(())
    });
    set.apply(std::slice::from_ref(&kept));
    set.assert_holds(&[kept]);
}

/// Makes the server refuse to delete this object, and waits until it does.
pub(super) fn deny_deletion_in(namespace: &str, resources: &str, object: &Value) -> [Value; 2] {
    let policy = fresh("policy");
    let name = &object["metadata"]["name"];
    let group = "admissionregistration.k8s.io/v1";
    let policy_object = with(
        named(group, "ValidatingAdmissionPolicy", None, &policy),
        &json!({"spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "resourceRules": [{
                    "apiGroups": ["*"], "apiVersions": ["v1"], "operations": ["DELETE"],
                    "resources": [resources], "resourceNames": [name],
                }],
            },
            "validations": [{"expression": "false", "message": "not this one"}],
        }}),
    );
    let binding = with(
        named(group, "ValidatingAdmissionPolicyBinding", None, &policy),
        &json!({"spec": {"policyName": policy, "validationActions": ["Deny"]}}),
    );
    let objects = [binding, policy_object];
    for part in &objects {
        cluster().create(part);
    }
    eventually("the policy is in force", || {
        (!cluster().allows_deletion(object)).then_some(())
    });
    objects
}

fn event(namespace: &str, name: &str) -> Value {
    with(
        named("v1", "Event", Some(namespace), name),
        &json!({
            "involvedObject": {"apiVersion": "v1", "kind": "ConfigMap", "namespace": namespace, "name": "x"},
            "reason": "Test", "message": "test", "type": "Normal",
        }),
    )
}

/// A set of an Event whose parent also records the second group that serves Events.
fn events_under_two_groups() -> (Set, Value, Value) {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let kept = config_map(&home, "kept", "1");
    let event = event(&home, "one");
    set.apply(&[kept.clone(), event.clone()]);
    let kinds = "ConfigMap,Event,Event.events.k8s.io";
    cluster().patch(
        &set.parent,
        &json!({"metadata": {"annotations": {GROUP_KINDS: kinds}}}),
    );
    (set, kept, event)
}

#[test]
fn an_object_that_two_groups_serve_is_deleted_once() {
    let (set, kept, event) = events_under_two_groups();
    let proxy = Proxy::transparent();

    let run = set
        .apply_through(&proxy, std::slice::from_ref(&kept), &[])
        .expect(0);

    assert_eq!(run.results("pruned").len(), 1);
    let requests = proxy.sent();
    assert_eq!(
        requests
            .iter()
            .filter(|sent| sent.method == Method::DELETE)
            .count(),
        1
    );
    assert_eq!(cluster().live(&event), None);
    set.assert_holds(&[kept]);
}

#[test]
fn an_object_that_is_wanted_under_one_group_is_not_deleted_under_the_other() {
    let (set, kept, event) = events_under_two_groups();
    let uid = cluster().live(&event).expect("the event")["metadata"]["uid"].clone();
    let changed = with(event.clone(), &json!({"message": "another"}));
    for objects in [[kept.clone(), event.clone()], [kept.clone(), changed]] {
        let run = set.apply(&objects);
        assert_eq!(run.results("pruned"), Vec::<String>::new());
    }
    assert_eq!(cluster().live(&event).expect("the event")["metadata"]["uid"], uid);
    set.assert_records(&[kept, event]);
}

#[test]
fn objects_that_two_groups_serve_count_once() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let in_other_group = |name: &str| {
        with(
            named("events.k8s.io/v1", "Event", Some(&home), name),
            &json!({
                "regarding": {"apiVersion": "v1", "kind": "ConfigMap", "namespace": home, "name": "x"},
                "reason": "Test", "note": "test", "type": "Normal", "action": "Test",
                "eventTime": "2026-01-01T00:00:00.000000Z",
                "reportingController": "example.com/test", "reportingInstance": "test",
            }),
        )
    };
    let mut events = vec![event(&home, "a"), event(&home, "b")];
    events.extend(["c", "d"].map(in_other_group));
    set.apply(&events);
    let other = config_map(&home, "other", "1");

    set.apply_with(std::slice::from_ref(&other), &[]).expect(3);

    for event in &events {
        assert!(cluster().live(event).is_some(), "{event}");
    }
    assert_eq!(cluster().live(&other), None);
    let listed = Program::new().args(["list", "-n", &home, "-o", "json"]).run();
    assert_eq!(listed.document()["sets"][0]["members"], 4);
    let seen = set.invoke("view", &[]).expect(0);
    assert_eq!(seen.document()["members"].as_array().map(Vec::len), Some(4));
    let deleted = set.delete(&[]).expect(0);
    // The parent is one of the results.
    assert_eq!(deleted.results("deleted").len(), events.len() + 1);
    for event in &events {
        assert_eq!(cluster().live(event), None);
    }
}

#[test]
fn a_namespace_that_cannot_finish_says_why() {
    let home = namespace("home");
    let away = fresh("away");
    let set = Set::secret(&home, "web");
    // The record of Namespaces continues, since the set keeps one.
    let kept = namespace_object(&fresh("kept"));
    let own = namespace_object(&away);
    let held = with(
        config_map(&away, "held", "1"),
        &json!({"metadata": {"finalizers": ["example.com/wait"]}}),
    );
    set.apply(&[kept.clone(), own.clone(), held.clone()]);
    let run = set.apply(std::slice::from_ref(&kept));
    assert_eq!(run.results("pruned"), identities([&own, &held]));
    eventually("the namespace controller says what is left", || {
        let live = cluster().live(&own)?.to_string();
        live.contains("example.com/wait in").then_some(())
    });

    let run = set.apply(std::slice::from_ref(&kept));

    assert!(run.reason(&away).contains("example.com/wait"), "{}", run.stdout);
    cluster().patch(&held, &json!({"metadata": {"finalizers": null}}));
    eventually("the namespace is gone", || {
        cluster().live(&own).is_none().then_some(())
    });
    set.apply(std::slice::from_ref(&kept));
    set.assert_holds(&[kept]);
}
