//! The bounds on what documents may ask for, so that a short text cannot fill the memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How deeply mappings and lists may nest. API servers read 128 levels at most, and the deepest
/// published CRDs stay below 60.
pub const MAX_DEPTH: usize = 100;

/// How many bytes the anchors and aliases of all documents that are read together may add to them.
pub const MAX_ALIAS_BYTES: usize = 64 << 20;

/// How many values all documents that are read together may have: room for more than a hundred thousand objects.
pub const MAX_ALL_VALUES: usize = 10_000_000;

/// What is left of [`MAX_ALIAS_BYTES`] and [`MAX_ALL_VALUES`] for documents that are read together, perhaps at the same
/// time. A clone is the same budget.
#[derive(Debug, Clone)]
pub struct Budget {
    alias_bytes: Arc<AtomicUsize>,
    values: Arc<AtomicUsize>,
}

impl Default for Budget {
    fn default() -> Self {
        Self::of_values(MAX_ALL_VALUES)
    }
}

impl Budget {
    pub(crate) fn of_values(values: usize) -> Self {
        Self {
            alias_bytes: Arc::new(AtomicUsize::new(MAX_ALIAS_BYTES)),
            values: Arc::new(AtomicUsize::new(values)),
        }
    }

    /// Takes these bytes of aliases from it, and returns whether it had as many.
    pub(crate) fn spend_alias_bytes(&self, bytes: usize) -> bool {
        let spent = self
            .alias_bytes
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(bytes)
            });
        spent.is_ok()
    }

    /// Takes these values from it, and returns whether it has some left.
    pub(crate) fn spend_values(&self, values: usize) -> bool {
        let spent = self
            .values
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                Some(left.saturating_sub(values))
            });
        spent.is_ok_and(|left| left > values)
    }

    /// Returns whether it has no values left: nothing more is read.
    pub(crate) fn is_spent(&self) -> bool {
        self.values.load(Ordering::Relaxed) == 0
    }
}

/// How many values one document may have, keys not counted. An API server takes requests of
/// 3 MiB; this is room for a List of some ten thousand objects, and bounds the memory that a
/// document takes while it is read to some hundred MiB.
pub const MAX_VALUES: usize = 2_000_000;

/// How many duplicate keys of a document are reported.
pub(crate) const MAX_DUPLICATES: usize = 101;
