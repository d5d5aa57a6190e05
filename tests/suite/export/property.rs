//! Whatever A and B are: apply A, apply B with an undo file, undo, and the state is that after A.
//!
//! `UNDO_SEED` and `UNDO_CASES` choose other cases, and how many.

use super::undo::apply;
use super::*;
use crate::support::{Random, deployment};

const NAMES: usize = 3;

fn number(name: &str, default: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.map_or(default, |text| text.parse().expect("a number"))
}

/// Random labels, annotations and data, or a workload with lists that are merged by keys.
fn object(random: &mut Random, namespaces: &[String], kind: usize, name: usize, place: usize) -> Value {
    let namespace = &namespaces[place];
    let name = format!("object-{name}");
    let number = || ["0", "1", "2"];
    let base = match kind {
        0 => config_map(namespace, &name, random.pick::<&str>(&number())),
        1 => with(
            secret(namespace, &name),
            &json!({"data": {"key": random.pick(&["MA==", "MQ=="]), (*random.pick(&["a", "b"])): "MQ=="}}),
        ),
        2 => {
            let ports: Vec<Value> = (0..=random.below(3))
                .map(|port| json!({"name": format!("p{port}"), "port": 80 + port + random.below(2) * 10, "protocol": "TCP"}))
                .collect();
            with(service(namespace, &name, 80), &json!({"spec": {"ports": ports}}))
        }
        _ => {
            let variables: Vec<Value> = (0..random.below(3))
                .map(|number| json!({"name": format!("V{number}"), "value": random.below(2).to_string()}))
                .collect();
            let side = json!({"name": "side", "image": "car"});
            let mut containers =
                vec![json!({"name": "app", "image": *random.pick(&["one", "two"]), "env": variables})];
            if random.percent(40) {
                containers.insert(random.below(2), side);
            }
            let spec = json!({"template": {"spec": {"containers": containers}}});
            with(deployment(namespace, &name, 1), &json!({"spec": spec}))
        }
    };
    let mut more = json!({"metadata": {}});
    for field in ["labels", "annotations"] {
        if random.percent(40) {
            more["metadata"][field] = json!({(*random.pick(&["x", "y"])): *random.pick(&number())});
        }
    }
    with(base, &more)
}

fn manifests(random: &mut Random, namespaces: &[String]) -> Vec<Value> {
    let mut objects = Vec::new();
    for kind in 0..4 {
        for name in 0..NAMES {
            for place in 0..namespaces.len() {
                if random.percent(35) {
                    objects.push(object(random, namespaces, kind, name, place));
                }
            }
        }
    }
    objects
}

#[test]
fn an_undo_restores_the_state_before_whatever_the_manifests_are() {
    let seed = number("UNDO_SEED", 1);
    for case in 0..number("UNDO_CASES", 8) {
        let random = &mut Random::new(seed, case);
        let namespaces = [namespace("undo-a"), namespace("undo-b")];
        let set = Set::secret(&namespaces[0], "web");
        let files = Files::new();
        let [a, b] = [manifests(random, &namespaces), manifests(random, &namespaces)];
        let all: Vec<Value> = [&a[..], &b[..]].concat();
        set.apply_with(&a, &["--allow-prune-all"]).expect(0);
        let was = contents(&set, &all);
        apply(&set, &files, "before.yaml", &b, &[]).expect(0);
        set.assert_holds(&b);
        let undo = files.path("before.yaml");
        apply_file(&set, &undo, &["--allow-prune-all"]).expect(0);
        let name = format!("UNDO_SEED={seed}, case {case}");
        set.assert_holds(&a);
        assert_eq!(contents(&set, &all), was, "{name}");
        for run in [
            apply_file(&set, &undo, &["--allow-prune-all"]),
            set.apply_with(&a, &["--allow-prune-all"]),
        ] {
            let run = run.expect(0);
            let unchanged = run.document()["summary"]["unchanged"]
                .as_u64()
                .unwrap_or_default();
            assert_eq!(unchanged, a.len() as u64, "{name}: {}", run.stdout);
        }
    }
}
