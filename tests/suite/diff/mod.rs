//! `diff` reports what `apply` then does, and writes nothing.

mod absent;
mod base;
mod base_and_drift;
mod exit_code_on;
mod external;
mod ownership;
mod read_only;
mod rights;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use controlplane::ControlPlane;
use serde_json::{Value, json};

use crate::support::{
    Files, PART_OF, Program, Proxy, Run, Set, TOOLING, Verdict, cluster, cluster_role, config_map, fresh,
    identities, kubectl_apply, named, namespace, namespace_object, objects_file, secret, service, with,
};

const WORDS: [&str; 6] = [
    "created",
    "configured",
    "unchanged",
    "pruned",
    "skipped",
    "failed",
];

/// `diff` of the objects, to be run.
fn command(program: Program, set: &Set, files: &Files) -> Program {
    program
        .args(["diff", &set.reference, "-n", &set.namespace, "-f"])
        .args([files.directory()])
}

fn files(objects: &[Value]) -> Files {
    Files::new().with("objects.yaml", &objects_file(objects))
}

fn diff(set: &Set, objects: &[Value], flags: &[&str]) -> Run {
    diff_by(Program::new(), set, objects, flags)
}

fn executable(files: &Files, name: &str) {
    fs::set_permissions(files.path(name), fs::Permissions::from_mode(0o755)).expect("a program");
}

fn diff_by(program: Program, set: &Set, objects: &[Value], flags: &[&str]) -> Run {
    command(program, set, &files(objects)).args(flags).run()
}

fn outcome(run: &Run) -> [Vec<String>; 6] {
    WORDS.map(|word| run.results(word))
}

fn result(run: &Run, name: &str) -> Value {
    let document = run.document();
    let results = document["results"].as_array().expect("results");
    let result = results.iter().find(|result| result["name"] == name);
    result
        .unwrap_or_else(|| panic!("no {name} in {document:#}"))
        .clone()
}

/// Compares and then applies, and asserts that the comparison wrote nothing, reported
/// each object what was done to it, and of each changed field what it became.
#[track_caller]
fn assert_predicted(set: &Set, namespaces: &[&str], objects: &[Value], flags: &[&str]) -> Run {
    let state = cluster().state(namespaces);
    let members = cluster().members(&set.id);
    let proxy = Proxy::transparent();
    let predicted = diff_by(
        Program::with_kubeconfig(&proxy.kubeconfig()),
        set,
        objects,
        &[flags, &["-o", "json"]].concat(),
    )
    .expect(1);
    assert_eq!(cluster().state(namespaces), state);
    assert_eq!(cluster().members(&set.id), members);
    for sent in proxy.sent() {
        // A DELETE says so in its body.
        let body: Value = serde_json::from_slice(&sent.body).unwrap_or_default();
        let is_dry = sent.path.contains("dryRun=All") || body["dryRun"] == json!(["All"]);
        assert!(!sent.is_write() || is_dry, "{} {}", sent.method, sent.path);
    }
    let document = predicted.document();
    assert_eq!(document["command"], "diff");
    assert_eq!(document["refusals"], json!([]));

    let done = set.apply_with(objects, flags).expect(0);
    assert_eq!(outcome(&predicted), outcome(&done));
    for result in document["results"].as_array().expect("results") {
        assert_changed(result);
    }
    let record = &document["record"]["after"];
    let list = |field: &str| {
        let entries = record[field].as_array().expect("a list").iter();
        entries.filter_map(Value::as_str).collect::<Vec<_>>().join(",")
    };
    let recorded = |key: &str| set.annotation(key).expect("an annotation");
    assert_eq!(list("groupKinds"), recorded(crate::support::GROUP_KINDS));
    assert_eq!(list("additionalNamespaces"), recorded(crate::support::NAMESPACES));
    diff(set, objects, flags).expect(0);
    predicted
}

