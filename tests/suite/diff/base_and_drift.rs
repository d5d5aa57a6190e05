//! `diff --base` in a cluster that has drifted: the change of the manifests stays what it is.

use serde_json::{Value, json};

use super::base::{changes, diff_with_base, document, drift};
use super::{diff, result};
use crate::support::{
    Program, Set, cluster, config_map, definition, deployment, fresh, named, namespace, service, with,
};

fn autoscaler(home: &str, version: &str) -> Value {
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    with(
        named(
            &format!("autoscaling/{version}"),
            "HorizontalPodAutoscaler",
            Some(home),
            "web",
        ),
        &json!({"spec": {"maxReplicas": 10, "scaleTargetRef": target}}),
    )
}

fn without_replicas(mut object: Value) -> Value {
    object["spec"].as_object_mut().expect("a spec").remove("replicas");
    object
}

fn two_keys(home: &str, key: &str, other: &str) -> Value {
    with(config_map(home, "one", key), &json!({"data": {"other": other}}))
}

#[test]
fn equal_manifests_of_equal_objects_change_nothing() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let base = [config_map(&home, "one", "1"), service(&home, "web", 80)];
    set.apply(&base);
    for flag in ["--apply-unchanged", "--dry-run=client"] {
        let run = diff_with_base(Program::new(), &set, &base, &base, &[flag, "-o", "json"]).expect(0);
        assert_eq!(run.results("unchanged").len(), 2, "{flag}");
        assert_eq!(drift(&run), [""; 0], "{flag}");
    }
    let text = diff_with_base(
        Program::new(),
        &set,
        &base[..0],
        &base[..0],
        &["--allow-prune-all"],
    )
    .expect(0);
    assert!(
        text.stderr.contains("the manifests change nothing"),
        "{}",
        text.stderr
    );
}

#[test]
fn objects_of_a_kind_that_changes_are_not_created_by_it() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let group = fresh("example.com");
    let definition = definition(&group, "Namespaced");
    let widget = named(&format!("{group}/v1"), "Widget", Some(&home), "one");
    let base = [definition.clone(), widget.clone()];
    set.apply(&base);
    let described = with(
        definition,
        &json!({"metadata": {"annotations": {"example.com/note": "new"}}}),
    );
    let run = document(&set, &[described, widget], &base, 1);
    assert_eq!(run.results("unchanged"), [format!("Widget.{group} {home}/one")]);
    assert_eq!(run.results("created"), [""; 0]);
    assert_eq!(drift(&run), [""; 0]);
}

#[test]
fn a_drifted_field_hides_no_change_of_the_manifest() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let base = [two_keys(&home, "1", "1")];
    set.apply(&base);
    cluster().patch(&base[0], &json!({"data": {"key": "hot"}}));
    let change = |field: &str, after: &str| json!([{"field": field, "before": "1", "after": after}]);

    // The conflict stops both manifests.
    let run = document(&set, &[two_keys(&home, "1", "2")], &base, 1);
    assert_eq!(run.results("failed"), [format!("ConfigMap {home}/one")]);
    assert_eq!(changes(&run, "one"), change("/data/other", "2"));
    assert!(result(&run, "one")["error"].is_string(), "{:#}", run.document());
    assert_eq!(drift(&run), ["one failed"]);

    // It stops that of the base alone.
    let run = document(&set, &[two_keys(&home, "hot", "1")], &base, 1);
    assert_eq!(run.results("configured"), [format!("ConfigMap {home}/one")]);
    assert_eq!(changes(&run, "one"), change("/data/key", "hot"));
    assert_eq!(drift(&run), ["one failed"]);
    let text = diff_with_base(Program::new(), &set, &[two_keys(&home, "hot", "1")], &base, &[]).expect(1);
    assert!(
        text.stdout.contains("\n--- BASE/v1.ConfigMap."),
        "{}",
        text.stdout
    );
    assert!(text.stdout.contains(": would fail: "), "{}", text.stdout);
}

#[test]
fn a_failure_hides_no_other_change_of_the_manifests() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let dependent = |value: &str| {
        let on = format!("/namespaces/{home}/ConfigMap/drifted");
        with(
            config_map(&home, "dependent", value),
            &json!({"metadata": {"annotations": {"config.kubernetes.io/depends-on": on}}}),
        )
    };
    let base = [
        config_map(&home, "drifted", "1"),
        dependent("1"),
        config_map(&home, "removed", "1"),
    ];
    set.apply(&[&base[..], &[config_map(&home, "leftover", "1")]].concat());
    cluster().patch(&base[0], &json!({"data": {"key": "by hand"}}));
    let next = [config_map(&home, "drifted", "2"), dependent("2")];
    let run = document(&set, &next, &base, 1);
    assert_eq!(run.results("failed"), [format!("ConfigMap {home}/drifted")]);
    assert_eq!(run.results("configured"), [format!("ConfigMap {home}/dependent")]);
    assert_eq!(run.results("pruned"), [format!("ConfigMap {home}/removed")]);
    assert_eq!(run.results("skipped"), [""; 0]);
    assert_eq!(drift(&run), ["drifted failed", "leftover pruned"]);
}

