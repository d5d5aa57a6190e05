//! `adopt`: live objects become members as they are, and a manifest that goes takes them
//! along from then on.

use std::path::Path;
use std::thread;

use controlplane::{ControlPlane, Grant};
use serde_json::{Value, json};

use crate::support::{
    Files, PART_OF, Program, ProgramEnd, Proxy, Run, Set, cluster, cluster_role, config_map, definition,
    eventually, fresh, identities, kubectl_apply, named, namespace, namespace_object, objects_file, secret,
    service, with,
};

/// Adopts the live objects of these manifests, by the user of this kubeconfig.
fn adopt(set: &Set, kubeconfig: Option<&Path>, objects: &[Value], flags: &[&str]) -> Run {
    let files = Files::new().with("objects.yaml", &objects_file(objects));
    let directory = files.directory().to_string_lossy().into_owned();
    let program = kubeconfig.map_or_else(Program::new, Program::with_kubeconfig);
    set.invoke_by(program, "adopt", &[&["-f", &directory][..], flags].concat())
}

fn labeled(object: Value, app: &str) -> Value {
    with(object, &json!({"metadata": {"labels": {"app": app}}}))
}

/// What plain `kubectl apply` makes of these objects.
fn applied(objects: &[Value]) -> Vec<Value> {
    kubectl_apply(objects, &[]).expect(0);
    contents(objects)
}

fn contents(objects: &[Value]) -> Vec<Value> {
    objects.iter().map(|object| cluster().content(object)).collect()
}

fn managers_of_label(object: &Value) -> Vec<String> {
    let live = cluster().live(object).expect("the object");
    let entries = live["metadata"]["managedFields"].as_array().expect("entries");
    let owns = |entry: &&Value| {
        entry["fieldsV1"]["f:metadata"]["f:labels"]
            .get(format!("f:{PART_OF}"))
            .is_some()
    };
    let owners = entries.iter().filter(owns);
    owners.map(|entry| entry["manager"].to_string()).collect()
}

#[test]
fn live_objects_become_members_and_nothing_else_of_them_changes() {
    let [home, away] = [namespace("home"), namespace("away")];
    let set = Set::secret(&home, "web");
    let objects = [
        config_map(&home, "bare", "1"),
        labeled(config_map(&away, "labeled", "1"), "web"),
        service(&away, "web", 80),
        cluster_role(&fresh("role")),
    ];
    let before = applied(&objects);

    let run = adopt(&set, None, &objects, &[]).expect(0);

    assert_eq!(run.results("adopted"), identities(&objects));
    assert_eq!(run.document()["summary"]["adopted"], 4);
    assert_eq!(contents(&objects), before);
    set.assert_holds(&objects);
    assert_eq!(managers_of_label(&objects[0]), ["\"applyset\""]);
    let settled = cluster().state(&[&home, &away]);
    let again = adopt(&set, None, &objects, &[]).expect(0);
    assert_eq!(again.results("unchanged"), identities(&objects));
    assert_eq!(cluster().state(&[&home, &away]), settled);

    // From now on a manifest that goes takes its object along, and a field that goes, too.
    let changed = config_map(&home, "bare", "2");
    let run = set.apply(std::slice::from_ref(&changed));
    assert_eq!(run.results("pruned"), identities(&objects[1..]));
    set.assert_holds(std::slice::from_ref(&changed));
    let less = named("v1", "ConfigMap", Some(&home), "bare");
    set.apply(std::slice::from_ref(&less));
    assert_eq!(cluster().live(&less).expect("it").get("data"), None);
}

#[test]
fn fields_that_left_the_manifest_before_the_first_apply_leave_the_object() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let object = with(config_map(&home, "one", "1"), &json!({"data": {"old": "x"}}));
    applied(std::slice::from_ref(&object));
    adopt(&set, None, std::slice::from_ref(&object), &[]).expect(0);
    set.apply(&[config_map(&home, "one", "1")]);
    assert_eq!(cluster().live(&object).expect("it")["data"], json!({"key": "1"}));
}

