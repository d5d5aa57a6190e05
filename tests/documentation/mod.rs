//! The pages of the documentation are right: every command of README.md and docs/ is run and
//! prints what the page shows, links lead somewhere, the reference is that of the program.
//!
//! All pages share one control plane and run at the same time, so each has namespaces of its own
//! and deletes them in the end. `just documentation` writes output into the pages.

mod bounds;
mod commands;
mod help;
mod links;
mod messages;
mod output;
mod page;
mod schema;
mod shell;
mod site;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{OnceLock, PoisonError, RwLock};

use controlplane::ControlPlane;
use regex::Regex;

use output::is_alike;
use page::{Page, Step};
use shell::Shell;

use crate::support::{OwnControlPlane, admin_kubeconfig, jq};

macro_rules! pages {
    ($($test:ident: $path:literal),+ $(,)?) => {
        const PAGES: &[&str] = &[$($path),+];
        $(
            #[test]
            fn $test() {
                run($path);
            }
        )+
    };
}

pages! {
    readme: "README.md",
    index: "docs/README.md",
    compatibility: "docs/compatibility.md",
    concepts: "docs/concepts.md",
    faq: "docs/faq.md",
    hooks: "docs/guides/hooks.md",
    github_actions: "docs/guides/github-actions.md",
    ignore: "docs/guides/ignore.md",
    in_cluster: "docs/guides/in-cluster.md",
    install: "docs/install.md",
    maintainers: "docs/maintainers.md",
    performance: "docs/performance.md",
    tutorial: "docs/tutorial.md",
    safety: "docs/safety.md",
    testing: "docs/testing.md",
    threat_model: "docs/threat-model.md",
    troubleshooting: "docs/troubleshooting.md",
    autoscaling: "docs/guides/autoscaling.md",
    concurrent_runs: "docs/guides/concurrent-runs.md",
    delete: "docs/guides/delete.md",
    manifests: "docs/guides/manifests.md",
    migrate_from_kubectl: "docs/guides/migrate-from-kubectl-prune.md",
    migrate_from_helm: "docs/guides/migrate-from-helm.md",
    migrate_from_others: "docs/guides/migrate-from-other-tools.md",
    namespaces: "docs/guides/namespaces.md",
    permissions: "docs/guides/permissions.md",
    order: "docs/guides/order.md",
    pipelines: "docs/guides/pipelines.md",
    preview: "docs/guides/preview.md",
    recreate: "docs/guides/recreate.md",
    rename: "docs/guides/rename-and-split.md",
    saved_plan: "docs/guides/saved-plan.md",
    several_clusters: "docs/guides/several-clusters.md",
    undo: "docs/guides/undo.md",
    export: "docs/guides/export.md",
    verify: "docs/guides/verify.md",
    wait: "docs/guides/wait.md",
    reference_commands: "docs/reference/commands.md",
    reference_connection: "docs/reference/connection.md",
    reference_environment: "docs/reference/environment.md",
    reference_exit_codes: "docs/reference/exit-codes.md",
    reference_findings: "docs/reference/findings.md",
    reference_output: "docs/reference/output.md",
    reference_status_rules: "docs/reference/status-rules.md",
}

