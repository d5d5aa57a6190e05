//! Every way to log in, and to reach the server: who the server says it is, and that
//! nothing secret is reported when it fails.

use std::fs;
use std::path::Path;

use bytes::Bytes;
use controlplane::{ControlPlane, User};
use http::Method;
use kubectl_applyset::internals::{ApiRequest, Connection, ConnectionOptions, Content};
use serde_json::{Value, json};

use crate::support::{
    Files, Program, Run, Set, Tunnel, cluster, config_map, named, namespace, objects_file, path_of, runtime,
    with,
};

const EXEC: &str = "client.authentication.k8s.io/v1";
const PLANTED: &str = "SUPERSECRET";

/// A user without rights.
fn user() -> User {
    ControlPlane::shared().user(&[]).expect("a user")
}

/// The token of a kubeconfig of the control plane.
fn token(kubeconfig: &Path) -> String {
    let text = fs::read_to_string(kubeconfig).expect("a kubeconfig");
    let config = kube::config::Kubeconfig::from_yaml(&text).expect("a kubeconfig");
    let config = serde_json::to_value(config).expect("JSON");
    let token = &config["users"][0]["user"]["token"];
    token.as_str().expect("a token").to_owned()
}

fn admin_token() -> String {
    token(ControlPlane::shared().admin_kubeconfig())
}

/// A kubeconfig of the control plane for this user, with more about the cluster.
fn kubeconfig(cluster: &Value, user: &Value) -> String {
    let of_control_plane = json!({
        "server": ControlPlane::shared().server_url(),
        "certificate-authority": ControlPlane::shared().certificate_authority(),
    });
    json!({
        "clusters": [{"name": "c", "cluster": with(of_control_plane, cluster)}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    })
    .to_string()
}

fn files(user: &Value) -> Files {
    Files::new().with("config", &kubeconfig(&json!({}), user))
}

fn options(files: &Files) -> ConnectionOptions {
    ConnectionOptions {
        kubeconfig: Some(files.path("config")),
        ..ConnectionOptions::default()
    }
}

fn connect(options: &ConnectionOptions) -> Connection {
    runtime()
        .block_on(options.connect())
        .unwrap_or_else(|error| panic!("{error}"))
}

/// Who the server says that this is: `status.userInfo` of a `SelfSubjectReview`.
fn who(connection: &Connection) -> Value {
    let request = ApiRequest {
        method: Method::POST,
        path: "/apis/authentication.k8s.io/v1/selfsubjectreviews".to_owned(),
        accept: "application/json".to_owned(),
        answer: Content::Object,
        content_type: Some("application/json"),
        body: Bytes::from(
            json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}).to_string(),
        ),
        not_after: None,
    };
    let reply = runtime().block_on(connection.server.send(request));
    let reply = reply.unwrap_or_else(|error| panic!("{error}"));
    let review: Value = reply.json().expect("JSON");
    review["status"]["userInfo"].clone()
}

fn name(options: &ConnectionOptions) -> String {
    let who = who(&connect(options));
    who["username"].as_str().expect("a name").to_owned()
}

/// A plugin that runs these lines; `$DIR` is the directory of its files, and how often it
/// ran stands in `$DIR/runs`, a line each.
fn plugin(lines: &str, more: &Value) -> Files {
    let files = Files::new();
    let directory = files.directory().display().to_string();
    let script = format!("DIR={directory}\necho run >> $DIR/runs\n{lines}");
    let exec = json!({"apiVersion": EXEC, "command": "./plugin", "interactiveMode": "IfAvailable"});
    let user = json!({"exec": with(exec, more)});
    files
        .with("config", &kubeconfig(&json!({}), &user))
        .with_script("plugin", &script)
}

/// The answer of a plugin.
fn credential(status: &Value) -> String {
    json!({"apiVersion": EXEC, "kind": "ExecCredential", "status": status}).to_string()
}

fn runs(files: &Files) -> usize {
    fs::read_to_string(files.path("runs"))
        .expect("runs")
        .lines()
        .count()
}

/// `list` with a kubeconfig, as loud as can be; asserts that nothing planted is reported.
fn list(program: Program, code: i32) -> Run {
    let run = program
        .args(["list", "-n", "default", "-v=9", "-o", "json"])
        .run()
        .expect(code);
    let reported = format!("{}{}", run.stdout, run.stderr);
    assert!(!reported.contains(PLANTED), "{reported}");
    run
}

