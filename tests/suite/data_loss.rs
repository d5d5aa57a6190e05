//! What would take along objects or data that cannot be had back is refused, with what
//! would be lost, until a flag says that it may.

use serde_json::{Value, json};

use crate::support::{
    Files, OwnControlPlane, Program, Run, Set, cluster, config_map, custom_resource, definition, eventually,
    fresh, identities, named, namespace, namespace_object, objects_file, secret, service, with,
};

/// Asserts that applying `objects` is refused in every mode with one error for each of
/// `errors`, which holds all of its texts, and that `watched` stays as it is.
#[track_caller]
fn assert_refused(set: &Set, objects: &[Value], flags: &[&str], watched: &[Value], errors: &[&[&str]]) {
    let look = || -> Vec<_> { watched.iter().map(|object| cluster().live(object)).collect() };
    for mode in ["--dry-run=none", "--dry-run=client", "--dry-run=server"] {
        let before = (look(), set.live_parent(), set.members());
        let run = set.apply_with(objects, &[flags, &[mode]].concat()).expect(3);
        let reported = run.errors();
        assert_eq!(reported.len(), errors.len(), "{}", run.stderr);
        for texts in errors {
            let has_all = |line: &&str| texts.iter().all(|text| line.contains(text));
            assert!(reported.iter().any(has_all), "no {texts:?} in\n{}", run.stderr);
        }
        assert_eq!((look(), set.live_parent(), set.members()), before, "{mode}");
    }
}

const ALLOWED: [&str; 1] = ["--allow-data-loss"];

#[track_caller]
fn assert_gone(object: &Value) {
    eventually("the object goes", || {
        let live = cluster().live(object);
        live.is_none_or(|live| !live["metadata"]["deletionTimestamp"].is_null())
            .then_some(())
    });
}

#[test]
fn a_namespace_with_objects_of_others() {
    let home = namespace("home");
    let away = fresh("away");
    let set = Set::secret(&home, "web");
    let kept = config_map(&home, "kept", "1");
    let own = namespace_object(&away);
    let inside = config_map(&away, "inside", "1");
    set.apply(&[kept.clone(), own.clone(), inside.clone()]);
    let strangers = [config_map(&away, "stranger", "1"), service(&away, "stranger", 80)];
    for stranger in &strangers {
        cluster().create(stranger);
    }
    let neighbor = Set::secret(&away, "neighbor");
    let theirs = secret(&away, "theirs");
    neighbor.apply(std::slice::from_ref(&theirs));
    let watched = [
        own.clone(),
        inside,
        strangers[0].clone(),
        strangers[1].clone(),
        theirs.clone(),
    ];
    let texts = [
        "4 objects",
        &away,
        "configmap/stranger",
        "service/stranger",
        "theirs",
        "neighbor",
    ];
    assert_refused(&set, std::slice::from_ref(&kept), &[], &watched, &[&texts]);

    set.apply_with(std::slice::from_ref(&kept), &ALLOWED).expect(0);

    set.assert_holds_without(&own, &[kept]);
}

/// Makes `owner` an owner of `object`, both as they are in the cluster.
fn own(object: &Value, owner: &Value) {
    let live = cluster().live(owner).expect("the owner");
    let reference = json!({
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": live["metadata"]["uid"],
    });
    cluster().patch(object, &json!({"metadata": {"ownerReferences": [reference]}}));
}

#[test]
fn objects_of_others_are_not_hidden_by_their_owners() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let kept = config_map(&home, "kept", "1");
    let away = fresh("away");
    let own_namespace = namespace_object(&away);
    set.apply(&[kept.clone(), own_namespace.clone()]);
    let account = named("v1", "ServiceAccount", Some(&away), "default");
    let of_account = secret(&away, "of-account");
    let circle = [config_map(&away, "one", "1"), secret(&away, "two")];
    for object in [&account, &of_account, &circle[0], &circle[1]] {
        cluster().create(object);
    }
    own(&of_account, &account);
    own(&circle[0], &circle[1]);
    own(&circle[1], &circle[0]);
    let texts = ["3 objects", "secret/of-account", "configmap/one", "secret/two"];
    let watched = [own_namespace, of_account, circle[0].clone(), circle[1].clone()];
    assert_refused(&set, &[kept], &[], &watched, &[&texts]);
}

