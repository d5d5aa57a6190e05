//! `list` and `view`: what they show of the sets of a namespace and of the cluster, and
//! what they show a user with few rights.

use controlplane::{ControlPlane, Grant, User};
use serde_json::{Value, json};

use crate::support::{
    GROUP_KINDS, PART_OF, Program, Set, TOOLING, cluster, cluster_role, config_map, custom_resource,
    definition, deployment, fresh, kubectl_apply, named, namespace, secret, service, with,
};

/// The entries of a `list` for these sets, in the order of the list.
fn listed(document: &Value, sets: &[&Set]) -> Vec<Value> {
    let all = document["sets"].as_array().expect("sets");
    let is_ours = |entry: &&Value| sets.iter().any(|set| entry["id"] == *set.id);
    all.iter().filter(is_ours).cloned().collect()
}

#[test]
fn sets_are_listed_by_namespace_or_all() {
    let [a, b] = [namespace("a"), namespace("b")];
    let group = format!("{}.example.com", fresh("g"));
    cluster().define(&definition(&group, "Cluster"));
    cluster().create(&custom_resource(&group, None, "web"));
    let sets = [
        Set::secret(&a, "web"),
        Set::config_map(&b, "web"),
        Set::custom(&group, None, &a),
    ];
    let role = cluster_role(&fresh("role"));
    sets[0].apply(&[config_map(&a, "one", "1"), service(&b, "web", 80), role]);
    sets[1].apply(&[config_map(&b, "two", "1")]);
    sets[2].apply(&[secret(&b, "three")]);

    let run = Program::new().args(["list", "-A", "-o", "json"]).run().expect(0);
    let document = run.document();
    assert_eq!(document["apiVersion"], "kubectl-applyset/v1");
    let mut everywhere = listed(&document, &sets.each_ref());
    assert_eq!(everywhere.len(), 3);
    for entry in &mut everywhere {
        let last_run = entry["lastRun"].take();
        let history = Program::new().args(["history", "-o", "json", "-n", &a]);
        if entry["id"] == *sets[0].id {
            let history = history.args(["web"]).run().expect(0).document();
            assert_eq!(last_run, history["runs"][0]);
        }
        assert_eq!(last_run["result"], "done");
    }
    let of_a = everywhere.iter().find(|entry| entry["id"] == *sets[0].id);
    let tooling = concat!("kubectl-applyset/v", env!("CARGO_PKG_VERSION"));
    let expected = json!({
        "id": sets[0].id, "kind": "Secret", "group": "", "namespace": a, "name": "web",
        "tooling": tooling,
        "groupKinds": ["ClusterRole.rbac.authorization.k8s.io", "ConfigMap", "Service"],
        "namespaces": [a, b],
        "members": 3, "status": "consistent", "faults": [], "runs": [], "lastRun": null, "expires": null,
    });
    assert_eq!(of_a, Some(&expected));
    let custom = everywhere.iter().find(|entry| entry["id"] == *sets[2].id);
    let custom = custom.expect("the custom resource's set");
    assert_eq!(
        (&custom["kind"], &custom["group"]),
        (&json!("Widget"), &json!(group))
    );
    assert_eq!(custom["namespaces"], json!([b]));

    let run = Program::new()
        .args(["list", "-n", &b, "-o", "json"])
        .run()
        .expect(0);
    let of_b = run.document();
    assert!(
        of_b["sets"]
            .as_array()
            .expect("sets")
            .iter()
            .any(|entry| entry["id"] == *sets[1].id)
    );
    assert_eq!(listed(&of_b, &[&sets[0]]), Vec::<Value>::new());

    let run = Program::new().args(["list", "-n", &a]).run().expect(0);
    assert!(
        run.stdout
            .lines()
            .any(|line| line.contains("secret/web") && line.contains('3') && line.contains("done ")),
        "{}",
        run.stdout
    );
}

#[test]
fn a_namespace_without_sets_has_an_empty_list() {
    let home = namespace("home");
    cluster().create(&secret(&home, "plain"));
    let run = Program::new()
        .args(["list", "-n", &home, "-o", "json"])
        .run()
        .expect(0);
    let of_namespace = |entry: &&Value| entry["namespace"] == *home;
    let document = run.document();
    let sets = document["sets"].as_array().expect("sets");
    assert_eq!(sets.iter().filter(of_namespace).count(), 0);
}

