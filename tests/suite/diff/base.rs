//! `diff --base`: what the manifests change, compared with others, and the drift of the cluster apart.

use serde_json::{Value, json};

use super::{command, diff, executable, files, result};
use crate::support::{
    Files, Program, Proxy, Run, Set, cluster, config_map, deployment, named, namespace, secret, service, with,
};

/// `diff` of `next` with `base`.
pub(super) fn diff_with_base(
    program: Program,
    set: &Set,
    next: &[Value],
    base: &[Value],
    flags: &[&str],
) -> Run {
    let (next, base) = (files(next), files(base));
    command(program, set, &next)
        .args(["--base"])
        .args([base.directory()])
        .args(flags)
        .run()
}

pub(super) fn document(set: &Set, next: &[Value], base: &[Value], code: i32) -> Run {
    diff_with_base(Program::new(), set, next, base, &["-o", "json"]).expect(code)
}

/// The drift of a document, as `NAME ACTION`.
pub(super) fn drift(run: &Run) -> Vec<String> {
    let document = run.document();
    let drift = document["drift"].as_array().expect("drift").iter();
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    drift
        .map(|object| format!("{} {}", text(&object["name"]), text(&object["action"])))
        .collect()
}

pub(super) fn changes(run: &Run, name: &str) -> Value {
    result(run, name)["changes"].clone()
}

#[test]
fn drift_is_apart_from_what_the_manifests_change() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let of = |name: &str, value: &str| config_map(&home, name, value);
    let base = ["changed", "edited", "equal", "lost", "removed"].map(|name| of(name, "1"));
    set.apply(&[&base[..], &[of("leftover", "1")]].concat());
    for object in [&base[0], &base[1]] {
        cluster().patch(object, &json!({"data": {"key": "by hand", "other": "by hand"}}));
    }
    cluster().delete(&base[3]);
    let state = cluster().state(&[&home]);

    // Without a change, all of it is drift.
    let run = document(&set, &base, &base, 0);
    let refused = [
        "changed failed",
        "edited failed",
        "leftover pruned",
        "lost created",
    ];
    assert_eq!(drift(&run), refused);
    let expected = [
        "changed configured",
        "edited configured",
        "leftover pruned",
        "lost created",
    ];
    assert_eq!(
        run.results("unchanged"),
        ["equal", "removed"].map(|name| format!("ConfigMap {home}/{name}"))
    );
    assert_eq!(run.document()["summary"]["pruned"], 0);

    let next = [
        of("changed", "2"),
        base[1].clone(),
        base[2].clone(),
        base[3].clone(),
        of("new", "1"),
    ];
    let run = document(&set, &next, &base, 1);
    // Server-side apply refuses to take the field back, so the change of the manifest would fail. It is shown beside.
    assert_eq!(run.results("failed"), [format!("ConfigMap {home}/changed")]);
    let change = json!([{"field": "/data/key", "before": "1", "after": "2"}]);
    assert_eq!(changes(&run, "changed"), change);
    assert_eq!(run.results("pruned"), [format!("ConfigMap {home}/removed")]);
    assert_eq!(drift(&run), refused);
    let flags = ["--force-conflicts", "-o", "json"];
    let run = diff_with_base(Program::new(), &set, &next, &base, &flags).expect(1);
    assert_eq!(run.results("configured"), [format!("ConfigMap {home}/changed")]);
    assert_eq!(changes(&run, "changed"), change);
    assert_eq!(run.results("created"), [format!("ConfigMap {home}/new")]);
    assert_eq!(run.results("pruned"), [format!("ConfigMap {home}/removed")]);
    assert_eq!(drift(&run), expected);
    assert_eq!(cluster().state(&[&home]), state);
    // Without a base, it is one list.
    let plain = diff(&set, &next, &["--force-conflicts", "-o", "json"]).expect(1);
    assert_eq!(plain.results("configured").len(), 2);
    assert_eq!(plain.document()["drift"], Value::Null);
}

