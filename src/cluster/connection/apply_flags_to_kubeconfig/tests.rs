//! Combinations of kubeconfig fields and flags.

use serde_json::{Value, json};

use super::*;

fn chosen(cluster: Value, user: Value) -> Chosen {
    Chosen {
        cluster: serde_json::from_value(cluster).expect("a cluster"),
        cluster_name: "c".to_owned(),
        user: serde_json::from_value(user).expect("a user"),
        user_name: "u".to_owned(),
        namespace: None,
        context: None,
    }
}

/// Flags as they are typed: a list of `name=value`.
fn flags(text: &str) -> ConnectionOptions {
    let mut options = ConnectionOptions::default();
    for flag in text.split_whitespace() {
        let (name, value) = flag.split_once('=').unwrap_or((flag, ""));
        let value = value.to_owned();
        match name {
            "ca" => options.certificate_authority = Some(value.into()),
            "insecure" => options.insecure_skip_tls_verify = true,
            "server" => options.server = Some(value),
            "name" => options.tls_server_name = Some(value),
            "token" => options.token = Some(value),
            "username" => options.username = Some(value),
            "password" => options.password = Some(value),
            "cert" => options.client_certificate = Some(value.into()),
            "key" => options.client_key = Some(value.into()),
            "as" => options.impersonate = Some(value),
            "as-group" => options.impersonate_groups.push(value),
            "as-uid" => options.impersonate_uid = Some(value),
            other => panic!("no flag {other}"),
        }
    }
    options
}

/// The settings on one line: server, verification, name of the certificate, login.
fn line(options: &ConnectionOptions, chosen: &Chosen) -> String {
    let resolved = match resolve(options, chosen) {
        Ok(resolved) => resolved,
        Err(error) => return format!("refused: {error}"),
    };
    let cluster = resolved.cluster;
    let mut words = vec![resolved.server.to_string()];
    let verification = match (
        &cluster.certificate_authority,
        &cluster.certificate_authority_data,
    ) {
        _ if cluster.insecure_skip_tls_verify == Some(true) => "unverified".to_owned(),
        (Some(file), _) => format!("ca={file}"),
        (None, Some(data)) => format!("ca-data={data}"),
        (None, None) => "system".to_owned(),
    };
    words.push(verification);
    words.extend(cluster.tls_server_name.map(|name| format!("name={name}")));
    let user = serde_json::to_value(resolved.user).expect("JSON");
    let fields = [
        "token",
        "tokenFile",
        "username",
        "password",
        "client-certificate",
        "client-certificate-data",
        "client-key",
        "client-key-data",
        "as",
        "as-groups",
        "as-uid",
    ];
    for field in fields {
        match &user[field] {
            Value::Null => {}
            Value::String(text) => words.push(format!("{field}={text}")),
            other => words.push(format!("{field}={other}")),
        }
    }
    words.extend(user["exec"].is_object().then(|| "exec".to_owned()));
    words.join(" ")
}

/// All kubeconfigs and flags about the server's certificate: 4 × 2 × 2 × 2 × 2 × 2 × 2.
#[test]
fn certificates_are_verified_as_kubectl_verifies_them() {
    let refused = |why: &str| format!("refused: invalid configuration: {why}");
    for number in 0..256_u32 {
        let bit = |place: u32| number >> place & 1 == 1;
        let (file, data, insecure, name) = (bit(0), bit(1), bit(2), bit(3));
        let (ca_flag, insecure_flag, server_flag, name_flag) = (bit(4), bit(5), bit(6), bit(7));
        let mut cluster = json!({"server": "https://a"});
        for (is_set, field, value) in [
            (file, "certificate-authority", json!("f")),
            (data, "certificate-authority-data", json!("d")),
            (insecure, "insecure-skip-tls-verify", json!(true)),
            (name, "tls-server-name", json!("n")),
        ] {
            if is_set {
                cluster[field] = value;
            }
        }
        let typed = [
            (ca_flag, "ca=F"),
            (insecure_flag, "insecure"),
            (server_flag, "server=https://b"),
            (name_flag, "name=N"),
        ];
        let typed: Vec<&str> = typed
            .into_iter()
            .filter_map(|(is_set, flag)| is_set.then_some(flag))
            .collect();
        let typed = typed.join(" ");

        let conflict = "specifying a root certificates file with the insecure flag is not allowed".to_owned();
        let verification = match (ca_flag, insecure_flag, file, data, insecure) {
            (true, false, ..) => Ok("ca=F"),
            (false, false, true, true, _) => Err(
                "certificate-authority-data and certificate-authority are both specified for c".to_owned(),
            ),
            (true, true, ..) | (false, false, true, _, true) | (false, false, _, true, true) => Err(conflict),
            (false, true, ..) | (false, false, false, false, true) => Ok("unverified"),
            (false, false, true, false, false) => Ok("ca=f"),
            (false, false, false, true, false) => Ok("ca-data=d"),
            (false, false, false, false, false) => Ok("system"),
        };
        let name = match (name_flag, server_flag, name) {
            (true, ..) => " name=N",
            (false, false, true) => " name=n",
            (false, true, _) | (false, false, false) => "",
        };
        let server = if server_flag { "https://b/" } else { "https://a/" };
        let expected = verification.map_or_else(
            |why| refused(&why),
            |verification| format!("{server} {verification}{name}"),
        );
        let row = chosen(cluster.clone(), json!({"token": ""}));
        assert_eq!(
            line(&flags(&typed), &row),
            expected,
            "{cluster} and flags {typed:?}"
        );
    }
}