#[test]
fn tokens_stand_in_the_kubeconfig_in_a_file_or_in_a_flag() {
    let user = user();
    let token = token(&user.kubeconfig);
    assert_eq!(name(&options(&files(&json!({"token": token})))), user.name);

    let of_file = files(&json!({"tokenFile": "token"})).with("token", &format!("{token}\n"));
    assert_eq!(name(&options(&of_file)), user.name);

    let other = files(&json!({"tokenFile": "gone"}));
    let by_flag = ConnectionOptions {
        token: Some(token),
        ..options(&other)
    };
    assert_eq!(name(&by_flag), user.name);
}

#[test]
fn a_token_file_that_rotates_is_read_again() {
    let user = user();
    let files = files(&json!({"tokenFile": "token"})).with("token", "ended");
    let connection = connect(&options(&files));
    fs::write(files.path("token"), token(&user.kubeconfig)).expect("a token");
    assert_eq!(who(&connection)["username"], *user.name);
}

#[test]
fn certificates_stand_in_files_or_in_flags() {
    let directory = ControlPlane::shared().data_dir();
    let (certificate, key) = (directory.join("admin.crt"), directory.join("admin.key"));
    let files_named = files(&json!({"client-certificate": certificate, "client-key": key}));
    assert_eq!(name(&options(&files_named)), "admin");
    let without_rights = files(&json!({}));
    let by_flag = ConnectionOptions {
        client_certificate: Some(certificate),
        client_key: Some(key),
        ..options(&without_rights)
    };
    assert_eq!(name(&by_flag), "admin");
}

#[test]
fn a_plugin_gives_a_token_and_gets_the_input_that_kubectl_gives() {
    let answer = credential(&json!({"token": admin_token()}));
    let more = json!({
        "args": ["one", "two"],
        "env": [{"name": "FROM_KUBECONFIG", "value": "three"}],
        "provideClusterInfo": true,
    });
    let lines = format!(
        "echo \"$1 $2 $FROM_KUBECONFIG\" > $DIR/seen\nprintf %s \"$KUBERNETES_EXEC_INFO\" > $DIR/info\ncat <<'E'\n{answer}\nE"
    );
    let files = plugin(&lines, &more);
    list(Program::with_kubeconfig(&files.path("config")), 0);
    assert_eq!(runs(&files), 1);
    let read = |name: &str| fs::read_to_string(files.path(name)).expect("what the plugin saw");
    assert_eq!(read("seen"), "one two three\n");
    let info: Value = serde_json::from_str(&read("info")).expect("JSON");
    assert_eq!(info["kind"], "ExecCredential");
    assert_eq!(info["apiVersion"], EXEC);
    assert_eq!(info["spec"]["interactive"], false);
    let cluster = &info["spec"]["cluster"];
    assert_eq!(cluster["server"], ControlPlane::shared().server_url());
    assert!(cluster["certificate-authority-data"].is_string());
}

#[test]
fn a_plugin_gives_a_certificate() {
    let directory = ControlPlane::shared().data_dir();
    let read = |name: &str| fs::read_to_string(directory.join(name)).expect("a PEM file");
    let answer = credential(&json!({
        "clientCertificateData": read("admin.crt"),
        "clientKeyData": read("admin.key"),
    }));
    let files = plugin(&format!("cat <<'E'\n{answer}\nE"), &json!({}));
    assert_eq!(name(&options(&files)), "admin");
    assert_eq!(runs(&files), 1);
}

#[test]
fn a_plugin_is_asked_again_when_its_token_is_refused() {
    let ended = credential(&json!({"token": "ended"}));
    let good = credential(&json!({"token": admin_token()}));
    let lines = format!("if [ $(wc -l < $DIR/runs) = 1 ]; then echo '{ended}'; else echo '{good}'; fi");
    let files = plugin(&lines, &json!({}));
    assert_eq!(name(&options(&files)), "admin");
    assert_eq!(runs(&files), 2);
}

#[test]
fn a_plugin_that_has_failed_once_is_not_asked_again() {
    let ended = credential(&json!({"token": "ended"}));
    let lines = format!("if [ $(wc -l < $DIR/runs) = 1 ]; then echo '{ended}'; else exit 1; fi");
    let files = plugin(&lines, &json!({}));
    let connection = connect(&options(&files));
    for _ in 0..3 {
        let answer = runtime().block_on(connection.server.get("/api", "application/json"));
        assert!(answer.is_err());
    }
    assert_eq!(runs(&files), 2);
}

#[test]
fn a_plugin_does_not_eat_the_manifests() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let answer = credential(&json!({"token": admin_token()}));
    let files = plugin(&format!("cat > /dev/null\ncat <<'E'\n{answer}\nE"), &json!({}));
    let objects = [config_map(&home, "a", "1")];
    Program::with_kubeconfig(&files.path("config"))
        .args(["apply", "web", "-n", &home, "-f", "-"])
        .input(&objects_file(&objects))
        .run()
        .expect(0);
    set.assert_holds(&objects);
}

