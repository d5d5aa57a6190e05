//! Credentials plugins run where kubectl's preferences let them run, here as in kubectl.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use controlplane::ControlPlane;
use serde_json::json;

use crate::support::{Files, Program, Set, config_map, namespace};

/// A home directory with a kubeconfig whose user logs in by a plugin that is in `PATH`.
struct Home {
    files: Files,
}

impl Home {
    fn new() -> Self {
        let control_plane = ControlPlane::shared();
        let text = fs::read_to_string(control_plane.admin_kubeconfig()).expect("a kubeconfig");
        let admin = kube::config::Kubeconfig::from_yaml(&text).expect("a kubeconfig");
        let admin = serde_json::to_value(admin).expect("JSON");
        let token = &admin["users"][0]["user"]["token"];
        let answer = json!({
            "apiVersion": "client.authentication.k8s.io/v1",
            "kind": "ExecCredential",
            "status": {"token": token},
        });
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": {
                "server": control_plane.server_url(),
                "certificate-authority": control_plane.certificate_authority(),
            }}],
            "users": [{"name": "u", "user": {"exec": {
                "apiVersion": "client.authentication.k8s.io/v1",
                "command": "plugin",
                "interactiveMode": "Never",
            }}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        });
        let files = Files::new().with(".kube/config", &config.to_string());
        let mark = files.path("mark").display().to_string();
        let files = files
            .with_script("bin/plugin", &format!("echo run > {mark}\necho '{answer}'"))
            .with_script("elsewhere/plugin", "exit 1");
        Self { files }
    }

    /// Writes `~/.kube/kuberc`.
    fn kuberc(&self, text: &str) -> PathBuf {
        let path = self.files.path(".kube/kuberc");
        fs::write(&path, text).expect("a file");
        path
    }

    fn search_path(&self) -> String {
        format!("{}:/usr/bin:/bin", self.files.path("bin").display())
    }

    /// The program, at home.
    fn program(&self) -> Program {
        Program::with_kubeconfig(&self.files.path(".kube/config"))
            .env("HOME", self.files.directory())
            .env("PATH", self.search_path())
            .env("KUBERC", "")
    }

    fn kubectl(&self) -> Command {
        let mut kubectl = ControlPlane::shared().kubectl_command();
        kubectl
            .env("KUBECONFIG", self.files.path(".kube/config"))
            .env("HOME", self.files.directory())
            .env("PATH", self.search_path())
            .stdin(Stdio::null());
        kubectl
    }

    /// Returns whether the plugin ran since this was called last.
    fn has_run(&self) -> bool {
        fs::remove_file(self.files.path("mark")).is_ok()
    }

    /// Runs `list` and `kubectl get` with these variables and flags.
    #[track_caller]
    fn assert_alike(&self, variables: &[(&str, &str)], flags: &[&str], is_run: bool) {
        let kuberc = fs::read_to_string(self.files.path(".kube/kuberc")).unwrap_or_default();
        let mut kubectl = self.kubectl();
        let output = kubectl
            .envs(variables.iter().copied())
            .args(["get", "--raw", "/api"])
            .args(flags)
            .output()
            .expect("kubectl runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            (output.status.success(), self.has_run()),
            (is_run, is_run),
            "{kuberc}\nkubectl: {said}"
        );
        let program = variables
            .iter()
            .fold(self.program(), |program, (name, value)| program.env(name, value));
        let run = program.args(["list", "-n", "default"]).args(flags).run();
        assert_eq!(self.has_run(), is_run, "{kuberc}\n{}", run.stderr);
        run.expect(if is_run { 0 } else { 2 });
    }
}

fn preference(lines: &str) -> String {
    format!("apiVersion: kubectl.config.k8s.io/v1beta1\nkind: Preference\n{lines}\n")
}