#[test]
fn every_output_marks_drift() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let base = [config_map(&home, "one", "1"), config_map(&home, "two", "1")];
    set.apply(&base);
    cluster().patch(&base[0], &json!({"data": {"key": "by hand"}}));
    let next = [base[0].clone(), config_map(&home, "two", "2")];
    let line = format!("drift, not from these manifests: configmap/one in namespace {home}: changed");
    let run = |flags: &[&str]| {
        let flags = [flags, &["--force-conflicts"]].concat();
        diff_with_base(Program::new(), &set, &next, &base, &flags).expect(1)
    };
    let text = run(&[]);
    assert!(text.stdout.contains(&format!("\n# {line}\n")), "{}", text.stdout);
    assert_eq!(text.stdout.matches("diff -u -N").count(), 1, "{}", text.stdout);
    assert!(!text.stdout.contains("by hand"), "{}", text.stdout);
    let names = run(&["-o", "name"]);
    assert_eq!(names.stdout, "configmap/two\n");
    assert!(
        names.stderr.contains(&format!("note: {line}\n")),
        "{}",
        names.stderr
    );
    let page = run(&["-o", "markdown"]);
    assert!(page.stdout.contains(": 1 to change\n"), "{}", page.stdout);
    assert!(
        page.stdout
            .contains("<summary>1 object with drift, not from these manifests</summary>"),
        "{}",
        page.stdout
    );
    let show = Files::new().with("show", "#!/bin/sh\nls \"$2\"\nexit 1\n");
    executable(&show, "show");
    let external = Program::new().env("KUBECTL_EXTERNAL_DIFF", show.path("show"));
    let shown = diff_with_base(external, &set, &next, &base, &["--force-conflicts"]).expect(1);
    assert_eq!(shown.stdout, format!("v1.ConfigMap.{home}.two\n"));
    assert!(
        shown.stderr.contains(&format!("note: {line}\n")),
        "{}",
        shown.stderr
    );
}

#[test]
fn the_exit_code_is_about_the_manifests_unless_drift_is_chosen() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let base = [config_map(&home, "one", "1"), config_map(&home, "two", "1")];
    set.apply(&base);
    cluster().patch(&base[0], &json!({"data": {"key": "by hand"}}));
    let changed = [base[0].clone(), config_map(&home, "two", "2")];
    let table = [
        (&base[..], ["drift", "change", "prune"], [1, 0, 0]),
        (&changed[..], ["drift", "change", "prune"], [1, 1, 0]),
        (&base[..1], ["drift", "change", "prune"], [1, 0, 1]),
    ];
    for (next, words, codes) in table {
        for (word, code) in words.into_iter().zip(codes) {
            let flag = format!("--exit-code-on={word}");
            diff_with_base(Program::new(), &set, next, &base, &[&flag]).expect(code);
        }
    }
    set.apply_with(&base, &["--force-conflicts"]).expect(0);
    diff_with_base(Program::new(), &set, &base, &base, &["--exit-code-on=drift"]).expect(0);
}

#[test]
fn what_the_base_never_deployed_is_compared_by_its_manifests() {
    let home = namespace("home");
    let set = Set::config_map(&home, "web");
    // The server makes up addresses and labels of these in each dry run.
    let job = |image: &str| {
        let container = json!({"name": "a", "image": image});
        let template = json!({"spec": {"restartPolicy": "Never", "containers": [container]}});
        with(
            named("batch/v1", "Job", Some(&home), "job"),
            &json!({"spec": {"template": template}}),
        )
    };
    let parent = config_map(&home, "web", "1");
    let base = [
        parent.clone(),
        service(&home, "web", 80),
        job("a"),
        config_map(&home, "removed", "1"),
    ];
    let next = [
        parent,
        service(&home, "web", 81),
        job("b"),
        config_map(&home, "new", "1"),
    ];
    let run = document(&set, &base, &base, 0);
    let missing = ["removed created", "web created", "job created", "web created"];
    assert_eq!(drift(&run), missing);
    let run = document(&set, &next, &base, 1);
    assert_eq!(
        changes(&run, "web"),
        json!([{"field": "/spec/ports/0/port", "before": 80, "after": 81}])
    );
    let image = "/spec/template/spec/containers/0/image";
    assert_eq!(
        changes(&run, "job"),
        json!([{"field": image, "before": "a", "after": "b"}])
    );
    assert_eq!(run.results("created"), [format!("ConfigMap {home}/new")]);
    assert_eq!(run.results("pruned"), [format!("ConfigMap {home}/removed")]);
    assert_eq!(run.reason("removed"), "not a member of the set yet");
    let missing = ["removed skipped", "web created", "job created", "web created"];
    assert_eq!(drift(&run), missing);
}

