//! `testdata/yaml`: every case means what kubectl takes it for, or is refused.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Deserializer, Value};

use super::{Recursion, Source, read_with};

fn cases() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/yaml");
    let mut cases: Vec<_> = fs::read_dir(directory)
        .expect("the corpus is there")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .collect();
    cases.sort();
    cases
}

/// A number as a client written in Go carries it.
fn as_in_go(value: Value) -> Value {
    match value {
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(integer), _) => integer.into(),
            // `-0` is how Go prints a negative zero, and how it reads 0.
            (None, Some(0.0)) => 0.into(),
            (None, Some(float)) => float.into(),
            (None, None) => Value::Number(number),
        },
        Value::Array(items) => items.into_iter().map(as_in_go).collect(),
        Value::Object(fields) => fields
            .into_iter()
            .map(|(key, value)| (key, as_in_go(value)))
            .collect(),
        other => other,
    }
}

/// What is wrong with a case, if anything.
fn disagreement(case: &Path) -> Option<String> {
    let source = Source::Path(case.to_owned());
    let ours = read_with(&[source], Recursion::Flat, std::io::empty());
    let beside = |extension| fs::read_to_string(case.with_extension(extension)).ok();
    let refused = beside("refused");
    let rejected = beside("error").is_some();
    let meaning = beside("json").or(beside("accepted"));
    match (meaning, refused, ours) {
        (None, None, Err(_)) if rejected => None,
        (Some(_), Some(refused), Err(errors)) => {
            let ours = errors.to_string();
            (!ours.contains(refused.trim())).then(|| format!("another error: {ours}"))
        }
        (Some(meaning), None, Ok(manifests)) => {
            let meaning: Vec<Value> = Deserializer::from_str(&meaning)
                .into_iter()
                .map(|value| as_in_go(value.expect("a JSON object")))
                .collect();
            let ours: Vec<_> = manifests
                .into_iter()
                .map(|manifest| manifest.object.value())
                .collect();
            (ours != meaning)
                .then(|| format!("ours: {}\nexpected: {}", Value::from(ours), Value::from(meaning)))
        }
        (meaning, refused, ours) => Some(format!(
            "has a meaning: {}, refused: {refused:?}, ours: {ours:?}",
            meaning.is_some()
        )),
    }
}

#[test]
fn manifests_mean_what_kubectl_takes_them_for() {
    let cases = cases();
    assert!(cases.len() > 100, "the corpus is incomplete");
    let disagreements: Vec<_> = cases
        .iter()
        .filter_map(|case| Some(format!("{}: {}", case.display(), disagreement(case)?)))
        .collect();
    assert!(disagreements.is_empty(), "{}", disagreements.join("\n"));
}
