//! A parent that another client deletes or replaces while a run works on its set: what is
//! left of the set is recorded again, or the run fails and names it.

use serde_json::{Value, json};

use super::rights::{grant_what_is_printed, user};
use crate::support::{
    Fault, Files, OwnControlPlane, Program, Proxy, Set, cluster, config_map, custom_resource, definition,
    eventually, fresh, identities, namespace, objects_file, secret, with,
};

fn kept(object: Value) -> Value {
    with(
        object,
        &json!({"metadata": {"annotations": {"helm.sh/resource-policy": "keep"}}}),
    )
}

/// A set whose own namespace was deleted and made again, with the object that was there, and the member that is left
/// in another namespace.
fn in_a_namespace_made_again() -> (Set, [Value; 2]) {
    let [home, away] = [namespace("home"), namespace("away")];
    let set = Set::secret(&home, "web");
    let members = [config_map(&home, "one", "1"), config_map(&away, "two", "1")];
    set.apply(&members);
    cluster().delete(&set.parent);
    cluster().delete(&members[0]);
    (set, members)
}

/// A proxy that deletes the parent before the first write that comes after so many.
fn without_parent_after(writes: usize, set: &Set) -> Proxy {
    let parent = set.parent.clone();
    Proxy::before_write(writes, move || cluster().delete(&parent))
}

/// Adds a custom resource to the set and stops serving its kind; returns the kind's group.
fn add_unlisted(set: &Set, objects: &[Value]) -> String {
    let group = format!("{}.example.com", fresh("g"));
    let definition = definition(&group, "Namespaced");
    cluster().define(&definition);
    let custom = custom_resource(&group, Some(&set.namespace), "custom");
    set.apply(&[objects, &[custom]].concat());
    let mut patch = json!({"spec": {"versions": definition["spec"]["versions"]}});
    patch["spec"]["versions"][0]["served"] = json!(false);
    cluster().patch(&definition, &patch);
    eventually("discovery follows the definition", || {
        let groups = cluster().get("/apis").expect("groups").to_string();
        (!groups.contains(&group)).then_some(())
    });
    group
}

#[test]
fn a_first_apply_finds_members_of_a_lost_parent_in_other_namespaces() {
    let (set, [one, two]) = in_a_namespace_made_again();
    let files = Files::new().with("objects.yaml", &objects_file(std::slice::from_ref(&one)));
    let diff = set
        .invocation(Program::new(), "diff", &[])
        .args(["-o", "json", "-f"]);
    let diff = diff.args([files.directory()]).run().expect(1);
    assert_eq!(diff.results("pruned"), identities([&two]));

    let run = set.apply(std::slice::from_ref(&one));

    assert_eq!(run.results("pruned"), identities([&two]));
    assert!(
        run.warnings().iter().any(|warning| warning.contains("is gone")),
        "{}",
        run.stderr
    );
    assert_eq!(cluster().live(&two), None);
    set.assert_holds(&[one]);
}

#[test]
fn an_apply_of_nothing_without_a_parent_searches_each_kind_once() {
    let (set, members) = in_a_namespace_made_again();
    let proxy = Proxy::transparent();
    let run = set.apply_through(&proxy, &[], &["--allow-prune-all"]).expect(0);
    assert_eq!(run.results("pruned"), identities(&members[1..]));
    // Nothing but the search lists this kind.
    let lists = proxy.sent().into_iter();
    let lists = lists.filter(|sent| sent.path.starts_with("/api/v1/services?"));
    assert_eq!(lists.count(), 1, "{}", run.stderr);
}

#[test]
fn a_list_of_all_namespaces_that_fails_ends_a_first_apply_before_it_writes() {
    let (set, [one, two]) = in_a_namespace_made_again();
    let away = two["metadata"]["namespace"].as_str().expect("a namespace");
    let state = || cluster().state(&[&set.namespace, away]);
    let before = state();
    let proxy = Proxy::breaking(Fault::InternalError, |sent| {
        sent.method == "GET" && sent.path.starts_with("/api/v1/configmaps?")
    });

    set.apply_through(&proxy, std::slice::from_ref(&one), &[])
        .expect(4);

    assert_eq!(state(), before);
    let run = set.apply(std::slice::from_ref(&one));
    assert_eq!(run.results("pruned"), identities([&two]));
    set.assert_holds(&[one]);
}

#[test]
fn who_may_not_list_other_namespaces_applies_a_first_time_without_a_word_about_them() {
    let (set, [one, two]) = in_a_namespace_made_again();
    let user = user(&[]);
    grant_what_is_printed(&user, &set, std::slice::from_ref(&one));
    let files = Files::new().with("objects.yaml", &objects_file(std::slice::from_ref(&one)));

    let program = set.command(Program::with_kubeconfig(&user.kubeconfig), &files);
    let run = program.args(["-o", "json"]).run().expect(0);

    assert_eq!(run.warnings(), [""; 0]);
    assert!(cluster().live(&two).is_some());
    set.assert_records(&[one]);
}

