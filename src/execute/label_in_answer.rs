//! Checks that the answer to a write shows the part-of label, or the parent's record, as the run sent it. An admission
//! policy or webhook may change them, and so may the conversion of a custom resource.
//!
//! An object without the label is not a member, even if its apply succeeded. Without the record, no later run finds the
//! members of the set.

use serde_json::Value;

use crate::cluster::apiserver::Reply;
use crate::model::applyset::PART_OF_LABEL;
use crate::model::applyset::parent::Pairs;
use crate::model::message::Message;

const HINT: &str = "exempt the label from the policy or webhook, then run the same command again";

/// Returns the error of a write that set the part-of label to `written` and left it as `answered`; `None` if the two
/// are the same. An absent label is `None`.
pub(super) fn label_error(written: Option<&str>, answered: Option<&str>) -> Option<Message> {
    if written == answered {
        return None;
    }
    let verb = match (written, answered) {
        (Some(_), None) => "removed",
        (Some(_), Some(_)) => "changed",
        (None, _) => "did not remove",
    };
    let text = format!(
        "the server {verb} the label {PART_OF_LABEL}; an admission policy or webhook may be the cause"
    );
    Some(Message::new(text).with_hint(HINT))
}

/// Returns the error of a write that set the part-of label to `written`, if the object in this answer has another label
/// or none.
pub(super) fn label_error_in(reply: &Reply, written: Option<&str>) -> Option<Message> {
    let answer = reply.json_or_null();
    label_error(written, read_part_of_label(&answer))
}

/// Returns the first of the `written` labels or annotations that the answer lacks or has with another value.
pub(super) fn changed_key<'w>(written: &'w Value, answered: &Pairs) -> Option<&'w String> {
    let mut pairs = written.as_object().into_iter().flatten();
    let changed = pairs.find(|(key, value)| answered.get(*key).map(String::as_str) != value.as_str());
    changed.map(|(key, _)| key)
}

/// Returns the part-of label of an object.
pub(super) fn read_part_of_label(object: &Value) -> Option<&str> {
    object["metadata"]["labels"][PART_OF_LABEL].as_str()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_record_has_to_be_as_it_was_written() {
        let written = json!({"kinds": "A,B", "namespaces": ""});
        for (answered, changed) in [
            (json!({"kinds": "A,B", "namespaces": "", "note": "x"}), None),
            (json!({"kinds": "A,B"}), Some("namespaces")),
            (json!({"kinds": "A", "namespaces": ""}), Some("kinds")),
            (json!({}), Some("kinds")),
        ] {
            let pairs: Pairs = serde_json::from_value(answered).expect("pairs");
            assert_eq!(changed_key(&written, &pairs).map(String::as_str), changed);
        }
    }

    #[test]
    fn a_label_has_to_be_as_it_was_written() {
        for (written, answered, error) in [
            (Some("id"), Some("id"), None),
            (None, None, None),
            (Some("id"), None, Some("the server removed the label")),
            (Some("id"), Some("other"), Some("the server changed the label")),
            (None, Some("id"), Some("the server did not remove the label")),
        ] {
            let found = label_error(written, answered).map(|message| message.text);
            let is_expected = match (&found, error) {
                (Some(found), Some(error)) => found.starts_with(error),
                (found, error) => found.is_none() && error.is_none(),
            };
            assert!(is_expected, "{written:?}, {answered:?}: {found:?}");
        }
    }
}
