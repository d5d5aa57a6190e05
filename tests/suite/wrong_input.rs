//! What is wrong on the command line, in the manifests or with the connection: one
//! clear error with its place and a hint, the exit code, and nothing written.

use controlplane::{ControlPlane, Grant};
use serde_json::json;

use crate::support::{
    Files, PART_OF, Program, Run, Set, cluster, config_map, custom_resource, definition, fresh, identities,
    named, namespace, objects_file, with,
};

/// Asserts that the run failed with this code, one error that holds `texts`, and a hint.
#[track_caller]
fn assert_one_error(run: Run, code: i32, texts: &[&str]) -> Run {
    let run = run.expect(code);
    let errors = run.errors();
    assert_eq!(errors.len(), 1, "{}", run.stderr);
    for text in texts {
        assert!(errors[0].contains(text), "no {text:?} in\n{}", run.stderr);
    }
    let is_hint = |line: &str| line.starts_with("hint: ") && line.len() > "hint: ".len();
    assert!(run.stderr.lines().any(is_hint), "no hint in\n{}", run.stderr);
    run
}

#[test]
fn the_version_cannot_be_printed_as_a_document() {
    for format in ["json", "yaml", "kyaml"] {
        let run = Program::new().args(["version", "-o", format]).run();
        let run = assert_one_error(run, 2, &["version"]);
        assert_eq!(run.stdout, "");
    }
}

/// Applies one good object and a file `bad.yaml` as a set that exists and one that does
/// not, and asserts that nothing is written.
#[track_caller]
fn assert_manifest_refused(home: &str, manifest: &str, texts: &[&str]) {
    let set = Set::secret(home, "web");
    let kept = config_map(home, "kept", "1");
    for members in [None, Some(std::slice::from_ref(&kept))] {
        if let Some(members) = members {
            set.apply(members);
        }
        let before = cluster().state(&[home]);
        let good = objects_file(&[config_map(home, "good", "1")]);
        let files = Files::new().with("a.yaml", &good).with("bad.yaml", manifest);
        let run = set.command(Program::new(), &files).args(["-o", "json"]).run();
        let run = assert_one_error(run, 2, texts);
        assert_eq!(run.stdout, "");
        assert_eq!(cluster().state(&[home]), before);
    }
}

/// If the last one counted, the fields of the first one would lose their protection.
#[test]
fn two_files_of_ignore_rules() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let rules = r#"[{"paths": ["/data/a"], "target": {"kind": "ConfigMap"}}]"#;
    let files = Files::new().with("a.yaml", rules).with("b.yaml", rules);
    let flags = ["a.yaml", "b.yaml"].map(|name| format!("--ignore={}", files.path(name).display()));
    let run = set.apply_with(&[config_map(&home, "one", "1")], &[&flags[0], &flags[1]]);
    assert_one_error(run, 2, &["--ignore", "more than once"]);
    assert_eq!(set.members(), Vec::<String>::new());
}

#[test]
fn a_file_that_is_not_there() {
    let home = namespace("home");
    let before = cluster().state(&[&home]);
    let run = Program::new()
        .args(["apply", "web", "-n", &home, "-f", "not/there.yaml"])
        .run();
    assert_one_error(run, 2, &["not/there.yaml", "no such file"]);
    assert_eq!(cluster().state(&[&home]), before);
}

#[test]
fn a_tab_in_yaml() {
    let home = namespace("home");
    let manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n\tname: one\n";
    assert_manifest_refused(&home, manifest, &["bad.yaml:4", "tab"]);
}

#[test]
fn a_kind_that_the_server_does_not_have() {
    let home = namespace("home");
    let manifest = "# a comment\napiVersion: apps/v1\nkind: Deploymint\nmetadata:\n  name: one\n";
    assert_manifest_refused(&home, manifest, &["bad.yaml:2", "Deploymint", "apps/v1"]);
}

#[test]
fn objects_of_an_unknown_kind_are_one_error() {
    let home = namespace("home");
    let unknown = |name: &str| format!("apiVersion: apps/v1\nkind: Deploymint\nmetadata:\n  name: {name}\n");
    let files = Files::new().with("bad.yaml", &["a", "b", "c"].map(unknown).join("---\n"));
    let set = Set::secret(&home, "web");
    let run = set.command(Program::new(), &files).run().expect(2);
    assert_eq!(run.errors().len(), 1, "{}", run.stderr);
    for line in ["bad.yaml:1", "bad.yaml:6", "bad.yaml:11"] {
        assert!(
            run.stderr.lines().any(|listed| listed.ends_with(line)),
            "{}",
            run.stderr
        );
    }
    assert_eq!(run.stderr.matches("hint: ").count(), 1, "{}", run.stderr);
}

#[test]
fn a_version_that_the_server_does_not_have() {
    let home = namespace("home");
    let manifest = "apiVersion: apps/v1beta1\nkind: Deployment\nmetadata:\n  name: one\n";
    assert_manifest_refused(&home, manifest, &["bad.yaml:1", "Deployment", "apps/v1beta1"]);
}

