//! Hooks of Helm and Argo CD among the manifests, as `helm template` prints them.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::{
    Files, Program, Run, Set, cluster, config_map, custom_resource, definition, fresh, named, namespace,
    objects_file, with,
};

const HOOK: &str = "helm.sh/hook";
const FLAGS: [&str; 2] = ["--hooks=skip", "--hooks=apply"];

/// What `helm template` prints of a chart: four objects, a test and two hooks.
fn chart() -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/ledger.yaml");
    fs::read_to_string(file).expect("the chart")
}

/// A command on the set that reads the chart from standard input.
fn run(set: &Set, command: &str, flags: &[&str]) -> Run {
    set.invocation(Program::new(), command, &["-f", "-"])
        .args(flags)
        .input(&chart())
        .run()
}

/// The set's members, without their kinds' groups and namespaces.
fn members(set: &Set) -> Vec<String> {
    let members = set.members().into_iter();
    members
        .map(|member| member.replace(&format!("{}/", set.namespace), ""))
        .collect()
}

const ORDINARY: [&str; 4] = [
    "ConfigMap ledger",
    "Deployment.apps ledger",
    "Service ledger",
    "ServiceAccount ledger",
];
const WITH_HOOKS: [&str; 6] = [
    "ConfigMap ledger",
    "ConfigMap ledger-migrations",
    "Deployment.apps ledger",
    "Job.batch ledger-migrate",
    "Service ledger",
    "ServiceAccount ledger",
];

fn hook(object: Value, types: &str) -> Value {
    with(object, &json!({"metadata": {"annotations": {HOOK: types}}}))
}

#[test]
fn hooks_are_refused_and_nothing_is_written() {
    let shop = namespace("shop");
    let set = Set::secret(&shop, "ledger");
    for flags in [
        &[][..],
        &["--dry-run=server"],
        &["--dry-run=client"],
        &["--hooks=refuse"],
    ] {
        let refused = run(&set, "apply", flags).expect(3);
        let line = refused.errors()[0];
        assert!(line.contains("the manifests hold 2 hooks"), "{line}");
        assert!(
            line.contains(&format!(
                "standard input:100: job.batch/ledger-migrate in namespace {shop} (helm.sh/hook: pre-install,pre-upgrade)"
            )),
            "{line}"
        );
        assert!(!line.contains("test-connection"), "{line}");
        for flag in FLAGS {
            assert!(refused.stderr.contains(flag), "{}", refused.stderr);
        }
    }
    assert_eq!(set.live_parent(), None);
    assert!(set.members().is_empty());
    // A diff shows the rest, and why a run would not begin.
    let diff = run(&set, "diff", &["-o", "json"]).expect(1);
    assert!(
        diff.results("created")
            .contains(&format!("Deployment.apps {shop}/ledger"))
    );
    assert!(!diff.stdout.contains("ledger-migrate\""), "{}", diff.stdout);
    assert!(
        diff.stdout.contains("the manifests hold 2 hooks"),
        "{}",
        diff.stdout
    );
    let rbac = run(&set, "rbac", &[]).expect(3);
    assert!(rbac.stderr.contains("--hooks=skip"), "{}", rbac.stderr);
}

