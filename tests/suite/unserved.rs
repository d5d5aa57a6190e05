//! Kinds that are defined and not served: their objects are stored and cannot be listed, so no
//! command takes them for gone. Each test has a control plane of its own.

use serde_json::{Value, json};

use crate::support::{
    OwnControlPlane, Program, Run, Set, cluster, config_map, custom_resource, definition, eventually,
    identities, namespace,
};

const GROUP: &str = "unserved.example.com";

/// Stops or starts serving the kind, and returns when discovery says so.
fn serve(is_served: bool) {
    let definition = definition(GROUP, "Namespaced");
    let mut patch = json!({"spec": {"versions": definition["spec"]["versions"]}});
    patch["spec"]["versions"][0]["served"] = json!(is_served);
    cluster().patch(&definition, &patch);
    eventually("discovery follows the definition", || {
        let groups = cluster().get("/apis").expect("groups").to_string();
        (groups.contains(GROUP) == is_served).then_some(())
    });
}

fn warns_of(run: &Run, text: &str) -> bool {
    run.warnings().iter().any(|warning| warning.contains(text))
}

#[test]
fn members_of_such_a_kind_are_not_taken_for_absent_when_nothing_records_them() {
    let _own = OwnControlPlane::start();
    let home = namespace("home");
    cluster().define(&definition(GROUP, "Namespaced"));
    let set = Set::secret(&home, "web");
    let objects = [
        config_map(&home, "a", "1"),
        custom_resource(GROUP, Some(&home), "w"),
    ];
    set.apply(&objects);
    cluster().delete(&set.parent);
    serve(false);

    let run = set.delete(&[]).expect(0);
    assert_eq!(run.results("deleted"), identities(&objects[..1]));
    assert!(warns_of(&run, "widgets"), "{}", run.stdout);
    let run = set.delete(&[]).expect(4);
    assert!(run.stderr.contains("widgets"), "{}", run.stderr);
    let run = Program::new().args(["verify", "-A", "-o", "json"]).run();
    assert!(run.stdout.contains("widgets"), "{}", run.stdout);

    // A parent that has lost its record.
    let parent = config_map(&home, "bare", "1");
    cluster().create(&parent);
    let bare = Set::config_map(&home, "bare");
    let run = bare.apply_with(&objects[..1], &["--take-over", "--yes"]).expect(0);
    assert!(warns_of(&run, "widgets"), "{}", run.stdout);

    serve(true);
    set.delete(&[]).expect(0);
    let gone = |object: &Value| cluster().live(object).is_none();
    eventually("the member is gone", || gone(&objects[1]).then_some(()));
}
