//! The value of a release's Secret: Helm's base64 of JSON, which is compressed or not (Helm,
//! `pkg/storage/driver/util.go`).
//!
//! Every user who may create Secrets can write such a value. To bound the memory, only the needed fields are kept, and
//! reading ends at a limit.

use std::io::{BufReader, Read};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use serde::Deserialize;

/// Limit of a release's JSON, in bytes. A Secret holds at most 1 MiB of compressed JSON.
const MAX_BYTES: u64 = 16 << 20;

/// First bytes of a compressed release; very old ones are not compressed.
const GZIP: [u8; 3] = [0x1f, 0x8b, 0x08];

/// Fields of a release. Charts, values and hooks are skipped while reading.
#[derive(Debug, Deserialize)]
pub(super) struct Payload {
    #[serde(default)]
    pub(super) name: String,
    #[serde(default)]
    pub(super) namespace: String,
    #[serde(default)]
    pub(super) version: u64,
    #[serde(default)]
    pub(super) manifest: String,
}

impl Payload {
    /// Decodes the value of a Secret as the API server returns it: the server encodes Helm's base64 in base64 once
    /// more.
    ///
    /// # Errors
    ///
    /// The reason why the value is not a release.
    pub(super) fn decode(value: &str) -> Result<Self, String> {
        let decode_base64 = |text: &[u8]| {
            let decoded = STANDARD.decode(text);
            decoded.map_err(|_| "its release is not base64-encoded twice".to_owned())
        };
        let packed = decode_base64(&decode_base64(value.as_bytes())?)?;
        if packed.starts_with(&GZIP) {
            Self::from_json_within(GzDecoder::new(packed.as_slice()), MAX_BYTES)
        } else {
            Self::from_json_within(packed.as_slice(), MAX_BYTES)
        }
    }

    /// Reads a stream of JSON that has at most `max_bytes` bytes. One byte more is read to notice a longer stream.
    fn from_json_within(json: impl Read, max_bytes: u64) -> Result<Self, String> {
        let mut limited = json.take(max_bytes + 1);
        let payload = serde_json::from_reader(BufReader::new(limited.by_ref()));
        if limited.limit() == 0 {
            return Err(format!(
                "its release is larger than {} MiB when decompressed",
                MAX_BYTES >> 20
            ));
        }
        payload.map_err(|error| format!("its release cannot be read: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::io::{self, Write as _};

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    /// An endless reader that counts the bytes read.
    struct Endless<'a, I> {
        bytes: I,
        read: &'a Cell<u64>,
    }

    impl<I: Iterator<Item = u8>> Read for Endless<'_, I> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            for (slot, byte) in buffer.iter_mut().zip(&mut self.bytes) {
                *slot = byte;
            }
            self.read.set(self.read.get() + buffer.len() as u64);
            Ok(buffer.len())
        }
    }

    #[test]
    fn nothing_is_read_beyond_the_limit() {
        for (begin, rest) in [
            // A value that is skipped, one that is kept, and endless values.
            ("{\"chart\": \"", "a"),
            ("{\"manifest\": \"", "a"),
            ("{\"chart\": [", "[],"),
            ("{\"chart\": ", "["),
            ("{\"", "a"),
            ("{}", " "),
        ] {
            let read = Cell::new(0);
            let endless = Endless {
                bytes: begin.bytes().chain(rest.bytes().cycle()),
                read: &read,
            };
            let most = 100_000;
            let error = Payload::from_json_within(endless, most).expect_err("too large");
            assert!(error.contains("larger than"), "{begin}{rest}: {error}");
            assert_eq!(read.get(), most + 1, "{begin}{rest}");
        }
    }

    #[test]
    fn a_bomb_is_distinguished_from_what_is_not_a_release() {
        let packed = |text: &[u8]| {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
            encoder.write_all(text).expect("written");
            STANDARD.encode(STANDARD.encode(encoder.finish().expect("packed")))
        };
        let padded = |bytes: usize| {
            let mut text = b"{\"name\": \"web\", \"manifest\": \"a: 1\"}".to_vec();
            text.resize(bytes, b' ');
            packed(&text)
        };
        let most = usize::try_from(MAX_BYTES).expect("a size");
        let release = Payload::decode(&padded(most)).expect("a release");
        assert_eq!(
            (release.name.as_str(), release.manifest.as_str()),
            ("web", "a: 1")
        );
        let error = |value: &str| Payload::decode(value).expect_err("no release");
        assert_eq!(
            error(&padded(most + 1)),
            "its release is larger than 16 MiB when decompressed"
        );
        assert_eq!(error("?"), "its release is not base64-encoded twice");
        assert_eq!(
            error(&STANDARD.encode("?")),
            "its release is not base64-encoded twice"
        );
        assert!(error(&packed(b"no json")).starts_with("its release cannot be read: "));
        let twice = packed(b"{\"manifest\": \"\", \"manifest\": \"\"}");
        assert!(error(&twice).contains("duplicate field"), "{}", error(&twice));
    }
}