#[test]
fn skipped_hooks_are_not_created_and_named_in_one_note() {
    let shop = namespace("shop");
    let set = Set::secret(&shop, "ledger");
    for dry_run in ["--dry-run=client", "--dry-run=server", "--dry-run=none"] {
        let skipped = run(&set, "apply", &["--hooks=skip", dry_run]).expect(0);
        let notes: Vec<&str> = skipped
            .stderr
            .lines()
            .filter(|line| line.contains("left out"))
            .collect();
        assert_eq!(notes.len(), 2, "{}", skipped.stderr);
        assert!(
            notes[0].contains("left out 1 test hook: pod/ledger-test-connection"),
            "{}",
            notes[0]
        );
        assert!(
            notes[1].contains("left out 2 hooks: configmap/ledger-migrations"),
            "{}",
            notes[1]
        );
        // The weight of a hook that is left out orders nothing.
        assert!(!skipped.stderr.contains("warning"), "{}", skipped.stderr);
    }
    assert_eq!(members(&set), ORDINARY);
    let again = run(&set, "apply", &["--hooks=skip", "-o", "json"]).expect(0);
    assert_eq!(again.results("unchanged").len(), 4);
    assert!(again.results("skipped").is_empty());
    let named = run(&set, "apply", &["--hooks=skip", "-o", "name"]).expect(0);
    assert!(!named.stdout.contains("migrat"), "{}", named.stdout);
    run(&set, "diff", &["--hooks=skip"]).expect(0);
    let pod = named_in("v1", "Pod", &shop, "ledger-test-connection");
    assert_eq!(cluster().live(&pod), None);
}

fn named_in(api_version: &str, kind: &str, namespace: &str, name: &str) -> Value {
    named(api_version, kind, Some(namespace), name)
}

#[test]
fn hooks_that_are_members_stay_members_until_they_leave_the_manifests() {
    let shop = namespace("shop");
    let set = Set::secret(&shop, "ledger");
    let applied = run(&set, "apply", &["--hooks=apply"]).expect(0);
    // Applied as ordinary objects, they are ordered by their kinds.
    let warnings = applied
        .stderr
        .lines()
        .filter(|line| line.starts_with("warning: "));
    let warnings: Vec<&str> = warnings.collect();
    assert_eq!(warnings.len(), 1, "{}", applied.stderr);
    assert!(
        warnings[0].contains("helm.sh/hook-weight (1 object)"),
        "{}",
        warnings[0]
    );
    assert_eq!(members(&set), WITH_HOOKS);
    let job = named_in("batch/v1", "Job", &shop, "ledger-migrate");
    let before = cluster().live(&job);

    for flags in [
        &["--dry-run=client"][..],
        &["--dry-run=server"],
        &[],
        &["--prune=false"],
        &["--allow-prune-all"],
    ] {
        let flags = [&["--hooks=skip", "-o", "json"], flags].concat();
        let skipped = run(&set, "apply", &flags).expect(0);
        let expected = [
            format!("ConfigMap {shop}/ledger-migrations"),
            format!("Job.batch {shop}/ledger-migrate"),
        ];
        assert_eq!(skipped.results("skipped"), expected, "{flags:?}");
        assert_eq!(
            skipped.reason("ledger-migrate"),
            "a hook, left as it is (helm.sh/hook: pre-install,pre-upgrade)"
        );
        assert!(skipped.results("pruned").is_empty());
    }
    let diff = run(&set, "diff", &["--hooks=skip", "-o", "json"]).expect(0);
    assert_eq!(diff.results("skipped").len(), 2);
    assert_eq!(cluster().live(&job), before);
    assert_eq!(members(&set), WITH_HOOKS);
    let kinds = set.annotation(crate::support::GROUP_KINDS).expect("a record");
    assert!(kinds.contains("Job.batch"), "{kinds}");

    // What has left the manifests is pruned, whatever it was.
    let ordinary = config_map(&shop, "ledger", "1");
    let pruned = set.apply_with(&[ordinary], &["--hooks=skip"]).expect(0);
    assert!(
        pruned
            .results("pruned")
            .contains(&format!("Job.batch {shop}/ledger-migrate"))
    );
}

#[test]
fn a_live_hook_of_another_tool_is_left_alone() {
    let shop = namespace("shop");
    let set = Set::secret(&shop, "web");
    let live = hook(config_map(&shop, "seed", "of Helm"), "post-install");
    let live = cluster().create(&live);
    let manifest = hook(config_map(&shop, "seed", "of the chart"), "post-install");
    let objects = [config_map(&shop, "web", "1"), manifest];
    let run = set.apply_with(&objects, &["--hooks=skip"]).expect(0);
    assert_eq!(run.document()["results"].as_array().map(Vec::len), Some(1));
    assert_eq!(cluster().live(&live), Some(live.clone()));
    // Nor is it deleted with the set.
    set.delete(&[]).expect(0);
    assert_eq!(cluster().live(&live), Some(live));
}

