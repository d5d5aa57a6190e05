//! The waits of a run, as traits. `session` implements them with `wait`, which `execute` may not import. The
//! implementation knows how long to wait, and which status each object has to reach.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::future::LocalBoxFuture;

use super::Sink;
use crate::compare::status::WriteOutcome;
use crate::model::identity::ObjectKey;
use crate::model::live::Live;
use crate::model::resource::Resource;

/// Waits for objects that others depend on.
pub trait WaitsForDependencies {
    /// Returns whether an object of this resource is Current as soon as it is written, so that the run need not read
    /// it.
    fn is_current_once_written(&self, resource: &Resource, outcome: WriteOutcome) -> bool;

    /// Waits until each of these objects is Current or has failed, or the time is over. Returns those that are not
    /// Current.
    fn wait_and_list_not_current<'g>(
        &'g self,
        objects: Vec<Dependency>,
        sink: &'g mut Sink<'_>,
    ) -> LocalBoxFuture<'g, BTreeSet<ObjectKey>>;

    /// Waits until these objects are gone, and returns those that still exist when the wait is over.
    fn wait_and_list_not_gone<'g>(
        &'g self,
        objects: Vec<&'g Live>,
        sink: &'g mut Sink<'_>,
    ) -> LocalBoxFuture<'g, BTreeSet<ObjectKey>>;
}

/// An object that others depend on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dependency {
    pub key: ObjectKey,
    /// The resource through which the object is read.
    pub resource: Arc<Resource>,
    pub membership: Membership,
}

/// Relation of an object to the set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Membership {
    /// The object carries the label of the set.
    Member,
    /// The object does not carry the label, or the run does not know.
    Outside,
}

/// Waits for the objects of a run, between its writes and at its end.
pub trait WaitsOfRun {
    /// Waits until all objects of the manifests are Current.
    fn wait_until_ready<'g>(&'g self, sink: &'g mut Sink<'_>) -> LocalBoxFuture<'g, EndOfWait>;

    /// Waits for everything after the last write, unless the run has waited between its writes.
    fn wait_at_end_unless_waited_before<'g>(
        &'g self,
        sink: &'g mut Sink<'_>,
    ) -> LocalBoxFuture<'g, EndOfWait>;

    /// Waits until everything that was pruned is gone.
    fn wait_until_pruned_are_gone<'g>(&'g self, sink: &'g mut Sink<'_>) -> LocalBoxFuture<'g, EndOfWait>;
}

/// Outcome of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndOfWait {
    /// All objects have reached the state that the run waits for.
    Reached,
    /// An object has not reached the state in time, or cannot reach it any more.
    NotReached,
    /// The user stopped the run.
    Interrupted,
}
