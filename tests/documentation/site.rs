//! The pages as a site: it has all of them, and their links lead to each other or to the repository.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use super::links::{LINK, normal, prose};
use super::{checkout, markdown_below};
use crate::support::succeed;

#[test]
fn the_site_has_all_pages_and_their_links() {
    let place = tempfile::tempdir().expect("a directory");
    let mut gather = Command::new("python3");
    gather
        .arg(checkout("packaging/site.py"))
        .arg(place.path())
        .arg("v0.1.0");
    succeed(&mut gather);
    assert!(place.path().join("book.toml").is_file());
    let source = place.path().join("src");
    let contents = fs::read_to_string(source.join("SUMMARY.md")).expect("contents");
    let listed: BTreeSet<&str> = LINK
        .captures_iter(&contents)
        .filter_map(|link| link.get(1).map(|target| target.as_str()))
        .collect();
    for page in markdown_below("docs") {
        let place = page.replace("README.md", "index.md");
        assert!(listed.contains(&*place), "docs/README.md does not list {page}");
    }
    let mut links = 0;
    for page in listed {
        let text = fs::read_to_string(source.join(page)).expect("a page");
        for link in LINK.captures_iter(&prose(&text)) {
            let path = link[1].split('#').next().unwrap_or_default();
            if path.is_empty() || path.contains("://") {
                continue;
            }
            links += 1;
            let file = normal(&Path::new(page).parent().unwrap_or(Path::new("")).join(path));
            assert!(source.join(&file).is_file(), "{page}: {path}");
        }
    }
    assert!(links > 100, "only {links} links found");
}
