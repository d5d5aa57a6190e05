//! Objects that existed in no set and become members: every run says so.

use serde_json::{Value, json};

use crate::support::{
    Files, PART_OF, Program, Run, Set, cluster, config_map, identities, namespace, namespace_object,
    objects_file, with,
};

const REASON: &str = "existed before; will be pruned when it leaves the manifests";

/// Names and reasons of the results that are marked as taken in.
fn taken_in(run: &Run) -> Vec<(String, String)> {
    let document = run.document();
    let results = document["results"].as_array().expect("results").iter();
    let text = |result: &Value, field: &str| result[field].as_str().expect("a text").to_owned();
    let marked = results.filter(|result| result["takenIn"] == json!(true));
    marked
        .map(|result| (text(result, "name"), text(result, "reason")))
        .collect()
}

fn pair(name: &str) -> (String, String) {
    (name.to_owned(), REASON.to_owned())
}

/// Runs `command` with lines for people.
fn lines(command: &str, set: &Set, objects: &[Value], flags: &[&str]) -> Run {
    let files = Files::new().with("objects.yaml", &objects_file(objects));
    set.invocation(Program::new(), command, &["-f"])
        .args([files.directory()])
        .args(flags)
        .run()
}

/// The notes on standard error about objects that existed before.
fn notes(run: &Run) -> Vec<&str> {
    let lines = run.stderr.lines();
    lines.filter(|line| line.contains("existed before")).collect()
}

fn diff(set: &Set, objects: &[Value], flags: &[&str]) -> Run {
    lines("diff", set, objects, &[flags, &["-o", "json"]].concat())
}

fn part_of(object: &Value) -> Value {
    cluster().live(object).expect("an object")["metadata"]["labels"][PART_OF].clone()
}

#[test]
fn every_run_says_which_objects_existed_in_no_set() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let unowned = config_map(&home, "unowned", "1");
    cluster().create(&unowned);
    let objects = [unowned.clone(), config_map(&home, "new", "1")];

    for flag in ["--dry-run=client", "--dry-run=server"] {
        let run = set.apply_with(&objects, &[flag]).expect(0);
        assert_eq!(taken_in(&run), [pair("unowned")], "{flag}");
        assert_eq!(part_of(&unowned), Value::Null);
    }
    let run = diff(&set, &objects, &[]).expect(1);
    assert_eq!(taken_in(&run), [pair("unowned")]);
    let run = lines("diff", &set, &objects, &[]).expect(1);
    let mark = format!("configmap/unowned in namespace {home} {REASON}");
    assert_eq!(notes(&run), [format!("note: {mark}")]);
    let header = format!("# {mark}\ndiff -u -N LIVE/v1.ConfigMap.{home}.unowned ");
    assert!(run.stdout.contains(&header), "{}", run.stdout);
    assert_eq!(run.stdout.matches("# ").count(), 1, "{}", run.stdout);

    let run = lines("apply", &set, &objects, &[]).expect(0);
    assert_eq!(notes(&run), [format!("note: {mark}")]);
    set.assert_holds(&objects);
    // It is a member now, and nothing more is said of it.
    let next = [config_map(&home, "unowned", "2")];
    let run = set.apply_with(&next, &["--force-conflicts"]).expect(0);
    assert_eq!(taken_in(&run), []);
    assert_eq!(notes(&run), [""; 0]);
}

#[test]
fn an_object_that_stays_as_it_is_but_for_its_label_is_reported() {
    let home = namespace("home");
    let [former, set] = ["former", "web"].map(|name| Set::secret(&home, name));
    let object = config_map(&home, "one", "1");
    former.apply(std::slice::from_ref(&object));
    former.invoke("disband", &["--yes"]).expect(0);

    let run = set.apply(std::slice::from_ref(&object));

    assert_eq!(run.results("configured"), identities([&object]));
    assert_eq!(taken_in(&run), [pair("one")]);
}

#[test]
fn many_objects_are_reported_on_one_line() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects: Vec<Value> = (0..30)
        .map(|number| config_map(&home, &format!("map-{number}"), "1"))
        .collect();
    for object in &objects {
        cluster().create(object);
    }
    for command in ["diff", "apply"] {
        let run = lines(command, &set, &objects, &["--force-conflicts"]);
        let notes = notes(&run);
        assert_eq!(notes.len(), 1, "{}", run.stderr);
        assert!(
            notes[0].starts_with(&format!("note: each of these 30 objects {REASON}: configmap/")),
            "{}",
            notes[0]
        );
        assert!(notes[0].ends_with(" and 20 more"), "{}", notes[0]);
    }
}

#[test]
fn what_a_later_run_keeps_is_not_said_to_be_pruned() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let marked = with(
        config_map(&home, "marked", "1"),
        &json!({"metadata": {"annotations": {"helm.sh/resource-policy": "keep"}}}),
    );
    cluster().create(&config_map(&home, "marked", "1"));
    let objects = [namespace_object(&home), marked];
    let kept = "existed before; kept when it leaves the manifests: ";
    let expected = [
        (home.clone(), format!("{kept}it holds the set's parent")),
        (
            "marked".to_owned(),
            format!("{kept}kept by its mark helm.sh/resource-policy: keep"),
        ),
    ];
    let sorted = |run: &Run| {
        let mut found = taken_in(run);
        found.sort_by_key(|(name, _)| name == "marked");
        found
    };
    assert_eq!(sorted(&diff(&set, &objects, &[]).expect(1)), expected);
    assert_eq!(sorted(&set.apply(&objects)), expected);
}
