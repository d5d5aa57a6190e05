//! A saved plan is carried out exactly as it was shown, or not at all.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use bytes::Bytes;
use controlplane::{ControlPlane, Grant};
use http::Response;
use serde_json::{Value, json};

use super::rights::{grant_what_is_printed, rule, user};
use crate::support::{
    Files, GROUP_KINDS, PART_OF, Program, Proxy, Run, Sent, Set, TOOLING, Verdict, Watch, cluster,
    config_map, custom_resource, definition, fresh, identities, kubectl_apply, named, namespace,
    namespace_object, objects_file, secret, service, with,
};

/// Manifests in a directory, and the file of a plan beside them.
struct Plan {
    files: Files,
    reference: String,
    namespace: String,
}

impl Plan {
    fn of(set: &Set, objects: &[Value]) -> Self {
        Self {
            files: Files::new().with("manifests/objects.yaml", &objects_file(objects)),
            reference: set.reference.clone(),
            namespace: set.namespace.clone(),
        }
    }

    /// A plan that has been saved.
    fn saved(set: &Set, objects: &[Value], flags: &[&str]) -> Self {
        let plan = Self::of(set, objects);
        plan.save(Program::new(), flags).expect(1);
        plan
    }

    fn save(&self, program: Program, flags: &[&str]) -> Run {
        program
            .args(["diff", &self.reference, "-n", &self.namespace, "-o", "json", "-f"])
            .args([self.files.path("manifests")])
            .args(["--out".as_ref(), self.files.path("plan.json").as_os_str()])
            .args(flags)
            .run()
    }

    fn apply(&self) -> Run {
        self.apply_by(Program::new(), &[])
    }

    fn apply_by(&self, program: Program, flags: &[&str]) -> Run {
        program
            .args(["apply", "-o", "json", "--plan"])
            .args([self.files.path("plan.json")])
            .args(flags)
            .run()
    }

    fn text(&self) -> String {
        fs::read_to_string(self.files.path("plan.json")).expect("a plan")
    }

    fn exists(&self) -> bool {
        self.files.path("plan.json").exists()
    }
}

