//! The limit of one source of manifests, and how any source is read up to it.

use std::io::Read;

use super::error::Problem;

/// The most bytes of one source. Without the limit a source without an end would fill the memory. Ten thousand
/// Deployments have 14 MB.
pub(super) const MAX_SOURCE_BYTES: u64 = 256 << 20;

/// Reads a stream to its end. Fails if the stream has more than [`MAX_SOURCE_BYTES`].
pub(super) fn read_up_to_limit(from: impl Read) -> Result<Vec<u8>, Problem> {
    let mut bytes = Vec::new();
    from.take(MAX_SOURCE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_SOURCE_BYTES {
        return Err(Problem::TooLarge);
    }
    Ok(bytes)
}
