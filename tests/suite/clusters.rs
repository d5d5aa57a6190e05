//! The cluster in the documents: its URL and the UID of its namespace kube-system.

use std::fs;

use controlplane::{ControlPlane, Grant};
use serde_json::{Value, json};

use crate::support::{
    Files, Program, Proxy, Run, Set, cluster, config_map, namespace, objects_file, secret, with,
};

/// The cluster of the tests, as a document names it.
fn named() -> Value {
    let namespace = cluster()
        .get("/api/v1/namespaces/kube-system")
        .expect("a namespace");
    json!({"server": ControlPlane::shared().server_url(), "uid": namespace["metadata"]["uid"]})
}

fn of(run: &Run) -> Value {
    let document = run.document();
    let fields = document.as_object().expect("an object");
    assert!(fields.contains_key("cluster"), "{document}");
    document["cluster"].clone()
}

#[test]
fn every_document_names_its_cluster() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let other = Set::secret(&home, "other");
    let objects = [config_map(&home, "one", "1")];
    let files = Files::new().with("objects.yaml", &objects_file(&objects));
    let directory = files.directory().display().to_string();
    let expected = named();
    assert!(expected["uid"].is_string(), "{expected}");

    let manifests = ["-f", directory.as_str()];
    assert_eq!(of(&set.invoke("diff", &manifests).expect(1)), expected);
    assert_eq!(of(&set.invoke("apply", &manifests).expect(0)), expected);
    let list = Program::new().args(["list", "-n", &home, "-o", "json"]).run();
    assert_eq!(of(&list.expect(0)), expected);
    for command in ["view", "history", "verify"] {
        assert_eq!(of(&set.invoke(command, &[]).expect(0)), expected, "{command}");
    }
    let moved = set.invoke("move", &[&other.reference]);
    assert_eq!(of(&moved.expect(0)), expected);
    assert_eq!(of(&other.invoke("disband", &["--yes"]).expect(0)), expected);
    assert_eq!(of(&set.invoke("adopt", &manifests).expect(0)), expected);
    assert_eq!(of(&set.invoke("delete", &["--yes"]).expect(0)), expected);

    let yaml = Program::new().args(["list", "-n", &home, "-o", "yaml"]).run();
    let yaml = yaml.expect(0).stdout;
    let server = expected["server"].as_str().expect("a URL");
    let uid = expected["uid"].as_str().expect("a UID");
    assert!(
        yaml.contains("\ncluster:\n") && yaml.contains(server) && yaml.contains(uid),
        "{yaml}"
    );
}

#[test]
fn a_failed_run_names_the_cluster_as_far_as_it_is_known() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects = [config_map(&home, "one", "1")];
    assert_eq!(of(&set.apply_with(&[], &[]).expect(3)), named());
    // Reading the parent is forbidden.
    let one = json!({
        "apiGroups": [""], "resources": ["namespaces"], "resourceNames": ["kube-system"], "verbs": ["get"],
    });
    let user = ControlPlane::shared()
        .user(&[Grant::everywhere([one])])
        .expect("a user");
    for command in ["view", "history", "delete"] {
        let run = set.invoke_by(Program::with_kubeconfig(&user.kubeconfig), command, &[]);
        assert_eq!(of(&run.expect(4)), named(), "{command}");
    }
    let list = ["list", "-n", &home, "-o", "json"];
    let run = Program::with_kubeconfig(&user.kubeconfig).args(list).run();
    assert_eq!(of(&run.expect(4)), named());

    // Without access only the URL is known.
    let unknown = json!({"server": ControlPlane::shared().server_url(), "uid": null});
    assert_eq!(
        of(&set.apply_with(&objects, &["--token=wrong"]).expect(4)),
        unknown
    );
    let run = Program::new().args(list).args(["--token=wrong"]).run();
    assert_eq!(of(&run.expect(4)), unknown);

    // Without a login there is no connection.
    let admin = fs::read_to_string(ControlPlane::shared().admin_kubeconfig()).expect("a kubeconfig");
    let mut config = serde_json::to_value(kube::config::Kubeconfig::from_yaml(&admin).expect("a kubeconfig"))
        .expect("JSON");
    let plugin = json!({
        "apiVersion": "client.authentication.k8s.io/v1", "command": "false", "interactiveMode": "Never",
    });
    config["users"][0]["user"] = json!({"exec": plugin});
    let files = Files::new().with("config", &config.to_string());
    for command in ["view", "history", "verify"] {
        let run = set.invoke_by(Program::with_kubeconfig(&files.path("config")), command, &[]);
        assert_eq!(of(&run.expect(4)), Value::Null, "{command}");
    }
    let run = set.delete_with(Program::with_kubeconfig(&files.path("config")), &[]);
    assert_eq!(of(&run.expect(4)), Value::Null);
}

#[test]
fn a_user_who_may_not_read_the_namespace_gets_a_null_uid() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    set.apply(&[config_map(&home, "one", "1")]);
    let rule = |resources: &[&str], names: &[&str], verbs: &[&str]| {
        let rule = json!({"apiGroups": [""], "resources": resources, "verbs": verbs});
        if names.is_empty() {
            rule
        } else {
            with(rule, &json!({"resourceNames": names}))
        }
    };
    let reading = || Grant::in_namespace(&home, [rule(&["configmaps", "secrets"], &[], &["get", "list"])]);
    let uid = |grants: &[Grant]| {
        let user = ControlPlane::shared().user(grants).expect("a user");
        let run = set.invoke_by(Program::with_kubeconfig(&user.kubeconfig), "view", &[]);
        of(&run.expect(0))["uid"].clone()
    };
    assert_eq!(uid(&[reading()]), Value::Null);
    let one = Grant::everywhere([rule(&["namespaces"], &["kube-system"], &["get"])]);
    assert_eq!(uid(&[reading(), one]), named()["uid"]);
}

#[test]
fn the_url_holds_no_credentials() {
    let home = namespace("home");
    let admin = fs::read_to_string(ControlPlane::shared().admin_kubeconfig()).expect("a kubeconfig");
    let with_login = admin.replace("https://127", "https://me:PLANTED@127");
    assert_ne!(admin, with_login);
    let files = Files::new().with("config", &with_login);
    let run = Program::with_kubeconfig(&files.path("config"))
        .args(["list", "-n", &home, "-o", "json", "-v=9"])
        .run()
        .expect(0);
    assert_eq!(of(&run), named());
    let reported = format!("{}{}", run.stdout, run.stderr);
    assert!(!reported.contains("PLANTED"), "{reported}");
}

#[test]
fn only_documents_ask_for_the_uid() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    set.apply(&[config_map(&home, "one", "1"), secret(&home, "two")]);
    let requests = |flags: &[&str]| {
        let proxy = Proxy::transparent();
        let program = Program::with_kubeconfig(&proxy.kubeconfig()).args(["view", "web", "-n", &home]);
        program.args(flags).run().expect(0);
        let mut paths: Vec<String> = proxy.sent().into_iter().map(|sent| sent.path).collect();
        paths.sort();
        paths
    };
    let least = requests(&[]);
    assert_eq!(requests(&["-o", "name"]), least);
    assert_eq!(requests(&["-o", "wide"]), least);
    let mut more = least;
    more.push("/api/v1/namespaces/kube-system".to_owned());
    more.sort();
    assert_eq!(requests(&["-o", "json"]), more);
    assert_eq!(requests(&["-o", "yaml"]), more);
    assert_eq!(requests(&["-o", "kyaml"]), more);
}
