//! The steps of all commands that write: read, plan, ask, write, report.

use super::command_run::{Agreed, CommandRun};
use super::other_runs::OtherRuns;
use crate::error::Error;
use crate::event::Ending;
use crate::model::set::ParentObject;
use crate::model::write_settings::{Exclusive, WriteSettings};
use crate::plan::{Consent, Proposal};
use crate::read::NamedSet;
use crate::report::PlanOutline;

/// The steps of a command that writes.
pub trait Script {
    /// The result of reading and deciding.
    type Planned;

    /// Reads and plans; `None` if there is nothing to do. An outdated plan shows what need not be read again.
    async fn plan(
        &mut self,
        run: &mut CommandRun,
        outdated: Option<Self::Planned>,
    ) -> Result<Option<Self::Planned>, Error>;

    /// Returns the sets that are written, with their parents as they were read.
    fn sets<'p>(&self, planned: &'p Self::Planned) -> Vec<(&'p NamedSet, Option<&'p ParentObject>)>;

    /// Returns what the user has to agree to.
    fn proposal(&self, planned: &Self::Planned) -> Proposal;

    /// Returns the part of the plan that a question shows.
    fn outline(&self, planned: &Self::Planned) -> PlanOutline;

    /// Reports what belongs to a plan that is carried out, and refuses one that the user has no permission to finish.
    async fn check(&mut self, run: &mut CommandRun, planned: &mut Self::Planned) -> Result<(), Error>;

    /// Carries the plan out.
    async fn write(&mut self, run: &mut CommandRun, planned: &mut Self::Planned) -> Result<Ending, Error>;
}

/// The consent that a user has given to a command beforehand.
#[derive(Debug, Clone)]
pub struct Allowed {
    /// The plans to which the user agrees.
    consent: Consent,
    /// Treatment of other runs of the set that are under way.
    exclusive: Exclusive,
}

impl Allowed {
    /// Reads what these options allow.
    pub fn new(consent: &Consent, writing: &WriteSettings) -> Self {
        Self {
            consent: consent.clone(),
            exclusive: writing.exclusive,
        }
    }
}

impl CommandRun {
    /// Plans and writes. If another run has begun between the two, this one plans again. Until a plan is made nothing
    /// is written, so an interrupt ends it at once.
    pub async fn plan_and_write<S: Script>(
        &mut self,
        script: &mut S,
        mut allowed: Allowed,
    ) -> Result<Ending, Error> {
        let interrupt = self.interrupt.clone();
        let mut outdated = None;
        loop {
            let planned = tokio::select! {
                biased;
                () = interrupt.requested() => return Ok(Ending::Interrupted),
                planned = self.plan_and_agree(script, &mut allowed, outdated.take()) => planned,
            };
            let Some(mut planned) = planned? else {
                return Ok(Ending::Done);
            };
            match script.write(self, &mut planned).await {
                Err(error) if self.plans_again(&error) => outdated = Some(planned),
                outcome => return outcome,
            }
        }
    }

    /// Plans until no other run is in the way and the user agrees to the plan.
    async fn plan_and_agree<S: Script>(
        &mut self,
        script: &mut S,
        allowed: &mut Allowed,
        mut outdated: Option<S::Planned>,
    ) -> Result<Option<S::Planned>, Error> {
        loop {
            let Some(mut planned) = script.plan(self, outdated.take()).await? else {
                return Ok(None);
            };
            let mut others = OtherRuns::None;
            for (named, parent) in script.sets(&planned) {
                if others == OtherRuns::None {
                    others = self.await_other_runs(named, parent, allowed.exclusive).await?;
                }
            }
            if others == OtherRuns::None {
                let proposal = script.proposal(&planned);
                let agreed = self.agree(&mut allowed.consent, proposal, || script.outline(&planned));
                if agreed.await? == Agreed::Before {
                    script.check(self, &mut planned).await?;
                    return Ok(Some(planned));
                }
            }
            outdated = Some(planned);
        }
    }
}
