//! What is offered behind `kubectl applyset` when a person presses Tab, asked of kubectl as
//! its completion scripts ask, and once of a bash that has loaded them.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use controlplane::{ControlPlane, Grant};
use serde_json::json;

use crate::support::{
    Files, Program, Proxy, Run, Set, cluster, config_map, custom_resource, definition, fresh, named,
    namespace,
};

/// What kubectl got for its question.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    /// Without their descriptions.
    candidates: Vec<String>,
    /// The number behind the colon of the last line.
    directive: String,
}

/// The search path of a person who has installed kubectl, the plugin and its completion.
fn search_path() -> OsString {
    let program = Path::new(env!("CARGO_BIN_EXE_kubectl-applyset"));
    let places = [program, ControlPlane::shared().kubectl()].map(|file| file.parent().expect("a directory"));
    let completions = Path::new(env!("CARGO_MANIFEST_DIR")).join("completions");
    let others = std::env::var_os("PATH").unwrap_or_default();
    let places = places.into_iter().map(PathBuf::from).chain([completions]);
    std::env::join_paths(places.chain(std::env::split_paths(&others))).expect("a search path")
}

/// What is offered for the last of these words, with this kubeconfig.
fn answer_with(kubeconfig: &Path, words: &[&str]) -> Answer {
    let output = Command::new("kubectl")
        .args(["__complete", "applyset"])
        .args(words)
        .env("PATH", search_path())
        .env("KUBECONFIG", kubeconfig)
        .stdin(Stdio::null())
        .output();
    let lines = text(&output.expect("kubectl runs"));
    let mut lines: Vec<&str> = lines.lines().collect();
    let last = lines.pop().expect("a directive");
    let candidate = |line: &str| line.split('\t').next().unwrap_or_default().to_owned();
    Answer {
        candidates: lines.into_iter().map(candidate).collect(),
        directive: last.trim_start_matches(':').to_owned(),
    }
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

/// Fails unless these are offered for the last of these words, and no files beside them.
fn assert_offers(words: &[&str], expected: &[&str]) {
    assert_offers_with(ControlPlane::shared().admin_kubeconfig(), words, expected);
}

/// The same with this kubeconfig.
fn assert_offers_with(kubeconfig: &Path, words: &[&str], expected: &[&str]) {
    let answer = in_a_few_attempts(
        || answer_with(kubeconfig, words),
        |answer| answer.candidates == expected,
    );
    assert_eq!(answer.candidates, expected, "{words:?}");
    assert_eq!(answer.directive, "4", "{words:?}");
}

/// A look is given up after two seconds, which a machine may be too busy for.
fn in_a_few_attempts<T>(attempt: impl Fn() -> T, is_expected: impl Fn(&T) -> bool) -> T {
    let expected = (0..5).map(|_| attempt()).find(&is_expected);
    expected.unwrap_or_else(attempt)
}

/// What the program itself says, where kubectl's script would hide its complaints.
fn ask(kubeconfig: &Path, words: &[&str]) -> Run {
    Program::with_kubeconfig(kubeconfig)
        .args(["__complete"])
        .args(words)
        .run()
        .expect(0)
}

#[test]
fn sets_are_offered_as_the_command_line_takes_them() {
    let [here, elsewhere] = [namespace("here"), namespace("elsewhere")];
    let group = format!("{}.example.com", fresh("g"));
    cluster().define(&definition(&group, "Namespaced"));
    cluster().create(&custom_resource(&group, Some(&here), "web"));
    Set::secret(&here, "shop").apply(&[config_map(&here, "one", "1")]);
    Set::config_map(&here, "side").apply(&[config_map(&here, "two", "2")]);
    Set::custom(&group, Some(&here), &here).apply(&[config_map(&here, "three", "3")]);
    Set::secret(&elsewhere, "secluded").apply(&[config_map(&elsewhere, "one", "1")]);
    cluster().create(&named("v1", "Secret", Some(&here), "no-set"));

    let custom = format!("widgets.{group}/web");
    assert_offers(&["view", "-n", &here, ""], &["shop", "configmap/side", &custom]);
    assert_offers(&["apply", "--namespace", &here, "s"], &["shop"]);
    assert_offers(&["view", "-n", &here, "secr"], &["secret/shop"]);
    assert_offers(&["-n", &elsewhere, "rbac", "sec"], &["secluded"]);
    assert_offers(&["view", "-n", &here, "cm/"], &["cm/side"]);
    assert_offers(&["view", "-n", &here, &custom[..12]], &[&custom]);
    assert_offers(
        &["apply", "-n", &here, "--applyset", "configmaps/s"],
        &["configmaps/side"],
    );
    // kubectl's scripts put what stands before the `=` back.
    assert_offers(&["apply", "-n", &here, "--applyset=sh"], &["shop"]);
    assert_offers(&["view", &format!("-n{here}"), "sh"], &["shop"]);
    // A finished line has no second set, and a flag with an optional value takes no word.
    assert_offers(&["view", "-n", &here, "shop", "s"], &[]);
    assert_offers(&["apply", "-n", &here, "--dry-run", "shop", "s"], &[]);
}

#[test]
fn namespaces_and_what_the_kubeconfig_names_are_offered() {
    let namespace = namespace("offered");
    // A name that ends like this cannot be asked for, but it can be typed.
    assert_offers(&["apply", "-n", "offered-"], &[&namespace]);
    assert_offers(&["list", "--namespace=offered"], &[&namespace]);

    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config",
        "clusters": [{"name": "north", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "jane", "user": {}}, {"name": "john", "user": {}}],
        "contexts": [{"name": "jane-at-north", "context": {"cluster": "north", "user": "jane"}}],
    });
    let files = Files::new().with("kubeconfig", &kubeconfig.to_string());
    let file = files.path("kubeconfig").display().to_string();
    assert_offers(
        &["--kubeconfig", &file, "view", "--context", ""],
        &["jane-at-north"],
    );
    assert_offers(&["view", "--kubeconfig", &file, "--cluster", "n"], &["north"]);
    assert_offers(&["view", "--kubeconfig", &file, "--user", ""], &["jane", "john"]);
    assert_offers(&["view", "--kubeconfig", &file, "--user=jo"], &["john"]);
}

