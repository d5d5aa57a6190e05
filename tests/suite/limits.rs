//! Sets that are large: what does not fit on the parent is refused before anything is
//! written, and what fits is found again.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::support::{
    GROUP_KINDS, HISTORY, NAMESPACES, Proxy, Set, cluster, cluster_role, config_map, fresh, identities,
    named, namespace, secret, service, with,
};

/// What the API server allows for all annotations of an object, keys and values.
const LIMIT: usize = 256 * 1024;

#[test]
fn annotations_that_would_not_fit_are_refused_before_anything_is_written() {
    let [a, b] = [namespace("a"), namespace("b")];
    let set = Set::secret(&a, "web");
    let first = [config_map(&a, "one", "1")];
    set.apply(&first);
    let parent = set.live_parent().expect("a parent");
    let used: usize = parent["metadata"]["annotations"]
        .as_object()
        .expect("annotations")
        .iter()
        .filter(|(key, _)| *key != HISTORY)
        .map(|(key, value)| key.len() + value.as_str().expect("a text").len())
        .sum();
    // Room for runs under way, and for ten bytes more: a kind fits, a kind and a namespace do not.
    let filling = "x".repeat(LIMIT - used - HISTORY.len() - 3072 - "note".len() - 10);
    cluster().patch(
        &set.parent,
        &json!({"metadata": {"annotations": {"note": filling}}}),
    );
    assert!(b.len() + ",Service".len() > 10);
    let before = cluster().state(&[&a, &b]);
    for flag in ["--dry-run=client", "--dry-run=server", "--dry-run=none"] {
        let run = set
            .apply_with(&[config_map(&a, "one", "1"), service(&b, "web", 80)], &[flag])
            .expect(3);
        assert!(run.errors()[0].contains("262144"), "{}", run.stderr);
        assert_eq!(cluster().state(&[&a, &b]), before, "{flag}");
    }

    // To the byte: what fits is written.
    let fitting = [config_map(&a, "one", "1"), service(&a, "web", 80)];
    set.apply(&fitting);
    set.assert_holds(&fitting);

    // The union counts: the new kind alone would fit, but the old ones are there still.
    let run = set.apply_with(&[secret(&a, "two")], &[]).expect(3);
    assert!(run.errors()[0].contains("262144"), "{}", run.stderr);
    set.assert_holds(&fitting);
}

#[test]
fn members_in_200_namespaces_are_recorded_found_and_pruned() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let names: Vec<String> = (0..200).map(|_| namespace("wide")).collect();
    let everywhere: Vec<Value> = names.iter().map(|name| config_map(name, "one", "1")).collect();
    let run = set.apply(&everywhere);
    assert_eq!(run.results("created"), identities(&everywhere));
    set.assert_holds(&everywhere);

    let proxy = Proxy::transparent();
    let run = set.apply_through(&proxy, &everywhere, &[]).expect(0);
    assert_eq!(run.results("unchanged"), identities(&everywhere));
    assert!(proxy.sent().len() < 15, "a request for each namespace");

    let run = set.apply(&everywhere[..3]);
    assert_eq!(run.results("pruned"), identities(&everywhere[3..]));
    set.assert_holds(&everywhere[..3]);
}

/// The kinds of the server that can be listed and pruned, as a record has them.
fn built_in_kinds() -> Vec<String> {
    let mut kinds = Vec::new();
    let groups = cluster().get("/apis").expect("groups");
    let groups = groups["groups"].as_array().expect("groups");
    let mut roots = vec![("/api/v1".to_owned(), String::new())];
    for group in groups {
        let name = group["name"].as_str().expect("a name");
        let version = group["preferredVersion"]["groupVersion"]
            .as_str()
            .expect("a version");
        // Kinds of other tests come and go.
        if !name.ends_with(".example.com") {
            roots.push((format!("/apis/{version}"), format!(".{name}")));
        }
    }
    for (root, suffix) in roots {
        let list = cluster().get(&root).expect("resources");
        for resource in list["resources"].as_array().expect("resources") {
            let has = |verb: &str| {
                resource["verbs"]
                    .as_array()
                    .is_some_and(|verbs| verbs.contains(&json!(verb)))
            };
            if has("list") && has("delete") && has("patch") {
                kinds.push(format!("{}{suffix}", resource["kind"].as_str().expect("a kind")));
            }
        }
    }
    kinds
}

#[test]
fn a_record_of_300_kinds_is_read_and_put_right() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let first = [config_map(&home, "one", "1")];
    set.apply(&first);
    // All that the server has; the rest are kinds that it had once. 300 kinds that are
    // served would take longer to define than all other tests.
    let mut kinds = built_in_kinds();
    assert!(kinds.len() > 40, "{kinds:?}");
    // A set that records definitions may have pruned its own, and then warns of nothing.
    kinds.retain(|kind| !kind.starts_with("CustomResourceDefinition."));
    for number in kinds.len()..300 {
        kinds.push(format!("Gone{number}.vanished.example.org"));
    }
    kinds.sort();
    cluster().patch(
        &set.parent,
        &json!({"metadata": {"annotations": {GROUP_KINDS: kinds.join(",")}}}),
    );
    // Members of many kinds that only the record leads to.
    let strays = [
        service(&home, "stray", 80),
        secret(&home, "stray"),
        cluster_role(&fresh("stray")),
        named("v1", "ServiceAccount", Some(&home), "stray"),
        with(
            named("networking.k8s.io/v1", "NetworkPolicy", Some(&home), "stray"),
            &json!({"spec": {"podSelector": {}}}),
        ),
    ];
    let label = json!({"metadata": {"labels": {crate::support::PART_OF: set.id}}});
    for stray in &strays {
        cluster().apply_as("applyset", &with(stray.clone(), &label));
    }

    let run = set.apply(&first);

    assert_eq!(run.results("pruned"), identities(&strays));
    let gone = run
        .warnings()
        .iter()
        .filter(|warning| warning.contains("vanished.example.org"))
        .count();
    assert!(gone > 200, "{gone} warnings");
    set.assert_holds(&first);
}

#[test]
fn a_wide_record_is_as_long_as_its_names() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let first = [config_map(&home, "one", "1")];
    set.apply(&first);
    // Namespaces that are recorded need not exist any more.
    let mut names = String::new();
    for number in 0..2000 {
        write!(
            names,
            "{}long-gone-namespace-{number:04}",
            if number > 0 { "," } else { "" }
        )
        .expect("a text");
    }
    cluster().patch(
        &set.parent,
        &json!({"metadata": {"annotations": {NAMESPACES: names}}}),
    );
    set.apply(&first);
    set.assert_holds(&first);
}
