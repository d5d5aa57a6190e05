//! Values of Secrets and credentials never leave: not on any output of any command, however
//! much it is asked to print, and not when it fails.

use std::sync::Arc;
use std::thread;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use controlplane::ControlPlane;
use serde_json::{Value, json};

use crate::support::{
    Fault, Files, Program, Proxy, Run, Sent, Set, Verdict, Watch, cluster, named, namespace, objects_file,
    with,
};

/// What must not be seen, each somewhere else.
const DATA: &str = "planted-in-data-8f3a";
const STRING_DATA: &str = "planted-in-string-data-71bc";
const LIVE: &str = "planted-in-the-cluster-55d0";
const TOKEN: &str = "planted-in-a-token-c96e";
const PASSWORD: &str = "planted-in-a-password-0a42";

fn planted() -> Vec<String> {
    [DATA, STRING_DATA, LIVE, TOKEN, PASSWORD]
        .iter()
        .flat_map(|text| [(*text).to_owned(), BASE64_STANDARD.encode(text)])
        .collect()
}

#[track_caller]
fn assert_silent(what: &str, run: &Run) {
    for text in planted() {
        for (stream, reported) in [("stdout", &run.stdout), ("stderr", &run.stderr)] {
            assert!(
                !reported.contains(&text),
                "{what} reports {text} on {stream}:\n{reported}"
            );
        }
    }
}

fn secret(home: &str, name: &str, more: &Value) -> Value {
    with(named("v1", "Secret", Some(home), name), more)
}

/// Breaks every request of a kind.
struct Breaking(Fault);

impl Watch for Breaking {
    fn before(&self, sent: &Sent, _writes: usize) -> Verdict {
        if sent.is_write() {
            Verdict::Break(self.0)
        } else {
            Verdict::Forward
        }
    }
}

/// Every way to make a command print more.
const FORMATS: [&[&str]; 7] = [
    &["-v", "-v"],
    &["-v", "-v", "-o", "json"],
    &["-v", "-v", "-o", "markdown"],
    &["-v", "-v", "-o", "yaml"],
    &["-v", "-v", "-o", "kyaml"],
    &["-o", "name"],
    &["-q"],
];

#[test]
fn no_command_prints_what_a_secret_holds() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let data = json!({"data": {"key": BASE64_STANDARD.encode(DATA)}});
    let string_data = json!({"stringData": {"key": STRING_DATA}});
    let live = json!({"data": {"key": BASE64_STANDARD.encode(LIVE)}});
    let good = [secret(&home, "one", &data), secret(&home, "two", &string_data)];
    let good_files = Files::new().with("a.yaml", &objects_file(&good));
    let apply = |files: &Files, flags: &[&str]| set.command(Program::new(), files).args(flags).run();
    let with_manifests = |command: &str, files: &Files, flags: &[&str]| {
        let program = Program::new().args([command, "web", "-n", &home, "-f"]);
        program.args([files.directory()]).args(flags).run()
    };

    for flags in FORMATS {
        for dry_run in ["--dry-run=client", "--dry-run=server", "--apply-unchanged"] {
            assert_silent("apply", &apply(&good_files, flags).expect(0));
            assert_silent(
                dry_run,
                &apply(&good_files, &[flags, &[dry_run]].concat()).expect(0),
            );
        }
        for command in [
            &["list", "-A"][..],
            &["list", "-n", &home],
            &["view", "web", "-n", &home],
            &["verify", "web", "-n", &home],
            &["move", "web", "other", "-n", &home, "--dry-run=server"],
            &["disband", "web", "-n", &home, "--dry-run=server"],
            &["delete", "web", "-n", &home, "--dry-run=server"],
        ] {
            assert_silent(command[0], &Program::new().args(command).args(flags).run());
        }
        for command in ["rbac", "diff", "adopt"] {
            assert_silent(command, &with_manifests(command, &good_files, flags));
        }
    }

    // A conflict over a value, and a live value that is to be replaced and pruned.
    cluster().apply_as("another-tool", &with(secret(&home, "one", &live), &json!({})));
    for flags in FORMATS {
        assert_silent("a conflict", &apply(&good_files, flags).expect(1));
        assert_silent(
            "a conflict",
            &apply(&good_files, &[flags, &["--dry-run=server"]].concat()).expect(1),
        );
    }
    assert_silent(
        "force",
        &apply(&good_files, &["--force-conflicts", "-v", "-v"]).expect(0),
    );

    // What would change, and the plan that is kept of it.
    cluster().apply_as("applyset", &with(secret(&home, "two", &live), &json!({})));
    let plan = Files::new();
    let out = format!("--out={}", plan.path("plan.json").display());
    for flags in [
        &["-v", "-v"][..],
        &["-o", "json"],
        &["-o", "yaml"],
        &["-o", "markdown"],
        &[&out],
    ] {
        assert_silent("diff", &with_manifests("diff", &good_files, flags));
    }
    let kept = std::fs::read_to_string(plan.path("plan.json")).expect("a plan");
    for text in planted() {
        assert!(!kept.contains(&text), "the plan holds {text}");
    }

    // What the server refuses: it quotes what it was sent.
    let refused = [
        json!({"data": {"key": STRING_DATA}}),
        json!({"data": {"key": [DATA]}}),
        json!({"data": {"a key with spaces": BASE64_STANDARD.encode(DATA)}}),
        json!({"stringData": {"key": STRING_DATA}, "planted": {"unknown": 1}}),
        json!({"type": "kubernetes.io/tls", "data": {"tls.crt": BASE64_STANDARD.encode(DATA)}}),
        json!({"type": "kubernetes.io/dockerconfigjson", "stringData": {".dockerconfigjson": STRING_DATA}}),
        json!({"immutable": DATA, "stringData": {"key": STRING_DATA}}),
    ];
    for more in &refused {
        let files = Files::new().with("a.yaml", &objects_file(&[secret(&home, "bad", more)]));
        for flags in FORMATS.into_iter().take(3) {
            let run = apply(&files, flags);
            assert!([1, 2].contains(&run.code), "{more}: {} {}", run.code, run.stderr);
            assert_silent(&more.to_string(), &run);
            assert_silent(
                "a dry run",
                &apply(&files, &[flags, &["--dry-run=server"]].concat()),
            );
        }
    }

    // What breaks on the way.
    let changed = [secret(&home, "one", &string_data), secret(&home, "three", &data)];
    // In parallel: the program retries some of these for half a minute.
    let faults = Fault::ALL.into_iter().filter(|fault| *fault != Fault::Refused);
    thread::scope(|scope| {
        for fault in faults {
            let (set, changed) = (&set, &changed);
            scope.spawn(move || {
                let proxy = Proxy::watched(Arc::new(Breaking(fault)));
                let run = set.apply_through(&proxy, changed, &["-v", "-v", "--request-timeout=1s"]);
                assert_silent(&format!("{fault:?}"), &run);
            });
        }
    });
}

