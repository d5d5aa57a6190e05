//! Faults of a parent: found, repaired where that is safe, and sound afterwards.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::{Sound, WITHOUT_QUESTION, reported, rules, verify};
use crate::support::{
    Fault, GROUP_KINDS, ID, IS_PARENT_TYPE, NAMESPACES, PART_OF, Program, Proxy, Run, Set, TOOLING, Verdict,
    cluster, config_map, custom_resource, definition, fresh, kubectl_apply, namespace, secret, with,
};

const GROUP_RESOURCES: &str = "applyset.kubernetes.io/contains-group-resources";

fn annotations(pairs: &[(&str, Option<&str>)]) -> Value {
    let pairs = pairs.iter().map(|(key, value)| ((*key).to_owned(), json!(value)));
    json!({"annotations": pairs.collect::<serde_json::Map<_, _>>()})
}

fn label(key: &str, value: Option<&str>) -> Value {
    json!({"labels": {key: value}})
}

#[test]
fn a_sound_set_is_reported_to_be_so_and_left_alone() {
    let sound = Sound::new();
    let before = cluster().state(&[&sound.home, &sound.away]);
    for flags in [&[][..], &["--fix"], &WITHOUT_QUESTION] {
        let run = verify(&sound.set, flags).expect(0);
        let document = run.document();
        assert_eq!(document["apiVersion"], "kubectl-applyset/v1");
        assert_eq!(document["findings"], json!([]));
        assert_eq!(document["sets"][0]["id"], *sound.set.id);
        assert_eq!(document["sets"][0]["members"], 2);
        assert_eq!(
            document["summary"],
            json!({"errors": 0, "warnings": 0, "infos": 0, "fixed": 0})
        );
    }
    assert_eq!(cluster().state(&[&sound.home, &sound.away]), before);
}

/// Spoils a sound set, and sees that this is found, repaired, and then sound.
fn assert_repaired(metadata: &Value, expected: &[&str]) {
    let sound = Sound::new();
    sound.spoil(metadata);
    let before = cluster().state(&[&sound.home, &sound.away]);

    let found = verify(&sound.set, &["--include-namespaces"]);
    assert_eq!(rules(&found), expected, "{metadata}: {found:?}");
    assert!(
        reported(&found).iter().all(|reported| reported.ends_with('+')),
        "{:?}",
        reported(&found)
    );
    assert_eq!(cluster().state(&[&sound.home, &sound.away]), before, "{metadata}");
    // What is worth knowing alone is not a reason to fail.
    let is_info = |finding: &Value| finding["severity"] == "info";
    let findings = found.document()["findings"].as_array().expect("findings").clone();
    assert_eq!(found.code, i32::from(!findings.iter().all(is_info)), "{metadata}");

    let repaired = verify(&sound.set, &WITHOUT_QUESTION).expect(0);
    assert_eq!(rules(&repaired), expected, "{metadata}");
    assert!(
        reported(&repaired).iter().all(|reported| reported.ends_with('*')),
        "{:?}",
        reported(&repaired)
    );
    assert_eq!(repaired.document()["summary"]["fixed"], findings.len());
    sound.assert_sound();
}

/// The id of a set is public, and so is the name under which its members are applied.
#[test]
fn a_label_alone_adds_no_namespace_to_a_record() {
    let sound = Sound::new();
    let victim = namespace("victim");
    let planted = with(
        config_map(&victim, "planted", "1"),
        &json!({"metadata": {"labels": {PART_OF: sound.set.id}}}),
    );
    cluster().apply_as("applyset", &planted);
    let before = [GROUP_KINDS, NAMESPACES].map(|key| sound.set.annotation(key));

    let run = verify(&sound.set, &["--fix", "--yes"]).expect(1);

    assert_eq!(rules(&run), ["record-too-narrow", "unrecorded-member"]);
    assert!(
        reported(&run)
            .iter()
            .all(|reported| !reported.ends_with(['+', '*'])),
        "{:?}",
        reported(&run)
    );
    assert!(
        run.stdout.contains("its label was written by applyset"),
        "{}",
        run.stdout
    );
    assert_eq!(
        [GROUP_KINDS, NAMESPACES].map(|key| sound.set.annotation(key)),
        before
    );
    verify(&sound.set, &WITHOUT_QUESTION).expect(0);
    let namespaces = sound.set.annotation(NAMESPACES).expect("a record");
    assert!(namespaces.split(',').any(|name| name == victim), "{namespaces}");
}

