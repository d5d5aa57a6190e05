//! Whenever change detection says `Unchanged`, the server's own server-side
//! apply must leave the object, its resourceVersion included, as it is: tried
//! with random manifests, random histories and a real API server.
//!
//! `CHANGES_CASES` sets how many objects are tried, `CHANGES_SEED` with which
//! seed, `CHANGES_CASE` one of them alone. What is sent without need is counted
//! and printed, and is not a failure.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::disallowed_macros,
    clippy::disallowed_types,
    reason = "a test that talks to the server past the program, and prints what it counts"
)]

mod case;
mod generate;
mod ignored;
mod predicted;
mod server;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use http::Method;
use kubectl_applyset::internals::CrdVersion;
use serde_json::{Value, json};

use case::Case;
use server::{Server, place};

const US: &str = "applyset";
/// How many objects are worked on at a time; most of the time is waiting.
const AT_ONCE: usize = 500;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

#[derive(Default)]
struct Tally {
    changed: usize,
    unchanged_said: usize,
    refused: usize,
    terminating: usize,
    needless: BTreeMap<String, (usize, String)>,
    failures: Vec<String>,
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.changed += other.changed;
        self.unchanged_said += other.unchanged_said;
        self.refused += other.refused;
        self.terminating += other.terminating;
        for (reason, (count, example)) in other.needless {
            self.needless.entry(reason).or_insert((0, example)).0 += count;
        }
        self.failures.extend(other.failures);
    }

    fn print(&self) {
        eprintln!(
            "said unchanged and it was: {}; sent and changed: {}; sent and refused: {}; terminating: {}",
            self.unchanged_said, self.changed, self.refused, self.terminating
        );
        eprintln!("sent though unchanged:");
        for (reason, (count, example)) in &self.needless {
            eprintln!("{count:7}  {reason}   e.g. {example}");
        }
    }
}

struct World {
    server: Server,
    namespace: String,
    templates: Value,
    definitions: Vec<Value>,
    seed: u64,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unchanged_is_never_false() {
    let seed = seed();
    let tally = try_cases(
        seed,
        |world, case| async move { Case::new(&world, case).run().await },
    )
    .await;
    assert!(tally.unchanged_said > 0, "nothing was ever unchanged");
    assert!(
        tally.failures.is_empty(),
        "{} false `Unchanged`, the first with CHANGES_SEED={seed}:\n{}",
        tally.failures.len(),
        tally.failures.join("\n\n")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ignored_field_never_changes() {
    let seed = seed();
    // The objects of the other test have other names.
    let tally = try_cases(seed + 1_000_000, |world, case| async move {
        Case::new(&world, case).run_ignoring().await
    })
    .await;
    assert!(tally.changed > 0, "nothing was ever sent");
    assert!(
        tally.failures.is_empty(),
        "{} ignored fields changed, the first with CHANGES_SEED={seed}:\n{}",
        tally.failures.len(),
        tally.failures.join("\n\n")
    );
}

fn seed() -> u64 {
    number("CHANGES_SEED").unwrap_or(1)
}

/// Tries the cases that the environment chooses, each with an object of its own.
async fn try_cases<F>(seed: u64, run: fn(Arc<World>, u64) -> F) -> Tally
where
    F: Future<Output = Tally> + Send + 'static,
{
    let world = Arc::new(World::prepare(seed).await);
    let selected: Vec<u64> = match number("CHANGES_CASE") {
        Some(case) => vec![case],
        None => (0..number("CHANGES_CASES").unwrap_or(200)).collect(),
    };
    let mut tally = Tally::default();
    let mut results = stream::iter(selected)
        .map(|case| tokio::spawn(run(Arc::clone(&world), case)))
        .buffer_unordered(AT_ONCE);
    while let Some(result) = results.next().await {
        tally.add(result.unwrap());
    }
    world.remove().await;
    tally.print();
    tally
}

impl World {
    async fn prepare(seed: u64) -> Self {
        let templates: Value = serde_saphyr::from_str(include_str!("templates.yaml")).unwrap();
        let server = Server::connect().await;
        let namespace = format!("changes-{}-{}", seed, std::process::id());
        for name in [namespace.clone(), format!("{namespace}-limits")] {
            let made = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            let answer = server.apply(&place(&made, "").object, US, true, &made).await;
            assert!(answer.succeeded(), "{}", answer.body);
        }
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
        let answer = server
            .apply(&place(&account, &namespace).object, US, true, &account)
            .await;
        assert!(answer.succeeded(), "{}", answer.body);
        let mut definitions = Vec::new();
        for definition in templates["custom"].as_array().unwrap() {
            let there = place(definition, &namespace).object;
            let answer = server.apply(&there, US, true, definition).await;
            assert!(answer.succeeded(), "{}", answer.body);
            loop {
                let live = server.get(&there).await.body;
                let established = live["status"]["conditions"].as_array().is_some_and(|all| {
                    all.iter()
                        .any(|it| it["type"] == "Established" && it["status"] == "True")
                });
                if established {
                    definitions.push(live);
                    break;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        // The endpoint of a new definition answers a little later everywhere.
        tokio::time::sleep(Duration::from_millis(1500)).await;
        Self {
            server,
            namespace,
            templates,
            definitions,
            seed,
        }
    }

    async fn remove(&self) {
        for suffix in ["", "-limits"] {
            let path = format!("/api/v1/namespaces/{}{suffix}", self.namespace);
            self.server
                .send(Method::DELETE, &path, "application/json", &Value::Null)
                .await;
        }
    }

    fn definition(&self, manifest: &Value) -> Option<CrdVersion<'_>> {
        self.definitions
            .iter()
            .find(|known| known["spec"]["names"]["kind"] == manifest["kind"])
            .and_then(|known| CrdVersion::from_definition(known, "v1"))
    }
}
