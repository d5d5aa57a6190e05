//! Sets that have members and no record: whose parent a person deleted or replaced, whose
//! bookkeeping was removed, or whose first run was interrupted. A new record covers them, too,
//! or no run would look for them any more.

use controlplane::{ControlPlane, Grant};
use serde_json::{Value, json};

use crate::support::{
    Fault, Files, GROUP_KINDS, ID, NAMESPACES, PART_OF, Program, ProgramEnd, Proxy, Run, Set, TOOLING,
    cluster, cluster_role, config_map, custom_resource, definition, fresh, identities, namespace,
    namespace_object, objects_file, secret, service, with,
};

fn adopt(set: &Set, objects: &[Value]) -> Run {
    let files = Files::new().with("objects.yaml", &objects_file(objects));
    let directory = files.directory().to_string_lossy().into_owned();
    set.invoke("adopt", &["-f", &directory])
}

/// A set whose parent another client has deleted, and its members.
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
fn a_list_that_fails_does_not_prove_that_a_set_without_a_parent_is_empty() {
    let home = namespace("home");
    let group = format!("{}.example.com", fresh("g"));
    cluster().define(&definition(&group, "Namespaced"));
    let set = Set::secret(&home, "web");
    let object = config_map(&home, "one", "1");
    let custom = custom_resource(&group, Some(&home), "hidden");
    set.apply(&[object.clone(), custom.clone()]);
    let proxy = Proxy::breaking(Fault::InternalError, move |sent| {
        sent.method == "GET" && sent.path.contains(&format!("/apis/{group}/v1/widgets"))
    });
    let program = || Program::with_kubeconfig(&proxy.kubeconfig());
    let assert_nothing_done = || {
        let before = cluster().state(&[&home]);
        set.apply_through(&proxy, std::slice::from_ref(&object), &[])
            .expect(4);
        set.delete_with(program(), &[]).expect(4);
        assert_eq!(cluster().state(&[&home]), before);
    };
    cluster().delete(&set.parent);
    assert_nothing_done();
    // As an interrupted first run leaves it.
    let annotations = json!({TOOLING: "kubectl-applyset/v0"});
    cluster().create(&with(
        set.parent.clone(),
        &json!({"metadata": {"annotations": annotations}}),
    ));
    assert_nothing_done();
    set.invoke_by(program(), "disband", &["--yes"]).expect(4);

    let run = set.apply(std::slice::from_ref(&object));
    assert_eq!(run.results("pruned"), identities([&custom]));
    set.assert_holds(&[object]);
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
    assert_eq!(old.live_parent(), None);
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
    assert_eq!(
        set.command(program, &files).run_until_held(&proxy),
        ProgramEnd::Killed
    );
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

/// Removes the keys of the convention from the parent, in this order. After each one but the
/// last, `between` sees what there is.
fn remove_bookkeeping(set: &Set, keys: &[&str], between: impl Fn(&str)) {
    for (position, key) in keys.iter().enumerate() {
        let field = if *key == ID { "labels" } else { "annotations" };
        let mut patch = json!({"metadata": {}});
        patch["metadata"][field][*key] = Value::Null;
        cluster().patch(&set.parent, &patch);
        if position + 1 < keys.len() {
            between(key);
        }
    }
}

/// A set with members in three scopes, of which the manifests keep the first.
fn members_of(set: &Set) -> Vec<Value> {
    vec![
        config_map(&set.namespace, "one", "1"),
        service(&namespace("away"), "two", 80),
        cluster_role(&fresh("role")),
    ]
}

/// Asserts that the set, whose parent has lost its record, is applied from the first object
/// alone as any other set: `diff` and a dry run predict it, and what left the manifests goes.
#[track_caller]
fn assert_prunes_the_rest(set: &Set, objects: &[Value], flags: &[&str]) {
    let wanted = &objects[..1];
    let before = cluster().state(&[&set.namespace]);
    let files = Files::new().with("objects.yaml", &objects_file(wanted));
    let directory = files.directory().to_string_lossy().into_owned();
    let predicted = set.invoke("diff", &["-f", &directory]).expect(1);
    assert_eq!(predicted.results("pruned"), identities(&objects[1..]));
    let dry_run = [flags, &["--dry-run=server"]].concat();
    let run = set.apply_with(wanted, &dry_run).expect(0);
    assert_eq!(run.results("pruned"), identities(&objects[1..]));
    assert_eq!(cluster().state(&[&set.namespace]), before);

    let run = set.apply_with(wanted, flags).expect(0);

    assert_eq!(run.results("pruned"), identities(&objects[1..]));
    assert!(
        run.warnings()
            .iter()
            .any(|warning| warning.contains("found 3 objects of this set that its parent")),
        "{}",
        run.stderr
    );
    set.assert_holds(wanted);
}

#[test]
fn apply_finds_the_members_of_a_parent_that_lost_its_bookkeeping_key_by_key() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects = members_of(&set);
    set.apply(&objects);
    remove_bookkeeping(&set, &[ID, TOOLING, GROUP_KINDS, NAMESPACES], |key| {
        let run = set
            .apply_with(&objects[..1], &["--take-over-set", "--yes"])
            .expect(3);
        assert!(run.stderr.contains("verify"), "without {key}: {}", run.stderr);
    });
    set.apply_with(&objects[..1], &[]).expect(3);
    assert_prunes_the_rest(&set, &objects, &["--take-over-set", "--yes"]);
}

