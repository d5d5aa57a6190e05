//! Owner references that other clients add between the plan of a run and its first DELETE.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use http::Method;
use serde_json::Value;

use super::{ALLOWED, assert_collected, diff, family, give, kept, owners, sentinel};
use crate::support::{
    Fault, Files, Program, Proxy, Sent, Set, cluster, config_map, deployment, identities, named, namespace,
    namespace_object, objects_file, service,
};

/// Acts once all reads of a plan are done: before the write with which the run begins.
fn after_reading(act: impl Fn() + Send + Sync + 'static) -> Proxy {
    Proxy::before_write(0, act)
}

/// A proxy that gives the object this owner once the plan is made.
pub(super) fn giving(object: &Value, owner: &Value) -> Proxy {
    let (object, owner) = (object.clone(), owner.clone());
    after_reading(move || give(&object, &[&owner]))
}

/// Two members, of which none owns the other.
fn strangers() -> (Set, Value, Value) {
    let (set, a, b) = family();
    give(&b, &[]);
    (set, a, b)
}

#[test]
fn an_owner_of_a_desired_object() {
    for flags in [&[][..], &ALLOWED] {
        let (set, a, b) = strangers();
        let desired = std::slice::from_ref(&b);
        let sentinel = sentinel(&set.namespace, &a);

        let run = set.apply_through(&giving(&b, &a), desired, flags);

        if flags.is_empty() {
            let run = run.expect(1);
            assert_eq!(run.results("failed"), identities([&a]), "{}", run.stderr);
            assert!(run.stderr.contains("configmap/b"), "{}", run.stderr);
            assert_eq!(owners(&b), 1);
            set.assert_holds(&[a.clone(), b.clone()]);
            set.apply_with(desired, &[]).expect(3);
        } else {
            let run = run.expect(0);
            assert_eq!(run.results("pruned"), identities([&a]));
            assert!(
                run.stderr.contains("the garbage collector keeps: configmap/b"),
                "{}",
                run.stderr
            );
            assert_collected(&sentinel);
            assert_eq!(owners(&b), 0);
            set.assert_holds(desired);
        }
    }
}

#[test]
fn an_owner_of_a_kept_object() {
    for flags in [&[][..], &ALLOWED] {
        let home = namespace("home");
        let set = Set::secret(&home, "web");
        let [a, c] = ["a", "c"].map(|name| config_map(&home, name, "1"));
        let b = kept(config_map(&home, "b", "1"));
        set.apply(&[a.clone(), b.clone(), c.clone()]);
        let desired = std::slice::from_ref(&c);
        let sentinel = sentinel(&home, &a);

        let run = set.apply_through(&giving(&b, &a), desired, flags);

        assert_eq!(run.results("skipped"), identities([&b]), "{}", run.stderr);
        if flags.is_empty() {
            let run = run.expect(1);
            assert_eq!(run.results("failed"), identities([&a]), "{}", run.stderr);
            set.assert_holds(&[a, b, c]);
        } else {
            run.expect(0);
            assert_collected(&sentinel);
            assert_eq!(owners(&b), 0);
            set.assert_holds(&[b, c]);
        }
    }
}

#[test]
fn an_owner_of_an_object_of_another_kind_through_one_that_goes_with_it() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let [a, between] = ["a", "between"].map(|name| config_map(&home, name, "1"));
    let b = named("v1", "ServiceAccount", Some(&home), "b");
    set.apply(&[a.clone(), between.clone(), b.clone()]);
    give(&between, &[&a]);

    let run = set
        .apply_through(&giving(&b, &between), std::slice::from_ref(&b), &[])
        .expect(1);

    assert_eq!(run.results("failed"), identities([&a]), "{}", run.stderr);
    set.assert_holds(&[a, between, b]);
}

#[test]
fn an_owner_of_the_parent() {
    for flags in [&[][..], &ALLOWED] {
        let (set, a, b) = strangers();
        let desired = std::slice::from_ref(&b);
        let sentinel = sentinel(&set.namespace, &a);

        let run = set.apply_through(&giving(&set.parent, &a), desired, flags);

        if flags.is_empty() {
            let run = run.expect(1);
            assert_eq!(run.results("failed"), identities([&a]), "{}", run.stderr);
            set.assert_holds(&[a, b]);
        } else {
            run.expect(0);
            assert_collected(&sentinel);
            assert_eq!(owners(&set.parent), 0);
            set.assert_holds(desired);
        }
    }
}

