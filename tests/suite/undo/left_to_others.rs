//! Undoes of runs that left fields to others, who have changed them since.

use std::slice::from_ref;

use super::*;
use crate::support::named;

const IGNORE: &str = "ignore:\n- paths: [/spec/replicas]\n  target: {kind: Deployment}\n";

fn image(image: &str) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": "app", "image": image}]}}}})
}

/// The replicas and the image of a Deployment.
fn state(object: &Value) -> (Value, Value) {
    let live = cluster().live(object).expect("the object");
    let containers = &live["spec"]["template"]["spec"]["containers"];
    (live["spec"]["replicas"].clone(), containers[0]["image"].clone())
}

#[test]
fn an_ignored_field_does_not_prevent_an_undo_and_keeps_its_value() {
    let home = namespace("undo");
    let runs = Runs::of(Set::secret(&home, "web"));
    let [before, after] = ["app:1", "app:2"].map(|name| with(deployment(&home, "web", 2), &image(name)));
    runs.set.apply(from_ref(&before));
    fs::write(runs.file("ignore.yaml"), IGNORE).expect("a file");
    let flag = format!("--ignore={}", runs.file("ignore.yaml").display());
    runs.apply("undo", from_ref(&after), &[&flag]).expect(0);
    cluster().patch(&before, &json!({"spec": {"replicas": 7}}));
    let run = runs.undo("undo", &[]).expect(0);
    assert_eq!(state(&before), (json!(7), json!("app:1")), "{}", run.stdout);
    let again = runs.undo("undo", &[]).expect(0);
    assert_eq!(actions(&again)["Deployment/web"], "unchanged");
}

#[test]
fn replicas_that_were_handed_over_do_not_prevent_an_undo_and_keep_their_value() {
    let home = namespace("undo");
    let runs = Runs::of(Set::secret(&home, "web"));
    let before = with(deployment(&home, "web", 5), &image("app:1"));
    let mut after = with(before.clone(), &image("app:2"));
    after["spec"].as_object_mut().expect("a spec").remove("replicas");
    let autoscaler = with(
        named("autoscaling/v2", "HorizontalPodAutoscaler", Some(&home), "web"),
        &json!({"spec": {"maxReplicas": 10, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}}),
    );
    runs.set.apply(from_ref(&before));
    let run = runs
        .apply("first", &[after.clone(), autoscaler.clone()], &[])
        .expect(0);
    assert!(
        run.stdout.contains("spec.replicas"),
        "handed over: {}",
        run.stdout
    );
    // A later run finds it handed over already.
    let next = with(after.clone(), &image("app:3"));
    runs.apply("second", &[next, autoscaler.clone()], &[]).expect(0);
    cluster().scale(&before, 7);
    runs.undo("second", &[]).expect(0);
    assert_eq!(state(&before), (json!(7), json!("app:2")));

    runs.apply("third", from_ref(&before), &["--force-conflicts"])
        .expect(0);
    runs.undo("third", &[]).expect(0);
    let run = runs
        .apply("fourth", from_ref(&before), &["--force-conflicts"])
        .expect(0);
    assert_eq!(state(&before), (json!(5), json!("app:1")), "{}", run.stdout);
    runs.apply("fifth", &[after, autoscaler.clone()], &[]).expect(0);
    cluster().scale(&before, 9);
    runs.undo("fifth", &[]).expect(0);
    assert_eq!(state(&before), (json!(9), json!("app:1")));
    assert!(cluster().live(&autoscaler).is_none());
}

#[test]
fn a_reason_names_the_fields_that_others_have_changed() {
    let home = namespace("undo");
    let runs = Runs::of(Set::secret(&home, "web"));
    let [before, after] = ["1", "2"].map(|value| config_map(&home, "one", value));
    runs.set.apply(from_ref(&before));
    runs.apply("undo", from_ref(&after), &[]).expect(0);
    cluster().patch(
        &before,
        &json!({"data": {"key": "3"}, "metadata": {"labels": {"a.b/c": "d"}}}),
    );
    let (action, reason) = results(&runs.undo("undo", &[]).expect(1))["ConfigMap/one"].clone();
    assert_eq!(action, "skipped");
    assert!(
        reason.contains("tests changed data.key, metadata.labels[a.b/c]"),
        "{reason}"
    );
}

/// A rule file that leaves this field of ConfigMaps to others, as a flag.
fn ignored(runs: &Runs, path: &str) -> String {
    let file = runs.file("ignore.yaml");
    let rules = format!("ignore:\n- paths: [{path}]\n  target: {{kind: ConfigMap}}\n");
    fs::write(&file, rules).expect("a file");
    format!("--ignore={}", file.display())
}

#[test]
fn a_created_object_stays_if_others_have_written_into_a_field_that_was_left_to_them() {
    let home = namespace("undo");
    let runs = Runs::of(Set::secret(&home, "web"));
    let flag = ignored(&runs, "/data/key");
    let objects = ["written", "untouched"].map(|name| config_map(&home, name, "1"));
    runs.apply("undo", &objects, &[&flag]).expect(0);
    cluster().patch(&objects[0], &json!({"data": {"key": "theirs"}}));
    let results = results(&runs.undo("undo", &[]).expect(1));
    let (action, reason) = &results["ConfigMap/written"];
    assert_eq!(action, "skipped");
    assert!(reason.contains("tests wrote data.key"), "{reason}");
    let live = cluster().live(&objects[0]).expect("what others wrote");
    assert_eq!(live["data"]["key"], "theirs");
    assert_eq!(cluster().live(&objects[1]), None);
}

#[test]
fn an_undo_that_recreates_keeps_what_others_wrote_into_a_field_left_to_them() {
    let with_note = json!({"immutable": true, "metadata": {"annotations": {"note": "ours"}}});
    for (note, more) in [
        ("in the manifest", with_note),
        ("not in it", json!({"immutable": true})),
    ] {
        let home = namespace("undo");
        let runs = Runs::of(Set::secret(&home, "web"));
        let flag = ignored(&runs, "/metadata/annotations/note");
        let [before, after] = ["1", "2"].map(|value| with(config_map(&home, "one", value), &more));
        runs.set.apply(from_ref(&before));
        runs.apply("undo", from_ref(&after), &[&flag, "--recreate=ConfigMap"])
            .expect(0);
        cluster().patch(&before, &json!({"metadata": {"annotations": {"note": "theirs"}}}));
        let run = runs.undo("undo", &[]);
        let live = cluster().live(&before).expect("the object");
        assert_eq!(
            live["metadata"]["annotations"]["note"], "theirs",
            "{note}: {}",
            run.stdout
        );
    }
}
