//! `verify`: sets are broken in every way that a rule knows of, and it is looked at what
//! is found, what `--fix` writes, and what an apply finds afterwards.

mod alone;
mod neighbor;
mod objects;
mod repair;
mod rights;

use std::path::Path;
use std::time::{Duration, Instant};

use controlplane::ControlPlane;
use serde_json::{Value, json};

use crate::support::{Program, Run, Set, cluster, config_map, namespace, service};

const WITHOUT_QUESTION: [&str; 3] = ["--fix", "--include-namespaces", "--yes"];

/// A set of a `ConfigMap` at home and a Service elsewhere.
struct Sound {
    set: Set,
    home: String,
    away: String,
    objects: [Value; 2],
}

impl Sound {
    fn new() -> Self {
        let [home, away] = [namespace("home"), namespace("away")];
        let set = Set::secret(&home, "web");
        let objects = [config_map(&home, "one", "1"), service(&away, "two", 80)];
        set.apply(&objects);
        Self {
            set,
            home,
            away,
            objects,
        }
    }

    /// Patches the metadata of the parent.
    fn spoil(&self, metadata: &Value) {
        cluster().patch(&self.set.parent, &json!({"metadata": metadata}));
    }

    /// Asserts that nothing is to be found, and that an apply has nothing to do.
    fn assert_sound(&self) {
        let run = verify(&self.set, &[]).expect(0);
        assert_eq!(run.document()["findings"], json!([]));
        assert_eq!(run.document()["sets"][0]["status"], "consistent");
        let version = self.set.parent_version();
        let run = self.set.apply(&self.objects);
        assert_eq!(run.results("unchanged").len(), self.objects.len());
        assert_eq!(self.set.parent_version(), version);
        self.set.assert_holds(&self.objects);
    }
}

/// `verify` of one set as an administrator, with a document.
fn verify(set: &Set, flags: &[&str]) -> Run {
    verify_as(ControlPlane::shared().admin_kubeconfig(), set, flags)
}

/// The same. Other tests define kinds and delete them: while one of these cannot be
/// listed, not everything can be looked at, and it is looked again.
fn verify_as(kubeconfig: &Path, set: &Set, flags: &[&str]) -> Run {
    let is_administrator = kubeconfig == ControlPlane::shared().admin_kubeconfig();
    let deadline = Instant::now() + Duration::from_mins(1);
    loop {
        let run = Program::with_kubeconfig(kubeconfig)
            .args(["verify", &set.reference, "-n", &set.namespace, "-o", "json"])
            .args(flags)
            .run();
        let is_incomplete = run.stdout.contains("incomplete-look");
        if !is_administrator || !is_incomplete || Instant::now() > deadline {
            return run;
        }
    }
}

/// `rule kind namespace/name`, with `+` behind it where `--fix` would repair it and `*`
/// where it has, sorted.
fn reported(run: &Run) -> Vec<String> {
    let document = run.document();
    let findings = document["findings"].as_array().expect("findings");
    let mut reported: Vec<String> = findings
        .iter()
        .map(|finding| {
            let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
            let object = &finding["object"];
            let mark = match (&finding["fixable"], &finding["fixed"]) {
                (Value::Bool(true), Value::Bool(true)) => "*",
                (Value::Bool(true), _) => "+",
                _ => "",
            };
            format!(
                "{} {} {}/{}{mark}",
                text(&finding["rule"]),
                text(&object["kind"]),
                text(&object["namespace"]),
                text(&object["name"])
            )
        })
        .collect();
    reported.sort();
    reported
}

/// The names of the rules alone, each once.
fn rules(run: &Run) -> Vec<String> {
    let mut rules: Vec<String> = reported(run)
        .iter()
        .filter_map(|reported| reported.split(' ').next().map(str::to_owned))
        .collect();
    rules.dedup();
    rules
}
