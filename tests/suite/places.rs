//! Members in any namespace, of any kind and scope, under parents of either scope.

use serde_json::{Value, json};

use crate::support::{
    Files, Program, Proxy, Set, cluster, cluster_role, config_map, custom_resource, definition, eventually,
    fresh, identities, namespace, namespace_object, secret,
};

#[test]
fn an_object_that_moves_leaves_its_old_namespace() {
    let [a, b, c] = [namespace("a"), namespace("b"), namespace("c")];
    let set = Set::secret(&a, "web");
    set.apply(&[config_map(&b, "settings", "1"), config_map(&a, "kept", "1")]);
    let moved = [config_map(&c, "settings", "1"), config_map(&a, "kept", "1")];

    let run = set.apply(&moved);

    assert_eq!(run.results("pruned"), [format!("ConfigMap {b}/settings")]);
    assert_eq!(run.results("created"), [format!("ConfigMap {c}/settings")]);
    set.assert_holds(&moved);
}

#[test]
fn members_are_found_in_many_namespaces() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let names: Vec<String> = (0..6).map(|_| namespace("many")).collect();
    let everywhere: Vec<_> = names.iter().map(|name| config_map(name, "one", "1")).collect();
    set.apply(&everywhere);
    set.assert_holds(&everywhere);

    let run = set.apply(&everywhere[5..]);

    assert_eq!(run.results("pruned"), identities(&everywhere[..5]));
    set.assert_holds(&everywhere[5..]);
}

#[test]
fn definition_custom_resources_namespace_and_contents_come_in_one_run() {
    let home = namespace("home");
    let away = fresh("away");
    let group = format!("{}.example.com", fresh("g"));
    let set = Set::secret(&home, "web");
    // In an order in which no object could be created.
    let objects = [
        custom_resource(&group, Some(&away), "one"),
        config_map(&away, "inside", "1"),
        custom_resource(&group, Some(&home), "two"),
        definition(&group, "Namespaced"),
        namespace_object(&away),
    ];
    let run = set.apply(&objects);
    assert_eq!(run.results("created"), identities(&objects));
    set.assert_holds(&objects);

    let run = set.apply(&objects);
    assert_eq!(run.results("unchanged"), identities(&objects));

    let fewer = [objects[2].clone(), objects[3].clone()];
    let run = set.apply(&fewer);
    let left = [&objects[0], &objects[1], &objects[4]];
    assert_eq!(run.results("pruned"), identities(left));
    set.assert_holds_without(&objects[4], &fewer);
}

#[test]
fn custom_resources_go_together_with_their_definition() {
    let home = namespace("home");
    let group = format!("{}.example.com", fresh("g"));
    let set = Set::secret(&home, "web");
    let kept = config_map(&home, "kept", "1");
    let custom = [
        definition(&group, "Namespaced"),
        custom_resource(&group, Some(&home), "one"),
    ];
    set.apply(&[&custom[..], std::slice::from_ref(&kept)].concat());

    set.apply(std::slice::from_ref(&kept));

    set.assert_holds(std::slice::from_ref(&kept));
    eventually("the definition is gone", || {
        cluster().live(&custom[0]).is_none().then_some(())
    });
    // A run that finds the kind gone has nothing to complain about.
    let run = set.apply(std::slice::from_ref(&kept));
    assert_eq!(run.results("unchanged"), identities([&kept]));
}

#[test]
fn a_recorded_kind_whose_definition_was_deleted_by_others_leaves_the_record() {
    let home = namespace("home");
    let group = format!("{}.example.com", fresh("g"));
    let definition = definition(&group, "Namespaced");
    cluster().define(&definition);
    let set = Set::secret(&home, "web");
    let kept = config_map(&home, "kept", "1");
    set.apply(&[custom_resource(&group, Some(&home), "one"), kept.clone()]);
    cluster().delete(&definition);
    eventually("the kind is not served any more", || {
        let groups = cluster().get("/apis").expect("groups").to_string();
        (!groups.contains(&group)).then_some(())
    });

    set.apply(std::slice::from_ref(&kept));

    set.assert_holds(&[kept]);
}

#[test]
fn cluster_scoped_members_live_under_a_namespaced_parent() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let roles = [cluster_role(&fresh("role")), cluster_role(&fresh("role"))];
    set.apply(&roles);
    set.assert_holds(&roles);

    let run = set.apply(&roles[1..]);

    assert_eq!(run.results("pruned"), identities(&roles[..1]));
    set.assert_holds(&roles[1..]);
}

#[test]
fn a_cluster_scoped_custom_parent_has_members_in_several_namespaces() {
    let [a, b] = [namespace("a"), namespace("b")];
    let group = format!("{}.example.com", fresh("g"));
    cluster().define(&definition(&group, "Cluster"));
    cluster().create(&custom_resource(&group, None, "web"));
    let set = Set::custom(&group, None, &a);
    let objects = [
        config_map(&a, "one", "1"),
        secret(&b, "two"),
        cluster_role(&fresh("role")),
    ];
    set.apply(&objects);
    set.assert_holds(&objects);

    let run = set.apply(&objects[..1]);

    assert_eq!(run.results("pruned"), identities(&objects[1..]));
    set.assert_holds(&objects[..1]);
    let live = set.live_parent().expect("a parent");
    assert_eq!(live["spec"], json!({"size": 1}));
}

#[test]
fn a_manifest_without_namespace_goes_where_the_command_line_says() {
    let [home, other] = [namespace("home"), namespace("other")];
    let set = Set::secret(&home, "web");
    let homeless = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}});
    set.apply(&[homeless, config_map(&other, "two", "1")]);
    set.assert_holds(&[config_map(&home, "one", "1"), config_map(&other, "two", "1")]);
}

#[test]
fn without_a_flag_the_namespace_is_that_of_the_context() {
    let home = namespace("home");
    let proxy = Proxy::transparent();
    let text = std::fs::read_to_string(proxy.kubeconfig()).expect("a kubeconfig");
    let mut kubeconfig: Value = serde_json::from_str(&text).expect("JSON");
    kubeconfig["contexts"][0]["context"]["namespace"] = json!(home);
    let files = Files::new().with("kubeconfig", &kubeconfig.to_string()).with(
        "one.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: one\n",
    );

    Program::with_kubeconfig(&files.path("kubeconfig"))
        .args(["apply", "web", "-f"])
        .args([files.path("one.yaml")])
        .run()
        .expect(0);

    Set::secret(&home, "web").assert_holds(&[config_map(&home, "one", "1")]);
}