#[test]
fn what_was_in_a_set_before_loses_no_field_by_coming_back() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects = [config_map(&home, "one", "1"), service(&home, "web", 80)];
    set.apply(&objects);
    let before = contents(&objects);
    set.invoke("disband", &["--yes"]).expect(0);

    // The parent is an ordinary object now, and becomes one again only by name.
    let run = adopt(&set, None, &objects, &[]).expect(3);
    assert!(run.stderr.contains("--take-over-set"), "{}", run.stderr);
    adopt(&set, None, &objects, &["--take-over-set", "--yes"]).expect(0);

    assert_eq!(contents(&objects), before);
    set.assert_holds(&objects);
    set.apply(&objects);
    assert_eq!(contents(&objects), before);
    let run = set.apply(&objects[..1]);
    assert_eq!(run.results("pruned"), identities(&objects[1..]));
}

/// A member that has nothing but its label loses all owners of fields with it, and the server
/// notes no writer of an object without any.
#[test]
fn what_was_disbanded_and_adopted_can_be_pruned() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let bare = named("v1", "ServiceAccount", Some(&home), "bare");
    let other = config_map(&home, "other", "1");
    set.apply(&[bare.clone(), other.clone()]);
    let disband = ["disband", "web", "-n", &home, "--yes"];
    Program::new().args(disband).run().expect(0);
    cluster().delete(&set.parent);

    adopt(&set, None, &[bare.clone(), other.clone()], &[]).expect(0);
    set.apply(std::slice::from_ref(&other));

    set.assert_holds(&[other]);
    assert_eq!(cluster().live(&bare), None);
}

#[test]
fn what_was_labeled_by_hand_is_reported_never_to_be_pruned() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let other = config_map(&home, "other", "1");
    set.apply(std::slice::from_ref(&other));
    let [by_hand, reset] = ["by-hand", "reset"].map(|name| config_map(&home, name, "1"));
    let label = json!({"metadata": {"labels": {PART_OF: set.id}}});
    for object in [&by_hand, &reset] {
        cluster().create(&with(object.clone(), &label));
    }
    cluster().patch(&reset, &json!({"metadata": {"managedFields": [{}]}}));

    let run = adopt(&set, None, &[by_hand.clone(), reset.clone()], &[]).expect(0);

    // It is unknown who labeled the one, so it may be noted as ours.
    assert_eq!(run.results("adopted"), identities([&reset]));
    assert_eq!(run.results("unchanged"), identities([&by_hand]));
    let warnings = run.warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("configmap/by-hand"), "{warnings:?}");
    let run = set.apply(std::slice::from_ref(&other));
    assert_eq!(run.results("pruned"), identities([&reset]));

    // As the warning says.
    cluster().patch(&by_hand, &json!({"metadata": {"labels": {PART_OF: null}}}));
    adopt(&set, None, std::slice::from_ref(&by_hand), &[]).expect(0);
    let run = set.apply(std::slice::from_ref(&other));
    assert_eq!(run.results("pruned"), identities([&by_hand]));
}

