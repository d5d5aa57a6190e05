//! The way to open connections before requests need them.

/// Opens connections in the background.
pub trait ConnectionOpener: Send + Sync {
    /// Opens connections until there are `wanted` in total. Returns at once.
    fn open_until(&self, wanted: usize);

    /// Closes the connections that no request has used yet.
    fn discard(&self);
}