#[test]
fn apply_finds_the_members_of_a_parent_that_looks_unfinished() {
    let home = namespace("home");
    let set = Set::config_map(&home, "web");
    let objects = members_of(&set);
    set.apply(&objects);
    remove_bookkeeping(&set, &[GROUP_KINDS, NAMESPACES, ID], |key| {
        set.apply_with(&objects[..1], &[]).expect(3);
        assert_ne!(key, ID);
    });
    assert_prunes_the_rest(&set, &objects, &[]);
}

#[test]
fn apply_finds_the_members_of_a_custom_parent_that_was_made_again() {
    let home = namespace("home");
    let group = format!("{}.example.com", fresh("g"));
    let set = Set::custom(&group, Some(&home), &home);
    let parent = custom_resource(&group, Some(&home), "web");
    cluster().define(&definition(&group, "Namespaced"));
    cluster().create(&parent);
    let objects = members_of(&set);
    set.apply(&objects);
    cluster().delete(&parent);
    cluster().create(&parent);
    assert_prunes_the_rest(&set, &objects, &[]);
}

#[test]
fn what_is_kept_of_a_set_whose_record_is_lost_is_recorded() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let kept = with(
        service(&namespace("away"), "kept", 80),
        &json!({"metadata": {"annotations": {"helm.sh/resource-policy": "keep"}}}),
    );
    let objects = [config_map(&home, "one", "1"), kept];
    set.apply(&objects);
    remove_bookkeeping(&set, &[ID, TOOLING, GROUP_KINDS, NAMESPACES], |_| {});
    let run = set
        .apply_with(&objects[..1], &["--take-over-set", "--yes"])
        .expect(0);
    assert_eq!(run.results("skipped"), identities(&objects[1..]));
    set.assert_holds(&objects);
}

#[test]
fn what_could_not_be_looked_at_for_a_lost_record_is_named() {
    let [home, away] = [namespace("home"), namespace("away")];
    let set = Set::secret(&home, "web");
    let objects = [config_map(&home, "one", "1"), service(&away, "two", 80)];
    set.apply(&objects);
    remove_bookkeeping(&set, &[ID, TOOLING, GROUP_KINDS, NAMESPACES], |_| {});
    let all = json!({"apiGroups": [""], "resources": ["*"], "verbs": ["*"]});
    let user = ControlPlane::shared()
        .user(&[Grant::in_namespace(&home, [all])])
        .expect("a user");
    let files = Files::new().with("objects.yaml", &objects_file(&objects[..1]));
    let run = set
        .command(Program::with_kubeconfig(&user.kubeconfig), &files)
        .args(["-o", "json", "--take-over-set", "--yes"])
        .run()
        .expect(0);
    let names = |warning: &String| {
        warning.contains("services") && warning.contains("in all namespaces, so members may be missed")
    };
    assert!(run.warnings().iter().any(names), "{}", run.stderr);
    assert_eq!(run.results("pruned"), Vec::<String>::new());
    set.assert_records(&objects[..1]);
}

