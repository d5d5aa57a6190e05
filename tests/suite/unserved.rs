//! Kinds that are defined and not served: their objects are stored and cannot be listed, so no
//! command takes them for gone. Tests that leave one so have a control plane to themselves.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::support::{
    Omission, OwnControlPlane, Program, Proxy, Run, Sent, Set, cluster, config_map, custom_resource,
    definition, eventually, fresh, identities, namespace, with,
};

const GROUP: &str = "unserved.example.com";

/// A parent of a kind that discovery omits for a while is waited for.
#[test]
fn a_parent_of_a_kind_that_discovery_does_not_list_yet_is_waited_for() {
    let home = namespace("home");
    let group = format!("{}.example.com", fresh("g"));
    cluster().define(&definition(&group, "Namespaced"));
    cluster().create(&custom_resource(&group, Some(&home), "web"));
    let set = Set::custom(&group, Some(&home), &home);
    let objects = [config_map(&home, "a", "1")];
    let through = || Proxy::watched(Arc::new(Omission::of(&group, 3)));
    set.apply_through(&through(), &objects, &[]).expect(0);
    set.assert_holds(&objects);
    let look = |arguments: &[&str]| {
        let proxy = through();
        let program = Program::with_kubeconfig(&proxy.kubeconfig());
        program.args(arguments).args(["-o", "json"]).run()
    };
    let run = look(&["list", "-n", &home]).expect(0);
    assert_eq!(run.document()["sets"][0]["id"], set.id.as_str(), "{}", run.stdout);
    let run = look(&["verify", &set.reference, "-n", &home]).expect(0);
    assert_eq!(run.document()["findings"], json!([]), "{}", run.stdout);
    // One that is never listed ends the run with 4, before anything is written.
    let proxy = Proxy::watched(Arc::new(Omission::of(&group, usize::MAX)));
    let changed = [config_map(&home, "a", "2")];
    let run = set.apply_through(&proxy, &changed, &["--timeout=4s"]).expect(4);
    assert!(run.errors()[0].contains(&group), "{}", run.stderr);
    assert!(proxy.sent().iter().all(|sent| !sent.is_write()));
    // Whose set its members are is not known in the meantime.
    let other = Set::secret(&home, "other");
    let run = other.apply_through(&proxy, &objects, &["--timeout=8s"]).expect(3);
    assert!(run.stderr.contains("is gone or not"), "{}", run.stderr);
}

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
        .apply_with(&objects[..1], &["--take-over-set", "--yes"])
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
        .apply_through(&proxy, &objects, &["--take-over-set", "--yes"])
        .expect(0);
    assert_eq!(run.warnings(), Vec::<String>::new());
    let run = bare.invoke_by(administrator(), "verify", &[]).expect(0);
    assert!(!run.stdout.contains("incomplete-look"), "{}", run.stdout);
    let run = Program::new().args(["list", "-A", "-o", "json"]).run().expect(0);
    assert!(!warns_of(&run, GROUP), "{}", run.stdout);
    // Each of the four read the definitions once, and waited for none.
    let list = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?";
    let is_list = |sent: &&Sent| sent.path.starts_with(list) && !sent.path.contains("applyset");
    let sent = proxy.sent();
    let lists: Vec<&Sent> = sent.iter().filter(is_list).collect();
    assert_eq!(lists.len(), 4, "{lists:?}");

    serve(true);
    cluster().patch(&custom, &json!({"metadata": {"finalizers": null}}));
}

#[test]
fn a_parent_of_such_a_kind_is_not_taken_for_gone() {
    let _own = OwnControlPlane::start();
    let home = namespace("home");
    let definition = definition(GROUP, "Namespaced");
    cluster().define(&definition);
    cluster().create(&custom_resource(GROUP, Some(&home), "web"));
    let set = Set::custom(GROUP, Some(&home), &home);
    let objects = [config_map(&home, "a", "1")];
    set.apply(&objects);
    serve(false);

    let run = Program::new().args(["list", "-A", "-o", "json"]).run().expect(0);
    assert!(warns_of(&run, &format!("Widget.{GROUP}")), "{}", run.stdout);
    let run = Program::new().args(["verify", "-A", "-o", "json"]).run();
    assert!(!run.stdout.contains("orphan"), "{}", run.stdout);
    let run = Set::secret(&home, "other").apply_with(&objects, &[]).expect(3);
    assert!(run.stderr.contains("is gone or not"), "{}", run.stderr);
    let run = set.apply_with(&objects, &[]).expect(4);
    assert!(run.stderr.contains("defined, but not served"), "{}", run.stderr);
    let bare = ["delete", "widget/web", "-n", &home, "--yes"];
    let run = Program::new().args(bare).run().expect(4);
    assert!(run.stderr.contains("defined, but not served"), "{}", run.stderr);

    // Its manifest, too, names the definition that is there.
    let custom = custom_resource(GROUP, Some(&home), "w");
    let plain = Set::secret(&home, "plain");
    let run = plain.apply_with(std::slice::from_ref(&custom), &[]).expect(2);
    assert!(run.stderr.contains("serves no version"), "{}", run.stderr);

    // While it is being deleted, it offers fewer verbs.
    serve(true);
    let held = with(
        custom.clone(),
        &json!({"metadata": {"finalizers": ["example.com/held"]}}),
    );
    cluster().create(&held);
    cluster().delete(&definition);
    eventually("the server offers fewer verbs", || {
        let path = format!("/apis/{GROUP}/v1");
        let resources = cluster().get(&path)?;
        let verbs = resources["resources"][0]["verbs"].to_string();
        (!verbs.contains("patch")).then_some(())
    });
    let run = plain
        .apply_with(&[definition.clone(), custom.clone()], &[])
        .expect(1);
    assert!(run.stderr.contains("is being deleted"), "{}", run.stderr);
    cluster().patch(&custom, &json!({"metadata": {"finalizers": null}}));
}
