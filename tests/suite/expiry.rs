//! `apply --expires`: when the time is written, renewed and removed, and who shows it; `delete --expired`: when it
//! deletes.

use serde_json::json;

use super::depends_on::rolled_out;
use crate::support::{Files, Program, Proxy, Set, cluster, config_map, deployment, namespace};

const EXPIRES: &str = "kubectl-applyset/expires";

fn expires(set: &Set) -> String {
    let parent = set.live_parent().expect("a parent");
    let value = parent["metadata"]["annotations"][EXPIRES].as_str();
    value.unwrap_or_default().to_owned()
}

fn set_expires(set: &Set, value: &str) {
    cluster().patch(
        &set.parent,
        &json!({"metadata": {"annotations": {EXPIRES: value}}}),
    );
}

fn count_writes(proxy: &Proxy) -> usize {
    proxy.sent().iter().filter(|sent| sent.is_write()).count()
}

#[test]
fn a_time_is_written_once_and_kept_until_half_of_it_has_passed() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects = [config_map(&home, "one", "1")];
    set.apply_with(&objects, &["--expires=72h"]).expect(0);
    let first = expires(&set);
    assert!(first.ends_with('Z'), "{first:?}");

    let proxy = Proxy::transparent();
    set.apply_through(&proxy, &objects, &["--expires=72h"]).expect(0);
    assert_eq!(count_writes(&proxy), 0);
    assert_eq!(expires(&set), first);

    // Less than half is left, more than all of it, and no time at all. The run begins and ends on the parent.
    for flag in ["--expires=200h", "--expires=1h"] {
        let before = expires(&set);
        let proxy = Proxy::transparent();
        set.apply_through(&proxy, &objects, &[flag]).expect(0);
        assert_ne!(expires(&set), before, "{flag}");
        assert_eq!(count_writes(&proxy), 2);
    }
    set_expires(&set, "soon");
    set.apply_with(&objects, &["--expires=1h"]).expect(0);
    assert_ne!(expires(&set), "soon");
}

#[test]
fn other_commands_keep_the_time_and_an_apply_without_the_flag_removes_it() {
    let home = namespace("home");
    let set = Set::config_map(&home, "web");
    let objects = [config_map(&home, "one", "1")];
    set.apply_with(&objects, &["--expires=72h"]).expect(0);
    let first = expires(&set);
    let taken = config_map(&home, "taken", "1");
    cluster().create(&taken);
    let files = Files::new().with("taken.yaml", &taken.to_string());
    let run = set
        .invocation(Program::new(), "adopt", &["-f"])
        .args([files.directory()]);
    run.run().expect(0);
    assert_eq!(expires(&set), first);

    let both = [config_map(&home, "one", "1"), config_map(&home, "taken", "1")];
    set.apply_with(&both, &["--dry-run=server"]).expect(0);
    assert_eq!(expires(&set), first);
    let run = set.apply_with(&both, &[]).expect(0);
    assert!(run.stderr.contains("no longer expires"), "{}", run.stderr);
    assert_eq!(expires(&set), "");
    assert!(cluster().live(&taken).is_some());

    let proxy = Proxy::transparent();
    set.apply_through(&proxy, &both, &[]).expect(0);
    assert_eq!(count_writes(&proxy), 0);
}

#[test]
fn a_saved_plan_keeps_the_time() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    set.apply_with(&[config_map(&home, "one", "1")], &["--expires=72h"])
        .expect(0);
    let first = expires(&set);
    let files = Files::new().with("one.yaml", &config_map(&home, "one", "2").to_string());
    let plan = files.path("plan.json");
    set.invocation(Program::new(), "diff", &["-f"])
        .args([
            files.path("one.yaml").as_os_str(),
            "--out".as_ref(),
            plan.as_os_str(),
        ])
        .run()
        .expect(1);
    let apply = Program::new().args(["apply".as_ref(), "--plan".as_ref(), plan.as_os_str()]);
    apply.run().expect(0);
    assert_eq!(expires(&set), first);
}