#[test]
fn the_recorded_namespaces_survive_the_loss_of_the_kinds() {
    let sound = Sound::new();
    sound.spoil(&annotations(&[(GROUP_KINDS, None)]));
    verify(&sound.set, &["--fix", "--yes"]).expect(0);
    sound.assert_sound();
}

#[test]
fn a_spoilt_id_is_repaired() {
    assert_repaired(&label(ID, Some("spoilt")), &["wrong-id"]);
    assert_repaired(&label(ID, None), &["missing-id"]);
}

#[test]
fn a_spoilt_tooling_is_repaired_if_field_ownership_shows_whose_the_set_is() {
    assert_repaired(&annotations(&[(TOOLING, None)]), &["invalid-tooling"]);
    assert_repaired(&annotations(&[(TOOLING, Some(""))]), &["invalid-tooling"]);
}

#[test]
fn malformed_values_are_repaired() {
    for kinds in [
        "ConfigMap, Service",
        "ConfigMap,Service,",
        "configmaps,services",
        "ConfigMap.v1,Service",
        "ConfigMap,Service,a/b",
    ] {
        assert_repaired(&annotations(&[(GROUP_KINDS, Some(kinds))]), &["malformed-value"]);
    }
}

#[test]
fn an_apply_refuses_what_would_lose_members_silently() {
    for kinds in ["ConfigMap.v1,Service", "configmaps,Service"] {
        let sound = Sound::new();
        sound.spoil(&annotations(&[(GROUP_KINDS, Some(kinds))]));
        sound.set.apply_with(&sound.objects[1..], &[]).expect(3);
        assert_eq!(sound.set.members().len(), 2, "{kinds}");
    }
}

#[test]
fn deprecated_values_are_migrated() {
    let resources = (GROUP_RESOURCES, Some("configmaps,services"));
    assert_repaired(
        &annotations(&[(GROUP_KINDS, None), resources]),
        &["deprecated-kinds"],
    );
    assert_repaired(&annotations(&[resources]), &["deprecated-kinds"]);
}

#[test]
fn a_record_without_kinds_is_made_again() {
    assert_repaired(&annotations(&[(GROUP_KINDS, None)]), &["missing-kinds"]);
}

#[test]
fn a_kind_that_is_not_served_is_dropped() {
    let kinds = "ConfigMap,Gone.example.com,Service";
    assert_repaired(&annotations(&[(GROUP_KINDS, Some(kinds))]), &["unserved-kind"]);
}

#[test]
fn a_record_that_is_too_narrow_is_widened() {
    let expected = ["record-too-narrow", "unrecorded-member"];
    assert_repaired(&annotations(&[(GROUP_KINDS, Some("ConfigMap"))]), &expected);
    assert_repaired(&annotations(&[(NAMESPACES, Some(""))]), &expected);
    assert_repaired(&annotations(&[(NAMESPACES, None)]), &expected);
}

#[test]
fn a_record_that_is_too_wide_is_narrowed() {
    let kinds = "ConfigMap,Secret,Service";
    assert_repaired(&annotations(&[(GROUP_KINDS, Some(kinds))]), &["record-too-wide"]);
}

#[test]
fn a_parent_in_its_own_set_is_taken_out() {
    let sound = Sound::new();
    sound.spoil(&label(PART_OF, Some(&sound.set.id)));
    assert_eq!(rules(&verify(&sound.set, &[]).expect(1)), ["parent-in-own-set"]);
    verify(&sound.set, &WITHOUT_QUESTION).expect(0);
    sound.assert_sound();
}

#[test]
fn a_cluster_scoped_parent_that_lost_its_namespaces_gets_them_back() {
    let home = namespace("home");
    let group = format!("{}.example.com", fresh("g"));
    cluster().define(&definition(&group, "Cluster"));
    cluster().create(&custom_resource(&group, None, "web"));
    let set = Set::custom(&group, None, &home);
    let objects = [config_map(&home, "one", "1")];
    assert_eq!(rules(&verify(&set, &[]).expect(0)), ["no-bookkeeping"]);
    set.apply(&objects);
    cluster().patch(
        &set.parent,
        &json!({"metadata": annotations(&[(NAMESPACES, Some(""))])}),
    );
    let found = verify(&set, &[]).expect(1);
    assert_eq!(
        rules(&found),
        ["missing-namespaces", "record-too-narrow", "unrecorded-member"]
    );
    verify(&set, &WITHOUT_QUESTION).expect(0);
    set.assert_holds(&objects);
    assert_eq!(set.apply(&objects).results("unchanged").len(), 1);
}

