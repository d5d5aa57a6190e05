//! Each case in `corpus/` means what kubectl takes it for, or is refused.

use std::fs;
use std::path::{Path, PathBuf};

use kubernetes_yaml::{Node, decode, documents};
use serde_json::{Deserializer, Value};

fn cases() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let mut cases: Vec<_> = fs::read_dir(directory)
        .expect("the corpus is there")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .collect();
    cases.sort();
    cases
}

/// Reads a case to its values, or to all its errors.
fn read(case: &Path) -> Result<Vec<Value>, String> {
    let text = decode(fs::read(case).expect("a file")).map_err(|error| error.to_string())?;
    let (nodes, errors): (Vec<_>, Vec<_>) = documents(&text).partition(Result::is_ok);
    let errors: Vec<_> = errors.into_iter().filter_map(Result::err).collect();
    if errors.is_empty() {
        let nodes = nodes.into_iter().filter_map(Result::ok);
        return Ok(nodes.map(|node: Node| node.to_value()).collect());
    }
    let errors = errors.iter().map(ToString::to_string);
    Err(errors.collect::<Vec<_>>().join("\n"))
}

/// Returns a value with its numbers as a client written in Go carries them.
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

/// Returns what is wrong with a case, if anything.
fn disagreement(case: &Path) -> Option<String> {
    let ours = read(case);
    let beside = |extension| fs::read_to_string(case.with_extension(extension)).ok();
    let refused = beside("refused");
    let rejected = beside("error").is_some();
    let meaning = beside("json").or(beside("accepted"));
    match (meaning, refused, ours) {
        (None, None, Err(_)) if rejected => None,
        (Some(_), Some(refused), Err(errors)) => {
            (!errors.contains(refused.trim())).then(|| format!("another error: {errors}"))
        }
        (Some(meaning), None, Ok(ours)) => {
            let meaning: Vec<Value> = Deserializer::from_str(&meaning)
                .into_iter()
                .map(|value| as_in_go(value.expect("a JSON object")))
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
