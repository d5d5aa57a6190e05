//! A policy denies the write of the parent with which a run begins, and nothing else.

use controlplane::ControlPlane;
use serde_json::{Value, json};

use super::diff;
use crate::support::{Set, cluster, config_map, eventually, fresh, named, namespace, with};

/// Makes the server refuse to write Secrets of these names in the namespace, and waits until it does.
fn deny_secrets(home: &str, names: [&str; 2]) -> [Value; 2] {
    let policy = fresh("policy");
    let group = "admissionregistration.k8s.io/v1";
    let policy_object = with(
        named(group, "ValidatingAdmissionPolicy", None, &policy),
        &json!({"spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": home}},
                "resourceRules": [{
                    "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"],
                    "resources": ["secrets"], "resourceNames": names,
                }],
            },
            "validations": [{"expression": "false", "message": "not this one"}],
        }}),
    );
    let binding = with(
        named(group, "ValidatingAdmissionPolicyBinding", None, &policy),
        &json!({"spec": {"policyName": policy, "validationActions": ["Deny"]}}),
    );
    let objects = [binding, policy_object];
    for object in &objects {
        cluster().create(object);
    }
    eventually("the policy is in force", || {
        let mut create = ControlPlane::shared().kubectl_command();
        create.args([
            "create",
            "secret",
            "generic",
            names[1],
            "-n",
            home,
            "--dry-run=server",
        ]);
        let output = create.output().expect("kubectl runs");
        (!output.status.success()).then_some(())
    });
    objects
}

#[test]
fn a_denied_write_of_the_parent_is_predicted_for_each_run_that_begins() {
    let home = namespace("home");
    let [web, new] = ["web", "new"].map(|name| Set::secret(&home, name));
    let [one, two] = ["one", "two"].map(|name| config_map(&home, name, "1"));
    web.apply(&[one.clone(), two.clone()]);
    let policy = deny_secrets(&home, ["web", "new"]);
    let before = cluster().state(&[&home]);

    let unchanged = diff(&web, &[one.clone(), two.clone()], &["-o", "json"]).expect(0);
    assert_eq!(unchanged.document()["error"], Value::Null);
    let changes = [
        (&web, vec![config_map(&home, "one", "2")]),
        (&new, vec![config_map(&home, "other", "1")]),
    ];
    for (set, objects) in changes {
        let run = diff(set, &objects, &["-o", "json"]).expect(1);
        let error = &run.document()["error"]["message"];
        let is_of_parent = |text: &str| text.contains("the set's parent") && text.contains("not this one");
        assert!(error.as_str().is_some_and(is_of_parent), "{error}");
        assert_eq!(run.results("pruned"), Vec::<String>::new());
        let run = set.apply_with(&objects, &["--dry-run=server"]).expect(1);
        assert!(
            run.errors().iter().any(|error| is_of_parent(error)),
            "{}",
            run.stderr
        );
        let run = set.apply_with(&objects, &[]);
        assert!(
            run.errors().iter().any(|error| is_of_parent(error)),
            "{}",
            run.stderr
        );
        assert_eq!(cluster().state(&[&home]), before);
    }
    for object in &policy {
        cluster().delete(object);
    }
    web.assert_holds(&[one, two]);
}
