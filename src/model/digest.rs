//! Digests in hexadecimal.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// Returns the SHA-256 digest of the content, in hexadecimal.
pub fn sha256(content: impl AsRef<[u8]>) -> String {
    hexadecimal(&Sha256::digest(content))
}

/// Returns the bytes in hexadecimal.
pub fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing into memory does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