#[test]
fn a_selector_takes_what_the_old_prune_would_have_deleted() {
    let [a, b, c] = [namespace("a"), namespace("b"), namespace("c")];
    let app = fresh("app");
    let set = Set::secret(&a, "web");
    let mine = |object: Value| labeled(object, &app);
    let default_kinds = [
        mine(config_map(&a, "one", "1")),
        mine(config_map(&b, "two", "1")),
        mine(service(&c, "web", 80)),
    ];
    let account = mine(named("v1", "ServiceAccount", Some(&b), "web"));
    applied(&[&default_kinds[..], std::slice::from_ref(&account)].concat());
    // The same labels, by a manager that does not apply.
    let copy = cluster().create(&mine(config_map(&b, "copy", "1")));
    let selector = format!("app={app}");

    let run = set.invoke("adopt", &["-l", &selector]).expect(0);
    assert_eq!(run.results("adopted"), identities(&default_kinds[..1]));
    assert!(run.stderr.contains("add others with --kinds"), "{}", run.stderr);
    set.assert_holds(&default_kinds[..1]);

    let run = set.invoke("adopt", &["-l", &selector, "-A"]).expect(0);
    assert_eq!(run.results("unchanged"), identities(&default_kinds[..1]));
    assert_eq!(run.results("adopted"), identities(&default_kinds[1..]));
    assert!(run.results("skipped").contains(&format!("ConfigMap {b}/copy")));
    set.assert_holds(&default_kinds);
    assert_eq!(cluster().live(&copy).as_ref(), Some(&copy));

    for kinds in ["sa", "ServiceAccount", "serviceaccounts,deployments.apps"] {
        let run = set
            .invoke("adopt", &["-l", &selector, "-A", "--kinds", kinds])
            .expect(0);
        assert_eq!(
            run.document()["results"].as_array().map(Vec::len),
            Some(1),
            "{kinds}"
        );
        assert!(!run.stderr.contains("--kinds"), "{}", run.stderr);
    }
    set.assert_holds(&[&default_kinds[..], &[account]].concat());
}

#[test]
fn a_selector_that_finds_nothing_or_is_none_is_a_mistake() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    for arguments in [
        &["-l", "app=nothing-has-this"][..],
        &["-l", ""],
        &["-l", "a b"],
        &["-l", "app=x", "--kinds", "nonsense"],
        &["-l", "app=x", "--kinds", "componentstatuses"],
        &["--from", "tar/web"],
        &["--from", "helm/web"],
        &["--from", "flux/web"],
        &["-f", "-"],
        &[],
    ] {
        set.invoke("adopt", arguments).expect(2);
    }
    assert_eq!(set.live_parent(), None);
}

#[test]
fn what_has_an_owner_or_is_going_or_is_the_parent_is_left_alone() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let owner = cluster().create(&config_map(&home, "owner", "1"));
    let owned = with(
        config_map(&home, "owned", "1"),
        &json!({"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}]}}),
    );
    let going = with(
        config_map(&home, "going", "1"),
        &json!({"metadata": {"finalizers": ["example.com/keep"]}}),
    );
    let free = config_map(&home, "free", "1");
    for object in [&owned, &going, &free] {
        cluster().create(object);
    }
    cluster().delete(&going);
    let parent = secret(&home, "web");
    let objects = [owned.clone(), going.clone(), parent.clone(), free.clone()];
    let run = adopt(&set, None, &objects[..2], &[]).expect(1);
    assert_eq!(run.results("skipped"), identities(&objects[..2]));
    assert_eq!(set.live_parent(), None, "there is nothing to be the parent of");

    cluster().create(&parent);
    let run = adopt(&set, None, &objects, &["--take-over-set", "--yes"]).expect(0);

    assert_eq!(run.results("adopted"), identities([&free]));
    assert_eq!(run.results("skipped"), identities(&objects[..3]));
    assert!(run.reason("owned").contains("ConfigMap owner"));
    set.assert_holds(std::slice::from_ref(&free));
    cluster().patch(&going, &json!({"metadata": {"finalizers": null}}));
}

#[test]
fn objects_that_do_not_exist_fail_and_the_others_are_adopted() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects = [
        config_map(&home, "one", "1"),
        config_map(&home, "missing", "1"),
        service(&home, "web", 80),
        service(&home, "missing", 80),
    ];
    let [found, missing] = [[&objects[0], &objects[2]], [&objects[1], &objects[3]]];
    let nothing = missing.map(Value::clone);
    let run = adopt(&set, None, &nothing, &[]).expect(1);
    assert_eq!(run.results("failed"), identities(missing));
    assert_eq!(set.live_parent(), None, "there is nothing to be the parent of");
    for object in found {
        cluster().create(object);
    }
    for (flags, adopted) in [
        (&["--dry-run=client"][..], "adopted"),
        (&["--dry-run=server"], "adopted"),
        (&[], "adopted"),
        (&[], "unchanged"),
    ] {
        let run = adopt(&set, None, &objects, flags).expect(1);
        assert_eq!(run.results(adopted), identities(found), "{flags:?}");
        assert_eq!(run.results("failed"), identities(missing), "{flags:?}");
        assert!(run.stderr.contains("not found"), "{}", run.stderr);
    }
    set.assert_holds(&found.map(Value::clone));
}

