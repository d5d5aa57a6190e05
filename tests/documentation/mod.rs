//! Every command line of the README and of docs/ is run, and prints what the page says.
//!
//! Each page has a control plane of its own, so that its namespaces may be named as a
//! person would name them. `just documentation` writes into the pages what is printed.

mod help;
mod page;
mod shell;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use controlplane::ControlPlane;

use page::{Page, Step};
use shell::Shell;

use crate::support::go_tools;

/// Set to `write`, it makes the pages say what the commands print.
const MODE: &str = "DOCUMENTATION";

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
    connecting: "docs/connecting.md",
    deleting: "docs/delete.md",
    diff: "docs/diff.md",
    hooks: "docs/hooks.md",
    install: "docs/install.md",
    many_namespaces: "docs/many-namespaces.md",
    migrating: "docs/migrating.md",
    permissions: "docs/permissions.md",
    pipelines: "docs/pipelines.md",
    safety: "docs/safety.md",
    saved_plan: "docs/saved-plan.md",
    terminal_pictures: "docs/terminal.md",
    troubleshooting: "docs/troubleshooting.md",
    verify: "docs/verify.md",
    waiting: "docs/waiting.md",
}

#[test]
fn every_page_is_run() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let files = fs::read_dir(docs).into_iter().flatten();
    let found: BTreeSet<String> = files
        .map(|file| file.expect("a file").file_name().to_string_lossy().into_owned())
        .filter(|name| {
            Path::new(name)
                .extension()
                .is_some_and(|extension| extension == "md")
        })
        .map(|name| format!("docs/{name}"))
        .chain(["README.md".to_owned()])
        .collect();
    let listed: BTreeSet<String> = PAGES.iter().map(|&page| page.to_owned()).collect();
    assert_eq!(listed, found);
}

/// What a pipeline runs is run on the page, too.
#[test]
fn pipelines_run_what_their_page_runs() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/pipelines.md");
    let mut page = Page::parse(&fs::read_to_string(file).expect("a page"));
    let mut known: BTreeSet<String> = page.not_run().into_iter().collect();
    let mut wanted = BTreeSet::new();
    for step in page.steps() {
        match step {
            Step::Command { command, .. } => drop(known.insert(command.clone())),
            Step::File { name, text } if Path::new(name).parent() == Some(Path::new("")) => {
                let file = serde_saphyr::from_str(text);
                collect_scripts(&file.unwrap_or(serde_json::Value::Null), &mut wanted);
            }
            Step::File { .. } => {}
        }
    }
    assert!(wanted.len() >= 4, "{wanted:?}");
    let unknown: Vec<_> = wanted.difference(&known).collect();
    assert!(unknown.is_empty(), "{unknown:?} is run nowhere");
}

/// The command lines of the fields that pipelines keep them in.
fn collect_scripts(value: &serde_json::Value, scripts: &mut BTreeSet<String>) {
    use serde_json::Value;
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect_scripts(item, scripts)),
        Value::Object(fields) => {
            for (name, value) in fields {
                match (name.as_str(), value) {
                    ("run" | "source", Value::String(text)) => {
                        scripts.extend(text.lines().map(str::to_owned));
                    }
                    ("script", Value::Array(lines)) => {
                        scripts.extend(lines.iter().filter_map(|line| line.as_str().map(str::to_owned)));
                    }
                    _ => collect_scripts(value, scripts),
                }
            }
        }
        _ => {}
    }
}

/// A directory with `jq` in it; another implementation of the language, which Go can build.
fn jq() -> PathBuf {
    static JQ: OnceLock<PathBuf> = OnceLock::new();
    let build = || {
        let directory = go_tools("jq", &["github.com/itchyny/gojq/cmd/gojq"]);
        fs::copy(directory.join("gojq"), directory.join("jq")).expect("it was built");
        directory
    };
    JQ.get_or_init(build).clone()
}

/// Runs what a page says, and compares what it prints.
fn run(path: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let mut page = Page::parse(&fs::read_to_string(&file).expect("a page"));
    let unrun = page.unrun();
    assert!(
        unrun.is_empty(),
        "{path}: these blocks say neither `console` nor `not-run`: {unrun:?}"
    );
    if page.steps().next().is_none() {
        return;
    }
    let control_plane = ControlPlane::start().expect("a control plane");
    let mut shell = Shell::start(&control_plane, page.uses_jq().then(jq));
    let mut differences = String::new();
    for step in page.steps() {
        match step {
            Step::File { name, text } => shell.write_file(name, text),
            Step::Command {
                line,
                command,
                output,
            } => {
                let printed = shell.run(command);
                if !page::is_alike(output, &printed) {
                    let _ = write!(differences, "{path}:{line}: $ {command}\n{printed}\n");
                    *output = printed;
                }
            }
        }
    }
    if differences.is_empty() {
        return;
    }
    if std::env::var(MODE).is_ok_and(|mode| mode == "write") {
        fs::write(&file, page.to_string()).expect("written");
    } else {
        panic!("other output than the page has:\n{differences}`just documentation` writes it");
    }
}
