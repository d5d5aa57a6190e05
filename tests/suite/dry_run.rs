//! Dry runs write nothing at all, and predict what the run then does.

use std::collections::BTreeSet;

use http::Method;
use serde_json::{Value, json};

use super::depends_on::{after, files};
use crate::support::{
    Files, Program, Proxy, Run, Set, cluster, cluster_role, config_map, custom_resource, definition, fresh,
    identities, namespace, namespace_object, objects_file, secret, service, with,
};

const FLAGS: [&str; 2] = ["--dry-run=client", "--dry-run=server"];

fn outcome(run: &Run) -> [Vec<String>; 4] {
    ["created", "configured", "pruned", "skipped"].map(|action| run.results(action))
}

/// Applies the objects in both dry runs and then for good, and asserts that the dry
/// runs wrote nothing and reported what was done.
#[track_caller]
fn assert_predicted(set: &Set, namespaces: &[&str], objects: &[Value]) {
    let members = cluster().members(&set.id);
    let state = cluster().state(namespaces);
    let predictions = FLAGS.map(|flag| {
        let run = set.apply_with(objects, &[flag]).expect(0);
        assert_eq!(cluster().state(namespaces), state, "{flag}");
        assert_eq!(cluster().members(&set.id), members, "{flag}");
        assert_eq!(run.document()["dryRun"], flag.trim_start_matches("--dry-run="));
        outcome(&run)
    });
    let done = outcome(&set.apply(objects));
    for (flag, predicted) in FLAGS.iter().zip(predictions) {
        assert_eq!(predicted, done, "{flag}");
    }
    set.assert_holds(objects);
}

/// The server accepts the apply of such an object, and the object is gone a moment later.
#[test]
fn an_object_that_is_being_deleted_fails_in_a_dry_run_as_in_a_run() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    set.apply(&[config_map(&home, "left", "1")]);
    let held = config_map(&home, "held", "1");
    cluster().create(&with(
        held.clone(),
        &json!({"metadata": {"finalizers": ["example.com/wait"]}}),
    ));
    cluster().delete(&held);
    for flags in [&FLAGS[..1], &FLAGS[1..], &[]] {
        let run = set.apply_with(std::slice::from_ref(&held), flags).expect(1);
        assert_eq!(run.results("failed"), identities([&held]), "{flags:?}");
        assert_eq!(run.results("pruned"), Vec::<String>::new(), "{flags:?}");
        assert_eq!(run.reason("held"), "", "{flags:?}");
    }
    let changed = files(&[config_map(&home, "held", "2")]);
    for mode in ["--dry-run=client", "--dry-run=server"] {
        let diff = Program::new().args(["diff", "web", "-n", &home, mode, "-f"]);
        let run = diff.args([changed.directory()]).run().expect(1);
        assert!(!run.stdout.contains("key: \"2\""), "{}", run.stdout);
    }
    cluster().patch(&held, &json!({"metadata": {"finalizers": null}}));
}

#[test]
fn a_first_run_is_predicted() {
    let [a, b] = [namespace("a"), namespace("b")];
    let set = Set::secret(&a, "web");
    let objects = [
        config_map(&a, "one", "1"),
        service(&b, "web", 80),
        cluster_role(&fresh("role")),
    ];
    // One is there already, and becomes a member.
    cluster().create(&config_map(&a, "taken", "1"));
    let taken = [objects.as_slice(), &[config_map(&a, "taken", "1")]].concat();
    assert_predicted(&set, &[&a, &b], &taken);
}

#[test]
fn a_run_that_creates_changes_keeps_and_prunes_is_predicted() {
    let [a, b] = [namespace("a"), namespace("b")];
    let set = Set::secret(&a, "web");
    let role = cluster_role(&fresh("role"));
    set.apply(&[
        config_map(&a, "kept", "1"),
        config_map(&a, "changed", "1"),
        config_map(&b, "dropped", "1"),
        service(&b, "dropped", 80),
        role,
    ]);
    let next = [
        config_map(&a, "kept", "1"),
        config_map(&a, "changed", "2"),
        service(&a, "new", 80),
    ];
    assert_predicted(&set, &[&a, &b], &next);
}

#[test]
fn a_run_that_changes_nothing_is_predicted() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects = [config_map(&home, "one", "1"), service(&home, "web", 80)];
    set.apply(&objects);
    assert_predicted(&set, &[&home], &objects);
}

