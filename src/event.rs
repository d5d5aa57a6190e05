//! What a run tells while it goes on, and what it comes to in the end.
//!
//! `execute` makes events; everything that people or scripts see is made from them
//! by `report`. No text is laid out here.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::compare::status::State;
use crate::manifest::Position;
use crate::model::identity::{GroupKind, ObjectKey};
use crate::model::message::Message;
use crate::model::resource::Resource;

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A phase begins in which `total` objects will be worked on.
    Phase {
        /// Which one.
        phase: Phase,
        /// How many objects.
        total: usize,
    },
    /// Which object of those that are worked on has been for the longest time, and how long,
    /// where that is long; `None` once none is slow any more.
    Slowest(Option<(ObjectKey, Duration)>),
    /// One object is done with.
    Object(ObjectOutcome),
    /// An object that was reported as done with has changed since in this run.
    Revised {
        /// What was reported.
        before: Action,
        /// What has become of it.
        now: ObjectOutcome,
    },
    /// Something that people should know, and that stops nothing.
    Warning(String),
    /// Something failed that is no object of the set.
    Failure(Message),
    /// Something that a run does and that takes a while.
    Note(String),
    /// What people can do about the failure before it.
    Hint(String),
    /// The objects that a run is going to work on, each with the outcome that it has if the run
    /// ends before it.
    Planned(Vec<ObjectOutcome>),
    /// The planned objects that no event was about so far are skipped, all for one reason.
    NotDone(NotDone),
    /// The set's parent was created, or configured by its own manifest. It is not a member, and so
    /// not a result.
    Parent(ObjectKey, Action),
    /// The wait for these objects begins.
    Waiting {
        /// All of them.
        objects: Vec<Subject>,
        /// The time limit; `None` without one.
        limit: Option<Duration>,
    },
    /// The status of an object that is waited for.
    Awaited(Awaited),
}

impl Event {
    /// Something failed that is no object of the set.
    pub fn failure(message: impl Into<Message>) -> Self {
        Self::Failure(message.into())
    }
}

/// How a user finishes what an interrupted run has left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Resume {
    /// By the same command.
    #[default]
    SameCommand,
    /// By a new plan: the cluster is not what the saved one was made for any more.
    NewPlan,
}

impl fmt::Display for Resume {
    /// A clause that follows what was left.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SameCommand => "run the same command again to finish",
            Self::NewPlan => "make a new plan with `kubectl applyset diff SET -f … --out FILE` to finish",
        })
    }
}

/// Planned objects that a run leaves as they are, because something else failed or the run was
/// stopped. A warning or an error reports that once, and not for each object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotDone {
    /// Which of them.
    pub scope: NotDoneScope,
    /// Why.
    pub reason: String,
}

/// Which of the planned objects are left as they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotDoneScope {
    /// All of them.
    All,
    /// These.
    Objects(Vec<ObjectKey>),
}

impl NotDone {
    /// All planned objects that are left.
    pub fn all(reason: impl Into<String>) -> Event {
        Event::NotDone(Self {
            scope: NotDoneScope::All,
            reason: reason.into(),
        })
    }

    /// These planned objects.
    pub fn some(keys: Vec<ObjectKey>, reason: impl Into<String>) -> Event {
        Event::NotDone(Self {
            scope: NotDoneScope::Objects(keys),
            reason: reason.into(),
        })
    }
}

/// The phases of a run, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Members are applied.
    Applying,
    /// What left the manifests is deleted.
    Pruning,
    /// All members are deleted.
    Deleting,
    /// Members lose the set's label.
    Releasing,
    /// Objects get the set's label.
    Adopting,
    /// What was done is waited for to take effect.
    Waiting,
    /// The server is asked what it would make of members.
    Comparing,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Applying => "applying",
            Self::Pruning => "pruning",
            Self::Deleting => "deleting",
            Self::Releasing => "releasing",
            Self::Adopting => "adopting",
            Self::Waiting => "waiting",
            Self::Comparing => "comparing",
        })
    }
}

/// Which object an outcome is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Subject {
    /// API group; empty for the core group.
    pub group: String,
    /// API version that was spoken.
    pub version: String,
    /// CamelCase kind.
    pub kind: String,
    /// Plural name of the resource.
    pub resource: String,
    /// Namespace; `None` for a cluster-scoped object.
    pub namespace: Option<String>,
    /// Name.
    pub name: String,
    /// UID, where it is known.
    pub uid: Option<String>,
}

impl Subject {
    /// The object `key` as read and written through `resource`.
    pub fn new(key: &ObjectKey, resource: &Resource, uid: Option<&str>) -> Self {
        Self {
            group: resource.group.clone(),
            version: resource.version.clone(),
            kind: resource.kind.clone(),
            resource: resource.plural.clone(),
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            uid: uid.map(str::to_owned),
        }
    }

