//! The steps of a command that writes: it plans, asks, writes and reports.

use super::command_run::CommandRun;
use crate::error::Error;
use crate::event::Ending;
use crate::manifest::Source;

impl CommandRun {
    /// Plans and writes. If another run has begun between the two, this one plans again, unless it has read one of
    /// `sources` that cannot be read twice.
    ///
    /// `plan` reads, plans and asks; `None` means that there is nothing to do. It gets the plan that could not be
    /// carried out, if there was one. Until it is done nothing is written, so an interrupt ends it at once.
    pub async fn plan_and_write<P>(
        &mut self,
        sources: &[Source],
        mut plan: impl AsyncFnMut(&mut Self, Option<P>) -> Result<Option<P>, Error>,
        mut write: impl AsyncFnMut(&mut Self, &mut P) -> Result<Ending, Error>,
    ) -> Result<Ending, Error> {
        let interrupt = self.interrupt.clone();
        let mut outdated = None;
        loop {
            let planned = tokio::select! {
                biased;
                () = interrupt.requested() => return Ok(Ending::Interrupted),
                planned = plan(self, outdated.take()) => planned,
            };
            let Some(prepared) = planned? else {
                return Ok(Ending::Done);
            };
            match write(self, outdated.insert(prepared)).await {
                Err(error) if self.plans_again(&error, sources) => {}
                outcome => return outcome,
            }
        }
    }
}