#[test]
fn a_plugin_that_fails_speaks_for_itself_and_its_secrets_do_not() {
    let more = json!({
        "args": [PLANTED],
        "env": [{"name": "PASSWORD", "value": PLANTED}],
        "installHint": "get it from\n  example.com",
    });
    let failing = plugin(
        &format!("echo {PLANTED}\necho your session has ended >&2\nexit 3"),
        &more,
    );
    let run = list(Program::with_kubeconfig(&failing.path("config")), 4);
    assert!(run.stderr.contains("your session has ended\n"), "{}", run.stderr);

    let garbled = plugin(&format!("echo '{{\"token\": \"{PLANTED}\", '"), &more);
    list(Program::with_kubeconfig(&garbled.path("config")), 4);

    let missing = json!({"exec": with(json!({"apiVersion": EXEC, "command": "no-such-plugin"}), &more)});
    let run = list(Program::with_kubeconfig(&files(&missing).path("config")), 2);
    assert!(run.stderr.contains("get it from example.com"), "{}", run.stderr);

    let asking = plugin("exit 0", &json!({"interactiveMode": "Always"}));
    list(Program::with_kubeconfig(&asking.path("config")), 4);
    assert!(!asking.path("runs").exists());
}

#[test]
fn a_user_is_impersonated_with_groups_uid_and_extra() {
    let user = json!({"token": admin_token(), "as-user-extra": {"scopes.example.com/Scopes": ["a", "b"]}});
    let files = files(&user);
    let options = ConnectionOptions {
        impersonate: Some("jane".to_owned()),
        impersonate_groups: vec!["one".to_owned(), "two".to_owned()],
        impersonate_uid: Some("4711".to_owned()),
        ..options(&files)
    };
    let who = who(&connect(&options));
    assert_eq!(who["username"], "jane");
    assert_eq!(who["uid"], "4711");
    assert_eq!(who["groups"], json!(["one", "two", "system:authenticated"]));
    assert_eq!(who["extra"], json!({"scopes.example.com/scopes": ["a", "b"]}));

    Program::new().args(["list", "--as-uid=4711"]).run().expect(2);
    Program::new()
        .args(["list", "-n", "default", "--as=jane", "--as-uid=4711"])
        .run()
        .expect(4);
}

#[test]
fn the_proxy_of_the_kubeconfig_is_used_for_any_server() {
    let tunnel = Tunnel::new();
    let cluster = json!({"server": "https://kubernetes.default.svc", "proxy-url": tunnel.url("me:pass@")});
    let files = Files::new().with("config", &kubeconfig(&cluster, &json!({"token": admin_token()})));
    list(
        Program::with_kubeconfig(&files.path("config")).env("NO_PROXY", "*"),
        0,
    );
    let heads = tunnel.heads();
    assert!(
        heads[0].starts_with("connect kubernetes.default.svc:443 "),
        "{heads:?}"
    );
    assert!(heads[0].contains("proxy-authorization: basic "), "{heads:?}");
}

#[test]
fn the_proxy_of_the_environment_is_used_with_its_exceptions() {
    let tunnel = Tunnel::new();
    let elsewhere = json!({"server": "https://kubernetes.default.svc"});
    let files = Files::new().with(
        "config",
        &kubeconfig(&elsewhere, &json!({"token": admin_token()})),
    );
    let program = || Program::with_kubeconfig(&files.path("config")).env("HTTPS_PROXY", tunnel.url(""));
    list(program().env("NO_PROXY", "127.0.0.1,"), 0);
    let count = tunnel.heads().len();
    assert!(count > 0);
    list(program().env("NO_PROXY", "default.svc"), 4);
    list(Program::new().env("HTTPS_PROXY", tunnel.url("")), 0);
    assert_eq!(tunnel.heads().len(), count, "neither went through the proxy");
}

/// Names are looked up by the proxy, as kubectl has it.
#[test]
fn a_socks_proxy_is_asked_for_the_server_by_name() {
    let tunnel = Tunnel::new();
    let cluster = json!({"server": "https://kubernetes.default.svc", "proxy-url": tunnel.socks_url()});
    let files = Files::new().with("config", &kubeconfig(&cluster, &json!({"token": admin_token()})));
    list(Program::with_kubeconfig(&files.path("config")), 0);
    let heads = tunnel.heads();
    assert!(!heads.is_empty());
    assert!(
        heads
            .iter()
            .all(|head| head == "socks kubernetes.default.svc:443"),
        "{heads:?}"
    );
}