#[test]
fn a_user_logs_in_as_kubectl_logs_in() {
    let exec = || json!({"exec": {"command": "p"}});
    let table = [
        (json!({}), "", ""),
        (json!({"token": "t"}), "", "token=t"),
        (json!({"token": "t"}), "token=T", "token=T"),
        (json!({"token": "t"}), "token=", "token=t"),
        (json!({"tokenFile": "f"}), "", "tokenFile=f"),
        (json!({"tokenFile": "f"}), "token=T", "token=T"),
        (
            json!({"username": "a", "password": "b"}),
            "",
            "username=a password=b",
        ),
        (
            json!({"username": "a", "password": "b"}),
            "username=A",
            "username=A password=b",
        ),
        (json!({"username": "a"}), "", "username=a password="),
        (json!({"password": "b"}), "", ""),
        (json!({}), "username=A password=B", "username=A password=B"),
        (exec(), "", "exec"),
        (exec(), "token=T", "token=T"),
        (exec(), "username=A", "username=A password="),
        (exec(), "cert=C key=K", "client-certificate=C client-key=K"),
        (
            json!({"client-certificate-data": "c", "client-key-data": "k"}),
            "cert=C key=K",
            "client-certificate=C client-key=K",
        ),
        (
            json!({"client-certificate": "c", "client-key": "k", "token": "t"}),
            "",
            "token=t client-certificate=c client-key=k",
        ),
        (json!({"as": "a"}), "as-group=g", "as=a as-groups=[\"g\"]"),
        (
            json!({"as": "a", "as-groups": ["g"], "as-uid": "1"}),
            "as=A",
            "as=A as-groups=[\"g\"] as-uid=1",
        ),
    ];
    for (user, typed, expected) in table {
        assert_user(&user, typed, expected);
    }
}

#[test]
fn contradicting_logins_are_refused_as_kubectl_refuses_them() {
    let both =
        "more than one authentication method found for u; found [token basicAuth], only one is allowed";
    let table = [
        (json!({"token": "t", "username": "a"}), "", both),
        (json!({"token": "t"}), "username=A", both),
        (json!({"username": "a"}), "token=T", both),
        (json!({"tokenFile": "f"}), "username=A", both),
        (
            json!({"client-certificate": "c", "client-certificate-data": "c", "client-key": "k"}),
            "",
            "client-cert-data and client-cert are both specified for u",
        ),
        (
            json!({"client-certificate": "c", "client-key": "k", "client-key-data": "k"}),
            "",
            "client-key-data and client-key are both specified for u",
        ),
        (
            json!({"client-certificate": "c"}),
            "",
            "client-key-data or client-key must be specified for u to use the clientCert authentication method",
        ),
        (
            json!({"exec": {"command": "p"}, "auth-provider": {"name": "oidc"}}),
            "",
            "authProvider cannot be provided in combination with an exec plugin for u",
        ),
        (
            json!({}),
            "as-group=g",
            "requesting uid, groups or user-extra for u without impersonating a user",
        ),
        (
            json!({"as-user-extra": {"x": ["y"]}}),
            "as-uid=1",
            "requesting uid, groups or user-extra for u without impersonating a user",
        ),
    ];
    for (user, typed, expected) in table {
        assert_user(&user, typed, expected);
    }
}

fn assert_user(user: &Value, typed: &str, expected: &str) {
    let row = chosen(json!({"server": "https://a"}), user.clone());
    let seen = line(&flags(typed), &row);
    let seen = seen
        .strip_prefix("https://a/ system")
        .or(seen.strip_prefix("refused: invalid configuration:"));
    assert_eq!(
        seen.unwrap_or_default().trim(),
        expected,
        "{user} and flags {typed:?}"
    );
}

#[test]
fn credentials_are_for_encrypted_connections_alone() {
    let user = json!({
        "token": "t",
        "client-certificate": "c",
        "client-key": "k",
        "exec": {"command": "p"},
        "as": "a",
    });
    let cluster = json!({
        "server": "http://a",
        "insecure-skip-tls-verify": true,
        "certificate-authority": "f",
    });
    let plain = chosen(cluster.clone(), user.clone());
    let options = ConnectionOptions::default();
    let resolved = resolve(&options, &plain).expect("an address without encryption");
    let login = serde_json::to_value(resolved.user).expect("JSON");
    assert_eq!(login, json!({"as": "a"}));
    let elsewhere = line(
        &flags("server=http://b token=T ca=F"),
        &chosen(json!({}), user.clone()),
    );
    assert_eq!(elsewhere, "http://b/ ca=F as=a");
    assert!(line(&flags("server=https://a"), &plain).starts_with("refused: "));
    let nowhere = chosen(json!({"server": ""}), user);
    assert!(line(&options, &nowhere).starts_with("refused: "));
}
