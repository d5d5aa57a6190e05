//! `diff --plan` compares the cluster with what a saved plan applied, without its sources.

use std::fs;

use serde_json::{Value, json};

use super::Plan;
use crate::support::{
    Program, Proxy, Run, Sent, Set, cluster, config_map, deployment, identities, named, namespace, with,
};

impl Plan {
    /// A plan that has been saved and applied, and whose manifests are gone.
    fn carried_out(set: &Set, objects: &[Value]) -> Self {
        let plan = Self::saved(set, objects, &[]);
        plan.apply().expect(0);
        fs::remove_dir_all(plan.files.path("manifests")).expect("removed");
        plan
    }

    fn compare(&self, flags: &[&str]) -> Run {
        self.compare_by(Program::new(), flags)
    }

    fn compare_by(&self, program: Program, flags: &[&str]) -> Run {
        program
            .args(["diff", "-o", "json", "--plan"])
            .args([self.files.path("plan.json")])
            .args(flags)
            .run()
    }

    /// Asserts the exit codes for any difference and by word.
    #[track_caller]
    fn assert_codes(&self, any: i32, by_word: [i32; 3]) -> Run {
        for (word, code) in ["drift", "change", "prune"].into_iter().zip(by_word) {
            let run = self.compare(&["--exit-code-on", word]);
            assert_eq!(run.code, code, "{word}: {}", run.stderr);
        }
        self.compare(&[]).expect(any)
    }
}

fn login(namespace: &str) -> Value {
    with(
        named("v1", "Secret", Some(namespace), "login"),
        &json!({
            "stringData": {"password": "in-the-text"},
            // The server ignores line breaks, and stores null as the empty text.
            "data": {"key": "aW4tdGhl\nLWRhdGE=", "none": null},
        }),
    )
}

#[test]
fn what_changed_since_a_plan_was_applied_is_drift() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    set.apply(&[config_map(&home, "old", "1")]);
    let objects = [
        config_map(&home, "one", "1"),
        config_map(&home, "two", "1"),
        deployment(&home, "web", 1),
    ];
    let plan = Plan::carried_out(&set, &objects);
    let run = plan.assert_codes(0, [0, 0, 0]);
    assert_eq!(run.warnings(), [""; 0]);
    assert_eq!(run.drift(), ["one: false", "two: false", "web: false"]);
    let run = plan.compare(&["--exit-code-on=drift"]).expect(0);
    assert!(!run.stderr.contains("differs from the plan"), "{}", run.stderr);

    cluster().scale(&objects[2], 3);
    cluster().delete(&objects[1]);
    // A label that is removed leaves no trace in managed fields.
    cluster().patch(&objects[0], &json!({"data": {"key": null}}));
    let state = cluster().state(&[&home]);
    let proxy = Proxy::transparent();
    let run = plan
        .compare_by(Program::with_kubeconfig(&proxy.kubeconfig()), &[])
        .expect(1);
    assert_eq!(run.results("configured"), identities([&objects[0], &objects[2]]));
    assert_eq!(run.results("created"), identities([&objects[1]]));
    for sent in proxy.sent() {
        let is_dry = sent.path.contains("dryRun=All");
        assert!(!sent.is_write() || is_dry, "{} {}", sent.method, sent.path);
    }
    assert_eq!(run.drift(), ["one: true", "two: true", "web: true"]);
    plan.assert_codes(1, [1, 1, 0]);
    let run = plan.compare(&["--exit-code-on=drift"]).expect(1);
    for drift in [
        format!("note: configmap/one in namespace {home} differs from the plan: data\n"),
        format!("note: configmap/two in namespace {home} differs from the plan: it does not exist\n"),
        format!("note: deployment.apps/web in namespace {home} differs from the plan: spec.replicas by "),
    ] {
        assert!(run.stderr.contains(&drift), "{drift}{}", run.stderr);
    }
    assert_eq!(cluster().state(&[&home]), state);
}