/// Asserts that the live object is what was predicted of it.
#[track_caller]
fn assert_changed(result: &Value) {
    let api_version = match result["group"].as_str() {
        Some("") | None => result["version"].as_str().expect("a version").to_owned(),
        Some(group) => format!("{group}/{}", result["version"].as_str().expect("a version")),
    };
    let text = |field: &str| result[field].as_str();
    let object = named(
        &api_version,
        text("kind").expect("a kind"),
        text("namespace"),
        text("name").expect("a name"),
    );
    for change in result["changes"].as_array().expect("changes") {
        let live = cluster().live(&object).expect("a live object");
        let field = change["field"].as_str().expect("a pointer");
        if live["kind"] != "Secret" {
            assert_eq!(live.pointer(field), change.get("after"), "{field} of {object}");
        }
    }
}

#[test]
fn a_first_run_is_predicted() {
    let [a, b] = [namespace("a"), namespace("b")];
    let set = Set::secret(&a, "web");
    let role = fresh("role");
    let objects = [
        config_map(&a, "one", "1"),
        service(&b, "web", 80),
        cluster_role(&role),
    ];
    // One is there already, and becomes a member.
    cluster().create(&config_map(&a, "taken", "1"));
    let objects = [objects.as_slice(), &[config_map(&a, "taken", "1")]].concat();
    let run = assert_predicted(&set, &[&a, &b], &objects, &[]);
    assert_eq!(run.document()["record"]["before"], json!(null));
    assert_eq!(run.results("configured"), [format!("ConfigMap {a}/taken")]);
    let created = result(&run, "web")["diff"].as_str().expect("a text").to_owned();
    assert!(created.starts_with(&format!(
        "diff -u -N LIVE/v1.Service.{b}.web MERGED/v1.Service.{b}.web\n"
    )));
    // The server's defaults are in it, and nothing that it makes up.
    assert!(created.contains("+  sessionAffinity: None\n"), "{created}");
    for noise in ["uid", "creationTimestamp", "managedFields", "resourceVersion"] {
        assert!(!created.contains(noise), "{noise} in {created}");
    }
}

#[test]
fn a_run_that_creates_changes_keeps_prunes_and_skips_is_predicted() {
    let [a, b] = [namespace("a"), namespace("b")];
    let set = Set::secret(&a, "web");
    let kept = with(
        config_map(&b, "protected", "1"),
        &json!({"metadata": {"annotations": {"helm.sh/resource-policy": "keep"}}}),
    );
    set.apply(&[
        config_map(&a, "kept", "1"),
        config_map(&a, "changed", "1"),
        config_map(&b, "dropped", "1"),
        service(&a, "web", 80),
        kept,
    ]);
    let next = [
        config_map(&a, "kept", "1"),
        config_map(&a, "changed", "2"),
        service(&a, "web", 81),
        service(&a, "new", 80),
    ];
    let run = assert_predicted(&set, &[&a, &b], &next, &[]);
    assert_eq!(
        result(&run, "changed")["changes"],
        json!([{"field": "/data/key", "before": "1", "after": "2"}])
    );
    let gone = result(&run, "dropped")["diff"].clone();
    assert!(
        gone.as_str().is_some_and(|text| text.contains("-  key: \"1\"\n")),
        "{gone}"
    );
    assert_eq!(result(&run, "protected")["action"], "skipped");
    assert!(run.reason("protected").contains("helm.sh/resource-policy"));
}

#[test]
fn without_differences_there_is_nothing_to_print() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects = [
        config_map(&home, "one", "1"),
        service(&home, "web", 80),
        secret(&home, "two"),
    ];
    set.apply(&objects);
    let proxy = Proxy::transparent();
    let run = diff_by(Program::with_kubeconfig(&proxy.kubeconfig()), &set, &objects, &[]).expect(0);
    assert_eq!(run.stdout, "");
    assert!(!proxy.sent().iter().any(crate::support::Sent::is_write));
    // The objects that did not change cost nothing.
    let again = set.apply(&objects).document()["requests"].clone();
    let shown = diff(&set, &objects, &["-o", "json"]).expect(0).document();
    assert_eq!(shown["requests"], again);
    assert_eq!(shown["record"]["before"], shown["record"]["after"]);
}

