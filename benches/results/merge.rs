//! Merges what several runs of the bench have measured.

use super::{BusyRun, LinkRun, Measurement, Results};
use crate::Result;

impl Results {
    /// Adds what other runs on the same machine have measured, each as further rounds.
    pub(crate) fn merge(mut self, others: impl IntoIterator<Item = Self>) -> Result<Self> {
        for other in others {
            self.add(other)?;
        }
        Ok(self)
    }

    fn add(&mut self, other: Self) -> Result<()> {
        if self.objects != other.objects || self.machine.place() != other.machine.place() {
            return Err("runs of different sizes, machines or Kubernetes releases cannot be merged".into());
        }
        for entrant in other.contenders {
            match self.contenders.iter().find(|known| known.name == entrant.name) {
                None => self.contenders.push(entrant),
                Some(known) if *known == entrant => {}
                Some(_) => {
                    return Err(
                        format!("runs of different versions of {} cannot be merged", entrant.name).into(),
                    );
                }
            }
        }
        let offset = self.next_round();
        self.measurements
            .extend(other.measurements.into_iter().map(|run| Measurement {
                round: run.round + offset,
                ..run
            }));
        self.links.extend(other.links.into_iter().map(|run| LinkRun {
            round: run.round + offset,
            ..run
        }));
        self.busy.extend(other.busy.into_iter().map(|run| BusyRun {
            round: run.round + offset,
            ..run
        }));
        self.rounds += other.rounds;
        self.missing.retain(|name| other.missing.contains(name));
        self.commands.extend(other.commands);
        self.machine.date = self.machine.date.take().max(other.machine.date);
        self.machine.load_before = self
            .machine
            .load_before
            .into_iter()
            .chain(other.machine.load_before)
            .reduce(f64::max);
        self.real = other.real.or(self.real.take());
        self.startup = other.startup.or(self.startup.take());
        Ok(())
    }

    fn next_round(&self) -> usize {
        let measured = self.measurements.iter().map(|run| run.round);
        let links = self.links.iter().map(|run| run.round);
        let busy = self.busy.iter().map(|run| run.round);
        measured
            .chain(links)
            .chain(busy)
            .max()
            .map_or(0, |round| round + 1)
    }
}