/// A path of the checkout.
fn checkout(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Returns whether pages are to be written instead of compared.
fn is_writing() -> bool {
    std::env::var("DOCUMENTATION").is_ok_and(|mode| mode == "write")
}

/// The Markdown files below a directory of the checkout, sorted.
fn markdown_below(directory: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(checkout(directory)).expect(directory) {
        let entry = entry.expect("an entry");
        let path = format!("{directory}/{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            found.extend(markdown_below(&path));
        } else if entry
            .path()
            .extension()
            .is_some_and(|extension| extension == "md")
        {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn read(path: &str) -> String {
    fs::read_to_string(checkout(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn every_page_is_run() {
    let found: BTreeSet<String> = markdown_below("docs")
        .into_iter()
        .filter(|page| !page.starts_with("docs/decisions/"))
        .chain(["README.md".to_owned()])
        .collect();
    let listed: BTreeSet<String> = PAGES.iter().map(|&page| page.to_owned()).collect();
    assert_eq!(listed, found);
}

/// Pages run at the same time, and readers do not want leftovers.
#[test]
fn pages_have_namespaces_of_their_own_and_delete_them() {
    let created =
        Regex::new(r"(?m)^(?:\$ )?kubectl create namespace (\S+)|kind: Namespace\nmetadata:\n  name: (\S+)")
            .expect("a pattern");
    let deleted = Regex::new(r"kubectl delete namespace ([^\n]+)").expect("a pattern");
    let mut owners: BTreeMap<String, &str> = BTreeMap::new();
    for page in PAGES {
        let text = read(page);
        let gone: BTreeSet<&str> = deleted
            .captures_iter(&text)
            .flat_map(|line| line.get(1).map_or("", |names| names.as_str()).split_whitespace())
            .collect();
        for name in created.captures_iter(&text) {
            let name = name.get(1).or(name.get(2)).map_or("", |name| name.as_str());
            assert!(gone.contains(name), "{page} leaves namespace {name} behind");
            let owner = owners.entry(name.to_owned()).or_insert(page);
            assert_eq!(owner, page, "namespace {name} is on two pages");
        }
    }
}

/// Each page begins with its title and ends with where to go next.
#[test]
fn pages_lead_on() {
    for page in PAGES.iter().filter(|page| page.starts_with("docs/")) {
        let text = read(page);
        assert!(text.starts_with("# "), "{page} has no title");
        assert!(
            *page == "docs/README.md" || text.contains("\n## Next\n"),
            "{page} has no section Next"
        );
    }
}

/// The control plane of all pages. It is not that of the other tests, whose objects would be seen.
fn control_plane() -> &'static ControlPlane {
    static SHARED: OnceLock<ControlPlane> = OnceLock::new();
    SHARED.get_or_init(|| ControlPlane::start().expect("a control plane"))
}

/// Held to write by a page that defines a kind, and to read by all others: `list` would warn of a kind
/// that is defined and not served yet.
static DEFINITIONS: RwLock<()> = RwLock::new(());

/// Runs the steps of a page, and compares what they print.
fn run(path: &str) {
    let text = read(path);
    let defines = text.contains("\nkind: CustomResourceDefinition\n");
    let _alone = defines.then(|| DEFINITIONS.write().unwrap_or_else(PoisonError::into_inner));
    let _shared = (!defines).then(|| DEFINITIONS.read().unwrap_or_else(PoisonError::into_inner));
    let mut page = Page::parse(&text);
    let unrun = page.unrun();
    assert!(
        unrun.is_empty(),
        "{path}: these blocks are not run and do not say so: {unrun:?}"
    );
    if page.steps().next().is_none() {
        return;
    }
    let mut shell = Shell::start(control_plane(), page.uses_jq().then(jq));
    let _second = (path == "docs/guides/several-clusters.md").then(|| {
        let second = OwnControlPlane::start();
        shell.use_contexts(&[
            ("test", control_plane().admin_kubeconfig()),
            ("production", admin_kubeconfig()),
        ]);
        second
    });
    let mut differences = String::new();
    let mut wrong_codes = String::new();
    for step in page.steps() {
        match step {
            Step::File { name, text } => shell.write_file(name, text),
            Step::Command {
                line,
                command,
                output,
            } => {
                let printed = shell.run(command);
                if !is_alike(output, &printed) {
                    let _ = write!(differences, "{path}:{line}: $ {command}\n{printed}\n");
                    *output = printed;
                }
            }
            Step::Script {
                line,
                script,
                code,
                output,
                ..
            } => {
                let printed = shell.run(script);
                let ended = shell.run("echo $?").trim().to_owned();
                if ended != code.to_string() {
                    let _ = write!(
                        wrong_codes,
                        "{path}:{line}: exit code {ended}\n{script}{printed}\n"
                    );
                }
                if let Some(output) = output
                    && !is_alike(output, &printed)
                {
                    let _ = write!(differences, "{path}:{line}:\n{script}---\n{printed}\n");
                    *output = printed;
                }
            }
        }
    }
    if is_writing() && !differences.is_empty() {
        fs::write(checkout(path), page.to_string()).expect("written");
        differences.clear();
    }
    assert!(wrong_codes.is_empty(), "other exit codes:\n{wrong_codes}");
    assert!(
        differences.is_empty(),
        "other output than the page shows:\n{differences}`just documentation` writes it"
    );
}
