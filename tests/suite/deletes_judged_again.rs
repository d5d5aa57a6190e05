//! Deletes that are judged again during a run: what the run has deleted stays deleted, and what is kept keeps others.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::{Duration, Instant};

use controlplane::Grant;
use http::Method;
use serde_json::{Value, json};

use super::changed_while_waiting::HeldPrune;
use super::dependents::reference as owner_reference;
use super::depends_on::{after, files, held, let_go, reference};
use super::prune_when::last;
use crate::support::{
    Fault, Files, Program, Proxy, Sent, Set, Verdict, cluster, config_map, custom_resource, definition,
    deployment, eventually, fresh, identities, namespace, namespace_object, secret,
};

#[track_caller]
pub(super) fn assert_stays(object: &Value) {
    let live = cluster().live(object).expect("it exists");
    assert_eq!(live["metadata"]["deletionTimestamp"], Value::Null, "{object}");
}

#[test]
fn a_namespace_that_is_pruned_last_goes_with_what_was_pruned_in_it_before() {
    let home = namespace("home");
    let away = fresh("away");
    let set = Set::secret(&home, "web");
    let kept = config_map(&home, "kept", "1");
    let space = namespace_object(&away);
    let inside = config_map(&away, "inside", "1");
    let late = last(secret(&away, "late"));
    set.apply(&[kept.clone(), space.clone(), inside, late]);
    let run = set.apply_with(std::slice::from_ref(&kept), &[]).expect(0);
    assert_eq!(run.results("pruned").len(), 3, "{}", run.stderr);
    set.assert_holds_without(&space, &[kept]);
}

#[test]
fn what_was_kept_during_the_regular_prunes_keeps_its_owner_that_is_pruned_last() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let kept = config_map(&home, "kept", "1");
    let marked = config_map(&home, "marked", "1");
    let late = last(secret(&home, "late"));
    set.apply(&[kept.clone(), marked.clone(), late.clone()]);
    let (object, owner) = (marked.clone(), late.clone());
    let proxy = Proxy::before_write(1, move || {
        let annotations = json!({"helm.sh/resource-policy": "keep"});
        cluster().patch(
            &object,
            &json!({"metadata": {"annotations": annotations, "ownerReferences": [owner_reference(&owner)]}}),
        );
    });
    set.apply_through(&proxy, std::slice::from_ref(&kept), &[]);
    assert_stays(&marked);
    assert_stays(&late);
}

#[test]
fn a_delete_that_the_server_has_no_capacity_for_is_judged_again() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let [kept, old] = ["kept", "old"].map(|name| config_map(&home, name, "1"));
    set.apply(&[kept.clone(), old.clone()]);
    let (dependent, dependency, begun) = (kept.clone(), old.clone(), Mutex::new(None));
    let proxy = Proxy::breaking(Fault::TooManyRequestsRetryAfter, move |sent| {
        if !is_delete_of(sent, "old") {
            return false;
        }
        let mut begun = begun.lock().expect("no panic");
        let first = begun.get_or_insert_with(|| {
            let annotations = json!({"config.kubernetes.io/depends-on": reference(&dependency)});
            cluster().patch(&dependent, &json!({"metadata": {"annotations": annotations}}));
            Instant::now()
        });
        first.elapsed() < Duration::from_secs(11)
    });
    let run = set
        .apply_through(&proxy, std::slice::from_ref(&kept), &[])
        .expect(0);
    assert_eq!(run.results("skipped"), identities([&old]), "{}", run.stdout);
    assert_stays(&old);
}