/// A member-like object that a tenant made in another namespace.
fn planted(set: &Set, namespace: &str, manager: &str) -> Value {
    let label = json!({"metadata": {"labels": {PART_OF: set.id}}});
    let object = with(config_map(namespace, "planted", "1"), &label);
    cluster().apply_as(manager, &object);
    object
}

#[test]
fn a_label_where_the_user_may_not_delete_adds_no_namespace() {
    let [home, victim] = [namespace("home"), namespace("victim")];
    let set = Set::secret(&home, "web");
    let objects = [config_map(&home, "one", "1"), config_map(&home, "two", "2")];
    set.apply(&objects);
    let planted = planted(&set, &victim, "applyset");
    let all = json!({"apiGroups": [""], "resources": ["*"], "verbs": ["*"]});
    let see = json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list"]});
    let user = ControlPlane::shared()
        .user(&[Grant::in_namespace(&home, [all]), Grant::everywhere([see])])
        .expect("a user");
    let run_as = |command: &str, arguments: &[&str]| {
        let program = Program::with_kubeconfig(&user.kubeconfig);
        let run = set.invoke_by(program, command, arguments);
        // What may be a member is left: that is not all that was asked of `delete`.
        let run = run.expect(i32::from(command == "delete"));
        let names = |warning: &String| warning.contains("victim") && warning.contains("cannot delete there");
        assert!(run.warnings().iter().any(names), "{command}: {}", run.stderr);
        assert!(cluster().live(&planted).is_some(), "{command}");
        run
    };
    let files = Files::new().with("objects.yaml", &objects_file(&objects[..1]));
    let file = files.path("objects.yaml");
    let file = file.to_str().expect("UTF-8");
    remove_bookkeeping(&set, &[ID, TOOLING, GROUP_KINDS, NAMESPACES], |_| {});
    let run = run_as("apply", &["-f", file, "--take-over-set", "--yes"]);
    assert_eq!(run.results("pruned"), identities(&objects[1..]));
    set.assert_records(&objects[..1]);
    cluster().delete(&set.parent);
    run_as("adopt", &["-f", file]);
    set.assert_records(&objects[..1]);
    cluster().delete(&set.parent);
    run_as("delete", &["--yes"]);
    assert_eq!(cluster().live(&objects[0]), None);
    // Once nothing else is left, it says the same.
    let program = Program::with_kubeconfig(&user.kubeconfig);
    let run = set
        .invoke_by(program, "delete", &["--yes", "--ignore-not-found"])
        .expect(1);
    assert!(run.stderr.contains("cannot delete there"), "{}", run.stderr);
    assert!(cluster().live(&planted).is_some());
}

#[test]
fn a_label_that_no_applier_wrote_adds_no_namespace() {
    let [home, victim] = [namespace("home"), namespace("victim")];
    let set = Set::secret(&home, "web");
    let objects = [config_map(&home, "one", "1")];
    set.apply(&objects);
    let planted = planted(&set, &victim, "another-tool");
    remove_bookkeeping(&set, &[ID, TOOLING, GROUP_KINDS, NAMESPACES], |_| {});
    let run = set.apply_with(&objects, &["--take-over-set", "--yes"]).expect(0);
    let names = |warning: &String| warning.contains("written by another-tool, which does not apply this set");
    assert!(run.warnings().iter().any(names), "{}", run.stderr);
    set.assert_records(&objects);
    assert!(cluster().live(&planted).is_some());
}
