//! What is sent to a server, and to which one: this program and kubectl send the same, for every
//! combination of kubeconfig fields and flags, or both send nothing.

use std::collections::BTreeSet;
use std::process::Stdio;

use controlplane::ControlPlane;
use serde_json::{Value, json};

use crate::support::{Files, Program, Random, Seen, Witness, with};

const TOKEN: &str = "of-the-kubeconfig";

/// Two servers with a certificate of the control plane's authority, and one without encryption.
struct Stage {
    server: Witness,
    other: Witness,
    plain: Witness,
    /// The authority of both.
    authority: String,
    /// A certificate that has signed nothing.
    stranger: String,
    certificate: String,
    key: String,
}

/// What a client sent to each server.
#[derive(Debug, PartialEq, Eq)]
struct Sent {
    server: BTreeSet<Seen>,
    other: BTreeSet<Seen>,
    plain: BTreeSet<Seen>,
}

impl Stage {
    fn new() -> Self {
        let control_plane = ControlPlane::shared();
        let file = |name: &str| control_plane.data_dir().join(name).display().to_string();
        Self {
            server: Witness::encrypted(),
            other: Witness::encrypted(),
            plain: Witness::plain(),
            authority: control_plane.certificate_authority().display().to_string(),
            stranger: file("admin.crt"),
            certificate: file("admin.crt"),
            key: file("admin.key"),
        }
    }

    fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.server.port())
    }

    fn other_flag(&self) -> String {
        format!("--server=https://localhost:{}", self.other.port())
    }

    fn plain_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.plain.port())
    }

    fn sent(&self) -> Sent {
        Sent {
            server: self.server.take(),
            other: self.other.take(),
            plain: self.plain.take(),
        }
    }

    /// Runs both clients with a kubeconfig of these; returns what kubectl sent and what this
    /// program sent.
    fn run(&self, cluster: &Value, user: &Value, flags: &[String]) -> (Sent, Sent) {
        let cluster = with(json!({"server": self.url()}), cluster);
        let kubeconfig = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": user}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        });
        let files = Files::new().with("config", &kubeconfig.to_string());
        let config = files.path("config");
        self.sent();
        ControlPlane::shared()
            .kubectl_command()
            .env("KUBECONFIG", &config)
            .args(flags)
            .args(["get", "--raw", "/api"])
            .stdin(Stdio::null())
            .output()
            .expect("kubectl runs");
        let by_kubectl = self.sent();
        let run = Program::with_kubeconfig(&config)
            .args(flags)
            .args(["list", "-n", "default"])
            .run();
        assert!([2, 4].contains(&run.code), "{}", run.stderr);
        (by_kubectl, self.sent())
    }

    #[track_caller]
    fn assert_alike(&self, cluster: &Value, user: &Value, flags: &[String]) -> Sent {
        let (by_kubectl, by_us) = self.run(cluster, user, flags);
        assert_eq!(
            by_us, by_kubectl,
            "cluster {cluster}, user {user}, flags {flags:?}"
        );
        by_us
    }
}

impl Sent {
    fn is_nothing(&self) -> bool {
        self.server.is_empty() && self.other.is_empty() && self.plain.is_empty()
    }
}

/// Chooses a sample of the combinations, or with `CONNECTIONS=all` each of them.
fn is_chosen(random: &mut Random) -> bool {
    std::env::var_os("CONNECTIONS").is_some_and(|all| all == "all") || random.percent(12)
}