#[test]
fn the_parent_is_compared_with_the_base_like_any_object() {
    let home = namespace("home");
    let set = Set::config_map(&home, "web");
    let of = |value: &str| [config_map(&home, "web", value), config_map(&home, "one", "1")];
    let run = |next: &[Value], base: &[Value], flags: &[&str], code: i32| {
        diff_with_base(Program::new(), &set, next, base, flags).expect(code)
    };
    // The manifest of the pull request is applied already.
    set.apply(&of("2"));
    let text = run(&of("2"), &of("1"), &[], 1);
    assert!(
        text.stdout.contains("-  key: \"1\"\n+  key: \"2\"\n"),
        "{}",
        text.stdout
    );
    assert_eq!(drift(&document(&set, &of("2"), &of("1"), 1)), ["web configured"]);
    // A parent that differs from equal manifests is drift, also if its apply would fail.
    assert_eq!(drift(&document(&set, &of("1"), &of("1"), 0)), ["web configured"]);
    cluster().patch(&of("2")[0], &json!({"data": {"key": "by hand"}}));
    let drifted = run(&of("2"), &of("2"), &["-o", "json"], 0);
    assert_eq!(drift(&drifted), ["web failed"]);
    run(&of("2"), &of("2"), &["--exit-code-on=drift"], 1);
    let next = [&of("2")[..], &[config_map(&home, "two", "1")]].concat();
    assert_eq!(
        document(&set, &next, &of("2"), 1).results("created"),
        [format!("ConfigMap {home}/two")]
    );
}

#[test]
fn each_side_leaves_replicas_to_its_own_autoscalers() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let scaled = without_replicas(deployment(&home, "web", 4));
    let base = [scaled.clone(), autoscaler(&home, "v2")];
    set.apply(&[deployment(&home, "web", 4)]);
    set.apply(&base);
    let replicas = |after: u32| json!([{"field": "/spec/replicas", "before": 4, "after": after}]);

    let unscaled = document(&set, &base[..1], &base, 1);
    assert_eq!(changes(&unscaled, "web"), replicas(1));
    assert_eq!(drift(&unscaled), [""; 0]);
    let counted = document(&set, &[deployment(&home, "web", 3), base[1].clone()], &base, 1);
    assert_eq!(changes(&counted, "web"), replicas(3));
    assert_eq!(drift(&counted), [""; 0]);
    let equal = document(&set, &base, &base, 0);
    assert_eq!(drift(&equal), [""; 0]);
}

#[test]
fn without_drift_a_change_is_that_of_a_plain_diff() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let labels = json!({"metadata": {"labels": {"tier": "new"}}});
    let quota = |cpu: &str| {
        with(
            named("v1", "ResourceQuota", Some(&home), "quota"),
            &json!({"spec": {"hard": {"cpu": cpu}}}),
        )
    };
    let base = [
        two_keys(&home, "1", "1"),
        service(&home, "service", 80),
        deployment(&home, "deployment", 2),
        with(
            autoscaler(&home, "v1"),
            &json!({"metadata": {"name": "autoscaler"}}),
        ),
        quota("1"),
    ];
    set.apply(&base);
    let next = [
        config_map(&home, "one", "2"),
        service(&home, "service", 81),
        with(deployment(&home, "deployment", 3), &labels),
        with(
            autoscaler(&home, "v2"),
            &json!({"metadata": {"name": "autoscaler"}}),
        ),
        quota("1000m"),
    ];
    let plain = diff(&set, &next, &["-o", "json"]).expect(1);
    let with_base = document(&set, &next, &base, 1);
    assert_eq!(drift(&with_base), [""; 0]);
    for name in ["one", "service", "deployment", "autoscaler", "quota"] {
        let [mut with_base, mut plain] = [&with_base, &plain].map(|run| result(run, name));
        // Each run has a directory of its own.
        for result in [&mut with_base, &mut plain] {
            result["source"].take();
        }
        assert_eq!(with_base, plain, "{name}");
    }
}

#[test]
fn a_removed_object_that_is_not_a_member_is_not_said_to_be_deleted() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let base = [config_map(&home, "one", "1"), config_map(&home, "never", "1")];
    set.apply(&base[..1]);
    let run = document(&set, &base[..1], &base, 1);
    assert_eq!(run.reason("never"), "not a member of the set yet");
    let flags = ["--prune=false", "-o", "json"];
    let run = diff_with_base(Program::new(), &set, &base[..1], &base, &flags).expect(0);
    assert_eq!(run.results("pruned"), [""; 0]);
}
