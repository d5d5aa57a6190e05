//! What has moved since a plan was saved, or moves while it is carried out.

use std::sync::Arc;

use bytes::Bytes;
use controlplane::ControlPlane;
use http::Response;
use serde_json::{Value, json};

use super::{Plan, message};
use crate::support::{
    GROUP_KINDS, PART_OF, Program, Proxy, Sent, Set, TOOLING, Verdict, Watch, cluster, config_map, fresh,
    kubectl_apply, named, namespace, namespace_object, service, with,
};

/// Something that a person does between the making of a plan and its carrying out.
type Meddling = fn(&str, &Set);

/// What of the message reports of it.
const MEDDLINGS: [(&str, Meddling); 14] = [
    ("configmap/changed in namespace HOME was changed", |home, _| {
        cluster().patch(
            &config_map(home, "changed", "1"),
            &json!({"data": {"other": "1"}}),
        );
    }),
    ("configmap/changed in namespace HOME was deleted", |home, _| {
        cluster().delete(&config_map(home, "changed", "1"));
    }),
    (
        "configmap/changed in namespace HOME was deleted and recreated",
        |home, set| {
            let object = with(
                config_map(home, "changed", "1"),
                &json!({"metadata": {"labels": {PART_OF: set.id}}}),
            );
            cluster().delete(&object);
            cluster().apply_as("applyset", &object);
        },
    ),
    (
        "configmap/kept in namespace HOME changed: it would be applied",
        |home, _| {
            cluster().patch(&config_map(home, "kept", "1"), &json!({"data": {"key": "other"}}));
        },
    ),
    ("configmap/kept in namespace HOME was deleted", |home, _| {
        cluster().delete(&config_map(home, "kept", "1"));
    }),
    ("configmap/new in namespace HOME was created", |home, _| {
        cluster().create(&config_map(home, "new", "1"));
    }),
    ("configmap/gone in namespace HOME was changed", |home, _| {
        cluster().patch(
            &config_map(home, "gone", "1"),
            &json!({"data": {"key": "worth keeping"}}),
        );
    }),
    ("configmap/gone in namespace HOME was deleted", |home, _| {
        cluster().delete(&config_map(home, "gone", "1"));
    }),
    ("configmap/gone in namespace HOME left the set", |home, _| {
        let none = json!({"metadata": {"labels": {PART_OF: null}}});
        cluster().patch(&config_map(home, "gone", "1"), &none);
    }),
    (
        "configmap/joined in namespace HOME joined the set",
        |home, set| {
            let object = with(
                config_map(home, "joined", "1"),
                &json!({"metadata": {"labels": {PART_OF: set.id}}}),
            );
            cluster().apply_as("applyset", &object);
        },
    ),
    (
        "configmap/new in namespace HOME belongs to secret/other",
        |home, _| {
            Set::secret(home, "other").apply(&[config_map(home, "new", "1")]);
        },
    ),
    (
        "the record of the set's parent secret/web in namespace HOME was changed",
        |_, set| {
            let wider = json!({"metadata": {"annotations": {GROUP_KINDS: "ConfigMap,Service"}}});
            cluster().patch(&set.parent, &wider);
        },
    ),
    (
        "the record of the set's parent secret/web in namespace HOME was changed",
        |_, set| {
            let theirs = json!({"metadata": {"annotations": {TOOLING: "kubectl/v1.36.3"}}});
            cluster().patch(&set.parent, &theirs);
        },
    ),
    (
        "the set's parent secret/web in namespace HOME was deleted",
        |_, set| {
            cluster().delete(&set.parent);
        },
    ),
];