/// Names of a kubeconfig are anybody's; a shell reads candidates line by line, and bash puts them on the line as they are.
#[test]
fn hostile_names_are_neither_candidates_of_their_own_nor_commands() {
    let context = |name: &str| json!({"name": name, "context": {"cluster": "north", "user": "jane"}});
    let names = [
        "plain",
        "a\n--forged\n:0",
        "b\u{b}forged",
        "c\u{1b}[2K",
        "d$(id)",
        "e`id`;id",
        "f g",
    ];
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config",
        "clusters": [{"name": "north", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "jane", "user": {}}],
        "contexts": names.map(context),
    });
    let files = Files::new().with("kubeconfig", &kubeconfig.to_string());
    let kubeconfig = files.path("kubeconfig");
    assert_offers_with(&kubeconfig, &["view", "--context", ""], &["plain"]);
    let asked_by = |shell: &str, separator: &str| {
        let run = Program::with_kubeconfig(&kubeconfig)
            .env("KUBECTL_APPLYSET_COMPLETE", shell)
            .env("_CLAP_COMPLETE_INDEX", "3")
            .env("_CLAP_IFS", separator)
            .args(["--", "kubectl-applyset", "view", "--context", ""])
            .run();
        run.stdout.split(separator).map(str::to_owned).collect::<Vec<_>>()
    };
    for (shell, separator) in [("bash", "\u{b}"), ("zsh", "\n")] {
        assert_eq!(asked_by(shell, separator), ["plain"], "{shell}");
    }
}

#[test]
fn files_are_left_to_the_shell() {
    let kubeconfig = ControlPlane::shared().admin_kubeconfig();
    let asked = |words: &[&str]| {
        let answer = answer_with(kubeconfig, words);
        (answer.candidates.join(" "), answer.directive)
    };
    let manifests = ("json yaml yml".to_owned(), "8".to_owned());
    assert_eq!(asked(&["apply", "web", "-f", ""]), manifests);
    assert_eq!(asked(&["apply", "web", "--filename=man"]), manifests);
    let files = (String::new(), "0".to_owned());
    assert_eq!(asked(&["view", "--kubeconfig", ""]), files);
}

#[test]
fn commands_and_flags_are_those_of_the_program() {
    let answer = answer_with(ControlPlane::shared().admin_kubeconfig(), &[""]);
    for command in ["apply", "list", "view", "rbac", "completion", "version"] {
        let is_offered = answer.candidates.iter().any(|candidate| candidate == command);
        assert!(is_offered, "{command}: {answer:?}");
    }
    let is_hidden = |candidate: &String| candidate.starts_with('_');
    assert!(!answer.candidates.iter().any(is_hidden), "{answer:?}");
    assert_offers(&["apply", "--dry"], &["--dry-run"]);
    assert_offers(&["apply", "--dry-run=s"], &["server"]);
    assert_offers(
        &["view", "web", "-o", ""],
        &["json", "yaml", "kyaml", "name", "wide", "markdown"],
    );
}

#[test]
fn nothing_is_written_to_find_out() {
    let namespace = namespace("quiet");
    Set::secret(&namespace, "web").apply(&[config_map(&namespace, "one", "1")]);
    let proxy = Proxy::transparent();
    assert_offers_with(&proxy.kubeconfig(), &["apply", "-n", &namespace, ""], &["web"]);
    answer_with(&proxy.kubeconfig(), &["apply", "-n", ""]);
    let methods: Vec<_> = proxy.sent().into_iter().map(|sent| sent.method).collect();
    assert!(!methods.is_empty());
    assert!(
        methods.iter().all(|method| method == http::Method::GET),
        "{methods:?}"
    );
}

