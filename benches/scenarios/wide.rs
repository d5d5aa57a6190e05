//! Sets of many kinds and namespaces: 200 custom kinds, 300 kinds in 200 namespaces, and a record
//! near the 256 KiB that annotations of one object may have.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::{observe, warm_server};
use crate::contenders::{Contender, ours};
use crate::kinds::one_of_each;
use crate::manifests::documents;
use crate::options::Options;
use crate::process::Terms;
use crate::raw::Prepared;
use crate::results::{Measurement, Step};
use crate::server::Server;
use crate::{Result, say};

/// Kinds of the set of custom kinds, and the objects of each.
pub(crate) const CUSTOM_KINDS: usize = 200;
const OBJECTS_OF_A_KIND: usize = 5;

/// Kinds of the wide set: twenty of Kubernetes, the definitions, and custom ones.
pub(crate) const WIDE_KINDS: usize = 300;
const WIDE_NAMESPACES: usize = 200;
/// Namespaces that have an object of a kind.
const NAMESPACES_OF_A_KIND: usize = 10;

/// Namespaces whose names, as long as they may be, fill a record.
pub(crate) const RECORDED_NAMESPACES: usize = 4000;
const LONGEST_NAME: usize = 63;

/// A set of custom kinds with their definitions.
pub(crate) async fn custom_kinds(options: &Options, scratch: &Path) -> Result<Vec<Measurement>> {
    let server = warm_server(&[], scratch).await?;
    let namespace = server.namespace("kinds").await?;
    let mut objects: Vec<Value> = (0..CUSTOM_KINDS).map(definition).collect();
    for kind in 0..CUSTOM_KINDS {
        objects.extend((0..OBJECTS_OF_A_KIND).map(|number| custom(kind, number, &namespace)));
    }
    let steps = (Step::KindsFirst, Step::KindsAgain);
    twice(
        options,
        &server,
        &namespace,
        (&objects, CUSTOM_KINDS),
        steps,
        scratch,
    )
    .await
}

/// A set of very many kinds in very many namespaces.
pub(crate) async fn wide(options: &Options, scratch: &Path) -> Result<Vec<Measurement>> {
    let server = warm_server(&[], scratch).await?;
    let mut namespaces = Vec::new();
    for _ in 0..WIDE_NAMESPACES {
        namespaces.push(server.namespace("wide").await?);
    }
    let mut objects = Vec::new();
    let built_in = namespaces.iter().take(NAMESPACES_OF_A_KIND);
    objects.extend(built_in.flat_map(|namespace| one_of_each(namespace)));
    // The definitions are a kind, too.
    let custom_kinds = WIDE_KINDS - objects.len() / NAMESPACES_OF_A_KIND - 1;
    for kind in 0..custom_kinds {
        objects.push(definition(kind));
        objects.extend((0..NAMESPACES_OF_A_KIND).map(|number| {
            let step = WIDE_NAMESPACES / NAMESPACES_OF_A_KIND;
            custom(kind, 0, &namespaces[(kind + number * step) % WIDE_NAMESPACES])
        }));
    }
    let steps = (Step::WideFirst, Step::WideAgain);
    twice(
        options,
        &server,
        &namespaces[0],
        (&objects, WIDE_KINDS),
        steps,
        scratch,
    )
    .await
}

/// A set with the largest record that an annotation can hold.
pub(crate) async fn record(options: &Options, scratch: &Path) -> Result<Vec<Measurement>> {
    let server = warm_server(&[], scratch).await?;
    let home = server.namespace("record").await?;
    let names: Vec<String> = (0..RECORDED_NAMESPACES)
        .map(|number| format!("{:-<LONGEST_NAME$}", format!("recorded-{number:04}-")))
        .map(|name| name[..LONGEST_NAME - 1].to_owned() + "x")
        .collect();
    let namespaces = names
        .iter()
        .map(|name| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}));
    let namespaces: Vec<Value> = namespaces.collect();
    Prepared::new(&namespaces, "").send(&server.address).await?;
    let objects = names.iter().map(|name| {
        json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "recorded", "namespace": name},
            "data": {"key": "value"},
        })
    });
    let objects: Vec<Value> = objects.collect();
    let steps = (Step::RecordFirst, Step::RecordAgain);
    twice(
        options,
        &server,
        &home,
        (&objects, RECORDED_NAMESPACES),
        steps,
        scratch,
    )
    .await
}

/// Applies a set, and applies it again in each round. The measurements have the number by which the set
/// is known, which is not that of its objects.
async fn twice(
    options: &Options,
    server: &Server,
    namespace: &str,
    (objects, number): (&[Value], usize),
    (first, again): (Step, Step),
    scratch: &Path,
) -> Result<Vec<Measurement>> {
    let directory = scratch.join(format!("{first:?}"));
    fs::create_dir_all(&directory)?;
    fs::write(directory.join("all.yaml"), documents(objects)?)?;
    let mut measurements = Vec::new();
    for round in 0..=options.rounds {
        let (step, round) = match round.checked_sub(1) {
            None => (first, 0),
            Some(round) => (again, round),
        };
        let mut command = ours(server, namespace, &directory);
        let observed = observe(server, &mut command, scratch, Terms::STRICT).await?;
        let measurement = observed.measurement(step, Contender::Ours, number, round);
        say(&format!(
            "{:>6} objects, round {}: {step:?} {:.3} s",
            objects.len(),
            round + 1,
            measurement.seconds
        ));
        measurements.push(measurement);
    }
    Ok(measurements)
}

fn definition(kind: usize) -> Value {
    let plural = format!("things{kind:03}");
    let schema = json!({
        "type": "object",
        "properties": {"spec": {
            "type": "object",
            "properties": {"size": {"type": "integer"}, "name": {"type": "string"}},
        }},
    });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.bench.example.com")},
        "spec": {
            "group": "bench.example.com",
            "names": {
                "kind": format!("Thing{kind:03}"),
                "plural": plural,
                "singular": format!("thing{kind:03}"),
            },
            "scope": "Namespaced",
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": {"openAPIV3Schema": schema},
            }],
        },
    })
}

fn custom(kind: usize, number: usize, namespace: &str) -> Value {
    json!({
        "apiVersion": "bench.example.com/v1",
        "kind": format!("Thing{kind:03}"),
        "metadata": {"name": format!("thing-{number}"), "namespace": namespace},
        "spec": {"size": number, "name": "thing"},
    })
}
