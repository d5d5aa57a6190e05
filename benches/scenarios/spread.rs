//! Twenty kinds in fifty namespaces: what costs a request per kind, per namespace, or per
//! kind and namespace shows here.

use std::fs;
use std::path::Path;

use super::{observe, observe_raw, warm_server};
use crate::Result;
use crate::contenders::{Contender, ours};
use crate::kinds::one_of_each;
use crate::manifests::documents;
use crate::options::Options;
use crate::process::Terms;
use crate::raw::Prepared;
use crate::results::{Measurement, Step};

/// Namespaces; each has one object of each of the twenty kinds.
pub(crate) const NAMESPACES: usize = 50;

/// Measures ours, and raw beside it: the other tools keep a set to one namespace, or
/// cannot prune there.
pub(crate) async fn spread(options: &Options, scratch: &Path) -> Result<Vec<Measurement>> {
    let server = warm_server(&[], scratch).await?;
    let directory = scratch.join("spread");
    fs::create_dir_all(&directory)?;
    let mut namespaces = Vec::new();
    let mut objects = Vec::new();
    let mut objects_of_raw = Vec::new();
    for _ in 0..NAMESPACES {
        let namespace = server.namespace("spread").await?;
        let wide = one_of_each(&namespace);
        fs::write(directory.join(format!("{namespace}.yaml")), documents(&wide)?)?;
        objects.extend(wide);
        objects_of_raw.extend(one_of_each(&server.namespace("spread-raw").await?));
        namespaces.push(namespace);
    }
    let mut measurements = Vec::new();
    for round in 0..=options.rounds {
        // The first time is another step, and the rounds count from the second.
        let (step, round) = match round.checked_sub(1) {
            None => (Step::SpreadFirst, 0),
            Some(round) => (Step::SpreadAgain, round),
        };
        let raw = observe_raw(&server, &Prepared::new(&objects_of_raw, "")).await?;
        measurements.push(raw.measurement(step, Contender::Raw, objects.len(), round));
        let mut command = ours(&server, &namespaces[0], &directory);
        let observed = observe(&server, &mut command, scratch, Terms::STRICT).await?;
        measurements.push(observed.measurement(step, Contender::Ours, objects.len(), round));
    }
    Ok(measurements)
}
