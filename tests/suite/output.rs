//! What scripts may rely on: standard output, the document, exit codes.

use serde_json::{Value, json};

use crate::support::{
    Files, Program, Run, Set, cluster, cluster_role, config_map, custom_resource, definition, fresh, named,
    namespace, objects_file, service, with,
};

/// Applies the objects without `-o json`.
fn apply(set: &Set, objects: &[Value], flags: &[&str]) -> Run {
    let files = Files::new().with("a.yaml", &objects_file(objects));
    set.command(Program::new(), &files).args(flags).run()
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

fn deployment(namespace: &str, name: &str) -> Value {
    with(
        named("apps/v1", "Deployment", Some(namespace), name),
        &json!({"spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "web", "image": "web"}]},
            },
        }}),
    )
}

#[test]
fn lines_are_those_of_the_contract() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let role = fresh("role");
    let first = [
        deployment(&home, "web"),
        config_map(&home, "one", "1"),
        cluster_role(&role),
    ];
    let run = apply(&set, &first, &[]).expect(0);
    let created = [
        format!("clusterrole.rbac.authorization.k8s.io/{role} created"),
        format!("configmap/one created in namespace {home}"),
        format!("deployment.apps/web created in namespace {home}"),
    ];
    assert_eq!(sorted(&run.stdout), created);

    let next = [config_map(&home, "one", "2"), cluster_role(&role)];
    let lines = |suffix: &str| {
        [
            format!("clusterrole.rbac.authorization.k8s.io/{role} unchanged{suffix}"),
            format!("configmap/one configured in namespace {home}{suffix}"),
            format!("deployment.apps/web pruned in namespace {home}{suffix}"),
        ]
    };
    for (flag, suffix) in [
        ("--dry-run=client", " (dry run)"),
        ("--dry-run=server", " (server dry run)"),
        ("--dry-run=none", ""),
    ] {
        let run = apply(&set, &next, &[flag]).expect(0);
        assert_eq!(sorted(&run.stdout), lines(suffix));
    }

    let failing = [
        service(&home, "bad", 0),
        config_map(&home, "one", "2"),
        cluster_role(&role),
    ];
    let run = apply(&set, &failing, &[]).expect(1);
    assert!(
        run.stdout
            .contains(&format!("service/bad failed in namespace {home}\n")),
        "{}",
        run.stdout
    );
}

#[test]
fn names_alone_are_printed_for_name() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    apply(&set, &[config_map(&home, "gone", "1")], &[]).expect(0);
    let objects = [deployment(&home, "web"), config_map(&home, "one", "1")];
    let run = apply(&set, &objects, &["-o", "name"]).expect(0);
    assert_eq!(
        sorted(&run.stdout),
        ["configmap/gone", "configmap/one", "deployment.apps/web"]
    );
}

#[test]
fn the_quiet_flag_leaves_errors() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let run = apply(&set, &[config_map(&home, "one", "1")], &["-q"]).expect(0);
    assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("", ""));
    let run = apply(&set, &[service(&home, "bad", 0)], &["-q"]).expect(1);
    assert_eq!(run.stdout, "");
    assert_eq!(run.errors().len(), 1);
    let is_of_the_error = |line: &str| line.starts_with("  ");
    assert!(run.stderr.lines().skip(1).all(is_of_the_error), "{}", run.stderr);
    let run = set
        .apply_with(&[config_map(&home, "one", "1")], &["-q"])
        .expect(0);
    assert_eq!(run.document()["summary"]["unchanged"], 1);
}

#[test]
fn warnings_of_the_server_go_to_people_and_into_the_document() {
    let home = namespace("home");
    let group = format!("{}.example.com", fresh("g"));
    let mut definition = definition(&group, "Namespaced");
    definition["spec"]["versions"][0]["deprecated"] = json!(true);
    definition["spec"]["versions"][0]["deprecationWarning"] = json!("this will go");
    cluster().define(&definition);
    let set = Set::secret(&home, "web");
    let object = custom_resource(&group, Some(&home), "one");
    let run = apply(&set, &[object], &[]).expect(0);
    assert_eq!(
        run.stdout,
        format!("widget.{group}/one created in namespace {home}\n")
    );
    assert!(
        run.stderr.contains("warning: ") && run.stderr.contains("this will go"),
        "{}",
        run.stderr
    );

    let run = set
        .apply_with(&[custom_resource(&group, Some(&home), "two")], &[])
        .expect(0);
    let warnings = run.document()["warnings"].to_string();
    assert!(warnings.contains("this will go"), "{warnings}");
}

