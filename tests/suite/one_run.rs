//! Everything in one run: a namespace with its contents and the set's parent, a kind
//! with its objects. Dry runs write nothing and predict what the run does.

use serde_json::Value;

use crate::support::{
    Run, Set, cluster, config_map, custom_resource, definition, eventually, fresh, identities, namespace,
    namespace_object, secret, service,
};

const ACTIONS: [&str; 6] = [
    "created",
    "configured",
    "unchanged",
    "pruned",
    "skipped",
    "failed",
];

fn outcome(run: &Run) -> Vec<Vec<String>> {
    ACTIONS.iter().map(|action| run.results(action)).collect()
}

/// Runs both dry runs and the run, and asserts that the former wrote nothing and reported
/// what the latter does.
#[track_caller]
fn assert_predicted(set: &Set, objects: &[Value], watched: &[Value]) -> Run {
    let look = || {
        let live: Vec<_> = watched.iter().map(|object| cluster().live(object)).collect();
        (live, set.live_parent(), cluster().members(&set.id))
    };
    let before = look();
    let predicted = ["--dry-run=client", "--dry-run=server"].map(|flag| {
        let run = set.apply_with(objects, &[flag]).expect(0);
        assert_eq!(look(), before, "{flag}");
        outcome(&run)
    });
    let run = set.apply_with(objects, &[]).expect(0);
    for predicted in predicted {
        assert_eq!(predicted, outcome(&run));
    }
    run
}

#[test]
fn a_namespace_with_its_contents_and_the_parent_comes_and_changes() {
    let home = fresh("home");
    let away = fresh("away");
    let set = Set::secret(&home, "web");
    let first = [
        config_map(&away, "one", "1"),
        service(&home, "web", 80),
        config_map(&home, "two", "1"),
        namespace_object(&away),
        namespace_object(&home),
    ];
    let run = assert_predicted(&set, &first, &first);
    assert_eq!(run.results("created"), identities(&first));
    set.assert_holds(&first);

    // The second namespace goes with what is in it, in the same run in which a third comes.
    let third = fresh("third");
    let next = [
        namespace_object(&home),
        config_map(&home, "two", "2"),
        namespace_object(&third),
        secret(&third, "three"),
    ];
    let run = assert_predicted(&set, &next, &[first.as_slice(), &next].concat());
    assert_eq!(
        run.results("pruned"),
        identities([&first[0], &first[1], &first[3]])
    );
    eventually("what was pruned is gone", || {
        let mut pruned = [&first[0], &first[1], &first[3]].into_iter();
        pruned
            .all(|object| cluster().live(object).is_none())
            .then_some(())
    });
    set.apply(&next);
    set.assert_holds(&next);
}

#[test]
fn a_kind_with_its_objects_comes_changes_and_goes() {
    let home = namespace("home");
    let away = fresh("away");
    let set = Set::secret(&home, "web");
    let groups = [(); 2].map(|()| format!("{}.example.com", fresh("g")));
    let kept = config_map(&home, "kept", "1");
    let first = [
        custom_resource(&groups[0], Some(&away), "one"),
        custom_resource(&groups[0], Some(&home), "two"),
        definition(&groups[0], "Namespaced"),
        namespace_object(&away),
        kept.clone(),
    ];
    let run = assert_predicted(&set, &first, &first);
    assert_eq!(run.results("created"), identities(&first));
    set.assert_holds(&first);

    let next = [
        kept,
        custom_resource(&groups[1], None, "three"),
        definition(&groups[1], "Cluster"),
    ];
    let run = assert_predicted(&set, &next, &[first.as_slice(), &next].concat());
    assert_eq!(run.results("pruned"), identities(&first[..4]));
    assert_eq!(run.results("created"), identities(&next[1..]));
    eventually("kind and namespace are gone", || {
        let is_gone = |object: &Value| cluster().live(object).is_none();
        first[2..4].iter().all(is_gone).then_some(())
    });
    set.apply(&next);
    set.assert_holds(&next);
}

#[test]
fn a_custom_parent_comes_with_its_namespace_its_kind_and_its_members() {
    let home = fresh("home");
    let group = format!("{}.example.com", fresh("g"));
    let set = Set::custom(&group, Some(&home), &home);
    let members = [
        config_map(&home, "one", "1"),
        namespace_object(&home),
        definition(&group, "Namespaced"),
        custom_resource(&group, Some(&home), "a-member"),
    ];
    let parent = custom_resource(&group, Some(&home), "web");
    let all = [&members[..], std::slice::from_ref(&parent)].concat();
    let run = assert_predicted(&set, &all, &all);
    assert_eq!(run.results("created"), identities(&members));
    set.assert_holds(&members);
    let run = assert_predicted(&set, &all, &all);
    assert_eq!(run.results("unchanged"), identities(&members));
}
