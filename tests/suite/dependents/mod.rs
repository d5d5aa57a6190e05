//! Pruning and deleting owners: the garbage collector takes nothing along that is desired or kept.
//!
//! The garbage collector of the control plane has acted when it has deleted a sentinel, which
//! belongs to no set and has the same owner.

mod during_run;
mod holders;
mod needed;

use serde_json::{Value, json};

use crate::support::{
    Fault, Files, Program, ProgramEnd, Proxy, Run, Set, Verdict, cluster, cluster_role, config_map,
    eventually, fresh, identities, namespace, namespace_object, objects_file, with,
};

fn uid(object: &Value) -> Value {
    cluster().live(object).expect("an object")["metadata"]["uid"].clone()
}

pub(super) fn reference(owner: &Value) -> Value {
    json!({
        "apiVersion": owner["apiVersion"], "kind": owner["kind"],
        "name": owner["metadata"]["name"], "uid": uid(owner),
    })
}

/// The object as a manifest that names these owners.
fn owned_by(object: Value, owners: &[&Value]) -> Value {
    let references: Vec<Value> = owners.iter().map(|owner| reference(owner)).collect();
    with(object, &json!({"metadata": {"ownerReferences": references}}))
}

/// Makes the live object belong to these owners.
pub(super) fn give(object: &Value, owners: &[&Value]) {
    let references: Vec<Value> = owners.iter().map(|owner| reference(owner)).collect();
    cluster().patch(object, &json!({"metadata": {"ownerReferences": references}}));
}

fn owners(object: &Value) -> usize {
    let live = cluster().live(object).expect("an object");
    live["metadata"]["ownerReferences"].as_array().map_or(0, Vec::len)
}

fn kept(object: Value) -> Value {
    with(
        object,
        &json!({"metadata": {"annotations": {"helm.sh/resource-policy": "keep"}}}),
    )
}

/// An object of no set that the garbage collector deletes after the owner.
fn sentinel(namespace: &str, owner: &Value) -> Value {
    let sentinel = owned_by(config_map(namespace, "sentinel", "1"), &[owner]);
    cluster().create(&sentinel);
    sentinel
}

#[track_caller]
fn assert_collected(sentinel: &Value) {
    eventually("the garbage collector acts", || {
        cluster().live(sentinel).is_none().then_some(())
    });
}

/// Asserts that a run is refused in every mode with an error that names both objects, and that
/// nothing is written.
#[track_caller]
fn assert_refused(set: &Set, objects: &[Value], flags: &[&str], owner: &Value, dependent: &Value) {
    let look = || [owner, dependent].map(|object| cluster().live(object).expect("an object"));
    for mode in ["--dry-run=none", "--dry-run=client", "--dry-run=server"] {
        let before = look();
        let run = set.apply_with(objects, &[flags, &[mode]].concat()).expect(3);
        let errors = run.errors();
        assert_eq!(errors.len(), 1, "{}", run.stderr);
        for object in [owner, dependent] {
            let name = object["metadata"]["name"].as_str().expect("a name");
            assert!(errors[0].contains(&format!("/{name}")), "{}", run.stderr);
        }
        assert_eq!(look(), before, "{mode}");
    }
}

const ALLOWED: [&str; 1] = ["--allow-data-loss"];

/// Two members, the second of which belongs to the first.
fn family() -> (Set, Value, Value) {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let [a, b] = ["a", "b"].map(|name| config_map(&home, name, "1"));
    set.apply(&[a.clone(), b.clone()]);
    give(&b, &[&a]);
    (set, a, b)
}

