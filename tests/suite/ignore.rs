//! Fields that a set leaves to others with `--ignore`: no run changes them, and they count neither as
//! change nor as conflict.

use http::Method;
use serde_json::{Value, json};

use crate::support::{
    Files, Program, Proxy, Run, Set, cluster, config_map, deployment, kubectl_apply, named, namespace,
    objects_file, secret, service, with,
};

const REPLICAS: &str = "ignore:\n- paths: [/spec/replicas]\n  target: {kind: Deployment}\n";

/// A file of rules, and how it is passed.
struct Rules {
    files: Files,
}

impl Rules {
    fn of(text: &str) -> Self {
        Self {
            files: Files::new().with("ignore.yaml", text),
        }
    }

    fn flag(&self) -> String {
        format!("--ignore={}", self.files.path("ignore.yaml").display())
    }

    fn apply(&self, set: &Set, objects: &[Value], flags: &[&str]) -> Run {
        set.apply_with(objects, &[&[&*self.flag()], flags].concat())
    }
}

fn live(object: &Value, pointer: &str) -> Value {
    let live = cluster().live(object).expect("a live object");
    live.pointer(pointer).cloned().unwrap_or_default()
}

fn image(image: &str) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": "app", "image": image}]}}}})
}

/// Whether our manager owns the replicas of a Deployment by an apply.
fn owns_replicas(object: &Value) -> bool {
    let entries = live(object, "/metadata/managedFields");
    let ours = |entry: &&Value| entry["manager"] == "applyset" && entry["operation"] == "Apply";
    let ours = entries.as_array().and_then(|entries| entries.iter().find(ours));
    ours.is_some_and(|entry| entry.pointer("/fieldsV1/f:spec/f:replicas").is_some())
}

#[test]
fn a_field_that_a_controller_updates_keeps_its_value() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let rules = Rules::of(REPLICAS);
    let web = deployment(&home, "web", 2);
    rules.apply(&set, std::slice::from_ref(&web), &[]).expect(0);
    assert_eq!(live(&web, "/spec/replicas"), 2, "created from the manifest");

    cluster().patch(&web, &json!({"spec": {"replicas": 7}}));
    let proxy = Proxy::transparent();
    let run = set
        .apply_through(&proxy, std::slice::from_ref(&web), &[&rules.flag()])
        .expect(0);
    assert_eq!(run.results("unchanged").len(), 1, "{}", run.stdout);
    let is_about_it = |path: &str| path.contains("/deployments/web");
    assert!(
        !proxy.sent().iter().any(|sent| is_about_it(&sent.path)),
        "no request for it"
    );

    let next = with(deployment(&home, "web", 3), &image("app:2"));
    for dry_run in ["--dry-run=client", "--dry-run=server"] {
        let run = rules
            .apply(&set, std::slice::from_ref(&next), &[dry_run])
            .expect(0);
        assert_eq!(run.results("configured").len(), 1, "{}", run.stdout);
    }
    let proxy = Proxy::transparent();
    let run = set
        .apply_through(&proxy, std::slice::from_ref(&next), &[&rules.flag()])
        .expect(0);
    assert_eq!(run.results("configured").len(), 1, "{}", run.stdout);
    let about_it: Vec<Method> = proxy
        .sent()
        .into_iter()
        .filter(|sent| is_about_it(&sent.path))
        .map(|sent| sent.method)
        .collect();
    assert_eq!(about_it, [Method::PATCH], "the live values come from the LIST");
    assert_eq!(live(&next, "/spec/replicas"), 7);
    assert!(owns_replicas(&next), "sent as it is live");
    assert_eq!(live(&next, "/spec/template/spec/containers/0/image"), "app:2");

    let run = rules.apply(&set, std::slice::from_ref(&next), &[]).expect(0);
    assert_eq!(run.results("unchanged").len(), 1, "{}", run.stdout);
    // Without the rule, the manifest holds.
    set.apply_with(std::slice::from_ref(&next), &["--force-conflicts"])
        .expect(0);
    assert_eq!(live(&next, "/spec/replicas"), 3);
}