#[test]
fn a_plan_that_was_overtaken_is_refused_and_says_by_what() {
    for (expected, meddle) in MEDDLINGS {
        let home = namespace("home");
        let set = Set::secret(&home, "web");
        set.apply(&["kept", "changed", "gone"].map(|name| config_map(&home, name, "1")));
        let next = [
            config_map(&home, "kept", "1"),
            config_map(&home, "changed", "2"),
            config_map(&home, "new", "1"),
        ];
        let plan = Plan::saved(&set, &next, &[]);
        meddle(&home, &set);
        let state = cluster().state(&[&home]);
        let run = plan.apply().expect(3);
        let expected = expected.replace("HOME", &home);
        assert!(
            message(&run).contains(&expected),
            "{expected:?} in {}",
            message(&run)
        );
        assert_eq!(run.document()["results"], json!([]));
        assert_eq!(cluster().state(&[&home]), state, "{expected}");
    }
}

#[test]
fn everything_that_moved_is_reported_at_once() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    set.apply(&["one", "two", "three"].map(|name| config_map(&home, name, "1")));
    let plan = Plan::saved(
        &set,
        &[config_map(&home, "one", "2"), config_map(&home, "two", "2")],
        &[],
    );
    cluster().delete(&config_map(&home, "one", "1"));
    cluster().patch(&config_map(&home, "three", "1"), &json!({"data": {"key": "2"}}));
    let reported = message(&plan.apply().expect(3));
    let lines: Vec<&str> = reported.lines().collect();
    assert_eq!(
        lines[1..],
        [
            format!("  configmap/one in namespace {home} was deleted"),
            format!("  configmap/three in namespace {home} was changed"),
        ]
    );
}

#[test]
fn a_namespace_that_is_another_one_is_noticed() {
    let [home, away] = [namespace("home"), namespace("away")];
    let set = Set::secret(&home, "web");
    let plan = Plan::saved(&set, &[config_map(&away, "one", "1")], &[]);
    cluster().delete(&namespace_object(&away));
    crate::support::eventually("the namespace is gone", || {
        cluster().live(&namespace_object(&away)).is_none().then_some(())
    });
    plan.apply().expect(3);
    cluster().create(&namespace_object(&away));
    let reported = message(&plan.apply().expect(3));
    assert!(
        reported.contains(&format!("namespace/{away} was deleted or recreated")),
        "{reported}"
    );
    assert_eq!(set.live_parent(), None);
}

/// A cluster that is the tests' own but for its identity.
struct Elsewhere;

impl Watch for Elsewhere {
    fn before(&self, _: &Sent, _: usize) -> Verdict {
        Verdict::Forward
    }

    fn after(&self, sent: &Sent, answer: Response<Bytes>) -> Response<Bytes> {
        if sent.path != "/api/v1/namespaces/kube-system" {
            return answer;
        }
        answer.map(|body| {
            let mut object: Value = serde_json::from_slice(&body).expect("an object");
            object["metadata"]["uid"] = json!("of-another-cluster");
            Bytes::from(object.to_string())
        })
    }
}

#[test]
fn a_plan_for_another_cluster_is_not_carried_out() {
    let home = fresh("home");
    let set = Set::secret(&home, "web");
    let objects = [namespace_object(&home), config_map(&home, "one", "1")];
    let plan = Plan::saved(&set, &objects, &[]);
    let proxy = Proxy::watched(Arc::new(Elsewhere));
    let run = plan
        .apply_by(Program::with_kubeconfig(&proxy.kubeconfig()), &[])
        .expect(3);
    assert!(message(&run).contains("for another cluster"), "{}", message(&run));
    assert_eq!(cluster().live(&objects[0]), None);
    // The same cluster behind another address.
    let proxy = Proxy::transparent();
    plan.apply_by(Program::with_kubeconfig(&proxy.kubeconfig()), &[])
        .expect(0);
    set.assert_holds(&objects);
}

fn deployment(namespace: &str, image: &str) -> Value {
    with(
        named("apps/v1", "Deployment", Some(namespace), "web"),
        &json!({"spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": image}]},
            },
        }}),
    )
}

