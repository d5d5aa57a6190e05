//! What a set goes through, by every contender side by side: it is applied, applied again
//! unchanged, one of its objects changes, a tenth of them is dropped.

use std::path::Path;

use super::{Place, check, measure, terms, warm_server};
use crate::Result;
use crate::contenders::{Contender, Contenders};
use crate::manifests::{Manifests, State};
use crate::options::Options;
use crate::process::Terms;
use crate::results::{Measurement, Step};
use crate::server::Server;

const STEPS: [(Step, State); 4] = [
    (Step::First, State::Full),
    (Step::Again, State::Full),
    (Step::Changed, State::Changed),
    (Step::Dropped, State::Dropped),
];

/// How often the two that are compared apply the set for the first time again in each round.
const REPETITIONS: usize = 4;

/// Measures these contenders, each round on a control plane of its own. Who was not waited
/// for to the end is measured no further.
pub(crate) async fn lifecycle(
    options: &Options,
    contenders: &Contenders,
    scratch: &Path,
) -> Result<Vec<Measurement>> {
    let manifests = Manifests::write(scratch, options.objects)?;
    let mut present = contenders.present.clone();
    let mut measurements: Vec<Measurement> = Vec::new();
    for round in 0..options.rounds {
        let server = warm_server(&present, scratch).await?;
        for contender in &present {
            let namespace = server.namespace("lifecycle").await?;
            let place = Place {
                server: &server,
                namespace: &namespace,
                contender,
                round,
                terms: terms(*contender, options),
            };
            measurements.extend(run(&place, &manifests, scratch).await?);
        }
        measurements.extend(first_again(&server, &present, round, &manifests, scratch).await?);
        let was_ended = |contender: &Contender| {
            let name = contender.to_string();
            measurements
                .iter()
                .any(|run| run.was_ended && run.contender == name)
        };
        present.retain(|contender| !was_ended(contender));
        // The two that are compared stay neighbors, and take turns at being first.
        present.swap(0, 1);
    }
    Ok(measurements)
}

/// Lets the two that are compared apply the set for the first time again, in both orders: what disturbs a run
/// takes a good part of its second, and a server is slower after the writes of a contender.
async fn first_again(
    server: &Server,
    present: &[Contender],
    round: usize,
    manifests: &Manifests,
    scratch: &Path,
) -> Result<Vec<Measurement>> {
    let mut compared: Vec<Contender> = present.iter().take(2).copied().collect();
    let mut measurements = Vec::new();
    for _ in 0..REPETITIONS {
        compared.reverse();
        for contender in &compared {
            let namespace = server.namespace("lifecycle-again").await?;
            let place = Place {
                server,
                namespace: &namespace,
                contender,
                round,
                terms: Terms::STRICT,
            };
            measurements.push(measure(&place, manifests, (Step::First, State::Full), scratch).await?);
            check(&place, manifests.objects.len()).await?;
        }
    }
    Ok(measurements)
}

async fn run(place: &Place<'_>, manifests: &Manifests, scratch: &Path) -> Result<Vec<Measurement>> {
    let mut measurements = Vec::new();
    for (step, state) in STEPS {
        // Without a tool there is nothing that knows what was dropped, and what is
        // changed is sent like the rest.
        if *place.contender == Contender::Raw && state != State::Full {
            continue;
        }
        let measurement = measure(place, manifests, (step, state), scratch).await?;
        let was_ended = measurement.was_ended;
        measurements.push(measurement);
        if was_ended {
            break;
        }
        check(place, state.size(manifests.objects.len())).await?;
    }
    Ok(measurements)
}
