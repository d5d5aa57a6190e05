//! The sets of `adopt`, `disband` and `move`, as they are read before their members change.

use std::collections::BTreeSet;

use super::command_run::CommandRun;
use super::connect::{discover, discover_with};
use super::permissions;
use super::plan_and_write::{Allowed, Script};
use super::prompt::Questions;
use crate::cli::GlobalFlags;
use crate::error::{Error, Exit};
use crate::event::Operation;
use crate::execute::{Interrupt, ParentWriting};
use crate::manifest::{Manifest, Manifests, Recursion, Source};
use crate::model::applyset::Record;
use crate::model::applyset::parent::Pairs;
use crate::model::identity::ObjectKey;
use crate::model::live::Live;
use crate::model::permission::{NeededPermissions, Permission};
use crate::model::set::ParentObject;
use crate::model::write_settings::SetReference;
use crate::plan::{self, MembershipPlan, Proposal, Refusal};
use crate::read::{
    Administrator, Cluster, ClusterState, Goal, NamedSet, Rules, Wanted, cluster_state, named_set,
};
use crate::report::SetDocument;
use crate::settings::{self, MembershipOptions};

/// A set as it was read, with all that writing it needs.
pub struct SetRead {
    pub named: NamedSet,
    /// Its state, without members.
    pub state: ClusterState,
}

/// Plans and writes with this script, in a run whose report is about `set`. `manifests` are the sources that the command
/// reads: an answer cannot come from one.
pub async fn run(
    operation: Operation,
    set: &SetReference,
    options: &MembershipOptions,
    manifests: Option<(&[Source], Recursion)>,
    shared: &GlobalFlags,
    mut script: impl Script,
) -> Result<Exit, Error> {
    let sources = manifests.map_or(&[][..], |(sources, _)| sources);
    let mut run = CommandRun::begin(
        operation,
        SetDocument::named(&set.name),
        settings::style(shared),
        options.writing.dry_run,
        Questions::at_terminal(options.is_interactive, sources),
    );
    let allowed = Allowed::new(&options.consent, &options.writing);
    let outcome = run.plan_and_write(&mut script, allowed).await;
    run.finish(outcome)
}

/// Connects, discovers the server, and reads the manifests that name objects, if there are any. `divide` decides about
/// their hooks.
pub async fn discover_and_read(
    run: &mut CommandRun,
    shared: &GlobalFlags,
    manifests: Option<(&[Source], Recursion)>,
    divide: impl FnOnce(Vec<Manifest>) -> Manifests,
) -> Result<(Cluster, Manifests), Error> {
    let connection = run.connect(shared).await?;
    let waits = run.kind_waits();
    let Some((sources, recursion)) = manifests else {
        let cluster = discover(connection, waits, Wanted::Nothing).await?;
        return Ok((cluster, Manifests::default()));
    };
    discover_with(connection, sources.to_vec(), recursion, waits, divide, None).await
}

/// Reads a set that must exist.
pub async fn read_existing(
    cluster: &mut Cluster,
    named: NamedSet,
    operation: Operation,
    options: &MembershipOptions,
) -> Result<SetRead, Error> {
    read(cluster, named, Goal::Leave(operation), options).await
}

/// Reads a set that is created if it does not exist.
pub async fn read_target(
    cluster: &mut Cluster,
    reference: &SetReference,
    options: &MembershipOptions,
    operation: Operation,
) -> Result<SetRead, Error> {
    let named = named_set(cluster, reference, options.tooling.clone(), &[]).await?;
    read(cluster, named, Goal::Join(operation), options).await
}

async fn read(
    cluster: &mut Cluster,
    mut named: NamedSet,
    goal: Goal<'_>,
    options: &MembershipOptions,
) -> Result<SetRead, Error> {
    let rules = Rules {
        status: None,
        take_over: options.take_over,
        appliers: &options.appliers,
        field_manager: &options.writing.field_manager,
        concurrency: options.writing.concurrency,
    };
    let state = cluster_state(cluster, &mut named, goal, rules).await?;
    Ok(SetRead { named, state })
}

impl SetRead {
    /// The parent, if it exists.
    pub fn parent(&self) -> Option<&ParentObject> {
        self.state.parent_object()
    }

    /// Returns what the user has to agree to before the labels of this plan are written.
    pub fn proposal(&self, plan: &MembershipPlan) -> Proposal {
        let refusals = self.state.take_over.iter().chain(&plan.refusals).cloned();
        Proposal::new(refusals.collect(), &plan.changes).about(&self.named.set)
    }

    /// Lists the objects that carry the set's label and match these labels, by their keys among `asked`
    /// if they have others.
    pub async fn members(
        &self,
        cluster: &Cluster,
        labels: Option<&str>,
        asked: &BTreeSet<ObjectKey>,
        concurrency: usize,
    ) -> Result<Vec<Live>, Error> {
        let members = self
            .state
            .list_members(&cluster.server, &self.named, labels, asked, concurrency);
        members.await
    }

    /// Returns the record of the set with these kinds and namespaces added, and the refusal of a record
    /// that does not fit beside the parent's other annotations.
    pub fn record_with(&self, added: &Record) -> (Record, Option<Refusal>) {
        let record = self.state.observed.recorded.union(added);
        let nothing = Pairs::new();
        let annotations = self.parent().map_or(&nothing, |parent| &parent.annotations);
        let refusal = plan::refuse_large_annotations(&record, &self.named.set, annotations);
        (record, refusal)
    }

    /// Returns everything that writing the parent needs.
    pub fn parent_writing<'a>(
        &'a self,
        cluster: &'a Cluster,
        options: &'a MembershipOptions,
        interrupt: &'a Interrupt,
    ) -> ParentWriting<'a> {
        ParentWriting {
            server: &cluster.server,
            set: &self.named.set,
            resource: &self.named.resource,
            accepted: self.state.take_over.as_slice(),
            manifest: None,
            writing: &options.writing,
            interrupt,
        }
    }
}

/// Refuses a run that the user has no permission to finish.
pub async fn check_permissions(
    cluster: &Cluster,
    rights: BTreeSet<Permission>,
    options: &MembershipOptions,
) -> Result<(), Error> {
    let needed = NeededPermissions {
        rights,
        ..NeededPermissions::default()
    };
    permissions::check_to_write(
        &cluster.server,
        Administrator::NotAsked,
        &needed,
        &options.writing,
    )
    .await
}
