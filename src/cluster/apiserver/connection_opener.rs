//! The way to open connections before requests need them.

/// Opens connections in the background.
pub trait ConnectionOpener: Send + Sync {
    /// Opens connections until there are so many. Returns at once.
    fn open_until(&self, wanted: usize);

    /// Closes those that no request has needed yet.
    fn discard(&self);
}
