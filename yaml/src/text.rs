//! The bytes of a file to its text.

/// The bytes are not text in UTF-8, or in UTF-16 with a byte order mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not valid UTF-8")]
pub struct InvalidText;

/// Decodes UTF-8 with or without a byte order mark, or UTF-16 with one: some editors and shells
/// write it, and kubectl reads it.
///
/// ```
/// let text = kubernetes_yaml::decode(b"\xef\xbb\xbfkind: Pod\n".to_vec());
/// assert_eq!(text.as_deref(), Ok("kind: Pod\n"));
/// ```
///
/// # Errors
///
/// [`InvalidText`] for any other encoding.
pub fn decode(mut bytes: Vec<u8>) -> Result<String, InvalidText> {
    match bytes.as_slice() {
        [0xef, 0xbb, 0xbf, ..] => drop(bytes.drain(..3)),
        [0xff, 0xfe, rest @ ..] => return wide(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => return wide(rest, u16::from_be_bytes),
        _ => {}
    }
    String::from_utf8(bytes).map_err(|_| InvalidText)
}

fn wide(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<String, InvalidText> {
    let (pairs, remainder) = bytes.as_chunks::<2>();
    if !remainder.is_empty() {
        return Err(InvalidText);
    }
    let units: Vec<u16> = pairs.iter().copied().map(unit).collect();
    String::from_utf16(&units).map_err(|_| InvalidText)
}
