//! An admission policy that changes the part-of label: an object without it has failed, and its kind stays recorded.

use serde_json::{Value, json};

use super::inventories::{by_helm, release};
use crate::support::{
    Files, GROUP_KINDS, ID, PART_OF, Run, Set, cluster, config_map, eventually, fresh, identities, named,
    namespace, objects_file, secret, service, with,
};

/// Takes the label off.
const REMOVAL: &str = r#"[JSONPatch{op: "remove",
    path: "/metadata/labels/" + jsonpatch.escapeKey("applyset.kubernetes.io/part-of")}]"#;
/// Whether an object has the label.
const LABELED: &str =
    "has(object.metadata.labels) && 'applyset.kubernetes.io/part-of' in object.metadata.labels";
/// Takes the kinds off a record.
const FORGETTING: &str = r#"[JSONPatch{op: "remove",
    path: "/metadata/annotations/" + jsonpatch.escapeKey("applyset.kubernetes.io/contains-group-kinds")}]"#;
/// Whether an object has a record.
const RECORDED: &str = "has(object.metadata.annotations) \
    && 'applyset.kubernetes.io/contains-group-kinds' in object.metadata.annotations";
/// Puts a label back that a request takes off.
const RETURN: &str = r#"[JSONPatch{op: "add",
    path: "/metadata/labels",
    value: Object.metadata.labels{}},
    JSONPatch{op: "add",
    path: "/metadata/labels/" + jsonpatch.escapeKey("applyset.kubernetes.io/part-of"),
    value: oldObject.metadata.labels["applyset.kubernetes.io/part-of"]}]"#;
/// Whether a request takes it off.
const UNLABELING: &str = "oldObject != null && has(oldObject.metadata.labels) \
    && 'applyset.kubernetes.io/part-of' in oldObject.metadata.labels \
    && !(has(object.metadata.labels) && 'applyset.kubernetes.io/part-of' in object.metadata.labels)";
/// Puts owner references back that a request removes.
const OWNERS_RETURN: &str = r#"[JSONPatch{op: "add", path: "/metadata/ownerReferences",
    value: oldObject.metadata.ownerReferences}]"#;
/// Whether a request removes them.
const DISOWNING: &str = "oldObject != null && has(oldObject.metadata.ownerReferences) \
    && !has(object.metadata.ownerReferences)";

/// An admission policy and its binding, which change the ConfigMap `bare` of one namespace.
struct Policy([Value; 2]);

impl Policy {
    /// Returns once the server obeys it, which `is_obeyed` finds out.
    fn new(namespace: &str, condition: &str, mutation: &str, is_obeyed: impl Fn() -> bool) -> Self {
        let name = fresh("policy");
        let named = |kind| named("admissionregistration.k8s.io/v1", kind, None, &name);
        let policy = with(
            named("MutatingAdmissionPolicy"),
            &json!({"spec": {
                "failurePolicy": "Fail",
                "reinvocationPolicy": "Never",
                "matchConstraints": {
                    "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                    "resourceRules": [{
                        "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
                        "operations": ["CREATE", "UPDATE"],
                    }],
                },
                "matchConditions": [
                    {"name": "bare", "expression": "object.metadata.name.startsWith('bare')"},
                    {"name": "label", "expression": condition},
                ],
                "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": mutation}}],
            }}),
        );
        let binding = with(
            named("MutatingAdmissionPolicyBinding"),
            &json!({"spec": {"policyName": name}}),
        );
        let policy = Self([policy, binding]);
        for object in &policy.0 {
            cluster().create(object);
        }
        eventually("the server obeys the policy", || is_obeyed().then_some(()));
        policy
    }

    fn removing(namespace: &str) -> Self {
        Self::new(namespace, LABELED, REMOVAL, || {
            let probe = with(
                config_map(namespace, "bare-probe", "1"),
                &json!({"metadata": {"labels": {PART_OF: "probe"}}}),
            );
            let made = cluster().apply_as("probe", &probe);
            cluster().delete(&probe);
            made["metadata"]["labels"].get(PART_OF).is_none()
        })
    }

    fn forgetting(namespace: &str) -> Self {
        Self::new(namespace, RECORDED, FORGETTING, || {
            let probe = with(
                config_map(namespace, "bare-probe", "1"),
                &json!({"metadata": {"annotations": {GROUP_KINDS: "ConfigMap"}}}),
            );
            let made = cluster().apply_as("probe", &probe);
            cluster().delete(&probe);
            made["metadata"]["annotations"].get(GROUP_KINDS).is_none()
        })
    }

    fn end(&self) {
        for object in &self.0 {
            cluster().delete(object);
        }
    }
}

