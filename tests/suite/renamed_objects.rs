//! An object gets a new name, and the old one holds what it needs: the run prunes only after everything is applied.

use serde_json::{Value, json};

use crate::support::{Files, Set, cluster, config_map, namespace, service, with};

/// A Service with a node port; the server chooses one if there is none.
fn with_node_port(home: &str, name: &str, port: &Value) -> Value {
    let ports = json!([{"port": 80, "protocol": "TCP", "nodePort": port}]);
    with(
        service(home, name, 80),
        &json!({"spec": {"type": "NodePort", "ports": ports}}),
    )
}

#[test]
fn the_failure_names_what_the_run_would_prune_and_the_command_that_frees_the_way() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let other = config_map(&home, "other", "1");
    let old = with_node_port(&home, "old", &Value::Null);
    set.apply(&[old.clone(), other]);
    let port = cluster().live(&old).expect("it")["spec"]["ports"][0]["nodePort"].clone();
    let new = [with_node_port(&home, "new", &port)];
    let files = Files::new().with("objects.json", &new[0].to_string());
    let manifests = files.path("objects.json");
    let hint = format!("`kubectl delete service/old -n {home}`");

    let run = set.apply_with(&new, &[]).expect(1);

    assert!(run.stderr.contains(&hint), "{}", run.stderr);
    assert!(!run.stderr.contains("kubectl delete configmap"), "{}", run.stderr);
    let shown = set.invoke("diff", &["-f", manifests.to_str().expect("a path")]);
    assert!(shown.stderr.contains(&hint), "{}", shown.stderr);
    let kept = set.apply_with(&new, &["--prune=false"]).expect(1);
    assert!(!kept.stderr.contains(&hint), "{}", kept.stderr);
    cluster().delete(&old);
    set.apply_with(&new, &[]).expect(0);
    set.assert_holds(&new);
}

#[test]
fn another_fault_of_the_manifest_has_no_such_hint() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    set.apply(&[service(&home, "old", 80)]);

    let run = set.apply_with(&[service(&home, "new", 70_000)], &[]).expect(1);

    assert!(!run.stderr.contains("kubectl delete"), "{}", run.stderr);
}