/// Applies the objects, and deletes the parent, before this write.
fn widened_and_lost_before_write(write: usize, set: &Set, objects: &[Value]) -> Proxy {
    let (other, wanted) = (set.clone(), objects.to_vec());
    Proxy::before_write(write, move || {
        other.apply_with(&wanted, &["--prune=false"]).expect(0);
        cluster().delete(&other.parent);
    })
}

#[test]
fn what_another_run_has_added_is_found_although_the_parent_is_gone() {
    let commands = ["apply", "delete", "disband", "move"];
    for (write, command) in (0..2).flat_map(|write| commands.map(|command| (write, command))) {
        let home = namespace("home");
        let set = Set::secret(&home, "web");
        let [a, added] = [config_map(&home, "a", "1"), secret(&home, "added")];
        set.apply(std::slice::from_ref(&a));
        let proxy = widened_and_lost_before_write(write, &set, &[a.clone(), added.clone()]);
        let program = Program::with_kubeconfig(&proxy.kubeconfig());
        let run = match command {
            "apply" => set.apply_through(&proxy, &[config_map(&home, "a", "2")], &[]),
            "delete" => set.delete_with(program, &[]),
            "move" => set.invoke_by(program, command, &["other"]),
            _ => set.invoke_by(program, command, &["--yes"]),
        };
        // The run does not know of what was added. A parent with a record of the rest would hide it.
        let run = run.expect(1);
        assert_eq!(set.live_parent(), None, "{write} {command}: {}", run.stderr);
        if command == "apply" {
            set.apply(std::slice::from_ref(&a));
            set.assert_holds(std::slice::from_ref(&a));
        } else {
            set.delete(&[]).expect(0);
            assert_eq!(set.members(), Vec::<String>::new(), "{write} {command}");
        }
    }
}

#[test]
fn delete_fails_if_the_parent_is_gone_and_the_next_one_records_what_is_kept() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let kept = kept(secret(&home, "kept"));
    set.apply(&[config_map(&home, "a", "1"), kept.clone()]);
    let proxy = without_parent_after(0, &set);
    let run = set
        .delete_with(Program::with_kubeconfig(&proxy.kubeconfig()), &[])
        .expect(1);
    assert!(
        run.stderr.contains("run the same command again"),
        "{}",
        run.stderr
    );
    assert_eq!(set.live_parent(), None);
    set.delete(&[]).expect(0);
    assert_eq!(set.members(), identities([&kept]));
}

#[test]
fn a_parent_among_the_manifests_that_is_deleted_before_its_manifest_is_applied() {
    let home = namespace("home");
    let set = Set::config_map(&home, "web");
    let objects = |value: &str| [config_map(&home, "web", value), config_map(&home, "a", value)];
    set.apply(&objects("1"));
    let parent = set.parent.clone();
    let proxy = Proxy::before_request(
        |sent| {
            let is_record = sent.path.contains("fieldManager=kubectl-applyset-parent");
            sent.method == "PATCH" && sent.path.contains("/configmaps/web?") && !is_record
        },
        move || cluster().delete(&parent),
    );
    let run = set.apply_through(&proxy, &objects("2"), &[]).expect(1);
    assert!(run.stderr.contains("deleted during the run"), "{}", run.stderr);
    assert_eq!(set.live_parent(), None);
    let again = set.apply(&objects("2"));
    assert_eq!(again.results("failed"), Vec::<String>::new());
    set.assert_holds(&objects("2")[1..]);
}

#[test]
fn kinds_that_cannot_be_listed_are_named_after_the_parent_is_gone() {
    let _own = OwnControlPlane::start();
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let group = add_unlisted(&set, &[config_map(&home, "a", "1")]);
    let proxy = without_parent_after(0, &set);
    set.delete_with(Program::with_kubeconfig(&proxy.kubeconfig()), &[])
        .expect(1);
    assert_eq!(set.live_parent(), None);
    let again = set.delete(&[]);
    assert!(again.stderr.contains(&group), "{}", again.stderr);
}

#[test]
fn delete_fails_where_an_ordinary_object_has_replaced_the_parent_of_what_is_kept() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let kept = kept(secret(&home, "kept"));
    set.apply(&[config_map(&home, "a", "1"), kept]);
    let parent = set.parent.clone();
    let proxy = Proxy::before_write(1, move || {
        cluster().delete(&parent);
        cluster().create(&parent);
    });
    let run = set
        .delete_with(Program::with_kubeconfig(&proxy.kubeconfig()), &[])
        .expect(1);
    assert!(
        run.errors().iter().any(|error| error.contains("kept")),
        "{}",
        run.stderr
    );
}

