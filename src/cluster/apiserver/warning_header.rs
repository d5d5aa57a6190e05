//! Texts of the `Warning` headers of an answer (RFC 7234, section 5.5), which the server writes as `299 - "text"`.

use http::{HeaderMap, header};

/// Returns the texts of all warnings. One header may hold several.
pub(super) fn warnings(headers: &HeaderMap) -> Vec<String> {
    let values = headers.get_all(header::WARNING).iter();
    values.flat_map(|value| texts(value.as_bytes())).collect()
}

/// Returns the quoted texts of warnings with the code 299; the date after a text is quoted as well, and is not one.
fn texts(value: &[u8]) -> Vec<String> {
    let mut texts = Vec::new();
    let mut rest = value;
    while let Some(start) = rest.iter().position(|byte| *byte == b'"') {
        let (before, quoted) = (&rest[..start], &rest[start + 1..]);
        let (text, after) = unquote(quoted);
        let separators = before
            .iter()
            .take_while(|byte| matches!(byte, b',' | b' ' | b'\t'))
            .count();
        if before[separators..].starts_with(b"299 ") {
            texts.push(String::from_utf8_lossy(&text).into_owned());
        }
        rest = after;
    }
    texts
}

/// Returns a text up to its closing quote without its escapes, and what comes after it.
fn unquote(quoted: &[u8]) -> (Vec<u8>, &[u8]) {
    let mut text = Vec::new();
    let mut bytes = quoted.iter().enumerate();
    while let Some((index, byte)) = bytes.next() {
        match byte {
            b'"' => return (text, &quoted[index + 1..]),
            b'\\' => text.extend(bytes.next().map(|(_, escaped)| *escaped)),
            byte => text.push(*byte),
        }
    }
    (text, &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_text_is_read_as_it_was_meant() {
        for (value, expected) in [
            (r#"299 - "v1beta1 is deprecated""#, &["v1beta1 is deprecated"][..]),
            (
                r#"299 - "unrecognized format \"cidr\"""#,
                &[r#"unrecognized format "cidr""#],
            ),
            (r#"299 - "a \\ b""#, &[r"a \ b"]),
            (
                r#"299 - "Bitte Eigentümer angeben – 所有者""#,
                &["Bitte Eigentümer angeben – 所有者"],
            ),
            (r#"299 - "one, two", 299 - "three""#, &["one, two", "three"]),
            (
                r#"299 - "dated" "Thu, 26 Nov 2026 00:00:00 GMT",299 - "b""#,
                &["dated", "b"],
            ),
            (r#"110 - "stale""#, &[]),
            ("299 - unquoted", &[]),
        ] {
            assert_eq!(texts(value.as_bytes()), expected, "{value}");
        }
    }
}
