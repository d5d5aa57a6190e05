//! The way to open connections before requests need them.

use std::sync::Arc;

/// Opens connections in the background.
#[derive(Clone)]
pub struct OpenConnections(Arc<dyn Fn(usize) + Send + Sync>);

impl OpenConnections {
    /// Wraps a function that opens connections until there are so many.
    pub fn new(open: impl Fn(usize) + Send + Sync + 'static) -> Self {
        Self(Arc::new(open))
    }

    /// Opens connections until there are so many. Returns at once.
    pub fn until(&self, wanted: usize) {
        (self.0)(wanted);
    }
}
