//! What becomes of fields that the server does not know, and of its warnings.

use serde_json::json;

use crate::support::{
    Files, Program, Proxy, Set, cluster, config_map, custom_resource, definition, fresh, namespace, with,
};

fn service_with_typing_errors(namespace: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Service\nmetadata:\n  name: web\n  namespace: {namespace}\nspec:\n  ports:\n  \
         - port: 80\n    protcol: TCP\n  selectr:\n    app: web\n"
    )
}

#[test]
fn unknown_fields_are_reported_with_their_lines() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let files = Files::new().with("web.yaml", &service_with_typing_errors(&home));
    for flags in [&[][..], &["--dry-run=server"], &["--validate=false"]] {
        let run = set
            .command(Program::new(), &files)
            .args(["-o", "json"])
            .args(flags)
            .run();
        let document = run.expect(1).document();
        let error = document["results"][0]["error"].as_str().expect("an error");
        let source = document["results"][0]["source"].as_str().expect("a place");
        assert!(source.ends_with("web.yaml:1"), "{source}");
        // The server reports one of the two or both.
        let is_located = error.contains("selectr (line 10): unknown field")
            || error.contains("protcol (line 9): unknown field");
        assert!(is_located, "{error}");
        assert!(error.contains("`kubectl explain services.spec"), "{error}");
    }
    assert_eq!(set.members(), Vec::<String>::new());
}

#[test]
fn the_value_of_a_secret_is_not_reported_with_its_line() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let manifest = format!(
        "apiVersion: v1\nkind: Secret\nmetadata: {{name: s, namespace: {home}}}\ntype: {{SUPERSECRET: SUPERSECRET}}\n"
    );
    let files = Files::new().with("secret.yaml", &manifest);
    let run = set.command(Program::new(), &files).args(["-v=9"]).run().expect(1);
    assert!(run.stderr.contains("type (line 4)"), "{}", run.stderr);
    assert!(!run.stderr.contains("SECRET"), "{}", run.stderr);
}

#[test]
fn what_does_not_fit_the_api_would_fail_in_diff_as_in_apply() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let manifest = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: one, namespace: {home}}}\ndatta:\n  a: b\n"
    );
    let files = Files::new().with("one.yaml", &manifest);
    let run = Program::new()
        .args(["diff", "web", "-n", &home, "-o", "json", "-f"])
        .args([files.directory()])
        .run()
        .expect(1);
    assert_eq!(run.results("failed"), [format!("ConfigMap {home}/one")]);
    set.command(Program::new(), &files).run().expect(1);
}

#[test]
fn what_cannot_be_changed_is_reported_in_one_error_with_its_line_and_a_way_out() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let job = |image: &str| {
        format!(
            "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: one, namespace: {home}}}\nspec:\n  template:\n    \
             spec: {{restartPolicy: Never, containers: [{{name: c, image: {image}}}]}}\n"
        )
    };
    let files = |image: &str| Files::new().with("job.yaml", &job(image));
    set.command(Program::new(), &files("a")).run().expect(0);
    let run = set.command(Program::new(), &files("b")).run().expect(1);
    let reported = "spec.template (line 5): field is immutable\nhint: ";
    assert!(run.stderr.contains(reported), "{}", run.stderr);
    assert!(run.stderr.contains("--recreate=Job"), "{}", run.stderr);
    assert_eq!(run.errors().len(), 1, "{}", run.stderr);
}

#[test]
fn what_the_server_says_in_several_lines_is_one_error() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let claim = |size: &str| {
        json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": "one", "namespace": home},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}},
        })
    };
    set.apply(&[claim("1Gi")]);
    let run = set.apply_with(&[claim("2Gi")], &[]).expect(1);
    assert_eq!(run.errors().len(), 1, "{}", run.stderr);
    assert!(run.errors()[0].contains("spec (line "), "{}", run.stderr);
}

#[test]
fn the_server_validates_as_the_flag_says() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let table: [(&[&str], &str); 6] = [
        (&[], "Strict"),
        (&["--validate"], "Strict"),
        (&["--validate=true"], "Strict"),
        (&["--validate=warn"], "Warn"),
        (&["--validate=ignore"], "Ignore"),
        (&["--validate=false"], "Ignore"),
    ];
    for (flags, expected) in table {
        let proxy = Proxy::transparent();
        let flags = [&["--apply-unchanged"], flags].concat();
        set.apply_through(&proxy, &[config_map(&home, "a", "1")], &flags)
            .expect(0);
        let asked = format!("fieldValidation={expected}");
        let members: Vec<String> = proxy
            .sent()
            .into_iter()
            .filter(|sent| sent.is_write() && sent.path.contains("/configmaps/a?"))
            .map(|sent| sent.path)
            .collect();
        assert!(
            !members.is_empty() && members.iter().all(|path| path.contains(&asked)),
            "{members:?}"
        );
    }
    let wrong = set.apply_with(&[], &["--validate=maybe"]);
    wrong.expect(2);
}

#[test]
fn warnings_of_the_server_name_the_object_and_its_line_once() {
    let home = namespace("home");
    let group = format!("{}.example.com", fresh("deprecated"));
    let mut of_group = definition(&group, "Namespaced");
    of_group["spec"]["versions"][0]["deprecated"] = json!(true);
    cluster().create(&of_group);
    let set = Set::secret(&home, "web");
    let objects = ["a", "b"].map(|name| with(custom_resource(&group, Some(&home), name), &json!({})));
    let run = crate::support::eventually("the kind is served", || {
        let run = set.apply_with(&objects, &[]);
        (run.code == 0).then_some(run)
    });
    let warnings = run.warnings();
    for name in ["a", "b"] {
        let of_object = warnings.iter().filter(|warning| {
            warning.contains("objects.yaml:")
                && warning.contains(&format!("/{name}"))
                && warning.ends_with("is deprecated")
        });
        assert_eq!(of_object.count(), 1, "{warnings:?}");
    }
}

#[test]
fn each_fault_of_a_custom_resource_has_its_line() {
    let home = namespace("home");
    let group = format!("{}.example.com", fresh("g"));
    let mut kind = definition(&group, "Namespaced");
    let spec = &mut kind["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    *spec = json!({
        "type": "object",
        "required": ["owner"],
        "properties": {
            "size": {"type": "integer", "maximum": 5},
            "owner": {"type": "string"},
        },
        "x-kubernetes-validations": [{"rule": "self.owner != 'me'", "message": "not you"}],
    });
    cluster().define(&kind);
    let set = Set::secret(&home, "web");
    let widget = |name: &str, spec: &str| {
        format!(
            "apiVersion: {group}/v1\nkind: Widget\nmetadata:\n  name: {name}\n  namespace: {home}\nspec:\n{spec}---\n"
        )
    };
    let text = widget("several", "  size: 9\n") + &widget("one", "  owner: you\n  size: 9\n");
    let files = Files::new().with("widgets.yaml", &text);
    let run = set.command(Program::new(), &files).run().expect(1);
    for part in [
        "widgets.yaml:1: ",
        "spec.size (line 7): Invalid value: 9",
        "spec.owner (line 6): Required value",
        "widgets.yaml:9: ",
        "spec.size (line 16): Invalid value: 9",
    ] {
        assert!(run.stderr.contains(part), "{part}: {}", run.stderr);
    }
    assert!(!run.stderr.contains("<nil>"), "{}", run.stderr);
    assert!(!run.stderr.contains("rules were not checked"), "{}", run.stderr);
}
