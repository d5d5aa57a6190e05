//! What members become while `--prune-when=ready` waits: what they depend on then is kept.

use serde_json::{Value, json};

use super::depends_on::{after, files, reference, rolled_out};
use crate::support::{
    Files, Program, Running, Set, cluster, config_map, custom_resource, definition, deletes_claims,
    deployment, eventually, fresh, identities, namespace, secret, stateful_set, with,
};

const READY: [&str; 4] = ["-v", "--wait=0", "--prune-when=ready", "--allow-prune-all"];

/// Starts an `apply`, and returns once it waits for the Deployment.
fn start_and_wait_for_web(set: &Set, manifests: &Files, flags: &[&str]) -> Running {
    let mut running = set
        .command(Program::new(), manifests)
        .args(flags)
        .args(["-o", "json"])
        .start();
    running.wait_for_message("0 of 1 replicas");
    running
}

fn annotate(object: &Value, annotations: &Value) {
    cluster().patch(object, &json!({"metadata": {"annotations": annotations}}));
}

/// Rolls the Deployment out as it is now: annotations count as a new generation.
fn roll_out(web: &Value) {
    let live = cluster().live(web).expect("a Deployment");
    let mut status = rolled_out();
    status["observedGeneration"] = live["metadata"]["generation"].clone();
    cluster().patch_status(web, &status);
}

fn depending(objects: &[&Value]) -> Value {
    let references: Vec<String> = objects.iter().map(|object| reference(object)).collect();
    json!({"config.kubernetes.io/depends-on": references.join(",")})
}

#[test]
fn what_members_need_by_the_end_of_the_wait_is_kept() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let keep = json!({"helm.sh/resource-policy": "keep"});
    let web = deployment(&home, "web", 1);
    let kept = with(secret(&home, "kept"), &json!({"metadata": {"annotations": keep}}));
    let names = ["needed", "of-kept", "marked", "of-marked", "free"];
    let old = names.map(|name| config_map(&home, name, "1"));
    set.apply(&[old.as_slice(), &[web.clone(), kept.clone()]].concat());
    let wanted = [web.clone()];
    let manifests = files(&wanted);
    let running = start_and_wait_for_web(&set, &manifests, &READY);
    let [needed, of_kept, marked, of_marked, free] = old.each_ref();
    annotate(&web, &depending(&[needed, &web]));
    annotate(&kept, &depending(&[of_kept]));
    annotate(marked, &keep);
    annotate(marked, &depending(&[of_marked]));
    roll_out(&web);
    let run = running.finish().expect(0);
    assert_eq!(run.results("pruned"), identities([free]), "{}", run.stderr);
    assert!(
        run.reason("needed").contains("deployment.apps/web"),
        "{}",
        run.stdout
    );
    assert!(run.reason("of-kept").contains("secret/kept"), "{}", run.stdout);
    assert!(
        run.reason("of-marked").contains("configmap/marked"),
        "{}",
        run.stdout
    );
    set.assert_holds(&[&old[..4], &[web, kept]].concat());
}

#[test]
fn what_members_need_after_a_wait_for_a_dependency_is_kept() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let [member, needed, free] = ["member", "needed", "free"].map(|name| config_map(&home, name, "1"));
    set.apply(&[member.clone(), needed.clone(), free.clone()]);
    let web = deployment(&home, "web", 1);
    let dependent = after(config_map(&home, "dependent", "1"), &[&web]);
    let manifests = files(&[member.clone(), web.clone(), dependent.clone()]);
    let running = start_and_wait_for_web(&set, &manifests, &["-v"]);
    annotate(&member, &depending(&[&needed]));
    roll_out(&web);
    let run = running.finish().expect(0);
    assert_eq!(run.results("pruned"), identities([&free]), "{}", run.stderr);
    set.assert_holds(&[member, needed, web, dependent]);
}

#[test]
fn nothing_is_pruned_if_another_run_has_added_a_kind_or_a_namespace_during_the_wait() {
    for is_of_new_kind in [true, false] {
        let home = namespace("home");
        let set = Set::secret(&home, "web");
        let [keep, old] = ["keep", "old"].map(|name| config_map(&home, name, "1"));
        set.apply(&[keep.clone(), old.clone()]);
        let web = deployment(&home, "web", 1);
        let manifests = files(&[keep.clone(), web.clone()]);
        let running = start_and_wait_for_web(&set, &manifests, &READY);
        let added = if is_of_new_kind {
            secret(&home, "added")
        } else {
            config_map(&namespace("away"), "added", "1")
        };
        let added = with(added, &json!({"metadata": {"annotations": depending(&[&old])}}));
        set.apply_with(
            &[keep.clone(), old.clone(), web.clone(), added.clone()],
            &["--prune=false"],
        )
        .expect(0);
        roll_out(&web);
        let run = running.finish().expect(1);
        assert_eq!(run.results("skipped"), identities([&old]), "{}", run.stderr);
        set.assert_holds(&[keep, old, web, added]);
    }
}

#[test]
fn a_recorded_kind_that_is_not_served_any_more_does_not_prevent_prunes() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let group = format!("{}.example.com", fresh("gone"));
    let kind = definition(&group, "Namespaced");
    cluster().define(&kind);
    let web = deployment(&home, "web", 1);
    let old = config_map(&home, "old", "1");
    let custom = custom_resource(&group, Some(&home), "custom");
    set.apply(&[web.clone(), old, custom]);
    roll_out(&web);
    cluster().delete(&kind);
    eventually("the kind is gone", || {
        cluster().live(&kind).is_none().then_some(())
    });
    set.apply_with(std::slice::from_ref(&web), &READY).expect(0);
    set.assert_holds(&[web]);
}

#[test]
fn a_stateful_set_that_has_come_to_delete_its_claims_is_not_pruned() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let [web, database] = [deployment(&home, "web", 1), stateful_set(&home, "database")];
    set.apply(&[web.clone(), database.clone()]);
    let wanted = [web.clone()];
    let manifests = files(&wanted);
    let running = start_and_wait_for_web(&set, &manifests, &READY);
    cluster().patch(&database, &deletes_claims());
    roll_out(&web);
    let run = running.finish().expect(1);
    assert_eq!(run.results("failed"), identities([&database]), "{}", run.stderr);
    let live = cluster().live(&database).expect("it stays");
    assert_eq!(live["metadata"]["deletionTimestamp"], Value::Null);
    set.assert_holds(&[web, database]);
}

#[test]
fn a_saved_plan_keeps_what_members_have_come_to_need() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let web = deployment(&home, "web", 1);
    let [needed, free] = ["needed", "free"].map(|name| config_map(&home, name, "1"));
    set.apply(&[web.clone(), needed.clone(), free.clone()]);
    let manifests = files(std::slice::from_ref(&web));
    let out = Files::new();
    let plan = out.path("plan.json");
    let directory = manifests.directory();
    set.invocation(Program::new(), "diff", &["--prune-when=ready", "--out"])
        .args([plan.as_os_str(), "-f".as_ref(), directory.as_os_str()])
        .run()
        .expect(1);
    let mut running = Program::new()
        .args(["apply", "-v", "--wait=0", "-o", "json", "--plan"])
        .args([&plan])
        .start();
    running.wait_for_message("0 of 1 replicas");
    annotate(&web, &depending(&[&needed]));
    roll_out(&web);
    let run = running.finish().expect(0);
    assert_eq!(run.results("pruned"), identities([&free]), "{}", run.stderr);
    set.assert_holds(&[web, needed]);
}
