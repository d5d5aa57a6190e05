//! A slow network: a set is applied, applied again, viewed and listed over links with latency.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::{REST, requests_of, terms, warm_server};
use crate::contenders::{Contender, Contenders, PROGRAM, in_both_orders};
use crate::link::Link;
use crate::manifests::{Manifests, State};
use crate::options::Options;
use crate::process::{self, Finished, Terms};
use crate::raw::Prepared;
use crate::results::{LinkRun, LinkStep};
use crate::server::Server;
use crate::{Result, say};

/// Objects of the set.
pub(crate) const OBJECTS: usize = 300;
/// Objects of a small set.
pub(crate) const FEW_OBJECTS: usize = 10;
/// The round trip in milliseconds from which a run takes seconds.
const LONG: u64 = 50;

/// A link, and who uses it.
struct Way<'a> {
    server: &'a Server,
    link: &'a Link,
    milliseconds: u64,
    round: usize,
    scratch: &'a Path,
}

/// Measures all contenders over each link. Who was not waited for to the end over one link is not
/// measured over longer ones.
pub(crate) async fn link(options: &Options, contenders: &Contenders, scratch: &Path) -> Result<Vec<LinkRun>> {
    let manifests = Manifests::write(scratch, OBJECTS)?;
    let few = Manifests::write(scratch, FEW_OBJECTS)?;
    let mut runs: Vec<LinkRun> = Vec::new();
    let mut present = contenders.present.clone();
    for round in 0..options.rounds {
        let server = warm_server(&present, scratch).await?;
        for milliseconds in &options.latency {
            let link = Link::open(&server, Duration::from_millis(*milliseconds), scratch).await?;
            let way = Way {
                server: &server,
                link: &link,
                milliseconds: *milliseconds,
                round,
                scratch,
            };
            for contender in &present {
                runs.extend(way.apply_twice(contender, &manifests, options).await?);
            }
            for contender in in_both_orders(&present, way.repetitions()) {
                runs.extend(way.apply_twice(&contender, &manifests, options).await?);
            }
            runs.extend(way.others(&manifests, &few).await?);
            present.retain(|contender| {
                let name = contender.to_string();
                !runs.iter().any(|run| run.was_ended && run.contender == name)
            });
        }
        // The two that are compared also take turns at being first.
        present.swap(0, 1);
    }
    Ok(runs)
}

impl Way<'_> {
    /// How often the two that are compared run again in a round. What disturbs a run takes a tenth of a
    /// second, which is much of a run over a short link.
    fn repetitions(&self) -> usize {
        if self.milliseconds < LONG { 5 } else { 1 }
    }

    async fn apply_twice(
        &self,
        contender: &Contender,
        manifests: &Manifests,
        options: &Options,
    ) -> Result<Vec<LinkRun>> {
        let namespace = self.server.namespace("link").await?;
        let mut runs = Vec::new();
        for step in [LinkStep::First, LinkStep::Again] {
            let run = match contender.command(self.server, &namespace, manifests, State::Full)? {
                Some(mut command) => {
                    self.run(&mut command, (step, contender), terms(*contender, options))
                        .await?
                }
                None => self.raw(manifests, &namespace, step).await?,
            };
            let was_ended = run.was_ended;
            runs.push(run);
            if was_ended {
                break;
            }
        }
        Ok(runs)
    }

    /// The same set with a ConfigMap as its parent, what only looks at it, and a small set; ours alone.
    async fn others(&self, manifests: &Manifests, few: &Manifests) -> Result<Vec<LinkRun>> {
        let namespace = self.server.namespace("link-others").await?;
        let namespace_of_few = self.server.namespace("link-few").await?;
        let mut runs = Vec::new();
        for step in [
            LinkStep::FirstOfConfigMap,
            LinkStep::AgainOfConfigMap,
            LinkStep::View,
            LinkStep::List,
            LinkStep::Pruned,
            LinkStep::FirstOfTen,
        ] {
            let mut command = Command::new(PROGRAM);
            command.env("HOME", self.server.control_plane.data_dir().join("home"));
            let (set, directory) = match step {
                LinkStep::FirstOfTen => ("few", few.directory(State::Full)),
                LinkStep::Pruned => ("cm/bench", manifests.directory(State::Dropped)),
                _ => ("cm/bench", manifests.directory(State::Full)),
            };
            match step {
                LinkStep::View => _ = command.args(["view", set]),
                LinkStep::List => _ = command.arg("list"),
                _ => _ = command.args(["apply", set, "-f"]).arg(&directory),
            }
            let namespace = match step {
                LinkStep::FirstOfTen => &namespace_of_few,
                _ => &namespace,
            };
            command.args(["-o", "json", "-n", namespace]);
            let key = (step, &Contender::Ours);
            runs.push(self.run(&mut command, key, Terms::STRICT).await?);
        }
        Ok(runs)
    }

    async fn run(
        &self,
        command: &mut Command,
        (step, contender): (LinkStep, &Contender),
        terms: Terms,
    ) -> Result<LinkRun> {
        command.env("KUBECONFIG", &self.link.kubeconfig);
        tokio::time::sleep(REST).await;
        self.link.reset();
        let finished = process::run(command, self.scratch, terms)?;
        let requests = requests_of(&finished);
        Ok(self.measured((step, contender), &finished, requests))
    }

    async fn raw(&self, manifests: &Manifests, namespace: &str, step: LinkStep) -> Result<LinkRun> {
        let prepared = Prepared::new(&manifests.objects, namespace);
        tokio::time::sleep(REST).await;
        self.link.reset();
        let finished = Finished {
            seconds: prepared.send(&self.link.address).await?,
            was_ended: false,
            processor: None,
            peak_memory: None,
            output: String::new(),
            messages: String::new(),
        };
        let requests = u64::try_from(prepared.len())?;
        Ok(self.measured((step, &Contender::Raw), &finished, Some(requests)))
    }

    fn measured(
        &self,
        (step, contender): (LinkStep, &Contender),
        finished: &Finished,
        requests: Option<u64>,
    ) -> LinkRun {
        let trips = self.link.round_trips();
        say(&format!(
            "{:>4} ms, round {}: {contender:<22} {:<19} {:7.3} s, {trips} round trips{}",
            self.milliseconds,
            self.round + 1,
            step.name(),
            finished.seconds,
            if finished.was_ended {
                ", and not waited for longer"
            } else {
                ""
            },
        ));
        // Without latency, nothing separates a round trip from the next. Raw opens its connections one after
        // the other, before the clock starts.
        let is_exact = self.milliseconds > 0 && *contender != Contender::Raw;
        LinkRun {
            milliseconds: self.milliseconds,
            step,
            contender: contender.to_string(),
            round: self.round,
            seconds: finished.seconds,
            was_ended: finished.was_ended,
            requests,
            round_trips: is_exact.then_some(trips),
        }
    }
}
