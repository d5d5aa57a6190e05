//! What a run does for users who may not do everything, and the rights that `rbac`
//! prints: a user who has exactly those goes through the whole life of a set.

use std::path::PathBuf;

use controlplane::{ControlPlane, Grant, User};
use serde_json::{Value, json};

use crate::support::{
    Files, PART_OF, Program, Run, Set, cluster, config_map, custom_resource, definition, eventually, fresh,
    identities, named, namespace, namespace_object, objects_file, secret, service, with,
};

const RBAC: &str = "rbac.authorization.k8s.io/v1";

/// A user who has nothing but these rights.
pub(super) fn user(grants: &[Grant]) -> User {
    ControlPlane::shared().user(grants).expect("a user")
}

pub(super) fn rule(group: &str, resource: &str, verbs: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": [resource], "verbs": verbs})
}

/// Everything that a set of ConfigMaps takes, but for some verbs on these.
fn all_but(namespace: &str, missing: &[&str]) -> Grant {
    let mut verbs = vec!["get", "list", "create", "patch", "delete"];
    let parent = rule("", "secrets", &["get", "create", "patch"]);
    verbs.retain(|verb| !missing.contains(verb));
    Grant::in_namespace(namespace, [rule("", "configmaps", &verbs), parent])
}

fn apply_as(user: &User, set: &Set, objects: &[Value], flags: &[&str]) -> Run {
    let files = Files::new().with("objects.yaml", &objects_file(objects));
    set.command(Program::with_kubeconfig(&user.kubeconfig), &files)
        .args(["-o", "json"])
        .args(flags)
        .run()
}

/// Has `rbac` print the rights of the user, and grants exactly what it prints.
pub(super) fn grant_what_is_printed(user: &User, set: &Set, objects: &[Value]) {
    grant_what_is_printed_with(&[], user, set, objects);
}

pub(super) fn grant_what_is_printed_with(flags: &[&str], user: &User, set: &Set, objects: &[Value]) {
    let files = Files::new().with("objects.yaml", &objects_file(objects));
    let run = Program::new()
        .args(["rbac", &set.reference, "-n", &set.namespace, "-o", "json"])
        .args(["--user", &user.name, "-f"])
        .args([files.directory()])
        .args(flags)
        .run()
        .expect(0);
    let list = run.document();
    assert_eq!(list["kind"], "List");
    let items = list["items"].as_array().expect("items");
    for object in items {
        cluster().apply_as("admin", object);
    }
    for object in items {
        if let Some(rule) = object.pointer("/rules/0") {
            let namespace = object["metadata"]["namespace"].as_str();
            eventually("the permissions are in effect", || {
                may(user, rule, namespace).then_some(())
            });
        }
    }
}

/// Whether the server gives the user what the rule says.
fn may(user: &User, rule: &Value, namespace: Option<&str>) -> bool {
    let first = |field: &str| rule[field][0].as_str().unwrap_or_default();
    let mut resource = format!("{}.{}", first("resources"), first("apiGroups"));
    if !first("resourceNames").is_empty() {
        resource = format!("{resource}/{}", first("resourceNames"));
    }
    let asked = [
        "auth",
        "can-i",
        first("verbs"),
        resource.trim_end_matches('.'),
        "--as",
        &user.name,
    ];
    let place = namespace.map(|namespace| ["-n", namespace]);
    let arguments = asked.into_iter().chain(place.into_iter().flatten());
    let answer = ControlPlane::shared()
        .run_kubectl(arguments)
        .expect("kubectl runs");
    answer.status.success()
}

