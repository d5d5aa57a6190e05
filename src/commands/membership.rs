//! What `disband`, `adopt` and `move` have in common: how a set is read before it is changed
//! who is in it, and what has to be allowed for that.

use std::collections::{BTreeMap, BTreeSet};

use http::StatusCode;

use super::opening::{self, Cluster, OpenedSet};
use super::run::{Questions, Run};
use super::situation;
use super::unrecorded::{self, Scope, Search};
use crate::error::Error;
use crate::event::Operation;
use crate::execute::{Interrupt, ParentWriting};
use crate::manifest::Source;
use crate::manifest::desired::Desired;
use crate::model::applyset::parent::Reading;
use crate::model::applyset::{PART_OF_LABEL, Tooling};
use crate::model::live::Live;
use crate::model::parent_object::ParentObject;
use crate::model::permission::{Needed, Right};
use crate::model::settings::DryRun;
use crate::plan::{self, Confirmation, ParentPolicy, Refusal, Standing, Survey};
use crate::read::{self, ListError, NamespaceState, Place, Selector};
use crate::settings::{MembershipOptions, SetReference, TakeOver};

/// A set as it was read, and may be written.
pub(super) struct SetRead {
    pub(super) opened: OpenedSet,
    pub(super) parent: Option<ParentObject>,
    pub(super) survey: Survey,
    pub(super) parent_policy: ParentPolicy,
    /// What people should know of the record.
    pub(super) warnings: Vec<String>,
}

/// What a take-over is of, as far as a command knows any.
#[derive(Debug, Clone, Copy)]
pub(super) enum TakingOver {
    /// Of an object that is no parent yet.
    PlainObject(Confirmation),
    /// Of another tool's set, to end it.
    ForeignSet(Confirmation),
}

/// Whether standard input is free for answers.
pub(super) fn questions(options: &MembershipOptions, sources: &[Source]) -> Questions {
    if options.is_interactive && !sources.contains(&Source::StandardInput) {
        Questions::Asked
    } else {
        Questions::Impossible
    }
}

/// Finds out where members of the set with this parent may be. Refused where the parent may
/// not be written by this command.
///
/// `home` is the namespace of the parent, as far as it was read already.
async fn judge(
    cluster: &mut Cluster,
    mut opened: OpenedSet,
    parent: Option<ParentObject>,
    home: Option<BTreeMap<String, NamespaceState>>,
    taking_over: TakingOver,
    operation: Operation,
    search: Search<'_>,
) -> Result<SetRead, Error> {
    opened.set.parent_uid = parent.as_ref().map(|parent| parent.uid.clone());
    let is_plain = parent
        .as_ref()
        .is_some_and(|parent| parent.reading == Reading::NoBookkeeping);
    let take_over = match taking_over {
        TakingOver::PlainObject(confirmation) if is_plain => confirmation,
        TakingOver::ForeignSet(confirmation) if !is_plain => confirmation,
        TakingOver::PlainObject(_) | TakingOver::ForeignSet(_) => Confirmation::Missing,
    };
    let parent_policy = ParentPolicy { take_over };
    let standing = plan::judge(&opened.set, parent.as_ref(), parent_policy)
        .map_err(|refusals| refused(refusals, operation))?;
    if standing == Standing::New {
        situation::check_custom_parent(&opened, parent.as_ref(), &Desired::default())?;
    }
    let home = match home {
        Some(home) => home,
        None => situation::read_home(&cluster.server, &opened, &standing).await?,
    };
    let Scope { survey, widened, .. } =
        unrecorded::scope_of_members(cluster, &opened, standing, &home, search).await?;
    let mut warnings = survey.warnings();
    warnings.extend(unrecorded::warnings(&opened, parent.as_ref(), widened));
    Ok(SetRead {
        opened,
        parent,
        survey,
        parent_policy,
        warnings,
    })
}

/// Reads a set that has to be there already.
pub(super) async fn read_existing(
    cluster: &mut Cluster,
    opened: OpenedSet,
    taking_over: TakingOver,
    operation: Operation,
    search: Search<'_>,
) -> Result<(SetRead, ParentObject), Error> {
    let parent = opening::read_parent(&cluster.server, &opened).await?;
    match parent {
        Some(parent) if parent.reading != Reading::NoBookkeeping => {
            let read = Some(parent.clone());
            let read = judge(cluster, opened, read, None, taking_over, operation, search).await?;
            Ok((read, parent))
        }
        Some(_) | None if operation == Operation::Move => Err(opening::no_set_to_move(&opened.set.parent)),
        Some(_) | None => Err(opening::no_such_set(&opened.set.parent)),
    }
}

