//! An object belongs to one set at most: what another set holds is refused, and taken
//! only on demand.

use controlplane::Grant;
use serde_json::{Value, json};

use super::rights::{rule, user};
use crate::support::{
    Files, PART_OF, Program, Proxy, Set, cluster, config_map, custom_resource, definition, fresh, identities,
    kubectl_apply, named, namespace, objects_file, service, with,
};

/// Asserts that applying `objects` is refused, each of `errors` with all of its texts,
/// and that nothing in `namespaces` was written.
#[track_caller]
fn assert_refused(set: &Set, objects: &[Value], namespaces: &[&str], errors: &[&[&str]]) {
    for flag in ["--dry-run=none", "--dry-run=client", "--dry-run=server"] {
        let before = cluster().state(namespaces);
        let run = set.apply_with(objects, &[flag]).expect(3);
        for text in errors.iter().copied().flatten() {
            assert!(run.stderr.contains(text), "no {text:?} in\n{}", run.stderr);
        }
        assert!(run.stderr.contains("--take-ownership"), "{}", run.stderr);
        let hints = run.document()["error"]["hints"].to_string();
        assert!(hints.contains("--take-ownership"), "{hints}");
        assert_eq!(cluster().state(namespaces), before, "{flag}");
    }
}

#[test]
fn objects_of_another_set_are_refused_by_the_name_of_its_parent_and_can_be_stolen() {
    let [a, b] = [namespace("a"), namespace("b")];
    let [theirs, ours] = [Set::secret(&b, "theirs"), Set::config_map(&a, "ours")];
    let taken = [config_map(&b, "one", "1"), service(&b, "two", 80)];
    let left = config_map(&b, "three", "1");
    theirs.apply(&[taken[0].clone(), taken[1].clone(), left.clone()]);
    let own = config_map(&a, "own", "1");
    ours.apply(std::slice::from_ref(&own));
    let wanted = [own, config_map(&b, "one", "2"), service(&b, "two", 80)];
    let parent = ["secret/theirs", b.as_str()];
    assert_refused(
        &ours,
        &wanted,
        &[&a, &b],
        &[
            &[&["configmap/one"][..], &parent].concat(),
            &[&["service/two"][..], &parent].concat(),
        ],
    );
    let uid = |object: &Value| cluster().live(object).expect("it")["metadata"]["uid"].clone();
    let uids = taken.each_ref().map(uid);

    let run = ours.apply_with(&wanted, &["--take-ownership"]).expect(0);

    assert_eq!(run.results("configured"), identities(&taken));
    ours.assert_holds(&wanted);
    assert_eq!(taken.each_ref().map(uid), uids, "taken, not recreated");
    // The set that lost them neither deletes them nor takes them back by itself.
    theirs.apply(std::slice::from_ref(&left));
    theirs.assert_holds(std::slice::from_ref(&left));
    ours.assert_holds(&wanted);
    assert_refused(
        &theirs,
        &[left, taken[0].clone()],
        &[&a, &b],
        &[&["configmap/one", "configmap/ours"]],
    );
}

#[test]
fn objects_of_kubectls_sets_are_refused_and_can_be_stolen() {
    for flags in [&[][..], &["--server-side"]] {
        let home = namespace("home");
        let theirs = Set::secret(&home, "theirs");
        let ours = Set::secret(&home, "ours");
        let objects = ["one", "two"].map(|name| config_map(&home, name, "1"));
        let apply = |objects: &[Value]| {
            let arguments = ["-n", &home, "--prune", "--applyset=theirs"];
            kubectl_apply(objects, &[&arguments, flags].concat()).expect(0)
        };
        apply(&objects);
        theirs.assert_holds(&objects);
        assert_refused(
            &ours,
            &objects[..1],
            &[&home],
            &[&["one", &home, "secret/theirs"]],
        );

        ours.apply_with(&objects[..1], &["--take-ownership"]).expect(0);

        ours.assert_holds(&objects[..1]);
        theirs.assert_holds(&objects[1..]);
        apply(&objects[1..]);
        ours.assert_holds(&objects[..1]);
        theirs.assert_holds(&objects[1..]);
        let settled = cluster().state(&[&home]);
        ours.apply(&objects[..1]);
        assert_eq!(cluster().state(&[&home]), settled);
    }
}

#[test]
fn an_object_is_taken_from_its_set_and_not_from_other_field_managers() {
    for manager in ["applyset", "ci"] {
        let home = namespace("home");
        let [theirs, ours] = ["theirs", "ours"].map(|name| Set::secret(&home, name));
        let one = config_map(&home, "one", "1");
        let flag = format!("--field-manager={manager}");
        theirs.apply_with(std::slice::from_ref(&one), &[&flag]).expect(0);
        let of_tool = with(
            named("v1", "ConfigMap", Some(&home), "one"),
            &json!({"data": {"tool": "1"}}),
        );
        cluster().apply_as("another-tool", &of_tool);
        let both = with(
            config_map(&home, "one", "2"),
            &json!({"data": {"key": "2", "tool": "2"}}),
        );
        let before = cluster().state(&[&home]);

        for flags in [
            &["--take-ownership", "--dry-run=server"][..],
            &["--take-ownership"],
        ] {
            let run = ours.apply_with(std::slice::from_ref(&both), flags).expect(1);
            assert_eq!(run.results("failed"), identities([&one]), "{manager}");
            assert!(run.stderr.contains("another-tool"), "{}", run.stderr);
            assert!(!run.stderr.contains(".data.key"), "{manager}: {}", run.stderr);
        }
        theirs.assert_holds(std::slice::from_ref(&one));
        let one_before = before.iter().find(|(object, _)| object.ends_with("/one"));
        let after = cluster().state(&[&home]);
        assert_eq!(
            after.iter().find(|(object, _)| object.ends_with("/one")),
            one_before
        );

        let two = config_map(&home, "one", "2");
        ours.apply_with(std::slice::from_ref(&two), &["--take-ownership"])
            .expect(0);
        ours.assert_holds(std::slice::from_ref(&two));
        assert_eq!(
            cluster().live(&two).expect("it")["data"],
            json!({"key": "2", "tool": "1"})
        );
    }
}