#[test]
fn what_the_cluster_has_before_the_merge_is_shown_all_the_same() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let base = [config_map(&home, "changed", "1"), deployment(&home, "web", 1)];
    let next = [
        config_map(&home, "changed", "2"),
        deployment(&home, "web", 1),
        config_map(&home, "new", "1"),
    ];
    // The manifests of the pull request are applied already.
    set.apply(&next);
    let run = document(&set, &next, &base, 1);
    assert_eq!(
        changes(&run, "changed"),
        json!([{"field": "/data/key", "before": "1", "after": "2"}])
    );
    assert_eq!(run.results("created"), [format!("ConfigMap {home}/new")]);
    let difference = result(&run, "new")["diff"].as_str().expect("a text").to_owned();
    assert!(difference.contains("\n+  key: \"1\"\n"), "{difference}");
    assert_eq!(drift(&run), ["changed configured", "new skipped"]);
    assert_eq!(run.results("unchanged"), [format!("Deployment.apps {home}/web")]);
}

#[test]
fn a_manifest_that_says_the_same_in_other_words_changes_nothing() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let quota = |cpu: &str| {
        with(
            named("v1", "ResourceQuota", Some(&home), "quota"),
            &json!({"spec": {"hard": {"cpu": cpu}}}),
        )
    };
    set.apply(&[quota("1")]);
    let run = document(&set, &[quota("1000m")], &[quota("1")], 0);
    assert_eq!(run.results("unchanged"), [format!("ResourceQuota {home}/quota")]);
    assert_eq!(drift(&run), [""; 0]);
}

#[test]
fn a_base_that_would_fail_is_drift_and_the_manifests_are_compared() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let base = [config_map(&home, "one", "1"), config_map(&home, "removed", "1")];
    set.apply(&base);
    cluster().patch(&base[0], &json!({"data": {"key": "by hand"}}));
    // The new manifest leaves the field to the other manager.
    let next = with(
        named("v1", "ConfigMap", Some(&home), "one"),
        &json!({"data": {"new": "1"}}),
    );
    let run = document(&set, &[next], &base, 1);
    assert_eq!(
        changes(&run, "one"),
        json!([{"field": "/data/key", "before": "1"}, {"field": "/data/new", "after": "1"}])
    );
    assert_eq!(drift(&run), ["one failed"]);
    assert_eq!(run.results("pruned"), [format!("ConfigMap {home}/removed")]);
}

#[test]
fn members_that_are_kept_or_refused_are_judged_as_always() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let marked = with(
        config_map(&home, "marked", "1"),
        &json!({"metadata": {"annotations": {"helm.sh/resource-policy": "keep"}}}),
    );
    let claim = with(
        named("v1", "PersistentVolumeClaim", Some(&home), "disk"),
        &json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}),
    );
    let base = [marked, claim, config_map(&home, "one", "1")];
    set.apply(&base);
    let next = &base[2..];
    let run = document(&set, next, &base, 1);
    assert_eq!(run.results("skipped"), [format!("ConfigMap {home}/marked")]);
    assert_eq!(run.document()["refusals"][0]["object"]["name"], "disk");
    assert_eq!(
        run.results("pruned"),
        [format!("PersistentVolumeClaim {home}/disk")]
    );
    // The refused prune is not one of the manifests, but apply would refuse all the same.
    let run = document(&set, next, next, 1);
    assert_eq!(run.document()["refusals"][0]["object"]["name"], "disk");
}

#[test]
fn equal_manifests_cost_the_dry_runs_of_the_plan_and_no_more() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let base = ["a", "b", "c"].map(|name| config_map(&home, name, "1"));
    set.apply(&base);
    for object in &base[..2] {
        cluster().patch(object, &json!({"data": {"key": "by hand"}}));
    }
    for mode in ["server", "client"] {
        let flag = format!("--dry-run={mode}");
        let requests = |run: &dyn Fn(Program)| {
            let proxy = Proxy::transparent();
            run(Program::with_kubeconfig(&proxy.kubeconfig()));
            let mut sent: Vec<String> = proxy
                .sent()
                .iter()
                .filter(|sent| sent.path.contains("/configmaps/"))
                .map(|sent| format!("{} {}", sent.method, sent.path))
                .collect();
            sent.sort();
            sent
        };
        let plain = requests(&|program| {
            super::diff_by(program, &set, &base, &[&flag]).expect(1);
        });
        let with_base = requests(&|program| {
            diff_with_base(program, &set, &base, &base, &[&flag]).expect(0);
        });
        assert_eq!(with_base, plain, "{mode}");
    }
}