#[test]
fn an_owner_of_an_object_that_a_deleted_set_keeps() {
    for flags in [&[][..], &ALLOWED] {
        let home = namespace("home");
        let set = Set::secret(&home, "web");
        let (a, b) = (config_map(&home, "a", "1"), kept(config_map(&home, "b", "1")));
        set.apply(&[a.clone(), b.clone()]);
        let sentinel = sentinel(&home, &a);
        let proxy = giving(&b, &a);

        let run = set.delete_with(Program::with_kubeconfig(&proxy.kubeconfig()), flags);

        if flags.is_empty() {
            let run = run.expect(1);
            assert_eq!(run.results("failed"), identities([&a]), "{}", run.stderr);
            set.assert_holds(&[a, b]);
        } else {
            run.expect(0);
            assert_collected(&sentinel);
            assert_eq!(owners(&b), 0);
            set.assert_holds(&[b]);
        }
    }
}

#[test]
fn a_saved_plan_detaches_nothing_that_it_does_not_name() {
    let (set, a, b) = strangers();
    let files = Files::new().with("manifests/b.yaml", &objects_file(std::slice::from_ref(&b)));
    let file = files.path("plan.json");
    let file = file.to_str().expect("a path");
    diff(&set, &files, &["--out", file, ALLOWED[0]]).expect(1);
    let proxy = giving(&b, &a);

    let run = Program::with_kubeconfig(&proxy.kubeconfig())
        .args(["apply", "-o", "json", "--plan", file])
        .run()
        .expect(1);

    assert_eq!(run.results("failed"), identities([&a]), "{}", run.stderr);
    assert_eq!(owners(&b), 1);
    set.assert_holds(&[a, b]);
}

/// The GETs of a run after it has begun, without their queries.
fn reads_after_beginning(proxy: &Proxy) -> Vec<String> {
    let sent = proxy.sent();
    let begun = sent.iter().position(Sent::is_write);
    let later = &sent[begun.expect("a write") + 1..];
    let gets = later.iter().filter(|sent| sent.method == Method::GET);
    let path = |sent: &Sent| sent.path.split('?').next().unwrap_or_default().to_owned();
    let mut paths: Vec<String> = gets.map(path).collect();
    paths.sort();
    paths
}

#[test]
fn the_second_look_takes_one_list_for_each_kind_and_namespace() {
    let [home, away] = ["home", "away"].map(namespace);
    let set = Set::secret(&home, "web");
    let [a, b, c] = ["a", "b", "c"].map(|name| config_map(&home, name, "1"));
    let account = named("v1", "ServiceAccount", Some(&home), "one");
    let far = service(&away, "far", 80);
    set.apply(&[a, b.clone(), c.clone(), account.clone(), far.clone()]);
    let proxy = after_reading(|| ());
    set.apply_through(&proxy, &[b.clone(), c.clone(), account.clone(), far.clone()], &[])
        .expect(0);
    let lists = [&away, &home].map(|namespace| {
        ["configmaps", "serviceaccounts", "services"]
            .map(|kind| format!("/api/v1/namespaces/{namespace}/{kind}"))
    });
    let mut reads = lists.concat();
    reads.push(format!("/api/v1/namespaces/{home}/secrets/web"));
    reads.sort();
    assert_eq!(reads_after_beginning(&proxy), reads);

    // Where nothing is pruned, nothing is read again: the write of the history shows that the record is
    // as it was.
    let changed = config_map(&home, "c", "2");
    let proxy = after_reading(|| ());
    set.apply_through(&proxy, &[b, changed, account, far], &[])
        .expect(0);
    assert_eq!(reads_after_beginning(&proxy), Vec::<String>::new());
}