#[test]
fn members_of_other_sets_are_all_named_and_only_stolen_by_name() {
    let home = namespace("home");
    let [set, other] = [Set::secret(&home, "web"), Set::secret(&home, "other")];
    let theirs = [config_map(&home, "one", "1"), config_map(&home, "two", "1")];
    other.apply(&theirs);
    let objects = [&theirs[..], &[config_map(&home, "three", "1")]].concat();
    cluster().create(&objects[2]);
    let before = cluster().state(&[&home]);

    let run = adopt(&set, None, &objects, &[]).expect(3);
    assert_eq!(run.errors().len(), 1, "{}", run.stderr);
    assert!(
        run.errors()[0].contains("2 objects belong to secret/other") && run.stderr.contains("move"),
        "{}",
        run.stderr
    );
    assert_eq!(cluster().state(&[&home]), before);

    adopt(&set, None, &objects, &["--take-ownership"]).expect(0);
    set.assert_holds(&objects);
    other.apply_with(&[], &["--allow-prune-all"]).expect(0);
    set.assert_holds(&objects);
}

#[test]
fn a_dry_run_foretells_the_run_and_writes_nothing() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects = [config_map(&home, "one", "1"), service(&home, "web", 80)];
    applied(&objects);
    let before = cluster().state(&[&home]);
    for flag in ["--dry-run=client", "--dry-run=server"] {
        let run = adopt(&set, None, &objects, &[flag]).expect(0);
        assert_eq!(run.results("adopted"), identities(&objects), "{flag}");
        assert_eq!(cluster().state(&[&home]), before, "{flag}");
    }
}

#[test]
fn a_run_that_was_killed_anywhere_leaks_nothing_and_is_made_good_by_the_same_run() {
    for writes in 0.. {
        let [a, b] = [namespace("a"), namespace("b")];
        let set = Set::secret(&a, "web");
        let objects = [
            config_map(&a, "one", "1"),
            config_map(&b, "two", "1"),
            service(&b, "web", 80),
        ];
        let before = applied(&objects);
        let files = Files::new().with("objects.yaml", &objects_file(&objects));
        let directory = files.directory().to_string_lossy().into_owned();
        let proxy = Proxy::holding_after(writes);
        let program = Program::with_kubeconfig(&proxy.kubeconfig());
        let end = set
            .invocation(program, "adopt", &["-f", &directory])
            .run_until_held(&proxy);
        assert_eq!(set.unrecorded(), Vec::<String>::new(), "after {writes} writes");
        if end == ProgramEnd::Finished {
            assert_eq!(writes, 5);
            return;
        }
        adopt(&set, None, &objects, &[]).expect(0);
        set.assert_holds(&objects);
        assert_eq!(contents(&objects), before);
    }
}

#[test]
fn runs_at_once_lose_no_place_from_the_record() {
    let [a, b, c] = [namespace("a"), namespace("b"), namespace("c")];
    let set = Set::secret(&a, "web");
    let objects = [
        config_map(&a, "one", "1"),
        secret(&b, "two"),
        service(&c, "web", 80),
    ];
    applied(&objects);
    thread::scope(|scope| {
        for object in &objects {
            let set = &set;
            scope.spawn(move || adopt(set, None, std::slice::from_ref(object), &[]).expect(0));
        }
    });
    set.assert_holds(&objects);
}