    /// Kind, namespace and name.
    pub fn key(&self) -> ObjectKey {
        ObjectKey {
            group_kind: GroupKind::new(&self.group, &self.kind),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        }
    }
}

/// What became of one object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ObjectOutcome {
    /// The object.
    #[serde(flatten)]
    pub subject: Subject,
    /// What was done.
    pub action: Action,
    /// Why, where that is not plain from the action; empty otherwise.
    pub reason: String,
    /// What went wrong.
    pub error: Option<Message>,
    /// True if the object existed in no set, and is a member from this run on.
    #[serde(rename = "takenIn", skip_serializing_if = "std::ops::Not::not")]
    pub taken_in: bool,
    /// Where the object stands in the manifests; `None` for one that is not in them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Position>,
}

impl ObjectOutcome {
    /// An outcome that explains itself.
    pub fn new(subject: Subject, action: Action) -> Self {
        Self {
            subject,
            action,
            reason: String::new(),
            error: None,
            taken_in: false,
            source: None,
        }
    }

    /// An outcome with its reason.
    pub fn because(subject: Subject, action: Action, reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            ..Self::new(subject, action)
        }
    }

    /// The outcome of an object with which something went wrong.
    pub fn failed(subject: Subject, error: impl Into<Message>) -> Self {
        Self {
            error: Some(error.into()),
            ..Self::new(subject, Action::Failed)
        }
    }
}

/// How an object stands that is waited for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Awaited {
    /// The object.
    #[serde(flatten)]
    pub subject: Subject,
    /// How far it has come.
    pub status: State,
    /// Why it is not further.
    pub reason: String,
    /// Whether it is waited for any longer.
    #[serde(skip)]
    pub wait_status: WaitStatus,
}

/// Whether an object is waited for any longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitStatus {
    /// It is; this is news of it.
    Changed,
    /// It is, and the reason was looked up.
    Explained,
    /// It is, and has been for a while.
    Slow,
    /// It has come as far as it should.
    Arrived,
    /// The waiting is over, and it has not.
    Missed,
}

/// The commands that tell of each object what they did to it, or would do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// Apply manifests and prune what left them.
    Apply,
    /// Tell what applying manifests would do.
    Diff,
    /// Delete the members, and then the set.
    Delete,
    /// Forget the set and keep its objects.
    Disband,
    /// Take live objects into a set.
    Adopt,
    /// Take members of one set into another.
    Move,
}

impl Operation {
    /// What can become of an object, in the order of summaries. The words of `apply` are
    /// in each of them, so that scripts can count on them.
    pub fn actions(self) -> Vec<Action> {
        let own: &[Action] = match self {
            Self::Apply | Self::Diff => &[],
            Self::Delete => &[Action::Deleted],
            Self::Disband => &[Action::Released],
            Self::Adopt => &[Action::Adopted],
            // The old parent is deleted if nothing is left in its set.
            Self::Move => &[Action::Adopted, Action::Deleted],
        };
        let of_apply = [
            Action::Created,
            Action::Configured,
            Action::Unchanged,
            Action::Pruned,
            Action::Skipped,
            Action::Failed,
        ];
        own.iter().copied().chain(of_apply).collect()
    }
}

/// What was done to an object, or would be in a dry run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// It was not there before.
    Created,
    /// It was changed.
    Configured,
    /// It was as the manifest has it.
    Unchanged,
    /// It had left the manifests, and was deleted.
    Pruned,
    /// It was deleted with its set.
    Deleted,
    /// It is in no set any more, and otherwise as it was.
    Released,
    /// It is in the set from now on, and otherwise as it was.
    Adopted,
    /// It was left as it is, for the given reason.
    Skipped,
    /// Something went wrong.
    Failed,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Created => "created",
            Self::Configured => "configured",
            Self::Unchanged => "unchanged",
            Self::Pruned => "pruned",
            Self::Deleted => "deleted",
            Self::Released => "released",
            Self::Adopted => "adopted",
            Self::Skipped => "skipped",
            Self::Failed => "failed",
        })
    }
}

/// How many objects each action was done to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary(BTreeMap<Action, usize>);

impl Summary {
    /// Counts one more object.
    pub fn add(&mut self, action: Action) {
        *self.0.entry(action).or_default() += 1;
    }

    /// Counts an object again that was counted before.
    pub fn revise(&mut self, before: Action, now: Action) {
        if let Some(count) = self.0.get_mut(&before) {
            *count = count.saturating_sub(1);
        }
        self.add(now);
    }

    /// The number of objects that this was done to.
    pub fn count(&self, action: Action) -> usize {
        self.0.get(&action).copied().unwrap_or_default()
    }
}

/// How a run ended that got as far as writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Everything was done.
    Done,
    /// Some of it failed; the record of the parent was kept wide.
    Incomplete,
    /// The user stopped it.
    Interrupted,
}