#[test]
fn what_cannot_be_validated_yet_is_predicted_with_a_warning() {
    let home = namespace("home");
    let away = fresh("away");
    let group = format!("{}.example.com", fresh("g"));
    let set = Set::secret(&home, "web");
    let objects = [
        definition(&group, "Namespaced"),
        custom_resource(&group, Some(&home), "one"),
        namespace_object(&away),
        config_map(&away, "two", "1"),
    ];
    for flag in FLAGS {
        let before = cluster().state(&[&home]);
        let run = set.apply_with(&objects, &[flag]).expect(0);
        assert_eq!(run.results("created"), identities(&objects));
        assert_eq!(cluster().state(&[&home]), before);
        assert_eq!(cluster().live(&objects[0]), None);
        assert_eq!(cluster().live(&objects[2]), None);
        if flag == "--dry-run=server" {
            assert_ne!(run.document()["warnings"], json!([]));
        }
    }
}

#[test]
fn what_is_in_a_namespace_that_joins_the_manifests_is_predicted() {
    let [home, shop] = [namespace("home"), namespace("shop")];
    let set = Set::secret(&home, "web");
    cluster().create(&config_map(&shop, "taken", "1"));
    let objects = [
        namespace_object(&shop),
        config_map(&shop, "taken", "1"),
        config_map(&shop, "new", "1"),
    ];
    assert_predicted(&set, &[&home, &shop], &objects);
}

#[test]
fn a_set_in_a_namespace_that_comes_with_the_manifests_is_predicted() {
    let home = fresh("home");
    let set = Set::secret(&home, "web");
    let objects = [namespace_object(&home), config_map(&home, "one", "1")];
    for flag in FLAGS {
        let run = set.apply_with(&objects, &[flag]).expect(0);
        assert_eq!(run.results("created"), identities(&objects));
        assert_eq!(cluster().live(&objects[0]), None);
    }
}

#[test]
fn a_failure_is_found_by_the_server_without_writing() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    set.apply(&[config_map(&home, "one", "1"), config_map(&home, "dropped", "1")]);
    let before = cluster().state(&[&home]);
    let invalid = service(&home, "bad", 0);

    let run = set
        .apply_with(
            &[config_map(&home, "one", "2"), invalid.clone()],
            &["--dry-run=server"],
        )
        .expect(1);

    assert_eq!(run.results("failed"), identities([&invalid]));
    assert_eq!(run.results("pruned"), Vec::<String>::new());
    assert_eq!(cluster().state(&[&home]), before);
}

/// What the run skips because what it needs fails is in no preview as an object that it writes.
#[test]
fn what_needs_a_failing_object_is_skipped_in_previews_as_in_the_run() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let old = config_map(&home, "old", "1");
    set.apply(std::slice::from_ref(&old));
    let invalid = service(&home, "invalid", 0);
    let first = after(config_map(&home, "first", "1"), &[&invalid]);
    let second = after(config_map(&home, "second", "1"), &[&first]);
    let group = format!("{}.example.com", fresh("g"));
    let mut undefined = definition(&group, "Namespaced");
    undefined["spec"]["versions"][0]["storage"] = json!(false);
    let away = fresh("away");
    let unnamed = with(
        namespace_object(&away),
        &json!({"spec": {"finalizers": ["not a finalizer"]}}),
    );
    let failing = [invalid.clone(), undefined.clone(), unnamed.clone()];
    let objects = [
        invalid,
        first,
        second,
        undefined,
        custom_resource(&group, Some(&home), "widget"),
        unnamed,
        config_map(&away, "inside", "1"),
        config_map(&home, "free", "1"),
    ];
    let before = cluster().state(&[&home]);
    let manifests = files(&objects);
    let directory = manifests.directory().to_str().expect("a path");

    let previews = [
        set.invoke("diff", &["-f", directory]).expect(1),
        set.apply_with(&objects, &["--dry-run=server"]).expect(1),
    ];
    let page = set.invocation(Program::new(), "diff", &["-o", "markdown", "-f", directory]);
    let page = page.run().expect(1).stdout;
    assert_eq!(cluster().state(&[&home]), before);
    let run = set.apply_with(&objects, &[]).expect(1);

    let errors = |run: &Run| -> BTreeSet<String> {
        let lines = run.stderr.lines();
        let lines = lines.filter(|line| line.contains("so these objects that depend on it are not applied"));
        lines.map(str::to_owned).collect()
    };
    for preview in previews {
        assert_eq!(preview.results("failed"), identities(&failing));
        assert_eq!(outcome(&preview), outcome(&run));
        for name in ["first", "second", "widget", "inside", "old"] {
            assert_eq!(preview.reason(name), run.reason(name));
        }
        assert_eq!(errors(&preview), errors(&run));
    }
    assert!(page.contains("1 to create, 3 would fail"), "{page}");
    assert!(page.contains("<summary>4 skipped</summary>"), "{page}");
}