#[test]
fn the_time_is_shown_and_a_value_that_is_none_is_named() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    set.apply_with(&[config_map(&home, "one", "1")], &["--expires=72h"])
        .expect(0);
    let time = expires(&set);
    assert_eq!(set.invoke("view", &[]).expect(0).document()["expires"], *time);
    let wide = Program::new()
        .args(["list", "-n", &home, "-o", "wide"])
        .run()
        .expect(0);
    assert!(wide.stdout.contains(&time), "{}", wide.stdout);

    set_expires(&set, "soon");
    let listed = Program::new().args(["list", "-n", &home]).run().expect(0);
    assert!(listed.stderr.contains("is not a time"), "{}", listed.stderr);
}

#[test]
fn a_time_that_cannot_be_is_refused() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    for time in ["0", "soon", "100000h"] {
        let run = set.apply_with(&[config_map(&home, "one", "1")], &["--expires", time]);
        run.expect(2);
    }
    assert_eq!(set.live_parent(), None);
}

#[test]
fn only_a_set_whose_time_has_passed_is_deleted() {
    for (value, is_deleted) in [
        (Some("2020-01-01T00:00:00Z"), true),
        (Some("2999-01-01T00:00:00Z"), false),
        (Some("soon"), false),
        (Some(""), false),
        (None, false),
    ] {
        let home = namespace("home");
        let set = Set::secret(&home, "web");
        let objects = [config_map(&home, "one", "1")];
        set.apply(&objects);
        if let Some(value) = value {
            set_expires(&set, value);
        }
        set.invoke("delete", &["--expired", "--yes"]).expect(0);
        assert_eq!(set.live_parent().is_none(), is_deleted, "{value:?}");
        assert_eq!(cluster().live(&objects[0]).is_none(), is_deleted, "{value:?}");
    }
}

#[test]
fn what_is_left_without_a_parent_is_not_said_to_stay() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let object = config_map(&home, "one", "1");
    set.apply_with(std::slice::from_ref(&object), &["--expires=1s"])
        .expect(0);
    cluster().delete(&set.parent);
    let run = set.delete(&["--expired"]).expect(3);
    assert!(run.stderr.contains("without --expired"), "{}", run.stderr);
    assert!(cluster().live(&object).is_some());
    set.delete(&[]).expect(0);
    assert!(cluster().live(&object).is_none());
}

#[test]
fn a_set_is_renewed_before_its_run_waits() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let web = deployment(&home, "web", 1);
    set.apply(std::slice::from_ref(&web));
    set_expires(&set, "2020-01-01T00:00:00Z");
    let manifests = Files::new().with("web.yaml", &web.to_string());
    let mut running = set
        .command(Program::new(), &manifests)
        .args(["-v", "--wait=0", "--expires=72h"])
        .start();
    running.wait_for_message("0 of 1 replicas");
    set.invoke("delete", &["--expired", "--yes"]).expect(0);
    cluster().patch_status(&web, &rolled_out());
    running.finish().expect(0);
    set.assert_holds(&[web]);
}

#[test]
fn a_set_that_is_renewed_before_the_first_delete_is_kept() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects = [config_map(&home, "one", "1")];
    set.apply(&objects);
    set_expires(&set, "2020-01-01T00:00:00Z");
    // The run has planned when it is about to write for the first time.
    let parent = set.parent.clone();
    let proxy = Proxy::before_request(
        |sent| sent.is_write() && sent.path.contains("/secrets/"),
        move || {
            let renewed = json!({"metadata": {"annotations": {EXPIRES: "2999-01-01T00:00:00Z"}}});
            cluster().patch(&parent, &renewed);
        },
    );
    let program = Program::with_kubeconfig(&proxy.kubeconfig());
    set.invoke_by(program, "delete", &["--expired", "--yes"])
        .expect(0);
    assert!(set.live_parent().is_some());
    assert!(cluster().live(&objects[0]).is_some());
}
