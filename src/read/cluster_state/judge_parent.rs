//! Reads the parent and judges whether the run may write it.

use std::collections::BTreeMap;
use std::slice;

use futures_util::future::join;

use super::{Goal, ReadSettings, namespaces_of_run};
use crate::cluster::apiserver::ApiServer;
use crate::error::Error;
use crate::event::Operation;
use crate::manifest::desired::Desired;
use crate::model::applyset::parent::Reading;
use crate::model::containers::NamespaceState;
use crate::model::set::ParentObject;
use crate::plan::{self, ParentJudgement, ParentStatus, Refusal, Risk};
use crate::read::error::{no_set_to_move, no_such_set};
use crate::read::orphans::ParentPresence;
use crate::read::{LiveParent, NamedSet};

/// The parent, once it is known that the run may write it.
pub(super) struct JudgedParent {
    pub(super) parent: Option<LiveParent>,
    pub(super) take_over: Option<Refusal>,
    pub(super) parent_status: ParentStatus,
    pub(super) namespaces: BTreeMap<String, NamespaceState>,
    /// The parent's object exists, and has no record.
    pub(super) is_bare: bool,
}

impl JudgedParent {
    pub(super) fn presence(&self) -> ParentPresence {
        match self.parent {
            Some(_) => ParentPresence::There,
            None => ParentPresence::Gone,
        }
    }
}

pub(super) fn has_record(parent: &LiveParent) -> bool {
    parent.object.reading != Reading::NoRecord
}

impl Goal<'_> {
    /// Returns the objects that are to be applied, if any.
    pub(super) fn desired(&self) -> Option<&Desired> {
        match self {
            Self::Apply(desired, ..) => Some(desired),
            Self::Delete(..) | Self::Join(_) | Self::Leave(_) => None,
        }
    }

    /// Returns whether the command creates a set that does not exist.
    fn creates_set(&self) -> bool {
        matches!(self, Self::Apply(..) | Self::Join(_))
    }

    /// Returns the parent if this command can use it. Some commands use only a parent with a record.
    ///
    /// # Errors
    ///
    /// The command needs a set that exists, and the set does not.
    fn usable_parent(
        &self,
        named: &NamedSet,
        parent: Option<LiveParent>,
    ) -> Result<Option<LiveParent>, Error> {
        match self {
            Self::Apply(..) | Self::Join(_) => Ok(parent),
            Self::Delete(..) => Ok(parent.filter(has_record)),
            Self::Leave(operation) => match (parent.filter(has_record), operation) {
                (Some(parent), _) => Ok(Some(parent)),
                (None, Operation::Move) => Err(no_set_to_move(&named.set.parent)),
                (None, _) => Err(no_such_set(&named.set.parent)),
            },
        }
    }

    /// Judges the parent as it was read.
    fn judge(
        &self,
        named: &NamedSet,
        parent: Option<&ParentObject>,
    ) -> Result<ParentJudgement, Vec<Refusal>> {
        let set = &named.set;
        let (judged, operation) = match (self, parent) {
            (Self::Apply(..), _) => return plan::judge_parent(set, parent),
            (Self::Delete(..), None) => (plan::judge_parent(set, None), Operation::Delete),
            (Self::Delete(..), Some(parent)) => {
                (plan::judge_parent_for_deletion(set, parent), Operation::Delete)
            }
            (Self::Join(operation) | Self::Leave(operation), _) => {
                (plan::judge_parent(set, parent), *operation)
            }
        };
        judged.map(|judged| ParentJudgement {
            take_over: judged
                .take_over
                .map(|refusal| into_managed_elsewhere(refusal, operation)),
            ..judged
        })
    }
}

/// Replaces the refusal to write another tool's set, for commands other than `apply`. Only `apply` takes sets over, so
/// the other commands need another hint.
fn into_managed_elsewhere(refusal: Refusal, operation: Operation) -> Refusal {
    match refusal {
        Refusal::OtherTooling { parent, found, ours } => Refusal::ManagedElsewhere {
            parent,
            found,
            ours,
            operation,
        },
        other => other,
    }
}

/// Refuses a parent that has to be taken over, if this command never takes sets over or lacks the flag for it.
fn check_take_over(needed: Option<&Refusal>, take_over: Risk) -> Result<(), Error> {
    match needed {
        Some(refusal) if take_over == Risk::Refused || !refusal.is_lifted_by_take_over_set() => {
            Err(Refusal::error(slice::from_ref(refusal)))
        }
        Some(_) | None => Ok(()),
    }
}

/// Reads the parent and the namespaces that matter for it, and judges them. The set in `named` gets the UID of the
/// parent and, for a deletion, the tooling that the parent records.
pub(super) async fn read_and_judge_with_namespaces(
    server: &ApiServer,
    named: &mut NamedSet,
    goal: &Goal<'_>,
    settings: ReadSettings<'_>,
) -> Result<JudgedParent, Error> {
    let nothing = Desired::default();
    let desired = goal.desired().unwrap_or(&nothing);
    let (parent, mut namespaces) = if goal.creates_set() {
        let reads = join(
            named.read_parent(server),
            namespaces_of_run::read(server, named, desired),
        );
        let (parent, namespaces) = reads.await;
        (parent?, namespaces?)
    } else {
        (named.read_parent(server).await?, BTreeMap::new())
    };
    named.set.parent_uid = parent.as_ref().map(|parent| parent.live.uid.clone());
    let is_bare = parent.as_ref().is_some_and(|parent| !has_record(parent));
    let parent = match goal.usable_parent(named, parent) {
        Ok(parent) => parent,
        Err(error) => {
            // If the parent's namespace is missing, the error says so instead: that explains why there is no parent.
            namespaces_of_run::check_parent_namespace_exists(server, named).await?;
            return Err(error);
        }
    };
    let object = parent.as_ref().map(|parent| &parent.object);
    let ParentJudgement {
        status: parent_status,
        take_over,
    } = goal
        .judge(named, object)
        .map_err(|refusals| Refusal::error(&refusals))?;
    check_take_over(take_over.as_ref(), settings.take_over)?;
    if goal.creates_set() {
        namespaces_of_run::check_namespaces_exist_or_are_created(named, desired, &namespaces)?;
        namespaces_of_run::check_custom_parent_exists(named, object, desired)?;
    }
    if let (Goal::Delete(..), ParentStatus::Recorded(applyset_record)) = (goal, &parent_status) {
        // A deletion does not change the tool that manages the set.
        named.set.tooling = applyset_record.tooling.clone();
    }
    if !goal.creates_set() && parent_status == ParentStatus::New {
        // A first run may have been interrupted after it created the namespace of the parent as a member.
        namespaces = namespaces_of_run::read(server, named, desired).await?;
    }
    Ok(JudgedParent {
        parent,
        take_over,
        parent_status,
        namespaces,
        is_bare,
    })
}
