//! Labels that controllers and people copied: such objects are kept, reported, and stay
//! recorded.

use controlplane::ControlPlane;
use serde_json::{Value, json};

use crate::support::{PART_OF, Set, cluster, config_map, identities, named, namespace, service, with};

fn endpoint_slice(namespace: &str, name: &str) -> Value {
    with(
        named("discovery.k8s.io/v1", "EndpointSlice", Some(namespace), name),
        &json!({"addressType": "IPv4", "endpoints": []}),
    )
}

/// The object as a controller makes it of its owner: with an owner reference and a copy
/// of the part-of label.
fn owned(object: Value, owner: &Value, set: &Set) -> Value {
    let live = cluster().live(owner).expect("the owner");
    let reference = json!({
        "apiVersion": owner["apiVersion"], "kind": owner["kind"],
        "name": owner["metadata"]["name"], "uid": live["metadata"]["uid"],
    });
    with(
        object,
        &json!({"metadata": {"labels": {PART_OF: set.id}, "ownerReferences": [reference]}}),
    )
}

#[test]
fn an_object_that_belongs_to_another_is_skipped() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let web = service(&home, "web", 80);
    let slice = endpoint_slice(&home, "ours");
    set.apply(&[web.clone(), slice.clone()]);
    let copy = owned(endpoint_slice(&home, "copy"), &web, &set);
    cluster().create(&copy);

    let run = set.apply(std::slice::from_ref(&web));

    assert_eq!(run.results("pruned"), identities([&slice]));
    assert_eq!(run.results("skipped"), identities([&copy]));
    let live = cluster().live(&copy).expect("the copy");
    assert_eq!(live["metadata"].get("deletionTimestamp"), None);
    set.assert_holds(&[web, copy]);
}

#[test]
fn a_copy_that_was_applied_by_an_applier_and_is_owned_is_skipped_too() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let owner = config_map(&home, "owner", "1");
    set.apply(std::slice::from_ref(&owner));
    let copy = owned(config_map(&home, "copy", "1"), &owner, &set);
    cluster().apply_as("applyset", &copy);

    let run = set.apply(std::slice::from_ref(&owner));

    assert_eq!(run.results("skipped"), identities([&copy]));
    assert!(cluster().live(&copy).is_some());
    set.assert_holds(&[owner, copy]);
}

#[test]
fn an_object_that_the_parent_itself_owns_is_pruned() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let kept = config_map(&home, "kept", "1");
    set.apply(std::slice::from_ref(&kept));
    let mut dropped = owned(config_map(&home, "dropped", "1"), &set.parent, &set);
    dropped["metadata"]["labels"] = json!({});
    set.apply(&[kept.clone(), dropped.clone()]);
    set.assert_holds(&[kept.clone(), dropped.clone()]);

    let run = set.apply(std::slice::from_ref(&kept));

    assert_eq!(run.results("pruned"), identities([&dropped]));
    set.assert_holds(&[kept]);
}

#[test]
fn an_object_whose_label_no_applier_wrote_is_skipped() {
    let [a, b] = [namespace("a"), namespace("b")];
    let set = Set::secret(&a, "web");
    let kept = config_map(&a, "kept", "1");
    set.apply(&[kept.clone(), service(&b, "ours", 80)]);
    let theirs = service(&b, "theirs", 80);
    cluster().create(&theirs);
    let label = format!("{PART_OF}={}", set.id);
    let output = ControlPlane::shared()
        .run_kubectl(["label", "-n", &b, "service", "theirs", &label])
        .expect("kubectl runs");
    assert!(output.status.success(), "{output:?}");

    let run = set.apply(std::slice::from_ref(&kept));

    assert_eq!(run.results("pruned"), [format!("Service {b}/ours")]);
    assert_eq!(run.results("skipped"), identities([&theirs]));
    let document = run.document();
    let results = document["results"].as_array().expect("results");
    let skipped = results.iter().find(|result| result["action"] == "skipped");
    let reason = skipped.expect("a skipped object")["reason"].to_string();
    for text in ["kubectl-label", "delete the object", "remove the label"] {
        assert!(reason.contains(text), "{reason}");
    }
    set.assert_holds(&[kept.clone(), theirs.clone()]);

    // It is found again and skipped again, run after run.
    let run = set.apply(std::slice::from_ref(&kept));
    assert_eq!(run.results("skipped"), identities([&theirs]));
    set.assert_holds(&[kept, theirs]);
}

#[test]
fn an_object_that_another_applier_of_ours_made_is_pruned() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let kept = config_map(&home, "kept", "1");
    let dropped = config_map(&home, "dropped", "1");
    let both = [kept.clone(), dropped.clone()];
    set.apply_with(&both, &["--field-manager=pipeline"]).expect(0);

    let run = set
        .apply_with(std::slice::from_ref(&kept), &["--field-manager=pipeline"])
        .expect(0);

    assert_eq!(run.results("pruned"), identities([&dropped]));
    set.assert_holds(&[kept]);
}

#[test]
fn an_object_that_an_unknown_applier_labeled_is_kept_with_a_way_out() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let kept = config_map(&home, "kept", "1");
    set.apply(std::slice::from_ref(&kept));
    let label = json!({"metadata": {"labels": {PART_OF: set.id}}});
    let theirs = with(config_map(&home, "theirs", "1"), &label);
    cluster().apply_as("zzz", &theirs);

    let run = set.apply(std::slice::from_ref(&kept));

    assert_eq!(run.results("skipped"), identities([&theirs]));
    let reason = run.reason("theirs");
    assert!(reason.contains("--field-manager zzz"), "{reason}");
    let flag = ["--field-manager=zzz"];
    let run = set.apply_with(std::slice::from_ref(&kept), &flag).expect(0);
    assert_eq!(run.results("pruned"), identities([&theirs]));
    set.assert_holds(&[kept]);
}