fn missing(run: &Run) -> Vec<String> {
    let message = run.document()["error"]["message"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    message.lines().map(str::to_owned).collect()
}

fn denied(verb: &str, resource: &str, namespace: &str) -> String {
    format!("cannot {verb} resource \"{resource}\" in API group \"\" in the namespace {namespace:?}")
}

fn role(namespace: &str, verbs: &[&str]) -> Value {
    with(
        named(RBAC, "Role", Some(namespace), "reader"),
        &json!({"rules": [rule("", "pods", verbs)]}),
    )
}

fn role_binding(namespace: &str, kind: &str, name: &str) -> Value {
    with(
        named(RBAC, "RoleBinding", Some(namespace), name),
        &json!({
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": "app", "namespace": namespace}],
        }),
    )
}

#[test]
fn who_may_not_delete_hears_it_before_the_first_write() {
    let shop = namespace("shop");
    let set = Set::secret(&shop, "web");
    let objects = ["one", "two", "three"].map(|name| config_map(&shop, name, "1"));
    set.apply(&objects);
    let user = user(&[all_but(&shop, &["delete"])]);
    let before = cluster().state(&[&shop]);
    let changed = [config_map(&shop, "one", "2")];

    for flags in [&[][..], &["--dry-run=server"]] {
        let run = apply_as(&user, &set, &changed, flags).expect(4);
        assert_eq!(
            missing(&run),
            [format!(
                "forbidden: you {}",
                denied("delete", "configmaps", &shop)
            )]
        );
        assert_eq!(run.document()["results"], json!([]));
    }

    assert_eq!(cluster().state(&[&shop]), before);
    apply_as(&user, &set, &changed, &["--dry-run=client"]).expect(0);
    apply_as(&user, &set, &changed, &["--prune=false"]).expect(0);
}

#[test]
fn a_server_dry_run_needs_to_read_what_it_compares() {
    let shop = namespace("shop");
    let set = Set::secret(&shop, "web");
    set.apply(&["one", "two"].map(|name| config_map(&shop, name, "1")));
    let user = user(&[all_but(&shop, &["get"])]);
    let changed = ["one", "two"].map(|name| config_map(&shop, name, "2"));

    let run = apply_as(&user, &set, &changed, &["--dry-run=server"]).expect(4);

    assert_eq!(
        missing(&run),
        [format!("forbidden: you {}", denied("get", "configmaps", &shop))]
    );
    apply_as(&user, &set, &changed, &[]).expect(0);
}

#[test]
fn all_that_is_missing_is_reported_at_once() {
    let [shop, other] = [namespace("shop"), namespace("other")];
    let set = Set::secret(&shop, "web");
    set.apply(&[config_map(&shop, "one", "1")]);
    let user = user(&[
        all_but(&shop, &["delete", "create"]),
        all_but(&other, &["patch"]),
        Grant::everywhere([rule("scheduling.k8s.io", "priorityclasses", &["get", "list"])]),
    ]);
    let class = with(
        named("scheduling.k8s.io/v1", "PriorityClass", None, &fresh("high")),
        &json!({"value": 5}),
    );
    let name = class["metadata"]["name"].as_str().expect("a name");

    let wanted = [
        config_map(&shop, "two", "1"),
        config_map(&other, "three", "1"),
        class.clone(),
    ];
    let run = apply_as(&user, &set, &wanted, &[]).expect(4);

    let class_text = format!(
        "resource \"priorityclasses\" {name:?} in API group \"scheduling.k8s.io\" at the cluster scope"
    );
    let mut expected = vec![
        "forbidden: 5 permissions missing".to_owned(),
        format!("  cannot create {class_text}"),
        format!("  cannot patch {class_text}"),
        format!("  {}", denied("patch", "configmaps\" \"three", &other)),
        format!("  {}", denied("create", "configmaps\" \"two", &shop)),
        format!("  {}", denied("delete", "configmaps\" \"one", &shop)),
    ];
    let mut reported = missing(&run);
    expected.sort();
    reported.sort();
    assert_eq!(reported, expected);
    assert_eq!(cluster().live(&class), None);
    set.assert_holds(&[config_map(&shop, "one", "1")]);
}

#[test]
fn who_may_not_list_hears_it_before_the_first_write() {
    let shop = namespace("shop");
    let set = Set::secret(&shop, "web");
    let user = user(&[all_but(&shop, &["list"])]);
    apply_as(&user, &set, &[config_map(&shop, "one", "1")], &[]).expect(4);
    assert_eq!(set.live_parent(), None);
    assert_eq!(cluster().live(&config_map(&shop, "one", "1")), None);
}

#[test]
fn what_exists_takes_no_right_to_create_it() {
    let shop = namespace("shop");
    let set = Set::secret(&shop, "web");
    let object = config_map(&shop, "one", "1");
    cluster().create(&object);
    let user = user(&[all_but(&shop, &["create"])]);
    let objects = std::slice::from_ref(&object);
    apply_as(&user, &set, objects, &["--force-conflicts"]).expect(0);
    set.assert_holds(objects);
}

#[test]
fn rights_on_single_objects_are_rights() {
    let shop = namespace("shop");
    let set = Set::secret(&shop, "web");
    let objects = ["one", "two"].map(|name| config_map(&shop, name, "1"));
    let by_name = json!({
        "apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["one", "two"],
        "verbs": ["get", "create", "patch", "delete"],
    });
    let parent = rule("", "secrets", &["get", "create", "patch"]);
    let user = user(&[Grant::in_namespace(
        &shop,
        [by_name, rule("", "configmaps", &["list"]), parent],
    )]);
    apply_as(&user, &set, &objects, &[]).expect(0);
    apply_as(&user, &set, &objects[..1], &[]).expect(0);
    set.assert_holds(&objects[..1]);
}

#[test]
fn a_run_that_writes_nothing_asks_nothing() {
    let shop = namespace("shop");
    let set = Set::secret(&shop, "web");
    let objects = [config_map(&shop, "one", "1")];
    set.apply(&objects);
    let reader = user(&[Grant::in_namespace(
        &shop,
        [rule("", "configmaps", &["list"]), rule("", "secrets", &["get"])],
    )]);
    let run = apply_as(&reader, &set, &objects, &[]).expect(0);
    assert_eq!(
        run.document()["requests"],
        set.apply(&objects).document()["requests"]
    );
}

#[test]
fn the_printed_rights_carry_a_set_through_its_life() {
    let [shop, other, group] = [
        namespace("shop"),
        namespace("other"),
        format!("{}.example.com", fresh("g")),
    ];
    let set = Set::secret(&shop, "web");
    let class = with(
        named("scheduling.k8s.io/v1", "PriorityClass", None, &fresh("high")),
        &json!({"value": 5}),
    );
    let cluster_role = with(
        named(RBAC, "ClusterRole", None, &fresh("nodes")),
        &json!({"rules": [rule("", "nodes", &["get"])]}),
    );
    let objects = [
        config_map(&shop, "one", "1"),
        secret(&other, "two"),
        service(&shop, "web", 80),
        class,
        cluster_role,
        role(&shop, &["get"]),
        role_binding(&shop, "Role", "reader"),
        role_binding(&other, "ClusterRole", "view"),
        definition(&group, "Namespaced"),
        custom_resource(&group, Some(&shop), "web"),
    ];
    let user = user(&[]);
    apply_as(&user, &set, &objects, &[]).expect(4);
    grant_what_is_printed(&user, &set, &objects);

    let first = apply_as(&user, &set, &objects, &[]).expect(0);
    assert_eq!(first.results("created"), identities(&objects));
    set.assert_holds(&objects);
    let again = apply_as(&user, &set, &objects, &[]).expect(0);
    assert_eq!(again.results("unchanged"), identities(&objects));

    let changed = [config_map(&shop, "one", "2"), role(&shop, &["get", "watch"])];
    apply_as(&user, &set, &changed, &["--dry-run=server"]).expect(0);
    let last = apply_as(&user, &set, &changed, &[]).expect(0);
    assert_eq!(last.results("configured"), identities(&changed));
    assert_eq!(last.results("pruned").len(), objects.len() - changed.len());
    set.assert_holds(&changed);

    let program = Program::with_kubeconfig(&user.kubeconfig);
    program
        .args(["delete", "web", "-n", &shop, "--yes"])
        .run()
        .expect(0);
    assert_eq!(cluster().live(&set.parent), None);
}

#[test]
fn the_printed_rights_let_wait_and_only_apply_and_diff_name_them() {
    let shop = namespace("shop");
    let set = Set::secret(&shop, "web");
    let objects = [config_map(&shop, "one", "1")];
    let user = user(&[]);
    let hints = |run: &Run| run.document()["error"]["hints"].to_string();
    let run = apply_as(&user, &set, &objects, &[]).expect(4);
    assert!(hints(&run).contains("applyset rbac"), "{}", run.stdout);
    grant_what_is_printed(&user, &set, &objects);
    let run = apply_as(&user, &set, &objects, &["--wait"]).expect(0);
    assert!(!run.stderr.contains("watch"), "{}", run.stderr);

    let other = namespace("other");
    let program = Program::with_kubeconfig(&user.kubeconfig);
    let run = program.args(["list", "-n", &other]).run().expect(4);
    assert!(
        !run.stderr.contains("applyset rbac") && run.stderr.contains("administrator"),
        "{}",
        run.stderr
    );
}

/// A tenant who may write the parent, and objects with its label, would otherwise decide what a pipeline is granted.
#[test]
fn what_no_manifest_needs_is_granted_only_if_asked_for() {
    let [shop, other] = [namespace("shop"), namespace("other")];
    let set = Set::secret(&shop, "web");
    let objects = [config_map(&shop, "one", "1")];
    set.apply(&objects);
    let forged = with(
        named("v1", "Secret", Some(&shop), "web"),
        &json!({"metadata": {"annotations": {
            "applyset.kubernetes.io/contains-group-kinds": "ConfigMap,Gone.example.com,Node,Service",
            "applyset.kubernetes.io/additional-namespaces": other,
        }}}),
    );
    cluster().apply_as("tenant", &forged);
    for bait in [service(&other, "bait", 80), config_map(&other, "bait", "1")] {
        let label = json!({"metadata": {"labels": {PART_OF: &*set.id}}});
        cluster().apply_as("tenant", &with(bait, &label));
    }
    let files = Files::new().with("objects.yaml", &objects_file(&objects));
    let user = user(&[]);
    let printed = |flags: &[&str]| {
        let program = Program::new().args(["rbac", &set.reference, "-n", &shop, "--user", &user.name, "-f"]);
        program.args([files.directory()]).args(flags).run().expect(0)
    };

    let run = printed(&[]);
    for forged in [
        &*other,
        "services",
        "nodes",
        "ClusterRole",
        "customresourcedefinitions",
    ] {
        assert!(!run.stdout.contains(forged), "{forged}: {}", run.stdout);
    }
    let names = format!("configmaps in namespace {other}");
    for part in [
        &*names,
        "nodes",
        "tenant",
        "list and delete",
        "--include-recorded",
    ] {
        assert!(run.stderr.contains(part), "{part}: {}", run.stderr);
    }
    grant_what_is_printed(&user, &set, &objects);
    let refused = apply_as(&user, &set, &objects, &[]).expect(4);
    let hints = refused.document()["error"]["hints"].to_string();
    assert!(hints.contains("--include-recorded"), "{hints}");

    let run = printed(&["--include-recorded"]);
    for recorded in [&*other, "services", "nodes", "customresourcedefinitions"] {
        assert!(run.stdout.contains(recorded), "{recorded}: {}", run.stdout);
    }
    assert!(!run.stderr.contains("tenant"), "{}", run.stderr);
}

#[test]
fn recorded_rights_let_what_left_the_manifests_be_pruned() {
    let [shop, other] = [namespace("shop"), namespace("other")];
    let set = Set::config_map(&shop, "web");
    let class = with(
        named("scheduling.k8s.io/v1", "PriorityClass", None, &fresh("high")),
        &json!({"value": 5}),
    );
    set.apply(&[config_map(&shop, "one", "1"), secret(&other, "two"), class]);
    let left = [config_map(&shop, "one", "1")];
    let user = user(&[]);
    grant_what_is_printed_with(&["--include-recorded"], &user, &set, &left);
    let run = apply_as(&user, &set, &left, &[]).expect(0);
    assert_eq!(run.results("pruned").len(), 2);
    set.assert_holds(&left);
}

#[test]
fn a_namespace_among_the_manifests_is_made_before_its_role() {
    let shop = namespace("shop");
    let brought = namespace("brought");
    let set = Set::secret(&shop, "web");
    let objects = [namespace_object(&brought), config_map(&brought, "one", "1")];
    let user = user(&[]);
    grant_what_is_printed(&user, &set, &objects);
    apply_as(&user, &set, &objects, &[]).expect(0);
    set.assert_holds(&objects);
}

/// The Roles in the namespace go with it.
#[test]
fn a_set_with_its_own_namespace_is_deleted_with_the_printed_rights() {
    let shop = namespace("shop");
    let set = Set::secret(&shop, "web");
    let objects = [namespace_object(&shop), config_map(&shop, "one", "1")];
    let user = user(&[]);
    grant_what_is_printed(&user, &set, &objects);
    apply_as(&user, &set, &objects, &[]).expect(0);
    let program = Program::with_kubeconfig(&user.kubeconfig);
    program
        .args(["delete", "web", "-n", &shop, "--yes", "--allow-data-loss"])
        .run()
        .expect(0);
    for gone in [&objects[0], &objects[1], &set.parent] {
        assert_eq!(cluster().live(gone), None);
    }
}

/// The Roles in a namespace that another client deletes go with it, and nothing is left to list there.
#[test]
fn a_run_goes_on_if_a_recorded_namespace_is_gone_with_its_roles() {
    let [shop, lyon] = ["shop", "lyon"].map(namespace);
    let set = Set::secret(&shop, "web");
    let stays = [config_map(&shop, "one", "1")];
    let objects = [
        &stays[..],
        &[namespace_object(&lyon), config_map(&lyon, "two", "1")],
    ]
    .concat();
    let user = user(&[]);
    grant_what_is_printed(&user, &set, &objects);
    apply_as(&user, &set, &objects, &[]).expect(0);
    cluster().delete(&namespace_object(&lyon));
    eventually("the namespace is gone", || {
        cluster().live(&namespace_object(&lyon)).is_none().then_some(())
    });
    apply_as(&user, &set, &stays, &[]).expect(0);
    set.assert_holds(&stays);
}

#[test]
fn a_custom_parent_among_the_manifests_takes_the_printed_rights_and_no_more() {
    let [home, group] = [namespace("home"), format!("{}.example.com", fresh("g"))];
    let set = Set::custom(&group, Some(&home), &home);
    let mut crd = definition(&group, "Namespaced");
    crd["metadata"]["labels"] = json!({crate::support::IS_PARENT_TYPE: "true"});
    let members = [crd, config_map(&home, "one", "1")];
    let objects = [&members[..], &[custom_resource(&group, Some(&home), "web")]].concat();
    let user = user(&[]);
    grant_what_is_printed(&user, &set, &objects);
    apply_as(&user, &set, &objects, &[]).expect(0);
    set.assert_holds(&members);
    apply_as(&user, &set, &members, &[]).expect(0);
}

#[test]
fn subjects_are_reported_from_each_other() {
    let shop = namespace("shop");
    let set = Set::secret(&shop, "web");
    let files = Files::new().with("one.yaml", &objects_file(&[config_map(&shop, "one", "1")]));
    let directory: PathBuf = files.directory().into();
    let subjects = |flags: &[&str]| {
        let run = Program::new()
            .args(["rbac", &set.reference, "-n", &shop, "-o", "json", "-f"])
            .args([&directory])
            .args(flags)
            .run()
            .expect(0);
        run.document()["items"][1]["subjects"].clone()
    };
    let subject = |flags: &[&str]| {
        let subjects = subjects(flags);
        assert_eq!(subjects.as_array().map(Vec::len), Some(1), "{subjects}");
        subjects[0].clone()
    };
    let account =
        |namespace: &str, name: &str| json!({"kind": "ServiceAccount", "namespace": namespace, "name": name});
    let user = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"});
    assert_eq!(subject(&[]), account(&shop, "web"));
    assert_eq!(subject(&["--serviceaccount", "tools:ci"]), account("tools", "ci"));
    assert_eq!(
        subject(&["--as", "system:serviceaccount:tools:ci"]),
        account("tools", "ci")
    );
    assert_eq!(subject(&["--as", "jane"]), user);
    let group = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "dev"});
    assert_eq!(
        subjects(&["--group=dev", "--user=jane", "--serviceaccount=tools:ci"]),
        json!([user, group, account("tools", "ci")])
    );
    assert_eq!(subject(&["--user", "jane", "--as", "joe"]), user);
}

