//! Objects with fields that the set leaves to others are not recreated if that would change the fields.

use std::slice::from_ref;

use super::*;

/// Writes a file of rules, and returns the flag.
fn ignoring(files: &Files) -> String {
    format!("--ignore={}", files.path("ignore.yaml").display())
}

fn autoscaler(namespace: &str, least: u32, most: u32) -> Value {
    with(
        named(
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            Some(namespace),
            "web",
        ),
        &json!({"spec": {
            "minReplicas": least,
            "maxReplicas": most,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        }}),
    )
}

#[test]
fn a_refusal_because_of_an_ignored_field_deletes_nothing() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let files = Files::new().with("ignore.yaml", "- paths: [/spec/minReplicas]\n");
    let flags = [
        &*ignoring(&files),
        "--recreate=HorizontalPodAutoscaler.autoscaling",
    ];
    let old = autoscaler(&home, 1, 10);
    set.apply_with(from_ref(&old), &flags).expect(0);
    cluster().patch(&old, &json!({"spec": {"minReplicas": 5}}));
    // What others have chosen, and the new manifest, are invalid together.
    let new = autoscaler(&home, 1, 3);
    let run = assert_stays(&set, from_ref(&new), &new, &flags);
    assert!(run.stderr.contains("/spec/minReplicas"), "{}", run.stderr);
}

#[test]
fn a_recreation_does_not_reset_an_ignored_field() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let rules =
        "- paths: [/spec/backoffLimit, /spec/suspend, /status, /metadata/annotations/example.com~1by]\n";
    let files = Files::new().with("ignore.yaml", rules);
    let flags = [&*ignoring(&files), "--recreate=Job"];
    let suspended = json!({"spec": {"suspend": true}});
    let [old, new] = ["one", "two"].map(|image| with(job(&home, "migrate", image), &suspended));
    set.apply_with(from_ref(&old), &flags).expect(0);
    // As long as the fields are as in the manifest, nothing is lost.
    let run = set.apply_with(from_ref(&new), &flags).expect(0);
    assert_eq!(run.results("recreated"), identities([&new]), "{}", run.stderr);
    cluster().patch(&new, &json!({"spec": {"suspend": false}}));
    assert_stays(&set, from_ref(&old), &old, &flags);
    cluster().patch(
        &new,
        &json!({"spec": {"suspend": true}, "metadata": {"annotations": {"example.com/by": "them"}}}),
    );
    let run = assert_stays(&set, from_ref(&old), &old, &flags);
    assert!(run.stderr.contains("example.com~1by"), "{}", run.stderr);
    set.apply_with(from_ref(&old), &["--recreate=Job"]).expect(0);
    assert_eq!(image(&old), "one");
}

#[test]
fn an_ignored_field_that_changes_right_before_the_delete_is_not_reset() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let files = Files::new().with("ignore.yaml", "- paths: [/spec/suspend, /status]\n");
    let flags = [&*ignoring(&files), "--recreate=Job"];
    let suspended = json!({"spec": {"suspend": true}});
    let [old, new] = ["one", "two"].map(|image| with(job(&home, "migrate", image), &suspended));
    set.apply_with(from_ref(&old), &flags).expect(0);
    let before = cluster().live(&old).expect("it");
    let theirs = old.clone();
    let proxy = Proxy::before_request(
        |sent| sent.method == "DELETE",
        move || {
            cluster().patch(&theirs, &json!({"spec": {"suspend": false}}));
        },
    );

    let run = set.apply_through(&proxy, from_ref(&new), &flags).expect(1);

    assert!(run.stderr.contains("/spec/suspend"), "{}", run.stderr);
    let live = cluster().live(&old).expect("it");
    assert_eq!(live["metadata"]["uid"], before["metadata"]["uid"]);
    assert_eq!(live["spec"]["suspend"], false);
}
