//! Members that the server refuses to update are deleted and created again, where the manifests or the
//! user ask for that, and never where anything else would be lost.

mod ignored;
mod interruption;
mod obstacles;
mod preview;
mod releases;
mod stateful_sets;

use std::slice::from_ref;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::support::{
    Fault, Files, Program, Proxy, Run, Sent, Set, Verdict, Watch, cluster, config_map, custom_resource,
    definition, eventually, fresh, identities, named, namespace, objects_file, with,
};

/// A Job whose template cannot change.
fn job(namespace: &str, name: &str, image: &str) -> Value {
    with(
        named("batch/v1", "Job", Some(namespace), name),
        &json!({"spec": {"template": {"spec": {
            "containers": [{"name": "job", "image": image}],
            "restartPolicy": "Never",
        }}}}),
    )
}

/// A `ConfigMap` that is immutable.
fn frozen(namespace: &str, name: &str, value: &str) -> Value {
    with(config_map(namespace, name, value), &json!({"immutable": true}))
}

fn annotated(object: Value, key: &str, value: &str) -> Value {
    with(object, &json!({"metadata": {"annotations": {key: value}}}))
}

fn labeled(object: Value, key: &str, value: &str) -> Value {
    with(object, &json!({"metadata": {"labels": {key: value}}}))
}

/// The object with Flux's mark.
fn marked(object: Value) -> Value {
    annotated(object, "kustomize.toolkit.fluxcd.io/force", "enabled")
}

fn diff(set: &Set, objects: &[Value], flags: &[&str]) -> Run {
    let files = Files::new().with("objects.yaml", &objects_file(objects));
    set.invocation(Program::new(), "diff", &["-f"])
        .args([files.directory()])
        .args(flags)
        .run()
}

fn uid(object: &Value) -> Value {
    let live = cluster().live(object);
    live.unwrap_or_else(|| panic!("no {object}"))["metadata"]["uid"].clone()
}

fn image(object: &Value) -> Value {
    let live = cluster().live(object).expect("it");
    live.pointer("/spec/template/spec/containers/0/image")
        .cloned()
        .expect("an image")
}

/// Applies the objects, and expects that this one alone fails and stays as it is.
#[track_caller]
fn assert_stays(set: &Set, objects: &[Value], stays: &Value, flags: &[&str]) -> Run {
    let before = cluster().live(stays).expect("it");
    let run = set.apply_with(objects, flags).expect(1);
    assert_eq!(run.results("failed"), identities([stays]));
    assert_eq!(run.results("recreated"), Vec::<String>::new());
    assert_eq!(cluster().live(stays), Some(before), "{}", run.stderr);
    assert_eq!(set.unrecorded(), Vec::<String>::new());
    run
}

#[test]
fn a_marked_job_is_recreated_when_it_cannot_be_updated() {
    let mark = |key: &'static str, value: &'static str| move |object| annotated(object, key, value);
    let argo_cd = "argocd.argoproj.io/sync-options";
    let kapp = "kapp.k14s.io/update-strategy";
    let flux = "kustomize.toolkit.fluxcd.io/force";
    let marks: [Box<dyn Fn(Value) -> Value>; 5] = [
        Box::new(mark(flux, "enabled")),
        Box::new(|object| labeled(object, flux, "enabled")),
        Box::new(mark(argo_cd, "Force=true,Replace=true")),
        Box::new(mark(kapp, "fallback-on-replace")),
        Box::new(mark(kapp, "always-replace")),
    ];
    for mark in marks {
        let home = namespace("home");
        let set = Set::secret(&home, "web");
        let [old, new] = ["one", "two"].map(|image| mark(job(&home, "migrate", image)));
        let other = config_map(&home, "one", "1");
        set.apply(&[old.clone(), other.clone()]);
        let first = uid(&old);

        // What can be updated is updated.
        let more = labeled(old, "team", "a");
        let run = set.apply(&[more.clone(), other.clone()]);
        assert_eq!(run.results("configured"), identities([&more]));
        assert_eq!(uid(&new), first);

        let objects = [new.clone(), other];
        let run = set.apply(&objects);
        assert_eq!(run.results("recreated"), identities([&new]));
        assert_eq!(run.document()["summary"]["recreated"], 1);
        assert!(
            run.reason("migrate").contains("field is immutable"),
            "{}",
            run.stdout
        );
        assert_ne!(uid(&new), first);
        assert_eq!(image(&new), "two");
        set.assert_holds(&objects);
        let again = set.apply(&objects);
        assert_eq!(again.results("unchanged"), identities(&objects));
    }
}