#[test]
fn apply_fails_if_the_parent_is_gone_before_the_history_is_written() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let [a, b] = ["a", "b"].map(|name| config_map(&home, name, "1"));
    set.apply(&[a, b.clone()]);
    let changed = config_map(&home, "a", "2");
    let proxy = without_parent_after(1, &set);
    let objects = [changed, b];
    set.apply_through(&proxy, &objects, &[]).expect(1);
    assert_eq!(set.live_parent(), None);
    set.apply(&objects);
    set.assert_holds(&objects);
}

#[test]
fn move_fails_if_the_parent_of_the_rest_is_gone() {
    let home = namespace("home");
    let [old, new] = [Set::secret(&home, "old"), Set::secret(&home, "new")];
    let moved = with(
        config_map(&home, "moved", "1"),
        &json!({"metadata": {"labels": {"tier": "front"}}}),
    );
    let rest = config_map(&home, "rest", "1");
    old.apply(&[moved.clone(), rest.clone()]);
    let proxy = without_parent_after(1, &old);
    let program = Program::with_kubeconfig(&proxy.kubeconfig());
    old.invoke_by(program, "move", &[&new.reference, "-l", "tier=front"])
        .expect(1);
    new.assert_holds(std::slice::from_ref(&moved));
    assert_eq!(old.live_parent(), None);
    old.apply(std::slice::from_ref(&rest));
    old.assert_holds(std::slice::from_ref(&rest));
}

#[test]
fn disband_says_that_the_parent_is_gone() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    set.apply(&[config_map(&home, "a", "1")]);
    let proxy = without_parent_after(0, &set);
    let run = set
        .invoke_by(
            Program::with_kubeconfig(&proxy.kubeconfig()),
            "disband",
            &["--yes"],
        )
        .expect(1);
    assert_eq!(set.members(), Vec::<String>::new());
    assert!(
        run.errors()
            .iter()
            .all(|error| error.contains("was deleted during the run")),
        "{}",
        run.stderr
    );
}

#[test]
fn move_fails_where_members_of_the_old_set_cannot_be_listed() {
    let _own = OwnControlPlane::start();
    let home = namespace("home");
    let [old, new] = [Set::secret(&home, "old"), Set::secret(&home, "new")];
    let one = config_map(&home, "one", "1");
    let group = add_unlisted(&old, std::slice::from_ref(&one));
    for flags in [["--dry-run=server"].as_slice(), &[]] {
        let arguments = [&[new.reference.as_str()], flags].concat();
        let run = old.invoke("move", &arguments).expect(1);
        let names_group = |error: &&str| error.contains(&group);
        assert!(run.errors().iter().any(names_group), "{}", run.stderr);
        let parent = old.live_parent().expect("a parent").to_string();
        assert!(parent.contains(&group), "{parent}");
    }
    new.assert_holds(std::slice::from_ref(&one));
    for command in ["delete", "disband"] {
        let run = old.invoke(command, &["--yes", "--dry-run=server"]).expect(1);
        let predicts = |error: &&str| error.contains("would not be") && error.contains(&group);
        assert!(run.errors().iter().any(predicts), "{}", run.stderr);
    }
}

#[test]
fn move_reports_what_keeps_the_old_set() {
    let home = namespace("home");
    let [old, new] = [Set::secret(&home, "old"), Set::secret(&home, "new")];
    let one = config_map(&home, "one", "1");
    let going = with(
        config_map(&home, "going", "1"),
        &json!({"metadata": {"finalizers": ["example.com/held"]}}),
    );
    old.apply(&[one.clone(), going.clone()]);
    cluster().delete(&going);
    let settled = config_map(&home, "settled", "1");
    new.apply(std::slice::from_ref(&settled));
    let parent = old.live_parent().expect("a parent");
    let owner = json!({
        "apiVersion": "v1", "kind": "Secret", "name": "old", "uid": parent["metadata"]["uid"],
    });
    cluster().patch(&settled, &json!({"metadata": {"ownerReferences": [owner]}}));
    for flags in [["--dry-run=server"].as_slice(), &[]] {
        let arguments = [&[new.reference.as_str()], flags].concat();
        let run = old.invoke("move", &arguments).expect(0);
        let warnings = run.warnings();
        let says = |text: &str| warnings.iter().any(|warning| warning.contains(text));
        assert!(says("the old set is kept with 1 object: "), "{warnings:?}");
        assert!(says(" names it as its owner"), "{warnings:?}");
    }
    old.assert_records(std::slice::from_ref(&going));
}