#[test]
fn nothing_is_deleted_after_an_interrupt_while_members_are_read_again() {
    let prune = HeldPrune::new();
    prune.apply(&[]);
    let (reached, is_reached): (Sender<()>, Receiver<()>) = mpsc::channel();
    let (release, released): (Sender<()>, Receiver<()>) = mpsc::channel();
    let ends = Mutex::new((reached, released));
    let is_armed = Arc::new(AtomicBool::new(false));
    let armed = Arc::clone(&is_armed);
    let is_read_again = move |sent: &Sent| {
        let path = sent.path.split('?').next().unwrap_or_default();
        armed.load(Ordering::SeqCst) && sent.method == Method::GET && path.ends_with("/secrets/web")
    };
    let proxy = Proxy::before_request(is_read_again, move || {
        let (reached, released) = &*ends.lock().expect("no panic");
        let _ = reached.send(());
        let _ = released.recv();
    });
    let running = prune.start(Program::with_kubeconfig(&proxy.kubeconfig()));
    is_armed.store(true, Ordering::SeqCst);
    let_go(&prune.user);
    is_reached.recv().expect("the read");
    running.interrupt();
    sleep(Duration::from_secs(1));
    release.send(()).expect("the proxy");
    let run = running.finish().expect(130);
    assert_eq!(run.results("pruned"), identities([&prune.user]));
    assert_stays(&prune.base);
}

#[test]
fn no_parent_is_created_in_the_place_of_one_that_the_run_has_read_while_it_began() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let [a, added] = [config_map(&home, "a", "1"), secret(&home, "added")];
    let (other, wanted) = (set.clone(), added.clone());
    let proxy = Proxy::gated(move |writes| {
        match writes {
            // Another run is faster to create the parent.
            0 => drop(other.apply(std::slice::from_ref(&wanted))),
            // Another client deletes it.
            1 => cluster().delete(&other.parent),
            _ => {}
        }
        Verdict::Forward
    });
    set.apply_through(&proxy, std::slice::from_ref(&a), &[]).expect(1);
    assert_eq!(set.live_parent(), None);
    // Without a parent, the members of all kinds are searched.
    set.delete(&[]).expect(0);
    assert_eq!(set.members(), Vec::<String>::new());
}

/// A namespace with an object that a finalizer holds for long, beside a wait for a dependent.
fn assert_namespace_goes_with_a_held_object(delete: bool) {
    let prune = HeldPrune::new();
    let away = fresh("away");
    let space = namespace_object(&away);
    let inside = held(config_map(&away, "inside", "1"));
    prune.apply(&[&space, &inside]);
    let running = if delete {
        prune.set.deletion(Program::new()).args(["--yes"])
    } else {
        prune.set.command(Program::new(), &prune.manifests)
    };
    let mut running = running.args(["-v", "-o", "json", "--timeout=1m"]).start();
    running.wait_for_message("finalizer example.com/held");
    let_go(&prune.user);
    eventually("the next delete", || {
        cluster().live(&prune.base).is_none().then_some(())
    });
    if delete {
        sleep(Duration::from_secs(3));
        let_go(&inside);
    }
    let run = running.finish();
    let_go_if_there(&inside);
    assert_eq!(run.results("failed"), Vec::<String>::new());
    run.expect(0);
}

fn let_go_if_there(object: &Value) {
    if cluster().live(object).is_some() {
        let_go(object);
    }
}

#[test]
fn a_namespace_goes_although_a_finalizer_holds_what_was_pruned_in_it() {
    assert_namespace_goes_with_a_held_object(false);
}

#[test]
fn a_namespace_goes_although_a_finalizer_holds_what_was_deleted_in_it() {
    assert_namespace_goes_with_a_held_object(true);
}

fn assert_one_result_of_a_held_prune(is_saved: bool) {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let kept = config_map(&home, "kept", "1");
    let slow = held(config_map(&home, "slow", "1"));
    let late = last(secret(&home, "late"));
    set.apply(&[kept.clone(), slow.clone(), late.clone()]);
    let manifests = files(std::slice::from_ref(&kept));
    let run = if is_saved {
        let out = Files::new();
        let plan = out.path("plan.json");
        set.invocation(Program::new(), "diff", &["--out"])
            .args([plan.as_os_str(), "-f".as_ref(), manifests.directory().as_os_str()])
            .run()
            .expect(1);
        Program::new()
            .args(["apply", "-v", "-o", "json", "--plan"])
            .args([&plan])
            .run()
    } else {
        set.command(Program::new(), &manifests).args(["-o", "json"]).run()
    };
    let_go_if_there(&slow);
    let run = run.expect(0);
    assert_eq!(run.results("pruned"), identities([&late, &slow]));
    assert_eq!(run.results("skipped"), Vec::<String>::new());
    assert_eq!(run.results("failed"), Vec::<String>::new());
}

