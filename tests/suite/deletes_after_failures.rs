//! Deletes after other deletes have failed, and after objects have vanished.

use std::sync::atomic::{AtomicBool, Ordering};

use http::Method;
use serde_json::{Value, json};

use super::deletes_judged_again::{assert_stays, is_delete_of};
use super::dependents::give;
use super::depends_on::{after, files, held, let_go, reference};
use crate::support::{
    Fault, Program, Proxy, Sent, Set, cluster, cluster_role, config_map, deployment, fresh, identities,
    named, namespace, namespace_object, path_of, secret, with,
};

const KEEP: &str = "helm.sh/resource-policy";

#[test]
fn what_an_object_needs_whose_delete_has_failed_in_an_earlier_step_is_kept() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let kept = |value| config_map(&home, "kept", value);
    let role = with(
        named("rbac.authorization.k8s.io/v1", "Role", Some(&home), "base"),
        &json!({"rules": []}),
    );
    let stays = deployment(&home, "stays", 0);
    set.apply(&[kept("1"), role.clone(), stays.clone()]);
    let (object, base, is_changed) = (stays.clone(), role.clone(), AtomicBool::new(false));
    let proxy = Proxy::breaking(Fault::InternalError, move |sent| {
        // The run begins, and has judged nothing since the plan.
        if sent.is_write() && !is_changed.swap(true, Ordering::SeqCst) {
            let annotations = json!({"config.kubernetes.io/depends-on": reference(&base)});
            cluster().patch(&object, &json!({"metadata": {"annotations": annotations}}));
        }
        is_delete_of(sent, "stays")
    });
    let run = set.apply_through(&proxy, &[kept("2")], &[]).expect(1);
    assert_eq!(run.results("failed"), identities([&stays]), "{}", run.stdout);
    assert_stays(&stays);
    assert_stays(&role);
}

/// A `ClusterRole` owns a namespace that is in no set. The delete of an object in the namespace fails, or finds it to be
/// kept.
fn assert_owner_of_namespace_is_kept(fault: Option<Fault>) {
    let home = namespace("home");
    let away = fresh("away");
    let set = Set::secret(&home, "web");
    let kept = config_map(&home, "kept", "1");
    let tenant = cluster_role(&fresh("tenant"));
    let space = namespace_object(&away);
    cluster().create(&space);
    // By its kind, it goes before the `ClusterRole`.
    let inside = deployment(&away, "inside", 0);
    set.apply(&[kept.clone(), tenant.clone(), inside.clone()]);
    give(&space, &[&tenant]);
    let marked = inside.clone();
    let proxy = match fault {
        Some(fault) => Proxy::breaking(fault, |sent| is_delete_of(sent, "inside")),
        None => Proxy::before_request(
            |sent| is_delete_of(sent, "inside"),
            move || {
                let annotations = json!({KEEP: "keep"});
                cluster().patch(&marked, &json!({"metadata": {"annotations": annotations}}));
            },
        ),
    };
    set.apply_through(&proxy, std::slice::from_ref(&kept), &[]);
    assert_stays(&inside);
    assert_stays(&space);
    assert_stays(&tenant);
}

#[test]
fn what_owns_the_namespace_of_an_object_whose_delete_has_failed_is_kept() {
    assert_owner_of_namespace_is_kept(Some(Fault::InternalError));
}

#[test]
fn what_owns_the_namespace_of_an_object_that_was_found_to_be_kept_is_kept() {
    assert_owner_of_namespace_is_kept(None);
}

/// The garbage collector would delete the Event, because the run finds it again as an Event of the core group.
#[test]
fn an_owner_reference_of_a_desired_object_that_two_groups_serve_is_removed() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let [kept, base] = ["kept", "base"].map(|name| config_map(&home, name, "1"));
    let about = json!({"apiVersion": "v1", "kind": "ConfigMap", "namespace": home, "name": "x"});
    let old = with(
        named("v1", "Event", Some(&home), "old"),
        &json!({"involvedObject": about, "reason": "Test", "message": "test", "type": "Normal"}),
    );
    let event = with(
        named("events.k8s.io/v1", "Event", Some(&home), "wanted"),
        &json!({
            "regarding": about, "reason": "Test", "note": "test", "type": "Normal", "action": "Test",
            "eventTime": "2026-01-01T00:00:00.000000Z",
            "reportingController": "example.com/test", "reportingInstance": "test",
        }),
    );
    set.apply(&[kept.clone(), base.clone(), old, event.clone()]);
    give(&event, &[&base]);
    set.apply_with(&[kept.clone(), event.clone()], &[]).expect(3);
    set.apply_with(&[kept, event.clone()], &["--allow-data-loss"])
        .expect(0);
    assert_eq!(cluster().live(&base), None);
    let live = cluster().live(&event).expect("the Event");
    assert_eq!(live["metadata"]["ownerReferences"], Value::Null);
}

#[test]
fn a_run_prunes_although_a_job_of_the_manifests_has_ended_and_is_gone() {
    for arguments in [&[][..], &["--wait=1m", "--prune-when=ready"]] {
        let home = namespace("home");
        let set = Set::secret(&home, "web");
        let [kept, old] = ["kept", "old"].map(|name| config_map(&home, name, "1"));
        set.apply(&[kept.clone(), old.clone()]);
        let job = with(
            named("batch/v1", "Job", Some(&home), "migrate"),
            &json!({"spec": {"ttlSecondsAfterFinished": 0, "template": {"spec": {
                "restartPolicy": "Never", "containers": [{"name": "app", "image": "app"}],
            }}}}),
        );
        let (path, ended, is_applied) = (path_of(&job), job.clone(), AtomicBool::new(false));
        let is_listed_again = move |sent: &Sent| {
            if sent.method == Method::PATCH && sent.path.starts_with(&path) {
                is_applied.store(true, Ordering::SeqCst);
            }
            is_applied.load(Ordering::SeqCst) && sent.method == Method::GET && sent.path.contains("/jobs?")
        };
        let proxy = Proxy::before_request(is_listed_again, move || cluster().delete(&ended));
        set.apply_through(&proxy, &[kept, job.clone()], arguments)
            .expect(0);
        assert_eq!(cluster().live(&job), None);
        assert_eq!(cluster().live(&old), None);
    }
}

#[test]
fn a_detached_object_that_is_gone_does_not_keep_its_former_owner() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let [kept, owner] = ["kept", "owner"].map(|name| config_map(&home, name, "1"));
    let marked = with(
        config_map(&home, "marked", "1"),
        &json!({"metadata": {"annotations": {KEEP: "keep"}}}),
    );
    let user = held(after(secret(&home, "user"), &[&owner]));
    set.apply(&[kept.clone(), owner.clone(), marked.clone(), user.clone()]);
    give(&marked, &[&owner]);
    let manifests = files(std::slice::from_ref(&kept));
    let mut running = set
        .command(Program::new(), &manifests)
        .args(["-v", "-o", "json", "--timeout=1m", "--allow-data-loss"])
        .start();
    running.wait_for_message("finalizer example.com/held");
    cluster().delete(&marked);
    let_go(&user);
    running.finish().expect(0);
    assert_eq!(cluster().live(&owner), None);
}