#[test]
fn a_manager_that_has_only_updated_the_label_keeps_its_other_fields() {
    let home = namespace("home");
    let [theirs, ours] = ["theirs", "ours"].map(|name| Set::secret(&home, name));
    let one = config_map(&home, "one", "1");
    theirs.apply(std::slice::from_ref(&one));
    for (label, data) in [("changed", json!({})), (&*theirs.id, json!({"tool": "1"}))] {
        let patch = json!({"metadata": {"labels": {PART_OF: label}}, "data": data});
        cluster().patch(&one, &patch);
    }
    theirs
        .apply_with(std::slice::from_ref(&one), &["--apply-unchanged"])
        .expect(0);
    let with_tool = with(one.clone(), &json!({"data": {"tool": "2"}}));

    let run = ours.apply_with(&[with_tool], &["--take-ownership"]).expect(1);
    assert!(run.stderr.contains("1 conflict:"), "{}", run.stderr);
    assert!(run.stderr.contains(".data.tool"), "{}", run.stderr);
    theirs.assert_holds(std::slice::from_ref(&one));

    ours.apply_with(std::slice::from_ref(&one), &["--take-ownership"])
        .expect(0);
    ours.assert_holds(std::slice::from_ref(&one));
    assert_eq!(cluster().live(&one).expect("it")["data"]["tool"], "1");
}

#[test]
fn a_set_of_a_custom_parent_is_named_and_one_without_parent_by_its_id() {
    let home = namespace("home");
    let group = format!("{}.example.com", fresh("g"));
    cluster().define(&definition(&group, "Cluster"));
    cluster().create(&custom_resource(&group, None, "web"));
    let theirs = Set::custom(&group, None, &home);
    let one = config_map(&home, "one", "1");
    theirs.apply(std::slice::from_ref(&one));
    let lost = with(
        config_map(&home, "two", "1"),
        &json!({"metadata": {"labels": {PART_OF: "applyset-of-none-v1"}}}),
    );
    cluster().create(&lost);
    let ours = Set::secret(&home, "ours");
    assert_refused(
        &ours,
        &[one, config_map(&home, "two", "1")],
        &[&home],
        &[&["one", "widget.", "/web"], &["two", "applyset-of-none-v1"]],
    );
}

#[test]
fn one_list_for_each_kind_and_namespace_finds_overlaps() {
    let [a, b] = [namespace("a"), namespace("b")];
    let theirs = Set::secret(&b, "theirs");
    let maps: Vec<Value> = (0..25)
        .map(|n| config_map(&b, &format!("one-{n}"), "1"))
        .collect();
    theirs.apply(&maps);
    let ours = Set::secret(&a, "ours");
    let proxy = Proxy::transparent();

    let run = ours.apply_through(&proxy, &maps, &[]).expect(3);

    let count = format!(
        "error: {} objects belong to {} in namespace {b}",
        maps.len(),
        "secret/theirs"
    );
    assert_eq!(run.errors(), [count]);
    let sent = proxy.sent();
    assert!(sent.iter().all(|sent| !sent.is_write()));
    let about_maps = sent.iter().filter(|sent| sent.path.contains("/configmaps"));
    // Members and others' members in two namespaces each, and the ConfigMaps that are parents.
    assert!(about_maps.count() <= 5, "{sent:#?}");
}

#[test]
fn a_parent_is_found_by_users_of_one_namespace_and_taking_ownership_is_not_advised_blindly() {
    let [home, away] = [namespace("home"), namespace("away")];
    let one = config_map(&home, "one", "1");
    let everything = |resource: &str| rule("", resource, &["*"]);
    let person = user(&[Grant::in_namespace(
        &home,
        [everything("configmaps"), everything("secrets")],
    )]);
    let files = Files::new().with("objects.yaml", &objects_file(std::slice::from_ref(&one)));
    let ours = Set::secret(&home, "ours");
    let refused = || {
        let program = Program::with_kubeconfig(&person.kubeconfig);
        ours.command(program, &files).run().expect(3)
    };
    let near = Set::config_map(&home, "theirs");
    near.apply(std::slice::from_ref(&one));
    let before = cluster().state(&[&home]);
    let run = refused();
    assert!(
        run.stderr.contains("belongs to configmap/theirs"),
        "{}",
        run.stderr
    );
    assert_eq!(cluster().state(&[&home]), before);

    let far = Set::config_map(&away, "theirs");
    far.apply_with(std::slice::from_ref(&one), &["--take-ownership"])
        .expect(0);

    let before = cluster().state(&[&home]);
    let run = refused();
    assert!(run.stderr.contains(&far.id), "{}", run.stderr);
    assert!(
        run.stderr.contains("gone or not visible to you"),
        "{}",
        run.stderr
    );
    assert!(run.stderr.contains("hint: find the set with"), "{}", run.stderr);
    assert_eq!(cluster().state(&[&home]), before);
}
