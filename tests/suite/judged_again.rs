//! Objects that change between the plan and the write: they are judged again by all rules, and
//! what they have become by then is not deleted and not taken.

use serde_json::{Value, json};

use crate::support::{
    ID, PART_OF, Program, Proxy, Run, Set, cluster, config_map, deletes_claims, identities, kubectl_apply,
    namespace, stateful_set, with,
};

/// Applies `desired` to a set that also holds `pruned`, which gets this patch before its DELETE.
fn prune_while_patching(set: &Set, desired: &Value, pruned: &Value, patch: Value, flags: &[&str]) -> Run {
    set.apply(&[desired.clone(), pruned.clone()]);
    let pruned = pruned.clone();
    let proxy = Proxy::before_write(0, move || {
        cluster().patch(&pruned, &patch);
    });
    let run = set.apply_through(&proxy, std::slice::from_ref(desired), flags);
    let deletes = proxy
        .sent()
        .iter()
        .filter(|sent| sent.method == http::Method::DELETE)
        .count();
    assert!(deletes > 0, "{}", run.stderr);
    run
}

#[test]
fn what_a_member_has_become_when_it_is_to_be_deleted_counts() {
    let home = namespace("home");
    let owner = config_map(&home, "owner", "1");
    let owner = cluster().create(&owner)["metadata"]["uid"].clone();
    let cases = [
        (
            "parent",
            json!({"metadata": {"labels": {ID: "applyset-any-v1"}}}),
            1,
        ),
        (
            "kept",
            json!({"metadata": {"annotations": {"helm.sh/resource-policy": "keep"}}}),
            0,
        ),
        (
            "owned",
            json!({"metadata": {"ownerReferences": [
                {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner},
            ]}}),
            0,
        ),
        ("released", json!({"metadata": {"labels": {PART_OF: null}}}), 0),
        (
            "taken",
            json!({"metadata": {"labels": {PART_OF: "applyset-any-v1"}}}),
            0,
        ),
    ];
    for (name, patch, code) in cases {
        let set = Set::secret(&home, name);
        let [desired, pruned] =
            ["desired", "pruned"].map(|kind| config_map(&home, &format!("{name}-{kind}"), "1"));

        let run = prune_while_patching(&set, &desired, &pruned, patch, &[]).expect(code);

        let action = if code == 0 { "skipped" } else { "failed" };
        assert_eq!(
            run.results(action),
            identities([&pruned]),
            "{name}: {}",
            run.stderr
        );
        let live = cluster().live(&pruned).expect("an object that stays");
        assert_eq!(live["metadata"]["deletionTimestamp"], Value::Null, "{name}");
        assert_eq!(set.unrecorded(), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn a_stateful_set_that_comes_to_delete_its_claims_is_not_deleted() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let (desired, pruned) = (config_map(&home, "desired", "1"), stateful_set(&home, "database"));
    let run = prune_while_patching(&set, &desired, &pruned, deletes_claims(), &[]).expect(1);
    assert_eq!(run.results("failed"), identities([&pruned]), "{}", run.stderr);
    let live = cluster().live(&pruned).expect("it stays");
    assert_eq!(live["metadata"]["deletionTimestamp"], Value::Null);
    set.assert_holds(&[desired, pruned]);
}

#[test]
fn a_member_that_becomes_a_parent_goes_where_that_is_allowed() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let [desired, pruned] = ["desired", "pruned"].map(|name| config_map(&home, name, "1"));
    let patch = json!({"metadata": {"labels": {ID: "applyset-any-v1"}}});
    let flags = ["--allow-data-loss"];
    prune_while_patching(&set, &desired, &pruned, patch, &flags).expect(0);
    assert_eq!(cluster().live(&pruned), None);
    set.assert_holds(&[desired]);
}

#[test]
fn a_member_that_changes_in_another_way_goes() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let [desired, pruned] = ["desired", "pruned"].map(|name| config_map(&home, name, "1"));
    prune_while_patching(&set, &desired, &pruned, json!({"data": {"key": "2"}}), &[]).expect(0);
    assert_eq!(cluster().live(&pruned), None);
    set.assert_holds(&[desired]);
}

#[test]
fn a_member_of_a_set_that_goes_as_a_whole_is_judged_alike() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let member = config_map(&home, "member", "1");
    set.apply(std::slice::from_ref(&member));
    let changed = member.clone();
    let proxy = Proxy::before_write(0, move || {
        cluster().patch(
            &changed,
            &json!({"metadata": {"labels": {ID: "applyset-any-v1"}}}),
        );
    });
    let run = set
        .delete_with(Program::with_kubeconfig(&proxy.kubeconfig()), &[])
        .expect(1);
    assert_eq!(run.results("failed"), identities([&member]), "{}", run.stderr);
    set.assert_holds(&[member]);
}

fn labeled(object: Value, app: &str) -> Value {
    with(object, &json!({"metadata": {"labels": {"app": app}}}))
}

/// A proxy that takes the label from the object before the write of its membership, which comes
/// after that of the parent.
fn deselecting(object: &Value) -> Proxy {
    let object = object.clone();
    Proxy::before_write(1, move || {
        cluster().patch(&object, &json!({"metadata": {"labels": {"app": "other"}}}));
    })
}

#[test]
fn what_is_not_selected_any_more_is_not_adopted() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let object = labeled(config_map(&home, "one", "1"), "web");
    kubectl_apply(std::slice::from_ref(&object), &[]).expect(0);
    let proxy = deselecting(&object);
    let program = Program::with_kubeconfig(&proxy.kubeconfig());

    let run = set.invoke_by(program, "adopt", &["-l", "app=web"]).expect(0);

    assert_eq!(run.results("skipped"), identities([&object]), "{}", run.stderr);
    assert!(set.members().is_empty());
    // Whatever else changes does not matter.
    cluster().patch(&object, &json!({"metadata": {"labels": {"app": "web"}}}));
    let changed = object.clone();
    let proxy = Proxy::before_write(0, move || {
        cluster().patch(&changed, &json!({"data": {"key": "2"}}));
    });
    let program = Program::with_kubeconfig(&proxy.kubeconfig());
    let run = set.invoke_by(program, "adopt", &["-l", "app=web"]).expect(0);
    assert_eq!(run.results("adopted"), identities([&object]), "{}", run.stderr);
}

#[test]
fn what_is_not_selected_any_more_is_not_moved() {
    let home = namespace("home");
    let (old, new) = (Set::secret(&home, "old"), Set::secret(&home, "new"));
    let object = labeled(config_map(&home, "one", "1"), "web");
    old.apply(std::slice::from_ref(&object));
    let proxy = deselecting(&object);
    let program = Program::with_kubeconfig(&proxy.kubeconfig());

    let run = old
        .invoke_by(program, "move", &["new", "-l", "app=web"])
        .expect(0);

    // The old parent was to go with the last member.
    assert_eq!(
        run.results("skipped"),
        identities([&object, &old.parent]),
        "{}",
        run.stderr
    );
    assert_eq!(old.members(), identities([&object]));
    assert_eq!(old.unrecorded(), Vec::<String>::new());
    assert!(new.members().is_empty());
}