#[test]
fn a_set_is_viewed_with_its_members() {
    let [a, b] = [namespace("a"), namespace("b")];
    let set = Set::secret(&a, "web");
    let objects = [config_map(&a, "one", "1"), service(&b, "two", 80)];
    set.apply(&objects);
    let before = cluster().state(&[&a, &b]);

    let run = Program::new()
        .args(["view", "web", "-n", &a, "-o", "json"])
        .run()
        .expect(0);

    let document = run.document();
    assert_eq!(document["id"], *set.id);
    assert_eq!(document["status"], "consistent");
    assert_eq!(document["namespaces"], json!([a, b]));
    let of = |object: &Value, field: &str| cluster().live(object).expect("it")["metadata"][field].clone();
    let expected = json!([
        {"group": "", "version": "v1", "kind": "ConfigMap", "resource": "configmaps", "namespace": a,
         "name": "one", "uid": of(&objects[0], "uid"), "status": "Current", "reason": "it exists",
         "rule": "kstatus rule of its kind", "created": of(&objects[0], "creationTimestamp")},
        {"group": "", "version": "v1", "kind": "Service", "resource": "services", "namespace": b,
         "name": "two", "uid": of(&objects[1], "uid"), "status": "Current", "reason": "it exists",
         "rule": "kstatus rule of its kind", "created": of(&objects[1], "creationTimestamp")},
    ]);
    assert_eq!(document["members"], expected);

    let run = Program::new()
        .args(["view", "secret/web", "-n", &a])
        .run()
        .expect(0);
    for text in [
        "   configmap/one   Current   ",
        "   service/two     Current   ",
        &a,
        &b,
        &set.id,
    ] {
        assert!(run.stdout.contains(text), "no {text:?} in\n{}", run.stdout);
    }
    let run = Program::new()
        .args(["view", "web", "-n", &a, "-o", "name"])
        .run()
        .expect(0);
    assert_eq!(run.stdout, "configmap/one\nservice/two\n");
    assert_eq!(cluster().state(&[&a, &b]), before);
}

#[test]
fn what_is_off_with_members_is_shown() {
    let home = namespace("home");
    let web = deployment(&home, "web", 2);
    let going = with(
        config_map(&home, "going", "1"),
        &json!({"metadata": {"finalizers": ["example.com/held"]}}),
    );
    let job = with(
        named("batch/v1", "Job", Some(&home), "job"),
        &json!({"spec": {"template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "app", "image": "app"}],
        }}}}),
    );
    // A set of kubectl's is viewed like any other.
    let flags = ["-n", &home, "--prune", "--applyset=web"];
    kubectl_apply(&[web.clone(), going.clone(), job.clone()], &flags).expect(0);
    cluster().delete(&going);
    cluster().patch_status(
        &web,
        &json!({"replicas": 2, "observedGeneration": 1, "updatedReplicas": 1}),
    );
    cluster().fail_job(&job);
    let before = cluster().state(&[&home]);

    let view = |format: &[&str]| {
        Program::new()
            .args(["view", "web", "-n", &home])
            .args(format)
            .run()
            .expect(0)
    };
    let document = view(&["-o", "json"]).document();
    let members = document["members"].as_array().expect("members");
    let reported: Vec<_> = members
        .iter()
        .map(|member| {
            (
                member["name"].as_str(),
                member["status"].as_str(),
                member["reason"].as_str(),
            )
        })
        .collect();
    let waits = "it is being deleted, waiting: finalizer example.com/held";
    assert_eq!(
        reported,
        [
            (Some("going"), Some("Terminating"), Some(waits)),
            (
                Some("web"),
                Some("InProgress"),
                Some("1 of 2 replicas are of the latest revision")
            ),
            (
                Some("job"),
                Some("Failed"),
                Some("BackoffLimitExceeded: too often")
            ),
        ]
    );
    let page = view(&[]).stdout;
    let of_members = "Members:    3 (1 InProgress, 1 Failed, 1 Terminating)";
    assert!(page.lines().any(|line| line == of_members), "{page}");
    let table = view(&["-o", "wide"]).stdout;
    let row = |name: &str| {
        table
            .lines()
            .find(|line| line.contains(name))
            .unwrap_or_default()
            .to_owned()
    };
    assert_eq!(table.lines().count(), 4, "{table}");
    assert!(row("NAMESPACE").ends_with("REASON"), "{table}");
    assert!(
        row("deployment.apps/web").ends_with("1 of 2 replicas are of the latest revision"),
        "{table}"
    );
    assert_eq!(cluster().state(&[&home]), before);
    cluster().patch(&going, &json!({"metadata": {"finalizers": null}}));
}

