//! `export` prints what a set has applied, and `apply --undo-out` writes the same before a run: an apply of it leads
//! back.

mod property;
mod undo;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::packaging::CHECKOUT;
use crate::support::{
    Files, PART_OF, Program, Run, Set, admin_kubeconfig, cluster, config_map, custom_resource, definition,
    deployment, fresh, kubectl_apply, named, namespace, objects_file, path_of, secret, service, with,
};

/// What `export` prints of a set.
fn export(set: &Set, flags: &[&str]) -> Run {
    Program::new()
        .args(["export", &set.reference, "-n", &set.namespace])
        .args(flags)
        .run()
}

/// Applies a file or a directory to a set.
fn apply_file(set: &Set, file: &Path, flags: &[&str]) -> Run {
    Program::new()
        .args(["apply", &set.reference, "-n", &set.namespace, "-o", "json", "-f"])
        .args([file])
        .args(flags)
        .run()
}

/// How many results a run has of each action.
fn summary(run: &Run) -> Value {
    let mut summary = run.document()["summary"].clone();
    let counts = summary.as_object_mut().expect("a summary");
    counts.retain(|_, count| *count != 0);
    summary
}

/// The members of a set and what they hold, without what differs between two equal objects.
fn contents(set: &Set, objects: &[Value]) -> BTreeMap<String, Value> {
    let content = |object: &Value| {
        let mut live = cluster().live(object)?;
        if live["metadata"]["labels"][PART_OF] != *set.id {
            return None;
        }
        live.as_object_mut()?.remove("status");
        for field in [
            "managedFields",
            "resourceVersion",
            "generation",
            "uid",
            "creationTimestamp",
        ] {
            live["metadata"].as_object_mut()?.remove(field);
        }
        // The server chooses others for a Service that comes back.
        for field in ["clusterIP", "clusterIPs"] {
            live["spec"].as_object_mut().map(|spec| spec.remove(field));
        }
        Some((path_of(object), live))
    };
    objects.iter().filter_map(content).collect()
}

/// Asserts that an apply of what a set exports finds all of it unchanged.
#[track_caller]
fn assert_exported(set: &Set, members: usize) -> Files {
    let files = Files::new().with("export.yaml", &export(set, &[]).expect(0).stdout);
    let run = apply_file(set, &files.path("export.yaml"), &[]).expect(0);
    assert_eq!(summary(&run), json!({"unchanged": members}), "{}", run.stdout);
    files
}

#[test]
fn real_releases_are_exported_as_they_were_applied() {
    for release in ["certificates", "database", "edge", "observability"] {
        let home = namespace("export");
        let set = Set::secret(&home, release);
        let text = fs::read_to_string(
            Path::new(CHECKOUT)
                .join("testdata/real")
                .join(format!("{release}.yaml")),
        );
        let files = Files::new().with("release.yaml", &text.expect("a release"));
        let run = apply_file(&set, &files.path("release.yaml"), &[]).expect(0);
        let members = run.document()["results"].as_array().expect("results").len();
        assert_exported(&set, members);
        // A claim that no controller releases keeps its namespace, here.
        drop(set.delete(&["--allow-data-loss"]));
    }
}

#[test]
fn what_others_own_and_what_the_server_sets_is_not_exported() {
    let home = namespace("export");
    let set = Set::secret(&home, "web");
    let objects = [
        config_map(&home, "one", "line 1\nline 2\n"),
        with(
            secret(&home, "two"),
            &json!({"stringData": {"password": "opens it"}}),
        ),
        service(&home, "three", 80),
    ];
    set.apply(&objects);
    cluster().patch(
        &objects[0],
        &json!({"data": {"other": "x"}, "metadata": {"labels": {"a": "b"}}}),
    );
    assert_exported(&set, objects.len());

    let list: Value = serde_json::from_str(&export(&set, &["-o", "json"]).expect(0).stdout).expect("a list");
    let one = list["items"]
        .as_array()
        .expect("items")
        .iter()
        .find(|item| item["metadata"]["name"] == "one");
    assert_eq!(one, Some(&objects[0]));
    let names = export(&set, &["-o", "name"]).expect(0).stdout;
    assert_eq!(names, "configmap/one\nsecret/two\nservice/three\n");
}

#[test]
fn members_that_were_only_adopted_are_exported_as_they_are() {
    let home = namespace("export");
    let set = Set::secret(&home, "web");
    let objects = [config_map(&home, "one", "1"), service(&home, "two", 80)];
    for object in &objects {
        cluster().create(object);
    }
    let files = Files::new().with("objects.yaml", &objects_file(&objects));
    set.invocation(Program::new(), "adopt", &[])
        .args(["-f".into(), files.path("objects.yaml")])
        .run()
        .expect(0);
    let was = contents(&set, &objects);
    let files = Files::new().with("export.yaml", &export(&set, &[]).expect(0).stdout);
    apply_file(&set, &files.path("export.yaml"), &["--force-conflicts"]).expect(0);
    assert_eq!(contents(&set, &objects), was);
    assert_exported(&set, objects.len());
}