#[test]
fn a_field_that_another_manager_applied_is_left_to_it() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let rules = Rules::of(REPLICAS);
    let web = deployment(&home, "web", 2);
    set.apply(std::slice::from_ref(&web));
    let scaled = with(
        named("apps/v1", "Deployment", Some(&home), "web"),
        &json!({"spec": {"replicas": 5}}),
    );
    cluster().apply_as("autoscaler", &scaled);

    let next = with(web, &image("app:2"));
    let conflict = set.apply_with(std::slice::from_ref(&next), &[]).expect(1);
    assert!(conflict.stderr.contains("--ignore"), "{}", conflict.stderr);
    rules.apply(&set, std::slice::from_ref(&next), &[]).expect(0);

    assert_eq!(live(&next, "/spec/replicas"), 5);
    assert!(!owns_replicas(&next));
    let run = rules.apply(&set, std::slice::from_ref(&next), &[]).expect(0);
    assert_eq!(run.results("unchanged").len(), 1, "{}", run.stdout);
}

#[test]
fn a_field_that_left_the_manifest_and_is_ours_stays() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let rules = Rules::of("- paths: [/data/own]\n");
    let map = |data: &Value| {
        with(
            named("v1", "ConfigMap", Some(&home), "one"),
            &json!({"data": data}),
        )
    };
    set.apply(&[map(&json!({"own": "1", "other": "1"}))]);

    let run = rules.apply(&set, &[map(&json!({"other": "2"}))], &[]).expect(0);
    assert_eq!(live(&map(&json!({})), "/data"), json!({"own": "1", "other": "2"}));
    assert!(
        run.warnings()
            .iter()
            .any(|warning| warning.contains("no matching manifest has /data/own"))
    );
    set.apply(&[map(&json!({"other": "2"}))]);
    assert_eq!(live(&map(&json!({})), "/data"), json!({"other": "2"}));
}

#[test]
fn a_write_between_the_list_and_the_apply_is_not_undone() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let rules = Rules::of(REPLICAS);
    let [listed, new] = [deployment(&home, "listed", 2), deployment(&home, "new", 2)];
    set.apply(std::slice::from_ref(&listed));
    cluster().create(&new);
    // The first write is that of the record.
    let proxy = Proxy::before_write(1, {
        let objects = [listed.clone(), new.clone()];
        move || {
            for object in &objects {
                cluster().patch(object, &json!({"spec": {"replicas": 9}}));
            }
        }
    });
    let next = [listed, new].map(|object| with(object, &image("app:2")));

    set.apply_through(&proxy, &next, &[&rules.flag(), "--force-conflicts"])
        .expect(0);

    for object in &next {
        assert_eq!(live(object, "/spec/replicas"), 9);
        assert_eq!(live(object, "/spec/template/spec/containers/0/image"), "app:2");
    }
}

#[test]
fn fields_of_items_sets_and_atomic_lists_keep_their_values() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let rules = Rules::of(
        "- paths: [/spec/template/spec/containers/0/image, /spec/template/spec/containers/0/args/1]\n  \
         target: {kind: Deployment}\n\
         - paths: [/spec/ports/0/targetPort, /spec/ports/0/port, /metadata/annotations/example.com~1by]\n  \
         target: {kind: Service}\n\
         - paths: [/stringData/key, /metadata/finalizers/0]\n  target: {kind: Secret}\n",
    );
    let args = |image: &str, args: &Value| json!({"spec": {"template": {"spec": {"containers": [{"name": "app", "image": image, "args": args}]}}}});
    let mine = [
        with(deployment(&home, "web", 1), &args("app", &json!(["a", "b"]))),
        with(
            service(&home, "web", 80),
            &json!({"metadata": {"annotations": {"example.com/by": "us", "example.com/own": "1"}}}),
        ),
        with(
            named("v1", "Secret", Some(&home), "keys"),
            &json!({"stringData": {"key": "us", "own": "1"}}),
        ),
    ];
    rules.apply(&set, &mine, &[]).expect(0);
    cluster().patch(&mine[0], &args("theirs", &json!(["a", "theirs"])));
    let port = json!({"port": 80, "protocol": "TCP", "targetPort": 8080});
    cluster().patch(
        &mine[1],
        &json!({"spec": {"ports": [port]}, "metadata": {"annotations": {"example.com/by": "them"}}}),
    );
    cluster().patch(&mine[2], &json!({"data": {"key": "dGhlbQ=="}}));
    let run = rules.apply(&set, &mine, &[]).expect(0);
    assert_eq!(run.results("unchanged").len(), 3, "{}", run.stdout);

    let next = [
        with(mine[0].clone(), &args("app", &json!(["changed", "b"]))),
        with(
            mine[1].clone(),
            &json!({"metadata": {"annotations": {"example.com/own": "2"}}}),
        ),
        with(mine[2].clone(), &json!({"stringData": {"own": "2"}})),
    ];
    let run = rules.apply(&set, &next, &["--force-conflicts"]).expect(0);
    assert_eq!(run.results("configured").len(), 3, "{}", run.stdout);

    let container = live(&next[0], "/spec/template/spec/containers/0");
    assert_eq!(container["image"], "theirs");
    assert_eq!(container["args"], json!(["changed", "theirs"]));
    assert_eq!(live(&next[1], "/spec/ports/0/targetPort"), 8080);
    assert_eq!(live(&next[1], "/metadata/annotations/example.com~1by"), "them");
    assert_eq!(live(&next[1], "/metadata/annotations/example.com~1own"), "2");
    assert_eq!(live(&next[2], "/data/key"), "dGhlbQ==");
    let run = rules.apply(&set, &next, &[]).expect(0);
    assert_eq!(run.results("unchanged").len(), 3, "{}", run.stdout);
}