#[test]
fn wide_tables_are_of_list_and_view_alone() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    set.apply(&[config_map(&home, "one", "1")]);
    let run = Program::new()
        .args(["list", "-n", &home, "-o", "wide"])
        .run()
        .expect(0);
    assert!(run.stdout.contains(&set.id), "{}", run.stdout);
    let run = set
        .deletion(Program::new())
        .args(["--yes", "-o", "wide"])
        .run()
        .expect(2);
    assert!(run.stderr.contains("hint: "), "{}", run.stderr);
    set.assert_holds(&[config_map(&home, "one", "1")]);
}

#[test]
fn a_set_that_does_not_exist_cannot_be_viewed() {
    let home = namespace("home");
    let run = Program::new()
        .args(["view", "web", "-n", &home, "-o", "json"])
        .run()
        .expect(2);
    assert_eq!(run.stdout, "");
    assert_eq!(run.errors().len(), 1, "{}", run.stderr);
    // An ordinary object of that name is not a set either.
    cluster().create(&secret(&home, "web"));
    let run = Program::new().args(["view", "web", "-n", &home]).run().expect(2);
    assert_eq!(run.stdout, "");
}

#[test]
fn a_set_whose_last_run_failed_is_unfinished() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    set.apply(&[config_map(&home, "one", "1")]);
    set.apply_with(&[service(&home, "bad", 0)], &[]).expect(1);
    let run = Program::new()
        .args(["view", "web", "-n", &home, "-o", "json"])
        .run()
        .expect(0);
    assert_eq!(run.document()["status"], "unfinished");
}

#[test]
fn sets_with_faults_and_sets_of_other_tools_are_shown() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    set.apply(&[config_map(&home, "one", "1")]);
    let patch = json!({"metadata": {"annotations": {TOOLING: "kubectl/v1.36.3"}}});
    cluster().patch(&set.parent, &patch);
    let run = Program::new()
        .args(["view", "web", "-n", &home, "-o", "json"])
        .run()
        .expect(0);
    assert_eq!(run.document()["tooling"], "kubectl/v1.36.3");

    let patch = json!({"metadata": {"annotations": {GROUP_KINDS: "v2:x"}}});
    cluster().patch(&set.parent, &patch);
    let run = Program::new()
        .args(["list", "-n", &home, "-o", "json"])
        .run()
        .expect(0);
    let entries = listed(&run.document(), &[&set]);
    assert_eq!(entries[0]["status"], "invalid");
    assert_ne!(entries[0]["faults"], json!([]));
    // It is unknown where to look for its members.
    assert_eq!(entries[0]["members"], Value::Null);
    let run = Program::new()
        .args(["status", "-v", "web", "-n", &home])
        .run()
        .expect(0);
    assert!(
        run.stdout.lines().any(|line| line == "Members:    ?"),
        "{}",
        run.stdout
    );
}

#[test]
fn a_recorded_kind_that_is_gone_is_shown_and_warned_of() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    set.apply(&[config_map(&home, "one", "1")]);
    let kinds = "ConfigMap,Gone.example.com";
    cluster().patch(
        &set.parent,
        &json!({"metadata": {"annotations": {GROUP_KINDS: kinds}}}),
    );
    for command in [&["list"][..], &["view", "web"]] {
        let run = Program::new()
            .args(command)
            .args(["-n", &home, "-o", "json"])
            .run()
            .expect(0);
        let document = run.document();
        let entry = document.pointer("/sets/0").unwrap_or(&document);
        assert_eq!(entry["groupKinds"], json!(["ConfigMap", "Gone.example.com"]));
        assert_eq!(entry["status"], "unfinished");
        let warnings = run.warnings();
        assert!(
            warnings
                .iter()
                .any(|warning| warning.contains("Gone.example.com")),
            "{warnings:?}"
        );
        assert!(run.stderr.contains("warning: "), "{}", run.stderr);
    }
}

