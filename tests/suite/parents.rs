//! Kinds of parents, and parents that are among the manifests of their own set.

use serde_json::{Value, json};

use crate::support::{
    Files, ID, NAMESPACES, PART_OF, Program, Proxy, Set, cluster, config_map, custom_resource, definition,
    fresh, identities, namespace, namespace_object, objects_file, secret, with,
};

#[test]
fn a_config_map_is_a_parent() {
    let [a, b] = [namespace("a"), namespace("b")];
    let set = Set::config_map(&a, "web");
    let objects = [config_map(&a, "one", "1"), config_map(&b, "two", "1")];
    set.apply(&objects);
    set.assert_holds(&objects);

    set.apply(&objects[..1]);

    set.assert_holds(&objects[..1]);
}

#[test]
fn sets_of_the_same_name_and_different_kinds_are_different_sets() {
    let home = namespace("home");
    let sets = [Set::config_map(&home, "web"), Set::secret(&home, "web")];
    let objects = ["one", "two"].map(|name| config_map(&home, name, "1"));
    for (set, object) in sets.iter().zip(&objects) {
        set.apply(std::slice::from_ref(object));
    }
    for (set, object) in sets.iter().zip(&objects) {
        set.assert_holds(std::slice::from_ref(object));
    }
}

#[test]
fn a_parent_is_named_with_a_version_as_kubectl_has_it_and_without_the_dot() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let object = config_map(&home, "one", "1");
    set.apply(std::slice::from_ref(&object));
    for resource in ["secret", "secrets.v1", "secrets.v1.", "Secret.v1"] {
        let named = Set {
            reference: format!("{resource}/web"),
            ..Set::secret(&home, "web")
        };
        let run = named.apply(std::slice::from_ref(&object));
        assert_eq!(run.results("unchanged"), identities([&object]), "{resource}");
    }
}

/// Applies the parent's own manifest along with members, again without change, then
/// with other data, and then leaves it out.
fn apply_with_parent(set: &Set, parent: &Value, changed: &Value, field: &str) {
    let members = ["one", "two"].map(|name| config_map(&set.namespace, name, "1"));
    let run = set.apply(&[&members[..], std::slice::from_ref(parent)].concat());
    assert_eq!(run.results("created"), identities(&members));
    set.assert_holds(&members);
    let live = set.live_parent().expect("a parent");
    assert_eq!(live[field], parent[field]);
    assert_eq!(live["metadata"]["labels"].get(PART_OF), None);

    let version = set.parent_version();
    set.apply(&[&members[..], std::slice::from_ref(parent)].concat());
    assert_eq!(set.parent_version(), version);

    let run = set.apply(&[members[0].clone(), changed.clone()]);
    assert_eq!(run.results("pruned"), identities(&members[1..]));
    set.assert_holds(&members[..1]);
    let live = set.live_parent().expect("a parent");
    assert_eq!(live[field], changed[field]);

    let run = set.apply(&members[..1]);
    assert_eq!(run.results("pruned"), Vec::<String>::new());
    set.assert_holds(&members[..1]);
    assert!(set.live_parent().is_some(), "the parent was pruned");
}

#[test]
fn a_parent_among_the_manifests_is_reported_although_it_is_not_a_result() {
    let home = namespace("home");
    let set = Set::config_map(&home, "web");
    let reported = |action: &str| format!("note: {action} parent configmap/web in namespace {home}\n");
    let apply = |content: &str| {
        let manifests = objects_file(&[config_map(&home, "web", content)]);
        let files = Files::new().with("web.yaml", &manifests);
        set.command(Program::new(), &files)
            .args(["--allow-prune-all"])
            .run()
            .expect(0)
    };
    let run = apply("1");
    assert!(run.stderr.contains(&reported("created")), "{}", run.stderr);
    assert_eq!(run.stdout, "");
    let run = apply("1");
    assert!(!run.stderr.contains("parent"), "{}", run.stderr);
    let run = apply("2");
    assert!(run.stderr.contains(&reported("configured")), "{}", run.stderr);
    assert!(!run.stderr.contains("nothing to do"), "{}", run.stderr);
}

#[test]
fn an_object_that_is_created_in_the_place_of_the_parent_is_not_taken_over() {
    let home = namespace("home");
    let set = Set::config_map(&home, "web");
    let theirs = config_map(&home, "web", "1");
    let created = theirs.clone();
    let proxy = Proxy::before_write(0, move || drop(cluster().create_as("kubectl", &created)));
    let objects = [theirs.clone(), config_map(&home, "one", "1")];
    let run = set.apply_through(&proxy, &objects, &[]).expect(3);
    let live = cluster().live(&theirs).expect("their object");
    assert_eq!(live["metadata"]["annotations"], Value::Null, "{}", run.stderr);
    assert_eq!(cluster().live(&objects[1]), None);
}

#[test]
fn a_secret_parent_among_the_manifests_keeps_data_and_record() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let parent = secret(&home, "web");
    let changed = with(parent.clone(), &json!({"data": {"key": "b3RoZXI="}}));
    apply_with_parent(&set, &parent, &changed, "data");
}

#[test]
fn a_config_map_parent_among_the_manifests_keeps_data_and_record() {
    let home = namespace("home");
    let set = Set::config_map(&home, "web");
    apply_with_parent(
        &set,
        &config_map(&home, "web", "1"),
        &config_map(&home, "web", "2"),
        "data",
    );
}

