//! Parents that another client has written on: whatever they say, a run that is refused leaves
//! everything as it is, and no run deletes what is not a member.

use serde_json::{Value, json};

use crate::support::{
    GROUP_KINDS, ID, NAMESPACES, PART_OF, Random, Set, TOOLING, cluster, config_map, namespace, secret, with,
};

/// Metadata of a parent that pretends.
fn pretences(set: &Set, victim: &str) -> Vec<(&'static str, Value)> {
    let own = set.id.as_str();
    let good = |more: Value| {
        let metadata = json!({
            "labels": {ID: own},
            "annotations": {TOOLING: "kubectl-applyset/v0.1.0", GROUP_KINDS: "ConfigMap", NAMESPACES: ""},
        });
        with(metadata, &more)
    };
    let recorded = |key: &str, value: &str| good(json!({"annotations": {key: value}}));
    let huge = (0..10_000)
        .map(|number| format!("ns-{number}"))
        .collect::<Vec<_>>()
        .join(",");
    vec![
        ("the id of another set", good(json!({"labels": {ID: victim}}))),
        (
            "a member of another set",
            good(json!({"labels": {PART_OF: victim}})),
        ),
        (
            "an id of a later version",
            good(json!({"labels": {ID: own.replace("-v1", "-v2")}})),
        ),
        ("tooling of another program", recorded(TOOLING, "helm/v4")),
        ("tooling without a version", recorded(TOOLING, "kubectl-applyset")),
        (
            "tooling with escapes",
            recorded(TOOLING, "kubectl-applyset/v0.1.0\u{1b}[2J"),
        ),
        (
            "kinds with paths",
            recorded(GROUP_KINDS, "ConfigMap,../../secrets.x"),
        ),
        (
            "kinds with escapes",
            recorded(GROUP_KINDS, "ConfigMap,\u{1b}]0;x\u{7}"),
        ),
        (
            "kinds without end",
            recorded(GROUP_KINDS, &"ConfigMap,".repeat(20_000)),
        ),
        ("namespaces with paths", recorded(NAMESPACES, "../kube-system")),
        ("namespaces with queries", recorded(NAMESPACES, "default?x=y")),
        ("namespaces with spaces", recorded(NAMESPACES, "a, b")),
        ("ten thousand namespaces", recorded(NAMESPACES, &huge)),
        (
            "kinds of everything",
            recorded(GROUP_KINDS, "ConfigMap,Namespace,Secret,ServiceAccount"),
        ),
        (
            "namespaces of others",
            recorded(NAMESPACES, "default,kube-system"),
        ),
    ]
}

#[test]
fn no_parent_makes_a_run_delete_what_is_not_a_member() {
    let home = namespace("home");
    let other = namespace("other");
    let victim = Set::secret(&other, "victim");
    let theirs = [config_map(&other, "theirs", "1"), secret(&other, "theirs")];
    victim.apply(&theirs);
    let bystanders = [config_map(&home, "bystander", "1"), secret(&home, "bystander")];
    for bystander in &bystanders {
        cluster().create(bystander);
    }
    let live = || -> Vec<Option<Value>> {
        let all = bystanders.iter().chain(&theirs).chain([&victim.parent]);
        all.map(|object| cluster().live(object)).collect()
    };
    let before = live();
    for (number, (name, metadata)) in (0..).zip(pretences(&Set::secret(&home, "web"), &victim.id)) {
        let set = Set::secret(&home, &format!("web-{number}"));
        let own = Set::secret(&home, "web");
        let text = metadata.to_string().replace(&own.id, &set.id);
        let metadata: Value = serde_json::from_str(&text).expect("JSON");
        cluster().create(&with(set.parent.clone(), &json!({"metadata": metadata})));
        let object = config_map(&home, &format!("one-{number}"), "1");
        let run = set.apply_with(std::slice::from_ref(&object), &["-v"]);
        assert!([0, 3].contains(&run.code), "{name}: {} {}", run.code, run.stderr);
        assert_eq!(live(), before, "{name}");
        assert_eq!(cluster().live(&object).is_some(), run.code == 0, "{name}");
        let raw = run
            .stderr
            .chars()
            .find(|character| character.is_control() && *character != '\n');
        assert_eq!(raw, None, "{name}: {:?}", run.stderr);
        run.document();
    }
    victim.assert_records(&theirs);
}

#[test]
fn random_records_are_refused_or_kept() {
    let home = namespace("home");
    let bystander = config_map(&home, "bystander", "1");
    cluster().create(&bystander);
    let before = cluster().live(&bystander);
    let pieces = [
        "ConfigMap",
        "Secret",
        ".",
        ",",
        ",,",
        "/",
        "apps",
        " ",
        "v1",
        "-",
        "kubectl-applyset/v0.1.0",
        "é",
        "\\",
        "*",
    ];
    let mut random = Random::new(1, 0);
    for number in 0..25 {
        let set = Set::secret(&home, &format!("web-{number}"));
        let mut text = || {
            (0..random.below(6))
                .map(|_| *random.pick(&pieces))
                .collect::<String>()
        };
        let annotations = json!({TOOLING: text(), GROUP_KINDS: text(), NAMESPACES: text()});
        let metadata = json!({"metadata": {"labels": {ID: set.id}, "annotations": annotations}});
        cluster().create(&with(set.parent.clone(), &metadata));
        let version = set.parent_version();
        let run = set.apply_with(&[config_map(&home, "one", "1")], &[]);
        assert!([0, 3].contains(&run.code), "{annotations}: {}", run.stderr);
        if run.code == 3 {
            assert_eq!(set.parent_version(), version, "{annotations}");
        } else {
            cluster().delete(&config_map(&home, "one", "1"));
        }
        assert_eq!(cluster().live(&bystander), before, "{annotations}");
    }
}
