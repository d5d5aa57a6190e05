//! The waits of a run. The caller provides them, because `execute` may not import `wait`; it also knows how long to
//! wait, and which state each object has to reach.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::future::LocalBoxFuture;

use super::Sink;
use crate::compare::status::Written;
use crate::model::identity::ObjectKey;
use crate::model::live::Live;
use crate::model::resource::Resource;

/// Waits for objects that others depend on.
pub trait WaitsForDependencies {
    /// Returns whether an object is Current as soon as it is written, so that it need not be read.
    fn is_current_once_written(&self, resource: &Resource, written: Written) -> bool;

    /// Waits until these objects are Current or have failed, and returns those that are not Current.
    fn current<'g>(
        &'g self,
        objects: Vec<Dependency>,
        sink: &'g mut Sink<'_>,
    ) -> LocalBoxFuture<'g, BTreeSet<ObjectKey>>;

    /// Waits until these objects are gone, and returns those that are not.
    fn gone<'g>(
        &'g self,
        objects: Vec<&'g Live>,
        sink: &'g mut Sink<'_>,
    ) -> LocalBoxFuture<'g, BTreeSet<ObjectKey>>;
}

/// An object that others depend on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dependency {
    /// Kind, namespace and name.
    pub key: ObjectKey,
    /// The resource that it is read through.
    pub resource: Arc<Resource>,
    /// Its relation to the set.
    pub membership: Membership,
}

/// Relation of an object to the set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Membership {
    /// It carries the label of the set.
    Member,
    /// It does not carry the label, or that is not known.
    Outside,
}

/// Waits on behalf of a run.
pub trait WaitsOfRun {
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
