//! Every command line of the README and of docs/ is run, and prints what the page says.
//!
//! Each page has a control plane of its own, so that its namespaces may be named as a
//! person would name them. `just documentation` writes into the pages what is printed.

mod page;
mod shell;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use controlplane::ControlPlane;

use page::{Page, Step};
use shell::Shell;

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
    install: "docs/install.md",
    many_namespaces: "docs/many-namespaces.md",
    migrating: "docs/migrating.md",
    permissions: "docs/permissions.md",
    saved_plan: "docs/saved-plan.md",
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
    let mut shell = Shell::start(&control_plane);
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