#[test]
fn objects_that_argo_cd_skips_are_left_out_and_its_hooks_are_refused() {
    let shop = namespace("shop");
    let set = Set::secret(&shop, "web");
    let argo = |name: &str, types: &str| {
        with(
            config_map(&shop, name, "1"),
            &json!({"metadata": {"annotations": {"argocd.argoproj.io/hook": types}}}),
        )
    };
    let ordinary = with(
        config_map(&shop, "web", "1"),
        &json!({"metadata": {"annotations": {
            "argocd.argoproj.io/sync-wave": "3", "kapp.k14s.io/change-rule": "upsert after upserting db",
        }}}),
    );
    let run = set
        .apply_with(&[ordinary.clone(), argo("never", "Skip")], &[])
        .expect(0);
    assert!(run.stderr.contains("configmap/never"), "{}", run.stderr);
    assert_eq!(run.warnings().len(), 1, "{:?}", run.warnings());
    set.assert_holds(std::slice::from_ref(&ordinary));
    for mixed in [
        argo("hook", "PostSync"),
        argo("hook", "Skip,Sync"),
        hook(argo("hook", "Skip"), "test,pre-install"),
    ] {
        let refused = set.apply_with(&[ordinary.clone(), mixed], &[]).expect(3);
        assert!(
            refused.document()["error"]["message"]
                .as_str()
                .is_some_and(|text| text.contains("1 hook"))
        );
    }
    set.assert_holds(&[ordinary]);
}

#[test]
fn hooks_without_a_name_are_left_out_and_never_applied() {
    let shop = namespace("shop");
    let set = Set::secret(&shop, "web");
    let generated = |types: &str| {
        let mut hook = with(
            config_map(&shop, "hook", "1"),
            &json!({"metadata": {
                "generateName": "migrate-", "annotations": {"argocd.argoproj.io/hook": types},
            }}),
        );
        let metadata = hook["metadata"].as_object_mut().expect("metadata");
        metadata.remove("name");
        hook
    };
    let ordinary = config_map(&shop, "web", "1");
    let objects = [ordinary.clone(), generated("PreSync"), generated("Skip")];

    let refused = set.apply_with(&objects, &[]).expect(3);
    assert!(
        refused.stderr.contains("configmap/migrate-*"),
        "{}",
        refused.stderr
    );
    let applied = set.apply_with(&objects, &["--hooks=apply"]).expect(2);
    let line = applied.errors()[0];
    assert!(
        line.contains("objects.yaml:") && line.contains("metadata.generateName"),
        "{line}"
    );
    assert_eq!(set.live_parent(), None);

    let skipped = set.apply_with(&objects, &["--hooks=skip"]).expect(0);
    assert!(
        skipped.stderr.contains(&format!(
            "left out 1 hook: configmap/migrate-* in namespace {shop}"
        )),
        "{}",
        skipped.stderr
    );
    set.assert_holds(std::slice::from_ref(&ordinary));
    // A saved plan holds them, too.
    let files = Files::new().with("objects.yaml", &objects_file(&objects));
    let [manifests, plan] = ["objects.yaml", "plan.json"].map(|name| files.path(name).display().to_string());
    let arguments = ["--hooks=skip", "--out", &plan, "-f", &manifests];
    set.invoke("diff", &arguments).expect(0);
    Program::new().args(["apply", "--plan", &plan]).run().expect(0);
    // Nor do they keep other commands from their work.
    set.invoke("move", &["other", "-f", &manifests]).expect(0);
    Set::secret(&shop, "other").assert_holds(&[ordinary]);
}

