//! The same set ten times smaller and ten times larger, applied and applied again.

use std::path::Path;

use super::{Place, check, measure, terms, warm_server};
use crate::Result;
use crate::contenders::Contender;
use crate::manifests::{Manifests, State};
use crate::options::Options;
use crate::results::{Measurement, Step};

/// How often this program applies the unchanged set in each round: it takes tenths of a second, as does what
/// disturbs it.
const OWN_RUNS: usize = 3;

/// The sizes that a set of so many objects is compared with, itself included.
pub(crate) fn sizes(objects: usize) -> [usize; 3] {
    [objects / 10, objects, objects * 10]
}

/// Measures all sizes on one control plane, so that they are read and written under the
/// same conditions. Only the two that goals compare are applied again in every round; the
/// other is too slow for that.
pub(crate) async fn growth(options: &Options, scratch: &Path) -> Result<Vec<Measurement>> {
    let server = warm_server(&[], scratch).await?;
    let mut sets = Vec::new();
    let mut measurements = Vec::new();
    for size in sizes(options.objects) {
        let manifests = Manifests::write(scratch, size)?;
        for contender in [Contender::Raw, Contender::Ours, Contender::KubectlServerSide] {
            if options.alone && !contender.is_judged() {
                continue;
            }
            let namespace = server.namespace("growth").await?;
            let place = Place {
                server: &server,
                namespace: &namespace,
                contender: &contender,
                round: 0,
                terms: terms(contender, options),
            };
            let measurement = measure(&place, &manifests, (Step::GrowthFirst, State::Full), scratch).await?;
            let was_ended = measurement.was_ended;
            measurements.push(measurement);
            if was_ended {
                continue;
            }
            check(&place, size).await?;
            sets.push((contender, namespace, size));
        }
    }
    for round in 0..options.rounds {
        for (contender, namespace, size) in &sets {
            if round > 0 && !contender.is_judged() {
                continue;
            }
            let manifests = Manifests::write(scratch, *size)?;
            let place = Place {
                server: &server,
                namespace,
                contender,
                round,
                terms: terms(*contender, options),
            };
            let runs = if *contender == Contender::Ours {
                OWN_RUNS
            } else {
                1
            };
            for _ in 0..runs {
                measurements
                    .push(measure(&place, &manifests, (Step::GrowthAgain, State::Full), scratch).await?);
            }
        }
    }
    Ok(measurements)
}
