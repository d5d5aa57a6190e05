//! Everything that `apply` and `diff` do before the first write: manifests → discovery →
//! observe → plan.
//!
//! Both have the same plan from it. What is done with the plan is the business of each.

use super::confirmed::Losses;
use super::opening::{self, Cluster, OpenedSet};
use super::run::Run;
use super::situation::{self, Rules, Situation};
use crate::cli::Shared;
use crate::cluster::connection::Connection;
use crate::compare::ownership::member_field_manager;
use crate::error::Error;
use crate::execute::{Execution, Interrupt};
use crate::manifest::Manifest;
use crate::manifest::desired::{self, Desired, Target};
use crate::model::settings::Writing;
use crate::plan::saved::{self, Approval, Salt, SavedManifest};
use crate::plan::{self, Confirmation, ParentPolicy, Plan, Policy, Refusal, UnchangedMembers};
use crate::report::SetDocument;
use crate::settings::{ApplyOptions, TakeOver};

/// Everything that was read and decided, before anything is written.
pub(super) struct Prepared {
    pub(super) cluster: Cluster,
    pub(super) opened: OpenedSet,
    pub(super) desired: Desired,
    pub(super) situation: Situation,
    pub(super) policy: Policy,
    pub(super) writing: Writing,
    pub(super) plan: Plan,
    /// The manifests, where they were to be kept.
    pub(super) manifests: Vec<SavedManifest>,
}

/// Where the objects come from.
pub(super) enum Input {
    /// From the sources that the options name.
    Sources,
    /// The same, and they are kept for a plan with these digests.
    Kept(Salt),
    /// From a saved plan.
    Saved {
        /// The objects.
        manifests: Vec<Manifest>,
        /// The namespace of what names none.
        namespace: String,
    },
}

/// The set and the objects that are wanted, before anything is known of their state.
struct Wanted {
    cluster: Cluster,
    opened: OpenedSet,
    desired: Desired,
    manifests: Vec<SavedManifest>,
}

/// Makes a plan that may be carried out. What a person at a terminal can confirm is
/// asked, and every other refusal is an error.
pub(super) async fn to_write(
    run: &mut Run,
    shared: &Shared,
    options: &ApplyOptions,
) -> Result<Prepared, Error> {
    let connection = connect(run, shared).await?;
    let mut wanted = want(run, connection, options, Input::Sources).await?;
    let mut losses = Losses::default();
    let mut take_over = options.take_over.confirmation();
    let (situation, policy, plan) = loop {
        let refusals = match observe_and_plan(&mut wanted, options, take_over).await {
            Err(Error::Refused(refusals)) => refusals,
            made => {
                let (situation, policy, mut plan) = made?;
                losses.lift(&mut plan);
                if plan.refusals.is_empty() {
                    break (situation, policy, plan);
                }
                plan.refusals
            }
        };
        // What a person confirms may have changed while they read: all is read again.
        if refusals.iter().all(Refusal::is_take_over) && options.take_over == TakeOver::Asked {
            run.confirm(refusals).await?;
            take_over = Confirmation::Given;
        } else if refusals.iter().all(Refusal::is_data_loss) {
            run.confirm(refusals.clone()).await?;
            losses.confirm(refusals);
        } else {
            return Err(Error::Refused(refusals));
        }
    };
    Ok(Prepared::new(run, wanted, options, situation, policy, plan))
}

/// Makes a plan to look at, which may have refusals: of a set that is another tool's, too,
/// since looking at it changes nothing.
///
/// # Errors
///
/// Where nobody can know what a run would do, such as a record that cannot be trusted.
pub(super) async fn to_show(
    run: &mut Run,
    connection: Connection,
    options: &ApplyOptions,
    input: Input,
) -> Result<Prepared, Error> {
    let mut wanted = want(run, connection, options, input).await?;
    let (mut situation, policy, mut plan) =
        observe_and_plan(&mut wanted, options, Confirmation::Given).await?;
    let asked = ParentPolicy {
        take_over: options.take_over.confirmation(),
    };
    if let Err(refusals) = plan::judge(&wanted.opened.set, situation.parent.as_ref(), asked) {
        plan.refusals.splice(..0, refusals);
    }
    // What may be looked at may not be written for that.
    situation.parent_policy = asked;
    Ok(Prepared::new(run, wanted, options, situation, policy, plan))
}

/// Sets up the connection of a run.
pub(super) async fn connect(run: &mut Run, shared: &Shared) -> Result<Connection, Error> {
    let connection = opening::connect(shared).await?;
    run.server = Some(connection.server.clone());
    Ok(connection)
}