#[test]
fn what_was_pruned_and_is_held_by_a_finalizer_has_one_result() {
    assert_one_result_of_a_held_prune(false);
}

#[test]
fn a_saved_plan_with_a_last_prune_succeeds_although_a_finalizer_holds_another_prune() {
    assert_one_result_of_a_held_prune(true);
}

#[test]
fn a_namespace_that_is_pruned_last_goes_although_a_finalizer_holds_what_was_pruned_in_it() {
    let home = namespace("home");
    let away = fresh("away");
    let set = Set::secret(&home, "web");
    let kept = config_map(&home, "kept", "1");
    let slow = held(config_map(&away, "slow", "1"));
    let space = namespace_object(&away);
    let late = last(secret(&away, "late"));
    set.apply(&[kept.clone(), space.clone(), slow.clone(), late.clone()]);
    let run = set.apply_with(std::slice::from_ref(&kept), &["--allow-data-loss"]);
    let_go_if_there(&slow);
    let run = run.expect(0);
    assert_eq!(run.results("pruned"), identities([&late, &slow, &space]));
}

/// An object that another client changes right before its delete, and what is deleted in the next step.
fn assert_kept_if_changed_before_its_delete(change: impl Fn(&Value, &Value) + Send + Sync + 'static) {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let kept = config_map(&home, "kept", "1");
    let base = secret(&home, "base");
    let marked = deployment(&home, "marked", 1);
    set.apply(&[kept.clone(), base.clone(), marked.clone()]);
    let (object, other) = (marked.clone(), base.clone());
    let proxy = Proxy::before_write(1, move || change(&object, &other));
    set.apply_through(&proxy, std::slice::from_ref(&kept), &[]);
    assert_stays(&marked);
    assert_stays(&base);
}

#[test]
fn what_an_object_needs_that_was_found_to_be_kept_is_kept() {
    assert_kept_if_changed_before_its_delete(|marked, base| {
        let annotations = json!({
            "helm.sh/resource-policy": "keep",
            "config.kubernetes.io/depends-on": reference(base),
        });
        cluster().patch(marked, &json!({"metadata": {"annotations": annotations}}));
    });
}

#[test]
fn what_owns_an_object_that_was_found_to_be_kept_is_kept() {
    assert_kept_if_changed_before_its_delete(|marked, base| {
        let annotations = json!({"helm.sh/resource-policy": "keep"});
        cluster().patch(
            marked,
            &json!({"metadata": {"annotations": annotations, "ownerReferences": [owner_reference(base)]}}),
        );
    });
}

#[test]
fn a_namespace_that_is_pruned_last_after_a_wait_goes_with_what_was_pruned_in_it() {
    let home = namespace("home");
    let away = fresh("away");
    let set = Set::secret(&home, "web");
    let kept = config_map(&home, "kept", "1");
    let space = namespace_object(&away);
    let inside = config_map(&away, "inside", "1");
    let late = last(secret(&away, "late"));
    set.apply(&[kept.clone(), space.clone(), inside, late]);
    set.apply_with(std::slice::from_ref(&kept), &["--wait=20s"])
        .expect(0);
}

#[test]
fn a_definition_goes_although_a_finalizer_holds_an_object_of_its_kind() {
    let prune = HeldPrune::new();
    let group = format!("{}.example.com", fresh("g"));
    let kind = definition(&group, "Namespaced");
    let custom = held(custom_resource(&group, Some(&prune.home), "custom"));
    prune.apply(&[&kind, &custom]);
    let running = prune.start(Program::new());
    let_go(&prune.user);
    let run = running.finish();
    let_go_if_there(&custom);
    assert_eq!(run.results("failed"), Vec::<String>::new());
}

