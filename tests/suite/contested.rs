//! Objects that two sets take at the same time: the object stays in the first one, and the run of the other says so
//! and fails. Members that change otherwise between the LIST and their apply are judged again.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::support::{
    Fault, PART_OF, Proxy, Run, Sent, Set, Verdict, Watch, cluster, config_map, identities, namespace,
};

/// Applies `object` to the set `late`, and right before its apply to the set `early`. Asserts that
/// the late run fails, names the other set, and leaves the object to it.
fn race(home: &str, object: &Value) {
    let early = Arc::new(Set::secret(home, "early"));
    let late = Set::secret(home, "late");
    let ran = Arc::new(Mutex::new(None));
    let within = (Arc::clone(&early), Arc::clone(&ran), object.clone());
    // The first write is the parent.
    let proxy = Proxy::before_write(1, move || {
        let (early, ran, object) = &within;
        let run = early.apply_with(std::slice::from_ref(object), &[]);
        *ran.lock().expect("no panic") = Some(run.code);
    });

    let run = late
        .apply_through(&proxy, std::slice::from_ref(object), &[])
        .expect(1);

    assert_eq!(*ran.lock().expect("no panic"), Some(0));
    assert_eq!(run.results("failed"), identities([object]));
    assert_eq!(run.errors().len(), 1, "{}", run.stderr);
    assert!(run.errors()[0].contains(&early.id), "{}", run.stderr);
    assert_eq!(late.members(), Vec::<String>::new());
    let run = early.apply(std::slice::from_ref(object));
    assert_eq!(run.results("unchanged"), identities([object]));
    late.apply_with(std::slice::from_ref(object), &[]).expect(3);
}

#[test]
fn a_new_object_that_another_set_made_first_is_reported() {
    let home = namespace("home");
    race(&home, &config_map(&home, "shared", "1"));
}

#[test]
fn an_object_without_a_set_that_another_set_took_first_is_reported() {
    let home = namespace("home");
    let shared = config_map(&home, "shared", "1");
    cluster().apply_as("kubectl", &shared);
    race(&home, &shared);
}

/// Runs `early` before the first write of the object `shared`, of which the answer is lost.
struct LosingAfter(Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl Watch for LosingAfter {
    fn before(&self, sent: &Sent, _: usize) -> Verdict {
        if !sent.is_write() || !sent.path.contains("/configmaps/shared") {
            return Verdict::Forward;
        }
        let Some(early) = self.0.lock().expect("no panic").take() else {
            return Verdict::Forward;
        };
        early();
        Verdict::Break(Fault::ClosedAfter)
    }
}

#[test]
fn an_object_that_another_set_made_first_is_reported_although_the_answer_was_lost() {
    let home = namespace("home");
    let shared = config_map(&home, "shared", "1");
    let [early, late] = ["early", "late"].map(|name| Set::secret(&home, name));
    let id = early.id.clone();
    let object = shared.clone();
    let run_early = move || drop(early.apply_with(&[object], &[]).expect(0));
    let proxy = Proxy::watched(Arc::new(LosingAfter(Mutex::new(Some(Box::new(run_early))))));

    let run = late
        .apply_through(&proxy, std::slice::from_ref(&shared), &[])
        .expect(1);

    assert_eq!(run.results("failed"), identities([&shared]));
    assert!(run.errors()[0].contains(&id), "{}", run.stderr);
    assert_eq!(late.members(), Vec::<String>::new());
}

/// Breaks every read of a former version, after the object `shared` was written.
struct Unreadable(AtomicBool);

impl Watch for Unreadable {
    fn before(&self, sent: &Sent, _: usize) -> Verdict {
        if sent.is_write() && sent.path.contains("/configmaps/shared") {
            self.0.store(true, Ordering::SeqCst);
        }
        if self.0.load(Ordering::SeqCst) && sent.path.contains("resourceVersionMatch=Exact") {
            Verdict::Break(Fault::InternalError)
        } else {
            Verdict::Forward
        }
    }
}

#[test]
fn a_run_fails_if_a_member_may_have_been_another_sets() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    // Members of a set that is left to kubectl are applied without a version.
    let flags = ["--tooling=kubectl/v1.36.3"];
    let [old, new] = ["1", "2"].map(|value| config_map(&home, "shared", value));
    set.apply_with(&[old], &flags).expect(0);
    let proxy = Proxy::watched(Arc::new(Unreadable(AtomicBool::new(false))));

    let run = set
        .apply_through(&proxy, std::slice::from_ref(&new), &flags)
        .expect(1);

    let error = &run.errors()[0];
    assert!(error.contains("it may belong to another set"), "{}", run.stderr);
    let run = set.apply_with(std::slice::from_ref(&new), &flags).expect(0);
    assert_eq!(run.results("unchanged"), identities([&new]));
}

/// Has something done right before the first write of the object `shared`.
pub(super) fn before_shared(act: impl Fn() + Send + Sync + 'static) -> Proxy {
    Proxy::before_request(
        |sent| sent.is_write() && sent.path.contains("/configmaps/shared"),
        act,
    )
}

#[test]
fn a_member_that_another_set_takes_during_the_run_is_not_taken_back() {
    let home = namespace("home");
    let [early, late] = ["early", "late"].map(|name| Set::secret(&home, name));
    late.apply(&[config_map(&home, "shared", "1")]);
    let theirs = config_map(&home, "shared", "theirs");
    let id = early.id.clone();
    let object = theirs.clone();
    let proxy = before_shared(move || {
        let objects = std::slice::from_ref(&object);
        drop(early.apply_with(objects, &["--take-ownership"]).expect(0));
    });
    let changed = config_map(&home, "shared", "2");

    let run = late
        .apply_through(&proxy, std::slice::from_ref(&changed), &[])
        .expect(1);

    assert_eq!(run.results("failed"), identities([&changed]));
    assert!(run.errors()[0].contains(&id), "{}", run.stderr);
    assert_eq!(late.members(), Vec::<String>::new());
    let live = cluster().live(&theirs).expect("it");
    assert_eq!(live["data"], theirs["data"]);
    assert_eq!(live["metadata"]["labels"][PART_OF], id);
}

