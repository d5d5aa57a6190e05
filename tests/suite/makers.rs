//! `adopt -l` takes what people have made with kubectl, and leaves what controllers have made.

use controlplane::ControlPlane;
use serde_json::{Value, json};

use crate::support::{
    Set, cluster, config_map, deployment, fresh, identities, kubectl_apply, named, namespace, succeed, with,
};

/// kubectl in this namespace.
fn kubectl(home: &str, arguments: &[&str]) {
    succeed(
        ControlPlane::shared()
            .kubectl_command()
            .env("KUBE_EDITOR", "sed -i s/edit-me/edited/")
            .args(["-n", home])
            .args(arguments),
    );
}

fn labeled(object: Value, app: &str) -> Value {
    with(object, &json!({"metadata": {"labels": {"app": app}}}))
}

#[test]
fn what_people_made_with_kubectl_is_taken() {
    let home = namespace("home");
    let app = fresh("app");
    let label = format!("app={app}");
    let labels = format!("--labels={label}");
    let set = Set::secret(&home, "web");
    let object = |version: &str, kind: &str, name: &str| named(version, kind, Some(&home), name);
    let map = |name: &str| object("v1", "ConfigMap", name);

    kubectl(&home, &["create", "configmap", "labeled", "--from-literal=a=b"]);
    kubectl(&home, &["label", "configmap", "labeled", &label]);
    kubectl(&home, &["create", "configmap", "empty"]);
    kubectl(&home, &["label", "configmap", "empty", &label]);
    kubectl(
        &home,
        &["create", "configmap", "edited", "--from-literal=a=edit-me"],
    );
    kubectl(&home, &["label", "configmap", "edited", &label]);
    kubectl(&home, &["edit", "configmap", "edited"]);
    kubectl(&home, &["create", "configmap", "patched", "--from-literal=a=b"]);
    let patch = format!(r#"{{"metadata":{{"labels":{{"app":"{app}"}}}}}}"#);
    kubectl(&home, &["patch", "configmap", "patched", "-p", &patch]);
    kubectl(&home, &["annotate", "configmap", "patched", "note=text"]);
    kubectl(&home, &["run", "runner", "--image=none", &labels]);
    kubectl(&home, &["expose", "pod", "runner", "--port=80", &labels]);
    kubectl(&home, &["create", "deployment", "web", "--image=none"]);
    kubectl(&home, &["label", "deployment", "web", &label, "--overwrite"]);
    kubectl(&home, &["scale", "deployment", "web", "--replicas=2"]);
    kubectl(&home, &["set", "image", "deployment/web", "none=other"]);
    kubectl(&home, &["rollout", "restart", "deployment/web"]);
    kubectl(&home, &["create", "serviceaccount", "account"]);
    kubectl(&home, &["label", "serviceaccount", "account", &label]);
    let replaced = labeled(config_map(&home, "replaced", "1"), &app);
    kubectl_apply(std::slice::from_ref(&replaced), &["--server-side"]).expect(0);
    let applied = labeled(config_map(&home, "applied", "1"), &app);
    kubectl_apply(std::slice::from_ref(&applied), &[]).expect(0);

    let taken = [
        object("apps/v1", "Deployment", "web"),
        applied,
        map("edited"),
        map("labeled"),
        map("patched"),
        replaced,
        object("v1", "Pod", "runner"),
        object("v1", "Service", "runner"),
    ];
    let kinds = "--kinds=configmaps,pods,services,deployments,serviceaccounts";
    let run = set.invoke("adopt", &["-l", &label, kinds]).expect(0);

    let mut expected = identities(&taken);
    expected.sort();
    assert_eq!(run.results("adopted"), expected);
    set.assert_holds(&taken);
    // Of an object that was made without any field the server never notes who changes it.
    for name in ["empty", "account"] {
        let reason = run.reason(name);
        assert!(
            reason.contains("no field manager") && reason.contains("-f"),
            "{reason}"
        );
    }
}

#[test]
fn what_controllers_made_stays_for_every_writer_of_its_label() {
    let home = namespace("home");
    let app = fresh("app");
    let label = format!("app={app}");
    let set = Set::secret(&home, "web");
    let object = |kind: &str, name: &str| named("v1", kind, Some(&home), name);
    let [authority, account] = [
        object("ConfigMap", "kube-root-ca.crt"),
        object("ServiceAccount", "default"),
    ];
    // As the controllers of a namespace make them.
    cluster().create(&with(authority.clone(), &json!({"data": {"ca.crt": "x"}})));
    cluster().create(&account);
    kubectl(&home, &["label", "configmap", "kube-root-ca.crt", &label]);
    kubectl(&home, &["label", "serviceaccount", "default", &label]);
    // By a program that is neither kubectl nor an applier, and edited by a person since.
    let copy = labeled(config_map(&home, "copy", "edit-me"), &app);
    cluster().create(&copy);
    kubectl(&home, &["edit", "configmap", "copy"]);
    // Made by a person, for an owner.
    kubectl(&home, &["create", "configmap", "owner"]);
    let owner = cluster().live(&object("ConfigMap", "owner")).expect("the owner");
    let owned = with(
        labeled(config_map(&home, "owned", "1"), &app),
        &json!({"metadata": {"ownerReferences": [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]},
        ]}}),
    );
    kubectl_apply(std::slice::from_ref(&owned), &[]).expect(0);
    // Its pods' template is copied by the controllers of the deployment.
    let web = with(
        labeled(deployment(&home, "web", 1), &app),
        &json!({"spec": {
            "selector": {"matchLabels": {"app": app}},
            "template": {"metadata": {"labels": {"app": app}}},
        }}),
    );
    kubectl_apply(std::slice::from_ref(&web), &[]).expect(0);
    let before = [&authority, &account, &copy, &owned].map(|object| cluster().live(object));

    let kinds = "--kinds=configmaps,serviceaccounts,deployments,replicasets";
    let run = set.invoke("adopt", &["-l", &label, kinds]).expect(0);

    assert_eq!(run.results("adopted"), identities([&web]));
    let table = [
        ("kube-root-ca.crt", "tests"),
        ("default", "no field manager"),
        ("copy", "tests"),
        ("owned", "ConfigMap owner"),
    ];
    for (name, maker) in table {
        assert!(run.reason(name).contains(maker), "{name}: {}", run.reason(name));
    }
    assert!(run.reason("copy").contains("-f"), "{}", run.reason("copy"));
    assert_eq!(
        [&authority, &account, &copy, &owned].map(|object| cluster().live(object)),
        before
    );
    set.assert_holds(&[web]);
}