/// What a controller does: another resourceVersion, and nothing that anybody asked for.
fn report_status(namespace: &str) {
    let patch = r#"{"status": {"observedGeneration": 1, "replicas": 7}}"#;
    let arguments = [
        "patch",
        "deployment",
        "web",
        "-n",
        namespace,
        "--subresource=status",
        "--type=merge",
        "-p",
        patch,
    ];
    let output = ControlPlane::shared()
        .run_kubectl(arguments)
        .expect("kubectl runs");
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn what_controllers_report_overtakes_no_plan() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    set.apply(&[
        deployment(&home, "one"),
        config_map(&home, "gone", "1"),
        config_map(&home, "shared", "1"),
    ]);
    let next = [deployment(&home, "two"), config_map(&home, "shared", "2")];
    let plan = Plan::saved(&set, &next, &[]);
    let before = cluster().live(&next[0]).expect("a deployment")["metadata"]["resourceVersion"].clone();
    report_status(&home);
    let after = cluster().live(&next[0]).expect("a deployment")["metadata"]["resourceVersion"].clone();
    assert_ne!(before, after);
    // Another manager that wants the same owns it, too.
    cluster().apply_as("rival", &config_map(&home, "gone", "1"));
    plan.apply().expect(0);
    set.assert_holds(&next);
    let live = cluster().live(&next[0]).expect("a deployment");
    assert_eq!(live["spec"]["template"]["spec"]["containers"][0]["image"], "two");
}

#[test]
fn what_changes_while_the_plan_is_carried_out_is_not_overwritten() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let first = [
        deployment(&home, "one"),
        config_map(&home, "sent", "1"),
        config_map(&home, "gone", "1"),
    ];
    set.apply(&first);
    let next = [deployment(&home, "two"), config_map(&home, "sent", "2")];
    let plan = Plan::saved(&set, &next, &[]);
    let place = home.clone();
    let proxy = Proxy::before_write(0, move || {
        report_status(&place);
        cluster().patch(&config_map(&place, "sent", "1"), &json!({"data": {"other": "1"}}));
    });
    let run = plan
        .apply_by(Program::with_kubeconfig(&proxy.kubeconfig()), &[])
        .expect(1);
    assert_eq!(run.results("failed"), [format!("ConfigMap {home}/sent")]);
    assert_eq!(run.results("configured"), [format!("Deployment.apps {home}/web")]);
    assert_eq!(run.results("pruned"), [""; 0]);
    let sent = cluster()
        .live(&config_map(&home, "sent", "1"))
        .expect("an object");
    assert_eq!(sent["data"], json!({"key": "1", "other": "1"}));
    set.assert_holds(&first);
}

#[test]
fn what_changes_while_it_is_taken_from_client_side_apply_is_not_overwritten() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let first = with(config_map(&home, "one", "1"), &json!({"data": {"old": "1"}}));
    kubectl_apply(&[first], &[]).expect(0);
    let plan = Plan::saved(&set, &[config_map(&home, "one", "2")], &["--force-conflicts"]);
    let place = home.clone();
    // The parent is made, the object is applied, its fields are taken, and it is applied again.
    let proxy = Proxy::before_write(3, move || {
        cluster().patch(&config_map(&place, "one", "2"), &json!({"data": {"key": "3"}}));
    });
    let run = plan
        .apply_by(Program::with_kubeconfig(&proxy.kubeconfig()), &[])
        .expect(1);
    assert_eq!(run.results("failed"), [format!("ConfigMap {home}/one")]);
    let one = cluster().live(&config_map(&home, "one", "1")).expect("an object");
    assert_eq!(one["data"]["key"], "3");
    assert_eq!(set.unrecorded(), [""; 0]);
    Plan::saved(&set, &[config_map(&home, "one", "4")], &["--force-conflicts"])
        .apply()
        .expect(0);
    set.assert_holds(&[config_map(&home, "one", "4")]);
}