#[test]
fn what_only_people_can_decide_is_found_and_left_alone() {
    let large = "x".repeat(220_000);
    let bare = [(GROUP_KINDS, None), (NAMESPACES, None)];
    let table: [(Value, &[&str]); 9] = [
        (label(ID, Some("v2.x")), &["later-format"]),
        (annotations(&[(TOOLING, Some("v2:x"))]), &["later-format"]),
        (annotations(&[(GROUP_KINDS, Some("v2:x"))]), &["later-format"]),
        (annotations(&[(NAMESPACES, Some("v2:x"))]), &["later-format"]),
        (annotations(&[("note", Some(&large))]), &["large-annotations"]),
        (
            annotations(&[
                (TOOLING, Some("kro/v0.9.0")),
                (GROUP_KINDS, Some("ConfigMap,Service,a/b")),
            ]),
            &["malformed-value"],
        ),
        (
            json!({"labels": {ID: null}, "annotations": annotations(&bare)["annotations"]}),
            &["unfinished-parent"],
        ),
        (
            json!({
                "labels": {ID: null},
                "annotations": {GROUP_KINDS: null, NAMESPACES: null, TOOLING: null},
            }),
            &["no-bookkeeping"],
        ),
        (
            json!({"finalizers": ["example.com/kept"], "annotations": {GROUP_KINDS: "ConfigMap"}}),
            &["record-too-narrow", "terminating-parent", "unrecorded-member"],
        ),
    ];
    for (metadata, expected) in table {
        let sound = Sound::new();
        sound.spoil(&metadata);
        let is_going = metadata.get("finalizers").is_some();
        if is_going {
            cluster().delete(&sound.set.parent);
        }
        let before = sound.set.live_parent();
        let run = verify(&sound.set, &WITHOUT_QUESTION).expect(1);
        assert_eq!(rules(&run), expected, "{metadata}");
        assert!(
            !run.stdout.contains("\"fixable\": true"),
            "{metadata}: {}",
            run.stdout
        );
        assert_eq!(sound.set.live_parent(), before, "{metadata}");
        if is_going {
            sound.spoil(&json!({"finalizers": null}));
        }
    }
}

#[test]
fn a_set_that_was_kept_for_kubectl_does_not_become_ours() {
    for is_made_by_kubectl in [false, true] {
        let home = namespace("home");
        let set = Set::secret(&home, "web");
        let objects = [config_map(&home, "one", "1")];
        if is_made_by_kubectl {
            let applyset = format!("--applyset={}", set.reference);
            kubectl_apply(&objects, &["--prune", &applyset, "-n", &home]).expect(0);
        }
        let tooling = set.annotation(TOOLING).unwrap_or("kubectl/v1.36.3".to_owned());
        set.apply_with(&objects, &["--tooling", &tooling]).expect(0);
        cluster().patch(&set.parent, &json!({"metadata": annotations(&[(TOOLING, None)])}));
        let before = set.live_parent();
        let run = verify(&set, &WITHOUT_QUESTION).expect(1);
        assert_eq!(
            reported(&run),
            [format!("invalid-tooling Secret {home}/web")],
            "{is_made_by_kubectl}"
        );
        assert_eq!(set.live_parent(), before);
    }
}

#[test]
fn a_copy_of_a_parent_is_not_a_parent() {
    let sound = Sound::new();
    let live = sound.set.live_parent().expect("a parent");
    let metadata = json!({"metadata": {
        "labels": live["metadata"]["labels"], "annotations": live["metadata"]["annotations"],
    }});
    let copy = Set::secret(&sound.home, "copy");
    cluster().create(&with(copy.parent.clone(), &metadata));
    let run = verify(&copy, &WITHOUT_QUESTION).expect(1);
    assert!(rules(&run).contains(&"wrong-id".to_owned()), "{:?}", rules(&run));
    assert_eq!(run.document()["summary"]["fixed"], 0);
    assert_eq!(
        copy.live_parent().expect("it")["metadata"]["labels"][ID],
        *sound.set.id
    );
    sound.assert_sound();
}