#[test]
fn the_text_is_what_kubectl_prints_but_for_noise() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    set.apply(&[config_map(&home, "one", "1"), config_map(&home, "two", "1")]);
    let next = [config_map(&home, "one", "2"), config_map(&home, "two", "1")];
    let name = format!("v1.ConfigMap.{home}.one");
    let run = diff(&set, &next, &[]).expect(1);
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert_eq!(
        lines[..7],
        [
            &format!("diff -u -N LIVE/{name} MERGED/{name}"),
            &format!("--- LIVE/{name}"),
            &format!("+++ MERGED/{name}"),
            "@@ -1,6 +1,6 @@",
            " apiVersion: v1",
            " data:",
            "-  key: \"1\"",
        ]
    );
    assert!(!run.stdout.contains(".two"), "{}", run.stdout);
    assert!(!run.stdout.contains('\x1b'));
    let painted = diff(&set, &next, &["--color=always"]).expect(1);
    assert!(
        painted.stdout.contains("\x1b[31m-  key: \"1\"\x1b[0m\n"),
        "{}",
        painted.stdout
    );
    let names = diff(&set, &next, &["-o", "name"]).expect(1);
    assert_eq!(names.stdout, "configmap/one\n");
    let quiet = diff(&set, &next, &["-q"]).expect(1);
    assert_eq!((quiet.stdout, quiet.stderr.as_str()), (run.stdout, ""));
}

#[test]
fn values_of_secrets_are_shown_nowhere() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let of = |name: &str, data: &Value| with(named("v1", "Secret", Some(&home), name), data);
    let first = [
        of("one", &json!({"data": {"same": "c2FtZQ==", "other": "YmVmb3Jl"}})),
        of("gone", &json!({"data": {"key": "Z29uZQ=="}})),
        of("typed", &json!({"stringData": {"key": "typed-before"}})),
    ];
    set.apply(&first);
    // Client-side apply leaves a copy of the values in an annotation.
    kubectl_apply(&[of("applied", &json!({"data": {"key": "YmVmb3Jl"}}))], &[]).expect(0);
    let next = [
        of("one", &json!({"data": {"same": "c2FtZQ==", "other": "YWZ0ZXI="}})),
        of("new", &json!({"data": {"key": "bmV3"}})),
        of("typed", &json!({"stringData": {"key": "typed-after"}})),
        of("applied", &json!({"data": {"key": "YWZ0ZXI="}})),
        namespace_object(&fresh("away")),
    ];
    let away = next[4]["metadata"]["name"].as_str().expect("a name");
    let unseen = with(
        named("v1", "Secret", Some(away), "unseen"),
        &json!({"stringData": {"key": "unseen-value"}}),
    );
    let next = [next.as_slice(), &[unseen]].concat();
    let pattern = [
        "c2FtZQ",
        "YmVmb3Jl",
        "Z29uZQ",
        "YWZ0ZXI",
        "bmV3",
        "typed-before",
        "typed-after",
        "unseen-value",
        "dHlwZWQ",
    ];
    let listing = Files::new().with("show", "#!/bin/sh\ncat \"$1\"/* \"$2\"/*\nexit 1\n");
    executable(&listing, "show");
    let external = listing.path("show").display().to_string();
    for flags in [&[][..], &["-o", "json"], &["-o", "yaml"], &["-v"]] {
        let run = diff(&set, &next, flags).expect(1);
        for value in pattern {
            assert!(
                !run.stdout.contains(value) && !run.stderr.contains(value),
                "{value} in {run:?}"
            );
        }
    }
    let run = command(
        Program::new().env("KUBECTL_EXTERNAL_DIFF", &external),
        &set,
        &files(&next),
    )
    .run()
    .expect(1);
    assert!(run.stdout.contains("name: unseen"), "{}", run.stdout);
    for value in pattern {
        assert!(!run.stdout.contains(value), "{value} in {}", run.stdout);
    }
    let run = diff(&set, &next, &["-o", "json"]).expect(1);
    assert_eq!(
        result(&run, "one")["changes"],
        json!([{"field": "/data/other", "before": "*** (before)", "after": "*** (after)"}])
    );
}

