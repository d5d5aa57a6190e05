//! `list` and `view`: what they tell of the sets of a namespace and of the cluster, and
//! what they tell a user with few rights.

use controlplane::{ControlPlane, Grant};
use serde_json::{Value, json};

use crate::support::{
    GROUP_KINDS, Program, Set, TOOLING, cluster, cluster_role, config_map, custom_resource, definition,
    fresh, namespace, secret, service,
};

/// The entries of a `list` for these sets, in the order of the list.
fn listed(document: &Value, sets: &[&Set]) -> Vec<Value> {
    let all = document["sets"].as_array().expect("sets");
    let is_ours = |entry: &&Value| sets.iter().any(|set| entry["id"] == *set.id);
    all.iter().filter(is_ours).cloned().collect()
}

#[test]
fn sets_are_listed_by_namespace_or_all() {
    let [a, b] = [namespace("a"), namespace("b")];
    let group = format!("{}.example.com", fresh("g"));
    cluster().define(&definition(&group, "Cluster"));
    cluster().create(&custom_resource(&group, None, "web"));
    let sets = [
        Set::secret(&a, "web"),
        Set::config_map(&b, "web"),
        Set::custom(&group, None, &a),
    ];
    let role = cluster_role(&fresh("role"));
    sets[0].apply(&[config_map(&a, "one", "1"), service(&b, "web", 80), role]);
    sets[1].apply(&[config_map(&b, "two", "1")]);
    sets[2].apply(&[secret(&b, "three")]);

    let run = Program::new().args(["list", "-A", "-o", "json"]).run().expect(0);
    let document = run.document();
    assert_eq!(document["apiVersion"], "kubectl-applyset/v1");
    let everywhere = listed(&document, &sets.each_ref());
    assert_eq!(everywhere.len(), 3);
    let of_a = everywhere.iter().find(|entry| entry["id"] == *sets[0].id);
    let tooling = concat!("kubectl-applyset/v", env!("CARGO_PKG_VERSION"));
    let expected = json!({
        "id": sets[0].id, "kind": "Secret", "group": "", "namespace": a, "name": "web",
        "tooling": tooling,
        "groupKinds": ["ClusterRole.rbac.authorization.k8s.io", "ConfigMap", "Service"],
        "namespaces": [a, b],
        "members": 3, "status": "consistent", "faults": [],
    });
    assert_eq!(of_a, Some(&expected));
    let custom = everywhere.iter().find(|entry| entry["id"] == *sets[2].id);
    let custom = custom.expect("the custom resource's set");
    assert_eq!(
        (&custom["kind"], &custom["group"]),
        (&json!("Widget"), &json!(group))
    );
    assert_eq!(custom["namespaces"], json!([b]));

    let run = Program::new()
        .args(["list", "-n", &b, "-o", "json"])
        .run()
        .expect(0);
    let of_b = run.document();
    assert!(
        of_b["sets"]
            .as_array()
            .expect("sets")
            .iter()
            .any(|entry| entry["id"] == *sets[1].id)
    );
    assert_eq!(listed(&of_b, &[&sets[0]]), Vec::<Value>::new());

    let run = Program::new().args(["list", "-n", &a]).run().expect(0);
    assert!(
        run.stdout
            .lines()
            .any(|line| line.contains("secret/web") && line.contains('3')),
        "{}",
        run.stdout
    );
}

#[test]
fn a_namespace_without_sets_has_an_empty_list() {
    let home = namespace("home");
    cluster().create(&secret(&home, "plain"));
    let run = Program::new()
        .args(["list", "-n", &home, "-o", "json"])
        .run()
        .expect(0);
    let of_namespace = |entry: &&Value| entry["namespace"] == *home;
    let document = run.document();
    let sets = document["sets"].as_array().expect("sets");
    assert_eq!(sets.iter().filter(of_namespace).count(), 0);
}