#[test]
fn what_is_deleted_with_a_container_is_named_where_a_flag_allows_it() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let kept = config_map(&home, "kept", "1");
    let (away, group) = (fresh("away"), format!("{}.example.com", fresh("g")));
    let containers = [namespace_object(&away), definition(&group, "Cluster")];
    set.apply(&[kept.clone(), containers[0].clone(), containers[1].clone()]);
    let strangers = [
        config_map(&away, "stranger", "1"),
        custom_resource(&group, None, "stranger"),
    ];
    for stranger in &strangers {
        cluster().create(stranger);
    }
    let assert_named = |command: &str, run: &Run| {
        for stranger in &strangers {
            let kind = stranger["kind"].as_str().expect("a kind").to_lowercase();
            let is_named = |warning: &String| warning.contains("also deletes") && warning.contains(&kind);
            assert!(run.warnings().iter().any(is_named), "{command}: {}", run.stderr);
            assert!(run.stderr.contains("also deletes"), "{command}: {}", run.stderr);
        }
    };

    let files = Files::new().with("a.yaml", &objects_file(std::slice::from_ref(&kept)));
    let diff = Program::new()
        .args(["diff", "web", "-n", &home, "-o", "json", "-f"])
        .args([files.directory()]);
    assert_named("diff", &diff.args(ALLOWED).run().expect(1));
    for mode in ["--dry-run=client", "--dry-run=server", "--dry-run=none"] {
        let flags = [&ALLOWED[..], &[mode]].concat();
        if mode != "--dry-run=none" {
            assert_named("delete", &set.delete(&flags).expect(0));
        }
        assert_named(
            "apply",
            &set.apply_with(std::slice::from_ref(&kept), &flags).expect(0),
        );
    }
    strangers.iter().for_each(assert_gone);
}

#[test]
fn a_namespace_with_what_a_protection_keeps() {
    let home = namespace("home");
    let away = fresh("away");
    let set = Set::secret(&home, "web");
    let kept = config_map(&home, "kept", "1");
    let own = namespace_object(&away);
    let precious = with(
        config_map(&away, "precious", "1"),
        &json!({"metadata": {"annotations": {"helm.sh/resource-policy": "keep"}}}),
    );
    set.apply(&[kept.clone(), own.clone(), precious.clone()]);
    for flags in [&[][..], &["--allow-data-loss"]] {
        let run = set.apply_with(std::slice::from_ref(&kept), flags).expect(0);
        assert_eq!(run.results("skipped"), identities([&precious, &own]));
        assert!(cluster().live(&precious).is_some());
    }
    set.assert_holds(&[kept, own, precious]);
}

#[test]
fn a_container_with_what_a_mark_of_others_keeps() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let kept = config_map(&home, "kept", "1");
    let (away, group) = (fresh("away"), format!("{}.example.com", fresh("g")));
    let containers = [namespace_object(&away), definition(&group, "Cluster")];
    let mark = json!({"metadata": {"annotations": {"helm.sh/resource-policy": "keep"}}});
    let precious = [
        with(config_map(&away, "precious", "1"), &mark),
        with(custom_resource(&group, None, "precious"), &mark),
    ];
    set.apply(&[kept.clone(), containers[0].clone(), containers[1].clone()]);
    for object in precious.iter().chain([&config_map(&away, "unmarked", "1")]) {
        cluster().create(object);
    }
    for flags in [&[][..], &["--allow-data-loss"]] {
        let run = set.apply_with(std::slice::from_ref(&kept), flags).expect(0);
        assert_eq!(run.results("skipped"), identities(&containers));
        assert!(run.stderr.contains("precious"), "{}", run.stderr);
        for object in precious.iter().chain(&containers) {
            let live = cluster().live(object).expect("it is kept");
            assert_eq!(live["metadata"]["deletionTimestamp"], Value::Null);
        }
    }
    set.assert_holds(&[kept, containers[0].clone(), containers[1].clone()]);

    set.delete(&["--allow-data-loss"]).expect(0);
    set.assert_holds(&containers);
    for object in &precious {
        let live = cluster().live(object).expect("it is kept");
        assert_eq!(live["metadata"]["deletionTimestamp"], Value::Null);
    }
}