#[test]
fn a_parent_of_a_kind_that_lost_its_label_is_reported_and_not_written() {
    let home = namespace("home");
    let group = format!("{}.example.com", fresh("g"));
    let definition = definition(&group, "Namespaced");
    cluster().define(&definition);
    cluster().create(&custom_resource(&group, Some(&home), "web"));
    let set = Set::custom(&group, Some(&home), &home);
    set.apply(&[config_map(&home, "one", "1")]);
    cluster().patch(
        &set.parent,
        &json!({"metadata": annotations(&[(GROUP_KINDS, Some("Secret"))])}),
    );
    let labels = json!({"metadata": {"labels": {IS_PARENT_TYPE: null}}});
    cluster().patch(&definition, &labels);
    let before = set.live_parent();
    let run = verify(&set, &WITHOUT_QUESTION).expect(1);
    assert!(
        rules(&run).contains(&"parent-kind".to_owned()),
        "{:?}",
        rules(&run)
    );
    assert_eq!(set.live_parent(), before);

    cluster().patch(
        &definition,
        &json!({"metadata": {"labels": {IS_PARENT_TYPE: "true"}}}),
    );
    verify(&set, &WITHOUT_QUESTION).expect(0);
    set.assert_holds(&[config_map(&home, "one", "1")]);
}

#[test]
fn nothing_is_written_without_a_yes() {
    let sound = Sound::new();
    sound.spoil(&annotations(&[(GROUP_KINDS, Some("ConfigMap"))]));
    let before = sound.set.live_parent();
    let run = verify(&sound.set, &["--fix"]).expect(3);
    assert_eq!(sound.set.live_parent(), before);
    let document = run.document();
    assert_eq!(document["error"]["exitCode"], 3);
    assert!(run.stderr.contains("--yes"), "{}", run.stderr);
    // What would be written is shown.
    assert!(run.errors()[0].contains("add Service to"), "{}", run.stderr);
    assert!(
        reported(&run).iter().all(|reported| reported.ends_with('+')),
        "{:?}",
        reported(&run)
    );
    let run = Program::new()
        .args(["verify", "web", "-n", &sound.home, "--yes"])
        .run();
    run.expect(2);
}

#[test]
fn a_signal_stops_between_two_repairs_and_is_reported() {
    let sound = Sound::new();
    let other = Set::secret(&sound.home, "other");
    other.apply(&[config_map(&sound.home, "theirs", "1")]);
    let narrow = annotations(&[(GROUP_KINDS, Some("Secret"))]);
    for set in [&sound.set, &other] {
        cluster().patch(&set.parent, &json!({"metadata": narrow}));
    }
    let (proxy, is_reached, release) = Proxy::held_at(0);
    let mut running = Program::with_kubeconfig(&proxy.kubeconfig())
        .args(["verify", "-n", &sound.home, "--fix", "--yes", "-o", "json"])
        .start();
    is_reached.recv().expect("a write");
    running.interrupt();
    running.wait_for_message("stopping");
    release.send(()).expect("the write is held");
    let run = running.finish().expect(130);
    assert_eq!(run.document()["error"]["exitCode"], 130);
    let is_repaired = |set: &Set| set.annotation(GROUP_KINDS).as_deref() != Some("Secret");
    let sent = proxy.sent();
    assert_eq!(
        sent.iter().filter(|sent| sent.is_write()).count(),
        1,
        "{}",
        run.stderr
    );
    let repaired = [&sound.set, &other].into_iter().filter(|set| is_repaired(set));
    assert!(repaired.count() < 2, "{}", run.stderr);
    verify(&sound.set, &WITHOUT_QUESTION).expect(0);
    verify(&other, &WITHOUT_QUESTION).expect(0);
}

#[test]
fn an_error_after_a_repair_hides_neither_what_was_found_nor_what_failed() {
    let sound = Sound::new();
    sound.spoil(&annotations(&[(GROUP_KINDS, Some("ConfigMap"))]));
    let has_written = AtomicBool::new(false);
    let proxy = Proxy::breaking(Fault::InternalError, move |sent| {
        has_written.fetch_or(sent.is_write(), Ordering::SeqCst) || sent.is_write()
    });
    let run = super::verify_as(&proxy.kubeconfig(), &sound.set, &WITHOUT_QUESTION).expect(4);
    assert!(!reported_of_the_set(&run).is_empty(), "{}", run.stderr);
    let parent = sound.set.parent["metadata"]["name"].as_str().expect("a name");
    assert!(
        run.warnings().iter().any(|warning| warning.contains(parent)),
        "{}",
        run.stderr
    );
    assert_eq!(run.document()["error"]["exitCode"], 4);
}

