//! What a set goes through, by every contender side by side: it is applied, applied again
//! unchanged, one of its objects changes, a tenth of them is dropped.

use std::path::Path;

use super::{Place, check, measure, warm_server};
use crate::Result;
use crate::contenders::Contender;
use crate::manifests::{Manifests, State};
use crate::options::Options;
use crate::results::{Measurement, Step};

const STEPS: [(Step, State); 4] = [
    (Step::First, State::Full),
    (Step::Again, State::Full),
    (Step::Changed, State::Changed),
    (Step::Dropped, State::Dropped),
];

/// Measures all contenders, each round on a control plane of its own.
pub(crate) async fn lifecycle(options: &Options, scratch: &Path) -> Result<Vec<Measurement>> {
    let manifests = Manifests::write(scratch, options.objects)?;
    let mut contenders = Contender::all(options)?;
    let mut measurements = Vec::new();
    for round in 0..options.rounds {
        let server = warm_server(scratch).await?;
        for contender in &contenders {
            let namespace = server.namespace("lifecycle").await?;
            let place = Place {
                server: &server,
                namespace: &namespace,
                contender,
                round,
            };
            measurements.extend(run(&place, &manifests, scratch).await?);
        }
        // The two that are compared stay neighbours, and take turns at being first.
        contenders.swap(0, 1);
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
        measurements.push(measure(place, manifests, (step, state), scratch).await?);
        check(place, state.size(manifests.objects.len())).await?;
    }
    Ok(measurements)
}