#[test]
fn a_definition_with_custom_resources_of_others() {
    let [home, away] = [namespace("home"), namespace("away")];
    let group = format!("{}.example.com", fresh("g"));
    let set = Set::secret(&home, "web");
    let kept = config_map(&home, "kept", "1");
    let definition = definition(&group, "Namespaced");
    let own = custom_resource(&group, Some(&home), "own");
    set.apply(&[kept.clone(), definition.clone(), own.clone()]);
    let strangers = ["one", "two"].map(|name| custom_resource(&group, Some(&away), name));
    for stranger in &strangers {
        cluster().create(stranger);
    }
    let watched = [
        definition.clone(),
        own,
        strangers[0].clone(),
        strangers[1].clone(),
    ];
    let texts = ["2 objects", "widgets", "widget.", &away, "one", "two"];
    assert_refused(&set, std::slice::from_ref(&kept), &[], &watched, &[&texts]);

    set.apply_with(std::slice::from_ref(&kept), &ALLOWED).expect(0);

    assert_gone(&definition);
    eventually("the custom resources are gone", || {
        cluster().live(&strangers[0]).is_none().then_some(())
    });
    set.apply(std::slice::from_ref(&kept));
    set.assert_holds(&[kept]);
}

#[test]
fn claims_and_volumes_and_parents_are_all_reported_of_at_once() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let kept = config_map(&home, "kept", "1");
    let capacity = json!({"storage": "1Gi"});
    let claim = with(
        named("v1", "PersistentVolumeClaim", Some(&home), "data"),
        &json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": capacity}}}),
    );
    let disk = fresh("disk");
    let volume = with(
        named("v1", "PersistentVolume", None, &disk),
        &json!({"spec": {
            "accessModes": ["ReadWriteOnce"], "capacity": capacity, "hostPath": {"path": "/nowhere"},
        }}),
    );
    let inner = Set::secret(&home, "inner");
    let parent = secret(&home, "inner");
    let inner_member = config_map(&home, "of-inner", "1");
    set.apply(&[kept.clone(), claim.clone(), volume.clone(), parent.clone()]);
    inner
        .apply_with(std::slice::from_ref(&inner_member), &["--take-over-set", "--yes"])
        .expect(0);
    let watched = [claim.clone(), volume.clone(), parent.clone()];
    assert_refused(
        &set,
        std::slice::from_ref(&kept),
        &[],
        &watched,
        &[
            &["2 objects would be deleted with their data"],
            &["secret/inner", "parent"],
        ],
    );
    let refused = set.apply_with(std::slice::from_ref(&kept), &[]).expect(3);
    for storage in [&disk, "persistentvolumeclaim/data"] {
        assert!(refused.stderr.contains(storage), "{}", refused.stderr);
    }

    set.apply_with(std::slice::from_ref(&kept), &ALLOWED).expect(0);

    for object in [&claim, &volume] {
        assert_gone(object);
        // No controller protects storage in use here, so none releases it either.
        if cluster().live(object).is_some() {
            cluster().patch(object, &json!({"metadata": {"finalizers": null}}));
        }
    }
    assert_eq!(cluster().live(&parent), None);
    assert!(cluster().live(&inner_member).is_some());
    set.apply(std::slice::from_ref(&kept));
    set.assert_holds(&[kept]);
}

