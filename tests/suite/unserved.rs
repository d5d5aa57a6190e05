//! Kinds that are defined and not served: their objects are stored and cannot be listed, so no
//! command takes them for gone. Each test has a control plane to itself.

use serde_json::{Value, json};

use crate::support::{
    OwnControlPlane, Program, Proxy, Run, Sent, Set, cluster, config_map, custom_resource, definition,
    eventually, identities, namespace, with,
};

const GROUP: &str = "unserved.example.com";

/// Stops or starts serving the kind, and returns when discovery says so.
fn serve(is_served: bool) {
    let definition = definition(GROUP, "Namespaced");
    let mut patch = json!({"spec": {"versions": definition["spec"]["versions"]}});
    patch["spec"]["versions"][0]["served"] = json!(is_served);
    cluster().patch(&definition, &patch);
    eventually("discovery follows the definition", || {
        let kinds = cluster().get(&format!("/apis/{GROUP}/v1"));
        let is_listed = kinds.is_some_and(|kinds| kinds.to_string().contains("widgets"));
        (is_listed == is_served).then_some(())
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
    let run = bare
        .apply_with(&objects[..1], &["--take-over", "--yes"])
        .expect(0);
    assert!(warns_of(&run, "widgets"), "{}", run.stdout);

    serve(true);
    set.delete(&[]).expect(0);
    let gone = |object: &Value| cluster().live(object).is_none();
    eventually("the member is gone", || gone(&objects[1]).then_some(()));
}

/// A definition that is never established, since `widgets` have its singular name.
fn never_established() -> Value {
    with(
        definition(GROUP, "Namespaced"),
        &json!({
            "metadata": {"name": format!("gadgets.{GROUP}")},
            "spec": {"names": {"kind": "Gadget", "plural": "gadgets", "singular": "widget"}},
        }),
    )
}

#[test]
fn definitions_that_can_have_no_member_do_not_count() {
    let _own = OwnControlPlane::start();
    let home = namespace("home");
    cluster().define(&definition(GROUP, "Namespaced"));
    cluster().create(&never_established());
    let set = Set::secret(&home, "web");
    // One that is being deleted: the server deletes its custom resources, served or not.
    let custom = custom_resource(GROUP, Some(&home), "w");
    let held = json!({"metadata": {"finalizers": ["example.com/held"]}});
    cluster().create(&with(custom.clone(), &held));
    serve(false);
    cluster().delete(&definition(GROUP, "Namespaced"));

    let proxy = Proxy::transparent();
    let administrator = || Program::with_kubeconfig(&proxy.kubeconfig());
    set.delete_with(administrator(), &[]).expect(2);
    set.invoke_by(administrator(), "verify", &[]).expect(2);
    let parent = config_map(&home, "bare", "1");
    cluster().create(&parent);
    let bare = Set::config_map(&home, "bare");
    let objects = [config_map(&home, "a", "1")];
    let run = bare
        .apply_through(&proxy, &objects, &["--take-over", "--yes"])
        .expect(0);
    assert_eq!(run.warnings(), Vec::<String>::new());
    let run = bare.invoke_by(administrator(), "verify", &[]).expect(0);
    assert!(!run.stdout.contains("incomplete-look"), "{}", run.stdout);
    // Each of the four read the definitions once, and waited for none.
    let list = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?";
    let is_list = |sent: &&Sent| sent.path.starts_with(list) && !sent.path.contains("applyset");
    let sent = proxy.sent();
    let lists: Vec<&Sent> = sent.iter().filter(is_list).collect();
    assert_eq!(lists.len(), 4, "{lists:?}");

    serve(true);
    cluster().patch(&custom, &json!({"metadata": {"finalizers": null}}));
}
