//! The steps of all commands that write: read, plan, ask, write, report.

use std::sync::Arc;

use super::command_run::{Agreed, CommandRun};
use super::other_runs::OtherRuns;
use crate::error::Error;
use crate::event::Ending;
use crate::model::identity::ObjectKey;
use crate::model::resource::Resource;
use crate::model::set::ParentObject;
use crate::model::write_settings::Exclusive;
use crate::plan::{Consent, Proposal};
use crate::report::PlanOutline;

/// A set that a plan writes.
pub struct SetToWrite<'a> {
    /// The key of its parent.
    pub key: &'a ObjectKey,
    /// The resource of its parent.
    pub resource: &'a Arc<Resource>,
    /// Its parent as the plan saw it; `None` if it did not exist.
    pub parent: Option<&'a ParentObject>,
}

/// The steps of a command that writes, for [`CommandRun::plan_and_write`].
pub trait Script {
    /// A plan, with the state of the cluster from which it was made.
    type Planned;

    /// Reads and plans; `None` if there is nothing to do. If an earlier plan is outdated, it is passed as `outdated`,
    /// so that what cannot have changed, such as the manifests, is not read again.
    async fn read_and_plan(
        &mut self,
        run: &mut CommandRun,
        outdated: Option<Self::Planned>,
    ) -> Result<Option<Self::Planned>, Error>;

    /// Returns the sets that the plan writes.
    fn sets<'p>(&'p self, planned: &'p Self::Planned) -> Vec<SetToWrite<'p>>;

    /// Returns what the user has to agree to before the plan is executed.
    fn proposal(&self, planned: &Self::Planned) -> Proposal;

    /// Returns the part of the plan that a question shows.
    fn outline(&self, planned: &Self::Planned) -> PlanOutline;

    /// Reports the notes and warnings of a plan to which the user has agreed. Fails if the user lacks a permission that
    /// the plan needs.
    async fn report_and_check_permissions(
        &mut self,
        run: &mut CommandRun,
        planned: &mut Self::Planned,
    ) -> Result<(), Error>;

    /// Executes the plan.
    async fn execute(&mut self, run: &mut CommandRun, planned: &mut Self::Planned) -> Result<Ending, Error>;
}

impl CommandRun {
    /// Plans and writes. `consent` is what the flags of the command allow, and `exclusive` whether it waits for other runs
    /// of the set. If a run with `--exclusive` finds before its first write that another run has begun since the
    /// plan, it plans again. Before the first write, an interrupt ends the run at once, since nothing has to be
    /// finished.
    pub async fn plan_and_write<S: Script>(
        &mut self,
        script: &mut S,
        consent: &Consent,
        exclusive: Exclusive,
    ) -> Result<Ending, Error> {
        let interrupt = self.interrupt.clone();
        // An answer to a question extends it.
        let mut consent = consent.clone();
        let mut outdated = None;
        loop {
            let planned = tokio::select! {
                biased;
                () = interrupt.wait_until_requested() => return Ok(Ending::Interrupted),
                planned = self.plan_and_agree(script, &mut consent, exclusive, outdated.take()) => planned,
            };
            let Some(mut planned) = planned? else {
                return Ok(Ending::Done);
            };
            match script.execute(self, &mut planned).await {
                Err(error) if self.should_replan_after(&error) => outdated = Some(planned),
                outcome => return outcome,
            }
        }
    }

    /// Plans until no other run is in the way and the user agrees to the plan.
    async fn plan_and_agree<S: Script>(
        &mut self,
        script: &mut S,
        consent: &mut Consent,
        exclusive: Exclusive,
        mut outdated: Option<S::Planned>,
    ) -> Result<Option<S::Planned>, Error> {
        loop {
            let Some(mut planned) = script.read_and_plan(self, outdated.take()).await? else {
                return Ok(None);
            };
            let mut other_runs = OtherRuns::NotAwaited;
            for set in script.sets(&planned) {
                // After a wait, the plan is outdated anyway, and the next round looks at the parents of all sets again.
                if other_runs == OtherRuns::NotAwaited {
                    other_runs = self.report_or_await_other_runs(set, exclusive).await?;
                }
            }
            if other_runs == OtherRuns::NotAwaited {
                let proposal = script.proposal(&planned);
                let agreed = self.ensure_agreement(consent, proposal, || script.outline(&planned));
                if agreed.await? == Agreed::WithoutQuestion {
                    script.report_and_check_permissions(self, &mut planned).await?;
                    return Ok(Some(planned));
                }
            }
            outdated = Some(planned);
        }
    }
}
