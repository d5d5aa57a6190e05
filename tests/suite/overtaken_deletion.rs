//! `delete` while another run works on the same set: whatever that run puts into the set
//! stays recorded, wherever it is, and the set is not said to be gone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::Method;
use serde_json::{Value, json};

use crate::support::{
    Fault, Program, Proxy, Sent, Set, Verdict, Watch, cluster, config_map, custom_resource, definition,
    fresh, identities, namespace, namespace_object, secret, service, with,
};

/// Deletes the set, and applies these objects before one of its writes.
fn delete_while_applying(set: &Arc<Set>, write: usize, objects: &[Value]) -> crate::support::Run {
    let (other, wanted) = (Arc::clone(set), objects.to_vec());
    let proxy = Proxy::before_write(write, move || {
        other.apply(&wanted);
    });
    set.delete_with(Program::with_kubeconfig(&proxy.kubeconfig()), &[])
}

#[test]
fn members_of_kinds_and_in_namespaces_that_were_not_recorded_before() {
    for write in 0..2 {
        let group = format!("{}.example.com", fresh("g"));
        let (kind, object) = (
            definition(&group, "Cluster"),
            custom_resource(&group, None, "new"),
        );
        let [a, b] = [namespace("a"), namespace("b")];
        let one = config_map(&a, "one", "1");
        let new_place = service(&b, "new", 80);
        for added in [vec![new_place], vec![kind, object]] {
            let set = Arc::new(Set::secret(&a, &fresh("web")));
            set.apply(std::slice::from_ref(&one));
            let wanted = if write == 0 {
                [std::slice::from_ref(&one), &added].concat()
            } else {
                added.clone()
            };

            let run = delete_while_applying(&set, write, &wanted).expect(1);

            assert_eq!(set.members(), identities(&added), "{}", run.stderr);
            assert_eq!(set.unrecorded(), Vec::<String>::new(), "{}", run.stderr);
            set.delete(&["--wait"]).expect(0);
            assert_eq!(set.live_parent(), None);
        }
    }
}

#[test]
fn a_record_that_another_run_has_widened_is_not_narrowed() {
    let [a, b] = [namespace("a"), namespace("b")];
    let set = Arc::new(Set::secret(&a, "web"));
    let kept = with(
        config_map(&a, "kept", "1"),
        &json!({"metadata": {"annotations": {"helm.sh/resource-policy": "keep"}}}),
    );
    let going = secret(&a, "going");
    set.apply(&[kept.clone(), going.clone()]);
    let added = service(&b, "new", 80);
    delete_while_applying(&set, 0, &[kept.clone(), going, added.clone()]).expect(1);
    assert_eq!(set.members(), identities([&kept, &added]));
    assert_eq!(set.unrecorded(), Vec::<String>::new());
}

#[test]
fn a_parent_that_only_loses_its_record_gets_it_back() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    cluster().create(&secret(&home, "web"));
    set.apply_with(&[config_map(&home, "one", "1")], &["--take-over-set", "--yes"])
        .expect(0);
    let newcomer = config_map(&home, "new", "1");
    let (other, wanted) = (set.clone(), newcomer.clone());
    let proxy = Proxy::before_write(1, move || drop(other.apply(std::slice::from_ref(&wanted))));
    set.delete_with(Program::with_kubeconfig(&proxy.kubeconfig()), &[])
        .expect(1);
    assert_eq!(set.members(), identities([&newcomer]));
    assert_eq!(set.unrecorded(), Vec::<String>::new());
}

#[test]
fn the_namespace_of_a_parent_that_was_replaced_stays_a_member() {
    for is_parent_again in [true, false] {
        let home = fresh("home");
        let (own, one) = (namespace_object(&home), config_map(&home, "one", "1"));
        let set = Set::secret(&home, "web");
        set.apply(&[own.clone(), one]);
        let (other, parent) = (set.clone(), set.parent.clone());
        let proxy = Proxy::before_write(1, move || {
            cluster().delete(&parent);
            if is_parent_again {
                other.apply(&[service(&home, "new", 80)]);
            } else {
                cluster().create(&secret(&home, "web"));
            }
        });

        let run = set
            .delete_with(Program::with_kubeconfig(&proxy.kubeconfig()), &[])
            .expect(1);

        assert!(set.members().contains(&identities([&own])[0]), "{}", run.stderr);
        if is_parent_again {
            assert_eq!(set.unrecorded(), Vec::<String>::new(), "{}", run.stderr);
        } else {
            assert!(run.stderr.contains("has replaced its parent"), "{}", run.stderr);
        }
        cluster().delete(&own);
    }
}

#[test]
fn a_namespace_that_stays_without_its_parent_has_one_result() {
    let home = fresh("home");
    let own = namespace_object(&home);
    let set = Set::secret(&home, "web");
    set.apply(&[own.clone(), config_map(&home, "one", "1")]);
    let parent = set.parent.clone();
    let proxy = Proxy::before_write(1, move || {
        cluster().create(&config_map(&home, "theirs", "1"));
        cluster().delete(&parent);
    });
    let run = set
        .delete_with(Program::with_kubeconfig(&proxy.kubeconfig()), &[])
        .expect(1);
    assert_eq!(
        run.results("skipped"),
        identities([&own, &set.parent]),
        "{}",
        run.stderr
    );
    cluster().delete(&own);
}

/// Fails all lists once the parent is deleted.
struct BlindAfterwards(AtomicBool);

impl Watch for BlindAfterwards {
    fn before(&self, sent: &Sent, _: usize) -> Verdict {
        if sent.method == Method::DELETE && sent.path.contains("/secrets/") {
            self.0.store(true, Ordering::SeqCst);
        } else if sent.method == Method::GET && self.0.load(Ordering::SeqCst) {
            return Verdict::Break(Fault::InternalError);
        }
        Verdict::Forward
    }
}

#[test]
fn nothing_is_listed_once_the_parent_is_deleted() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    set.apply(&[config_map(&home, "one", "1")]);
    let proxy = Proxy::watched(Arc::new(BlindAfterwards(AtomicBool::new(false))));
    let run = set
        .delete_with(Program::with_kubeconfig(&proxy.kubeconfig()), &[])
        .expect(0);
    assert_eq!(set.live_parent(), None);
    assert!(
        run.results("deleted").contains(&identities([&set.parent])[0]),
        "{}",
        run.stderr
    );
}