#[test]
fn an_object_that_is_taken_in_keeps_the_field_too() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let rules = Rules::of("- paths: [/data/key]\n");
    let [mine, other] = [config_map(&home, "one", "mine"), config_map(&home, "two", "mine")];
    cluster().create(&with(mine.clone(), &json!({"data": {"key": "theirs"}})));
    let others = Set::secret(&home, "others");
    others.apply(&[with(other.clone(), &json!({"data": {"key": "theirs"}}))]);

    let objects = [mine, other];
    let run = rules
        .apply(&set, &objects, &["--force-conflicts", "--take-ownership"])
        .expect(0);

    assert_eq!(run.results("configured").len(), 2, "{}", run.stdout);
    for object in &objects {
        assert_eq!(live(object, "/data/key"), "theirs");
    }
}

#[test]
fn diff_does_not_show_it_and_a_saved_plan_keeps_the_rules() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let rules = Rules::of(REPLICAS);
    let web = deployment(&home, "web", 2);
    rules.apply(&set, std::slice::from_ref(&web), &[]).expect(0);
    cluster().patch(&web, &json!({"spec": {"replicas": 7}}));
    let next = with(web, &image("app:2"));
    let files = Files::new().with("objects.yaml", &objects_file(std::slice::from_ref(&next)));
    let plan = Files::new();
    let diff = Program::new()
        .args(["diff", &set.reference, "-n", &home, &rules.flag(), "-f"])
        .args([files.directory()])
        .args(["--out".as_ref(), plan.path("plan.json").as_os_str()])
        .run()
        .expect(1);
    assert!(
        diff.stdout.contains("app:2") && !diff.stdout.contains("replicas: "),
        "{}",
        diff.stdout
    );

    // The plan does not depend on the file, nor on the ignored field.
    std::fs::remove_file(rules.files.path("ignore.yaml")).expect("a file");
    cluster().patch(&next, &json!({"spec": {"replicas": 8}}));
    Program::new()
        .args(["apply", "--plan"])
        .args([plan.path("plan.json")])
        .run()
        .expect(0);
    assert_eq!(live(&next, "/spec/replicas"), 8);
    assert_eq!(live(&next, "/spec/template/spec/containers/0/image"), "app:2");
    let both = Program::new()
        .args(["apply", "--ignore=x", "--plan"])
        .args([plan.path("plan.json")])
        .run();
    both.expect(2);
}

#[test]
fn the_parents_own_manifest_keeps_it_too() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let rules = Rules::of("- paths: [/data/key]\n  target: {name: web}\n");
    let parent = secret(&home, "web");
    rules
        .apply(&set, std::slice::from_ref(&parent), &["--allow-prune-all"])
        .expect(0);
    cluster().patch(&parent, &json!({"data": {"key": "dGhlbQ=="}}));
    let next = with(parent, &json!({"data": {"more": "dGhlbQ=="}}));
    rules
        .apply(
            &set,
            std::slice::from_ref(&next),
            &["--allow-prune-all", "--force-conflicts"],
        )
        .expect(0);
    assert_eq!(
        live(&next, "/data"),
        json!({"key": "dGhlbQ==", "more": "dGhlbQ=="})
    );
}

#[test]
fn a_bad_file_is_refused_before_anything_is_written() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let object = config_map(&home, "one", "1");
    for (text, expected) in [
        (
            "- paths:\n  - spec\n",
            "ignore.yaml:1: \"spec\" is not a JSON pointer",
        ),
        (
            "- paths: [/metadata/name]\n",
            "ignore.yaml:1: \"/metadata/name\" cannot be ignored",
        ),
        (
            "- kind: A\n  jqPathExpressions: [.spec]\n",
            "ignore.yaml:1: unknown field `jqPathExpressions`",
        ),
        ("a: [\n", "ignore.yaml"),
    ] {
        let run = Rules::of(text)
            .apply(&set, std::slice::from_ref(&object), &[])
            .expect(2);
        assert!(run.stderr.contains(expected), "{}", run.stderr);
    }
    assert!(cluster().live(&object).is_none());
    assert!(set.live_parent().is_none());
}