/// Reads a set that is made where it is not there. At a terminal, a person is asked whether
/// an object that is no parent yet may become one.
pub(super) async fn read_target(
    run: &Run,
    cluster: &mut Cluster,
    reference: &SetReference,
    options: &MembershipOptions,
    operation: Operation,
) -> Result<SetRead, Error> {
    let mut read = async |confirmation| {
        let opened = opening::open(cluster, reference, options.tooling.clone(), &[]).await?;
        let parent = opening::read_parent(&cluster.server, &opened).await?;
        let taking_over = TakingOver::PlainObject(confirmation);
        let home = Some(situation::check_home(&cluster.server, &opened).await?);
        let search = Search::of(options);
        judge(cluster, opened, parent, home, taking_over, operation, search).await
    };
    match read(options.take_over.confirmation()).await {
        Err(Error::Refused(refusals))
            if options.take_over == TakeOver::Asked && refusals.iter().all(Refusal::is_take_over) =>
        {
            run.confirm(refusals).await?;
            read(Confirmation::Given).await
        }
        read => read,
    }
}

/// Other commands than `apply` do not take sets over, and have another way out to tell.
pub(super) fn refused(refusals: Vec<Refusal>, operation: Operation) -> Error {
    let refusals = refusals.into_iter().map(|refusal| match refusal {
        Refusal::OtherTooling { parent, found, ours } => Refusal::ManagedElsewhere {
            parent,
            found,
            ours,
            operation,
        },
        other => other,
    });
    Error::Refused(refusals.collect())
}

impl SetRead {
    /// What carries the set's label in the places of its record, and matches these labels.
    pub(super) async fn members(
        &self,
        cluster: &Cluster,
        labels: Option<&str>,
        concurrency: usize,
    ) -> Result<Vec<Live>, Error> {
        let own = format!("{PART_OF_LABEL}={}", self.opened.set.id);
        let selector = Selector {
            labels: labels.map_or_else(|| own.clone(), |labels| format!("{own},{labels}")),
            accept: read::METADATA_LIST,
        };
        let places = &self.survey.places;
        let found = read::members(&cluster.server, places, &selector, concurrency, Live::of).await;
        let mut found = found.map_err(|failure| unlisted(failure, labels))?;
        found.retain(|live| !self.opened.set.is_parent(live));
        found.sort_by(|one, other| one.key.cmp(&other.key));
        Ok(found)
    }

    /// How its parent is written.
    pub(super) fn parent_writing<'a>(
        &'a self,
        cluster: &'a Cluster,
        options: &'a MembershipOptions,
        interrupt: &'a Interrupt,
    ) -> ParentWriting<'a> {
        ParentWriting {
            server: &cluster.server,
            set: &self.opened.set,
            resource: &self.opened.resource,
            policy: self.parent_policy,
            manifest: None,
            writing: &options.writing,
            interrupt,
        }
    }
}

/// A selector that the server does not understand is a mistake of whoever typed it.
pub(super) fn unlisted((place, error): (Place, ListError), labels: Option<&str>) -> Error {
    match (&error, labels) {
        (ListError::Request(request), Some(labels)) if request.is(StatusCode::BAD_REQUEST) => Error::Usage {
            message: format!("-l {labels:?} is no label selector: {}", request.kind),
            hint: "write -l app=web,tier!=cache, as for `kubectl get`".to_owned(),
        },
        _ => Error::List { place, error },
    }
}

/// Refuses to begin what the user may not finish. A client-side dry run writes nothing and
/// asks nothing.
pub(super) async fn check_rights(
    cluster: &Cluster,
    rights: BTreeSet<Right>,
    options: &MembershipOptions,
) -> Result<(), Error> {
    if options.writing.dry_run == DryRun::Client {
        return Ok(());
    }
    let needed = Needed {
        rights,
        ..Needed::default()
    };
    let missing = read::missing_rights(&cluster.server, &needed, options.writing.concurrency).await;
    if missing.is_empty() {
        Ok(())
    } else {
        Err(Error::MissingRights(missing))
    }
}

/// Whose the set is according to its parent.
pub(super) fn tooling_of(parent: &ParentObject) -> Option<&Tooling> {
    match &parent.reading {
        Reading::Parent(bookkeeping) => Some(&bookkeeping.tooling),
        Reading::Unfinished(tooling) => Some(tooling),
        Reading::NoBookkeeping | Reading::Faulty(_) => None,
    }
}
