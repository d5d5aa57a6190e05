use super::*;

/// The policy of a named file with this text, or the message about it.
fn policy_of(text: &str) -> Result<PluginPolicy, String> {
    credential_plugin_preference::read(text, false)
}

/// Preferences of v1beta1 with these lines.
fn v1beta1(lines: &str) -> String {
    format!("apiVersion: kubectl.config.k8s.io/v1beta1\nkind: Preference\n{lines}\n")
}

fn list(entries: &[&str]) -> PluginPolicy {
    PluginPolicy::Allowlist(entries.iter().map(|entry| (*entry).to_owned()).collect())
}

#[test]
fn policies_are_read_as_kubectl_reads_them() {
    let alpha = "apiVersion: kubectl.config.k8s.io/v1alpha1\nkind: Preference\n";
    let other = "apiVersion: kubectl.config.k8s.io/v2\nkind: Preference\ncredentialPluginPolicy: DenyAll\n";
    let deny = v1beta1("credentialPluginPolicy: DenyAll");
    let table = [
        (String::new(), PluginPolicy::AllowAll),
        ("---\n--- # nothing\n\n".to_owned(), PluginPolicy::AllowAll),
        (v1beta1(""), PluginPolicy::AllowAll),
        (v1beta1("aliases: 3\nanything: [else]"), PluginPolicy::AllowAll),
        (alpha.to_owned(), PluginPolicy::AllowAll),
        (v1beta1("credentialPluginPolicy: ''"), PluginPolicy::AllowAll),
        (v1beta1("credentialPluginPolicy: AllowAll"), PluginPolicy::AllowAll),
        (deny.clone(), PluginPolicy::DenyAll),
        (
            r#"{"apiVersion": "kubectl.config.k8s.io/v1beta1", "kind": "Preference", "credentialPluginPolicy": "DenyAll"}"#
                .to_owned(),
            PluginPolicy::DenyAll,
        ),
        (
            v1beta1("credentialPluginPolicy: Allowlist\ncredentialPluginAllowlist: [{name: a}, {command: c.d}, {name: d, command: d}]"),
            list(&["a", "c.d", "d"]),
        ),
        (format!("{other}--- # older\n{deny}"), PluginPolicy::DenyAll),
        (format!("broken: [\n---\n{deny}"), PluginPolicy::DenyAll),
        (format!("{alpha}---\n{deny}"), PluginPolicy::AllowAll),
        (format!("apiVersion: v1\nkind: Config\n---\n{deny}"), PluginPolicy::DenyAll),
    ];
    for (text, expected) in table {
        assert_eq!(policy_of(&text), Ok(expected), "{text}");
    }
}

#[test]
fn a_policy_that_could_be_another_is_an_error() {
    let misplaced = "misconfigured credential plugin allowlist: it belongs to the policy \"Allowlist\", and the policy is";
    let none = "no valid preferences found".to_owned();
    let table = [
        (
            "credentialPluginPolicy: denyall",
            "unknown plugin policy: \"denyall\"".to_owned(),
        ),
        ("credentialPluginpolicy: DenyAll", none.clone()),
        (
            "credentialPluginAllowlist: [{name: a}]",
            format!("{misplaced} \"\""),
        ),
        (
            "credentialPluginPolicy: DenyAll\ncredentialPluginAllowlist: []",
            format!("{misplaced} \"DenyAll\""),
        ),
        (
            "credentialPluginPolicy: Allowlist",
            format!("{misplaced} \"Allowlist\""),
        ),
        ("credentialPluginPolicy: [DenyAll]", none.clone()),
        (
            "credentialPluginPolicy: DenyAll\ncredentialPluginPolicy: AllowAll",
            none,
        ),
    ];
    for (lines, expected) in table {
        assert_eq!(policy_of(&v1beta1(lines)), Err(expected), "{lines}");
    }
    let alpha =
        "apiVersion: kubectl.config.k8s.io/v1alpha1\nkind: Preference\ncredentialPluginPolicy: DenyAll\n";
    assert!(policy_of(alpha).is_err());
}