/// A proxy that has the parent changed just before each of the first writes.
fn meddling(parent: &Value, times: usize, metadata: Value) -> Proxy {
    let parent = parent.clone();
    Proxy::gated(move |carried_out| {
        if carried_out < times {
            let mut patch = json!({"metadata": metadata});
            patch["metadata"]["annotations"]["note"] = json!(carried_out.to_string());
            std::thread::scope(|scope| {
                scope.spawn(|| cluster().patch(&parent, &patch));
            });
        }
        Verdict::Forward
    })
}

/// What is reported a set through a proxy. Other tests may hide a part of the cluster from one
/// look, which does not matter for what is to be widened.
fn reported_of_the_set(run: &Run) -> Vec<String> {
    let mut reported = reported(run);
    reported.retain(|reported| !reported.starts_with("incomplete-look"));
    reported
}

#[test]
fn a_parent_that_changed_since_it_was_looked_at_is_left_to_the_next_run() {
    let sound = Sound::new();
    sound.spoil(&annotations(&[(GROUP_KINDS, Some("ConfigMap"))]));
    let proxy = meddling(&sound.set.parent, 1, json!({}));
    super::verify_as(&proxy.kubeconfig(), &sound.set, &WITHOUT_QUESTION).expect(1);
    let run = super::verify_as(&proxy.kubeconfig(), &sound.set, &WITHOUT_QUESTION).expect(0);
    let reported = reported_of_the_set(&run);
    assert!(
        !reported.is_empty() && reported.iter().all(|reported| reported.ends_with('*')),
        "{reported:?}"
    );
    sound.assert_sound();
}

#[test]
fn a_parent_that_others_keep_changing_is_not_written() {
    let sound = Sound::new();
    sound.spoil(&annotations(&[(GROUP_KINDS, Some("ConfigMap"))]));
    let proxy = meddling(&sound.set.parent, usize::MAX, json!({}));
    let run = super::verify_as(&proxy.kubeconfig(), &sound.set, &WITHOUT_QUESTION).expect(1);
    assert_eq!(sound.set.annotation(GROUP_KINDS).as_deref(), Some("ConfigMap"));
    let warnings = run.warnings();
    assert!(
        warnings
            .iter()
            .any(|warning| warning.contains("run the same command again")),
        "{warnings:?}"
    );
    let reported = reported_of_the_set(&run);
    assert!(
        reported.iter().all(|reported| reported.ends_with('+')),
        "{reported:?}"
    );
    verify(&sound.set, &WITHOUT_QUESTION).expect(0);
    sound.assert_sound();
}

#[test]
fn what_another_client_has_repaired_is_not_reported_as_repaired() {
    let sound = Sound::new();
    sound.spoil(&annotations(&[(GROUP_KINDS, Some("ConfigMap"))]));
    let repaired = annotations(&[(GROUP_KINDS, Some("ConfigMap,Service"))]);
    let proxy = meddling(&sound.set.parent, 1, repaired);
    let run = super::verify_as(&proxy.kubeconfig(), &sound.set, &WITHOUT_QUESTION).expect(0);
    assert_eq!(run.document()["summary"]["fixed"], 0);
    assert_eq!(reported_of_the_set(&run), [""; 0]);
    sound.assert_sound();
}

#[test]
fn other_fields_of_the_parent_stay() {
    let sound = Sound::new();
    sound.spoil(&json!({
        "labels": {"app": "web"},
        "annotations": {"note": "kept", GROUP_KINDS: "Service", GROUP_RESOURCES: "services"},
    }));
    cluster().patch(&sound.set.parent, &json!({"data": {"key": "dmFsdWU="}}));
    verify(&sound.set, &WITHOUT_QUESTION).expect(0);
    let live = sound.set.live_parent().expect("a parent");
    assert_eq!(live["metadata"]["labels"]["app"], "web");
    assert_eq!(live["metadata"]["annotations"]["note"], "kept");
    assert_eq!(live["metadata"]["annotations"].get(GROUP_RESOURCES), None);
    assert_eq!(live["data"], secret(&sound.home, "x")["data"]);
    sound.assert_sound();
}
