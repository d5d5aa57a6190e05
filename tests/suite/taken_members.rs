//! Members that another set takes right before they are applied without their version: at least one run says so and
//! fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use http::Method;
use serde_json::{Value, json};

use super::contested::before_shared;
use crate::support::{
    Proxy, Run, Sent, Set, Verdict, Watch, cluster, config_map, identities, kubectl_apply, namespace,
};

/// Applies a change of `shared`, a member of `late`, with these flags, and lets `early` take it right before.
fn taken_before_a_change(late: &Set, early: &Set, taking: &[&str], flags: &[&str]) -> Run {
    let home = &late.namespace;
    late.apply_with(&[config_map(home, "shared", "1")], flags)
        .expect(0);
    let early = Set::secret(home, early.parent["metadata"]["name"].as_str().expect("a name"));
    let taking: Vec<String> = taking.iter().map(|&flag| flag.to_owned()).collect();
    let theirs = config_map(home, "shared", "theirs");
    let proxy = before_shared(move || {
        let taking: Vec<&str> = taking.iter().map(String::as_str).collect();
        drop(early.apply_with(std::slice::from_ref(&theirs), &taking).expect(0));
    });
    late.apply_through(&proxy, &[config_map(home, "shared", "2")], flags)
}

#[test]
fn a_member_that_another_set_takes_from_one_of_kubectl_is_reported() {
    const KUBECTL: &str = "--tooling=kubectl/v1.36.3";
    for (taking, flags) in [
        (&["--take-ownership"][..], &[KUBECTL, "--force-conflicts"][..]),
        (&["--take-ownership", KUBECTL], &[KUBECTL]),
    ] {
        let home = namespace("home");
        let [early, late] = ["early", "late"].map(|name| Set::secret(&home, name));

        let run = taken_before_a_change(&late, &early, taking, flags).expect(1);

        let shared = config_map(&home, "shared", "2");
        assert_eq!(run.results("failed"), identities([&shared]), "{taking:?}");
        assert!(run.errors()[0].contains(&early.id), "{}", run.stderr);
        assert_eq!(late.unrecorded(), Vec::<String>::new());
        assert_eq!(early.unrecorded(), Vec::<String>::new());
    }
}

#[test]
fn a_field_written_right_before_its_object_is_taken_stays_with_its_manager() {
    for flags in [&[][..], &["--field-manager=ci"]] {
        let home = namespace("home");
        let [early, late] = ["early", "late"].map(|name| Set::secret(&home, name));
        early
            .apply_with(&[config_map(&home, "shared", "1")], flags)
            .expect(0);
        let theirs = config_map(&home, "shared", "theirs");
        let taken = theirs.clone();
        let proxy = before_shared(move || {
            cluster().apply_as("another-tool", &taken);
        });

        let run = late
            .apply_through(&proxy, &[config_map(&home, "shared", "2")], &["--take-ownership"])
            .expect(1);

        assert_eq!(run.results("failed"), identities([&theirs]), "{flags:?}");
        assert!(run.stderr.contains("another-tool"), "{}", run.stderr);
        early.assert_holds(std::slice::from_ref(&theirs));
        assert_eq!(cluster().live(&theirs).expect("it")["data"]["key"], "theirs");
    }
}

#[test]
fn a_member_of_a_set_of_kubectl_that_others_write_is_applied() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let flags = ["--tooling=kubectl/v1.36.3"];
    let [old, new] = ["1", "2"].map(|value| config_map(&home, "shared", value));
    set.apply_with(std::slice::from_ref(&old), &flags).expect(0);
    let proxy = before_shared(move || {
        cluster().patch(
            &old,
            &json!({"metadata": {"annotations": {"example.com/beat": "1"}}}),
        );
    });

    let run = set
        .apply_through(&proxy, std::slice::from_ref(&new), &flags)
        .expect(0);

    assert_eq!(run.results("configured"), identities([&new]));
    assert_eq!(run.reason("shared"), "value differs: data.key");
    set.assert_holds(&[new]);
}