#[test]
fn who_may_not_list_everywhere_deletes_what_lost_its_parent_in_the_namespace() {
    let [home, away] = [namespace("home"), namespace("away")];
    let set = Set::secret(&home, "web");
    let objects = [config_map(&home, "one", "1"), config_map(&away, "two", "1")];
    set.apply(&objects);
    cluster().delete(&set.parent);
    let verbs = ["get", "list", "patch", "delete"];
    let rules = [rule("", "configmaps", &verbs), rule("", "secrets", &["get"])];
    let user = user(&[Grant::in_namespace(home.as_str(), rules)]);
    let delete = || {
        let program = Program::with_kubeconfig(&user.kubeconfig);
        set.delete_with(program, &["--ignore-not-found"])
    };

    let run = delete().expect(0);

    assert_eq!(run.results("deleted"), identities(&objects[..1]));
    assert!(
        run.warnings()
            .iter()
            .any(|warning| warning.contains("configmaps")),
        "{}",
        run.stderr
    );
    // What is left is where this user may not look: no message may say that there is nothing.
    let run = delete().expect(4);
    assert!(run.stderr.contains("configmaps"), "{}", run.stderr);
    assert!(cluster().live(&objects[1]).is_some());
    set.delete(&[]).expect(0);
    set.delete(&["--ignore-not-found"]).expect(0);
}
