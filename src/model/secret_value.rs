//! The encodings in which a value of a Secret may appear within another text, so that it can be found and hidden.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use serde_json::{Map, Value};

use super::digest::hexadecimal;
use super::text::escape_json;

/// The fields of a Secret whose values are not secret. Any other field may hold secret values, also one that a typing
/// error has made, such as `stringdata`.
pub const PUBLIC_FIELDS: [&str; 5] = ["apiVersion", "kind", "metadata", "type", "immutable"];

/// Returns the names of the fields of a Secret that may hold secret values.
pub fn secret_fields(secret: &Value) -> impl Iterator<Item = &str> {
    let fields = secret.as_object().into_iter().flat_map(Map::keys);
    fields
        .map(String::as_str)
        .filter(|field| !PUBLIC_FIELDS.contains(field))
}

/// The length in bytes up to which a value is searched for in every encoding. Longer values are searched for as they
/// are, quoted as in JSON, and in base64 only: a search for dozens of encodings of a large value would take minutes.
pub const LONGEST_ENCODED: usize = 4096;

/// Returns a value in each encoding in which a copy of it may be written: as it is, quoted as in JSON, in base64 once
/// and twice, in hexadecimal, and percent-encoded. No encoding of a value of at least four bytes is shorter than the
/// value.
pub fn list_encodings(value: &[u8]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let text = std::str::from_utf8(value).ok();
    let quoted = text.map(escape_json);
    if value.len() > LONGEST_ENCODED {
        found.extend(text.map(str::to_owned));
        found.extend(quoted);
        found.insert(STANDARD_NO_PAD.encode(value));
        return found;
    }
    // Go's `encoding/json` escapes the characters with a meaning in HTML, too.
    let quoted_by_go = quoted.as_ref().map(|quoted| {
        let escaped = quoted.replace('&', "\\u0026");
        escaped.replace('<', "\\u003c").replace('>', "\\u003e")
    });
    let texts = BTreeSet::from([text, quoted.as_deref(), quoted_by_go.as_deref()]);
    for text in texts.into_iter().flatten() {
        found.insert(text.to_owned());
        found.extend(list_percent_encodings(text));
        found.extend(list_base64_encodings(text.as_bytes()));
    }
    found.extend(list_base64_encodings(value));
    let digits = hexadecimal(value);
    found.insert(digits.to_ascii_uppercase());
    found.insert(digits);
    found
}

/// Returns the value in base64, the percent-encoding of that as in a URL, and base64 of base64.
fn list_base64_encodings(value: &[u8]) -> BTreeSet<String> {
    let once: BTreeSet<String> = list_base64_at_each_offset(value).collect();
    let mut all = once.clone();
    for text in once {
        all.extend(list_base64_at_each_offset(text.as_bytes()));
        all.extend(list_percent_encodings(&text));
    }
    all
}

/// Returns a text in the base64 alphabet of RFC 4648, section 4, and in that of section 5, which is safe in URLs.
fn in_both_alphabets(base64: String) -> [String; 2] {
    [base64.replace('+', "-").replace('/', "_"), base64]
}

/// Returns the base64 of a value that is part of a longer text, such as `user:VALUE@host`, whatever is before and after
/// the value. Base64 encodes three bytes at a time, so there is one result for each position of the value's first byte
/// in such a group, each in both alphabets.
fn list_base64_at_each_offset(value: &[u8]) -> impl Iterator<Item = String> {
    let parts = [0, 1, 2].map(|before| {
        let encoded = STANDARD_NO_PAD.encode([&vec![0; before], value].concat());
        // The letters (6 bits each) that depend on the value's bytes (8 bits each) only.
        let end = (before + value.len()) * 8 / 6;
        let begin = (before * 8).div_ceil(6).min(end);
        encoded[begin..end].to_owned()
    });
    parts.into_iter().flat_map(in_both_alphabets)
}

/// For each of four encoders, the punctuation that it does not encode, in addition to `-._~`: Go's `QueryEscape`,
/// Python's `quote`, JavaScript's `encodeURIComponent`, and encoders of paths and user names in URLs.
const UNENCODED_PUNCTUATION: [&str; 4] = ["", "/", "!'()*", "!$&'()*+,;=:@/"];