/// Every field and flag about the server's certificate; 648 combinations.
#[test]
fn a_certificate_that_kubectl_refuses_gets_nothing() {
    let stage = Stage::new();
    let authorities = [None, Some(&stage.authority), Some(&stage.stranger)];
    let names = [None, Some("kubernetes.default.svc"), Some("example.com")];
    let other = stage.other_flag();
    let mut random = Random::new(15, 1);
    let mut verdicts = [0, 0];
    for number in 0..648 {
        let choose = |divisor: usize, count: usize| number / divisor % count;
        if !is_chosen(&mut random) {
            continue;
        }
        let mut cluster = json!({});
        if let Some(authority) = authorities[choose(1, 3)] {
            cluster["certificate-authority"] = json!(authority);
        }
        if let Some(name) = names[choose(3, 3)] {
            cluster["tls-server-name"] = json!(name);
        }
        if choose(9, 2) == 1 {
            cluster["insecure-skip-tls-verify"] = json!(true);
        }
        let mut flags = Vec::new();
        flags.extend(authorities[choose(18, 3)].map(|path| format!("--certificate-authority={path}")));
        flags.extend(names[choose(54, 3)].map(|name| format!("--tls-server-name={name}")));
        flags.extend((choose(162, 2) == 1).then(|| "--insecure-skip-tls-verify".to_owned()));
        flags.extend((choose(324, 2) == 1).then(|| other.clone()));
        let sent = stage.assert_alike(&cluster, &json!({"token": TOKEN}), &flags);
        verdicts[usize::from(sent.is_nothing())] += 1;
    }
    assert!(verdicts[0] > 0 && verdicts[1] > 0, "{verdicts:?}");
}

#[test]
fn an_authority_by_flag_switches_verification_on_again() {
    let stage = Stage::new();
    let user = json!({"token": TOKEN});
    let unverified = json!({"insecure-skip-tls-verify": true});
    let believed = stage.assert_alike(&unverified, &user, &[]);
    let expected = format!("Bearer {TOKEN}");
    let seen = believed.server.first().expect("a request");
    assert_eq!(seen.authorization(), Some(expected.as_str()));
    let flag = |path: &str| [format!("--certificate-authority={path}")];
    assert!(
        stage
            .assert_alike(&unverified, &user, &flag(&stage.stranger))
            .is_nothing()
    );
    assert!(
        !stage
            .assert_alike(&unverified, &user, &flag(&stage.authority))
            .is_nothing()
    );

    let both = json!({"insecure-skip-tls-verify": true, "certificate-authority": stage.authority});
    assert!(stage.assert_alike(&both, &user, &[]).is_nothing());
    let cluster = with(json!({"server": stage.url()}), &both);
    let files = Files::new().with(
        "config",
        &json!({
            "clusters": [{"name": "c", "cluster": cluster}],
            "contexts": [{"name": "x", "context": {"cluster": "c"}}],
            "current-context": "x",
        })
        .to_string(),
    );
    let run = Program::with_kubeconfig(&files.path("config"))
        .args(["list"])
        .run()
        .expect(2);
    let phrase = "specifying a root certificates file with the insecure flag is not allowed";
    assert!(run.stderr.contains(phrase), "{}", run.stderr);
}

#[test]
fn a_server_by_flag_is_not_expected_to_have_the_other_servers_name() {
    let stage = Stage::new();
    let cluster =
        json!({"certificate-authority": stage.authority, "tls-server-name": "kubernetes.default.svc"});
    let user = json!({"token": TOKEN});
    let sent = stage.assert_alike(&cluster, &user, &[]);
    let name = |sent: &BTreeSet<Seen>| sent.first().and_then(|seen| seen.server_name.clone());
    assert_eq!(name(&sent.server).as_deref(), Some("kubernetes.default.svc"));
    let sent = stage.assert_alike(&cluster, &user, &[stage.other_flag()]);
    assert_eq!(name(&sent.other).as_deref(), Some("localhost"));
    assert!(sent.server.is_empty());
}