#[test]
fn a_run_that_prunes_takes_few_requests_more_than_deletes() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let of_each_kind = |name: &str| {
        [
            config_map(&home, name, "1"),
            deployment(&home, name, 0),
            service(&home, name, 80),
            named("v1", "ServiceAccount", Some(&home), name),
        ]
    };
    let desired = of_each_kind("desired");
    set.apply(&[of_each_kind("pruned"), desired.clone()].concat());
    let run = set.apply(&desired);
    assert_eq!(run.results("pruned").len(), 4);
    let requests = run.document()["requests"].as_u64().expect("a number");
    // Three of them are for the parent: the name of the user, the beginning and the end.
    assert!(requests <= 4 + 18, "{requests}");
}

#[test]
fn nothing_goes_if_owner_references_cannot_be_read_again() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let (a, b) = (config_map(&home, "a", "1"), kept(config_map(&home, "b", "1")));
    let c = config_map(&home, "c", "1");
    set.apply(&[a.clone(), b.clone(), c.clone()]);
    // Once a plan is made, reads fail.
    let proxy = || {
        let is_planned = AtomicBool::new(false);
        Proxy::breaking(Fault::InternalError, move |sent| {
            if sent.is_write() {
                is_planned.store(true, Ordering::SeqCst);
            }
            is_planned.load(Ordering::SeqCst) && sent.path.contains("/configmaps?")
        })
    };
    let program = |proxy: &Proxy| Program::with_kubeconfig(&proxy.kubeconfig());
    let applied = set.apply_through(&proxy(), std::slice::from_ref(&c), &[]);
    let deleted = set.delete_with(program(&proxy()), &[]);
    for run in [applied, deleted] {
        let run = run.expect(1);
        assert!(
            run.stderr.contains("objects of the set cannot be read again"),
            "{}",
            run.stderr
        );
        assert!(
            run.results("skipped").contains(&identities([&a])[0]),
            "{}",
            run.stderr
        );
        set.assert_holds(&[a.clone(), b.clone(), c.clone()]);
    }
}

#[test]
fn a_parent_stays_with_its_namespace_if_its_owner_references_cannot_be_read_again() {
    for flags in [&[][..], &["--wait=20s"]] {
        let home = namespace("home");
        let set = Set::secret(&home, "web");
        let place = namespace_object(&home);
        set.apply(std::slice::from_ref(&place));
        let begun = AtomicBool::new(false);
        // Such an answer is asked for once more.
        let faults = AtomicUsize::new(2);
        let proxy = Proxy::breaking(Fault::InternalError, move |sent| {
            let is_parent = sent.path.contains("/secrets/web");
            // The run has begun once it has written the parent.
            let has_begun = begun.load(Ordering::SeqCst);
            if is_parent && sent.is_write() {
                begun.store(true, Ordering::SeqCst);
            }
            let is_read = is_parent && has_begun && sent.method == Method::GET;
            let one_less = |left: usize| left.checked_sub(1);
            is_read
                && faults
                    .fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less)
                    .is_ok()
        });
        let program = Program::with_kubeconfig(&proxy.kubeconfig());

        let run = set.delete_with(program, &[&ALLOWED[..], flags].concat());

        let run = run.expect(1);
        assert!(run.stderr.contains("cannot be read again"), "{}", run.stderr);
        assert!(run.results("deleted").is_empty(), "{}", run.stderr);
        assert!(set.live_parent().is_some());
        let live = cluster().live(&place).expect("the namespace");
        assert_eq!(live["metadata"]["deletionTimestamp"], Value::Null);
    }
}

#[test]
fn a_member_is_reported_once_if_owner_references_cannot_be_read_again() {
    let (set, a, b) = family();
    let proxy = {
        let is_planned = AtomicBool::new(false);
        Proxy::breaking(Fault::InternalError, move |sent| {
            if sent.is_write() {
                is_planned.store(true, Ordering::SeqCst);
            }
            is_planned.load(Ordering::SeqCst) && sent.path.contains("/configmaps?")
        })
    };

    let run = set.apply_through(&proxy, std::slice::from_ref(&b), &ALLOWED);

    let run = run.expect(1);
    let results = run.document()["results"].as_array().expect("results").len();
    assert_eq!(results, 2, "{}", run.stderr);
    set.assert_holds(&[a, b]);
}