#[test]
fn a_member_is_exported_in_the_version_in_which_it_was_applied() {
    let home = namespace("export");
    let set = Set::secret(&home, "web");
    let group = format!("{}.example.com", fresh("export"));
    let mut two = definition(&group, "Namespaced");
    let mut newer = two["spec"]["versions"][0].clone();
    newer["name"] = json!("v2");
    newer["storage"] = json!(false);
    two["spec"]["versions"]
        .as_array_mut()
        .expect("versions")
        .push(newer);
    cluster().define(&two);
    let object = custom_resource(&group, Some(&home), "one");
    set.apply(std::slice::from_ref(&object));
    let list: Value = serde_json::from_str(&export(&set, &["-o", "json"]).expect(0).stdout).expect("a list");
    assert_eq!(list["items"][0]["apiVersion"], object["apiVersion"]);
    assert_exported(&set, 1);
    cluster().delete(&two);
}

#[test]
fn maps_of_a_custom_resource_that_were_applied_empty_are_exported_empty() {
    let home = namespace("export");
    let set = Set::secret(&home, "web");
    let group = format!("{}.example.com", fresh("export"));
    let mut defined = definition(&group, "Namespaced");
    let mode = json!({"type": "string", "default": "Strict"});
    defined["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "tls": {"type": "object", "properties": {"mode": mode}},
            "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": {"type": "string"}},
        }},
    }});
    cluster().define(&defined);
    let spec = json!({"tls": {}, "whole": {"a": "b"}});
    let mut object = custom_resource(&group, Some(&home), "one");
    object["spec"] = spec.clone();
    set.apply(std::slice::from_ref(&object));
    let mode = &cluster().live(&object).expect("the object")["spec"]["tls"]["mode"];
    assert_eq!(mode, "Strict");
    let list: Value = serde_json::from_str(&export(&set, &["-o", "json"]).expect(0).stdout).expect("a list");
    assert_eq!(list["items"][0]["spec"], spec);
    assert_exported(&set, 1);
    cluster().delete(&defined);
}

#[test]
fn a_directory_gets_a_file_for_each_object_and_is_not_overwritten() {
    let home = namespace("export");
    let set = Set::secret(&home, "web");
    let objects = [config_map(&home, "one", "1"), secret(&home, "two")];
    set.apply(&objects);
    let files = Files::new();
    let directory = files.path("exported");
    let out = directory.display().to_string();
    let kubeconfig = admin_kubeconfig().display().to_string();
    let run = export(&set, &["--out", &out, "--kubeconfig", &kubeconfig]).expect(0);
    let next = format!("apply secret/web -n {home} -f {out} --kubeconfig {kubeconfig}`");
    assert!(run.stderr.contains(&next), "{}", run.stderr);
    let mode = |name: &str| {
        let file = fs::metadata(directory.join(name)).expect("a file");
        file.permissions().mode() & 0o077
    };
    assert_eq!(mode(&format!("secret_{home}_two.yaml")), 0);
    assert_eq!(
        fs::read_dir(&directory).expect("a directory").count(),
        objects.len()
    );
    let run = apply_file(&set, &directory, &[]).expect(0);
    assert_eq!(summary(&run), json!({"unchanged": 2}));

    fs::remove_file(directory.join(format!("secret_{home}_two.yaml"))).expect("a file");
    let run = export(&set, &["--out", &out]).expect(2);
    assert!(run.stderr.contains("has a manifest already"), "{}", run.stderr);
    assert_eq!(fs::read_dir(&directory).expect("a directory").count(), 1);
    for flags in [&["--out", "-"][..], &["--out", "new", "-o", "json"]] {
        export(&set, flags).expect(2);
        assert!(!Path::new(flags[1]).exists());
    }
}

#[test]
fn a_second_signal_ends_an_export_that_nobody_reads() {
    let home = namespace("export");
    let set = Set::secret(&home, "web");
    // More than a pipe holds.
    set.apply(&[config_map(&home, "one", &"x".repeat(200_000))]);
    let mut running = Program::new()
        .args(["export", &set.reference, "-n", &home])
        .start();
    running.wait_for_output();
    running.interrupt();
    running.wait_for_message("a second Ctrl-C or signal stops at once");
    running.interrupt();
    let run = running.finish_within(Duration::from_secs(30));
    assert_eq!(run.map(|run| run.code), Some(130));
}