#[test]
fn an_owner_of_a_desired_object() {
    let (set, a, b) = family();
    let desired = std::slice::from_ref(&b);
    assert_refused(&set, desired, &[], &a, &b);
    let sentinel = sentinel(&set.namespace, &a);
    let state = cluster().state(&[&set.namespace]);
    for mode in ["--dry-run=client", "--dry-run=server"] {
        let run = set.apply_with(desired, &[ALLOWED[0], mode]).expect(0);
        assert_eq!(run.results("pruned"), identities([&a]), "{mode}");
        assert_eq!(run.results("configured"), identities([&b]), "{mode}");
        assert!(
            run.warnings().iter().any(|text| text.contains("configmap/b")),
            "{}",
            run.stderr
        );
        assert_eq!(cluster().state(&[&set.namespace]), state, "{mode}");
    }

    let run = set.apply_with(desired, &ALLOWED).expect(0);

    assert_eq!(run.results("pruned"), identities([&a]));
    assert_eq!(run.results("configured"), identities([&b]));
    assert_collected(&sentinel);
    assert_eq!(owners(&b), 0);
    set.assert_holds(desired);
    let again = set.apply(desired);
    assert_eq!(again.results("unchanged"), identities([&b]));
}

#[test]
fn an_owner_of_a_desired_object_that_is_sent_although_it_is_unchanged() {
    let (set, a, b) = family();
    let run = set
        .apply_with(std::slice::from_ref(&b), &[ALLOWED[0], "--apply-unchanged"])
        .expect(0);
    assert_eq!(run.results("pruned"), identities([&a]));
    assert_eq!(run.results("configured"), identities([&b]), "{}", run.stderr);
    assert_eq!(run.results("unchanged"), Vec::<String>::new());
}

#[test]
fn an_owner_of_a_kept_object_with_other_owners() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let [a, c] = ["a", "c"].map(|name| config_map(&home, name, "1"));
    let b = kept(config_map(&home, "b", "1"));
    set.apply(&[a.clone(), b.clone(), c.clone()]);
    give(&b, &[&c, &a]);
    let desired = std::slice::from_ref(&c);
    assert_refused(&set, desired, &[], &a, &b);
    let sentinel = sentinel(&home, &a);

    let run = set.apply_with(desired, &ALLOWED).expect(0);

    assert_eq!(run.results("skipped"), identities([&b]));
    assert_collected(&sentinel);
    let live = cluster().live(&b).expect("a kept object");
    assert_eq!(live["metadata"]["ownerReferences"], json!([reference(&c)]));
    set.assert_holds(&[b, c]);
}

#[test]
fn an_owner_through_a_member_that_goes_with_it() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let [a, between, b] = ["a", "between", "b"].map(|name| config_map(&home, name, "1"));
    set.apply(&[a.clone(), between.clone(), b.clone()]);
    give(&between, &[&a]);
    give(&b, &[&between]);
    let desired = std::slice::from_ref(&b);
    assert_refused(&set, desired, &[], &a, &b);

    set.apply_with(desired, &ALLOWED).expect(0);

    // It is its own sentinel.
    assert_collected(&between);
    assert_eq!(owners(&b), 0);
    assert!(cluster().live(&b).is_some());
    set.apply(desired);
    set.assert_holds(desired);
}

#[test]
fn an_owner_of_the_parent() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let [a, b] = ["a", "b"].map(|name| config_map(&home, name, "1"));
    set.apply(&[a.clone(), b.clone()]);
    give(&set.parent, &[&a]);
    let desired = std::slice::from_ref(&b);
    assert_refused(&set, desired, &[], &a, &set.parent);
    let sentinel = sentinel(&home, &a);

    set.apply_with(desired, &ALLOWED).expect(0);

    assert_collected(&sentinel);
    set.assert_holds(desired);
    assert_eq!(owners(&set.parent), 0);
}