fn assert_document(run: &Run, set: &Set) {
    let document = run.document();
    assert_eq!(document["apiVersion"], "kubectl-applyset/v1");
    assert_eq!(document["kind"], "Report");
    assert_eq!(document["command"], "apply");
    let results = document["results"].as_array().expect("results");
    for action in [
        "created",
        "configured",
        "unchanged",
        "pruned",
        "skipped",
        "failed",
    ] {
        let count = results.iter().filter(|result| result["action"] == action).count();
        assert_eq!(document["summary"][action], count, "{action}");
    }
    let summary = document["summary"].as_object().expect("a summary");
    let total: u64 = summary.values().filter_map(Value::as_u64).sum();
    assert_eq!(total, results.len() as u64);
    for result in results {
        for field in ["group", "version", "kind", "resource", "name", "action", "reason"] {
            assert!(result[field].is_string(), "{field} of {result}");
        }
        assert_eq!(
            result["error"].is_string(),
            result["action"] == "failed",
            "{result}"
        );
        assert_ne!(
            (&result["kind"], &result["name"]),
            (&json!("Secret"), &json!("web")),
            "the parent"
        );
    }
    assert!(document["requests"].is_u64() && document["seconds"].is_number());
    assert_eq!(document["set"]["name"], set.parent["metadata"]["name"]);
}

#[test]
fn the_document_is_one_at_every_exit_code_but_two() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let good = [config_map(&home, "one", "1"), service(&home, "web", 80)];

    let run = set.apply(&good);
    assert_document(&run, &set);
    let document = run.document();
    assert_eq!(
        document["set"],
        json!({
            "id": set.id, "kind": "Secret", "group": "", "namespace": home, "name": "web",
            "tooling": concat!("kubectl-applyset/v", env!("CARGO_PKG_VERSION")),
        })
    );
    for result in document["results"].as_array().expect("results") {
        let object = named(
            "v1",
            result["kind"].as_str().expect("a kind"),
            Some(&home),
            result["name"].as_str().expect("a name"),
        );
        let live = cluster().live(&object).expect("a live object");
        assert_eq!(result["uid"], live["metadata"]["uid"]);
    }

    let run = set
        .apply_with(&[service(&home, "bad", 0), good[0].clone()], &[])
        .expect(1);
    assert_document(&run, &set);
    let run = set.apply_with(&[], &[]).expect(3);
    assert_document(&run, &set);
    let run = set.apply_with(&good, &["--token=wrong"]).expect(4);
    assert_document(&run, &set);
    let run = set
        .apply_with(
            &[json!({"apiVersion": "v1", "kind": "Nonsense", "metadata": {"name": "x"}})],
            &[],
        )
        .expect(2);
    assert_eq!(run.stdout, "");
}

#[test]
fn the_documents_of_yaml_and_kyaml_say_the_same() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let object = config_map(&home, "one", "1");
    let text = |format| {
        let run = apply(&set, std::slice::from_ref(&object), &["-o", format]).expect(0);
        run.stdout
    };
    let [yaml, kyaml] = ["yaml", "kyaml"].map(text);
    assert!(yaml.starts_with("apiVersion: kubectl-applyset/v1\n"), "{yaml}");
    assert!(
        kyaml.starts_with("---\n{\n  apiVersion: \"kubectl-applyset/v1\",\n"),
        "{kyaml}"
    );
    for (text, created) in [(yaml, 1), (kyaml, 0)] {
        let document: Value = serde_saphyr::from_str(&text).expect("YAML");
        assert_eq!(document["kind"], "Report");
        assert_eq!(document["results"][0]["name"], "one");
        assert_eq!(document["summary"]["created"], created);
    }
    // What is exported can be applied.
    let run = |command, arguments: &[&str]| set.invocation(Program::new(), command, arguments).run();
    let exported = run("export", &["-o", "kyaml"]).expect(0).stdout;
    let files = Files::new().with("set.yaml", &exported);
    let applied = run("apply", &["-f", &files.path("set.yaml").display().to_string()]).expect(0);
    assert!(applied.stdout.contains("configmap/one unchanged"), "{exported}");
}

#[test]
fn text_from_a_manifest_cannot_steer_a_terminal() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let hostile = with(
        config_map(&home, "one", "1"),
        &json!({"data": {"a\u{1b}[31mb": "x"}}),
    );
    let run = apply(&set, &[hostile], &["--color=never"]).expect(1);
    assert!(
        !run.stderr.contains('\u{1b}') && !run.stdout.contains('\u{1b}'),
        "{:?}",
        run.stderr
    );
}
