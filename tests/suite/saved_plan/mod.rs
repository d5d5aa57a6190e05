//! A saved plan is carried out exactly as it was shown, or not at all.

mod compared;
mod overtaken;
mod secrets;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use controlplane::{ControlPlane, Grant};
use serde_json::{Value, json};

use super::rights::{grant_what_is_printed, rule, user};
use crate::support::{
    Files, Program, Proxy, Run, Set, TOOLING, cluster, config_map, custom_resource, definition, fresh,
    identities, kubectl_apply, namespace, namespace_object, objects_file, secret, service,
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
    // This one is there, and is not a member.
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

#[test]
fn a_plan_that_could_not_be_carried_out_is_not_saved() {
    let home = namespace("home");
    let [set, other] = [Set::secret(&home, "web"), Set::secret(&home, "other")];
    other.apply(&[config_map(&home, "theirs", "1")]);
    let refused = Plan::of(&set, &[config_map(&home, "theirs", "1")]);
    let run = refused.save(Program::new(), &[]).expect(3);
    assert_eq!(run.document()["refusals"].as_array().map(Vec::len), Some(1));
    assert!(!refused.exists());
    for flags in [&[][..], &["-q"]] {
        let run = refused.save(Program::new(), flags).expect(3);
        let reported = run.stderr.matches("belongs to secret/other").count();
        assert_eq!(reported, 1, "{}", run.stderr);
    }
    let stolen = Plan::saved(&set, &[config_map(&home, "theirs", "1")], &["--take-ownership"]);
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
    let run = plan.save(Program::new(), &["--kubeconfig=/not/there"]).expect(2);
    assert!(!plan.exists());
    assert!(
        run.stderr
            .contains("plan.json: the plan of an earlier run was removed"),
        "{}",
        run.stderr
    );
    fs::write(plan.files.path("plan.json"), "{\"kind\": \"Notes\"}").expect("a file");
    plan.save(Program::new(), &["--kubeconfig=/not/there"]).expect(2);
    assert!(plan.exists(), "a file that is not a plan is kept");
}

#[test]
fn a_dash_is_not_a_plan() {
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
fn a_file_that_is_not_a_plan_is_refused() {
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
    Plan::saved(&set, &last, &["--take-over-set"]).apply().expect(0);
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
        let proxy = Proxy::before_write(0, move || {
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
        plan.apply_by(Program::with_kubeconfig(doer), &[]).expect(0);
        set.assert_holds(&objects);
    }
}

#[test]
fn a_file_that_has_no_end_is_not_read_to_its_end() {
    for flag in ["--plan", "--kubeconfig", "--ignore", "--wait-rules"] {
        let set: &[&str] = if flag == "--plan" {
            &[]
        } else {
            &["web", "-f", "-"]
        };
        let run = Program::new()
            .args(["apply"])
            .args(set)
            .args([flag, "/dev/zero"])
            .run()
            .expect(2);
        let reason = if flag == "--plan" {
            "not a regular file"
        } else {
            "larger than 1 MiB"
        };
        assert!(run.stderr.contains(reason), "{flag}: {}", run.stderr);
    }
}