#[test]
fn an_allowlist_without_names_allows_nothing() {
    for entries in ["[]", "[{}]", "[{command: ''}]"] {
        let text = v1beta1(&format!(
            "credentialPluginPolicy: Allowlist\ncredentialPluginAllowlist: {entries}"
        ));
        let policy = policy_of(&text).expect("a policy");
        let find = |name: &str| (!name.is_empty()).then(|| PathBuf::from("/bin").join(name));
        assert!(policy.find_denial_with("aws", &find).is_some(), "{entries}");
    }
}

#[test]
fn only_a_file_of_home_that_does_not_mention_plugins_is_passed_over() {
    let passed_over = |text: &str| credential_plugin_preference::read(text, true).is_ok();
    assert!(passed_over(
        "apiVersion: kubectl.config.k8s.io/v2\nkind: Preference\n"
    ));
    assert!(passed_over("aliases: [\n"));
    assert!(passed_over("# nothing\n"));
    assert!(!passed_over("aliases: [\ncredentialPluginPolicy: DenyAll\n"));
}

/// The flag, variables, and the file; `None` for an error.
type Case = (
    Option<&'static str>,
    &'static [(&'static str, &'static str)],
    Option<PreferenceFile>,
);

#[test]
fn preferences_are_where_kubectl_has_them() {
    let named = |path: &str| Some(PreferenceFile::Named(path.into()));
    let of_home = || Some(PreferenceFile::InHome("/home/me/.kube/kuberc".into()));
    let table: [Case; 11] = [
        (None, &[], of_home()),
        (None, &[("KUBERC", "")], of_home()),
        (None, &[("KUBERC", "OFF")], named("OFF")),
        (Some(""), &[], of_home()),
        (Some("f"), &[], named("f")),
        (None, &[("KUBERC", "e")], named("e")),
        (Some("f"), &[("KUBERC", "e")], named("f")),
        (None, &[("KUBERC", "off")], Some(PreferenceFile::None)),
        (Some("f"), &[("KUBERC", "off")], None),
        (
            Some("f"),
            &[("KUBECTL_KUBERC", "False")],
            Some(PreferenceFile::None),
        ),
        (None, &[("KUBECTL_KUBERC", "true")], of_home()),
    ];
    for (flag, variables, expected) in table {
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| OsString::from(value))
        };
        let file = find_preference_file(flag.map(Path::new), &variable, Some("/home/me".into()));
        assert_eq!(file.ok(), expected, "{flag:?} {variables:?}");
    }
}

#[test]
fn programs_are_compared_by_what_they_are_looked_up_to() {
    let find = |name: &str| match name.replace('\\', "/").as_str() {
        "aws" | "/bin/aws" => Some(PathBuf::from("/bin/aws")),
        "/tmp/aws" | "/tmp/other" => Some(PathBuf::from(name)),
        _ => None,
    };
    let table = [
        ("aws", &["aws"][..], true),
        ("aws", &["/bin/aws"], true),
        ("/bin/aws", &["aws"], true),
        ("/bin/./aws", &["/bin/aws"], true),
        ("/tmp/aws", &["aws"], false),
        ("aws", &["/tmp/aws"], false),
        ("/tmp/other", &["aws", "/tmp/aws"], false),
        ("/tmp/other", &["aws", "/tmp/other"], true),
        ("absent", &["aws"], false),
        ("absent", &["absent"], true),
        ("aws", &["absent"], false),
    ];
    for (command, allowed, expected) in table {
        let denial = list(allowed).find_denial_with(command, &find);
        assert_eq!(denial.is_none(), expected, "{command} {allowed:?}");
    }
    assert!(PluginPolicy::DenyAll.find_denial_with("aws", &find).is_some());
    assert!(PluginPolicy::AllowAll.find_denial_with("absent", &find).is_none());
}