/// Asserts that the run failed for the ConfigMap `bare` alone, and says why.
fn assert_bare_failed(run: &Run, bare: &Value) {
    assert_eq!(run.results("failed"), identities([bare]));
    assert!(
        run.stderr.contains("the server removed the label"),
        "{}",
        run.stderr
    );
}

fn label(object: &Value) -> Option<Value> {
    let live = cluster().live(object).expect("the object");
    live["metadata"]["labels"].get(PART_OF).cloned()
}

#[test]
fn a_member_without_its_label_fails_and_its_kind_stays_recorded() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let policy = Policy::removing(&home);
    let objects = [config_map(&home, "bare", "1"), service(&home, "web", 80)];
    let bare = &objects[0];

    for flags in [&["--dry-run=server"][..], &[]] {
        let run = set.apply_with(&objects, flags).expect(1);
        assert_bare_failed(&run, bare);
        assert_eq!(run.results("created"), identities(&objects[1..]));
    }

    assert_eq!(label(bare), None);
    set.assert_records(&objects);
    // The same over an object that exists by now.
    let run = set.apply_with(&objects, &[]).expect(1);
    assert_bare_failed(&run, bare);
    set.assert_records(&objects);

    policy.end();
    eventually("the server obeys no policy", || {
        (set.apply_with(&objects, &[]).code == 0).then_some(())
    });
    set.assert_holds(&objects);
    set.apply(&objects[1..]);
    assert_eq!(cluster().live(bare), None);
}

#[test]
fn a_change_that_costs_a_member_its_label_prunes_nothing() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects = [config_map(&home, "bare", "1"), config_map(&home, "old", "1")];
    set.apply(&objects);
    let policy = Policy::removing(&home);

    let changed = [config_map(&home, "bare", "2"), service(&home, "web", 80)];
    let run = set.apply_with(&changed, &[]).expect(1);

    policy.end();
    assert_bare_failed(&run, &changed[0]);
    assert_eq!(run.results("skipped"), identities(&objects[1..]));
    assert!(cluster().live(&objects[1]).is_some());
    set.assert_records(&[changed[0].clone(), changed[1].clone()]);
}

#[test]
fn an_object_that_does_not_keep_the_label_is_not_adopted() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects = [config_map(&home, "bare", "1"), service(&home, "web", 80)];
    let objects = objects.map(|object| by_helm(object, &home, "web"));
    for object in &objects {
        cluster().apply_as("helm", object);
    }
    cluster().create(&release(&home, "web", 1, "deployed", &objects));
    let policy = Policy::removing(&home);

    let before = cluster().live(&objects[0]);
    for flags in [&["--dry-run=server"][..], &[]] {
        let run = set
            .invoke("adopt", &[&["--from", "helm/web"][..], flags].concat())
            .expect(1);
        assert_bare_failed(&run, &objects[0]);
        assert_eq!(run.results("adopted"), identities(&objects[1..]));
    }

    policy.end();
    // Its fields have not moved without the label.
    assert_eq!(cluster().live(&objects[0]), before);
    set.assert_records(&objects);
}

#[test]
fn a_move_that_costs_a_member_its_label_keeps_the_old_set() {
    let home = namespace("home");
    let [old, new] = ["old", "new"].map(|name| Set::secret(&home, name));
    let objects = [config_map(&home, "bare", "1"), service(&home, "web", 80)];
    old.apply(&objects);
    let policy = Policy::removing(&home);

    for flags in [&["--dry-run=server"][..], &[]] {
        let run = old
            .invoke("move", &[&[&*new.reference], flags].concat())
            .expect(1);
        assert_bare_failed(&run, &objects[0]);
        assert_eq!(run.results("adopted"), identities(&objects[1..]));
        assert_eq!(label(&objects[0]), Some(json!(old.id)));
    }

    policy.end();
    let parent = old.live_parent().expect("the old parent");
    assert_eq!(parent["metadata"]["labels"][ID], *old.id);
    old.assert_records(&objects);
    new.assert_records(&objects);
    eventually("the server obeys no policy", || {
        (old.invoke("move", &[&*new.reference]).code == 0).then_some(())
    });
    assert_eq!(old.live_parent(), None);
    new.assert_holds(&objects);
}

#[test]
fn an_object_that_would_lose_its_label_is_not_taken_from_its_set() {
    let home = namespace("home");
    let [old, new] = ["old", "new"].map(|name| Set::secret(&home, name));
    let objects = [config_map(&home, "bare", "1"), service(&home, "web", 80)];
    old.apply(&objects);
    let policy = Policy::removing(&home);

    let run = new.apply_with(&objects, &["--take-ownership"]).expect(1);

    policy.end();
    assert_bare_failed(&run, &objects[0]);
    assert_eq!(label(&objects[0]), Some(json!(old.id)));
    assert_eq!(label(&objects[1]), Some(json!(new.id)));
}

