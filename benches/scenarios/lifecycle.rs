//! What a set goes through, by every contender side by side: it is applied, applied again
//! unchanged, one of its objects changes, a tenth of them is dropped.

use std::path::Path;

use super::{Place, check, measure, terms, warm_server};
use crate::Result;
use crate::contenders::{Contender, Contenders, in_both_orders};
use crate::manifests::{Manifests, State};
use crate::options::Options;
use crate::results::{Measurement, Step};

const STEPS: [(Step, State); 4] = [
    (Step::First, State::Full),
    (Step::Again, State::Full),
    (Step::Changed, State::Changed),
    (Step::Dropped, State::Dropped),
];

/// How often the two that are compared apply the set for the first time again in each round: what disturbs a
/// run takes a good part of its second.
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
        let all = present.iter().map(|contender| (*contender, &STEPS[..]));
        let again = in_both_orders(&present, REPETITIONS).map(|contender| (contender, &STEPS[..1]));
        for (contender, steps) in all.chain(again) {
            let namespace = server.namespace("lifecycle").await?;
            let place = Place {
                server: &server,
                namespace: &namespace,
                contender: &contender,
                round,
                terms: terms(contender, options),
            };
            measurements.extend(run(&place, steps, &manifests, scratch).await?);
        }
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

async fn run(
    place: &Place<'_>,
    steps: &[(Step, State)],
    manifests: &Manifests,
    scratch: &Path,
) -> Result<Vec<Measurement>> {
    let mut measurements = Vec::new();
    for &(step, state) in steps {
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
