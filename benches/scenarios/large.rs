//! Very many small objects: applied, applied again unchanged, and all but some of them pruned. What
//! grows faster than the set shows here.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{observe, observe_raw, warm_server};
use crate::contenders::{self, Contender};
use crate::manifests::documents;
use crate::options::Options;
use crate::process::Terms;
use crate::raw::Prepared;
use crate::results::{Measurement, Step};
use crate::server::Server;
use crate::{Result, say};

/// Objects of a file.
const OBJECTS_OF_A_FILE: usize = 100;

/// The sizes that are measured, the largest of which has a goal of its own.
pub(crate) fn large_sizes(objects: usize) -> [usize; 3] {
    [objects, objects * 10, objects * 50]
}

/// How often the unchanged set is applied in each round.
const UNCHANGED_RUNS: usize = 3;

/// Measures all sizes, each round on a control plane of its own. A server with more objects is slower, so
/// this program and raw take turns at being first.
pub(crate) async fn large(options: &Options, scratch: &Path) -> Result<Vec<Measurement>> {
    let mut measurements = Vec::new();
    for round in 0..options.rounds {
        let server = warm_server(&[], scratch).await?;
        for size in large_sizes(options.objects) {
            if round % 2 == 0 {
                measurements.extend(raw(&server, size, round).await?);
                measurements.extend(ours(&server, size, round, scratch).await?);
            } else {
                measurements.extend(ours(&server, size, round, scratch).await?);
                measurements.extend(raw(&server, size, round).await?);
            }
        }
    }
    Ok(measurements)
}

/// Applies a set of this size, applies it again, and prunes most of it.
async fn ours(server: &Server, size: usize, round: usize, scratch: &Path) -> Result<Vec<Measurement>> {
    let set = LargeSet::write(server, scratch, size).await?;
    let mut measurements = vec![set.measure(Step::LargeFirst, &set.all, round, scratch).await?];
    set.check(size).await?;
    for _ in 0..UNCHANGED_RUNS {
        measurements.push(set.measure(Step::LargeAgain, &set.all, round, scratch).await?);
    }
    measurements.push(set.measure(Step::LargePruned, &set.rest, round, scratch).await?);
    set.check(OBJECTS_OF_A_FILE).await?;
    Ok(measurements)
}

/// Applies and deletes the same objects without a tool, which shows what of the growth is the server's.
async fn raw(server: &Server, size: usize, round: usize) -> Result<Vec<Measurement>> {
    let namespace = server.namespace("large-raw").await?;
    let objects: Vec<Value> = (0..size).map(object).collect();
    let pruned = Prepared::deletes(&objects[OBJECTS_OF_A_FILE..], &namespace);
    let steps = [
        (Step::LargeFirst, Prepared::new(&objects, &namespace)),
        (Step::LargePruned, pruned),
    ];
    let mut measurements = Vec::new();
    for (step, prepared) in steps {
        let observed = observe_raw(server, &prepared).await?;
        let measurement = observed.measurement(step, Contender::Raw, size, round);
        say(&format!(
            "{size:>6} small objects, round {}, raw: {step:?} {:.3} s",
            round + 1,
            measurement.seconds
        ));
        measurements.push(measurement);
    }
    Ok(measurements)
}

struct LargeSet<'a> {
    server: &'a Server,
    namespace: String,
    size: usize,
    /// The directory of all objects.
    all: PathBuf,
    /// The directory of those that are not pruned.
    rest: PathBuf,
    /// Objects that the namespace has from the beginning.
    others: usize,
}

impl<'a> LargeSet<'a> {
    async fn write(server: &'a Server, scratch: &Path, size: usize) -> Result<Self> {
        let namespace = server.namespace("large").await?;
        let directory = scratch.join(format!("large-{size}"));
        let (all, rest) = (directory.join("all"), directory.join("rest"));
        fs::create_dir_all(&all)?;
        fs::create_dir_all(&rest)?;
        for file in 0..size / OBJECTS_OF_A_FILE {
            let numbers = file * OBJECTS_OF_A_FILE..(file + 1) * OBJECTS_OF_A_FILE;
            let objects: Vec<Value> = numbers.map(object).collect();
            let text = documents(&objects)?;
            fs::write(all.join(format!("{file:05}.yaml")), &text)?;
            if file == 0 {
                fs::write(rest.join("00000.yaml"), &text)?;
            }
        }
        let others = server.size_of(&collection(&namespace)).await?;
        Ok(Self {
            server,
            namespace,
            size,
            all,
            rest,
            others,
        })
    }

    async fn measure(
        &self,
        step: Step,
        directory: &Path,
        round: usize,
        scratch: &Path,
    ) -> Result<Measurement> {
        let mut command = contenders::ours(self.server, &self.namespace, directory);
        let observed = observe(self.server, &mut command, scratch, Terms::STRICT).await?;
        let measurement = observed.measurement(step, Contender::Ours, self.size, round);
        say(&format!(
            "{:>6} small objects, round {}: {step:?} {:.3} s",
            self.size,
            round + 1,
            measurement.seconds
        ));
        Ok(measurement)
    }

    async fn check(&self, expected: usize) -> Result<()> {
        let found = self.server.size_of(&collection(&self.namespace)).await?;
        // The server itself adds one to each namespace, some time after it was created.
        let found = found.saturating_sub(self.others);
        if (expected..=expected + 1).contains(&found) {
            return Ok(());
        }
        Err(format!(
            "{} has {found} ConfigMaps where the manifests have {expected}",
            self.namespace
        )
        .into())
    }
}

fn collection(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/configmaps")
}

/// A ConfigMap of about 300 bytes.
fn object(number: usize) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": format!("member-{number:06}"),
            "labels": {"app.kubernetes.io/name": "large", "app.kubernetes.io/version": "1.2.3"},
        },
        "data": {
            "level": "info",
            "number": number.to_string(),
            "url": format!("https://example.com/{number}"),
            "value": format!("{:064x}", number * 7919),
        },
    })
}