#[test]
fn an_object_that_keeps_its_label_is_not_released() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects = [config_map(&home, "bare", "1"), service(&home, "web", 80)];
    set.apply(&objects);
    let policy = Policy::new(&home, UNLABELING, RETURN, || {
        let probe = with(
            config_map(&home, "bare-probe", "1"),
            &json!({"metadata": {"labels": {PART_OF: "probe"}}}),
        );
        cluster().apply_as("probe", &probe);
        let patched = cluster().patch(&probe, &json!({"metadata": {"labels": {PART_OF: null}}}));
        cluster().delete(&probe);
        patched["metadata"]["labels"].get(PART_OF).is_some()
    });

    let run = set.invoke("disband", &["--yes"]).expect(1);

    policy.end();
    assert_eq!(run.results("failed"), identities(&objects[..1]));
    assert_eq!(run.results("released"), identities(&objects[1..]));
    assert!(
        run.stderr.contains("the server did not remove the label"),
        "{}",
        run.stderr
    );
    assert_eq!(label(&objects[0]), Some(json!(set.id)));
    assert_eq!(set.unrecorded(), Vec::<String>::new());
}

/// Asserts that the run warns of the ConfigMap `bare`, and says what to do.
fn assert_warned_of_bare(run: &Run, home: &str) {
    let command = format!("kubectl applyset verify secret/web -n {home}");
    let is_about_it = |warning: &String| warning.contains("configmap/bare") && warning.contains(&command);
    assert!(run.warnings().iter().any(is_about_it), "{}", run.stderr);
}

#[test]
fn a_kind_stays_recorded_until_no_object_of_it_lacks_its_label() {
    let [home, away] = [namespace("home"), namespace("away")];
    let set = Set::secret(&home, "web");
    let policy = Policy::removing(&away);
    let objects = [config_map(&away, "bare", "1"), service(&home, "web", 80)];
    set.apply_with(&objects, &[]).expect(1);
    policy.end();

    for _ in 0..2 {
        let run = set.apply(&objects[1..]);
        assert_warned_of_bare(&run, &home);
        set.assert_records(&objects);
    }
    cluster().delete(&objects[0]);
    // What others made or applied is not the set's. Neither is what another set holds or has released.
    cluster().create(&config_map(&away, "made", "1"));
    cluster().apply_as("kubectl", &config_map(&away, "applied", "1"));
    let [other, former] = ["other", "former"].map(|name| Set::secret(&away, name));
    other.apply(&[config_map(&away, "theirs", "1")]);
    former.apply(&[config_map(&away, "released", "1")]);
    former.invoke("disband", &["--yes"]).expect(0);
    let run = set.apply(&objects[1..]);
    assert_eq!(run.warnings(), Vec::<String>::new());
    set.assert_records(&objects[1..]);
}

#[test]
fn a_move_keeps_a_kind_recorded_if_an_object_of_it_lacks_its_label() {
    let home = namespace("home");
    let [old, new] = ["web", "new"].map(|name| Set::secret(&home, name));
    let policy = Policy::removing(&home);
    let objects = [
        config_map(&home, "bare", "1"),
        config_map(&home, "moved", "1"),
        service(&home, "web", 80),
    ];
    old.apply_with(&objects, &[]).expect(1);
    policy.end();
    let moved = Files::new().with("objects.yaml", &objects_file(&objects[1..2]));

    let directory = moved.directory().to_string_lossy().into_owned();
    let run = old.invoke("move", &["new", "-f", &directory]).expect(0);

    assert_warned_of_bare(&run, &home);
    old.assert_records(&objects);
    new.assert_holds(&objects[1..2]);
}

#[test]
fn a_set_does_not_end_while_an_object_of_it_lacks_its_label() {
    let home = namespace("home");
    let [set, new] = ["web", "new"].map(|name| Set::secret(&home, name));
    let policy = Policy::removing(&home);
    let objects = [config_map(&home, "bare", "1"), service(&home, "web", 80)];
    // Another field manager than that of later runs.
    set.apply_with(&objects[..1], &["--field-manager=pipeline"])
        .expect(1);
    policy.end();
    set.apply(&objects[1..]);

    for (command, arguments) in [("move", "new"), ("delete", "--yes")] {
        for flags in [&["--dry-run=server"][..], &[]] {
            let run = set.invoke(command, &[&[arguments], flags].concat()).expect(1);
            assert_warned_of_bare(&run, &home);
        }
        set.assert_records(&objects[..1]);
    }
    new.assert_holds(&objects[1..]);
    assert!(cluster().live(&objects[0]).is_some());
    let run = set.invoke("verify", &["-o", "json"]).expect(1);
    let document = run.document();
    assert_eq!(document["findings"][0]["rule"], "lost-member");

    cluster().delete(&objects[0]);
    set.delete(&[]).expect(0);
    assert_eq!(set.live_parent(), None);
}

