//! Sets of Config Sync, which follows the convention in part: they are shown, and nothing is written.

use serde_json::{Value, json};

use crate::support::{
    ID, PART_OF, Program, Set, TOOLING, cluster, config_map, definition, named, namespace, with,
};

/// The definition of the kind does not have the label that permits parents, and the parents record no kinds.
#[test]
fn sets_of_config_sync_are_shown_with_their_tool_and_not_written() {
    let home = namespace("home");
    let mut kind = definition("configsync.gke.io", "Namespaced");
    kind["metadata"] = json!({"name": "rootsyncs.configsync.gke.io"});
    kind["spec"]["names"] = json!({"kind": "RootSync", "plural": "rootsyncs", "singular": "rootsync"});
    cluster().define(&kind);
    let parent = named("configsync.gke.io/v1", "RootSync", Some(&home), "shop");
    let set = Set::of(parent, &home, "rootsyncs.configsync.gke.io/shop");
    let metadata = json!({"labels": {ID: set.id}, "annotations": {TOOLING: "configsync.gke.io/v1"}});
    cluster().create(&with(set.parent.clone(), &json!({"metadata": metadata})));
    let member = json!({"metadata": {"labels": {PART_OF: set.id}}});
    cluster().create(&with(config_map(&home, "one", "1"), &member));
    let before = cluster().state(&[&home]);

    let run = |arguments: &[&str], code| {
        Program::new()
            .args(arguments)
            .args(["-n", &home])
            .run()
            .expect(code)
    };
    let document = run(&["list", "-o", "json"], 0).document();
    let sets = document["sets"].as_array().expect("sets");
    let shown = sets.iter().find(|entry| entry["id"] == *set.id).expect("the set");
    assert_eq!(
        [
            &shown["tooling"],
            &shown["status"],
            &shown["members"],
            &shown["faults"]
        ],
        [
            &json!("configsync.gke.io/v1"),
            &json!("unknown"),
            &Value::Null,
            &json!([])
        ]
    );
    for name in [&[][..], &[&*set.reference]] {
        let arguments = [&["verify", "--fix", "--yes", "-o", "json"], name].concat();
        let findings = run(&arguments, 0).document()["findings"].take();
        assert_eq!(findings.as_array().map(Vec::len), Some(1), "{findings}");
        let message = findings[0]["message"].as_str().expect("a message");
        assert!(
            message.starts_with("configsync.gke.io/v1 manages the set"),
            "{message}"
        );
    }
    for command in ["delete", "disband"] {
        let flags = ["--take-over-set", "--yes"];
        let code = Program::new()
            .args([command, &set.reference, "-n", &home])
            .args(flags)
            .run()
            .code;
        assert!([2, 3].contains(&code), "{command}: {code}");
    }
    assert_eq!(cluster().state(&[&home]), before);
}