#[test]
fn a_set_with_a_member_outside_the_record_is_invalid() {
    let [a, b] = [namespace("a"), namespace("b")];
    let [set, other] = [Set::secret(&a, "web"), Set::secret(&a, "other")];
    set.apply(&[config_map(&a, "one", "1")]);
    other.apply(&[config_map(&b, "two", "1")]);
    let stray = with(
        config_map(&b, "stray", "1"),
        &json!({"metadata": {"labels": {PART_OF: set.id}}}),
    );
    cluster().apply_as("kubectl", &stray);
    let run = Program::new()
        .args(["ls", "-n", &a, "-o", "json", "-v", "6"])
        .run()
        .expect(0);
    let entries = listed(&run.document(), &[&other, &set]);
    assert_eq!(entries[0]["status"], "consistent");
    assert_eq!(entries[1]["status"], "invalid");
    let warnings = run.warnings();
    assert!(
        warnings.iter().any(|warning| warning.contains(&b)),
        "{warnings:?}"
    );
}

/// A user who may read these resources in one namespace, and nothing else.
fn reader(namespace: &str, resources: &[&str]) -> User {
    let rule = json!({"apiGroups": [""], "resources": resources, "verbs": ["get", "list"]});
    ControlPlane::shared()
        .user(&[Grant::in_namespace(namespace, [rule])])
        .expect("a user")
}

#[test]
fn what_may_not_be_listed_hides_nothing_else() {
    let home = namespace("home");
    let [one, two] = [Set::secret(&home, "one"), Set::secret(&home, "two")];
    one.apply(&[config_map(&home, "one", "1"), service(&home, "one", 80)]);
    two.apply(&[service(&home, "two", 80)]);
    let by_config_map = Set::config_map(&home, "three");
    by_config_map.apply(&[secret(&home, "three")]);
    let user = |resources: &[&str]| reader(&home, resources);
    let list = |resources: &[&str]| {
        Program::with_kubeconfig(&user(resources).kubeconfig)
            .args(["list", "-n", &home, "-o", "json"])
            .run()
            .expect(0)
    };

    // Services may not be listed.
    let run = list(&["secrets", "configmaps"]);
    let entries = listed(&run.document(), &[&one, &two, &by_config_map]);
    let reported = |entry: &Value| (entry["members"].clone(), entry["status"].clone());
    let of = |set: &Set| reported(entries.iter().find(|entry| entry["id"] == *set.id).expect("it"));
    assert_eq!(of(&one), (json!(1), json!("unknown")));
    assert_eq!(of(&two), (Value::Null, json!("unknown")));
    assert_eq!(of(&by_config_map), (json!(1), json!("consistent")));
    let of_services = |warning: &&String| warning.contains("services: cannot be listed");
    assert_eq!(run.warnings().iter().filter(of_services).count(), 1);

    // Neither may Secrets, which are most of the parents.
    let run = list(&["configmaps"]);
    let document = run.document();
    assert_eq!(listed(&document, &[&one, &two]), Vec::<Value>::new());
    assert_eq!(listed(&document, &[&by_config_map]).len(), 1);
    let of_secrets = |warning: &&String| warning.contains("secrets: cannot be listed");
    assert!(run.warnings().iter().any(|warning| of_secrets(&warning)));

    // The one set, without its members.
    let viewer = user(&["secrets"]);
    let view = |flags: &[&str]| {
        Program::with_kubeconfig(&viewer.kubeconfig)
            .args(["view", "two", "-n", &home])
            .args(flags)
            .run()
            .expect(0)
    };
    let document = view(&["-o", "json"]).document();
    assert_eq!(document["members"], Value::Null);
    assert_eq!(document["groupKinds"], json!(["Service"]));
    let run = view(&[]);
    assert!(
        run.stdout.lines().any(|line| line == "Members:    ?"),
        "{}",
        run.stdout
    );
}