#[test]
fn an_object_without_its_label_is_reported_for_every_set_that_may_have_held_it() {
    let [home, other_home, shared] = ["home", "other", "shared"].map(namespace);
    let [set, other] = [&home, &other_home].map(|namespace| Set::secret(namespace, "web"));
    other.apply(&[config_map(&shared, "theirs", "1")]);
    let policy = Policy::removing(&shared);
    set.apply_with(&[config_map(&shared, "bare", "1")], &[]).expect(1);
    policy.end();

    for set in [set, other] {
        let run = set.invoke("verify", &["-o", "json"]).expect(1);
        let findings = run.document()["findings"].clone();
        let is_lost =
            |finding: &Value| finding["rule"] == "lost-member" && finding["object"]["name"] == "bare";
        assert!(
            findings.as_array().expect("findings").iter().any(is_lost),
            "{findings}"
        );
    }
}

#[test]
fn a_record_that_the_server_removes_fails_the_run_before_the_first_member() {
    let home = namespace("home");
    let set = Set::config_map(&home, "bare");
    let objects = [service(&home, "web", 80), secret(&home, "more")];
    let policy = Policy::forgetting(&home);

    let run = set.apply_with(&objects[..1], &[]).expect(1);
    assert!(
        run.stderr
            .contains("the server removed or changed the annotation"),
        "{}",
        run.stderr
    );
    assert_eq!(cluster().live(&objects[0]), None);

    policy.end();
    repaired(&set, &objects[..1]);
    set.assert_holds(&objects[..1]);
    // The same with a record that becomes wider.
    let policy = Policy::forgetting(&home);
    set.apply_with(&objects, &[]).expect(1);
    assert_eq!(cluster().live(&objects[1]), None);
    policy.end();
    repaired(&set, &objects);
    set.assert_holds(&objects);
    // The same with a write of the parent that leaves the record as it is.
    let policy = Policy::forgetting(&home);
    let run = set
        .apply_with(&[service(&home, "web", 81), objects[1].clone()], &[])
        .expect(1);
    policy.end();
    assert!(
        run.stderr
            .contains("the server removed or changed the annotation"),
        "{}",
        run.stderr
    );
    repaired(&set, &objects);
    set.assert_holds(&objects);
}

/// Repairs the record of a set and applies it, once the server obeys no policy and all kinds can be listed.
fn repaired(set: &Set, objects: &[Value]) {
    eventually("the record is repaired", || {
        set.invoke("verify", &["--fix", "--yes"]);
        (set.apply_with(objects, &[]).code == 0).then_some(())
    });
}

#[test]
fn a_member_that_loses_its_label_with_an_owner_reference_fails() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects = [config_map(&home, "bare", "1"), config_map(&home, "owner", "1")];
    set.apply(&objects);
    let owner = cluster().live(&objects[1]).expect("the owner");
    let reference = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "owner",
        "uid": owner["metadata"]["uid"]});
    cluster().patch(
        &objects[0],
        &json!({"metadata": {"ownerReferences": [reference]}}),
    );
    let policy = Policy::removing(&home);

    let run = set.apply_with(&objects[..1], &["--allow-data-loss"]).expect(1);

    policy.end();
    assert!(
        run.stderr.contains("configmap/bare") && run.stderr.contains("the server removed the label"),
        "{}",
        run.stderr
    );
    assert!(cluster().live(&objects[1]).is_some());
    set.assert_records(&objects);
}

#[test]
fn an_owner_is_not_deleted_if_the_server_puts_the_owner_reference_back() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects = [config_map(&home, "bare", "1"), config_map(&home, "owner", "1")];
    set.apply(&objects);
    let owner = cluster().live(&objects[1]).expect("the owner");
    let reference = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "owner",
        "uid": owner["metadata"]["uid"]});
    let owned = json!({"metadata": {"ownerReferences": [reference]}});
    cluster().patch(&objects[0], &owned);
    let probe = config_map(&home, "bare-probe", "1");
    cluster().create(&with(probe.clone(), &owned));
    let policy = Policy::new(&home, DISOWNING, OWNERS_RETURN, || {
        let patched = json!({"metadata": {"ownerReferences": null}});
        cluster().patch(&probe, &patched);
        let live = cluster().live(&probe).expect("the probe");
        let is_obeyed = live["metadata"].get("ownerReferences").is_some();
        cluster().patch(&probe, &owned);
        is_obeyed
    });

    let run = set.apply_with(&objects[..1], &["--allow-data-loss"]).expect(1);

    policy.end();
    assert_eq!(run.results("failed"), identities(&objects[1..]), "{}", run.stderr);
    assert!(run.stderr.contains("the server put them back"), "{}", run.stderr);
    set.assert_holds(&objects);
}
