//! `adopt`, `move` and `disband` of a set that has members and no record: whose parent
//! somebody deleted, or whose first run was interrupted. A new record tells of them, too, or
//! nobody would look for them any more.

use serde_json::{Value, json};

use crate::support::{
    Fate, Files, Program, Proxy, Run, Set, cluster, cluster_role, config_map, fresh, identities, namespace,
    namespace_object, objects_file, secret, service, with,
};

fn adopt(set: &Set, objects: &[Value]) -> Run {
    let files = Files::new().with("objects.yaml", &objects_file(objects));
    let directory = files.directory().to_string_lossy().into_owned();
    set.invoke("adopt", &["-f", &directory])
}

/// A set whose parent somebody has deleted, and its members.
fn orphaned(home: &str) -> (Set, Vec<Value>) {
    let set = Set::secret(home, "web");
    let objects = vec![
        config_map(home, "one", "1"),
        service(&namespace("away"), "two", 80),
        cluster_role(&fresh("role")),
    ];
    set.apply(&objects);
    cluster().delete(&set.parent);
    (set, objects)
}

#[test]
fn what_is_adopted_joins_members_whose_parent_is_gone() {
    let home = namespace("home");
    let (set, orphans) = orphaned(&home);
    let newcomer = secret(&home, "new");
    cluster().create(&newcomer);

    let run = adopt(&set, std::slice::from_ref(&newcomer)).expect(0);

    let all = [orphans.as_slice(), std::slice::from_ref(&newcomer)].concat();
    set.assert_holds(&all);
    assert!(
        run.warnings().iter().any(|warning| warning.contains("3 objects")),
        "{}",
        run.stderr
    );
    let run = set.apply_with(std::slice::from_ref(&newcomer), &["--force-conflicts"]);
    assert_eq!(run.expect(0).results("pruned"), identities(&orphans));
}

#[test]
fn what_moves_joins_members_whose_parent_is_gone() {
    let home = namespace("home");
    let (set, orphans) = orphaned(&home);
    let old = Set::config_map(&home, "old");
    let moved = secret(&home, "moved");
    old.apply(std::slice::from_ref(&moved));
    old.invoke("move", &["secret/web"]).expect(0);
    set.assert_holds(&[orphans.as_slice(), std::slice::from_ref(&moved)].concat());
    old.assert_holds(&[]);
}

/// The namespace of the parent and the parent itself, both among the manifests, as far as a
/// first run comes that is killed after this many writes.
fn interrupted(writes: usize) -> (Set, Vec<Value>) {
    let home = fresh("home");
    let set = Set::secret(&home, "web");
    let with_data = with(
        secret(&home, "web"),
        &json!({"metadata": {"labels": {"mine": "1"}}}),
    );
    let objects = vec![namespace_object(&home), with_data, config_map(&home, "one", "1")];
    let files = Files::new().with("objects.yaml", &objects_file(&objects));
    let proxy = Proxy::holding_after(writes);
    let program = Program::with_kubeconfig(&proxy.kubeconfig());
    assert_eq!(set.command(program, &files).run_until_held(&proxy), Fate::Killed);
    (set, objects)
}

#[test]
fn what_is_adopted_joins_the_namespace_that_an_interrupted_first_run_has_made() {
    let (set, objects) = interrupted(1);
    let newcomer = config_map(&set.namespace, "new", "1");
    cluster().create(&newcomer);
    adopt(&set, std::slice::from_ref(&newcomer)).expect(0);
    set.assert_holds(&[objects[0].clone(), newcomer]);
}

#[test]
fn an_interrupted_first_run_is_forgotten_with_the_namespace_that_it_has_made() {
    let (set, objects) = interrupted(2);
    assert!(set.live_parent().is_some());
    let run = set.invoke("disband", &["--yes"]).expect(0);
    assert_eq!(run.results("released"), identities(&objects[..1]));
    assert_eq!(cluster().members(&set.id), []);
}