#[test]
fn a_set_that_stays_kubectls_is_adopted_into_for_kubectl() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let first = [config_map(&home, "one", "1")];
    let applyset = format!("--applyset={}", set.reference);
    let arguments = ["--prune", &applyset, "-n", &home];
    kubectl_apply(&first, &arguments).expect(0);
    let more = [config_map(&home, "two", "1"), service(&home, "web", 80)];
    applied(&more);
    let run = adopt(&set, None, &more, &[]).expect(3);
    assert!(run.stderr.contains("--tooling kubectl/v1."), "{}", run.stderr);
    let before = cluster().state(&[&home]);
    adopt(&set, None, &more, &["--take-over-set", "--yes"]).expect(3);
    assert_eq!(cluster().state(&[&home]), before);

    adopt(&set, None, &more, &["--tooling=kubectl/v1.36.3"]).expect(0);

    set.assert_holds(&[&first[..], &more].concat());
    kubectl_apply(&first, &arguments).expect(0);
    set.assert_holds(&first);
}

#[test]
fn who_may_not_write_hears_it_before_the_first_write() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects = [config_map(&home, "one", "1")];
    applied(&objects);
    let rule =
        |resource: &str, verbs: &[&str]| json!({"apiGroups": [""], "resources": [resource], "verbs": verbs});
    for (members, parent, what) in [
        (
            &["get"][..],
            &["get", "create", "patch"][..],
            "patch resource \"configmaps\" \"one\"",
        ),
        (&["get", "patch"], &["get"], "create resource \"secrets\""),
        (
            &["get", "patch"],
            &["get", "create"],
            "patch resource \"secrets\"",
        ),
        (&["patch"], &["get", "create", "patch"], "configmap/one"),
    ] {
        let rules = [rule("configmaps", members), rule("secrets", parent)];
        let user = ControlPlane::shared()
            .user(&[Grant::in_namespace(&home, rules)])
            .expect("a user");
        let before = cluster().state(&[&home]);
        let run = adopt(&set, Some(&user.kubeconfig), &objects, &[]).expect(4);
        assert!(run.stderr.contains(what), "{what}: {}", run.stderr);
        assert_eq!(cluster().state(&[&home]), before);
    }
    let rules = [
        rule("configmaps", &["get", "patch"]),
        rule("secrets", &["get", "create", "patch"]),
    ];
    let user = ControlPlane::shared()
        .user(&[Grant::in_namespace(&home, rules)])
        .expect("a user");
    adopt(&set, Some(&user.kubeconfig), &objects, &[]).expect(0);
    set.assert_holds(&objects);
}

#[test]
fn the_rights_that_are_printed_for_a_set_suffice_to_adopt_and_to_disband_it() {
    let [home, away] = [namespace("home"), namespace("away")];
    let set = Set::secret(&home, "web");
    let objects = [config_map(&home, "one", "1"), secret(&away, "two")];
    applied(&objects);
    let files = Files::new().with("objects.yaml", &objects_file(&objects));
    let directory = files.directory().to_string_lossy().into_owned();
    let user = ControlPlane::shared().user(&[]).expect("a user");
    let run = set
        .invoke("rbac", &["-f", &directory, "--user", &user.name])
        .expect(0);
    for object in run.document()["items"].as_array().expect("items") {
        cluster().apply_as("admin", object);
    }
    eventually("the permissions are in effect", || {
        let run = adopt(&set, Some(&user.kubeconfig), &objects, &[]);
        (run.code == 0).then_some(())
    });
    set.assert_holds(&objects);
    let program = Program::with_kubeconfig(&user.kubeconfig);
    set.invoke_by(program, "disband", &["--yes"]).expect(0);
    assert_eq!(set.members(), Vec::<String>::new());
}

