//! A kind that comes with its objects is waited for once, by any user, and not forever.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use controlplane::Grant;
use http::{Method, Response};
use serde_json::{Value, json};

use super::rights::{rule, user};
use crate::support::{
    Files, Program, Proxy, Run, Sent, Set, Verdict, Watch, cluster, config_map, custom_resource, definition,
    eventually, fresh, identities, named, namespace, objects_file, with,
};

/// Counts the looks at collections that were answered with one.
#[derive(Default)]
struct Looks(AtomicUsize);

impl Watch for Looks {
    fn before(&self, _: &Sent, _: usize) -> Verdict {
        Verdict::Forward
    }

    fn after(&self, sent: &Sent, answer: Response<Bytes>) -> Response<Bytes> {
        let is_look = sent.method == Method::GET && sent.path.ends_with("?limit=1");
        if is_look && answer.status().is_success() {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
        answer
    }
}

fn group() -> String {
    format!("{}.example.com", fresh("g"))
}

/// The definition of a new kind and so many objects of it.
fn kind_with_objects(home: &str, objects: usize) -> Vec<Value> {
    let group = group();
    let objects = (0..objects).map(|number| custom_resource(&group, Some(home), &format!("one-{number}")));
    std::iter::once(definition(&group, "Namespaced"))
        .chain(objects)
        .collect()
}

#[test]
fn one_look_is_enough_for_two_hundred_objects_of_a_new_kind() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects = kind_with_objects(&home, 201);
    let looks = Arc::new(Looks::default());
    let proxy = Proxy::watched(Arc::clone(&looks) as Arc<dyn Watch>);

    let run = set.apply_through(&proxy, &objects, &[]).expect(0);

    assert_eq!(run.results("created"), identities(&objects));
    assert_eq!(looks.0.load(Ordering::SeqCst), 1);
    let sent = proxy.sent();
    let of_members = sent.iter().filter(|sent| sent.path.contains("/widgets/"));
    assert_eq!(
        of_members.count(),
        201,
        "one apply for each object, and nothing else"
    );
    set.assert_holds(&objects);
}

#[test]
fn users_who_may_not_list_the_kind_nor_read_its_definition_wait_for_it_too() {
    let definitions = |verbs: &[&str]| rule("apiextensions.k8s.io", "customresourcedefinitions", verbs);
    for (round, verbs) in [
        &["list", "get", "create", "patch", "delete"][..],
        &["list", "create", "patch", "delete"],
    ]
    .into_iter()
    .enumerate()
    {
        let home = namespace("home");
        let set = Set::secret(&home, "web");
        let objects = kind_with_objects(&home, 20);
        let group = objects[0]["spec"]["group"].as_str().expect("a group");
        let person = user(&[
            Grant::everywhere([definitions(verbs)]),
            Grant::in_namespace(
                &home,
                [
                    rule(group, "widgets", &["create", "patch", "delete"]),
                    rule("", "secrets", &["*"]),
                ],
            ),
        ]);
        let files = Files::new().with("objects.yaml", &objects_file(&objects));
        let run = set
            .command(Program::with_kubeconfig(&person.kubeconfig), &files)
            .args(["-o", "json"])
            .run()
            .expect(0);
        assert_eq!(run.results("created"), identities(&objects), "round {round}");
        set.assert_holds(&objects);
    }
}

/// A definition that is never established, since another one has its singular name.
fn unserved(group: &str) -> Value {
    with(
        definition(group, "Namespaced"),
        &json!({
            "metadata": {"name": format!("gadgets.{group}")},
            "spec": {"names": {"kind": "Gadget", "plural": "gadgets", "singular": "widget"}},
        }),
    )
}

/// Asserts that the run said once what it waited for, without a terminal.
#[track_caller]
fn assert_reported_once(run: &Run) {
    let reported = run
        .stderr
        .matches("note: waiting for customresourcedefinition")
        .count();
    assert_eq!(reported, 1, "{}", run.stderr);
}

#[test]
fn a_kind_that_is_never_served_is_one_error_and_its_objects_are_skipped() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let group = group();
    cluster().define(&definition(&group, "Namespaced"));
    let unserved = unserved(&group);
    let other = config_map(&home, "other", "1");
    let objects: Vec<Value> = (0..3)
        .map(|number| {
            named(
                &format!("{group}/v1"),
                "Gadget",
                Some(&home),
                &format!("one-{number}"),
            )
        })
        .collect();
    let all = [&[unserved.clone(), other.clone()][..], &objects].concat();

    let run = set.apply_with(&all, &[]).expect(1);

    assert_eq!(run.results("created"), identities([&unserved, &other]));
    assert_eq!(run.results("skipped"), identities(&objects));
    assert_eq!(run.errors().len(), 1, "{}", run.stderr);
    assert!(run.errors()[0].contains("NamesAccepted"), "{}", run.stderr);
    assert_reported_once(&run);
    assert_eq!(set.unrecorded(), Vec::<String>::new());

    // The reason is not lost if another limit ends the wait.
    let run = set.apply_with(&all, &["--timeout=4s"]).expect(1);
    assert!(run.errors()[0].contains("NamesAccepted"), "{}", run.stderr);
    assert!(run.errors()[1].contains("--timeout"), "{}", run.stderr);
    assert_reported_once(&run);

    // The wait ends when the run is to stop.
    let files = Files::new().with("objects.yaml", &objects_file(&all));
    let proxy = Proxy::transparent();
    let mut running = set
        .command(Program::with_kubeconfig(&proxy.kubeconfig()), &files)
        .args(["-o", "json"])
        .start();
    eventually("the definition is looked at", || {
        let sent = proxy.sent();
        let looks = sent.iter().filter(|sent| {
            sent.method == Method::GET && sent.path.contains("/customresourcedefinitions/gadgets")
        });
        (looks.count() >= 3).then_some(())
    });
    running.interrupt();
    running.wait_for_message("stopping");
    let run = running.finish().expect(130);
    assert_eq!(run.results("skipped"), identities(&objects));
}

#[test]
fn objects_of_a_definition_that_is_refused_are_skipped_at_once() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let mut objects = kind_with_objects(&home, 3);
    objects[0]["spec"]["versions"][0]["storage"] = json!(false);

    let run = set.apply_with(&objects, &[]).expect(1);

    assert_eq!(run.results("failed"), identities(&objects[..1]));
    assert_eq!(run.results("skipped"), identities(&objects[1..]));
    assert_eq!(run.errors().len(), 1, "{}", run.stderr);
    assert!(run.reason("one-0").contains("was not applied"));
}
