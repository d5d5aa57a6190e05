//! Objects that existed in no set and become members: every run says so, and one with
//! `--only-new-or-owned` refuses them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::support::{
    Fault, Files, PART_OF, Program, Proxy, Run, Set, cluster, config_map, fresh, identities, namespace,
    namespace_object, objects_file, secret, service, with,
};

const REASON: &str = "existed before and becomes a member: removing its manifest will delete it";
const ONLY_NEW: &str = "--only-new-or-owned";

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
    let kept = "existed before; removing its manifest will keep it: ";
    let expected = [
        (home.clone(), format!("{kept}it contains the set's parent")),
        (
            "marked".to_owned(),
            format!("{kept}kept by helm.sh/resource-policy: keep"),
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

#[test]
fn only_new_or_owned_refuses_what_is_in_no_set_and_writes_nothing() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let owned = config_map(&home, "owned", "1");
    set.apply(std::slice::from_ref(&owned));
    let unowned = [config_map(&home, "unowned", "1"), service(&home, "web", 80)];
    for object in &unowned {
        cluster().create(object);
    }
    let new = config_map(&home, "new", "1");
    let objects = [owned.clone(), unowned[0].clone(), new.clone(), unowned[1].clone()];
    let before = cluster().state(&[&home]);
    for flag in ["--dry-run=none", "--dry-run=client", "--dry-run=server"] {
        let run = set.apply_with(&objects, &[ONLY_NEW, flag]).expect(3);
        assert_eq!(
            run.errors(),
            ["error: 2 objects exist and are not in a set"],
            "{}",
            run.stderr
        );
        for name in ["configmap/unowned", "service/web"] {
            let text = format!(": {name} in namespace {home}");
            assert!(
                run.stderr.lines().any(|line| line.ends_with(&text)),
                "{}",
                run.stderr
            );
        }
        assert!(
            run.stderr
                .contains("hint: adopt it with `kubectl applyset adopt SET"),
            "{}",
            run.stderr
        );
        assert_eq!(cluster().state(&[&home]), before, "{flag}");
    }
    let run = diff(&set, &objects, &[ONLY_NEW]).expect(1);
    assert_eq!(run.results("failed"), identities(&unowned));
    assert_eq!(run.document()["refusals"].as_array().map(Vec::len), Some(2));
    assert_eq!(taken_in(&run), []);
    let files = Files::new();
    let plan = files.path("plan.json");
    lines(
        "diff",
        &set,
        &objects,
        &[ONLY_NEW, "--out", plan.to_str().expect("UTF-8")],
    )
    .expect(3);
    assert!(!plan.exists());
    assert_eq!(cluster().state(&[&home]), before);

    // New objects and members pass, and so does what is adopted first.
    set.apply_with(&[owned.clone(), new], &[ONLY_NEW]).expect(0);
    let files = Files::new().with("objects.yaml", &objects_file(&unowned));
    let adoption = set.invocation(Program::new(), "adopt", &["-f"]);
    adoption.args([files.directory()]).run().expect(0);
    let run = set
        .apply_with(&objects, &[ONLY_NEW, "--force-conflicts"])
        .expect(0);
    assert_eq!(taken_in(&run), []);
    set.assert_holds(&objects);
}

#[test]
fn only_new_or_owned_makes_a_new_set_with_its_namespace_and_refuses_one_that_is_there() {
    let home = fresh("home");
    let set = Set::secret(&home, "web");
    let objects = [namespace_object(&home), config_map(&home, "one", "1")];
    set.apply_with(&objects, &[ONLY_NEW]).expect(0);
    set.assert_holds(&objects);
    let there = namespace("there");
    let other = Set::secret(&there, "web");
    let run = other
        .apply_with(&[namespace_object(&there)], &[ONLY_NEW])
        .expect(3);
    assert!(
        run.errors()[0].contains(&format!("namespace/{there} exists")),
        "{}",
        run.stderr
    );
    assert_eq!(other.live_parent(), None);
}

#[test]
fn only_new_or_owned_costs_one_read_for_each_object_and_else_nothing() {
    let home = namespace("home");
    let objects = |prefix: &str| -> Vec<Value> {
        let map = |number: usize| config_map(&home, &format!("{prefix}-{number}"), "1");
        (0..50)
            .map(map)
            .chain([secret(&home, &format!("{prefix}-login"))])
            .collect()
    };
    let requests = |name: &str, flags: &[&str]| {
        let proxy = Proxy::transparent();
        let set = Set::secret(&home, name);
        set.apply_through(&proxy, &objects(name), flags).expect(0);
        set.assert_holds(&objects(name));
        proxy.sent()
    };
    let plain = requests("plain", &[]);
    let careful = requests("careful", &[ONLY_NEW]);
    // The 50 ConfigMaps and the Secret.
    assert_eq!(careful.len(), plain.len() + 51);
}

/// Applies `object` with the flag, and has something done right before it is written.
fn race(set: &Set, object: &Value, flags: &[&str], act: impl Fn() + Send + Sync + 'static) -> Run {
    // The first write is the parent.
    let proxy = Proxy::before_write(1, act);
    let flags = [flags, &[ONLY_NEW]].concat();
    set.apply_through(&proxy, std::slice::from_ref(object), &flags)
}

#[test]
fn what_is_created_between_the_look_and_the_write_is_not_taken_in() {
    // A manager of other fields, the same fields, and one that the run would take fields from.
    for manager in ["rival", "applyset", "kubectl-client-side-apply"] {
        for flags in [&[][..], &["--force-conflicts"]] {
            let home = namespace("home");
            let set = Set::secret(&home, "web");
            let object = config_map(&home, "one", "ours");
            let theirs = config_map(&home, "one", "theirs");
            let created = theirs.clone();
            let state = Arc::new(Mutex::new(None));
            let after = Arc::clone(&state);
            let run = race(&set, &object, flags, move || {
                cluster().apply_as(manager, &created);
                *after.lock().expect("no panic") = cluster().live(&created);
            })
            .expect(1);
            assert_eq!(run.results("failed"), identities([&object]), "{manager}");
            assert!(
                run.errors()[0].contains("it was created outside the set during the run"),
                "{}",
                run.stderr
            );
            assert_eq!(
                cluster().live(&theirs),
                *state.lock().expect("no panic"),
                "{manager}"
            );
            assert_eq!(set.members(), [""; 0]);
            // From the next run on it is found before anything is written.
            set.apply_with(std::slice::from_ref(&object), &[ONLY_NEW])
                .expect(3);
        }
    }
}

#[test]
fn what_another_set_creates_between_the_look_and_the_write_stays_there() {
    let home = namespace("home");
    let [set, other] = ["web", "other"].map(|name| Set::secret(&home, name));
    let object = config_map(&home, "one", "1");
    let (theirs, id) = (object.clone(), other.id.clone());
    let run = race(&set, &object, &[], move || {
        other.apply(std::slice::from_ref(&theirs));
    })
    .expect(1);
    assert!(run.errors()[0].contains(&id), "{}", run.stderr);
    assert_eq!(part_of(&object), json!(id));
}

#[test]
fn what_another_run_of_the_set_creates_is_applied() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let (theirs, theirs_set) = (config_map(&home, "one", "1"), Set::secret(&home, "web"));
    let ours = config_map(&home, "one", "2");
    let run = race(&set, &ours, &[], move || {
        theirs_set.apply(std::slice::from_ref(&theirs));
    })
    .expect(0);
    assert_eq!(run.results("configured"), identities([&ours]));
    assert_eq!(taken_in(&run), []);
    set.assert_holds(std::slice::from_ref(&ours));
}

#[test]
fn an_object_that_was_created_while_the_answer_was_lost_is_the_runs_own() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let object = config_map(&home, "one", "1");
    let is_lost = AtomicBool::new(false);
    // The first write of the member is carried out, and its answer is lost.
    let proxy = Proxy::breaking(Fault::ClosedAfter, move |sent| {
        sent.is_write() && sent.path.contains("/configmaps/") && !is_lost.swap(true, Ordering::SeqCst)
    });
    let run = set
        .apply_through(&proxy, std::slice::from_ref(&object), &[ONLY_NEW])
        .expect(0);
    assert_eq!(run.results("created"), identities([&object]));
    assert_eq!(taken_in(&run), []);
    set.assert_holds(std::slice::from_ref(&object));
}
