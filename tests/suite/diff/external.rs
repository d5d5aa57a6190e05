//! `KUBECTL_EXTERNAL_DIFF`: what the program is given, and what it is not asked.

use serde_json::Value;

use super::{diff_by, executable};
use crate::support::{Files, Program, Set, cluster, config_map, namespace, service};

#[test]
fn an_external_program_is_given_what_kubectl_gives() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    set.apply(&[config_map(&home, "one", "1"), config_map(&home, "gone", "1")]);
    let next = [config_map(&home, "one", "2"), service(&home, "new", 80)];
    let program = Files::new().with(
        "show",
        "#!/bin/sh\nfor d in \"$1\" \"$2\"; do basename \"$d\" | cut -d- -f1; (cd \"$d\" && wc -c * | awk '$2 != \"total\" {print ($1 > 0), $2}'); done\nshift 2; echo \"$*\"; exit $CODE\n",
    );
    executable(&program, "show");
    let value = format!("{} -a --b=c x;y", program.path("show").display());
    let run = |code: &str, flags: &[&str]| {
        let program = Program::new()
            .env("KUBECTL_EXTERNAL_DIFF", &value)
            .env("CODE", code);
        diff_by(program, &set, &next, flags)
    };
    let shown = run("1", &[]).expect(1);
    let file = |there: u8, kind: &str, name: &str| format!("{there} v1.{kind}.{home}.{name}");
    let expected = [
        "LIVE".to_owned(),
        file(1, "ConfigMap", "gone"),
        file(1, "ConfigMap", "one"),
        file(1, "Secret", "web"),
        file(0, "Service", "new"),
        "MERGED".to_owned(),
        file(0, "ConfigMap", "gone"),
        file(1, "ConfigMap", "one"),
        file(1, "Secret", "web"),
        file(1, "Service", "new"),
        "-a --b=c".to_owned(),
    ];
    assert_eq!(shown.stdout.lines().collect::<Vec<_>>(), expected);
    run("0", &[]).expect(0);
    run("7", &[]).expect(2);
    let document = run("7", &["-o", "json"]).expect(1).document();
    assert_eq!(document["summary"]["created"], 1);
    let missing = Program::new().env("KUBECTL_EXTERNAL_DIFF", "/no/such/program");
    diff_by(missing, &set, &next, &[]).expect(2);
}

#[test]
fn only_the_user_can_read_the_files_of_an_external_program() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let listing = Files::new().with_script("show", "stat -c %a \"$1\" \"$2\" \"$2\"/*; exit 1");
    let program = Program::new().env("KUBECTL_EXTERNAL_DIFF", listing.path("show"));
    let run = diff_by(program, &set, &[config_map(&home, "one", "1")], &[]).expect(1);
    let modes: Vec<&str> = run.stdout.lines().collect();
    assert_eq!(modes, ["700", "700", "600", "600"]);
}

#[test]
fn an_external_program_does_not_judge_what_it_cannot_see() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let object = config_map(&home, "one", "1");
    set.apply(std::slice::from_ref(&object));
    let run = |objects: &[Value]| {
        let program = Program::new().env("KUBECTL_EXTERNAL_DIFF", "true");
        diff_by(program, &set, objects, &[])
    };
    run(std::slice::from_ref(&object)).expect(0);
    // What `apply` would fail at is shown as it is.
    cluster().apply_as("rival", &config_map(&home, "one", "rival"));
    let failing = run(&[config_map(&home, "one", "2")]).expect(1);
    assert!(
        failing.stderr.contains("owner:    \"rival\""),
        "{}",
        failing.stderr
    );
    // A manifest that takes over what another one set changes nothing but its owners.
    let ownership = run(&[config_map(&home, "one", "rival")]);
    assert_eq!((ownership.code, ownership.stdout.as_str()), (1, ""));
}