/// A run that cannot create the namespace of its parent ends before all other objects.
#[test]
fn what_comes_after_a_parent_that_cannot_be_created_is_skipped_in_previews_as_in_the_run() {
    let [home, away] = [fresh("home"), namespace("away")];
    let set = Set::secret(&home, "web");
    let unmade = with(
        namespace_object(&home),
        &json!({"spec": {"finalizers": ["not a finalizer"]}}),
    );
    let objects = [unmade.clone(), config_map(&away, "one", "1")];
    let manifests = files(&objects);
    let directory = manifests.directory().to_str().expect("a path");
    let previews = [
        set.invoke("diff", &["-f", directory]).expect(1),
        set.apply_with(&objects, &["--dry-run=server"]).expect(1),
    ];
    let run = set.apply_with(&objects, &[]).expect(1);
    assert_eq!(run.results("failed"), identities([&unmade]));
    for preview in previews {
        assert_eq!(preview.results("failed"), identities([&unmade]));
        assert_eq!(outcome(&preview), outcome(&run));
        assert_eq!(preview.reason("one"), run.reason("one"));
    }
    assert_eq!(cluster().live(&objects[1]), None);
}

#[test]
fn a_client_dry_run_sends_no_write_and_a_server_dry_run_none_that_is_carried_out() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    set.apply(&[config_map(&home, "one", "1"), config_map(&home, "dropped", "1")]);
    let next = [config_map(&home, "one", "2"), config_map(&home, "new", "1")];
    for flag in FLAGS {
        let proxy = Proxy::transparent();
        set.apply_through(&proxy, &next, &[flag]).expect(0);
        let requests = proxy.sent();
        let writes: Vec<_> = requests.iter().filter(|sent| sent.is_write()).collect();
        if flag == "--dry-run=client" {
            assert_eq!(writes.len(), 0);
        } else {
            // Two applies and a prune.
            assert_eq!(writes.len(), 3);
        }
        for write in writes {
            // A DELETE with a body says so there, everything else in its query.
            let body: Value = serde_json::from_slice(&write.body).expect("JSON");
            let is_dry = write.path.contains("dryRun=All") || body["dryRun"] == json!(["All"]);
            assert!(is_dry, "{write:?}");
        }
    }
}

#[test]
fn a_dry_run_with_the_parent_among_the_manifests_writes_nothing() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects = [secret(&home, "web"), config_map(&home, "one", "1")];
    for flag in FLAGS {
        let before = cluster().state(&[&home]);
        let run = set.apply_with(&objects, &[flag]).expect(0);
        assert_eq!(run.results("created"), identities(&objects[1..]));
        assert_eq!(cluster().state(&[&home]), before);
    }
}

#[test]
fn no_deletion_of_a_kind_that_is_not_built_in_is_sent_in_a_dry_run() {
    let home = namespace("home");
    let group = format!("{}.example.com", fresh("g"));
    cluster().define(&definition(&group, "Namespaced"));
    let [kept, pruned] = ["kept", "pruned"].map(|name| custom_resource(&group, Some(&home), name));
    let built_in = config_map(&home, "built-in", "1");
    let set = Set::secret(&home, "web");
    set.apply(&[kept.clone(), pruned.clone(), built_in.clone()]);
    let files = Files::new().with("objects.yaml", &objects_file(std::slice::from_ref(&kept)));
    let directory = files.directory().to_string_lossy().into_owned();
    let runs: [(&str, &[&str], i32); 3] = [
        ("diff", &["-o", "json", "-f", &directory], 1),
        ("apply", &["-o", "json", "--dry-run=server", "-f", &directory], 0),
        ("delete", &["-o", "json", "--dry-run=server"], 0),
    ];
    let deletions = |proxy: &Proxy| {
        let sent = proxy.sent();
        let deletions = sent.iter().filter(|sent| sent.method == Method::DELETE);
        let paths = deletions.map(|sent| sent.path.clone());
        let (custom, built_in): (Vec<_>, Vec<_>) = paths.partition(|path| path.contains("/widgets/"));
        (!custom.is_empty(), !built_in.is_empty())
    };
    for (command, arguments, code) in runs {
        let proxy = Proxy::transparent();
        let program = Program::with_kubeconfig(&proxy.kubeconfig());
        let run = set.invocation(program, command, arguments).run().expect(code);
        // An aggregated API may ignore the dry run, and delete.
        assert_eq!(deletions(&proxy), (false, true), "{command}: {}", run.stderr);
        let word = if command == "delete" { "deleted" } else { "pruned" };
        let gone = run.results(word);
        assert!(gone.contains(&identities([&pruned])[0]), "{command}: {gone:?}");
    }
    set.assert_holds(&[kept, pruned, built_in]);
}
