//! Runs `adopt`, `disband` and `move`, and reads their sets before members join or leave.

use std::collections::BTreeSet;

use super::command_run::CommandRun;
use super::connect::{discover, discover_and_read_manifests};
use super::permissions;
use super::plan_and_write::Script;
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
    Administrator, Cluster, ClusterState, Goal, NamedSet, ReadSettings, Wanted, read_cluster_state,
    resolve_named_set,
};
use crate::report::SetDocument;
use crate::settings::{self, MembershipOptions};

/// A set as it was read, with what writing its parent needs.
pub struct SetRead {
    pub named: NamedSet,
    /// The state of the set without members: [`SetRead::list_members`] lists those.
    pub state: ClusterState,
}

/// Plans and writes with this script, in a run whose report is about `set`. `manifests` are the sources that the
/// command reads: if standard input is one of them, the user cannot answer a question there.
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
        SetDocument::from_name(&set.name),
        settings::read_style(shared),
        options.writing.dry_run,
        Questions::at_terminal(options.is_interactive, sources),
    );
    let outcome = run
        .plan_and_write(&mut script, &options.consent, options.writing.exclusive)
        .await;
    run.finish(outcome)
}

/// Connects, discovers the server, and reads the manifests that name the objects of the command; `None` if no flag
/// names manifests. `divide` separates the manifests that count from hooks. After an outdated plan, only the server is
/// discovered again.
pub async fn discover_and_read_manifests_once(
    run: &mut CommandRun,
    shared: &GlobalFlags,
    manifests: Option<(&[Source], Recursion)>,
    divide: impl FnOnce(Vec<Manifest>) -> Manifests,
    outdated: Option<(Cluster, Manifests)>,
) -> Result<(Cluster, Manifests), Error> {
    if let Some((mut cluster, manifests)) = outdated {
        cluster.discover_again().await?;
        return Ok((cluster, manifests));
    }
    let connection = run.connect(shared).await?;
    let waits = run.kind_waits();
    let Some((sources, recursion)) = manifests else {
        let cluster = discover(connection, waits, Wanted::Nothing).await?;
        return Ok((cluster, Manifests::default()));
    };
    discover_and_read_manifests(connection, sources.to_vec(), recursion, waits, divide, None).await
}

/// Reads the set that members leave; fails if the set does not exist.
pub async fn read_set_to_leave(
    cluster: &mut Cluster,
    named: NamedSet,
    operation: Operation,
    options: &MembershipOptions,
) -> Result<SetRead, Error> {
    read_set(cluster, named, Goal::Leave(operation), options).await
}

/// Reads the set that members join. The run creates the set if it does not exist.
pub async fn read_set_to_join(
    cluster: &mut Cluster,
    reference: &SetReference,
    options: &MembershipOptions,
    operation: Operation,
) -> Result<SetRead, Error> {
    let named = resolve_named_set(cluster, reference, options.tooling.clone(), &[]).await?;
    read_set(cluster, named, Goal::Join(operation), options).await
}

async fn read_set(
    cluster: &mut Cluster,
    mut named: NamedSet,
    goal: Goal<'_>,
    options: &MembershipOptions,
) -> Result<SetRead, Error> {
    let rules = ReadSettings {
        status: None,
        take_over: options.take_over,
        appliers: &options.appliers,
        field_manager: &options.writing.field_manager,
        concurrency: options.writing.concurrency,
    };
    let state = read_cluster_state(cluster, &mut named, goal, rules).await?;
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
        Proposal::new(refusals.collect(), &plan.changes).with_parent_of(&self.named.set)
    }

    /// Lists the objects that carry the set's label and match the label selector `label_selector`. If an object is
    /// listed in several API groups, it has the key that is in `preferred_keys`.
    pub async fn list_members(
        &self,
        cluster: &Cluster,
        label_selector: Option<&str>,
        preferred_keys: &BTreeSet<ObjectKey>,
        concurrency: usize,
    ) -> Result<Vec<Live>, Error> {
        self.state
            .list_members(
                &cluster.server,
                &self.named,
                label_selector,
                preferred_keys,
                concurrency,
            )
            .await
    }

    /// Returns the record of the set with these kinds and namespaces added. Also returns a refusal if the record makes
    /// the parent's annotations larger than the server allows.
    pub fn widened_record_and_refusal(&self, added: &Record) -> (Record, Option<Refusal>) {
        let record = self.state.observed.recorded.union(added);
        let nothing = Pairs::new();
        let annotations = self.parent().map_or(&nothing, |parent| &parent.annotations);
        let refusal = plan::refuse_large_annotations(&record, &self.named.set, annotations);
        (record, refusal)
    }

    /// Returns what writing the parent needs.
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

/// Checks that the user has all permissions of the run.
///
/// # Errors
///
/// The error names the missing permissions.
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