#[test]
fn an_owner_of_an_object_that_is_not_a_member_yet() {
    for flags in [&[][..], &ALLOWED] {
        let home = namespace("home");
        let set = Set::secret(&home, "web");
        let [a, b] = ["a", "b"].map(|name| config_map(&home, name, "1"));
        set.apply(std::slice::from_ref(&a));
        cluster().create(&owned_by(b.clone(), &[&a]));
        let desired = std::slice::from_ref(&b);
        let sentinel = sentinel(&home, &a);
        if flags.is_empty() {
            // Its owners are only seen when it is applied.
            let run = set.apply_with(desired, &[]).expect(1);
            assert_eq!(run.results("failed"), identities([&a]), "{}", run.stderr);
            assert!(run.stderr.contains("configmap/b"), "{}", run.stderr);
            set.assert_holds(&[a.clone(), b.clone()]);
            assert_refused(&set, desired, &[], &a, &b);
        }
        set.apply_with(desired, &ALLOWED).expect(0);
        assert_collected(&sentinel);
        assert_eq!(owners(&b), 0);
        set.assert_holds(desired);
    }
}

#[test]
fn an_owner_that_a_manifest_names_is_refused_whatever_is_allowed() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let [a, b] = ["a", "b"].map(|name| config_map(&home, name, "1"));
    set.apply(&[a.clone(), b.clone()]);
    let named = owned_by(b.clone(), &[&a]);
    for flags in [&[][..], &ALLOWED] {
        assert_refused(&set, std::slice::from_ref(&named), flags, &a, &b);
    }
}

#[test]
fn an_owner_of_a_namespace_of_the_manifests_is_refused_whatever_is_allowed() {
    let [home, away] = [namespace("home"), namespace("away")];
    let set = Set::secret(&home, "web");
    let (a, b) = (cluster_role(&fresh("tenant")), config_map(&away, "b", "1"));
    set.apply(&[a.clone(), b.clone()]);
    let place = namespace_object(&away);
    give(&place, &[&a]);
    for flags in [&[][..], &ALLOWED] {
        assert_refused(&set, std::slice::from_ref(&b), flags, &a, &place);
    }
    give(&place, &[]);
    set.apply(std::slice::from_ref(&b));
}

#[test]
fn what_is_only_left_to_its_owner_goes_with_it() {
    let (set, a, b) = family();
    let c = config_map(&set.namespace, "c", "1");
    set.apply(std::slice::from_ref(&c));
    assert_eq!(cluster().live(&a), None);
    assert_collected(&b);
    set.apply(std::slice::from_ref(&c));
    set.assert_holds(&[c]);
}

#[test]
fn a_set_whose_kept_object_belongs_to_a_member() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let (a, b) = (config_map(&home, "a", "1"), kept(config_map(&home, "b", "1")));
    set.apply(&[a.clone(), b.clone()]);
    give(&b, &[&a]);
    let sentinel = sentinel(&home, &a);
    let run = set.delete(&[]).expect(3);
    assert!(run.stderr.contains("configmap/b"), "{}", run.stderr);
    assert!(!run.stderr.contains("manifests"), "{}", run.stderr);
    assert!(cluster().live(&a).is_some());

    set.delete(&ALLOWED);

    assert_eq!(cluster().live(&a), None);
    assert_collected(&sentinel);
    set.assert_holds(&[b]);
}

#[test]
fn a_set_whose_parent_owns_a_kept_object() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let (a, b) = (config_map(&home, "a", "1"), kept(config_map(&home, "b", "1")));
    set.apply(&[a.clone(), b.clone()]);
    give(&b, &[&set.parent]);
    set.delete(&[]);
    assert_eq!(cluster().live(&a), None);
    // The parent stays with what is kept, so nothing is collected.
    set.assert_holds(&[b]);
}

/// A set of `a` and `between`, whose parent belongs to a member that is deleted or goes with one.
fn family_of_parent(owner: &str) -> (Set, Vec<Value>) {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let members = ["a", "between"].map(|name| config_map(&home, name, "1"));
    set.apply(&members);
    if owner == "between" {
        give(&members[1], &[&members[0]]);
    }
    let owner = members.iter().find(|member| member["metadata"]["name"] == *owner);
    give(&set.parent, &[owner.expect("a member")]);
    (set, members.into())
}

