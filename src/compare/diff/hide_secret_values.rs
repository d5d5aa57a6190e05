//! Hides the values of Secrets, and shows whether they differ.
//!
//! The placeholders are those of kubectl (`pkg/cmd/diff`, `Masker`). kubectl shows the annotation of client-side apply,
//! which holds the same values; we hide that annotation, too.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::compare::ownership::LAST_APPLIED;
use crate::model::secret_value::{list_encodings, secret_fields};
use crate::model::text::HIDDEN;

/// The placeholder for a live value that differs from the predicted value. If the values are equal, or only one of them
/// exists, the placeholder is [`HIDDEN`].
pub const BEFORE: &str = "*** (before)";
/// The placeholder for a predicted value that differs from the live value.
pub const AFTER: &str = "*** (after)";

/// Hides the values of both states of a Secret.
pub(super) fn hide(live: &mut Option<Value>, predicted: &mut Option<Value>) {
    let states: Vec<&Value> = live.iter().chain(&*predicted).collect();
    let values = values_in_all_encodings(&states, &states);
    let fields = states.iter().flat_map(|state| secret_fields(state));
    let fields: BTreeSet<String> = fields.map(str::to_owned).collect();
    for field in &fields {
        let live = live.as_mut().and_then(|object| object.get_mut(field));
        let predicted = predicted.as_mut().and_then(|object| object.get_mut(field));
        hide_values_of_field(live, predicted);
    }
    hide_value_in_both_states(
        live.as_mut().and_then(last_applied_mut),
        predicted.as_mut().and_then(last_applied_mut),
    );
    hide_copies(live, predicted, &values);
}

/// Replaces [`HIDDEN`] in place of each value of a Secret by another placeholder.
pub(super) fn replace_hidden_by_placeholder(object: &mut Option<Value>, placeholder: &str) {
    let Some(object) = object.as_mut().filter(|object| object["kind"] == "Secret") else {
        return;
    };
    let fields: Vec<String> = secret_fields(object).map(str::to_owned).collect();
    for field in fields {
        if let Some(Value::Object(values)) = object.get_mut(&field) {
            for value in values.values_mut().filter(|value| **value == HIDDEN) {
                *value = json!(placeholder);
            }
        }
    }
}

/// Returns the JSON pointers of the annotations and labels of a Secret that contain one of its values in one of these
/// states. If the key of an annotation or label contains a value, the pointer is that of all annotations or labels.
pub fn find_pointers_to_secret_copies(secret: &Value, states: &[&Value]) -> BTreeSet<String> {
    find_pointers_to_copies(secret, &values_in_all_encodings(states, &[secret]))
}

fn find_pointers_to_copies(secret: &Value, values: &BTreeSet<String>) -> BTreeSet<String> {
    let mut copies = BTreeSet::new();
    for field in METADATA {
        let texts = secret["metadata"][field].as_object();
        if texts.is_some_and(|texts| texts.keys().any(|key| name_holds_long_value(key, values))) {
            copies.insert(format!("/metadata/{field}"));
            continue;
        }
        for (key, _) in texts.into_iter().flatten().filter(|(_, text)| match field {
            "labels" => is_value_or_holds_long_value(text.as_str().unwrap_or_default(), values),
            _ => holds_value(text.as_str().unwrap_or_default(), values),
        }) {
            let key = key.replace('~', "~0").replace('/', "~1");
            copies.insert(format!("/metadata/{field}/{key}"));
        }
    }
    copies
}

/// Fields of the metadata in which copies are searched.
const METADATA: [&str; 2] = ["annotations", "labels"];

