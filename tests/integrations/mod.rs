//! What other systems run is run here: `action.yml`, and the files below `integrations/`.

mod action;
mod cancel;
mod in_cluster;
mod job;
mod pipelines;
mod schemas;
mod systems;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::packaging::{CHECKOUT, PROGRAM};
use crate::support::Files;

/// A path of the checkout.
fn checkout(path: &str) -> PathBuf {
    Path::new(CHECKOUT).join(path)
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The documents of a file.
fn documents(path: &Path) -> Vec<Value> {
    let documents = serde_saphyr::from_multiple(&read(path));
    documents.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The only document of a file.
fn yaml(path: &Path) -> Value {
    serde_saphyr::from_str(&read(path)).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The file of this name in a page of the documentation.
fn file_of_page(page: &str, name: &str) -> String {
    let page = read(&checkout(page));
    let (_, text) = page
        .split_once(&format!("title={name}\n"))
        .unwrap_or_else(|| panic!("no file {name}"));
    text.split_once("```").expect("the end of the file").0.to_owned()
}

/// A directory with the program under its own name.
fn program() -> Files {
    Files::new().with_script("kubectl-applyset", &format!("exec '{PROGRAM}' \"$@\""))
}