#[test]
fn a_custom_parent_comes_with_its_definition() {
    let home = namespace("home");
    let group = format!("{}.example.com", fresh("g"));
    let definition = definition(&group, "Namespaced");
    let parent = custom_resource(&group, Some(&home), "web");
    let set = Set::custom(&group, Some(&home), &home);
    let member = config_map(&home, "one", "1");
    let members = [definition.clone(), member.clone()];
    set.apply(&[member.clone(), parent.clone(), definition.clone()]);
    set.assert_holds(&members);
    assert_eq!(set.live_parent().expect("a parent")["spec"], parent["spec"]);

    let changed = with(parent, &json!({"spec": {"size": 2}}));
    set.apply(&[member, changed.clone(), definition]);
    set.assert_holds(&members);
    assert_eq!(set.live_parent().expect("a parent")["spec"], changed["spec"]);
}

#[test]
fn a_parent_is_applied_in_the_version_of_its_manifest() {
    let home = namespace("home");
    let group = format!("{}.example.com", fresh("g"));
    let mut definition = definition(&group, "Namespaced");
    let mut preferred = definition["spec"]["versions"][0].clone();
    preferred["name"] = json!("v2");
    preferred["storage"] = json!(false);
    let versions = definition["spec"]["versions"].as_array_mut();
    versions.expect("versions").push(preferred);
    let parent = custom_resource(&group, Some(&home), "web");
    let set = Set::custom(&group, Some(&home), &home);
    let member = config_map(&home, "one", "1");
    let members = [definition.clone(), member.clone()];
    let objects = [member.clone(), parent.clone(), definition.clone()];
    set.apply(&objects);
    set.assert_holds(&members);

    let resized = |size: u32| with(parent.clone(), &json!({"spec": {"size": size}}));
    let objects = |size: u32| [member.clone(), resized(size), definition.clone()];
    set.apply_with(&objects(2), &["--dry-run=server"]).expect(0);
    set.apply(&objects(2));
    assert_eq!(set.live_parent().expect("a parent")["spec"]["size"], 2);
    let run = set.apply(&objects(2));
    assert_eq!(run.results("unchanged"), identities(&members));
    set.assert_holds(&members);

    let files = Files::new().with("objects.yaml", &objects_file(&objects(3)));
    let plans = Files::new();
    let plan = plans.directory().join("web.plan");
    let run = set.invocation(Program::new(), "diff", &[]).args(["-f"]);
    let run = run.args([files.directory()]).args(["--out"]).args([&plan]);
    run.run().expect(1);
    let run = Program::new().args(["apply", "--plan"]).args([&plan]).run();
    run.expect(0);
    assert_eq!(set.live_parent().expect("a parent")["spec"]["size"], 3);
    set.assert_holds(&members);
}

#[test]
fn a_run_never_removes_the_definition_of_its_own_parent() {
    let home = namespace("home");
    let group = format!("{}.example.com", fresh("g"));
    let definition = definition(&group, "Namespaced");
    let parent = custom_resource(&group, Some(&home), "web");
    let set = Set::custom(&group, Some(&home), &home);
    let member = config_map(&home, "one", "1");
    set.apply(&[definition.clone(), parent.clone(), member.clone()]);

    set.apply_with(&[parent, member], &[]);

    let live = cluster().live(&definition).expect("the definition");
    assert_eq!(live["metadata"].get("deletionTimestamp"), None);
    assert_eq!(set.unrecorded(), Vec::<String>::new());
}

#[test]
fn a_run_never_removes_the_namespace_of_its_own_parent() {
    let home = fresh("home");
    let set = Set::secret(&home, "web");
    let member = config_map(&home, "one", "1");
    let own = namespace_object(&home);
    set.apply(&[own.clone(), member.clone()]);

    set.apply_with(&[member], &[]);

    let live = cluster().live(&own).expect("the namespace");
    assert_eq!(live["metadata"].get("deletionTimestamp"), None);
    assert_eq!(set.unrecorded(), Vec::<String>::new());
}

#[test]
fn a_custom_resource_of_a_labeled_kind_is_taken_as_parent_without_a_word() {
    let home = namespace("home");
    let group = format!("{}.example.com", fresh("g"));
    cluster().define(&definition(&group, "Namespaced"));
    cluster().create(&custom_resource(&group, Some(&home), "web"));
    let set = Set::custom(&group, Some(&home), &home);
    let members = [config_map(&home, "one", "1")];
    set.apply(&members);
    set.assert_holds(&members);
}

#[test]
fn a_parent_may_be_a_member_of_another_set() {
    let home = namespace("home");
    let outer = Set::secret(&home, "outer");
    let inner = Set::secret(&home, "inner");
    let parent = secret(&home, "inner");
    inner.apply(&[config_map(&home, "one", "1"), parent.clone()]);

    outer
        .apply_with(std::slice::from_ref(&parent), &["--force-conflicts"])
        .expect(0);

    outer.assert_holds(&[parent]);
    inner.assert_holds(&[config_map(&home, "one", "1")]);
    inner.apply(&[config_map(&home, "two", "1")]);
    inner.assert_holds(&[config_map(&home, "two", "1")]);
    assert_eq!(outer.members(), [format!("Secret {home}/inner")]);
}

#[test]
fn other_labels_and_annotations_of_the_parent_are_kept() {
    let [a, b] = [namespace("a"), namespace("b")];
    let set = Set::secret(&a, "web");
    set.apply(&[config_map(&a, "one", "1")]);
    let theirs = json!({"metadata": {"labels": {"team": "x"}, "annotations": {"note": "y"}}});
    cluster().patch(&set.parent, &theirs);

    set.apply(&[config_map(&b, "two", "1")]);

    let parent = set.live_parent().expect("a parent");
    assert_eq!(parent["metadata"]["labels"], json!({"team": "x", ID: set.id}));
    assert_eq!(parent["metadata"]["annotations"]["note"], "y");
    assert_eq!(set.annotation(NAMESPACES), Some(b));
}
