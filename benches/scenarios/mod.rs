//! What is measured, a file for each scenario; here is how one run is.

mod growth;
mod lifecycle;
mod real;
mod spread;
mod startup;

pub(crate) use growth::{growth, sizes};
pub(crate) use lifecycle::lifecycle;
pub(crate) use real::real;
pub(crate) use spread::{NAMESPACES, spread};
pub(crate) use startup::startup;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::contenders::Contender;
use crate::manifests::{Manifests, State};
use crate::process::{self, Finished};
use crate::raw::Prepared;
use crate::results::{Measurement, Requests, Step};
use crate::server::{Counts, Server, since};
use crate::{Result, tell};

/// Objects that a new control plane is warmed up with.
const WARM_UP: usize = 200;

/// Between two runs, so that the server has come to rest from the first.
const REST: Duration = Duration::from_millis(500);

/// Where a run happens: who, on which server, in which namespace, for which time.
struct Place<'a> {
    server: &'a Server,
    namespace: &'a str,
    contender: &'a Contender,
    round: usize,
}

/// Starts a control plane, and lets it serve some requests that are not measured.
async fn warm_server(scratch: &Path) -> Result<Server> {
    let server = Server::start().await?;
    let namespace = server.namespace("warm-up").await?;
    let manifests = Manifests::write(scratch, WARM_UP)?;
    Prepared::new(&manifests.objects, &namespace)
        .send(&server.address)
        .await?;
    // kubectl keeps what it learned of the server for hours.
    process::run(
        server.control_plane.kubectl_command().arg("api-resources"),
        scratch,
    )?;
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
    } = *place;
    let objects = manifests.objects.len();
    let (seconds, peak_memory, requests) =
        if let Some(mut command) = contender.command(server, namespace, manifests, state) {
            let (finished, requests, _) = observe(server, &mut command, scratch).await?;
            (finished.seconds, finished.peak_memory, requests)
        } else {
            let (seconds, requests) = measure_raw(server, &manifests.objects, namespace).await?;
            (seconds, None, requests)
        };
    tell(&format!(
        "{objects:>6} objects, round {}: {contender:<22} {:<11} {seconds:7.3} s",
        round + 1,
        format!("{step:?}").to_lowercase(),
    ));
    Ok(Measurement {
        step,
        contender: contender.to_string(),
        objects,
        round,
        seconds,
        requests,
        peak_memory,
    })
}

/// Runs a command while the server counts.
async fn observe(
    server: &Server,
    command: &mut Command,
    scratch: &Path,
) -> Result<(Finished, Requests, Counts)> {
    tokio::time::sleep(REST).await;
    let before = server.counts().await?;
    let finished = process::run(command, scratch)?;
    let counts = since(&before, &server.counts().await?);
    let requests = Requests {
        by_client: report_of(&finished)["requests"].as_u64(),
        by_server: counts.values().sum(),
    };
    Ok((finished, requests, counts))
}

/// Sends everything without a tool while the server counts.
async fn measure_raw(server: &Server, objects: &[Value], namespace: &str) -> Result<(f64, Requests)> {
    let prepared = Prepared::new(objects, namespace);
    tokio::time::sleep(REST).await;
    let before = server.counts().await?;
    let seconds = prepared.send(&server.address).await?;
    let counts = since(&before, &server.counts().await?);
    let requests = Requests {
        by_client: Some(u64::try_from(prepared.len())?),
        by_server: counts.values().sum(),
    };
    Ok((seconds, requests))
}

/// The document that our program prints; null for what others print.
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