/// The way from `kubectl apply --prune -l` to a set, and back out of it.
#[test]
fn from_the_old_prune_with_leftovers_in_three_namespaces_to_a_clean_set_and_back_out() {
    let [a, b, c] = [namespace("a"), namespace("b"), namespace("c")];
    let app = fresh("app");
    let selector = format!("app={app}");
    let mine = |object: Value| labeled(object, &app);
    let kept = [mine(config_map(&a, "web", "1")), mine(service(&a, "web", 80))];
    // Each of these is what the old prune leaves behind: a kind that it does not know, and
    // namespaces that the next run does not name.
    let leftovers = [
        mine(named("v1", "ServiceAccount", Some(&a), "old")),
        mine(config_map(&b, "old", "1")),
        mine(secret(&c, "old")),
    ];
    let prune = ["--prune", "-l", &selector];
    kubectl_apply(&[&kept[..], &leftovers].concat(), &prune).expect(0);
    kubectl_apply(&kept, &prune).expect(0);
    for leftover in &leftovers {
        assert!(cluster().live(leftover).is_some(), "the old prune leaks this");
    }

    let set = Set::secret(&a, "web");
    set.invoke("adopt", &["-l", &selector, "-A"]).expect(0);
    set.invoke("adopt", &["-l", &selector, "-A", "--kinds=serviceaccounts"])
        .expect(0);
    set.assert_holds(&[&kept[..], &leftovers].concat());

    let run = set.apply(&kept);
    assert_eq!(run.results("pruned"), identities(&leftovers));
    set.assert_holds(&kept);
    for leftover in &leftovers {
        assert_eq!(cluster().live(leftover), None);
    }

    let before = contents(&kept);
    set.invoke("disband", &["--yes"]).expect(0);
    assert_eq!(contents(&kept), before);
    assert_eq!(set.members(), Vec::<String>::new());
}

#[test]
fn a_parent_needs_its_namespace() {
    let set = Set::secret(&fresh("nowhere"), "web");
    let home = namespace("home");
    let object = config_map(&home, "one", "1");
    cluster().create(&object);
    adopt(&set, None, std::slice::from_ref(&object), &[]).expect(2);
    // The namespace is what is wrong first, whatever else is wrong with the parent.
    let group = format!("{}.example.com", fresh("g"));
    cluster().define(&definition(&group, "Namespaced"));
    let custom = Set::custom(&group, Some(&set.namespace), &set.namespace);
    let run = adopt(&custom, None, std::slice::from_ref(&object), &[]).expect(2);
    let names_namespace = |run: &Run| run.stderr.contains("namespace") && run.stderr.contains(&set.namespace);
    assert!(names_namespace(&run), "{}", run.stderr);
    assert!(!run.stderr.contains("widget"), "{}", run.stderr);
    for arguments in [&["move", "old", "new"][..], &["disband", "old", "--yes"]] {
        let program = Program::new().args(arguments).args(["-n", &set.namespace]);
        let run = program.run().expect(2);
        assert!(names_namespace(&run), "{}", run.stderr);
        assert!(!run.stderr.contains("there is no set"), "{}", run.stderr);
    }
    let namespace = namespace_object(&home);
    let set = Set::secret(&home, "web");
    adopt(&set, None, &[namespace.clone(), object.clone()], &[]).expect(0);
    set.assert_holds(&[namespace, object]);
}

#[test]
fn a_kustomization_names_the_live_objects_and_the_members() {
    let home = namespace("home");
    let [set, other] = [Set::secret(&home, "web"), Set::secret(&home, "other")];
    let objects = [config_map(&home, "one", "1"), config_map(&home, "two", "1")];
    applied(&objects);
    let files = Files::new()
        .with("objects.yaml", &objects_file(&objects[..1]))
        .with("kustomization.yaml", "resources: [objects.yaml]\n");
    let directory = files.directory().to_string_lossy().into_owned();
    let run = set.invoke("adopt", &["-k", &directory]).expect(0);
    assert_eq!(run.results("adopted"), identities(&objects[..1]));
    adopt(&set, None, &objects, &[]).expect(0);
    let run = set
        .invoke("move", &[&other.reference, "-k", &directory])
        .expect(0);
    assert_eq!(run.results("adopted"), identities(&objects[..1]));
    other.assert_holds(&objects[..1]);
    set.assert_holds(&objects[1..]);
}
