//! What is measured, a file for each scenario; here is how one run is.

mod busy;
mod growth;
mod large;
mod lifecycle;
mod link;
mod real;
mod spread;
mod startup;
mod wide;

pub(crate) use busy::{NO_OTHER_LOAD, OBJECTS as OBJECTS_OF_BUSY, busy};
pub(crate) use growth::{growth, sizes};
pub(crate) use large::{large, large_sizes};
pub(crate) use lifecycle::lifecycle;
pub(crate) use link::{OBJECTS as OBJECTS_OF_LINKS, link};
pub(crate) use real::real;
pub(crate) use spread::{NAMESPACES, spread};
pub(crate) use startup::startup;
pub(crate) use wide::{CUSTOM_KINDS, RECORDED_NAMESPACES, WIDE_KINDS, custom_kinds, record, wide};

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::contenders::{self, Contender};
use crate::manifests::{Manifests, State};
use crate::options::Options;
use crate::process::{self, Finished, Terms};
use crate::raw::Prepared;
use crate::results::{Measurement, Processor, Requests, Step};
use crate::server::{Counts, Server, since};
use crate::{Result, say};

/// Objects that raw applies to a new control plane to warm it up.
const WARM_UP: usize = 200;
/// Objects that each contender then applies to it: a server takes longer when it is asked for something for
/// the first time.
const FIRST_TIME: usize = 20;

/// Between two runs, so that the server has come to rest from the first.
const REST: Duration = Duration::from_millis(500);

/// Where a run happens: who, on which server, in which namespace, for which time.
struct Place<'a> {
    server: &'a Server,
    namespace: &'a str,
    contender: &'a Contender,
    round: usize,
    terms: Terms,
}

/// What is asked of a contender; only other tools are ended after a time.
fn terms(contender: Contender, options: &Options) -> Terms {
    Terms {
        patience: (!contender.is_judged()).then_some(Duration::from_secs(options.patience)),
        accepts: contender.accepts(),
    }
}

/// Starts a control plane for these contenders, and lets it serve some requests that are not measured.
async fn warm_server(present: &[Contender], scratch: &Path) -> Result<Server> {
    let server = Server::start().await?;
    contenders::install(present, &server)?;
    let namespace = server.namespace("warm-up").await?;
    let manifests = Manifests::write(scratch, WARM_UP)?;
    Prepared::new(&manifests.objects, &namespace)
        .send(&server.address)
        .await?;
    // kubectl keeps what it learned of the server for hours.
    process::run(
        server.control_plane.kubectl_command().arg("api-resources"),
        scratch,
        Terms::STRICT,
    )?;
    let manifests = Manifests::write(scratch, FIRST_TIME)?;
    for contender in [Contender::Ours].iter().chain(present) {
        let namespace = server.namespace("first-time").await?;
        if let Some(mut command) = contender.command(&server, &namespace, &manifests, State::Full)? {
            let terms = Terms {
                accepts: |_| true,
                ..Terms::STRICT
            };
            process::run(&mut command, scratch, terms)?;
        }
    }
    Ok(server)
}

/// Lets the contender do the step, and counts the requests at both ends.
async fn measure(
    place: &Place<'_>,
    manifests: &Manifests,
    (step, state): (Step, State),
    scratch: &Path,
) -> Result<Measurement> {
    let Place {
        server,
        namespace,
        contender,
        round,
        ..
    } = *place;
    let objects = manifests.objects.len();
    let observed = match contender.command(server, namespace, manifests, state)? {
        Some(mut command) => observe(server, &mut command, scratch, place.terms).await?,
        None => observe_raw(server, &Prepared::new(&manifests.objects, namespace)).await?,
    };
    say(&format!(
        "{objects:>6} objects, round {}: {contender:<22} {:<11} {:7.3} s{}",
        round + 1,
        format!("{step:?}").to_lowercase(),
        observed.finished.seconds,
        if observed.finished.was_ended {
            ", and not waited for longer"
        } else {
            ""
        },
    ));
    Ok(observed.measurement(step, *contender, objects, round))
}

/// A run, and what the server had to do for it.
struct Observed {
    finished: Finished,
    requests: Requests,
    counts: Counts,
    processor: Processor,
}

impl Observed {
    fn measurement(&self, step: Step, contender: Contender, objects: usize, round: usize) -> Measurement {
        Measurement {
            step,
            contender: contender.to_string(),
            objects,
            round,
            seconds: self.finished.seconds,
            was_ended: self.finished.was_ended,
            processor: self.processor,
            requests: self.requests,
            peak_memory: self.finished.peak_memory,
        }
    }
}

/// What a server had done before something was observed.
struct Before {
    counts: Counts,
    processor: Option<f64>,
}

impl Before {
    async fn of(server: &Server) -> Result<Self> {
        tokio::time::sleep(REST).await;
        Ok(Self {
            counts: server.counts().await?,
            processor: server.processor_time(),
        })
    }

    /// What it has done since, for a client that says how many requests it sent.
    async fn observed(self, server: &Server, finished: Finished, by_client: Option<u64>) -> Result<Observed> {
        let after = server.processor_time();
        let counts = since(&self.counts, &server.counts().await?);
        Ok(Observed {
            requests: Requests {
                by_client,
                by_server: counts.values().sum(),
            },
            processor: Processor {
                client: finished.processor,
                server: after.zip(self.processor).map(|(after, before)| after - before),
            },
            finished,
            counts,
        })
    }
}

/// Runs a command while the server counts.
async fn observe(server: &Server, command: &mut Command, scratch: &Path, terms: Terms) -> Result<Observed> {
    let before = Before::of(server).await?;
    let finished = process::run(command, scratch, terms)?;
    let by_client = requests_of(&finished);
    before.observed(server, finished, by_client).await
}

/// Sends everything without a tool while the server counts.
async fn observe_raw(server: &Server, prepared: &Prepared) -> Result<Observed> {
    let before = Before::of(server).await?;
    let own = process::own_processor_time();
    let seconds = prepared.send(&server.address).await?;
    let finished = Finished {
        seconds,
        was_ended: false,
        processor: process::own_processor_time()
            .zip(own)
            .map(|(after, before)| after - before),
        peak_memory: None,
        output: String::new(),
        messages: String::new(),
    };
    let by_client = Some(u64::try_from(prepared.len())?);
    before.observed(server, finished, by_client).await
}

/// How many requests our program says that it sent, in its document or in its last message:
/// `2 created (9 requests, 0.1 s)`. `None` for what others print.
pub(crate) fn requests_of(finished: &Finished) -> Option<u64> {
    if let Some(requests) = report_of(finished)["requests"].as_u64() {
        return Some(requests);
    }
    let (_, cost) = finished.messages.lines().last()?.rsplit_once(" (")?;
    let (requests, _) = cost.split_once(" requests, ")?;
    requests.parse().ok()
}

/// The document that our program prints with `-o json`; null for anything else.
fn report_of(finished: &Finished) -> Value {
    serde_json::from_str(&finished.output).unwrap_or_default()
}

/// A tool that is fast because it does not do its work has won nothing. Deployments
/// stand for all kinds: no tool makes any of its own.
async fn check(place: &Place<'_>, applied: usize) -> Result<()> {
    let collection = format!("/apis/apps/v1/namespaces/{}/deployments", place.namespace);
    let found = place.server.size_of(&collection).await?;
    let expected = applied / 10 * 3;
    if found == expected {
        return Ok(());
    }
    Err(format!(
        "{} left {found} Deployments in {} where the manifests have {expected}",
        place.contender, place.namespace
    )
    .into())
}
