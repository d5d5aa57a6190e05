//! The waits of a run between its writes. The caller makes them: it knows how long to wait, and what
//! each object has to come to.

use futures_util::future::LocalBoxFuture;

use super::Sink;

/// Waits on behalf of a run.
pub trait Gate {
    /// Waits until all objects of the manifests are Current.
    fn ready<'g>(&'g self, sink: &'g mut Sink<'_>) -> LocalBoxFuture<'g, EndOfWait>;

    /// Waits for everything after the last write, unless the run has waited between its writes.
    fn all<'g>(&'g self, sink: &'g mut Sink<'_>) -> LocalBoxFuture<'g, EndOfWait>;

    /// Waits until everything that was pruned is gone.
    fn gone<'g>(&'g self, sink: &'g mut Sink<'_>) -> LocalBoxFuture<'g, EndOfWait>;
}

/// Outcome of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndOfWait {
    /// What was waited for has happened.
    Reached,
    /// It did not happen.
    NotReached,
    /// The user stopped the run.
    Interrupted,
}