/// Who asks: what the header, the certificate and impersonation say.
#[test]
fn the_server_learns_of_the_same_user_as_from_kubectl() {
    let stage = Stage::new();
    let cluster = json!({"certificate-authority": stage.authority});
    let tokens = Files::new().with("token", "of-a-file");
    let file = tokens.path("token");
    let (certificate, key) = (&stage.certificate, &stage.key);
    let exec = json!({"exec": {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "false",
        "interactiveMode": "Never",
    }});
    let pair = json!({"client-certificate": certificate, "client-key": key});
    let by_flag = [
        format!("--client-certificate={certificate}"),
        format!("--client-key={key}"),
    ];
    let flags = |text: &str| -> Vec<String> { text.split_whitespace().map(str::to_owned).collect() };
    let table: [(Value, Vec<String>, bool); 22] = [
        (json!({"token": TOKEN}), flags("--token=T"), true),
        (json!({"tokenFile": file}), flags(""), true),
        (json!({"tokenFile": file, "token": TOKEN}), flags(""), true),
        (json!({"username": "a", "password": "b"}), flags(""), true),
        (
            json!({"username": "a", "password": "b"}),
            flags("--username=A"),
            true,
        ),
        (json!({"username": "a"}), flags("--password=B"), true),
        (
            json!({"token": "", "username": "a", "password": "b"}),
            flags(""),
            true,
        ),
        (json!({"token": TOKEN, "username": "a"}), flags(""), false),
        (json!({"token": TOKEN}), flags("--username=A --password=B"), false),
        (
            json!({"username": "a", "password": "b"}),
            flags("--token=T"),
            false,
        ),
        (
            json!({"tokenFile": file}),
            flags("--username=A --password=B"),
            false,
        ),
        (pair.clone(), flags(""), true),
        (with(pair.clone(), &json!({"token": TOKEN})), flags(""), true),
        (json!({"client-certificate": certificate}), flags(""), false),
        (
            with(pair.clone(), &json!({"client-certificate-data": "AAAA"})),
            flags(""),
            false,
        ),
        (
            with(pair.clone(), &json!({"client-key-data": "AAAA"})),
            flags(""),
            false,
        ),
        (exec.clone(), flags(""), false),
        (exec.clone(), flags("--token=T"), true),
        (exec, by_flag.to_vec(), true),
        (
            json!({"token": TOKEN, "as": "a", "as-groups": ["g"], "as-uid": "1"}),
            flags("--as=A"),
            true,
        ),
        (
            json!({"token": TOKEN, "as": "a", "as-groups": ["g"]}),
            flags("--as-group=G --as-group=H --as-uid=2"),
            true,
        ),
        (json!({"token": TOKEN}), flags("--as-group=G"), false),
    ];
    for (user, flags, is_sent) in table {
        let sent = stage.assert_alike(&cluster, &user, &flags);
        assert_eq!(!sent.is_nothing(), is_sent, "{user} and flags {flags:?}");
    }
}

#[test]
fn an_address_without_encryption_gets_no_credentials() {
    let stage = Stage::new();
    let cluster = json!({"server": stage.plain_url()});
    let (certificate, key) = (&stage.certificate, &stage.key);
    let users = [
        json!({"token": TOKEN}),
        json!({"username": "a", "password": "b", "as": "x"}),
        json!({"client-certificate": certificate, "client-key": key}),
        json!({"exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": "false",
            "interactiveMode": "Never",
        }}),
    ];
    for user in users {
        let sent = stage.assert_alike(&cluster, &user, &[]);
        let seen = sent.plain.first().expect("a request");
        assert_eq!(seen.authorization(), None, "{user}");
    }
    let flags = [format!("--server={}", stage.plain_url()), "--token=T".to_owned()];
    let sent = stage.assert_alike(&json!({}), &json!({"token": TOKEN}), &flags);
    assert_eq!(sent.plain.first().expect("a request").authorization(), None);
}

/// The name of a cluster, a user or a context that is not there is no other one's.
#[test]
fn names_that_are_not_there_lead_nowhere() {
    let stage = Stage::new();
    let cluster = json!({"certificate-authority": stage.authority});
    for flag in ["--cluster=no", "--user=no", "--context=no"] {
        let sent = stage.assert_alike(&cluster, &json!({"token": TOKEN}), &[flag.to_owned()]);
        assert!(sent.is_nothing(), "{flag}");
    }
}

#[test]
fn a_proxy_that_cannot_be_used_gets_nothing() {
    let stage = Stage::new();
    let cluster = |proxy: &str| json!({"certificate-authority": stage.authority, "proxy-url": proxy});
    for proxy in ["ftp://127.0.0.1:1", "http://127.0.0.1:1", "socks5://127.0.0.1:1"] {
        let sent = stage.assert_alike(&cluster(proxy), &json!({"token": TOKEN}), &[]);
        assert!(sent.is_nothing(), "{proxy}");
    }
}
