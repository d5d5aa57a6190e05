//! What other systems run is run here: `action.yml`, and the files below `integrations/`.

mod action;
mod cancel;
mod forms;
mod github;
mod in_cluster;
mod pipelines;
mod script;

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

/// The documents of a file of the checkout.
fn documents(file: &str) -> Vec<Value> {
    let documents = serde_saphyr::from_multiple(&read(&checkout(file)));
    documents.unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// The documents of a file with these words replaced in names and texts, one after the other.
fn replaced<W: AsRef<str>, V: AsRef<str>>(file: &str, words: impl IntoIterator<Item = (W, V)>) -> Vec<Value> {
    let mut text = Value::from(documents(file)).to_string();
    for (word, value) in words {
        text = text.replace(&in_json(word.as_ref()), &in_json(value.as_ref()));
    }
    serde_json::from_str(&text).expect("JSON")
}

/// A text as it stands between quotes in JSON.
fn in_json(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// The file of this name in a page of the documentation.
fn file_of_page((page, name): (&str, &str)) -> String {
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
