//! `verify` for users who may not do everything: what they see is judged, what they do
//! not see is reported, and nothing is concluded from it.

use controlplane::{ControlPlane, Grant, User};
use serde_json::{Value, json};

use super::{Sound, WITHOUT_QUESTION, reported, rules, verify, verify_as};
use crate::support::{GROUP_KINDS, NAMESPACES, Program, Run, cluster};

fn rule(resources: &[&str], verbs: &[&str]) -> Value {
    json!({"apiGroups": [""], "resources": resources, "verbs": verbs})
}

/// A person who may read these in both namespaces of the set.
fn reader(sound: &Sound, resources: &[&str], more: &[Grant]) -> User {
    let read = |namespace: &str| Grant::in_namespace(namespace, [rule(resources, &["get", "list"])]);
    let mut grants = vec![read(&sound.home), read(&sound.away)];
    grants.extend_from_slice(more);
    ControlPlane::shared().user(&grants).expect("a user")
}

fn verified(user: &User, sound: &Sound, flags: &[&str]) -> Run {
    verify_as(&user.kubeconfig, &sound.set, flags)
}

fn writer(sound: &Sound) -> Grant {
    Grant::in_namespace(sound.home.as_str(), [rule(&["secrets"], &["patch"])])
}

const ALL: [&str; 3] = ["secrets", "configmaps", "services"];

#[test]
fn what_is_hidden_is_reported_and_is_not_a_fault() {
    let sound = Sound::new();
    let user = reader(&sound, &ALL, &[]);
    let run = verified(&user, &sound, &[]).expect(0);
    assert_eq!(rules(&run), ["incomplete-look"]);
    let finding = &run.document()["findings"][0];
    assert_eq!(finding["severity"], "info");
    let unread = run.document()["unread"].clone();
    let unread = unread.as_array().expect("names");
    for hidden in [
        "configmaps",
        "deployments.apps",
        "clusterroles.rbac.authorization.k8s.io",
    ] {
        assert!(unread.contains(&json!(hidden)), "{unread:?}");
    }
    assert_eq!(run.document()["sets"][0]["status"], "consistent");
}

#[test]
fn a_record_is_widened_but_not_narrowed_by_one_who_does_not_see_everything() {
    let sound = Sound::new();
    let user = reader(&sound, &ALL, &[writer(&sound)]);
    sound.spoil(&json!({"annotations": {GROUP_KINDS: "ConfigMap,Secret"}}));
    let run = verified(&user, &sound, &WITHOUT_QUESTION).expect(1);
    assert_eq!(
        reported(&run)[1..],
        [
            format!("record-too-narrow Secret {}/web*", sound.home),
            format!("record-too-wide Secret {}/web", sound.home),
            format!("unrecorded-member Service {}/two*", sound.away),
        ]
    );
    let kinds = sound.set.annotation(GROUP_KINDS);
    assert_eq!(kinds.as_deref(), Some("ConfigMap,Secret,Service"));
    verify(&sound.set, &WITHOUT_QUESTION).expect(0);
    sound.assert_sound();
}

#[test]
fn a_place_of_the_record_that_may_not_be_read_is_a_finding() {
    let sound = Sound::new();
    let user = reader(&sound, &["secrets", "configmaps"], &[writer(&sound)]);
    let before = sound.set.live_parent();
    let run = verified(&user, &sound, &WITHOUT_QUESTION).expect(1);
    assert_eq!(rules(&run), ["incomplete-look", "unread-place"]);
    let document = run.document();
    let findings = document["findings"].as_array().expect("findings");
    let unread = findings.iter().find(|finding| finding["rule"] == "unread-place");
    let message = unread.expect("a finding")["message"].as_str().expect("a text");
    let place = format!(
        "services in {}, {}",
        sound.away.as_str().min(&sound.home),
        sound.away.as_str().max(&sound.home)
    );
    assert!(
        message.contains(&place) && !message.contains("configmaps"),
        "{message}"
    );
    assert_eq!(sound.set.live_parent(), before);
}

#[test]
fn members_in_a_namespace_that_is_neither_recorded_nor_readable_are_not_missed() {
    let sound = Sound::new();
    sound.spoil(&json!({"annotations": {NAMESPACES: ""}}));
    let user = reader(&sound, &ALL, &[writer(&sound)]);
    let run = verified(&user, &sound, &WITHOUT_QUESTION).expect(1);
    // The Service is where this user does not know to look, so the record seems wide.
    assert_eq!(rules(&run), ["incomplete-look", "record-too-wide"]);
    assert_eq!(run.document()["summary"]["fixed"], 0);
    assert_eq!(
        sound.set.annotation(GROUP_KINDS).as_deref(),
        Some("ConfigMap,Service")
    );
    verify(&sound.set, &WITHOUT_QUESTION).expect(0);
    sound.assert_sound();
}

#[test]
fn who_may_not_write_the_parent_leaves_it_and_hears_so() {
    let sound = Sound::new();
    sound.spoil(&json!({"annotations": {GROUP_KINDS: "ConfigMap"}}));
    let user = reader(&sound, &ALL, &[]);
    let before = sound.set.live_parent();
    let run = verified(&user, &sound, &WITHOUT_QUESTION).expect(1);
    assert_eq!(sound.set.live_parent(), before);
    let warnings = run.warnings();
    assert!(
        warnings.iter().any(|warning| warning.contains("patch")),
        "{warnings:?}"
    );
    assert_eq!(run.document()["summary"]["fixed"], 0);
}

#[test]
fn who_may_read_nothing_gets_a_document_and_exit_code_4() {
    let sound = Sound::new();
    let without_rights = ControlPlane::shared().user(&[]).expect("a user");
    for arguments in [&["web"][..], &[], &["-A"]] {
        let run = Program::with_kubeconfig(&without_rights.kubeconfig)
            .args(["verify", "-n", &sound.home, "-o", "json"])
            .args(arguments)
            .run()
            .expect(4);
        let document = run.document();
        assert_eq!(document["error"]["exitCode"], 4, "{arguments:?}");
        assert_eq!(document["findings"], json!([]));
        assert_eq!(run.errors().len(), 1, "{}", run.stderr);
    }
    assert!(cluster().live(&sound.objects[0]).is_some());
}