#[test]
fn a_client_dry_run_compares_with_the_base_too() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let base = [config_map(&home, "one", "1"), config_map(&home, "two", "1")];
    set.apply(&base);
    cluster().patch(&base[1], &json!({"data": {"other": "by hand"}}));
    let next = [config_map(&home, "one", "2"), config_map(&home, "two", "2")];
    let proxy = Proxy::transparent();
    let program = Program::with_kubeconfig(&proxy.kubeconfig());
    let flags = ["--dry-run=client", "-o", "json"];
    let run = diff_with_base(program, &set, &next, &base, &flags).expect(1);
    assert!(proxy.sent().iter().all(|sent| !sent.is_write()));
    for name in ["one", "two"] {
        assert_eq!(
            changes(&run, name),
            json!([{"field": "/data/key", "before": "1", "after": "2"}])
        );
    }
}

#[test]
fn values_of_secrets_are_hidden_in_both_manifests() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let of = |value: &str| with(secret(&home, "one"), &json!({"stringData": {"password": value}}));
    for step in ["new", "live"] {
        for flags in [&[][..], &["-o", "json"], &["-o", "markdown"]] {
            let run = diff_with_base(Program::new(), &set, &[of("after-1")], &[of("before-1")], flags);
            let run = run.expect(1);
            for value in ["after-1", "before-1", "YWZ0ZXItMQ", "YmVmb3JlLTE"] {
                assert!(
                    !run.stdout.contains(value) && !run.stderr.contains(value),
                    "{step} {run:?}"
                );
            }
            assert!(run.stdout.contains("*** (before)"), "{step} {run:?}");
        }
        set.apply(&[of("before-1")]);
    }
}

#[test]
fn the_parent_is_shown_only_if_its_manifest_differs() {
    let home = namespace("home");
    let set = Set::config_map(&home, "web");
    let [base, next] =
        ["1", "2"].map(|value| [config_map(&home, "web", value), config_map(&home, "one", "1")]);
    set.apply(&base);
    let parent = |next: &[Value], code: i32| {
        let run = diff_with_base(Program::new(), &set, next, &base, &[]).expect(code);
        run.stdout.contains("-  key: \"1\"\n+  key: \"2\"\n")
    };
    assert!(!parent(&base, 0));
    assert!(parent(&next, 1));
    // Another kind among the members changes the record alone.
    let run = diff_with_base(Program::new(), &set, &[service(&home, "web", 80)], &[], &[]).expect(1);
    assert_eq!(run.stdout.matches("diff -u -N").count(), 1, "{}", run.stdout);
}

#[test]
fn a_wrong_base_is_an_error_with_its_line() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let next = files(&[config_map(&home, "one", "1")]);
    let run = |base: &Files, flags: &[&str]| {
        let file = base.path("base.yaml");
        command(Program::new(), &set, &next)
            .args(["--base", file.to_str().expect("a path")])
            .args(flags)
            .run()
    };
    let base = |text: &str| Files::new().with("base.yaml", text);
    let unknown = "---\napiVersion: example.com/v1\nkind: Unknown\nmetadata:\n  name: a\n";
    for (text, line) in [("\n\na: [", "base.yaml:3"), (unknown, "base.yaml:2")] {
        let failed = run(&base(text), &[]).expect(2);
        assert!(failed.stderr.contains(line), "{}", failed.stderr);
        assert_eq!(failed.stdout, "");
    }
    let valid = base("");
    run(&valid, &["--out", "plan.json"]).expect(2);
    command(Program::new(), &set, &next)
        .args(["--base", "no-such-file"])
        .run()
        .expect(2);
    let twice = Program::new()
        .args(["diff", "web", "-n", &home, "-f", "-", "--base", "-"])
        .input("")
        .run()
        .expect(2);
    assert!(twice.stderr.contains("standard input"), "{}", twice.stderr);
    // Nothing was there before.
    run(&valid, &[]).expect(1);
}