#[test]
fn what_is_not_marked_stays_unless_its_kind_is_named() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let [old, new] = ["one", "two"].map(|image| job(&home, "migrate", image));
    set.apply(&[old]);
    let objects = [new.clone()];
    for flags in [
        &[][..],
        &["--recreate=marked"],
        &["--recreate=never"],
        &["--recreate=Deployment"],
    ] {
        let run = assert_stays(&set, &objects, &new, flags);
        assert!(run.stderr.contains("--recreate=Job\n"), "{}", run.stderr);
    }
    let before = uid(&new);
    let run = set
        .apply_with(&objects, &["--recreate=deploy,jobs.batch"])
        .expect(0);
    assert_eq!(run.results("recreated"), identities([&new]));
    assert_ne!(uid(&new), before);
    set.assert_holds(&objects);
    // A mark is ignored if the user says so.
    let third = [marked(job(&home, "migrate", "three"))];
    assert_stays(&set, &third, &third[0], &["--recreate=never"]);
}

#[test]
fn kinds_that_nothing_defines_are_an_error() {
    let group = format!("{}.example.com", fresh("recreation"));
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects = [
        definition(&group, "Namespaced"),
        custom_resource(&group, Some(&home), "one"),
    ];
    let run = set.apply_with(&objects, &["--recreate=Jobb"]).expect(2);
    assert!(
        run.stderr.contains("doesn't have a resource type \"Jobb\""),
        "{}",
        run.stderr
    );
    set.apply_with(&objects, &["--recreate=never,Job"]).expect(2);
    assert_eq!(set.live_parent(), None);
    // The manifests define this one.
    let flag = format!("--recreate=Widget.{group}");
    set.apply_with(&objects, &[&flag]).expect(0);
}

#[test]
fn an_object_that_is_invalid_by_itself_is_not_deleted() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    set.apply(&[job(&home, "migrate", "one")]);
    let policy = json!({"spec": {"template": {"spec": {"restartPolicy": "Always"}}}});
    let invalid = with(job(&home, "migrate", "two"), &policy);
    let run = assert_stays(&set, from_ref(&invalid), &invalid, &["--recreate=Job"]);
    assert!(run.stderr.contains("restartPolicy"), "{}", run.stderr);
    assert!(run.stderr.contains("not recreated"), "{}", run.stderr);
}

#[test]
fn immutable_custom_resources_are_recreated() {
    let group = format!("{}.example.com", fresh("recreation"));
    let rule = json!([{"rule": "self == oldSelf", "message": "size is immutable"}]);
    let mut kind = definition(&group, "Namespaced");
    kind["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["size"]["x-kubernetes-validations"] =
        rule;
    cluster().define(&kind);
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let widget = custom_resource(&group, Some(&home), "one");
    set.apply(from_ref(&widget));
    let wider = with(widget, &json!({"spec": {"size": 2}}));
    let run = assert_stays(&set, from_ref(&wider), &wider, &[]);
    let flag = format!("--recreate=Widget.{group}");
    assert!(run.stderr.contains(&flag), "{}", run.stderr);
    let run = set.apply_with(from_ref(&wider), &[&flag]).expect(0);
    assert_eq!(run.results("recreated"), identities([&wider]));
}

#[test]
fn an_object_that_another_client_creates_first_is_applied_as_it_is_found() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    set.apply(&[frozen(&home, "one", "1")]);
    let new = frozen(&home, "one", "2");
    for (value, code) in [("2", 0), ("3", 1)] {
        let theirs = frozen(&home, "one", value);
        // The beginning, the update, the dry run of the creation, the delete, and then this.
        let proxy = Proxy::before_write(4, move || {
            eventually("it goes", || cluster().live(&theirs).is_none().then_some(()));
            cluster().create(&theirs);
        });
        let objects = [marked(new.clone())];
        let run = set.apply_through(&proxy, &objects, &[]).expect(code);
        if code == 0 {
            assert_eq!(run.results("configured"), identities([&new]));
        } else {
            assert_eq!(run.results("failed"), identities([&new]));
        }
        let live = cluster().live(&new).expect("it");
        assert_eq!(live["data"]["key"], value);
        // The next one cannot be updated again.
        if code == 0 {
            cluster().delete(&new);
            set.apply(&[frozen(&home, "one", "1")]);
        }
    }
}

