//! Recreations are predicted by `diff` and dry runs, and pinned by saved plans.

use std::slice::from_ref;

use serde_json::Value;

use super::{diff, frozen, image, job, marked, uid};
use crate::support::{Files, Program, Run, Set, cluster, config_map, identities, namespace, objects_file};

fn save(set: &Set, files: &Files, flags: &[&str]) -> Run {
    set.invocation(Program::new(), "diff", &["-o", "json", "-f"])
        .args([files.path("manifests")])
        .args(["--out".as_ref(), files.path("plan.json").as_os_str()])
        .args(flags)
        .run()
}

fn apply(files: &Files, flags: &[&str]) -> Run {
    Program::new()
        .args(["apply", "-o", "json", "--plan"])
        .args([files.path("plan.json")])
        .args(flags)
        .run()
}

fn manifests(objects: &[Value]) -> Files {
    Files::new().with("manifests/objects.yaml", &objects_file(objects))
}

#[test]
fn a_diff_shows_the_old_and_the_new_object() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    set.apply(&[
        marked(job(&home, "migrate", "one")),
        config_map(&home, "one", "1"),
    ]);
    let objects = [
        marked(job(&home, "migrate", "two")),
        config_map(&home, "one", "1"),
    ];
    let state = cluster().state(&[&home]);
    let found = diff(&set, &objects, &["-o", "json"]).expect(1);
    assert_eq!(found.results("recreated"), identities([&objects[0]]));
    assert_eq!(found.document()["summary"]["recreated"], 1);
    let text = diff(&set, &objects, &[]).expect(1).stdout;
    let changed: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with(['+', '-']) && !line.starts_with("+++") && !line.starts_with("---"))
        .collect();
    // Nothing that the server fills in or invents.
    assert_eq!(changed, ["-      - image: one", "+      - image: two"], "{text}");
    for (mode, action) in [("server", "recreated"), ("client", "configured")] {
        let run = set
            .apply_with(&objects, &[&format!("--dry-run={mode}")])
            .expect(0);
        assert_eq!(run.results(action), identities([&objects[0]]), "{mode}");
        if mode == "client" {
            assert!(run.reason("migrate").contains("recreated if"), "{}", run.stdout);
            let note = format!(
                "note: recreated if the server refuses the update: job.batch/migrate in namespace {home}\n"
            );
            assert!(run.stderr.contains(&note), "{}", run.stderr);
        }
    }
    assert_eq!(cluster().state(&[&home]), state);
}

#[test]
fn a_refused_recreation_is_predicted() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    set.apply(&[job(&home, "migrate", "one")]);
    let objects = [job(&home, "migrate", "two")];
    for run in [
        diff(&set, &objects, &["-o", "json"]),
        set.apply_with(&objects, &["--dry-run=server"]),
    ] {
        let run = run.expect(1);
        assert_eq!(run.results("failed"), identities(&objects));
        assert!(run.stdout.contains("--recreate=Job"), "{}", run.stdout);
    }
}

#[test]
fn a_saved_plan_recreates_what_it_names() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let old = job(&home, "migrate", "one");
    set.apply(from_ref(&old));
    let before = uid(&old);
    let new = [job(&home, "migrate", "two")];
    let files = manifests(&new);
    save(&set, &files, &["--recreate=Job"]).expect(1);
    // Controllers write the status while the plan is reviewed.
    cluster().patch_status(
        &old,
        &serde_json::json!({"active": 1, "startTime": "2026-01-01T00:00:00Z"}),
    );
    let dry = apply(&files, &["--dry-run=server"]).expect(0);
    assert_eq!(dry.results("recreated"), identities(&new));
    let run = apply(&files, &[]).expect(0);
    assert_eq!(run.results("recreated"), identities(&new));
    assert_ne!(uid(&old), before);
    assert_eq!(image(&old), "two");
    // What is done cannot be done again.
    apply(&files, &[]).expect(3);
}

#[test]
fn a_saved_plan_recreates_no_other_object() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let old = marked(frozen(&home, "one", "1"));
    set.apply(from_ref(&old));
    let new = [marked(frozen(&home, "one", "2"))];
    let files = manifests(&new);
    save(&set, &files, &[]).expect(1);
    cluster().delete(&old);
    let other = cluster().create(&frozen(&home, "one", "3"));
    apply(&files, &[]).expect(3);
    assert_eq!(uid(&old), other["metadata"]["uid"]);
}