#[test]
fn a_member_that_the_plan_does_not_have_would_be_pruned() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects = [config_map(&home, "one", "1")];
    let plan = Plan::carried_out(&set, &objects);
    let more = [objects[0].clone(), config_map(&home, "more", "1")];
    set.apply(&more);
    let run = plan.assert_codes(1, [0, 0, 1]);
    assert_eq!(run.results("pruned"), identities([&more[1]]));
    assert_eq!(run.drift(), ["more: false", "one: false"]);
    let warning = "the last run that changed the set used other manifests than this plan";
    assert_eq!(run.warnings(), [warning]);
}

#[test]
fn values_of_secrets_are_compared_by_their_digests() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects = [login(&home), config_map(&home, "one", "1")];
    let plan = Plan::carried_out(&set, &objects);
    plan.assert_codes(0, [0, 0, 0]);
    // The first one is what a placeholder would be.
    for value in ["Kioq", "aW4tdGhlLWZ1dHVyZQ=="] {
        cluster().patch(&objects[0], &json!({"data": {"password": value}}));
        plan.assert_codes(1, [1, 1, 0]);
        let proxy = Proxy::transparent();
        let run = plan.compare_by(Program::with_kubeconfig(&proxy.kubeconfig()), &[]);
        assert_eq!(run.results("configured"), identities([&objects[0]]));
        // Nothing but the real object may be sent to admission.
        let mut sent = proxy.sent().into_iter();
        assert!(!sent.any(|sent| sent.is_write() && sent.path.contains("/secrets/login")));
        let document = run.document().to_string();
        assert!(document.contains("/data/password"), "{document}");
        for shown in ["/data/key", value, "in-the"] {
            assert!(!document.contains(shown), "{shown} in {document}");
        }
    }
    cluster().patch(&objects[0], &json!({"data": {"password": "aW4tdGhlLXRleHQ="}}));
    cluster().delete(&objects[0]);
    let run = plan.assert_codes(1, [1, 1, 0]);
    assert_eq!(run.results("created"), identities([&objects[0]]));
}

#[test]
fn a_secret_that_is_being_deleted_is_not_sent_without_its_values() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects = [login(&home), config_map(&home, "one", "1")];
    let plan = Plan::saved(&set, &objects, &["--recreate=Secret"]);
    plan.apply().expect(0);
    // The plan has only a digest of the value that the Secret had.
    let held = json!({"metadata": {"finalizers": ["example.com/hold"]}, "data": {"password": "aW4tdGhlLWZ1dHVyZQ=="}});
    cluster().patch(&objects[0], &held);
    cluster().delete(&objects[0]);
    let proxy = Proxy::transparent();
    let run = plan.compare_by(Program::with_kubeconfig(&proxy.kubeconfig()), &[]);
    assert_eq!(
        run.results("recreated"),
        identities([&objects[0]]),
        "{}",
        run.stderr
    );
    let writes = proxy.sent().into_iter().filter(Sent::is_write);
    let paths: Vec<String> = writes.map(|sent| sent.path).collect();
    // The parent is a Secret, too.
    assert!(
        paths
            .iter()
            .all(|path| !path.contains("/secrets") || path.contains("/secrets/web")),
        "{paths:?}"
    );
    cluster().patch(&objects[0], &json!({"metadata": {"finalizers": null}}));
}

#[test]
fn a_comparison_with_a_plan_takes_no_flag_that_changes_a_plan() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let plan = Plan::carried_out(&set, &[config_map(&home, "one", "1")]);
    for flags in [
        &["--out", "other.json"][..],
        &["web"],
        &["-n", "other"],
        &["-f", "manifests"],
        &["--force-conflicts"],
        &["--allow-data-loss"],
    ] {
        plan.compare(flags).expect(2);
    }
    plan.compare(&["--full", "-v"]).expect(0);
    fs::write(plan.files.path("plan.json"), "{}").expect("a file");
    let run = plan.compare(&[]).expect(2);
    assert!(run.errors()[0].contains("not a saved plan"), "{}", run.stderr);
}