#[test]
fn what_is_created_while_the_plan_is_carried_out_is_not_taken_in() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let plan = Plan::saved(&set, &[config_map(&home, "new", "1")], &[]);
    let place = home.clone();
    // The first write is the parent.
    let proxy = Proxy::before_write(1, move || {
        cluster().apply_as("applyset", &config_map(&place, "new", "theirs"));
    });
    let run = plan
        .apply_by(Program::with_kubeconfig(&proxy.kubeconfig()), &[])
        .expect(1);
    assert_eq!(run.results("failed"), [format!("ConfigMap {home}/new")]);
    let live = cluster().live(&config_map(&home, "new", "1")).expect("an object");
    assert_eq!(live["data"], json!({"key": "theirs"}));
    assert_eq!(set.members(), [""; 0]);
}

#[test]
fn a_plan_shows_what_it_takes_in() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    cluster().create(&config_map(&home, "unowned", "1"));
    let next = ["unowned", "new"].map(|name| config_map(&home, name, "1"));
    let plan = Plan::saved(&set, &next, &[]);
    let document: Value = serde_json::from_str(&plan.text()).expect("JSON");
    let objects = document["plan"]["objects"].as_array().expect("objects");
    let marked: Vec<&Value> = objects
        .iter()
        .filter(|object| object["takenIn"] == true)
        .map(|object| &object["key"]["name"])
        .collect();
    assert_eq!(marked, ["unowned"]);
    plan.apply().expect(0);
    set.assert_holds(&next);
}

#[test]
fn what_changes_before_it_is_pruned_stays() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    set.apply(&[
        config_map(&home, "kept", "1"),
        config_map(&home, "touched", "1"),
        config_map(&home, "gone", "1"),
    ]);
    let plan = Plan::saved(&set, &[config_map(&home, "kept", "1")], &[]);
    let place = home.clone();
    let proxy = Proxy::before_write(0, move || {
        cluster().patch(
            &config_map(&place, "touched", "1"),
            &json!({"data": {"key": "worth keeping"}}),
        );
        cluster().apply_as("rival", &config_map(&place, "gone", "1"));
    });
    let run = plan
        .apply_by(Program::with_kubeconfig(&proxy.kubeconfig()), &[])
        .expect(1);
    assert_eq!(run.results("failed"), [format!("ConfigMap {home}/touched")]);
    assert_eq!(run.results("pruned"), [format!("ConfigMap {home}/gone")]);
    assert!(cluster().live(&config_map(&home, "touched", "1")).is_some());
    assert_eq!(set.unrecorded(), [""; 0]);
}

#[test]
fn a_parent_with_a_manifest_is_protected_like_any_object() {
    let home = namespace("home");
    let set = Set::config_map(&home, "web");
    let member = config_map(&home, "one", "1");
    let manifests = |value: &str| [config_map(&home, "web", value), member.clone()];
    set.apply(&manifests("1"));
    let touch = || cluster().patch(&set.parent, &json!({"data": {"other": "1"}}));
    let data = || set.live_parent().expect("a parent")["data"].clone();

    let plan = Plan::saved(&set, &manifests("2"), &[]);
    touch();
    let reported = message(&plan.apply().expect(3));
    assert!(
        reported.contains("the set's parent configmap/web") && reported.contains("was changed"),
        "{reported}"
    );
    assert_eq!(data(), json!({"key": "1", "other": "1"}));

    // What changes while the plan is carried out is not overwritten either.
    let plan = Plan::saved(&set, &manifests("2"), &[]);
    let parent = set.parent.clone();
    let proxy = Proxy::before_write(0, move || {
        cluster().patch(&parent, &json!({"data": {"other": "2"}}));
    });
    plan.apply_by(Program::with_kubeconfig(&proxy.kubeconfig()), &[])
        .expect(1);
    assert_eq!(data(), json!({"key": "1", "other": "2"}));

    // Its record is the run's own.
    let next = [
        config_map(&home, "web", "3"),
        member.clone(),
        service(&home, "web", 80),
    ];
    let plan = Plan::saved(&set, &next, &[]);
    plan.apply().expect(0);
    assert_eq!(data(), json!({"key": "3", "other": "2"}));
    set.assert_holds(&next[1..]);
}
