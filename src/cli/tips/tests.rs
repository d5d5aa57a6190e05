use clap::CommandFactory as _;

use crate::cli::Cli;

fn error(line: &str) -> String {
    let words = format!("kubectl-applyset {line}");
    let typed = Cli::parse(words.split(' ').map(Into::into).collect());
    let error = typed.map(|_| ()).expect_err(line);
    assert_eq!(error.exit_code(), 2, "{line}");
    error.to_string()
}

#[test]
fn flags_and_commands_of_other_tools_are_explained() {
    for (line, tip) in [
        ("apply a -f x --prune --all", "the set determines"),
        (
            "apply a -f x --prune-allowlist=core/v1/ConfigMap",
            "the set determines",
        ),
        ("apply a -f x --force", "--recreate=KIND"),
        ("delete a --force", "grace period"),
        ("apply a -f x --cascade=foreground", "in the background"),
        ("delete a --cascade=orphan", "disband SET"),
        ("delete a --cascade=background", "in the background"),
        ("apply a -f x --selector=a=b", "adopt SET -l"),
        ("apply a -f x -l a=b", "adopt SET -l"),
        ("diff a -f x -l a=b", "adopt SET -l"),
        ("delete a --grace-period=0", "grace period"),
        ("delete a --now", "grace period"),
        ("delete a -f x", "the set is enough"),
        ("apply a -f x --dry-run server", "--dry-run=server"),
        ("apply --prune false a -f x", "--prune=false"),
        ("apply a -f x --wait 1s", "--wait=1s"),
        ("apply a -f x/one.yaml x/two.yaml", "-f DIRECTORY"),
        ("diff a x/", "-f DIRECTORY"),
        ("list --all", "--all-namespaces"),
        ("ls --all", "--all-namespaces"),
        ("list -A --concurency=4", "--concurrency"),
        ("apply a -f x --atomic", "--undo-out FILE"),
        ("apply a -f x --rollback-on-failure", "`apply SET -f FILE`"),
        ("apply a -f x --create-namespace", "Namespace to the manifests"),
        ("apply a -f x --set=a=b", "helm template"),
        ("wait a", "view SET --wait"),
        ("apply a -f x --message fix it", "in quotes"),
        ("delete a --auto-approve", "--yes"),
        ("apply a -f x --auto-approve", "omit it"),
        ("destroy web", "applyset delete"),
        ("uninstall web -n shop", "applyset delete"),
        ("plan web -f x", "applyset diff"),
        ("upgrade --install web", "applyset apply"),
        ("get web", "applyset view"),
        ("describe web", "applyset view"),
        ("rollback web 3", "--undo-out FILE"),
        ("template web", "helm template"),
        ("aply web -f x", "'apply'"),
    ] {
        let error = error(line);
        let (_, tips) = error.split_once("tip: ").expect(&error);
        assert!(tips.contains(tip), "{line}: {error}");
        assert!(
            !error.contains("--force-conflicts") && !error.contains("--allow-prune-all"),
            "{error}"
        );
    }
}

#[test]
fn errors_name_flags_and_commands_as_the_help_does() {
    for (line, text) in [
        (
            "apply a -f x --confirm --yes",
            "'--confirm' cannot be used with '--yes'",
        ),
        ("verify a --yes", "  --fix\n"),
        (
            "delete a --yes=maybe",
            "invalid value 'maybe' for '--yes': must be true or false",
        ),
        ("-n x", "requires a subcommand"),
    ] {
        let error = error(line);
        assert!(error.contains(text), "{error}");
        assert!(!error.contains("BOOL") && !error.contains("__manual"), "{error}");
    }
}

#[test]
fn a_tip_puts_names_of_managers_after_an_equals_sign() {
    for (value, tip) in [
        ("kubectl-edit", "--force-conflicts=kubectl-edit"),
        ("y.yaml", "-f before each file"),
    ] {
        let error = error(&format!("apply a -f x --force-conflicts {value}"));
        assert!(error.contains(tip), "{error}");
    }
}

#[test]
fn no_override_is_suggested_for_a_typo() {
    for line in [
        "apply a -f x --force-conflict",
        "apply a -f x --allow-prune-al",
        "delete a --take-ownership",
        "list --yess",
        "apply a -f x --take-ownershp",
    ] {
        let error = error(line);
        assert!(!error.contains("tip: "), "{line}: {error}");
        let (_, usage) = error.split_once("Usage: kubectl applyset ").expect("a usage");
        let mut overrides = super::FLAGS_THAT_OVERRIDE_CHECKS.iter();
        assert!(overrides.all(|flag| !usage.contains(flag)), "{error}");
    }
}

#[test]
fn tips_are_for_names_that_the_program_does_not_have() {
    let root = Cli::command();
    for name in super::COMMANDS.iter().flat_map(|(names, _)| *names) {
        assert!(root.find_subcommand(name).is_none(), "{name}");
    }
    for command in root.get_subcommands() {
        for argument in command.get_arguments().chain(root.get_arguments()) {
            let long = argument.get_long().map(|long| format!("--{long}"));
            let short = argument.get_short().map(|short| format!("-{short}"));
            for flag in long.into_iter().chain(short) {
                let is_known = |(flags, commands, _): &(&[&str], &[&str], _)| {
                    commands.contains(&command.get_name()) && flags.contains(&flag.as_str())
                };
                assert!(
                    !super::FLAGS.iter().any(is_known),
                    "{flag} of {}",
                    command.get_name()
                );
            }
        }
    }
}

#[test]
fn the_last_of_a_repeated_flag_counts_and_files_add_up() {
    let line = "kubectl-applyset apply a -n one -n two -f x -f y --yes --yes=false --dry-run --dry-run=none \
                --match-server-version --vmodule=a=1 --profile=none --profile-output x --log-flush-frequency=1s \
                --context=c --context d";
    let typed = Cli::parse(line.split_whitespace().map(Into::into).collect()).expect(line);
    assert_eq!(typed.shared.namespace.as_deref(), Some("two"));
    assert_eq!(typed.shared.connection.options.context.as_deref(), Some("d"));
    let crate::cli::Command::Apply(apply) = typed.command else {
        panic!("no apply");
    };
    assert_eq!(apply.manifests.filename, ["x", "y"]);
    assert!(!apply.yes && apply.writes.dry_run == crate::model::write_settings::DryRun::None);
}
