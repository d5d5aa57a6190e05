//! Events of a run, outcomes of objects, the request to stop a run, and its end.
//!
//! `execute` and `wait` send events, and `report` makes all output from them: lines, documents and progress.

mod interrupt;
mod object_outcome;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::compare::status::State;
use crate::model::identity::ObjectKey;
use crate::model::message::Message;
pub use interrupt::{Interrupt, InterruptCause, Urgency};
pub use object_outcome::{Claims, ObjectOutcome, StateAfterDelete, Subject};

/// Receives the events of a run.
pub type Sink<'a> = dyn FnMut(Event) + 'a;

/// One event of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A phase begins.
    Phase {
        phase: Phase,
        /// The number of objects that the phase processes.
        total: usize,
    },
    /// The object whose request has been under way for the longest time, and that time, if the request is slow; `None`
    /// once no request is slow.
    Slowest(Option<(ObjectKey, Duration)>),
    /// One object was processed.
    Object(ObjectOutcome),
    /// A warning; the run continues.
    Warning(String),
    /// A warning of the server about one object. Warnings with the same text are printed as one.
    WarningOfObject {
        /// The object, and its position in the manifests if that is known.
        object: String,
        /// The warning.
        text: String,
    },
    /// A failure that is not about an object of the set.
    Failure(Message),
    /// A step of the run that takes a while.
    Note(String),
    /// A hint for the failure before it.
    Hint(String),
    /// The objects of the plan. Each has the outcome that it gets if the run ends before it reaches the object.
    Planned(Vec<ObjectOutcome>),
    /// The run may write this parent of a set, and reports no outcome for it: it is not a member.
    ParentWithoutResult(Subject),
    /// Planned objects without an outcome so far are skipped, all for one reason.
    NotDone(NotDone),
    /// The run has created the set's parent, or its own manifest has changed it.
    Parent(ObjectKey, Action),
    /// A wait begins.
    Waiting {
        /// All objects that are waited for.
        objects: Vec<Subject>,
        /// The time limit; `None` if there is none.
        limit: Option<Duration>,
    },
    /// The status of an object that the run waits for.
    Awaited(Awaited),
}

impl Event {
    /// Returns the event of a failure that is not about an object of the set.
    pub fn general_failure(message: impl Into<Message>) -> Self {
        Self::Failure(message.into())
    }
}

/// The way for the user to finish an interrupted run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Resume {
    #[default]
    SameCommand,
    /// A new plan, because the cluster no longer matches the saved one.
    NewPlan,
    /// The same command with another undo file, because this one exists.
    OtherUndoFile,
}

impl fmt::Display for Resume {
    /// Writes the command as a clause that follows a semicolon.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SameCommand => "run the same command again to finish",
            Self::OtherUndoFile => "run the same command again with another --undo-out FILE to finish",
            Self::NewPlan => "make a new plan with `kubectl applyset diff SET -f … --out FILE` to finish",
        })
    }
}

/// Planned objects that a run did not process, because something else failed or the user stopped the run. A warning or
/// an error reports the cause once, not for each object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotDone {
    /// The objects; `None` for all planned objects without an outcome.
    pub objects: Option<Vec<ObjectKey>>,
    pub reason: String,
}

impl NotDone {
    /// The reason of an object that a run has not reached, because it ended early after a failure.
    pub const RUN_ENDED_EARLY: &str = "not done: the run ended early";

    /// Returns the event for all planned objects without an outcome.
    pub fn event_for_all(reason: impl Into<String>) -> Event {
        Event::NotDone(Self {
            objects: None,
            reason: reason.into(),
        })
    }

    /// Returns the event for these planned objects.
    pub fn event_for_objects(keys: Vec<ObjectKey>, reason: impl Into<String>) -> Event {
        Event::NotDone(Self {
            objects: Some(keys),
            reason: reason.into(),
        })
    }
}

/// The phases of a run, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Members are applied.
    Applying,
    /// Objects that are no longer in the manifests are deleted.
    Pruning,
    /// All members are deleted.
    Deleting,
    /// Members lose the set's label.
    Releasing,
    /// Objects get the set's label.
    Adopting,
    /// The run waits until the objects are Current or gone.
    Waiting,
    /// The server predicts changes in dry runs.
    Comparing,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// The status of an object that the run waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Awaited {
    #[serde(flatten)]
    pub subject: Subject,
    pub status: State,
    /// The reason for the status.
    pub reason: String,
    /// Progress of the wait for the object.
    #[serde(skip)]
    pub wait_status: WaitStatus,
}

/// Progress of the wait for one object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitStatus {
    /// The status of the object has changed, and the wait continues.
    Changed,
    /// The wait continues, and has found a reason for the status that was not reported before.
    NewReason,
    /// The wait continues, and the reason for the status was looked up again.
    Explained,
    /// The wait continues and has taken a while.
    Slow,
    /// The object has reached the state that is waited for: it is Current or gone.
    Arrived,
    /// The wait is over, and the object has not reached the state that is waited for.
    Missed,
    /// The wait is over, and the object was not observed before.
    Unseen,
}

/// The commands that report an outcome for each object, or wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// Apply manifests and prune objects removed from them.
    Apply,
    /// Show what applying manifests would change.
    Diff,
    /// Delete the members, and then the set.
    Delete,
    /// End the set and keep its objects.
    Disband,
    /// Add live objects to a set.
    Adopt,
    /// Move members to another set.
    Move,
    /// Show a set, and wait until its members are Current.
    View,
}

impl Operation {
    /// Returns the actions of this command, in the order of summaries. Those of `apply` are always included,
    /// so that scripts can rely on them.
    pub fn actions_in_summary(self) -> Vec<Action> {
        let own: &[Action] = match self {
            Self::Apply | Self::Diff | Self::View => &[],
            Self::Delete => &[Action::Deleted],
            Self::Disband => &[Action::Released],
            Self::Adopt => &[Action::Adopted],
            // The old parent is deleted if nothing is left in its set.
            Self::Move => &[Action::Adopted, Action::Deleted],
        };
        let of_apply = [
            Action::Created,
            Action::Configured,
            Action::Recreated,
            Action::Unchanged,
            Action::Pruned,
            Action::Skipped,
            Action::Failed,
        ];
        own.iter().copied().chain(of_apply).collect()
    }
}

/// The action on an object, or its prediction in a dry run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// The object did not exist, and was created.
    Created,
    /// The object existed, and was changed.
    Configured,
    /// The object could not be changed, so it was deleted and created again.
    Recreated,
    /// The object matched its manifest.
    Unchanged,
    /// The object was no longer in the manifests, and was deleted.
    Pruned,
    /// The object was deleted with its set.
    Deleted,
    /// The object was removed from the set, and is otherwise unchanged.
    Released,
    /// The object was added to the set, and is otherwise unchanged.
    Adopted,
    /// The object was kept unchanged, for the given reason.
    Skipped,
    /// The action on the object failed.
    Failed,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// The number of objects for each action.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ActionCounts(BTreeMap<Action, usize>);

impl ActionCounts {
    /// Counts an object with this action.
    pub fn add(&mut self, action: Action) {
        *self.0.entry(action).or_default() += 1;
    }

    /// Returns the number of objects with this action.
    pub fn count(&self, action: Action) -> usize {
        self.0.get(&action).copied().unwrap_or_default()
    }
}

/// The end of a run that started to write. Of two endings, the greater one is the worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ending {
    /// Everything was done.
    Done,
    /// A part of the work failed, or was not done.
    Incomplete,
    /// The user stopped the run.
    Interrupted,
}