#[test]
fn a_namespace_with_objects_of_the_manifests_is_refused_whatever_is_allowed() {
    let home = namespace("home");
    let away = fresh("away");
    let set = Set::secret(&home, "web");
    let own = namespace_object(&away);
    let inside = config_map(&away, "inside", "1");
    set.apply(&[own.clone(), inside.clone()]);
    for flags in [&[][..], &ALLOWED] {
        let watched = [own.clone(), inside.clone()];
        assert_refused(
            &set,
            std::slice::from_ref(&inside),
            flags,
            &watched,
            &[&[&away, "inside"]],
        );
    }
    set.assert_holds(&[own, inside]);
}

#[test]
fn a_definition_with_custom_resources_of_the_manifests_is_refused_whatever_is_allowed() {
    let home = namespace("home");
    let group = format!("{}.example.com", fresh("g"));
    let set = Set::secret(&home, "web");
    let definition = definition(&group, "Namespaced");
    let inside = custom_resource(&group, Some(&home), "inside");
    set.apply(&[definition.clone(), inside.clone()]);
    for flags in [&[][..], &ALLOWED] {
        let watched = [definition.clone(), inside.clone()];
        assert_refused(
            &set,
            std::slice::from_ref(&inside),
            flags,
            &watched,
            &[&[&group, "inside"]],
        );
    }
}

#[test]
fn a_kind_that_is_defined_and_served_in_no_version() {
    let _own = OwnControlPlane::start();
    let home = namespace("home");
    let group = format!("{}.example.com", fresh("g"));
    let set = Set::secret(&home, "web");
    let kept = config_map(&home, "kept", "1");
    let definition = definition(&group, "Cluster");
    cluster().define(&definition);
    set.apply(&[definition.clone(), kept.clone()]);
    cluster().create(&custom_resource(&group, None, "stranger"));
    let mut versions = definition["spec"]["versions"].clone();
    versions[0]["served"] = json!(false);
    cluster().patch(&definition, &json!({"spec": {"versions": versions}}));
    eventually("discovery does not know the kind any more", || {
        let groups = cluster().get("/apis").expect("groups").to_string();
        (!groups.contains(&group)).then_some(())
    });
    assert_refused(&set, &[kept], &[], &[definition], &[&["Widget", &group]]);
}

#[test]
fn a_namespace_that_holds_the_parent_of_another_set() {
    let home = namespace("home");
    let away = fresh("away");
    let set = Set::secret(&home, "web");
    let kept = config_map(&home, "kept", "1");
    let own = namespace_object(&away);
    set.apply(&[kept.clone(), own.clone()]);
    // The members of the other set live elsewhere, so nothing but its parent is at stake.
    let other = Set::secret(&away, "other");
    let theirs = config_map(&home, "theirs", "1");
    other.apply(std::slice::from_ref(&theirs));
    let watched = [own, other.parent.clone(), theirs];
    assert_refused(&set, &[kept], &[], &watched, &[&["1 object", "secret/other"]]);
}

#[test]
fn an_empty_set_of_manifests_and_a_limit_on_prunes() {
    let [a, b] = [namespace("a"), namespace("b")];
    let set = Set::secret(&a, "web");
    let objects = [
        config_map(&a, "one", "1"),
        config_map(&b, "two", "1"),
        service(&b, "three", 80),
    ];
    set.apply(&objects);
    assert_refused(&set, &[], &[], &objects, &[&["no objects"]]);
    let both = ["--allow-prune-all", "--max-prune=2"];
    assert_refused(
        &set,
        &[],
        &both,
        &objects,
        &[&["3 objects", "one", "two", "three"]],
    );
    assert_refused(
        &set,
        &objects[..1],
        &["--max-prune=1"],
        &objects,
        &[&["2 objects", "two", "three"]],
    );

    let run = set.apply_with(&objects[..1], &["--max-prune=2"]).expect(0);
    assert_eq!(run.results("pruned"), identities(&objects[1..]));
    set.apply_with(&[], &["--allow-prune-all", "--max-prune=1"])
        .expect(0);
    set.assert_holds(&[]);
}