#[test]
fn what_cannot_be_read_is_reported_by_its_line_alone() {
    let set = Set::secret(&namespace("home"), "web");
    for text in [
        format!(
            "apiVersion: v1\nkind: Secret\nmetadata: {{name: bad}}\nstringData:\n  a: {STRING_DATA}\n\tb: {DATA}\n"
        ),
        format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: bad}}\nstringData: {{a: \"{STRING_DATA}\n"),
        format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: bad}}\nstringData: {STRING_DATA}: {DATA}\n"),
        format!(
            "apiVersion: v1\nkind: Secret\nmetadata: {{name: bad}}\nstringData: {{a: {STRING_DATA}?3}}\n"
        ),
        format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: bad}}\ndata: {{a: !!binary {DATA}}}\n"),
        format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: bad}}\ndata: {{a: !!int {DATA}}}\n"),
        format!(
            "{{\"apiVersion\": \"v1\", \"kind\": \"Secret\", \"stringData\": {{\"a\": \"{STRING_DATA}\" \"{DATA}\"}}}}"
        ),
    ] {
        let files = Files::new().with("a.yaml", &text);
        for flags in FORMATS {
            let run = set.command(Program::new(), &files).args(flags).run();
            assert_silent(&text, &run.expect(2));
        }
    }
}

#[test]
fn credentials_are_not_reported() {
    let home = namespace("home");
    let server = ControlPlane::shared().server_url();
    let authority = ControlPlane::shared()
        .certificate_authority()
        .display()
        .to_string();
    let kubeconfig = |user: Value| {
        let text = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": server, "certificate-authority": authority}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "users": [{"name": "u", "user": user}],
        });
        Files::new().with("kubeconfig", &text.to_string())
    };
    let exec = |script: &str| {
        json!({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "sh",
            "args": ["-c", script], "interactiveMode": "Never", "env": [{"name": "PASSWORD", "value": PASSWORD}]}})
    };
    let credential = json!({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": TOKEN}});
    let manifests = Files::new().with("a.yaml", &objects_file(&[secret(&home, "one", &json!({}))]));
    for user in [
        json!({"token": TOKEN}),
        json!({"username": "me", "password": PASSWORD}),
        json!({"client-key-data": BASE64_STANDARD.encode(PASSWORD), "client-certificate-data": BASE64_STANDARD.encode(TOKEN)}),
        json!({"token": {"is": TOKEN}}),
        exec(&format!("echo '{credential}'")),
        exec(&format!("echo '{{\"status\": \"{TOKEN}\"}}'")),
        exec(&format!("echo '{TOKEN}'")),
        exec("exit 1"),
    ] {
        let files = kubeconfig(user.clone());
        for flags in FORMATS {
            let program = || Program::with_kubeconfig(&files.path("kubeconfig"));
            for run in [
                Set::secret(&home, "web")
                    .command(program(), &manifests)
                    .args(flags)
                    .run(),
                program().args(["list", "-A"]).args(flags).run(),
                program().args(["view", "web", "-n", &home]).args(flags).run(),
            ] {
                assert_ne!(run.code, 0, "{user}");
                assert_silent(&user.to_string(), &run);
            }
        }
    }
    for flags in FORMATS {
        let run = Set::secret(&home, "web")
            .command(Program::new(), &manifests)
            .args(["--token", TOKEN])
            .args(flags)
            .run();
        assert_silent("--token", &run.expect(4));
    }
}