#[test]
fn a_directory_that_is_there_is_written_into_and_keeps_its_rights() {
    let home = namespace("export");
    let set = Set::secret(&home, "web");
    set.apply(&[config_map(&home, "one", "1")]);
    let files = Files::new().with("there/README.md", "kept");
    let [there, link] = ["there", "link"].map(|name| files.path(name));
    fs::set_permissions(&there, fs::Permissions::from_mode(0o700)).expect("permissions");
    std::os::unix::fs::symlink(&there, &link).expect("a link");
    let run = Program::new()
        .args(["export", &set.reference, "-n", &home, "--out", "."])
        .in_directory(&link)
        .run()
        .expect(0);
    assert!(run.stdout.is_empty(), "{}", run.stdout);
    let mode = fs::metadata(&there).expect("a directory").permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    let names = fs::read_dir(&there).expect("a directory");
    let mut names: Vec<_> = names.map(|entry| entry.expect("an entry").file_name()).collect();
    names.sort();
    let file = format!("configmap_{home}_one.yaml");
    assert_eq!(names, ["README.md", file.as_str()]);
}

/// An autoscaler of the Deployment `name`.
fn autoscaler_of(home: &str, name: &str) -> Value {
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": name});
    with(
        named("autoscaling/v2", "HorizontalPodAutoscaler", Some(home), name),
        &json!({"spec": {"maxReplicas": 9, "scaleTargetRef": target}}),
    )
}

#[test]
fn replicas_that_an_autoscaler_of_the_set_decides_are_not_exported() {
    let home = namespace("export");
    let set = Set::secret(&home, "web");
    let mut app = deployment(&home, "app", 2);
    set.apply(&[app.clone()]);
    app["spec"].as_object_mut().expect("a spec").remove("replicas");
    set.apply(&[app.clone(), autoscaler_of(&home, "app")]);
    let files = assert_exported(&set, 2);
    cluster().scale(&app, 7);
    apply_file(&set, &files.path("export.yaml"), &[]).expect(0);
    assert_eq!(cluster().live(&app).expect("the object")["spec"]["replicas"], 7);
}

#[test]
fn a_set_that_cannot_be_read_as_a_whole_is_not_exported() {
    let home = namespace("export");
    let set = Set::secret(&home, "web");
    set.apply(&[config_map(&home, "one", "1")]);
    let files = Files::new();
    let out = files.path("exported");
    let flags = ["--out", out.to_str().expect("a path")];
    let kinds = "no kind";
    let record = json!({"metadata": {"annotations": {"applyset.kubernetes.io/contains-group-kinds": kinds}}});
    cluster().patch(&set.parent, &record);
    let run = export(&set, &flags).expect(4);
    assert!(run.stdout.is_empty() && !out.exists(), "{}", run.stdout);
    Program::new()
        .args(["export", "configmap/missing", "-n", &home])
        .run()
        .expect(2);
}

#[test]
fn what_no_run_would_prune_is_not_exported() {
    let home = namespace("export");
    let set = Set::secret(&home, "web");
    let objects = [config_map(&home, "one", "1")];
    set.apply(&objects);
    let label = json!({"metadata": {"labels": {PART_OF: set.id.clone()}}});
    cluster().create(&with(config_map(&home, "tenants", "1"), &label));
    let run = export(&set, &["-o", "name"]).expect(0);
    assert_eq!(run.stdout, "configmap/one\n");
    assert!(run.stderr.contains("tenants"), "{}", run.stderr);
    let files = Files::new().with("export.yaml", &export(&set, &[]).expect(0).stdout);
    for _ in 0..2 {
        let run = apply_file(&set, &files.path("export.yaml"), &[]).expect(0);
        assert_eq!(
            summary(&run),
            json!({"unchanged": 1, "skipped": 1}),
            "{}",
            run.stdout
        );
    }
}

#[test]
fn a_set_of_another_field_manager_is_exported_under_its_name() {
    let home = namespace("export");
    let set = Set::secret(&home, "web");
    let objects = [config_map(&home, "one", "1")];
    set.apply_with(&objects, &["--field-manager=ci"]).expect(0);
    for flags in [&[][..], &["--field-manager=cci"]] {
        let run = export(&set, flags).expect(2);
        assert!(run.stderr.contains("ci"), "{}", run.stderr);
    }
    let run = export(&set, &["--field-manager=ci"]).expect(0);
    let files = Files::new().with("export.yaml", &run.stdout);
    let run = apply_file(&set, &files.path("export.yaml"), &["--field-manager=ci"]).expect(0);
    assert_eq!(summary(&run), json!({"unchanged": 1}), "{}", run.stdout);
}

#[test]
fn an_adopted_object_is_exported_whole_whoever_has_applied_a_part_of_it() {
    let home = namespace("export");
    let set = Set::secret(&home, "web");
    let object = config_map(&home, "one", "1");
    cluster().create(&object);
    let more = with(object.clone(), &json!({"data": {"more": "2"}}));
    kubectl_apply(&[more], &[]).expect(0);
    let files = Files::new().with("objects.yaml", &objects_file(std::slice::from_ref(&object)));
    set.invocation(Program::new(), "adopt", &[])
        .args(["-f".into(), files.path("objects.yaml")])
        .run()
        .expect(0);
    let list: Value = serde_json::from_str(&export(&set, &["-o", "json"]).expect(0).stdout).expect("a list");
    let live = cluster().live(&object).expect("the object");
    assert_eq!(list["items"][0]["data"], live["data"]);
}