#[test]
fn a_plugin_runs_where_it_runs_for_kubectl() {
    let home = Home::new();
    let plugin = home.files.path("bin/plugin").display().to_string();
    let elsewhere = home.files.path("elsewhere/plugin").display().to_string();
    let allowlist = |entries: &str| {
        preference(&format!(
            "credentialPluginPolicy: Allowlist\ncredentialPluginAllowlist: {entries}"
        ))
    };
    home.assert_alike(&[], &[], true);
    let table = [
        (preference(""), true),
        (preference("credentialPluginPolicy: AllowAll"), true),
        (preference("credentialPluginPolicy: DenyAll"), false),
        (preference("credentialPluginPolicy: denyall"), false),
        (preference("credentialPluginPolicy: Allowlist"), false),
        (allowlist("[]"), false),
        (allowlist("[{command: plugin}]"), true),
        (allowlist("[{name: plugin}]"), true),
        (
            allowlist(&format!("[{{command: other}}, {{command: {plugin}}}]")),
            true,
        ),
        (allowlist(&format!("[{{name: {plugin}}}]")), true),
        (allowlist(&format!("[{{command: {elsewhere}}}]")), false),
        (allowlist("[{command: other}]"), false),
        (allowlist("[{command: ./plugin}]"), false),
        (allowlist("[{}]"), false),
        (
            preference("credentialPluginAllowlist: [{command: plugin}]"),
            false,
        ),
        (
            "apiVersion: kubectl.config.k8s.io/v1alpha1\nkind: Preference\naliases: []\noverrides: []\n"
                .to_owned(),
            true,
        ),
        (
            "apiVersion: kubectl.config.k8s.io/v9\nkind: Preference\n".to_owned(),
            true,
        ),
        (
            format!(
                "apiVersion: kubectl.config.k8s.io/v9\nkind: Preference\n---\n{}",
                preference("credentialPluginPolicy: DenyAll")
            ),
            false,
        ),
        (String::new(), true),
    ];
    for (text, is_run) in table {
        home.kuberc(&text);
        home.assert_alike(&[], &[], is_run);
    }
}

#[test]
fn preferences_are_named_by_flag_or_environment_and_switched_off() {
    let home = Home::new();
    home.kuberc(&preference("credentialPluginPolicy: DenyAll"));
    let open = home.files.path("open");
    fs::write(&open, preference("")).expect("a file");
    let open = open.display().to_string();
    let missing = home.files.path("missing").display().to_string();
    home.assert_alike(&[], &[], false);
    home.assert_alike(&[], &["--kuberc", &open], true);
    home.assert_alike(&[("KUBERC", &open)], &[], true);
    home.assert_alike(&[("KUBERC", &missing)], &[], false);
    home.assert_alike(&[("KUBERC", &missing)], &["--kuberc", &open], true);
    home.assert_alike(&[], &["--kuberc", &missing], false);
    home.assert_alike(&[("KUBERC", "off")], &[], true);
    home.assert_alike(&[("KUBERC", "off")], &["--kuberc", &open], false);
    home.assert_alike(&[("KUBECTL_KUBERC", "false")], &[], true);
}

/// kubectl passes such a file over with a warning, and runs the plugin.
#[test]
fn a_file_that_cannot_be_read_and_mentions_plugins_lets_none_run() {
    let home = Home::new();
    let texts = [
        "credentialPluginPolicy: DenyAll\n\taliases: [",
        "apiVersion: kubectl.config.k8s.io/v9\nkind: Preference\ncredentialPluginPolicy: DenyAll\n",
        "apiVersion: kubectl.config.k8s.io/v1alpha1\nkind: Preference\ncredentialPluginPolicy: DenyAll\n",
    ];
    for text in texts {
        home.kuberc(text);
        let run = home.program().args(["list", "-n", "default"]).run().expect(2);
        assert!(!home.has_run(), "{}", run.stderr);
        assert!(run.stderr.contains("kuberc"), "{}", run.stderr);
    }
    // Who needs no plugin needs no preferences.
    Program::new()
        .env("HOME", home.files.directory())
        .env("KUBERC", "")
        .args(["list", "-n", "default"])
        .run()
        .expect(0);
}

#[test]
fn completion_runs_no_plugin_that_may_not_run() {
    let home = Home::new();
    let place = namespace("home");
    let set = Set::secret(&place, "web");
    set.apply(&[config_map(&place, "a", "1")]);
    let complete = || {
        home.program()
            .args(["__complete", "apply", "-n", &place, "we"])
            .run()
            .expect(0)
    };
    assert!(complete().stdout.contains("web"));
    assert!(home.has_run());
    home.kuberc(&preference("credentialPluginPolicy: DenyAll"));
    assert!(!complete().stdout.contains("web"));
    assert!(!home.has_run());
    let open = home.files.path("open");
    fs::write(&open, preference("")).expect("a file");
    let run = home
        .program()
        .args(["__complete", "apply", "--kuberc"])
        .args([&open])
        .args(["-n", &place, "we"])
        .run();
    assert!(run.stdout.contains("web") && home.has_run());
}