fn message(run: &Run) -> String {
    let document = run.document();
    document["error"]["message"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn what_was_shown_is_what_runs() {
    let [home, away] = [namespace("home"), namespace("away")];
    let set = Set::secret(&home, "web");
    set.apply(&[
        config_map(&home, "kept", "1"),
        config_map(&home, "changed", "1"),
        service(&away, "gone", 80),
    ]);
    // This one is there, and is no member.
    cluster().create(&config_map(&away, "taken", "1"));
    let next = [
        config_map(&home, "kept", "1"),
        config_map(&home, "changed", "2"),
        config_map(&away, "taken", "1"),
        secret(&home, "new"),
    ];
    let state = cluster().state(&[&home, &away]);
    let plan = Plan::of(&set, &next);
    let shown = plan.save(Program::new(), &[]).expect(1);
    assert_eq!(cluster().state(&[&home, &away]), state);
    let mode = fs::metadata(plan.files.path("plan.json"))
        .expect("a file")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);

    let run = plan.apply_by(Program::new(), &["--dry-run=server"]).expect(0);
    assert_eq!(cluster().state(&[&home, &away]), state);
    assert_eq!(run.results("configured"), shown.results("configured"));
    let done = plan.apply().expect(0);
    for word in ["created", "configured", "unchanged", "pruned"] {
        assert_eq!(done.results(word), shown.results(word), "{word}");
    }
    assert_eq!(done.document()["command"], "apply");
    set.assert_holds(&next);
    // What is done cannot be done again.
    let after = cluster().state(&[&home, &away]);
    plan.apply().expect(3);
    assert_eq!(cluster().state(&[&home, &away]), after);
}

#[test]
fn a_new_set_with_all_that_it_needs_is_made_from_a_plan() {
    let [home, away] = [fresh("home"), fresh("away")];
    let group = format!("{}.example.com", fresh("g"));
    let set = Set::secret(&home, "web");
    let objects = [
        namespace_object(&home),
        namespace_object(&away),
        definition(&group, "Namespaced"),
        custom_resource(&group, Some(&away), "one"),
        config_map(&home, "two", "1"),
    ];
    let plan = Plan::saved(&set, &objects, &[]);
    assert_eq!(plan.apply().expect(0).results("created"), identities(&objects));
    set.assert_holds(&objects);
    // Nothing to do is a plan, too.
    let same = Plan::of(&set, &objects);
    same.save(Program::new(), &[]).expect(0);
    same.apply().expect(0);
}

#[test]
fn a_namespace_that_is_there_may_join_the_manifests_of_a_plan() {
    let [home, shop] = [namespace("home"), namespace("shop")];
    let set = Set::secret(&home, "web");
    cluster().create(&config_map(&shop, "taken", "1"));
    let objects = [namespace_object(&shop), config_map(&shop, "taken", "1")];
    let plan = Plan::saved(&set, &objects, &[]);
    assert_eq!(plan.apply().expect(0).results("configured"), identities(&objects));
    set.assert_holds(&objects);
}

/// Something that somebody does between the making of a plan and its carrying out.
type Meddling = fn(&str, &Set);

/// What of the message tells of it.
const MEDDLINGS: [(&str, Meddling); 14] = [
    (
        "configmap/changed in namespace HOME was changed meanwhile",
        |home, _| {
            cluster().patch(
                &config_map(home, "changed", "1"),
                &json!({"data": {"other": "1"}}),
            );
        },
    ),
    (
        "configmap/changed in namespace HOME was deleted meanwhile",
        |home, _| {
            cluster().delete(&config_map(home, "changed", "1"));
        },
    ),
    (
        "configmap/changed in namespace HOME was deleted and created again",
        |home, set| {
            let object = with(
                config_map(home, "changed", "1"),
                &json!({"metadata": {"labels": {PART_OF: set.id}}}),
            );
            cluster().delete(&object);
            cluster().apply_as("kubectl-applyset", &object);
        },
    ),
    (
        "configmap/kept in namespace HOME is not what it was: it would be sent",
        |home, _| {
            cluster().patch(&config_map(home, "kept", "1"), &json!({"data": {"key": "other"}}));
        },
    ),
    (
        "configmap/kept in namespace HOME was deleted meanwhile",
        |home, _| {
            cluster().delete(&config_map(home, "kept", "1"));
        },
    ),
    (
        "configmap/new in namespace HOME was created meanwhile",
        |home, _| {
            cluster().create(&config_map(home, "new", "1"));
        },
    ),
    (
        "configmap/gone in namespace HOME was changed meanwhile",
        |home, _| {
            cluster().patch(
                &config_map(home, "gone", "1"),
                &json!({"data": {"key": "worth keeping"}}),
            );
        },
    ),
    (
        "configmap/gone in namespace HOME was deleted meanwhile",
        |home, _| {
            cluster().delete(&config_map(home, "gone", "1"));
        },
    ),
    (
        "configmap/gone in namespace HOME left the set meanwhile",
        |home, _| {
            let none = json!({"metadata": {"labels": {PART_OF: null}}});
            cluster().patch(&config_map(home, "gone", "1"), &none);
        },
    ),
    (
        "configmap/joined in namespace HOME joined the set meanwhile",
        |home, set| {
            let object = with(
                config_map(home, "joined", "1"),
                &json!({"metadata": {"labels": {PART_OF: set.id}}}),
            );
            cluster().apply_as("kubectl-applyset", &object);
        },
    ),
    (
        "configmap/new in namespace HOME belongs to the set of secret/other",
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
        "the set's parent secret/web in namespace HOME was deleted meanwhile",
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
fn everything_that_moved_is_told_at_once() {
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
    let told = message(&plan.apply().expect(3));
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(
        lines[1..],
        [
            format!("configmap/one in namespace {home} was deleted meanwhile"),
            format!("configmap/three in namespace {home} was changed meanwhile"),
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
    let told = message(&plan.apply().expect(3));
    assert!(
        told.contains(&format!("namespace/{away} is not the one")),
        "{told}"
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

/// A proxy that has something done just before the first write of a run.
fn meddling(meddle: impl Fn() + Send + Sync + 'static) -> Proxy {
    Proxy::gated(move |writes| {
        if writes == 0 {
            meddle();
        }
        Verdict::Forward
    })
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
    let proxy = meddling(move || {
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
    let proxy = Proxy::gated(move |writes| {
        if writes == 3 {
            cluster().patch(&config_map(&place, "one", "2"), &json!({"data": {"key": "3"}}));
        }
        Verdict::Forward
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
    let proxy = meddling(move || {
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
    let told = message(&plan.apply().expect(3));
    assert!(
        told.contains("the set's parent configmap/web") && told.contains("was changed meanwhile"),
        "{told}"
    );
    assert_eq!(data(), json!({"key": "1", "other": "1"}));

    // What changes while the plan is carried out is not overwritten either.
    let plan = Plan::saved(&set, &manifests("2"), &[]);
    let parent = set.parent.clone();
    let proxy = meddling(move || {
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

fn login(namespace: &str, password: &str) -> Value {
    with(
        named("v1", "Secret", Some(namespace), "login"),
        &json!({"stringData": {"password": password}, "data": {"key": "aW4tdGhlLWRhdGE="}}),
    )
}

#[test]
fn values_of_secrets_are_read_from_the_manifests_again() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    set.apply(&[login(&home, "in-the-past")]);
    let next = [login(&home, "in-the-text"), config_map(&home, "one", "1")];
    let plan = Plan::saved(&set, &next, &[]);
    let text = plan.text();
    for value in ["in-the", "aW4tdGhl"] {
        assert!(!text.contains(value), "{value} in {text}");
    }
    let path = plan.files.path("manifests/objects.yaml");
    let state = cluster().state(&[&home]);
    fs::write(&path, objects_file(&[login(&home, "in-the-future")])).expect("a file");
    let told = message(&plan.apply().expect(3));
    assert!(
        told.contains("secret/login is not what the plan was made with"),
        "{told}"
    );
    fs::remove_file(&path).expect("removed");
    plan.apply().expect(2);
    assert_eq!(cluster().state(&[&home]), state);
    // Nothing but the Secret is taken from there.
    fs::write(
        &path,
        objects_file(&[config_map(&home, "one", "other"), next[0].clone()]),
    )
    .expect("a file");
    plan.apply().expect(0);
    let live = cluster().live(&next[0]).expect("a secret");
    assert_eq!(live["data"]["password"], "aW4tdGhlLXRleHQ=");
    let one = cluster().live(&next[1]).expect("a member");
    assert_eq!(one["data"]["key"], "1");
    set.assert_holds(&next);
}

#[test]
fn secrets_of_a_kustomization_are_made_again() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let kustomization = |password: &str| {
        format!(
            "namespace: {home}\nsecretGenerator:\n- name: login\n  literals: [password={password}]\n  options: {{disableNameSuffixHash: true}}\n"
        )
    };
    let files = Files::new()
        .with("web/kustomization.yaml", &kustomization("in-the-text"))
        .with_script(
            "kubectl",
            &format!("exec {} \"$@\"", ControlPlane::shared().kubectl().display()),
        );
    let path = format!("{}:/usr/bin:/bin", files.directory().display());
    let program = || Program::new().env("PATH", &path);
    let file = files.path("plan.json");
    let save = || {
        program()
            .args(["diff", &set.reference, "-n", &home, "-k"])
            .args([files.path("web").as_os_str(), "--out".as_ref(), file.as_os_str()])
            .run()
    };
    let apply = || {
        program()
            .args(["apply", "-o", "json", "--plan"])
            .args([&file])
            .run()
    };
    save().expect(1);
    let text = fs::read_to_string(&file).expect("a plan");
    assert!(
        !text.contains("in-the-text") && !text.contains("aW4tdGhlLXRleHQ"),
        "{text}"
    );
    fs::write(files.path("web/kustomization.yaml"), kustomization("other")).expect("a file");
    apply().expect(3);
    fs::write(files.path("web/kustomization.yaml"), kustomization("in-the-text")).expect("a file");
    apply().expect(0);
    let live = cluster().live(&login(&home, "")).expect("a secret");
    assert_eq!(live["data"]["password"], "aW4tdGhlLXRleHQ=");
}

#[test]
fn secrets_on_standard_input_cannot_be_saved() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let files = Files::new();
    let file = files.path("plan.json");
    let save = |objects: &[Value]| {
        Program::new()
            .args(["diff", &set.reference, "-n", &home, "-f", "-", "--out"])
            .args([&file])
            .input(&objects_file(objects))
            .run()
    };
    let refused = save(&[login(&home, "in-the-text")]).expect(2);
    assert!(refused.errors()[0].contains("secret/login"), "{}", refused.stderr);
    assert!(!file.exists());
    save(&[
        config_map(&home, "one", "1"),
        named("v1", "Secret", Some(&home), "empty"),
    ])
    .expect(1);
    Program::new()
        .args(["apply", "--plan"])
        .args([&file])
        .run()
        .expect(0);
    assert!(cluster().live(&config_map(&home, "one", "1")).is_some());
}

#[test]
fn secrets_in_a_pipe_cannot_be_saved() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let files = Files::new()
        .with("login.yaml", &objects_file(&[login(&home, "in-the-text")]))
        .with("map.yaml", &objects_file(&[config_map(&home, "one", "1")]));
    let file = files.path("plan.json");
    let save = |name: &str| {
        let script = r#"exec "$0" diff web -n "$1" --out "$2" -f <(cat "$3")"#;
        let mut command = std::process::Command::new("bash");
        command
            .env("KUBECONFIG", ControlPlane::shared().admin_kubeconfig())
            .args(["-c", script, env!("CARGO_BIN_EXE_kubectl-applyset"), &home])
            .args([&file, &files.path(name)]);
        command.output().expect("bash runs").status.code()
    };
    assert_eq!(save("login.yaml"), Some(2));
    assert!(!file.exists());
    assert_eq!(save("map.yaml"), Some(1));
    Program::new()
        .args(["apply", "--plan"])
        .args([&file])
        .run()
        .expect(0);
    set.assert_holds(&[config_map(&home, "one", "1")]);
}

#[test]
fn a_plan_that_could_not_be_carried_out_is_not_saved() {
    let home = namespace("home");
    let [set, other] = [Set::secret(&home, "web"), Set::secret(&home, "other")];
    other.apply(&[config_map(&home, "theirs", "1")]);
    let refused = Plan::of(&set, &[config_map(&home, "theirs", "1")]);
    let run = refused.save(Program::new(), &[]).expect(3);
    assert_eq!(run.document()["refusals"].as_array().map(Vec::len), Some(1));
    assert!(!refused.exists());
    let stolen = Plan::saved(&set, &[config_map(&home, "theirs", "1")], &["--steal"]);
    stolen.apply().expect(0);
    let failing = Plan::of(
        &set,
        &[config_map(&home, "theirs", "1"), service(&home, "bad", 0)],
    );
    failing.save(Program::new(), &[]).expect(3);
    assert!(!failing.exists());
}

#[test]
fn a_diff_that_fails_leaves_no_plan_of_an_earlier_run() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let plan = Plan::saved(&set, &[config_map(&home, "one", "1")], &[]);
    assert!(plan.exists());
    plan.save(Program::new(), &["--validate=perhaps"]).expect(2);
    assert!(plan.exists(), "a command line that is wrong starts nothing");
    plan.save(Program::new(), &["--kubeconfig=/not/there"]).expect(2);
    assert!(!plan.exists());
    fs::write(plan.files.path("plan.json"), "{\"kind\": \"Notes\"}").expect("a file");
    plan.save(Program::new(), &["--kubeconfig=/not/there"]).expect(2);
    assert!(plan.exists(), "what is no plan is not removed");
}

#[test]
fn a_dash_is_no_plan() {
    let home = namespace("home");
    let files = Files::new().with("a.yaml", &objects_file(&[config_map(&home, "one", "1")]));
    let file = files.path("a.yaml").display().to_string();
    let set = Set::secret(&home, "web");
    let run = Program::new()
        .args(["diff", &set.reference, "-n", &home, "-f", &file, "--out", "-"])
        .run()
        .expect(2);
    assert!(run.errors()[0].contains("--out -"), "{}", run.stderr);
    let run = Program::new().args(["apply", "--plan", "-"]).run().expect(2);
    assert!(run.errors()[0].contains("--plan -"), "{}", run.stderr);
}

#[test]
fn a_file_that_is_no_plan_is_refused() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let plan = Plan::saved(&set, &[config_map(&home, "one", "1")], &[]);
    let text = plan.text();
    for (from, to) in [
        ("\"key\": \"1\"", "\"key\": \"2\""),
        ("\"version\": 1", "\"version\": 2"),
        ("\"kind\": \"Plan\"", "\"kind\": \"Report\""),
        ("{", ""),
    ] {
        assert!(text.contains(from), "{from} in {text}");
        fs::write(plan.files.path("plan.json"), text.replacen(from, to, 1)).expect("a file");
        plan.apply().expect(2);
    }
    fs::write(plan.files.path("plan.json"), &text).expect("a file");
    plan.apply_by(Program::new(), &["-n", &home]).expect(2);
    plan.apply_by(Program::new(), &["web"]).expect(2);
    plan.apply_by(Program::new(), &["--prune=false"]).expect(2);
    plan.apply_by(Program::new(), &["--request-timeout=abc"])
        .expect(2);
    Program::new()
        .args(["apply", "--plan", "/no/such/plan"])
        .run()
        .expect(2);
    Program::new().args(["apply", "web"]).run().expect(2);
    Program::new().args(["apply", "-f", "x"]).run().expect(2);
    assert_eq!(set.live_parent(), None);
    plan.apply().expect(0);
}

#[test]
fn a_set_of_kubectl_is_taken_over_or_kept_as_the_plan_says() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let applyset = format!("--applyset={}", set.reference);
    kubectl_apply(
        &[config_map(&home, "one", "1")],
        &["--prune", &applyset, "-n", &home],
    )
    .expect(0);
    let tooling = set.annotation(TOOLING).expect("a tooling");
    let next = [config_map(&home, "one", "2")];
    Plan::of(&set, &next).save(Program::new(), &[]).expect(3);
    Plan::saved(&set, &next, &["--tooling", &tooling])
        .apply()
        .expect(0);
    assert_eq!(set.annotation(TOOLING), Some(tooling));
    set.assert_holds(&next);
    let last = [config_map(&home, "one", "3")];
    Plan::saved(&set, &last, &["--take-over"]).apply().expect(0);
    assert!(
        set.annotation(TOOLING)
            .is_some_and(|tooling| tooling.starts_with("kubectl-applyset/"))
    );
    set.assert_holds(&last);
    diff_is_empty(&set, &last);
}

#[test]
fn a_set_that_another_tool_takes_in_the_middle_is_left_to_it() {
    // The record is written before the first member, or does not change.
    for kind in ["Service", "ConfigMap"] {
        let home = namespace("home");
        let set = Set::secret(&home, "web");
        set.apply(&[config_map(&home, "one", "1")]);
        let new = match kind {
            "Service" => service(&home, "new", 80),
            _ => config_map(&home, "new", "1"),
        };
        let plan = Plan::saved(&set, &[config_map(&home, "one", "1"), new], &[]);
        let parent = set.parent.clone();
        let proxy = meddling(move || {
            let theirs = json!({"metadata": {"annotations": {TOOLING: "kubectl/v1.36.3"}}});
            cluster().patch(&parent, &theirs);
        });
        let run = plan.apply_by(Program::with_kubeconfig(&proxy.kubeconfig()), &[]);
        assert_ne!(run.code, 0, "{kind}: {}", run.stdout);
        assert_eq!(
            set.annotation(TOOLING).as_deref(),
            Some("kubectl/v1.36.3"),
            "{kind}"
        );
    }
}

fn diff_is_empty(set: &Set, objects: &[Value]) {
    let plan = Plan::of(set, objects);
    plan.save(Program::new(), &[]).expect(0);
}

#[test]
fn the_rights_of_apply_are_enough() {
    let [shop, other] = [namespace("shop"), namespace("other")];
    let set = Set::secret(&shop, "web");
    let objects = [
        config_map(&shop, "one", "1"),
        secret(&other, "two"),
        service(&shop, "web", 80),
    ];
    let user = user(&[]);
    let program = || Program::with_kubeconfig(&user.kubeconfig);
    grant_what_is_printed(&user, &set, &objects);
    for wanted in [&objects[..], &objects[..1]] {
        let plan = Plan::of(&set, wanted);
        plan.save(program(), &[]).expect(1);
        plan.apply_by(program(), &[]).expect(0);
        set.assert_holds(wanted);
    }
}

#[test]
fn a_plan_needs_no_rights_on_namespaces() {
    let [shop, other] = [namespace("shop"), namespace("other")];
    let set = Set::secret(&shop, "web");
    let rules = || {
        let verbs = ["get", "list", "create", "patch", "delete"];
        [
            rule("", "configmaps", &verbs),
            rule("", "secrets", &["get", "create", "patch"]),
        ]
    };
    let user = user(&[&shop, &other].map(|place| Grant::in_namespace(place, rules())));
    let [admin, least] = [
        ControlPlane::shared().admin_kubeconfig(),
        user.kubeconfig.as_path(),
    ];
    for (value, planner, doer) in [("1", admin, least), ("2", least, admin)] {
        let objects = [config_map(&shop, "one", value), config_map(&other, "two", value)];
        let plan = Plan::of(&set, &objects);
        plan.save(Program::with_kubeconfig(planner), &[]).expect(1);
        let run = plan.apply_by(Program::with_kubeconfig(doer), &[]).expect(0);
        let warnings = run.warnings();
        assert!(
            warnings.iter().any(|warning| warning.contains(&other)),
            "{warnings:?}"
        );
        set.assert_holds(&objects);
    }
}