#[test]
fn a_parent_among_the_manifests_is_compared_with_its_data() {
    let home = namespace("home");
    let set = Set::config_map(&home, "web");
    let member = config_map(&home, "one", "1");
    set.apply(&[config_map(&home, "web", "1"), member.clone()]);
    let next = [config_map(&home, "web", "2"), member];
    let run = diff(&set, &next, &[]).expect(1);
    assert!(
        run.stdout.contains("-  key: \"1\"\n+  key: \"2\"\n"),
        "{}",
        run.stdout
    );
    assert_eq!(run.stdout.matches("diff -u -N").count(), 1, "{}", run.stdout);
    let reported = "note: configmap/web, the set's parent, would be configured\n";
    assert!(run.stderr.contains(reported), "{}", run.stderr);
    let parent = cluster().live(&set.parent).expect("a parent");
    assert_eq!(parent["data"]["key"], "1");
    set.apply(&next);
    diff(&set, &next, &[]).expect(0);
}

#[test]
fn what_apply_refuses_is_shown_and_counts() {
    let home = namespace("home");
    let [set, other] = [Set::secret(&home, "web"), Set::secret(&home, "other")];
    let claim = with(
        named("v1", "PersistentVolumeClaim", Some(&home), "disk"),
        &json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}),
    );
    other.apply(&[config_map(&home, "theirs", "1")]);
    set.apply(&[claim.clone(), config_map(&home, "one", "1")]);
    // Else it stays recorded until its protection lets go of it.
    cluster().patch(&claim, &json!({"metadata": {"finalizers": null}}));
    let state = cluster().state(&[&home]);
    let next = [config_map(&home, "one", "1"), config_map(&home, "theirs", "1")];
    let run = diff(&set, &next, &["-o", "json"]).expect(1);
    assert_eq!(cluster().state(&[&home]), state);
    set.apply_with(&next, &[]).expect(3);
    let document = run.document();
    let refused: Vec<&str> = document["refusals"]
        .as_array()
        .expect("refusals")
        .iter()
        .filter_map(|refusal| refusal["object"]["name"].as_str())
        .collect();
    assert_eq!(refused, ["theirs", "disk"]);
    // A prune that needs consent is a prune.
    for (name, action) in refused.into_iter().zip(["failed", "pruned"]) {
        let result = result(&run, name);
        assert_eq!(result["action"], action);
        assert!(
            result["error"].as_str().is_some_and(|error| error.contains(name)),
            "{result:#}"
        );
    }
    assert_eq!(run.results("unchanged"), [format!("ConfigMap {home}/one")]);
    let reported = diff(&set, &next, &[]).expect(1);
    assert!(
        reported.stdout.contains("-kind: PersistentVolumeClaim"),
        "{}",
        reported.stdout
    );
    // The flags that lift the refusals are those of apply.
    assert_predicted(&set, &[&home], &next, &["--take-ownership", "--allow-data-loss"]);
    // No manifest at all.
    let nothing = Files::new().with("empty.yaml", "");
    let empty = command(Program::new(), &set, &nothing)
        .args(["-o", "json"])
        .run()
        .expect(1);
    assert_eq!(empty.document()["refusals"][0]["object"], json!(null));
    assert_eq!(empty.results("pruned").len(), 2);
}

#[test]
fn what_the_server_rejects_is_shown_and_counts() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    set.apply(&[config_map(&home, "one", "1"), config_map(&home, "gone", "1")]);
    cluster().apply_as("rival", &config_map(&home, "one", "rival"));
    let next = [config_map(&home, "one", "2"), service(&home, "bad", 0)];
    let run = diff(&set, &next, &["-o", "json"]).expect(1);
    assert_eq!(
        run.results("failed"),
        [format!("ConfigMap {home}/one"), format!("Service {home}/bad")]
    );
    assert!(
        run.warnings()
            .iter()
            .any(|warning| warning.contains("nothing would be pruned"))
    );
    assert_eq!(run.results("skipped"), [format!("ConfigMap {home}/gone")]);
    assert_eq!(run.document()["summary"]["pruned"], 0);
    assert!(!run.stdout.contains("\"diff\": \"-"), "{}", run.stdout);
    let shown = diff(&set, &next, &[]).expect(1);
    assert!(!shown.stdout.contains("gone"), "{}", shown.stdout);
    let page = diff(&set, &next, &["-o", "markdown"]).expect(1);
    assert!(!page.stdout.contains("to prune"), "{}", page.stdout);
    // A run does the same, and so does its dry run.
    for flags in [&["--dry-run=server"][..], &[]] {
        let run = set.apply_with(&next, flags).expect(1);
        assert_eq!(run.results("skipped"), [format!("ConfigMap {home}/gone")]);
        assert_eq!(run.results("pruned"), [""; 0]);
        assert_eq!(run.reason("gone"), "not pruned: an object could not be applied");
    }
    let forced = diff(&set, &next[..1], &["-o", "json", "--force-conflicts"]).expect(1);
    assert_eq!(forced.results("configured"), [format!("ConfigMap {home}/one")]);
}

