use super::*;

fn at() -> PathBuf {
    PathBuf::from("kuberc")
}

/// The policy of a text, or the message about it.
fn policy_of(text: &str) -> Result<PluginPolicy, String> {
    let found = credential_plugin_preference::find(text, &at()).map_err(|error| error.to_string())?;
    let policy = found.map_or(Ok(PluginPolicy::AllowAll), |preference| {
        preference.into_file_policy(&at())
    });
    policy.map_err(|error| error.to_string())
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
    let table = [
        (
            "credentialPluginPolicy: denyall",
            "unknown plugin policy: \"denyall\"",
        ),
        (
            "credentialPluginpolicy: DenyAll",
            "unknown field \"credentialPluginpolicy\" in kubectl.config.k8s.io/v1beta1",
        ),
        (
            "credentialPluginAllowlist: [{name: a}]",
            "misconfigured credential plugin allowlist: plugin policy is \"\" but allowlist is non-nil",
        ),
        (
            "credentialPluginPolicy: DenyAll\ncredentialPluginAllowlist: []",
            "misconfigured credential plugin allowlist: plugin policy is \"DenyAll\" but allowlist is non-nil",
        ),
        (
            "credentialPluginPolicy: Allowlist",
            "credential plugin policy set to \"Allowlist\", but allowlist is unspecified",
        ),
        (
            "credentialPluginPolicy: Allowlist\ncredentialPluginAllowlist: []",
            "credential plugin policy set to \"Allowlist\", but allowlist is empty; use \"DenyAll\" policy instead",
        ),
        (
            "credentialPluginPolicy: Allowlist\ncredentialPluginAllowlist: [{name: a}, {}]",
            "misconfigured credential plugin allowlist: empty allowlist entry #2",
        ),
        (
            "credentialPluginPolicy: Allowlist\ncredentialPluginAllowlist: [{name: a, command: b}]",
            "both `name` and `command` were supplied with different values in allowlist entry #1",
        ),
        (
            "credentialPluginPolicy: Allowlist\ncredentialPluginAllowlist: [{name: ./a}]",
            "non-normalized file path: \"./a\" vs \"a\"",
        ),
        ("credentialPluginPolicy: [DenyAll]", "no valid preferences found"),
        (
            "credentialPluginPolicy: DenyAll\ncredentialPluginPolicy: AllowAll",
            "no valid preferences found",
        ),
    ];
    for (lines, expected) in table {
        assert_eq!(
            policy_of(&v1beta1(lines)),
            Err(format!("kuberc kuberc: {expected}")),
            "{lines}"
        );
    }
    let alpha =
        "apiVersion: kubectl.config.k8s.io/v1alpha1\nkind: Preference\ncredentialPluginPolicy: DenyAll\n";
    assert!(policy_of(alpha).is_err());
}

#[test]
fn only_a_file_of_home_that_does_not_mention_plugins_is_passed_over() {
    let passed_over = |text: &str| {
        let error = credential_plugin_preference::find(text, &at()).expect_err(text);
        error.is_ignored_in_home()
    };
    assert!(passed_over(
        "apiVersion: kubectl.config.k8s.io/v2\nkind: Preference\n"
    ));
    assert!(passed_over("aliases: [\n"));
    assert!(passed_over("# nothing\n"));
    assert!(!passed_over("aliases: [\ncredentialPluginPolicy: DenyAll\n"));
    let unreadable = |kind: ErrorKind| KubercError::Unreadable {
        path: at(),
        error: kind.into(),
    };
    assert!(unreadable(ErrorKind::NotFound).is_ignored_in_home());
    assert!(!unreadable(ErrorKind::PermissionDenied).is_ignored_in_home());
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
        let checked = list(allowed).check_with(command, &find);
        assert_eq!(checked.is_ok(), expected, "{command} {allowed:?}");
    }
    assert_eq!(
        PluginPolicy::DenyAll.check_with("aws", &find),
        Err(Denial::DenyAll)
    );
    assert_eq!(PluginPolicy::AllowAll.check_with("absent", &find), Ok(()));
}

#[test]
fn paths_are_cleaned_as_go_cleans_them() {
    let table = [
        ("p", "p"),
        ("./p", "p"),
        ("a//b/./c/..", "a/b"),
        ("/../p", "/p"),
        ("../../p", "../../p"),
        ("a/../../p", "../p"),
        ("/a/", "/a"),
        ("", "."),
    ];
    for (path, expected) in table {
        let expected = expected.replace('/', std::path::MAIN_SEPARATOR_STR);
        assert_eq!(clean_path(path).as_os_str(), expected.as_str(), "{path:?}");
    }
}
