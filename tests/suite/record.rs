//! What the parent records after a run, what a run that changes nothing writes, and
//! how many requests it says that it sent.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::support::{
    Fault, GROUP_KINDS, ID, NAMESPACES, Proxy, Run, Sent, Set, TOOLING, Verdict, cluster, cluster_role,
    config_map, fresh, identities, namespace, secret, service,
};

#[test]
fn the_record_is_sorted_and_minimal_after_each_run() {
    let [a, b, c] = [namespace("a"), namespace("b"), namespace("c")];
    let set = Set::secret(&b, "web");
    let role = cluster_role(&fresh("role"));
    let wide = [
        service(&c, "web", 80),
        role.clone(),
        config_map(&a, "one", "1"),
        config_map(&b, "two", "1"),
        secret(&c, "three"),
    ];
    set.apply(&wide);
    set.assert_holds(&wide);
    let kinds = "ClusterRole.rbac.authorization.k8s.io,ConfigMap,Secret,Service";
    assert_eq!(set.annotation(GROUP_KINDS).as_deref(), Some(kinds));
    assert_eq!(set.annotation(NAMESPACES), Some(format!("{a},{c}")));

    let narrow = [role];
    set.apply(&narrow);
    set.assert_holds(&narrow);
    assert_eq!(set.annotation(NAMESPACES).as_deref(), Some(""));
}

#[test]
fn a_parent_that_was_made_by_the_first_run_has_its_whole_record() {
    let shop = namespace("shop");
    let set = Set::secret(&shop, "web");
    set.apply(&[config_map(&shop, "one", "1")]);
    let mut parent = set.live_parent().expect("a parent");
    assert_eq!(parent["metadata"]["labels"], json!({ID: set.id}));
    let tooling = concat!("kubectl-applyset/v", env!("CARGO_PKG_VERSION"));
    let applyset_metadata = json!({TOOLING: tooling, GROUP_KINDS: "ConfigMap", NAMESPACES: ""});
    let annotations = parent["metadata"]["annotations"].as_object_mut();
    let annotations = annotations.expect("annotations");
    assert!(annotations.remove("kubectl-applyset/history").is_some());
    assert_eq!(parent["metadata"]["annotations"], applyset_metadata);
}

#[test]
fn a_conflict_that_changes_nothing_leaves_an_exact_record() {
    let [a, b] = [namespace("a"), namespace("b")];
    let set = Set::secret(&a, "web");
    set.apply(&[config_map(&a, "one", "1"), service(&b, "web", 80)]);
    let next = [config_map(&a, "one", "1"), secret(&a, "two")];
    let is_first = AtomicBool::new(true);
    let proxy = Proxy::gated(move |_| {
        if is_first.swap(false, Ordering::SeqCst) {
            Verdict::Break(Fault::Conflict)
        } else {
            Verdict::Forward
        }
    });
    set.apply_through(&proxy, &next, &[]).expect(0);
    set.assert_holds(&next);
}

#[test]
fn a_second_run_changes_nothing() {
    let [a, b] = [namespace("a"), namespace("b")];
    let set = Set::secret(&a, "web");
    let objects = [
        config_map(&a, "one", "1"),
        service(&b, "web", 80),
        secret(&b, "two"),
        cluster_role(&fresh("role")),
    ];
    set.apply(&objects);
    let before = cluster().state(&[&a, &b]);
    let role = cluster().live(&objects[3]);

    let run = set.apply(&objects);

    assert_eq!(run.results("unchanged"), identities(&objects));
    assert_eq!(cluster().state(&[&a, &b]), before);
    assert_eq!(cluster().live(&objects[3]), role);
}

#[test]
fn a_change_of_one_object_leaves_the_parent_and_the_others_alone() {
    let shop = namespace("shop");
    let set = Set::secret(&shop, "web");
    set.apply(&[config_map(&shop, "one", "1"), config_map(&shop, "two", "1")]);
    let record = || [GROUP_KINDS, NAMESPACES, TOOLING].map(|key| set.annotation(key));
    let before = record();
    let two = cluster().live(&config_map(&shop, "two", "1"));

    let run = set.apply(&[config_map(&shop, "one", "2"), config_map(&shop, "two", "1")]);

    assert_eq!(run.results("configured"), [format!("ConfigMap {shop}/one")]);
    assert_eq!(run.results("unchanged"), [format!("ConfigMap {shop}/two")]);
    assert_eq!(record(), before);
    assert_eq!(cluster().live(&config_map(&shop, "two", "1")), two);
}

#[test]
fn a_field_that_left_the_manifest_leaves_the_object() {
    let shop = namespace("shop");
    let set = Set::secret(&shop, "web");
    let mut object = config_map(&shop, "one", "1");
    object["data"]["more"] = json!("2");
    set.apply(std::slice::from_ref(&object));

    set.apply(&[config_map(&shop, "one", "1")]);

    let live = cluster().live(&object).expect("the object");
    assert_eq!(live["data"], json!({"key": "1"}));
}

#[test]
fn drift_is_corrected() {
    let shop = namespace("shop");
    let set = Set::secret(&shop, "web");
    let objects = [service(&shop, "web", 80), config_map(&shop, "one", "1")];
    set.apply(&objects);
    cluster().delete(&objects[1]);
    cluster().patch(&objects[0], &json!({"metadata": {"labels": {"team": "theirs"}}}));

    let run = set.apply(&objects);

    assert_eq!(run.results("created"), identities(&objects[1..]));
    set.assert_holds(&objects);
    let live = cluster().live(&objects[0]).expect("the service");
    assert_eq!(live["metadata"]["labels"]["team"], "theirs");
}

#[test]
fn requests_are_counted_as_they_are_sent() {
    let [a, b] = [namespace("a"), namespace("b")];
    let set = Set::secret(&a, "web");
    let first = [
        config_map(&a, "one", "1"),
        service(&b, "web", 80),
        cluster_role(&fresh("role")),
    ];
    let second = [config_map(&a, "one", "2")];
    let runs: [(&[Value], &[&str]); 5] = [
        (&first, &["--dry-run=server"]),
        (&first, &[]),
        (&first, &[]),
        (&second, &["--dry-run=client"]),
        (&second, &[]),
    ];
    for (objects, flags) in runs {
        let proxy = Proxy::transparent();
        let run = set.apply_through(&proxy, objects, flags).expect(0);
        assert_counted(&run, &proxy.sent());
    }
    set.assert_holds(&second);
}

fn assert_counted(run: &Run, sent: &[Sent]) {
    let lines: Vec<String> = sent
        .iter()
        .map(|sent| format!("{} {}", sent.method, sent.path))
        .collect();
    assert!(!lines.is_empty());
    assert_eq!(run.document()["requests"], lines.len(), "{lines:#?}");
}

#[test]
fn requests_of_a_run_that_fails_are_counted_too() {
    let shop = namespace("shop");
    let set = Set::secret(&shop, "web");
    let proxy = Proxy::transparent();
    let run = set
        .apply_through(&proxy, &[service(&shop, "web", 0)], &[])
        .expect(1);
    assert_counted(&run, &proxy.sent());
}
