//! The bounds on what one document may ask for, so that a short text cannot fill the memory.

/// How deeply mappings and lists may nest. API servers read 128 levels at most, and the deepest
/// published CRDs stay below 60.
pub const MAX_DEPTH: usize = 100;

/// How many bytes the anchors and aliases of one document may add to it.
pub const MAX_ALIAS_BYTES: usize = 64 << 20;

/// How many values one document may have, keys not counted. An API server takes requests of
/// 3 MiB; this is room for a List of some ten thousand objects, and bounds the memory that a
/// document takes while it is read to some hundred MiB.
pub const MAX_VALUES: usize = 2_000_000;

/// How many duplicate keys of a document are reported.
pub(crate) const MAX_DUPLICATES: usize = 101;
