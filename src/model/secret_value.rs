//! Where the values of a Secret may appear, so that they can be hidden.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use serde_json::{Map, Value};

use super::applyset::parent::is_applyset_key;
use super::text::escape_json;

/// The annotation with the last manifest of client-side apply.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The fields of a Secret whose values are not secret. Any other field may hold secret values, also one that a typing
/// error has made, such as `stringdata`.
pub const PUBLIC_FIELDS: [&str; 5] = ["apiVersion", "kind", "metadata", "type", "immutable"];

/// Returns the names of the fields of a Secret that may hold secret values.
pub fn secret_fields(secret: &Value) -> impl Iterator<Item = &str> {
    secret
        .as_object()
        .into_iter()
        .flat_map(Map::keys)
        .map(String::as_str)
        .filter(|field| !PUBLIC_FIELDS.contains(field))
}

/// The fields of the metadata of a Secret in which people and tools keep copies of its values.
pub const METADATA_WITH_COPIES: [&str; 2] = ["annotations", "labels"];

/// Returns whether an annotation or label of a Secret with these secret fields may hold a copy of a value. The set's own
/// ones do not. That of client-side apply does even if the Secret has no values any more.
pub fn may_hold_copy(key: &str, secret_fields: &BTreeSet<String>) -> bool {
    key == LAST_APPLIED || (!secret_fields.is_empty() && !is_applyset_key(key))
}

/// Returns a value in each form in which a message may quote it: as it is, quoted as in JSON, and in base64.
pub fn list_encodings(value: &[u8]) -> BTreeSet<String> {
    let text = std::str::from_utf8(value).ok();
    let quoted = text.map(escape_json);
    // Go's `encoding/json` escapes the characters with a meaning in HTML, too.
    let quoted_by_go = quoted.as_ref().map(|quoted| {
        let escaped = quoted.replace('&', "\\u0026");
        escaped.replace('<', "\\u003c").replace('>', "\\u003e")
    });
    let encoded = [STANDARD_NO_PAD.encode(value), URL_SAFE_NO_PAD.encode(value)];
    let texts = text
        .map(str::to_owned)
        .into_iter()
        .chain(quoted)
        .chain(quoted_by_go);
    texts.chain(encoded).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_found_as_it_is_quoted_and_in_base64() {
        for (value, expected) in [
            ("hunter22", &["hunter22", "aHVudGVyMjI"][..]),
            (
                "a&\"b\"",
                &["a&\"b\"", "a&\\\"b\\\"", "a\\u0026\\\"b\\\"", "YSYiYiI"],
            ),
            (
                "~~>>??",
                &["~~>>??", "~~\\u003e\\u003e??", "fn4+Pj8/", "fn4-Pj8_"],
            ),
        ] {
            let found = list_encodings(value.as_bytes());
            assert_eq!(
                found,
                expected.iter().map(|text| (*text).to_owned()).collect(),
                "{value}"
            );
        }
    }
}