#[test]
fn a_member_that_others_write_all_the_time_is_not_taken_back_unnoticed() {
    /// Writes the object before each apply of it, and has it taken by another set later than the first times.
    struct Busy(Value, AtomicUsize, Set);
    impl Watch for Busy {
        fn before(&self, sent: &Sent, _: usize) -> Verdict {
            if sent.is_write() && sent.path.contains("/configmaps/shared") {
                let number = self.1.fetch_add(1, Ordering::SeqCst);
                let annotations = json!({"example.com/beat": number.to_string()});
                cluster().patch(&self.0, &json!({"metadata": {"annotations": annotations}}));
                if number == 4 {
                    let flags = ["--take-ownership", "--force-conflicts"];
                    drop(self.2.apply_with(std::slice::from_ref(&self.0), &flags).expect(0));
                }
            }
            Verdict::Forward
        }
    }
    let home = namespace("home");
    let [early, late] = ["early", "late"].map(|name| Set::secret(&home, name));
    let id = early.id.clone();
    let [old, new] = ["1", "2"].map(|value| config_map(&home, "shared", value));
    late.apply(std::slice::from_ref(&old));
    let proxy = Proxy::watched(Arc::new(Busy(old, AtomicUsize::new(0), early)));

    let run = late
        .apply_through(&proxy, std::slice::from_ref(&new), &[])
        .expect(1);

    assert_eq!(run.results("failed"), identities([&new]));
    assert!(run.errors()[0].contains(&id), "{}", run.stderr);
    assert_eq!(late.unrecorded(), Vec::<String>::new());
}

/// Acts once, right before the write of `shared` that follows the migration of its fields.
fn after_migration(act: impl Fn() + Send + Sync + 'static) -> Proxy {
    let has_migrated = AtomicBool::new(false);
    Proxy::before_request(
        move |sent| {
            let is_write = sent.method == Method::PATCH && sent.path.contains("/configmaps/shared");
            let migrates = String::from_utf8_lossy(&sent.body).contains("managedFields");
            is_write && has_migrated.fetch_or(migrates, Ordering::SeqCst)
        },
        act,
    )
}

#[test]
fn an_object_that_another_set_takes_after_its_migration_is_not_taken_back() {
    let home = namespace("home");
    let [early, late] = ["early", "late"].map(|name| Set::secret(&home, name));
    kubectl_apply(&[config_map(&home, "shared", "1")], &["-n", &home]).expect(0);
    let theirs = config_map(&home, "shared", "theirs");
    let set = Set::secret(&home, "early");
    let proxy = after_migration(move || {
        set.apply_with(
            std::slice::from_ref(&theirs),
            &["--take-ownership", "--force-conflicts"],
        )
        .expect(0);
    });
    let ours = config_map(&home, "shared", "2");
    let run = late
        .apply_through(&proxy, std::slice::from_ref(&ours), &[])
        .expect(1);
    assert_eq!(run.results("failed"), identities([&ours]));
    assert!(run.errors()[0].contains(&early.id), "{}", run.stderr);
    early.assert_holds(&[config_map(&home, "shared", "theirs")]);
}

#[test]
fn an_object_that_a_controller_writes_after_its_migration_is_applied() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let old = config_map(&home, "shared", "1");
    for flags in [&[][..], &["--take-ownership"]] {
        kubectl_apply(std::slice::from_ref(&old), &["-n", &home]).expect(0);
        let written = old.clone();
        let proxy = after_migration(move || {
            let beat = json!({"metadata": {"annotations": {"example.com/beat": "1"}}});
            cluster().patch(&written, &beat);
        });
        let new = config_map(&home, "shared", "2");
        set.apply_through(&proxy, std::slice::from_ref(&new), flags)
            .expect(0);
        set.assert_holds(&[new]);
        cluster().delete(&old);
    }
}

#[test]
fn an_object_that_is_left_to_kubectl_is_applied_without_a_version() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let object = config_map(&home, "shared", "1");
    kubectl_apply(std::slice::from_ref(&object), &["-n", &home]).expect(0);
    set.apply_with(std::slice::from_ref(&object), &["--tooling=kubectl/v1.36.3"])
        .expect(0);
    let live = cluster().live(&object).expect("it");
    let annotation = &live["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"];
    let applied = annotation.as_str().expect("the annotation stays");
    assert!(!applied.contains("resourceVersion"), "{applied}");
}
