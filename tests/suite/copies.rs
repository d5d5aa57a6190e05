//! Copies of the part-of label as controllers make them, of other shapes than
//! `copied_labels` has: none makes a member, each keeps its place recorded.

use serde_json::json;

use crate::support::{
    PART_OF, Set, cluster, config_map, identities, named, namespace, secret, service, with,
};

#[test]
fn mirrors_of_a_service_are_skipped_in_every_namespace_and_by_every_maker() {
    let [a, b] = [namespace("a"), namespace("b")];
    let set = Set::secret(&a, "web");
    let kept = service(&a, "web", 80);
    set.apply(&[kept.clone(), config_map(&b, "dropped", "1")]);
    let label = json!({"metadata": {"labels": {PART_OF: set.id}}});
    let slice = named("discovery.k8s.io/v1", "EndpointSlice", Some(&b), "web-abc");
    let slice = with(slice, &json!({"addressType": "IPv4", "endpoints": []}));
    let copies = [with(slice, &label), with(secret(&b, "of-an-operator"), &label)];
    cluster().apply_as("operator", &copies[1]);
    cluster().create(&copies[0]);
    // The record knows of these kinds, as it does where the set has others of them.
    let wide = [
        kept.clone(),
        with(
            named("discovery.k8s.io/v1", "EndpointSlice", Some(&a), "own"),
            &json!({
                "addressType": "IPv4", "endpoints": [],
            }),
        ),
        secret(&a, "own"),
        config_map(&b, "dropped", "1"),
    ];
    set.apply(&wide);
    let versions = copies.each_ref().map(|copy| cluster().live(copy));

    let run = set.apply(std::slice::from_ref(&kept));

    assert_eq!(run.results("skipped"), identities(&copies));
    assert_eq!(run.results("pruned"), identities(&wide[1..]));
    assert!(run.reason("of-an-operator").contains("operator"));
    assert!(run.reason("web-abc").contains("tests"));
    assert_eq!(copies.each_ref().map(|copy| cluster().live(copy)), versions);
    set.assert_holds(&[kept, copies[0].clone(), copies[1].clone()]);
}

#[test]
fn a_copy_becomes_a_member_when_the_manifests_ask_for_it() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let kept = config_map(&home, "kept", "1");
    set.apply(std::slice::from_ref(&kept));
    let copy = config_map(&home, "copy", "1");
    cluster().create(&with(
        copy.clone(),
        &json!({"metadata": {"labels": {PART_OF: set.id}}}),
    ));
    let run = set.apply(std::slice::from_ref(&kept));
    assert_eq!(run.results("skipped"), identities([&copy]));

    set.apply(&[kept.clone(), copy.clone()]);

    let run = set.apply(std::slice::from_ref(&kept));
    assert_eq!(run.results("pruned"), identities([&copy]));
    set.assert_holds(&[kept]);
}

#[test]
fn a_copy_is_pruned_if_its_writer_is_the_field_manager() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let kept = config_map(&home, "kept", "1");
    set.apply_with(std::slice::from_ref(&kept), &["--field-manager=pipeline"])
        .expect(0);
    let label = json!({"metadata": {"labels": {PART_OF: set.id}}});
    let copy = with(config_map(&home, "copy", "1"), &label);
    cluster().apply_as("pipeline", &copy);
    let run = set
        .apply_with(std::slice::from_ref(&kept), &["--force-conflicts"])
        .expect(0);
    assert_eq!(run.results("skipped"), identities([&copy]));

    let flags = ["--field-manager=pipeline", "--force-conflicts"];
    let run = set.apply_with(std::slice::from_ref(&kept), &flags).expect(0);

    assert_eq!(run.results("pruned"), identities([&copy]));
    set.assert_holds(&[kept]);
}