/// Returns the values of these states of a Secret, each in all encodings in which a copy may be written. Values that
/// are longer than any annotation or label of the `searched` states are left out.
fn values_in_all_encodings(states: &[&Value], searched: &[&Value]) -> BTreeSet<String> {
    // No copy is shorter than its value, so the large values of most Secrets need not be encoded.
    let longest = longest_annotation_or_label_length(searched);
    states
        .iter()
        .flat_map(|object| secret_fields(object).map(|field| &object[field]))
        .filter_map(Value::as_object)
        .flat_map(|fields| fields.values().filter_map(Value::as_str))
        .flat_map(|text| [Some(text.as_bytes().to_vec()), decode_base64(text)])
        .flatten()
        // A copy may lack the newline at the end that many values have by mistake.
        .flat_map(|value| [value.trim_ascii().to_vec(), value])
        .filter(|value| (SHORTEST_VALUE..=longest).contains(&value.len()))
        .flat_map(|value| list_encodings(&value))
        .collect()
}

/// Returns the value that base64 encodes; the server ignores line breaks.
fn decode_base64(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text.replace(['\n', '\r'], "")).ok()
}

/// Returns the length of the longest annotation, label or key of them.
fn longest_annotation_or_label_length(objects: &[&Value]) -> usize {
    objects
        .iter()
        .flat_map(|object| METADATA.map(|field| &object["metadata"][field]))
        .filter_map(Value::as_object)
        .flatten()
        .map(|(key, text)| key.len().max(text.as_str().unwrap_or_default().len()))
        .max()
        .unwrap_or_default()
}

/// How many bytes a value has at least for its copies to be searched; shorter values are parts of ordinary words.
const SHORTEST_VALUE: usize = 4;

/// How many bytes a value has at least for a copy of it to count as a part of a label or a key.
const LONG_VALUE: usize = 8;

/// Hides annotations and labels that contain a value, as a whole: tools store manifests in annotations, and people
/// notes, so the rest of such a text may be secret, too.
fn hide_copies(live: &mut Option<Value>, predicted: &mut Option<Value>, values: &BTreeSet<String>) {
    let states = [&*live, &*predicted].into_iter().flatten();
    let copies: BTreeSet<String> = states
        .flat_map(|state| find_pointers_to_copies(state, values))
        .collect();
    for pointer in copies {
        hide_value_in_both_states(
            live.as_mut().and_then(|object| object.pointer_mut(&pointer)),
            predicted.as_mut().and_then(|object| object.pointer_mut(&pointer)),
        );
    }
}

fn holds_value(text: &str, values: &BTreeSet<String>) -> bool {
    values.iter().any(|value| text.contains(value.as_str()))
}

/// Returns whether a text is a value, or contains a long value. A short value is a part of many labels by chance:
/// `admin` of `admin-portal`.
fn is_value_or_holds_long_value(text: &str, values: &BTreeSet<String>) -> bool {
    values.contains(text)
        || values
            .iter()
            .any(|value| value.len() >= LONG_VALUE && text.contains(value.as_str()))
}

/// Returns whether the name in a key contains a long value. The prefix of the key is not searched: it is a domain,
/// which is a value of many Secrets.
fn name_holds_long_value(key: &str, values: &BTreeSet<String>) -> bool {
    let name = key.rsplit('/').next().unwrap_or_default();
    name.len() >= LONG_VALUE && is_value_or_holds_long_value(name, values)
}

fn last_applied_mut(object: &mut Value) -> Option<&mut Value> {
    object
        .get_mut("metadata")?
        .get_mut("annotations")?
        .get_mut(LAST_APPLIED)
}

fn hide_values_of_field(mut live: Option<&mut Value>, mut predicted: Option<&mut Value>) {
    let keys: BTreeSet<String> = [&live, &predicted]
        .into_iter()
        .flatten()
        .filter_map(|values| values.as_object())
        .flat_map(|values| values.keys().cloned())
        .collect();
    for key in keys {
        hide_value_in_both_states(
            live.as_mut().and_then(|values| values.get_mut(&key)),
            predicted.as_mut().and_then(|values| values.get_mut(&key)),
        );
    }
    // A field that is not a mapping is invalid, but may still hold a value.
    for values in [live, predicted].into_iter().flatten() {
        if !values.is_object() && !values.is_null() {
            *values = json!(HIDDEN);
        }
    }
}