/// Returns the text percent-encoded by each encoder of [`UNENCODED_PUNCTUATION`], with escapes in upper and lower case;
/// empty if no encoder changes the text.
fn list_percent_encodings(text: &str) -> BTreeSet<String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    if text.bytes().all(is_plain) {
        return BTreeSet::new();
    }
    let encoded = UNENCODED_PUNCTUATION.map(|punctuation| {
        let bytes = text.bytes().map(|byte| match char::from(byte) {
            kept if is_plain(byte) || punctuation.contains(kept) => kept.to_string(),
            _ => format!("%{byte:02X}"),
        });
        bytes.collect::<String>()
    });
    let in_both_cases = encoded
        .into_iter()
        .flat_map(|text| [with_lower_case_escapes(&text), text]);
    // HTML forms encode a space as a plus sign.
    in_both_cases
        .flat_map(|text| [text.replace("%20", "+"), text])
        .collect()
}

fn with_lower_case_escapes(text: &str) -> String {
    let mut parts = text.split('%');
    let mut written = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        // Each `%` was written by `list_percent_encodings`, with two digits after it.
        let (digits, rest) = part.split_at(2);
        written.push('%');
        written.push_str(&digits.to_ascii_lowercase());
        written.push_str(rest);
    }
    written
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::{STANDARD, URL_SAFE, URL_SAFE_NO_PAD};

    use super::*;

    #[test]
    fn a_value_is_found_in_every_encoding() {
        for value in ["hunter22", "Tr0ub4dor&3 <ü>?~", "two\nlines\"", "\u{3fb}~~>>??~~"] {
            let within = format!("user:{value}@host");
            let twice = |first: &str| [STANDARD.encode(first), URL_SAFE.encode(first)];
            let texts = [
                value.to_owned(),
                escape_json(value),
                serde_json::json!({"password": value}).to_string(),
                STANDARD.encode(value),
                STANDARD.encode(&within),
                URL_SAFE.encode(value),
                URL_SAFE_NO_PAD.encode(&within),
                STANDARD.encode(escape_json(value)),
                hexadecimal(value.as_bytes()),
                hexadecimal(value.as_bytes()).to_uppercase(),
            ];
            let twice = [
                STANDARD.encode(value),
                STANDARD.encode(&within),
                URL_SAFE.encode(&within),
            ]
            .into_iter()
            .flat_map(|first| twice(&first));
            let encodings = list_encodings(value.as_bytes());
            for text in texts.into_iter().chain(twice) {
                assert!(
                    encodings.iter().any(|encoding| text.contains(encoding.as_str())),
                    "{value} in {text}"
                );
            }
            assert!(encodings.iter().all(|encoding| encoding.len() >= value.len()));
        }
    }

    #[test]
    fn a_value_is_found_in_urls_of_any_encoder() {
        let encodings = list_encodings("p@ss w/o+(ü)?".as_bytes());
        for encoded in [
            // Go's QueryEscape and PathEscape, Python's quote, JavaScript's encodeURIComponent.
            "p%40ss+w%2Fo%2B%28%C3%BC%29%3F",
            "p%40ss%20w%2fo%2b%28%c3%bc%29%3f",
            "p@ss%20w/o+(%C3%BC)%3F",
            "p%40ss%20w/o%2B%28%C3%BC%29%3F",
            "p%40ss%20w%2Fo%2B(%C3%BC)%3F",
        ] {
            assert!(encodings.contains(encoded), "{encoded}");
        }
        // Base64 in a URL.
        assert!(list_encodings(b"~~>>??").contains("fn4%2BPj8%2F"));
    }

    #[test]
    fn bytes_that_are_no_text_are_found_in_base64_and_in_hexadecimal() {
        let encodings = list_encodings(&[0xff, 0xfe, 0xfb, 0x00]);
        assert!(encodings.contains("fffefb00"));
        assert!(encodings.contains("//77A"));
        assert!(encodings.contains("__77A"));
    }
}