#[test]
fn no_set_among_those_that_may_be_listed_is_not_the_absence_of_sets() {
    let home = namespace("home");
    Set::secret(&home, "web").apply(&[config_map(&home, "one", "1")]);
    let empty = namespace("empty");
    for command in ["list", "verify"] {
        let run = |namespace: &str, resources: &[&str]| {
            Program::with_kubeconfig(&reader(namespace, resources).kubeconfig)
                .args([command, "-n", namespace, "-o", "json"])
                .run()
        };
        let document = run(&home, &["configmaps"]).expect(4).document();
        assert_eq!(document["sets"], json!([]), "{command}");
        let message = document["error"]["message"].as_str().expect("a message");
        assert!(message.contains("secrets"), "{command}: {message}");
        run(&empty, &["configmaps", "secrets"]).expect(0);
    }
}

#[test]
fn custom_parents_that_cannot_be_listed_do_not_hide_that_there_is_no_set() {
    let group = format!("{}.example.com", fresh("holders"));
    cluster().define(&definition(&group, "Namespaced"));
    let empty = namespace("empty");
    let parents = json!({"apiGroups": [""], "resources": ["configmaps", "secrets"], "verbs": ["list"]});
    let definitions = json!({
        "apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": ["list"],
    });
    let user = ControlPlane::shared()
        .user(&[
            Grant::in_namespace(&empty, [parents]),
            Grant::everywhere([definitions]),
        ])
        .expect("a user");
    for command in ["list", "verify"] {
        let run = Program::with_kubeconfig(&user.kubeconfig)
            .args([command, "-n", &empty, "-o", "json"])
            .run()
            .expect(0);
        let of_group = |warning: &&String| warning.contains(&group);
        assert!(
            run.warnings().iter().any(|warning| of_group(&warning)),
            "{command}"
        );
    }
}

#[test]
fn the_document_is_printed_where_the_cluster_says_no() {
    let home = namespace("home");
    let without_rights = ControlPlane::shared().user(&[]).expect("a user");
    for command in [&["list"][..], &["view", "web"]] {
        let run = |format: &str| {
            Program::with_kubeconfig(&without_rights.kubeconfig)
                .args(command)
                .args(["-n", &home, "-o", format])
                .run()
                .expect(4)
        };
        let json = run("json");
        let document = json.document();
        assert_eq!(document["apiVersion"], "kubectl-applyset/v1");
        assert_eq!(document["error"]["exitCode"], 4);
        let message = document["error"]["message"].as_str().expect("a message");
        assert_eq!(json.errors(), [format!("error: {message}")]);
        assert_ne!(document["error"]["hints"], json!([]));
        assert!(run("yaml").stdout.contains("exitCode: 4"));
        assert_eq!(run("name").stdout, "");
    }
}

#[test]
fn a_user_of_one_namespace_sees_its_sets() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    set.apply(&[config_map(&home, "one", "1")]);
    let user = reader(&home, &["secrets", "configmaps"]);
    let program = || Program::with_kubeconfig(&user.kubeconfig);

    let run = program()
        .args(["list", "-n", &home, "-o", "json"])
        .run()
        .expect(0);
    assert_eq!(listed(&run.document(), &[&set])[0]["members"], 1);
    // Which custom resources may be parents could not be asked, and that is reported.
    assert_ne!(run.document()["warnings"], json!([]));
    let run = program()
        .args(["view", "web", "-n", &home, "-o", "json"])
        .run()
        .expect(0);
    assert_eq!(run.document()["members"][0]["name"], "one");
    let run = program().args(["list", "-A", "-o", "json"]).run().expect(4);
    assert_eq!(run.errors().len(), 1, "{}", run.stderr);
    assert_eq!(run.document()["sets"], json!([]));
}

#[test]
fn a_set_of_the_cluster_is_in_no_namespace() {
    let home = namespace("home");
    let group = format!("{}.example.com", fresh("g"));
    cluster().define(&definition(&group, "Cluster"));
    cluster().create(&custom_resource(&group, None, "web"));
    let set = Set::custom(&group, None, &home);
    set.apply(&[config_map(&home, "a", "1")]);
    let list = |flags: &[&str]| Program::new().args(["list", "-o", "json"]).args(flags).run();
    let run = list(&["-n", &home]).expect(0);
    assert_eq!(run.document()["sets"], json!([]), "{}", run.stdout);
    assert!(!run.stderr.contains(&group), "{}", run.stderr);
    // Sets of other tests may be out of order.
    let document = list(&["-A"]).document();
    assert_eq!(listed(&document, &[&set]).len(), 1, "{document:#}");
}