/// A token that has not expired is used without asking anybody for a new one.
#[test]
fn a_token_of_openid_connect_is_used_while_it_is_valid() {
    let home = namespace("home");
    let account = named("v1", "ServiceAccount", Some(&home), "robot");
    cluster().create(&account);
    let administrator = connect(&ConnectionOptions {
        kubeconfig: Some(ControlPlane::shared().admin_kubeconfig().to_owned()),
        ..ConnectionOptions::default()
    });
    let request = ApiRequest {
        method: Method::POST,
        path: format!("{}/token", path_of(&account)),
        accept: "application/json".to_owned(),
        answer: Content::Object,
        content_type: Some("application/json"),
        body: Bytes::from(
            json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}).to_string(),
        ),
        not_after: None,
    };
    let reply = runtime().block_on(administrator.server.send(request));
    let reply = reply.unwrap_or_else(|error| panic!("{error}"));
    let request: Value = reply.json().expect("JSON");
    let provider = json!({"name": "oidc", "config": {
        "idp-issuer-url": "https://issuer.invalid",
        "client-id": "kubectl",
        "id-token": request["status"]["token"],
    }});
    let files = files(&json!({"auth-provider": provider}));
    assert_eq!(
        name(&options(&files)),
        format!("system:serviceaccount:{home}:robot")
    );
}

#[test]
fn the_servers_certificate_is_for_the_expected_name() {
    let user = json!({"token": admin_token()});
    let named = |name: &str| {
        let cluster = json!({"tls-server-name": name});
        Files::new().with("config", &kubeconfig(&cluster, &user))
    };
    list(
        Program::with_kubeconfig(&named("kubernetes.default.svc").path("config")),
        0,
    );
    let wrong = named("example.com");
    list(Program::with_kubeconfig(&wrong.path("config")), 4);
    let by_flag = Program::with_kubeconfig(&wrong.path("config"));
    list(by_flag.args(["--tls-server-name=localhost"]), 0);
    let unchecked = Program::with_kubeconfig(&wrong.path("config"));
    list(unchecked.args(["--insecure-skip-tls-verify"]), 0);
}

#[test]
fn what_is_planted_is_not_reported_when_it_fails() {
    let planted: [(Value, Value, i32); 9] = [
        (json!({}), json!({"token": format!("{PLANTED}\n")}), 2),
        (
            json!({"server": format!("https://me:{PLANTED}@127.0.0.1:1")}),
            json!({}),
            4,
        ),
        (
            json!({"server": format!("https://me:{PLANTED}@:x:y")}),
            json!({}),
            2,
        ),
        (json!({}), json!({"token": PLANTED}), 4),
        (json!({}), json!({"username": "me", "password": PLANTED}), 4),
        (
            json!({"proxy-url": format!("http://me:{PLANTED}@127.0.0.1:1")}),
            json!({}),
            4,
        ),
        (
            json!({"proxy-url": format!("ftp://me:{PLANTED}@127.0.0.1:1")}),
            json!({}),
            2,
        ),
        (
            json!({}),
            json!({"client-certificate-data": "AAAA", "client-key-data": PLANTED}),
            2,
        ),
        (
            json!({}),
            json!({"auth-provider": {"name": "oidc", "config": {"id-token": PLANTED}}}),
            4,
        ),
    ];
    for (cluster, user, code) in planted {
        let files = Files::new().with("config", &kubeconfig(&cluster, &user));
        list(Program::with_kubeconfig(&files.path("config")), code);
    }
    list(
        Program::with_kubeconfig(&files(&json!({})).path("config")).args([
            "--username=me",
            "--password",
            PLANTED,
        ]),
        4,
    );
}

#[test]
fn names_that_the_kubeconfig_lacks_are_reported_with_those_that_it_has() {
    let files = files(&json!({"token": admin_token()}));
    for flag in ["--context=y", "--cluster=y", "--user=y"] {
        let run = list(Program::with_kubeconfig(&files.path("config")).args([flag]), 2);
        assert!(
            run.stderr.contains("\"y\"") && run.stderr.contains("use one of: "),
            "{}",
            run.stderr
        );
    }
}

#[test]
fn flags_that_kubectl_has_and_that_do_nothing_do_no_harm() {
    let flags = [
        "--cache-dir=/nowhere",
        "--disable-compression",
        "-v=6",
        "--v=2",
        "-vv",
    ];
    list(Program::new().args(flags), 0);
}