#[test]
fn where_nothing_can_be_known_it_is_an_error() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects = [config_map(&home, "one", "1")];
    set.apply(&objects);
    diff(&set, &[config_map("no-such-namespace", "one", "1")], &[]).expect(2);
    cluster().patch(
        &set.parent,
        &json!({"metadata": {"labels": {crate::support::ID: "other"}}}),
    );
    let run = diff(&set, &objects, &["-o", "json"]).expect(3);
    assert_eq!(run.document()["error"]["exitCode"], 3);
    assert_eq!(run.document()["results"], json!([]));
}

#[test]
fn a_set_of_kubectl_is_compared_without_being_taken_over() {
    for way in [&["--server-side"][..], &[]] {
        let home = namespace("home");
        let set = Set::secret(&home, "web");
        let applyset = format!("--applyset={}", set.reference);
        let arguments = [&["--prune", &applyset, "-n", &home], way].concat();
        kubectl_apply(
            &[config_map(&home, "one", "1"), config_map(&home, "gone", "1")],
            &arguments,
        )
        .expect(0);
        let tooling = set.annotation(TOOLING).expect("a tooling");
        let state = cluster().state(&[&home]);
        let next = [config_map(&home, "one", "2")];

        let run = diff(&set, &next, &["-o", "json"]).expect(1);
        assert_eq!(cluster().state(&[&home]), state);
        let document = run.document();
        assert_eq!(document["record"]["before"]["tooling"], tooling);
        let refusal = document["refusals"][0]["message"]
            .as_str()
            .expect("a refusal")
            .to_owned();
        assert!(refusal.contains(&tooling), "{refusal}");
        assert_eq!(run.results("configured"), [format!("ConfigMap {home}/one")]);
        assert_eq!(run.results("pruned"), [format!("ConfigMap {home}/gone")]);
        set.apply_with(&next, &[]).expect(3);

        assert_predicted(&set, &[&home], &next, &["--tooling", &tooling]);
        assert_eq!(set.annotation(TOOLING), Some(tooling));
        let taken = [config_map(&home, "one", "3")];
        let run = diff(&set, &taken, &["--take-over-set", "-o", "json"]).expect(1);
        assert_eq!(run.document()["refusals"], json!([]));
        let done = set.apply_with(&taken, &["--take-over-set", "--yes"]).expect(0);
        assert_eq!(outcome(&run), outcome(&done));
    }
}

#[test]
fn fields_that_leave_with_client_side_apply_are_predicted() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let first = with(
        config_map(&home, "one", "1"),
        &json!({"data": {"old": "1"}, "metadata": {"labels": {"old": "1"}}}),
    );
    let mut ports = service(&home, "web", 80);
    ports["spec"]["ports"] = json!([
        {"name": "a", "port": 80, "protocol": "TCP"}, {"name": "b", "port": 81, "protocol": "TCP"},
    ]);
    ports["spec"]["sessionAffinity"] = json!("ClientIP");
    kubectl_apply(&[first, ports.clone()], &[]).expect(0);
    ports["spec"]["ports"] = json!([{"name": "a", "port": 80, "protocol": "TCP"}]);
    ports["spec"]
        .as_object_mut()
        .expect("a spec")
        .remove("sessionAffinity");
    let next = [config_map(&home, "one", "2"), ports];
    let run = assert_predicted(&set, &[&home], &next, &[]);
    let live = cluster().live(&next[0]).expect("a live object");
    assert_eq!(live["data"], json!({"key": "2"}));
    let fields = |name: &str| {
        let changes = result(&run, name)["changes"].clone();
        let changes = changes.as_array().expect("changes").iter();
        changes
            .map(|change| change["field"].as_str().expect("a pointer").to_owned())
            .collect::<Vec<_>>()
    };
    assert!(
        fields("one").contains(&"/data/old".to_owned()),
        "{:?}",
        fields("one")
    );
    assert!(
        fields("web").contains(&"/spec/sessionAffinity".to_owned()),
        "{:?}",
        fields("web")
    );
}