#[test]
fn rules_without_effect_are_warned_about() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let rules = Rules::of(&format!("{REPLICAS}- paths: [/data/key, /data/gone]\n"));
    let run = rules.apply(&set, &[config_map(&home, "one", "1")], &[]).expect(0);
    let warnings = run.warnings();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(
        warnings[0].ends_with("ignore.yaml:2: this rule matches no object of the manifests"),
        "{warnings:?}"
    );
    assert!(
        warnings[1].ends_with("ignore.yaml:4: no matching manifest has /data/gone"),
        "{warnings:?}"
    );
}

/// Takes in an object that exists, without force.
fn take_in(home: &str, rules: &Rules, object: &Value) {
    let set = Set::secret(home, "web");
    let run = rules.apply(&set, std::slice::from_ref(object), &[]).expect(0);
    assert_eq!(run.results("configured").len(), 1, "{}", run.stdout);
    let run = rules.apply(&set, std::slice::from_ref(object), &[]).expect(0);
    assert_eq!(run.results("unchanged").len(), 1, "{}", run.stdout);
}

#[test]
fn an_object_that_is_taken_in_has_no_conflict_at_the_field() {
    let rules = Rules::of("- paths: [/data/a]\n");
    for is_applied in [false, true] {
        let home = namespace("home");
        let map = named("v1", "ConfigMap", Some(&home), "one");
        let data = |data: &Value| with(map.clone(), &json!({"data": data}));
        let theirs = data(&json!({"a": "2", "b": "2"}));
        if is_applied {
            cluster().apply_as("autoscaler", &theirs);
        } else {
            cluster().create_as("kubectl-create", &theirs);
        }
        // Only the other field is in conflict.
        let mine = data(&json!({"a": "1", "b": "1"}));
        let refused = rules
            .apply(&Set::secret(&home, "refused"), &[mine], &[])
            .expect(1);
        let conflict = "Apply failed with 1 conflict:";
        assert!(refused.stderr.contains(conflict), "{}", refused.stderr);
        assert!(refused.stderr.contains(".data.b"), "{}", refused.stderr);

        take_in(&home, &rules, &data(&json!({"a": "1", "c": "1"})));
        assert_eq!(live(&map, "/data"), json!({"a": "2", "b": "2", "c": "1"}));
    }
}

#[test]
fn replicas_stay_when_an_object_of_client_side_apply_is_taken_in() {
    let home = namespace("home");
    let web = deployment(&home, "web", 2);
    kubectl_apply(std::slice::from_ref(&web), &["-n", &home]).expect(0);
    cluster().scale(&web, 5);
    let next = with(web, &image("app:2"));

    take_in(&home, &Rules::of(REPLICAS), &next);

    assert_eq!(live(&next, "/spec/replicas"), 5);
    assert_eq!(live(&next, "/spec/template/spec/containers/0/image"), "app:2");
}

#[test]
fn a_write_of_the_field_during_a_run_makes_no_conflict() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let rules = Rules::of(&format!(
        "{REPLICAS}- paths: [/data/key]\n  target: {{kind: Secret}}\n"
    ));
    // The Secret is the parent.
    let objects = [deployment(&home, "web", 2), secret(&home, "web")];
    rules.apply(&set, &objects, &["--allow-prune-all"]).expect(0);

    for (write, theirs) in ["YQ==", "Yg==", "Yw=="].into_iter().enumerate() {
        let replicas = write + 7;
        let proxy = Proxy::before_write(write, {
            let objects = objects.clone();
            move || {
                cluster().patch(&objects[0], &json!({"spec": {"replicas": replicas}}));
                cluster().patch(&objects[1], &json!({"data": {"key": theirs}}));
            }
        });
        let [web, parent] = objects.clone();
        let next = [
            with(web, &image(&format!("app:{write}"))),
            with(parent, &json!({"data": {"more": theirs}})),
        ];
        set.apply_through(&proxy, &next, &[&rules.flag(), "--allow-prune-all"])
            .expect(0);
        assert_eq!(live(&next[0], "/spec/replicas"), replicas);
        assert_eq!(live(&next[1], "/data"), json!({"key": theirs, "more": theirs}));
    }
}