#[test]
fn a_set_is_viewed_with_its_members() {
    let [a, b] = [namespace("a"), namespace("b")];
    let set = Set::secret(&a, "web");
    let objects = [config_map(&a, "one", "1"), service(&b, "two", 80)];
    set.apply(&objects);
    let before = cluster().state(&[&a, &b]);

    let run = Program::new()
        .args(["view", "web", "-n", &a, "-o", "json"])
        .run()
        .expect(0);

    let document = run.document();
    assert_eq!(document["id"], *set.id);
    assert_eq!(document["status"], "consistent");
    assert_eq!(document["namespaces"], json!([a, b]));
    let uid = |object: &Value| cluster().live(object).expect("it")["metadata"]["uid"].clone();
    let expected = json!([
        {"group": "", "version": "v1", "kind": "ConfigMap", "namespace": a, "name": "one",
         "uid": uid(&objects[0]), "status": "Present"},
        {"group": "", "version": "v1", "kind": "Service", "namespace": b, "name": "two",
         "uid": uid(&objects[1]), "status": "Present"},
    ]);
    assert_eq!(document["members"], expected);

    let run = Program::new()
        .args(["view", "secret/web", "-n", &a])
        .run()
        .expect(0);
    for text in ["configmap/one", "service/two", &a, &b, &set.id] {
        assert!(run.stdout.contains(text), "no {text:?} in\n{}", run.stdout);
    }
    let run = Program::new()
        .args(["view", "web", "-n", &a, "-o", "name"])
        .run()
        .expect(0);
    assert_eq!(run.stdout, "configmap/one\nservice/two\n");
    assert_eq!(cluster().state(&[&a, &b]), before);
}

#[test]
fn a_set_that_is_not_there_is_no_set_to_view() {
    let home = namespace("home");
    let run = Program::new()
        .args(["view", "web", "-n", &home, "-o", "json"])
        .run()
        .expect(2);
    assert_eq!(run.stdout, "");
    assert_eq!(run.errors().len(), 1, "{}", run.stderr);
}

#[test]
fn a_set_whose_last_run_failed_is_unfinished() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    set.apply(&[config_map(&home, "one", "1")]);
    set.apply_with(&[service(&home, "bad", 0)], &[]).expect(1);
    let run = Program::new()
        .args(["view", "web", "-n", &home, "-o", "json"])
        .run()
        .expect(0);
    assert_eq!(run.document()["status"], "unfinished");
}

#[test]
fn sets_with_faults_and_sets_of_other_tools_are_shown() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    set.apply(&[config_map(&home, "one", "1")]);
    let patch = json!({"metadata": {"annotations": {TOOLING: "kubectl/v1.36.3"}}});
    cluster().patch(&set.parent, &patch);
    let run = Program::new()
        .args(["view", "web", "-n", &home, "-o", "json"])
        .run()
        .expect(0);
    assert_eq!(run.document()["tooling"], "kubectl/v1.36.3");

    let patch = json!({"metadata": {"annotations": {GROUP_KINDS: "v2:x"}}});
    cluster().patch(&set.parent, &patch);
    let run = Program::new()
        .args(["list", "-n", &home, "-o", "json"])
        .run()
        .expect(0);
    let entries = listed(&run.document(), &[&set]);
    assert_eq!(entries[0]["status"], "in-doubt");
    assert_ne!(entries[0]["faults"], json!([]));
}

#[test]
fn a_user_of_one_namespace_sees_its_sets() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    set.apply(&[config_map(&home, "one", "1")]);
    let rule = json!({"apiGroups": [""], "resources": ["secrets", "configmaps"], "verbs": ["get", "list"]});
    let user = ControlPlane::shared()
        .user(&[Grant::in_namespace(home.as_str(), [rule])])
        .expect("a user");
    let program = || Program::with_kubeconfig(&user.kubeconfig);

    let run = program()
        .args(["list", "-n", &home, "-o", "json"])
        .run()
        .expect(0);
    assert_eq!(listed(&run.document(), &[&set])[0]["members"], 1);
    // Which custom resources may be parents could not be asked, and that is told.
    assert_ne!(run.document()["warnings"], json!([]));
    let run = program()
        .args(["view", "web", "-n", &home, "-o", "json"])
        .run()
        .expect(0);
    assert_eq!(run.document()["members"][0]["name"], "one");
    let run = program().args(["list", "-A", "-o", "json"]).run().expect(4);
    assert_eq!(run.errors().len(), 1, "{}", run.stderr);
}