#[test]
fn a_kind_that_cannot_be_found_again() {
    let home = namespace("home");
    let manifest = "apiVersion: authorization.k8s.io/v1\nkind: SubjectAccessReview\nmetadata:\n  name: one\n";
    assert_manifest_refused(&home, manifest, &["bad.yaml:1", "SubjectAccessReview"]);
}

#[test]
fn a_part_of_label_in_a_manifest() {
    let home = namespace("home");
    let manifest = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: one\n  labels:\n    {PART_OF}: applyset-x-v1\n"
    );
    assert_manifest_refused(&home, &manifest, &["bad.yaml:", PART_OF]);
}

#[test]
fn a_generated_name() {
    let home = namespace("home");
    let manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  generateName: one-\n";
    assert_manifest_refused(&home, manifest, &["bad.yaml:", "generateName"]);
}

#[test]
fn the_same_object_twice() {
    let home = namespace("home");
    let manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: good\n";
    // The first stands in a.yaml, with its namespace written out.
    assert_manifest_refused(&home, manifest, &["bad.yaml:1", "configmap/good", "a.yaml:"]);
}

#[test]
fn a_key_that_is_set_twice() {
    let home = namespace("home");
    let manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: one\ndata:\n  a: b\n  a: c\n";
    assert_manifest_refused(&home, manifest, &["bad.yaml:7", "\"a\""]);
}

#[test]
fn a_document_that_is_not_an_object() {
    let home = namespace("home");
    assert_manifest_refused(&home, "- one\n- two\n", &["bad.yaml:1"]);
    let home = namespace("home");
    let manifest = "apiVersion: v1\nmetadata:\n  name: one\n";
    assert_manifest_refused(&home, manifest, &["bad.yaml:1", "kind"]);
}

#[test]
fn all_faults_are_reported_at_once() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let files = Files::new()
        .with(
            "a.yaml",
            "apiVersion: v1\nkind: ConfigMapp\nmetadata:\n  name: one\n",
        )
        .with("b.yaml", "apiVersion: v1\nkind: Sekret\nmetadata:\n  name: two\n");
    let run = set.command(Program::new(), &files).run().expect(2);
    assert!(
        run.stderr.contains("a.yaml:1") && run.stderr.contains("b.yaml:1"),
        "{}",
        run.stderr
    );
}

#[test]
fn a_namespace_that_is_not_there() {
    let home = namespace("home");
    let missing = fresh("missing");
    let manifest =
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: one\n  namespace: {missing}\n");
    assert_manifest_refused(&home, &manifest, &["bad.yaml:1", &missing]);
}

#[test]
fn a_parent_in_a_namespace_that_is_not_there() {
    let missing = fresh("missing");
    let home = namespace("home");
    let set = Set::secret(&missing, "web");
    let run = set.apply_with(&[config_map(&home, "one", "1")], &[]);
    assert_one_error(run, 2, &[&missing]);
    assert_eq!(cluster().live(&config_map(&home, "one", "1")), None);
}

/// Applies one object to a set of this reference, and asserts that it is not created.
#[track_caller]
fn assert_reference_refused(home: &str, reference: &str, texts: &[&str]) {
    let before = cluster().state(&[home]);
    let files = Files::new().with("a.yaml", &objects_file(&[config_map(home, "one", "1")]));
    let run = Program::new()
        .args(["apply", reference, "-n", home, "-o", "json", "-f"])
        .args([files.directory()])
        .run();
    let run = assert_one_error(run, 2, texts);
    assert_eq!(run.stdout, "");
    assert_eq!(cluster().state(&[home]), before);
}

#[test]
fn a_kind_of_parent_that_is_not_allowed() {
    let home = namespace("home");
    for (reference, kind) in [
        ("namespace/x", "Namespace"),
        ("deployment/x", "Deployment"),
        ("deployments.apps/x", "Deployment"),
        ("crd/x", "CustomResourceDefinition"),
    ] {
        assert_reference_refused(&home, reference, &[kind, "parent"]);
    }
    assert_reference_refused(&home, "nonsense/x", &["nonsense"]);
    assert_reference_refused(&home, "secret/", &["secret/"]);
}

#[test]
fn a_custom_parent_whose_definition_is_not_labeled() {
    let home = namespace("home");
    let group = format!("{}.example.com", fresh("g"));
    let mut definition = definition(&group, "Namespaced");
    definition["metadata"]["labels"] = json!({});
    cluster().define(&definition);
    cluster().create(&custom_resource(&group, Some(&home), "web"));
    assert_reference_refused(&home, &format!("widgets.{group}/web"), &["Widget", "parent"]);
}

#[test]
fn a_custom_parent_that_does_not_exist() {
    let home = namespace("home");
    let group = format!("{}.example.com", fresh("g"));
    cluster().define(&definition(&group, "Namespaced"));
    assert_reference_refused(&home, &format!("widgets.{group}/web"), &["web", "does not exist"]);
}

