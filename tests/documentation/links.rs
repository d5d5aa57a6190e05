//! Relative links of all pages lead to a file, and to a heading if they name one. Modules that pages name exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;

use super::{checkout, markdown_below};

/// `](TARGET)`, also of pictures.
pub(super) static LINK: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\]\(([^)\s]+)\)").expect("a pattern"));

/// A module, such as `plan/judge/` or `read/page`.
static MODULE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"`([a-z_]+(?:/[a-z_]+)+)/?`").expect("a pattern"));

/// Pages outside of docs/.
const PAGES: [&str; 7] = [
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "yaml/README.md",
    "testdata/objects/README.md",
];

#[test]
fn links_lead_somewhere() {
    let mut broken = BTreeSet::new();
    let mut links = 0;
    for (page, text) in pages_with_prose() {
        for link in LINK.captures_iter(&text) {
            let target = &link[1];
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            links += 1;
            if !leads_somewhere(&page, target) {
                broken.insert(format!("{page}: {target}"));
            }
        }
    }
    assert!(links > 100, "only {links} links found");
    assert!(broken.is_empty(), "these links lead nowhere: {broken:#?}");
}

#[test]
fn modules_that_pages_name_exist() {
    let mut missing = BTreeSet::new();
    let mut modules = 0;
    for (page, text) in pages_with_prose() {
        for module in MODULE.captures_iter(&text).map(|found| found[1].to_owned()) {
            let stage = module.split('/').next().unwrap_or_default();
            if !checkout("src").join(stage).is_dir() {
                continue;
            }
            modules += 1;
            let path = checkout("src").join(&module);
            if !path.exists() && !path.with_extension("rs").exists() {
                missing.insert(format!("{page}: {module}"));
            }
        }
    }
    assert!(modules > 100, "only {modules} modules found");
    assert!(missing.is_empty(), "these modules do not exist: {missing:#?}");
}

fn leads_somewhere(page: &str, target: &str) -> bool {
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let file = if path.is_empty() {
        PathBuf::from(page)
    } else {
        normal(&Path::new(page).parent().unwrap_or(Path::new("")).join(path))
    };
    let file = checkout(&file.to_string_lossy());
    if anchor.is_empty() {
        return file.exists();
    }
    fs::read_to_string(file).is_ok_and(|text| anchors(&text).contains(anchor))
}

/// Without `..`.
pub(super) fn normal(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut normal, part| {
        if part == Component::ParentDir {
            normal.pop();
        } else {
            normal.push(part);
        }
        normal
    })
}

/// All pages, each with its text outside of blocks of code.
fn pages_with_prose() -> impl Iterator<Item = (String, String)> {
    let pages = markdown_below("docs").into_iter().chain(PAGES.map(str::to_owned));
    pages.map(|page| {
        let text = fs::read_to_string(checkout(&page)).expect("a page");
        let prose = prose(&text);
        (page, prose)
    })
}

/// The text outside of blocks of code.
pub(super) fn prose(text: &str) -> String {
    let mut is_code = false;
    let lines = text.lines().filter(|line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The anchors that GitHub gives the headings, and those that the page sets itself.
fn anchors(text: &str) -> BTreeSet<String> {
    let prose = prose(text);
    let headings = prose.lines().filter(|line| line.starts_with('#')).map(slug);
    let own = Regex::new(r#"<a id="([^"]+)"></a>"#).expect("a pattern");
    let own = own.captures_iter(&prose).map(|found| found[1].to_owned());
    headings.chain(own).collect()
}

fn slug(heading: &str) -> String {
    let heading = LINK.replace_all(heading.trim_start_matches('#').trim(), "]");
    heading
        .to_lowercase()
        .replace(' ', "-")
        .chars()
        .filter(|letter| letter.is_alphanumeric() || matches!(letter, '-' | '_'))
        .collect()
}

#[test]
fn anchors_are_those_of_github() {
    let text =
        "# A page: `x`, and *more*\n```\n# no heading\n```\n## [Link](a.md) here\n<a id=\"own\"></a>\n";
    assert_eq!(
        anchors(text).into_iter().collect::<Vec<_>>(),
        ["a-page-x-and-more", "link-here", "own"]
    );
    assert!(!leads_somewhere("README.md", "docs/nothing.md"));
    assert!(!leads_somewhere("docs/README.md", "../README.md#nothing"));
    assert!(leads_somewhere("docs/README.md", "../LICENSE"));
}
