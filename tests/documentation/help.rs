//! The examples of `--help` are run as they stand there, for each command from top to bottom.

use std::collections::BTreeSet;

use controlplane::ControlPlane;

use super::shell::Shell;

/// What the examples take for granted.
const MANIFEST: &str = "apiVersion: v1
kind: ConfigMap
metadata: {name: settings, labels: {app: web, tier: database}}
data: {color: blue}
";
const KUSTOMIZATION: &str = "configMapGenerator: [{name: banner, literals: [text=sale]}]\n";
const RELEASED: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: chart, namespace: shop}\n";

/// The commands in an order in which each finds what it needs.
const COMMANDS: [&str; 13] = [
    "apply",
    "diff",
    "list",
    "view",
    "history",
    "export",
    "verify",
    "rbac",
    "completion",
    "disband",
    "adopt",
    "move",
    "delete",
];

/// What has to happen before an example that begins so.
const BEFORE: [(&str, &str); 5] = [
    (
        "kubectl applyset disband web -n shop --dry-run=server",
        "kubectl applyset apply web -n shop -f manifests/",
    ),
    (
        "kubectl applyset adopt web -n shop -l app=web -A",
        "kubectl delete secret web -n shop",
    ),
    (
        "kubectl applyset adopt web -n shop --from helm/web",
        "kubectl apply -f chart.yaml &&
         kubectl annotate -f chart.yaml meta.helm.sh/release-name=web meta.helm.sh/release-namespace=shop &&
         kubectl create secret generic sh.helm.release.v1.web.v1 -n shop --type=helm.sh/release.v1 \
           --from-literal=release=\"$(printf '{\"name\": \"web\", \"namespace\": \"shop\", \"version\": 1, \
             \"info\": {\"status\": \"deployed\"}, \"manifest\": \"%s\"}' \
             \"$(sed 's/$/\\\\n/' chart.yaml | tr -d '\\n')\" | gzip | base64 | tr -d '\\n')\" &&
         kubectl label secret sh.helm.release.v1.web.v1 -n shop owner=helm name=web status=deployed version=1",
    ),
    (
        "kubectl applyset move web database",
        "kubectl applyset move storefront web -n shop",
    ),
    (
        "kubectl applyset delete web -n shop --dry-run=server",
        "kubectl applyset move database web -n shop",
    ),
];

#[test]
fn examples_of_the_help_work() {
    let control_plane = ControlPlane::start().expect("a control plane");
    let mut shell = Shell::start(&control_plane, None);
    shell.write_file("manifests/settings.yaml", MANIFEST);
    shell.write_file("main/settings.yaml", MANIFEST);
    shell.write_file("prod/kustomization.yaml", KUSTOMIZATION);
    shell.write_file("chart.yaml", RELEASED);
    let help = shell.run("kubectl applyset --help");
    assert_eq!(commands(&help), BTreeSet::from(COMMANDS));
    run(&mut shell, "kubectl create namespace shop");
    for command in COMMANDS {
        let help = shell.run(&format!("kubectl applyset {command} --help"));
        let (_, examples) = help.split_once("Examples:\n").expect(command);
        let examples: Vec<&str> = examples
            .lines()
            .take_while(|line| line.is_empty() || line.starts_with(' '))
            .filter_map(|line| line.strip_prefix("  "))
            .filter(|line| !line.starts_with('#'))
            .collect();
        assert!(!examples.is_empty(), "{command} has no examples");
        for example in examples {
            if let Some((_, preparation)) = BEFORE.iter().find(|(begins, _)| example.starts_with(begins)) {
                run(&mut shell, preparation);
            }
            run(&mut shell, example);
        }
    }
}

fn run(shell: &mut Shell, command: &str) {
    let printed = shell.run(command);
    let code = shell.run("echo $?");
    let is_diff = command.starts_with("kubectl applyset diff");
    let is_right = code.trim() == "0" || is_diff && code.trim() == "1";
    assert!(is_right, "$ {command}\n{printed}exit code {code}");
}

/// The commands on the front page.
fn commands(help: &str) -> BTreeSet<&str> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    lines
        .map_while(|line| line.strip_prefix("  ")?.split_whitespace().next())
        .filter(|name| !["version", "help"].contains(name))
        .collect()
}