#[test]
fn a_set_whose_parent_belongs_to_a_member() {
    for owner in ["a", "between"] {
        let (set, members) = family_of_parent(owner);
        let state = cluster().state(&[&set.namespace]);
        for mode in ["--dry-run=client", "--dry-run=server"] {
            let run = set.delete(&[mode]).expect(0);
            assert!(
                run.results("deleted").contains(&identities([&set.parent])[0]),
                "{mode}: {}",
                run.stderr
            );
            assert_eq!(cluster().state(&[&set.namespace]), state, "{mode}");
        }

        set.delete(&[]).expect(0);

        assert_eq!(set.live_parent(), None);
        eventually("what is left to its owner goes", || {
            members
                .iter()
                .all(|member| cluster().live(member).is_none())
                .then_some(())
        });
    }
}

#[test]
fn a_deletion_that_is_killed_anywhere_keeps_the_parent_that_belongs_to_a_member() {
    for writes in 0.. {
        let (set, members) = family_of_parent("a");
        let sentinel = sentinel(&set.namespace, &members[0]);
        let proxy = Proxy::holding_after(writes);
        let program = Program::with_kubeconfig(&proxy.kubeconfig());
        let end = set.deletion(program).args(["--yes"]).run_until_held(&proxy);
        if end == ProgramEnd::Finished {
            assert_eq!(set.live_parent(), None);
            // The run begins, the reference is removed, the members and the parent are deleted.
            assert_eq!(writes, 5);
            return;
        }
        if cluster().live(&members[0]).is_none() {
            assert_collected(&sentinel);
        }
        assert!(set.live_parent().is_some(), "{writes}");
        assert_eq!(set.unrecorded(), Vec::<String>::new(), "{writes}");
        set.delete(&[]).expect(0);
        assert!(set.members().is_empty(), "{writes}");
        assert_eq!(set.live_parent(), None, "{writes}");
    }
}

#[test]
fn a_set_whose_parent_belongs_to_a_member_and_is_of_use_to_others() {
    let (set, members) = family_of_parent("a");
    cluster().patch(&set.parent, &json!({"stringData": {"key": "value"}}));
    let run = set.delete(&[]).expect(3);
    assert!(run.stderr.contains("secret/web"), "{}", run.stderr);

    set.delete(&ALLOWED).expect(0);

    assert!(set.members().is_empty());
    eventually("the member goes", || {
        cluster().live(&members[0]).is_none().then_some(())
    });
    assert_eq!(owners(&set.parent), 0);
}

#[test]
fn a_set_whose_parent_belongs_to_its_namespace() {
    let home = fresh("home");
    let set = Set::secret(&home, "web");
    let place = namespace_object(&home);
    set.apply(&[place.clone(), config_map(&home, "a", "1")]);
    give(&set.parent, &[&place]);
    set.delete(&[]).expect(0);
    assert_eq!(cluster().live(&place), None);
}

#[test]
fn a_kept_object_with_an_owner_is_kept_for_two_reasons() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let [a, c] = ["a", "c"].map(|name| config_map(&home, name, "1"));
    let b = kept(config_map(&home, "b", "1"));
    set.apply(&[a.clone(), b.clone(), c.clone()]);
    give(&b, &[&a]);
    let mark = "helm.sh/resource-policy: keep";

    let run = set.apply(&[a.clone(), c.clone()]);
    let reason = run.reason("b");
    assert!(
        reason.contains("owned by ConfigMap a") && reason.contains(mark),
        "{reason}"
    );
    let refused = set.apply_with(std::slice::from_ref(&c), &[]).expect(3);
    assert!(refused.errors()[0].contains(mark), "{}", refused.stderr);
}

#[test]
fn a_dependent_that_changes_before_it_is_detached() {
    let (set, a, b) = family();
    let (dependent, owner) = (b.clone(), a.clone());
    let other = config_map(&set.namespace, "other", "1");
    cluster().create(&other);
    let proxy = Proxy::before_write(0, move || {
        give(&dependent, &[&other, &owner]);
    });

    set.apply_through(&proxy, std::slice::from_ref(&b), &ALLOWED)
        .expect(0);

    assert_eq!(cluster().live(&a), None);
    assert_eq!(owners(&b), 1);
    set.assert_holds(&[b]);
}