/// Namespaces go in the last step. If another one is still going, what comes after it is judged again.
#[test]
fn a_namespace_that_is_going_and_may_not_be_listed_any_more_stops_no_delete() {
    let home = namespace("home");
    let [one, two] = ["one", "two"].map(fresh);
    let set = Set::secret(&home, "web");
    let kept = config_map(&home, "kept", "1");
    let base = secret(&home, "base");
    let spaces = [namespace_object(&one), after(namespace_object(&two), &[&base])];
    let inside = held(config_map(&one, "inside", "1"));
    set.apply(&[
        kept.clone(),
        base.clone(),
        spaces[0].clone(),
        spaces[1].clone(),
        inside.clone(),
    ]);
    let all = || super::rights::rule("*", "*", &["*"]);
    let user = super::rights::user(&[
        Grant::everywhere([super::rights::rule(
            "",
            "namespaces",
            &["get", "list", "patch", "delete"],
        )]),
        Grant::in_namespace(&home, [all()]),
        Grant::in_namespace(&one, [all()]),
        Grant::in_namespace(&two, [all()]),
    ]);
    let manifests = files(std::slice::from_ref(&kept));
    let run = set
        .command(Program::with_kubeconfig(&user.kubeconfig), &manifests)
        .args(["-v", "-o", "json", "--timeout=1m", "--allow-data-loss"])
        .run();
    let_go_if_there(&inside);
    assert!(run.results("pruned").contains(&identities([&base])[0]));
}

/// The delete of `stays` fails, and `change` is called before the finalizer is removed.
fn assert_failed_delete_keeps_base(change: impl Fn(&Value, &Value)) {
    let prune = HeldPrune::new();
    let stays = config_map(&prune.home, "stays", "1");
    prune.apply(&[&stays]);
    let proxy = Proxy::breaking(Fault::InternalError, |sent| is_delete_of(sent, "stays"));
    let running = prune.start(Program::with_kubeconfig(&proxy.kubeconfig()));
    change(&stays, &prune.base);
    let_go(&prune.user);
    running.finish().expect(1);
    assert_stays(&stays);
    assert_stays(&prune.base);
}

pub(super) fn is_delete_of(sent: &Sent, name: &str) -> bool {
    let path = sent.path.split('?').next().unwrap_or_default();
    sent.method == Method::DELETE && path.ends_with(&format!("/{name}"))
}

#[test]
fn what_an_object_has_come_to_need_whose_delete_has_failed_is_kept() {
    assert_failed_delete_keeps_base(|stays, base| {
        let depends_on = json!({"config.kubernetes.io/depends-on": reference(base)});
        cluster().patch(stays, &json!({"metadata": {"annotations": depends_on}}));
    });
}

#[test]
fn what_has_come_to_own_an_object_whose_delete_has_failed_is_kept() {
    assert_failed_delete_keeps_base(|stays, base| {
        let owners = json!({"ownerReferences": [owner_reference(base)]});
        cluster().patch(stays, &json!({"metadata": owners}));
    });
}

#[test]
fn what_owns_a_member_that_another_run_has_added_is_kept() {
    let prune = HeldPrune::new();
    prune.apply(&[]);
    let running = prune.start(Program::new());
    let mut added = config_map(&prune.home, "added", "1");
    added["metadata"]["ownerReferences"] = json!([owner_reference(&prune.base)]);
    let wanted = [prune.kept.clone(), added.clone()];
    prune.set.apply_with(&wanted, &["--prune=false"]).expect(0);
    let_go(&prune.user);
    running.finish();
    assert_stays(&added);
    assert_stays(&prune.base);
}

/// The delete of the first namespace takes longer than a judgement holds.
#[test]
fn a_namespace_that_was_listed_long_ago_is_listed_again() {
    let home = namespace("home");
    let [one, two] = ["one", "two"].map(fresh);
    let set = Set::secret(&home, "web");
    let kept = config_map(&home, "kept", "1");
    let spaces = [namespace_object(&one), namespace_object(&two)];
    set.apply(&[kept.clone(), spaces[0].clone(), spaces[1].clone()]);
    let stranger = config_map(&two, "stranger", "1");
    let created = stranger.clone();
    let is_delete_of_one = move |sent: &Sent| is_delete_of(sent, &one);
    let proxy = Proxy::before_request(is_delete_of_one, move || {
        sleep(Duration::from_secs(11));
        cluster().create(&created);
    });
    set.apply_through(&proxy, std::slice::from_ref(&kept), &["--concurrency=1"]);
    assert_stays(&spaces[1]);
    assert_stays(&stranger);
}
