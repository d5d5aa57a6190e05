//! Which kubeconfig is used, and what is reported one that cannot be.

use std::collections::BTreeSet;
use std::env::join_paths;
use std::path::Path;

use controlplane::ControlPlane;

use crate::support::{Files, Program, Proxy, Set, config_map, namespace};

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
    let run = Program::with_kubeconfig(&missing).args(arguments).run().expect(4);
    let missing_name = missing.display().to_string();
    assert!(run.stderr.contains(&missing_name), "{}", run.stderr);
    Program::new()
        .args(arguments)
        .args(["--kubeconfig".as_ref(), missing.as_os_str()])
        .run()
        .expect(2);
}

#[cfg(unix)]
#[test]
fn a_pipe_is_a_kubeconfig_and_a_null_device_an_empty_one() {
    let home = namespace("home");
    let admin = ControlPlane::shared().admin_kubeconfig();
    let text = std::fs::read_to_string(admin).expect("a kubeconfig");
    let piped = Path::new("/dev/stdin");
    let arguments = ["list", "-n", &home, "-o", "json"];
    let run = || Program::with_kubeconfig(piped).input(&text).args(arguments);
    run().run().expect(0);
    run().env("KUBERC", "/dev/null").run().expect(0);

    let kubeconfig = kube::config::Kubeconfig::from_yaml(&text).expect("a kubeconfig");
    let kubeconfig = serde_json::to_value(kubeconfig).expect("JSON");
    let token = kubeconfig["users"][0]["user"]["token"].as_str().expect("a token");
    let empty = || Program::with_kubeconfig(Path::new("/dev/null")).args(arguments);
    let server = ControlPlane::shared().server_url();
    let authority = ControlPlane::shared().certificate_authority();
    empty()
        .args(["--server", server, "--token", token, "--certificate-authority"])
        .args([authority])
        .run()
        .expect(0);
    let run = empty().run().expect(2);
    assert!(
        run.stderr.contains("/dev/null: it has no cluster"),
        "{}",
        run.stderr
    );
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
        !run.stderr.contains("SECRET") && run.stderr.contains("config:5:"),
        "{}",
        run.stderr
    );
}

#[test]
fn each_request_names_the_program_and_its_version() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let proxy = Proxy::transparent();
    set.apply_through(&proxy, &[config_map(&home, "one", "1")], &[])
        .expect(0);
    let names: BTreeSet<String> = proxy.sent().into_iter().map(|sent| sent.user_agent).collect();
    let expected = concat!("kubectl-applyset/v", env!("CARGO_PKG_VERSION"));
    assert_eq!(names, BTreeSet::from([expected.to_owned()]));
}

#[test]
fn groups_are_impersonated_with_a_user() {
    let run = Program::new().args(["list", "--as-group=system:masters"]).run();
    assert_eq!(run.expect(2).errors().len(), 1);
    let home = namespace("home");
    let arguments = ["list", "-n", &home, "--as=me", "--as-group=system:masters"];
    Program::new().args(arguments).run().expect(0);
}

/// Runs `list`, and asserts that the one error and its hint name these.
#[track_caller]
fn assert_reported(program: Program, code: i32, texts: &[&str]) {
    let run = program.args(["list"]).run().expect(code);
    assert_eq!(run.errors().len(), 1, "{}", run.stderr);
    for text in texts {
        assert!(run.stderr.contains(text), "{text}: {}", run.stderr);
    }
}

#[test]
fn a_proxy_that_does_not_answer_is_named_with_where_that_is_said() {
    let server = ["--server=https://192.0.2.1", "--token=x"];
    let program = Program::new().env("HTTPS_PROXY", "http://me:SECRET@proxy.invalid:3128");
    let run = program.args(server).args(["list"]).run().expect(4);
    for text in ["proxy.invalid:3128", "HTTPS_PROXY", "192.0.2.1"] {
        assert!(run.stderr.contains(text), "{text}: {}", run.stderr);
    }
    assert!(!run.stderr.contains("SECRET"), "{}", run.stderr);

    let cluster =
        "clusters: [{name: far, cluster: {server: 'https://192.0.2.1', proxy-url: 'http://proxy.invalid'}}]";
    let context = "contexts: [{name: far, context: {cluster: far}}]\ncurrent-context: far";
    let files = Files::new().with("config", &format!("{cluster}\n{context}\n"));
    let program = Program::with_kubeconfig(&files.path("config"));
    assert_reported(program, 4, &["proxy.invalid", "proxy-url", "far"]);
}

#[test]
fn a_certificate_that_is_not_trusted_is_reported_as_such() {
    let authority = ControlPlane::shared().data_dir().join("admin.crt");
    let program = Program::new().args(["--certificate-authority".as_ref(), authority.as_os_str()]);
    assert_reported(program, 4, &["not trusted", "certificate-authority"]);
    let program = Program::new().args(["--tls-server-name=other.example.com"]);
    assert_reported(program, 4, &["not trusted", "--tls-server-name"]);
}

#[test]
fn a_certificate_or_a_key_that_is_not_there_is_named() {
    let key = ControlPlane::shared().data_dir().join("admin.key");
    let program = Program::new()
        .args(["--client-certificate=/not/there.crt", "--client-key"])
        .args([key]);
    assert_reported(program, 2, &["/not/there.crt", "--client-certificate"]);
    let program = Program::new().args(["--client-key=/not/there.key"]);
    assert_reported(program, 2, &["/not/there.key", "--client-key"]);
}