#[test]
fn an_object_that_another_run_recreates_first_is_not_deleted() {
    let home = namespace("home");
    let set = Arc::new(Set::secret(&home, "web"));
    set.apply(&[frozen(&home, "one", "1")]);
    let new = marked(frozen(&home, "one", "2"));
    let (first, object) = (Arc::clone(&set), new.clone());
    // The update was refused. The dry run of the creation waits until another run has recreated the object.
    let proxy = Proxy::before_write(2, move || drop(first.apply(from_ref(&object))));

    let run = set.apply_through(&proxy, from_ref(&new), &[]).expect(1);

    assert!(run.stderr.contains("replaced"), "{}", run.stderr);
    let sent = proxy.sent();
    assert!(!sent.iter().any(|sent| sent.method == "DELETE"), "{}", run.stderr);
    set.assert_holds(&[new]);
}

#[test]
fn a_recreation_is_finished_although_the_answer_to_its_delete_was_lost() {
    /// Loses the answer to the first DELETE, and removes the finalizer once the object was read after it.
    struct LosingDelete(Value, AtomicUsize);
    impl Watch for LosingDelete {
        fn before(&self, sent: &Sent, _: usize) -> Verdict {
            let is_one = sent.path.contains("/configmaps/one");
            let deletes_and_reads = self.1.load(Ordering::SeqCst);
            if is_one && (sent.method == "DELETE" || deletes_and_reads > 0 && sent.method == "GET") {
                self.1.fetch_add(1, Ordering::SeqCst);
            }
            match deletes_and_reads {
                0 if is_one && sent.method == "DELETE" => return Verdict::Break(Fault::ClosedAfter),
                // The DELETE was sent twice, and the object read once.
                3 => _ = cluster().patch(&self.0, &json!({"metadata": {"finalizers": null}})),
                _ => {}
            }
            Verdict::Forward
        }
    }
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let old = frozen(&home, "one", "1");
    set.apply(from_ref(&old));
    cluster().patch(&old, &json!({"metadata": {"finalizers": ["example.com/held"]}}));
    let new = marked(frozen(&home, "one", "2"));
    let proxy = Proxy::watched(Arc::new(LosingDelete(old, AtomicUsize::new(0))));

    let run = set.apply_through(&proxy, from_ref(&new), &[]).expect(0);

    assert_eq!(run.results("recreated"), identities([&new]), "{}", run.stderr);
    set.assert_holds(&[new]);
}

#[test]
fn a_flag_that_is_not_needed_costs_nothing() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects = [
        marked(job(&home, "migrate", "one")),
        config_map(&home, "one", "1"),
    ];
    set.apply(&objects);
    let requests = |flags: &[&str]| set.apply_with(&objects, flags).expect(0).document()["requests"].clone();
    let without = requests(&["--recreate=never"]);
    assert_eq!(requests(&[]), without);
    assert_eq!(requests(&["--recreate=Job,ConfigMap"]), without);
}

#[test]
fn objects_that_depend_on_a_recreated_one_follow_it() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let reference = format!("/namespaces/{home}/ConfigMap/one");
    let after = |value| {
        annotated(
            config_map(&home, "after", value),
            "config.kubernetes.io/depends-on",
            &reference,
        )
    };
    set.apply(&[frozen(&home, "one", "1"), after("1")]);
    let run = set
        .apply_with(&[frozen(&home, "one", "2"), after("2")], &[])
        .expect(1);
    assert_eq!(run.results("failed"), identities([&frozen(&home, "one", "2")]));
    assert_eq!(run.results("skipped"), identities([&after("2")]));
    let objects = [marked(frozen(&home, "one", "2")), after("2")];
    let run = set.apply(&objects);
    assert_eq!(run.results("recreated"), identities([&objects[0]]));
    assert_eq!(run.results("configured"), identities([&objects[1]]));
}

#[test]
fn one_hint_names_all_kinds_that_could_be_recreated() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects = |value: &str| [frozen(&home, "one", value), job(&home, "migrate", value)];
    set.apply(&objects("one"));
    let files = Files::new().with("objects.yaml", &objects_file(&objects("two")));
    let run = set.command(Program::new(), &files).run().expect(1);
    for kind in ["ConfigMap", "Job"] {
        let hint = format!("give the object another name, or recreate it with --recreate={kind}\n");
        assert_eq!(run.stderr.matches(&hint).count(), 1, "{}", run.stderr);
    }
}