#[test]
fn a_user_of_one_namespace_is_offered_what_they_may_see() {
    let namespace = namespace("mine");
    Set::secret(&namespace, "web").apply(&[config_map(&namespace, "one", "1")]);
    Set::config_map(&namespace, "side").apply(&[config_map(&namespace, "two", "1")]);
    let rule = json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]});
    let user = ControlPlane::shared().user(&[Grant::in_namespace(&namespace, [rule])]);
    let user = user.expect("a user");
    let words = ["view", "-n", &namespace, ""];
    assert_offers_with(&user.kubeconfig, &words, &["configmap/side"]);
    assert_offers_with(&user.kubeconfig, &["view", "-n", ""], &[]);
}

#[test]
fn what_goes_wrong_is_not_reported_at_a_prompt() {
    let without_rights = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "nowhere",
        "clusters": [{"name": "nowhere", "cluster": {"server": "https://127.0.0.1:1"}}],
        "contexts": [{"name": "nowhere", "context": {"cluster": "nowhere", "user": "none"}}],
    });
    let files = Files::new()
        .with("nowhere", &without_rights.to_string())
        .with("broken", "{ this: not a kubeconfig");
    for kubeconfig in ["nowhere", "broken", "missing"] {
        for words in [
            ["view", "-n", ""],
            ["--wrong", "view", "--context=no"],
            ["apply", "web", "cm/"],
        ] {
            let run = ask(&files.path(kubeconfig), &words);
            let reported = (run.stdout.lines().last(), run.stderr.as_str());
            assert_eq!(reported, (Some(":4"), ""), "{kubeconfig} {words:?}");
        }
    }
}

/// A plugin for credentials that does not end would hold up the prompt forever.
#[test]
fn a_login_that_does_not_end_is_not_waited_for() {
    let files = Files::new();
    let [fifo, plugin] = ["fifo", "plugin"].map(|name| files.path(name));
    let made = Command::new("mkfifo").arg(&fifo).status().expect("mkfifo runs");
    assert!(made.success());
    let script = format!("#!/bin/sh\nexec cat '{}'\n", fifo.display());
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": {"exec": {
            "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "IfAvailable",
            "command": plugin,
        }}}],
    });
    let files = files
        .with("plugin", &script)
        .with("kubeconfig", &kubeconfig.to_string());
    std::fs::set_permissions(&plugin, PermissionsExt::from_mode(0o700)).expect("permissions");

    let run = ask(&files.path("kubeconfig"), &["view", "-n", ""]);

    assert_eq!((run.stdout.as_str(), run.stderr.as_str()), (":4\n", ""));
    // The plugin reads to the end of what comes through here, which is now.
    let writer = OpenOptions::new().read(true).write(true).open(&fifo);
    drop(writer.expect("the plugin's pipe"));
}

/// The scripts of kubectl want two functions of the package bash-completion. Where that is
/// not loaded, these stand in.
const BASH: &str = r#"
    source <(kubectl completion bash)
    declare -F _get_comp_words_by_ref > /dev/null || _get_comp_words_by_ref() {
        words=("${COMP_WORDS[@]}") cword=$COMP_CWORD
        cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
    }
    declare -F __ltrim_colon_completions > /dev/null || __ltrim_colon_completions() { :; }
    COMP_WORDS=(kubectl applyset "$@") COMP_CWORD=$(($# + 1)) COMP_TYPE=9 COMP_KEY=9
    COMP_LINE="${COMP_WORDS[*]}" COMP_POINT=${#COMP_LINE}
    "$(complete -p kubectl | sed 's/.*-F \([^ ]*\).*/\1/')" 2> /dev/null
    printf '%s\n' "${COMPREPLY[@]}"
"#;

#[test]
fn bash_completes_sets_with_the_scripts_of_kubectl() {
    let namespace = namespace("bash");
    Set::secret(&namespace, "web").apply(&[config_map(&namespace, "one", "1")]);
    let press_tab = |words: &[&str]| {
        let output = Command::new("bash")
            .args(["--norc", "-c", BASH, "bash"])
            .args(words)
            .env("PATH", search_path())
            .env("KUBECONFIG", ControlPlane::shared().admin_kubeconfig())
            .stdin(Stdio::null())
            .output();
        let reply = text(&output.expect("bash runs"));
        reply.split_whitespace().next().unwrap_or_default().to_owned()
    };
    let cases: [(&[&str], &str); 4] = [
        (&["vi"], "view"),
        (&["view", "-n", &namespace, "w"], "web"),
        (&["view", "-n", &namespace, "secret/"], "secret/web"),
        (&["apply", "web", "--force-"], "--force-conflicts"),
    ];
    for (words, expected) in cases {
        let reply = in_a_few_attempts(|| press_tab(words), |reply| reply == expected);
        assert_eq!(reply, expected, "{words:?}");
    }
}