#[test]
fn a_write_during_the_comparison_is_not_a_difference() {
    let home = namespace("home");
    let set = Set::config_map(&home, "web");
    let objects = [config_map(&home, "web", "1"), config_map(&home, "one", "1")];
    set.apply(&objects);
    let place = home.clone();
    // Between the read of an object and its dry run, and of the parent and its own.
    let proxy = Proxy::gated(move |dry_runs| {
        let name = match dry_runs {
            0 => "one",
            1 => "web",
            _ => return Verdict::Forward,
        };
        cluster().patch(&config_map(&place, name, "1"), &json!({"data": {"other": "1"}}));
        Verdict::Forward
    });
    let program = Program::with_kubeconfig(&proxy.kubeconfig());
    let run = diff_by(program, &set, &objects, &["--apply-unchanged", "-o", "json"]).expect(0);
    assert_eq!(run.results("unchanged"), [format!("ConfigMap {home}/one")]);
}

#[test]
fn unchanged_objects_that_are_sent_change_nothing() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects = [config_map(&home, "one", "1"), config_map(&home, "two", "1")];
    set.apply(&objects);
    let content = || {
        let parent = cluster()
            .live(&named("v1", "Secret", Some(&home), "web"))
            .expect("the parent");
        let members = objects.each_ref().map(|object| cluster().live(object));
        (
            parent["metadata"]["annotations"].clone(),
            parent["metadata"]["labels"].clone(),
            members,
        )
    };
    let before = content();
    diff(&set, &objects, &["--apply-unchanged"]).expect(0);
    for flag in ["--dry-run=server", "--dry-run=none"] {
        let run = set.apply_with(&objects, &["--apply-unchanged", flag]).expect(0);
        assert_eq!(run.results("unchanged"), identities(&objects), "{flag}");
        assert_eq!(content(), before, "{flag}");
    }
}

#[test]
fn an_object_of_another_set_is_compared_as_stolen() {
    let home = namespace("home");
    let [set, other] = [Set::secret(&home, "web"), Set::secret(&home, "other")];
    other.apply(&[config_map(&home, "theirs", "1")]);
    let run = assert_predicted(
        &set,
        &[&home],
        &[config_map(&home, "theirs", "2")],
        &["--take-ownership"],
    );
    let label = format!("/metadata/labels/{}", PART_OF.replace('/', "~1"));
    let changes = result(&run, "theirs")["changes"].clone();
    let change = changes
        .as_array()
        .expect("changes")
        .iter()
        .find(|change| change["field"] == label.as_str());
    assert_eq!(change.map(|change| change["after"].clone()), Some(json!(set.id)));
}

#[test]
fn only_a_plugin_that_runs_is_needed() {
    // kubectl finds the plugin by its name, and hands on its exit code.
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects = files(&[config_map(&home, "one", "1")]);
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_kubectl-applyset"));
    let path = std::env::join_paths([
        program.parent().expect("a directory"),
        std::path::Path::new("/usr/bin"),
        std::path::Path::new("/bin"),
    ])
    .expect("a path");
    let output = ControlPlane::shared()
        .kubectl_command()
        .env("PATH", path)
        .args(["applyset", "diff", &set.reference, "-n", &home, "-f"])
        .arg(objects.directory())
        .output()
        .expect("kubectl runs");
    assert_eq!(output.status.code(), Some(1));
}
