//! The bounds on what documents may ask for, so that a short text cannot fill the memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How deeply mappings and lists may nest. API servers read 128 levels at most, and the deepest
/// published CRDs stay below 60.
pub const MAX_DEPTH: usize = 100;

/// How many bytes the anchors and aliases of all documents that are read together may add to them.
pub const MAX_ALIAS_BYTES: usize = 64 << 20;

/// What is left of [`MAX_ALIAS_BYTES`] for documents that are read together, perhaps at the same time. A clone is the same
/// budget.
#[derive(Debug, Clone)]
pub struct AliasBudget(Arc<AtomicUsize>);

impl Default for AliasBudget {
    fn default() -> Self {
        Self(Arc::new(AtomicUsize::new(MAX_ALIAS_BYTES)))
    }
}

impl AliasBudget {
    /// Takes these bytes from it, and returns whether it had as many.
    pub(crate) fn spend(&self, bytes: usize) -> bool {
        let spent = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            left.checked_sub(bytes)
        });
        spent.is_ok()
    }
}

/// How many values one document may have, keys not counted. An API server takes requests of
/// 3 MiB; this is room for a List of some ten thousand objects, and bounds the memory that a
/// document takes while it is read to some hundred MiB.
pub const MAX_VALUES: usize = 2_000_000;

/// How many duplicate keys of a document are reported.
pub(crate) const MAX_DUPLICATES: usize = 101;
