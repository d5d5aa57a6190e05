//! Which kubeconfig is used, and what is told of one that cannot be.

use std::env::join_paths;

use controlplane::ControlPlane;

use crate::support::{Files, Program, namespace};

#[test]
fn a_kubeconfig_that_is_missing_does_not_hide_the_next() {
    let home = namespace("home");
    let admin = ControlPlane::shared().admin_kubeconfig();
    let files = Files::new();
    let missing = files.path("missing");
    let list = join_paths([missing.as_path(), admin]).expect("paths without separators");
    let arguments = ["list", "-n", &home, "-o", "json"];
    Program::with_kubeconfig(list.as_ref())
        .args(arguments)
        .run()
        .expect(0);
    Program::with_kubeconfig(&missing).args(arguments).run().expect(4);
    Program::new()
        .args(arguments)
        .args(["--kubeconfig".as_ref(), missing.as_os_str()])
        .run()
        .expect(2);
}

#[test]
fn a_token_is_not_shown() {
    let broken = "users:\n- name: me\n  user:\n    token: SUPERSECRET\n\tx: y\n";
    let files = Files::new().with("config", broken);
    let run = Program::with_kubeconfig(&files.path("config"))
        .args(["list"])
        .run()
        .expect(2);
    assert!(
        !run.stderr.contains("SECRET") && run.stderr.contains("config:4:"),
        "{}",
        run.stderr
    );
}

#[test]
fn groups_are_impersonated_by_somebody() {
    let run = Program::new().args(["list", "--as-group=system:masters"]).run();
    assert_eq!(run.expect(2).errors().len(), 1);
    let home = namespace("home");
    let arguments = ["list", "-n", &home, "--as=me", "--as-group=system:masters"];
    Program::new().args(arguments).run().expect(0);
}