#[test]
fn a_command_line_that_makes_no_sense() {
    let home = namespace("home");
    for arguments in [
        &["apply"][..],
        &["apply", "web"],
        &["apply", "-f", "-"],
        &["apply", "web", "-f", "-", "--dry-run=maybe"],
        &["apply", "web", "-f", "-", "--prune=perhaps"],
        &["apply", "web", "-f", "-", "-o", "table"],
        &["apply", "web", "-f", "-", "--no-such-flag"],
        &["no-such-command"],
        // There is no terminal to ask at.
        &["apply", "web", "-f", "-", "--confirm"],
        &["apply", "web", "-f", "-", "--confirm", "--yes"],
    ] {
        let input = objects_file(&[config_map(&home, "one", "1")]);
        let run = Program::new()
            .args(["-n", &home])
            .args(arguments)
            .input(&input)
            .run();
        let run = run.expect(2);
        assert_eq!(run.stdout, "", "{arguments:?}");
        assert!(run.stderr.starts_with("error: "), "{arguments:?}: {}", run.stderr);
    }
    assert_eq!(cluster().live(&config_map(&home, "one", "1")), None);
}

#[test]
fn a_server_that_does_not_answer() {
    // A port that was free a moment ago, and that no other is reported.
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let address = listener.local_addr().expect("an address").to_string();
    drop(listener);
    let home = namespace("home");
    let before = cluster().state(&[&home]);
    let server = format!("--server=https://{address}");
    let run = Set::secret(&home, "web").apply_with(&[config_map(&home, "one", "1")], &[&server]);
    let run = assert_one_error(run, 4, &["refused"]);
    assert_eq!(run.document()["results"], json!([]));
    assert_eq!(cluster().state(&[&home]), before);
}

#[test]
fn a_token_that_the_server_does_not_know() {
    let home = namespace("home");
    let before = cluster().state(&[&home]);
    let run = Set::secret(&home, "web").apply_with(&[config_map(&home, "one", "1")], &["--token=wrong"]);
    let run = assert_one_error(run, 4, &["credentials"]);
    assert_eq!(run.document()["results"], json!([]));
    assert_eq!(cluster().state(&[&home]), before);
}

#[test]
fn a_kubeconfig_that_is_not_there_or_has_no_such_context() {
    let home = namespace("home");
    for flag in ["--kubeconfig=/not/there", "--context=nowhere"] {
        let run = Set::secret(&home, "web").apply_with(&[config_map(&home, "one", "1")], &[flag]);
        assert_one_error(run, 2, &["kubeconfig"]);
    }
    assert_eq!(cluster().live(&config_map(&home, "one", "1")), None);
}

/// A user with these verbs on Secrets and `ConfigMaps` of the namespace.
fn user(home: &str, verbs: &[&str]) -> Program {
    let rule = json!({"apiGroups": [""], "resources": ["secrets", "configmaps"], "verbs": verbs});
    let user = ControlPlane::shared()
        .user(&[Grant::in_namespace(home, [rule])])
        .expect("a user");
    Program::with_kubeconfig(&user.kubeconfig)
}

fn apply_one(program: Program, set: &Set) -> Run {
    let one = objects_file(&[config_map(&set.namespace, "one", "1")]);
    let files = Files::new().with("a.yaml", &one);
    set.command(program, &files).args(["-o", "json"]).run()
}

#[test]
fn a_user_who_may_not_list() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let user = user(&home, &["get", "create", "update", "patch", "delete"]);
    let before = cluster().state(&[&home]);
    let run = apply_one(user, &set);
    let run = assert_one_error(run, 4, &["configmaps", &home]);
    assert_eq!(run.document()["results"], json!([]));
    assert_eq!(cluster().state(&[&home]), before);
}

#[test]
fn a_user_who_may_not_read_the_parent() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let user = user(&home, &["list", "create", "patch", "delete"]);
    let before = cluster().state(&[&home]);
    let run = apply_one(user, &set);
    assert_one_error(run, 4, &["secret/web"]);
    assert_eq!(cluster().state(&[&home]), before);
}

#[test]
fn a_user_who_may_not_write_the_parent() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let user = user(&home, &["get", "list", "delete"]);
    let before = cluster().state(&[&home]);
    let run = apply_one(user, &set);
    let run = run.expect(4);
    assert!(
        run.stderr.contains("cannot create resource \"secrets\""),
        "{}",
        run.stderr
    );
    assert_eq!(cluster().state(&[&home]), before);
}

#[test]
fn a_user_with_rights_in_one_namespace_alone_is_served() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let verbs = ["get", "list", "create", "patch", "delete"];
    apply_one(user(&home, &verbs), &set).expect(0);
    set.assert_holds(&[config_map(&home, "one", "1")]);
}

#[test]
fn an_address_is_the_name_of_its_object() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let unique = fresh("address");
    let name = format!("2001:db8::{}", unique.rsplit('-').next().expect("a number"));
    let reference = json!({"group": "", "resource": "services", "namespace": home, "name": "web"});
    let address = [with(
        named("networking.k8s.io/v1", "IPAddress", None, &name),
        &json!({"spec": {"parentRef": reference}}),
    )];
    set.apply(&address);
    let run = set.apply(&address);
    assert_eq!(run.results("unchanged"), identities(&address));
    set.delete(&[]).expect(0);
    assert_eq!(cluster().live(&address[0]), None);
}