#[test]
fn a_dependent_that_cannot_be_detached_keeps_its_owner() {
    let (set, a, b) = family();
    let proxy = Proxy::gated(|writes| match writes {
        1 => Verdict::Break(Fault::InternalError),
        _ => Verdict::Forward,
    });

    let run = set
        .apply_through(&proxy, std::slice::from_ref(&b), &ALLOWED)
        .expect(1);

    assert_eq!(run.results("failed"), identities([&a]), "{}", run.stderr);
    assert_eq!(run.results("unchanged"), identities([&b]), "{}", run.stderr);
    assert!(run.stderr.contains("owner references could not be removed: "));
    assert!(!run.stderr.contains("it changed since"), "{}", run.stderr);
    assert_eq!(owners(&b), 1);
    set.assert_holds(&[a.clone(), b.clone()]);
    set.apply_with(std::slice::from_ref(&b), &ALLOWED).expect(0);
    assert_eq!(cluster().live(&a), None);
}

#[test]
fn a_run_that_is_killed_between_detaching_and_deleting() {
    // Begin, detach, delete, and end.
    for writes in 0..=4 {
        let (set, a, b) = family();
        let sentinel = sentinel(&set.namespace, &a);
        let proxy = Proxy::holding_after(writes);
        let files = Files::new().with("objects.yaml", &objects_file(std::slice::from_ref(&b)));
        let program = Program::with_kubeconfig(&proxy.kubeconfig());
        let end = set.command(program, &files).args(ALLOWED).run_until_held(&proxy);
        assert_eq!(end == ProgramEnd::Finished, writes == 4, "{writes}");
        assert_eq!(set.unrecorded(), Vec::<String>::new());
        // Nothing is left that would have to be allowed once it is detached.
        let flags: &[&str] = if writes <= 1 { &ALLOWED } else { &[] };
        set.apply_with(std::slice::from_ref(&b), flags).expect(0);
        assert_collected(&sentinel);
        assert_eq!(owners(&b), 0);
        set.assert_holds(&[b]);
    }
}

fn diff(set: &Set, files: &Files, flags: &[&str]) -> Run {
    Program::new()
        .args(["diff", &set.reference, "-n", &set.namespace, "-f"])
        .args([files.path("manifests")])
        .args(flags)
        .run()
}

#[test]
fn a_diff_predicts_it_and_a_saved_plan_carries_it() {
    let (set, a, b) = family();
    let files = Files::new().with("manifests/b.yaml", &objects_file(std::slice::from_ref(&b)));
    let file = files.path("plan.json");
    let file = file.to_str().expect("a path");
    let refused = diff(&set, &files, &["--out", file]).expect(3);
    assert!(refused.stderr.contains("configmap/b"), "{}", refused.stderr);

    let shown = diff(&set, &files, &["--out", file, ALLOWED[0]]).expect(1);
    assert!(shown.stdout.contains("-  ownerReferences:"), "{}", shown.stdout);
    let apply = || Program::new().args(["apply", "-o", "json", "--plan", file]).run();

    // Another reference by then, and so another plan.
    let other = config_map(&set.namespace, "other", "1");
    cluster().create(&other);
    give(&b, &[&other]);
    apply().expect(3);
    assert!(cluster().live(&a).is_some());

    give(&b, &[&a]);
    let sentinel = sentinel(&set.namespace, &a);
    diff(&set, &files, &["--out", file, ALLOWED[0]]).expect(1);
    let run = apply().expect(0);
    assert_eq!(run.results("pruned"), identities([&a]));
    assert_collected(&sentinel);
    assert_eq!(owners(&b), 0);
    set.assert_holds(&[b]);
}