async fn want(
    run: &mut Run,
    mut connection: Connection,
    options: &ApplyOptions,
    input: Input,
) -> Result<Wanted, Error> {
    let mut kept = Vec::new();
    let (mut cluster, manifests) = match input {
        Input::Sources => {
            opening::discover_with(
                connection,
                options.sources.clone(),
                options.recursion,
                run.waits(),
            )
            .await?
        }
        Input::Kept(salt) => {
            let (cluster, manifests) = opening::discover_with(
                connection,
                options.sources.clone(),
                options.recursion,
                run.waits(),
            )
            .await?;
            refuse_to_keep(&manifests)?;
            kept = manifests
                .iter()
                .map(|manifest| SavedManifest::new(manifest, &salt))
                .collect();
            (cluster, manifests)
        }
        Input::Saved { manifests, namespace } => {
            connection.namespace = namespace;
            let cluster = opening::discover(connection, run.waits()).await?;
            (opening::with_definitions(cluster, &manifests).await?, manifests)
        }
    };
    let opened = opening::open(&mut cluster, &options.set, options.tooling.clone(), &manifests).await?;
    run.set = SetDocument::from(&opened.set);
    let desired = desired::resolve(manifests, opened.target(&cluster))?;
    run.warn(&desired.warnings);
    Ok(Wanted {
        cluster,
        opened,
        desired,
        manifests: kept,
    })
}

/// Values of Secrets are not kept, but read from their files again; standard input and pipes
/// cannot be, and addresses may hold passwords.
fn refuse_to_keep(manifests: &[Manifest]) -> Result<(), Error> {
    match manifests.iter().find(|manifest| saved::is_lost(manifest)) {
        None => Ok(()),
        Some(manifest) => Err(Error::Usage {
            message: format!(
                "{}: a saved plan does not hold the values of secret/{}, and they cannot be read there again",
                manifest.position, manifest.name
            ),
            hint: "write the manifests into files with plain names, and give these to -f: apply --plan reads the Secrets there again"
                .to_owned(),
        }),
    }
}

/// Answers with the policy that the plan was made under, too.
async fn observe_and_plan(
    wanted: &mut Wanted,
    options: &ApplyOptions,
    take_over: Confirmation,
) -> Result<(Situation, Policy, Plan), Error> {
    let Wanted {
        cluster,
        opened,
        desired,
        ..
    } = wanted;
    let rules = Rules {
        policy: &options.policy,
        parent_policy: ParentPolicy { take_over },
        field_manager: &options.writing.field_manager,
        concurrency: options.writing.concurrency,
    };
    let situation = situation::read(cluster, opened, desired, rules).await?;
    let mut policy = options.policy.clone();
    if situation.former_tooling.is_some() {
        // Every member is taken from the former tool, changed or not.
        policy.unchanged = UnchangedMembers::Sent;
    }
    let plan = plan::plan(&opened.set, desired, &situation.observed, &policy);
    Ok((situation, policy, plan))
}

impl Prepared {
    fn new(
        run: &mut Run,
        wanted: Wanted,
        options: &ApplyOptions,
        situation: Situation,
        policy: Policy,
        plan: Plan,
    ) -> Self {
        run.warn(&situation.warnings);
        let writing = Writing {
            former_manager: situation
                .former_tooling
                .as_ref()
                .map(|tooling| member_field_manager(tooling).to_owned()),
            ..options.writing.clone()
        };
        let Wanted {
            cluster,
            opened,
            desired,
            manifests,
        } = wanted;
        Self {
            cluster,
            opened,
            desired,
            situation,
            policy,
            writing,
            plan,
            manifests,
        }
    }

    /// The plan with all that carrying it out needs.
    pub(super) fn execution<'a>(
        &'a self,
        approval: Option<&'a Approval>,
        interrupt: &'a Interrupt,
    ) -> Execution<'a> {
        Execution {
            server: &self.cluster.server,
            set: &self.opened.set,
            parent_resource: &self.opened.resource,
            parent: self.situation.parent.as_ref(),
            parent_policy: self.situation.parent_policy,
            places: &self.situation.places,
            namespaces: &self.situation.namespaces,
            desired: &self.desired,
            plan: &self.plan,
            policy: &self.policy,
            contents: &self.situation.observed.contents,
            writing: &self.writing,
            approval,
            interrupt,
        }
    }
}

impl OpenedSet {
    pub(super) fn target<'a>(&'a self, cluster: &'a Cluster) -> Target<'a> {
        Target {
            discovery: &cluster.discovery,
            parent: &self.set.parent,
            id: &self.set.id,
            namespace: &cluster.namespace,
        }
    }
}