/// Hides two states of a value, and shows if they differ.
fn hide_value_in_both_states(live: Option<&mut Value>, predicted: Option<&mut Value>) {
    match (live, predicted) {
        (Some(live), Some(predicted)) if live != predicted => {
            *live = json!(BEFORE);
            *predicted = json!(AFTER);
        }
        (live, predicted) => {
            for value in [live, predicted].into_iter().flatten() {
                *value = json!(HIDDEN);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_without_the_newline_at_the_end_is_one() {
        let secret = json!({
            "data": {"password": STANDARD.encode("hunter22\n")},
            "metadata": {"annotations": {
                "trimmed": "it is hunter22",
                "whole": "hunter22\n",
                "encoded": STANDARD.encode("hunter22"),
                "as-it-is": STANDARD.encode("hunter22\n"),
                "other": "hunter",
            }},
        });
        let expected = ["as-it-is", "encoded", "trimmed", "whole"];
        let expected = expected.map(|key| format!("/metadata/annotations/{key}"));
        assert_eq!(
            find_pointers_to_secret_copies(&secret, &[&secret]),
            expected.into()
        );
    }

    #[test]
    fn a_copy_may_be_in_a_label_or_encoded_with_others() {
        let credentials = |user: &str| STANDARD.encode(format!("{user}:hunter22"));
        let quoted = json!({"password": "hunter22"}).to_string();
        let secret = json!({
            "data": {"password": STANDARD.encode("hunter22")},
            "metadata": {
                "labels": {"example.com/pass": "v-hunter22", "app": "web"},
                "annotations": {
                    "0": credentials("me"), "1": credentials("you"), "2": credentials("user"),
                    "json": STANDARD.encode(quoted), "other": STANDARD.encode("me:hunted22"),
                },
            },
        });
        let annotations = ["0", "1", "2", "json"].map(|key| format!("/metadata/annotations/{key}"));
        let mut expected = BTreeSet::from(annotations);
        expected.insert("/metadata/labels/example.com~1pass".to_owned());
        assert_eq!(find_pointers_to_secret_copies(&secret, &[&secret]), expected);
    }

    #[test]
    fn a_copy_may_be_in_any_encoding() {
        let twice = STANDARD.encode(STANDARD.encode("me:~hunter?22"));
        let secret = json!({
            "data": {"password": "fmh1bnRl\ncj8yMg=="},
            "metadata": {"annotations": {
                "twice": twice, "url": "fmh1bnRlcj8yMg", "hex": "0x7e68756e7465723f3232",
                "percent": "https://me:~hunter%3f22@host", "other": "https://me:hunter@host",
            }},
        });
        let expected = ["hex", "percent", "twice", "url"];
        let expected = expected.map(|key| format!("/metadata/annotations/{key}"));
        assert_eq!(
            find_pointers_to_secret_copies(&secret, &[&secret]),
            expected.into()
        );
    }

    #[test]
    fn a_field_with_a_value_in_a_key_is_hidden_as_a_whole() {
        let secret = |key: &str| {
            json!({
                "data": {"password": STANDARD.encode("hunter22"), "domain": STANDARD.encode("example.com")},
                "metadata": {"annotations": {key: "x"}, "labels": {"example.com/app": "web"}},
            })
        };
        for (key, is_hidden) in [
            ("hunter22", true),
            ("example.com/note-hunter22", true),
            ("example.com/note", false),
        ] {
            let (mut live, mut predicted) = (Some(secret(key)), Some(secret("note")));
            hide(&mut live, &mut predicted);
            let expected = if is_hidden {
                json!(BEFORE)
            } else {
                json!({key: "x"})
            };
            let live = live.expect("an object");
            assert_eq!(live["metadata"]["annotations"], expected, "{key}");
            assert_eq!(live["metadata"]["labels"], json!({"example.com/app": "web"}));
        }
    }
}