#[test]
fn definitions_that_helm_2_installs_first_are_ordinary_and_other_hooks_define_nothing() {
    let shop = namespace("shop");
    let group = format!("{}.example.com", fresh("hooks"));
    let set = Set::secret(&shop, "web");
    let resource = custom_resource(&group, Some(&shop), "one");
    let as_hook = hook(definition(&group, "Namespaced"), "pre-install");
    // Its kind does not come with the manifests, since it is left out.
    let unknown = set
        .apply_with(&[as_hook, resource.clone()], &["--hooks=skip"])
        .expect(2);
    assert!(unknown.stderr.contains("Widget"), "{}", unknown.stderr);
    assert_eq!(set.live_parent(), None);
    let ordinary = hook(definition(&group, "Namespaced"), "crd-install");
    let objects = [ordinary, resource];
    set.apply(&objects);
    set.assert_holds(&objects);
}

#[test]
fn a_saved_plan_seals_what_becomes_of_hooks() {
    let shop = namespace("shop");
    let set = Set::secret(&shop, "ledger");
    let files = Files::new().with("chart.yaml", &chart());
    for (flags, expected) in [
        (&["--hooks=skip"][..], &ORDINARY[..]),
        (&["--hooks=apply"], &WITH_HOOKS),
    ] {
        let save = |flags: &[&str]| {
            set.invocation(Program::new(), "diff", flags)
                .args(["-f".as_ref(), files.path("chart.yaml").as_os_str()])
                .args(["--out".as_ref(), files.path("plan.json").as_os_str()])
                .run()
        };
        // A plan with refusals is not saved.
        save(&[]).expect(3);
        assert!(!files.path("plan.json").exists());
        save(flags).expect(1);
        let apply = || {
            Program::new()
                .args(["apply", "--plan"])
                .args([files.path("plan.json")])
        };
        apply().args(["--hooks=apply"]).run().expect(2);
        apply().run().expect(0);
        assert_eq!(members(&set), expected, "{flags:?}");
    }
}

#[test]
fn the_rights_for_hooks_are_printed_only_if_they_are_applied() {
    let shop = namespace("shop");
    let set = Set::secret(&shop, "ledger");
    let skip = run(&set, "rbac", &["--hooks=skip"]).expect(0);
    assert!(!skip.stdout.contains("jobs"), "{}", skip.stdout);
    assert!(skip.stderr.contains("left out 2 hooks"), "{}", skip.stderr);
    let apply = run(&set, "rbac", &["--hooks=apply"]).expect(0);
    assert!(apply.stdout.contains("jobs"), "{}", apply.stdout);
    // Its Pods are listed to show why a Job is not ready. A test hook would be a Pod to be written.
    let rules = apply.stdout.split("- apiGroups:");
    for rule in rules.filter(|rule| rule.contains("  - pods\n")) {
        assert!(rule.trim_end().ends_with("verbs:\n  - list"), "{rule}");
    }
}

#[test]
fn adopting_leaves_hooks_out_and_moving_takes_them_along() {
    let shop = namespace("shop");
    let set = Set::secret(&shop, "web");
    let ordinary = config_map(&shop, "web", "1");
    let seed = hook(config_map(&shop, "seed", "1"), "pre-install");
    cluster().create(&ordinary);
    cluster().create(&seed);
    let objects = [ordinary.clone(), seed.clone()];
    let files = Files::new().with("objects.yaml", &objects_file(&objects));
    let file = files.path("objects.yaml").display().to_string();
    let adopted = set.invoke("adopt", &["-f", &file]).expect(0);
    assert!(
        adopted.stderr.contains("left out 1 hook: configmap/seed"),
        "{}",
        adopted.stderr
    );
    set.assert_holds(std::slice::from_ref(&ordinary));
    set.apply_with(&objects, &["--hooks=apply"]).expect(0);
    let to = Set::secret(&shop, "other");
    set.invoke("move", &["other", "-f", &file]).expect(0);
    to.assert_holds(&objects);
}
