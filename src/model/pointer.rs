//! JSON pointers (RFC 6901), by which users name fields.

use std::fmt;

use serde_json::Value;

/// A JSON pointer to a field of an object, such as `/spec/replicas`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pointer {
    segments: Vec<String>,
}

impl Pointer {
    /// Parses a pointer. The empty string is the pointer to the whole object.
    ///
    /// # Errors
    ///
    /// The reason why the text is not a pointer, with the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self { segments: Vec::new() });
        }
        let Some(rest) = text.strip_prefix('/') else {
            return Err(format!("{text:?} is not a JSON pointer: it must begin with /"));
        };
        let segments = rest.split('/').map(|segment| {
            // Each tilde has to begin an escape, `~0` for `~` or `~1` for `/`.
            let tildes = segment.matches('~').count();
            let escapes = segment.matches("~0").count() + segment.matches("~1").count();
            if tildes == escapes {
                // In this order: `~01` is `~1`, not `/` (RFC 6901, section 4).
                Ok(segment.replace("~1", "/").replace("~0", "~"))
            } else {
                Err(format!(
                    "{text:?} is not a JSON pointer: write ~ as ~0, and / in a name as ~1"
                ))
            }
        });
        Ok(Self {
            segments: segments.collect::<Result<_, _>>()?,
        })
    }

    /// Creates a pointer from the names and indices on the path to a field, which are not escaped.
    pub fn from_segments(segments: impl IntoIterator<Item = String>) -> Self {
        Self {
            segments: segments.into_iter().collect(),
        }
    }

    /// Returns the names and indices on the path to the field, without escapes.
    pub fn segments(&self) -> &[String] {
        &self.segments
    }

    /// Writes the path to the field for messages: `spec.ports[0].name`, `metadata.labels[a.b/c]`.
    pub fn readable(&self) -> String {
        let mut text = String::new();
        for segment in &self.segments {
            if segment.parse::<usize>().is_ok() {
                text.extend(["[", segment, "]"]);
            } else {
                push_field_name(&mut text, segment);
            }
        }
        text
    }

    /// Returns whether the object has the field.
    pub fn is_field_of(&self, object: &Value) -> bool {
        object.pointer(&self.to_string()).is_some()
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for segment in &self.segments {
            write!(f, "/{}", escape_segment(segment))?;
        }
        Ok(())
    }
}

/// Escapes the name of a field as a segment of a pointer.
pub fn escape_segment(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Parses a segment as an index in a list. Returns `None` for `-`, which RFC 6901 reserves for the item after the last
/// one, and for a number with a sign or a leading zero.
pub fn parse_index(segment: &str) -> Option<usize> {
    let is_number = !segment.is_empty() && segment.bytes().all(|byte| byte.is_ascii_digit());
    let is_plain = segment == "0" || !segment.starts_with('0');
    segment.parse().ok().filter(|_| is_number && is_plain)
}

/// Appends the name of a field to the path of the map that holds it; in brackets if the name could be taken for several
/// names.
pub fn push_field_name(path: &mut String, name: &str) {
    if name.contains(['.', '/', '[', ']', ' ']) {
        path.extend(["[", name, "]"]);
        return;
    }
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(name);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pointers_are_read_and_written() {
        let table: [(&str, &[&str]); 6] = [
            ("", &[]),
            ("/spec/replicas", &["spec", "replicas"]),
            (
                "/metadata/annotations/a.b~1c",
                &["metadata", "annotations", "a.b/c"],
            ),
            ("/data/~01", &["data", "~1"]),
            ("/data/", &["data", ""]),
            ("/list/0/-", &["list", "0", "-"]),
        ];
        for (text, segments) in table {
            let pointer = Pointer::parse(text).expect(text);
            assert_eq!(pointer.segments(), segments, "{text}");
            assert_eq!(pointer.to_string(), text);
        }
        for text in ["spec", "$.spec", "/a~", "/a~2b", "/~~1"] {
            assert!(Pointer::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_dash_and_leading_zeros_are_not_an_index() {
        let table = [
            ("0", Some(0)),
            ("12", Some(12)),
            ("-", None),
            ("01", None),
            ("+1", None),
        ];
        for (segment, expected) in table {
            assert_eq!(parse_index(segment), expected, "{segment}");
        }
        assert!(
            Pointer::parse("/a/1")
                .expect("a pointer")
                .is_field_of(&json!({"a": [0, 1]}))
        );
        assert!(
            !Pointer::parse("/a/-")
                .expect("a pointer")
                .is_field_of(&json!({"a": [0, 1]}))
        );
    }
}