/// Deletes `shared` and creates it outside of any set while a run applies it as a member with these flags.
fn replaced(home: &str, flags: &[&str]) -> (Set, Run) {
    let set = Set::secret(home, "web");
    set.apply(&[config_map(home, "shared", "1")]);
    let foreign = config_map(home, "shared", "foreign");
    let proxy = before_shared(move || {
        cluster().delete(&foreign);
        cluster().create(&foreign);
    });
    let changed = config_map(home, "shared", "2");
    let flags = [flags, &["--force-conflicts"]].concat();
    let run = set.apply_through(&proxy, &[changed], &flags);
    (set, run)
}

#[test]
fn a_member_that_is_replaced_during_the_run_is_another_object() {
    let home = namespace("home");
    let shared = config_map(&home, "shared", "2");
    let (set, run) = replaced(&home, &[]);
    let run = run.expect(0);
    assert!(run.reason("shared").contains("existed before"), "{}", run.stderr);
    set.assert_holds(&[shared]);

    let home = namespace("home");
    let (set, run) = replaced(&home, &["--only-new-or-owned"]);
    let run = run.expect(1);
    assert!(run.errors()[0].contains("--only-new-or-owned"), "{}", run.stderr);
    assert_eq!(set.members(), Vec::<String>::new());
    let live = cluster().live(&config_map(&home, "shared", "2")).expect("it");
    assert_eq!(live["data"]["key"], "foreign");
}

#[test]
fn a_member_that_is_deleted_during_the_run_is_created_again() {
    for flags in [&[][..], &["--only-new-or-owned"]] {
        let home = namespace("home");
        let set = Set::secret(&home, "web");
        let [old, new] = ["1", "2"].map(|value| config_map(&home, "shared", value));
        set.apply(std::slice::from_ref(&old));
        let proxy = before_shared(move || cluster().delete(&old));

        let run = set
            .apply_through(&proxy, std::slice::from_ref(&new), flags)
            .expect(0);

        assert_eq!(run.results("created"), identities([&new]), "{flags:?}");
        set.assert_holds(&[new]);
    }
}

#[test]
fn a_member_that_others_write_all_the_time_is_applied() {
    struct Busy(Value, AtomicUsize);
    impl Watch for Busy {
        fn before(&self, sent: &Sent, _: usize) -> Verdict {
            if sent.is_write() && sent.path.contains("/configmaps/shared") {
                let number = self.1.fetch_add(1, Ordering::SeqCst);
                let annotations = json!({"example.com/beat": number.to_string()});
                cluster().patch(&self.0, &json!({"metadata": {"annotations": annotations}}));
            }
            Verdict::Forward
        }
    }
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let [old, new] = ["1", "2"].map(|value| config_map(&home, "shared", value));
    set.apply(&[old]);
    let proxy = Proxy::watched(Arc::new(Busy(new.clone(), AtomicUsize::new(0))));

    let run = set
        .apply_through(&proxy, std::slice::from_ref(&new), &[])
        .expect(0);

    assert_eq!(run.results("configured"), identities([&new]));
    set.assert_holds(&[new]);
}

#[test]
fn of_many_objects_without_a_set_only_those_are_taken_that_no_other_set_took_first() {
    let home = namespace("home");
    let [early, late] = ["early", "late"].map(|name| Set::secret(&home, name));
    let objects: Vec<Value> = (0..6)
        .map(|number| config_map(&home, &format!("map-{number}"), "1"))
        .collect();
    for object in &objects {
        cluster().apply_as("kubectl", object);
    }
    let (taken, left) = objects.split_at(2);
    let id = early.id.clone();
    let first = taken.to_vec();
    // The first write is the parent.
    let proxy = Proxy::before_write(1, move || drop(early.apply_with(&first, &[]).expect(0)));

    let run = late.apply_through(&proxy, &objects, &[]).expect(1);

    assert_eq!(run.results("failed"), identities(taken));
    assert_eq!(run.results("configured"), identities(left));
    assert!(
        run.errors().iter().all(|error| error.contains(&id)),
        "{}",
        run.stderr
    );
    assert_eq!(late.members(), identities(left));
}

#[test]
fn objects_without_a_set_are_taken_as_they_were_read_and_new_ones_cost_nothing_more() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let map = |number: usize| config_map(&home, &format!("one-{number}"), "1");
    let objects: Vec<Value> = (0..100).map(map).collect();
    for object in &objects[..3] {
        cluster().apply_as("kubectl", object);
    }
    let proxy = Proxy::transparent();

    let run = set.apply_through(&proxy, &objects, &[]).expect(0);

    assert_eq!(run.results("configured"), identities(&objects[..3]));
    assert_eq!(run.warnings(), Vec::<String>::new());
    // Each existing object costs an apply that changes nothing, and a read.
    let requests = proxy.sent().len();
    assert!(requests <= 126, "{requests}");
    set.assert_holds(&objects);

    let new = Set::secret(&home, "new");
    let map = |number: usize| config_map(&home, &format!("two-{number}"), "1");
    let objects: Vec<Value> = (0..100).map(map).collect();
    let proxy = Proxy::transparent();
    new.apply_through(&proxy, &objects, &[]).expect(0);
    assert!(proxy.sent().len() <= 120, "{}", proxy.sent().len());
}
