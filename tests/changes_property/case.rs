//! One object: its history, what change detection says of it, and who is right.

use std::time::Duration;

use http::Method;
use kubectl_applyset::internals::{Verdict, compare, is_built_in};
use serde_json::{Value, json};

use super::generate::{expand, mutate, thin};
use super::predicted::hidden_by_prediction;
use super::server::{Answer, Place, place};
use super::{Tally, US, World};
use crate::support::{PART_OF, Random};

const ROUNDS: usize = 5;

pub(crate) struct Case<'w> {
    pub(super) world: &'w World,
    pub(super) random: Random,
    number: u64,
    template: Value,
    pub(super) place: Place,
    name: String,
    pub(super) manifest: Value,
    earlier: Vec<Value>,
    /// Whether another client has sent metadata that reads otherwise than it is stored.
    may_hide_metadata: bool,
    pub(super) tally: Tally,
    pub(super) story: Vec<String>,
}

impl<'w> Case<'w> {
    pub(crate) fn new(world: &'w World, number: u64) -> Self {
        let mut random = Random::new(world.seed, number);
        let templates = world.templates["kinds"].as_array().unwrap();
        let mut template = random.pick(templates);
        if template["kind"] == "CustomResourceDefinition" && random.percent(70) {
            template = templates
                .iter()
                .find(|known| known["kind"] == "Deployment")
                .unwrap();
        }
        let name = if template["kind"] == "CustomResourceDefinition" {
            format!("s{}c{number}s.generated.example.com", world.seed)
        } else {
            format!("s{}-{number}", world.seed)
        };
        let mut this = Self {
            world,
            number,
            template: template.clone(),
            place: Place {
                collection: String::new(),
                object: String::new(),
            },
            name,
            manifest: Value::Null,
            earlier: Vec::new(),
            may_hide_metadata: false,
            tally: Tally::default(),
            story: Vec::new(),
            random,
        };
        this.manifest = this.variant();
        this.place = place(&this.manifest, &world.namespace);
        this
    }

    /// Another manifest from the same template, for the same object.
    fn variant(&mut self) -> Value {
        let mut manifest = expand(&mut self.random, &self.template);
        if manifest["kind"] == "CustomResourceDefinition" {
            let stem = self.name.split('s').nth(1).unwrap_or_default().to_owned();
            let plural = self.name.split('.').next().unwrap();
            let text = manifest.to_string();
            let text = text
                .replace("$kind", &format!("K{stem}"))
                .replace("$plural", plural)
                .replace("$singular", plural.trim_end_matches('s'))
                .replace("$list", &format!("K{stem}List"));
            manifest = serde_json::from_str(&text).unwrap();
        }
        manifest["metadata"]["name"] = json!(self.name);
        let labels = &mut manifest["metadata"]["labels"];
        if !labels.is_object() {
            *labels = json!({});
        }
        labels["applyset.kubernetes.io/part-of"] = json!("applyset-x-v1");
        manifest
    }

    pub(crate) async fn run(mut self) -> Tally {
        self.begin().await;
        for _ in 0..ROUNDS {
            for _ in 0..self.random.below(3) {
                self.happen().await;
            }
            self.revise().await;
            if self.random.percent(65) {
                // A no-op within the same second cannot show what a new time does.
                tokio::time::sleep(Duration::from_millis(1050)).await;
            }
            if !self.check().await {
                break;
            }
        }
        // What is in the namespace goes with it.
        if !self.place.collection.contains("/namespaces/") {
            let release = json!({"metadata": {"finalizers": null}});
            self.world
                .server
                .merge(&self.place.object, "editor", &release)
                .await;
            self.delete().await;
        }
        self.tally
    }

    pub(super) async fn begin(&mut self) {
        let server = self.world.server.clone();
        match self.random.below(6) {
            0 => {
                let path = format!("{}?fieldManager=kubectl-client-side-apply", self.place.collection);
                let body = self.manifest.clone();
                let answer = server.send(Method::POST, &path, "application/json", &body).await;
                self.note("created by an update", &answer);
            }
            1 => {
                let variant = self.variant();
                let variant = thin(&mut self.random, &variant);
                self.note_metadata(&variant);
                let answer = server.apply(&self.place.object, "other", true, &variant).await;
                self.note(&format!("other applies {variant}"), &answer);
            }
            _ => {}
        }
        for _ in 0..4 {
            let manifest = self.manifest.clone();
            let answer = server.apply(&self.place.object, US, true, &manifest).await;
            self.note(&format!("we apply {manifest}"), &answer);
            if answer.succeeded() {
                self.note_metadata(&manifest);
                self.earlier.push(manifest);
                break;
            }
            self.manifest = self.variant();
        }
    }

    /// Something that another client does, or we did before.
    pub(super) async fn happen(&mut self) {
        let server = self.world.server.clone();
        let there = self.place.object.clone();
        match self.random.below(11) {
            10 => self.relabel().await,
            0..=2 => {
                let mut body = if self.random.percent(50) {
                    self.manifest.clone()
                } else {
                    self.variant()
                };
                body = thin(&mut self.random, &body);
                let manager = *self.random.pick(&["other", "zz-other"]);
                let force = self.random.percent(60);
                self.note_metadata(&body);
                let answer = server.apply(&there, manager, force, &body).await;
                self.note(&format!("{manager} applies (force={force}) {body}"), &answer);
            }
            3 | 4 => {
                let variant = self.variant();
                let body = thin(&mut self.random, &variant);
                self.note_metadata(&body);
                let answer = server.merge(&there, "editor", &body).await;
                self.note(&format!("editor merges {body}"), &answer);
            }
            5 => {
                let body = json!({"metadata": {"annotations": {"controller/revision": "1"}},
                    "status": {"replicas": 3, "phase": "Running", "loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}});
                let answer = server
                    .merge(&format!("{there}/status"), "controller", &body)
                    .await;
                self.note("controller writes status", &answer);
            }
            6 => {
                let patch = if self.random.percent(50) {
                    json!({"metadata": {"labels": {"applyset.kubernetes.io/part-of": null}}})
                } else {
                    json!({"metadata": {"labels": {"x": "y"}, "annotations": {"note": "text"}}})
                };
                let answer = server.merge(&there, "editor", &patch).await;
                self.note(&format!("editor merges {patch}"), &answer);
            }
            7 => {
                let body = json!({"spec": {"replicas": 4}});
                let answer = server.merge(&format!("{there}/scale"), "scaler", &body).await;
                self.note("scaled", &answer);
            }
            8 => self.edit_managed_fields().await,
            _ => {
                if !self.earlier.is_empty() {
                    let body = self.random.pick(&self.earlier).clone();
                    let answer = server.apply(&there, US, true, &body).await;
                    self.note(&format!("we apply {body}"), &answer);
                }
            }
        }
        if self.random.percent(2) {
            self.delete().await;
        }
    }

    /// What `move` and `adopt` do: we write the part-of label by a patch.
    async fn relabel(&mut self) {
        let server = self.world.server.clone();
        let values = ["applyset-y-v1", "applyset-x-v1"];
        let place = usize::from(self.random.percent(70));
        for value in &values[..=place] {
            let patch = json!({"metadata": {"labels": {PART_OF: value}}});
            let answer = server.merge(&self.place.object, US, &patch).await;
            self.note(&format!("we merge {patch}"), &answer);
        }
    }

    /// What migrations of field ownership do: our entry takes over another's.
    async fn edit_managed_fields(&mut self) {
        let server = self.world.server.clone();
        let Some(mut live) = self.list().await else {
            return;
        };
        let Some(entries) = live["metadata"]["managedFields"].as_array_mut() else {
            return;
        };
        let additional = entries
            .iter()
            .find(|entry| entry["manager"] != US && entry.get("subresource").is_none())
            .map(|entry| entry["fieldsV1"].clone());
        for entry in entries.iter_mut().filter(|entry| entry["manager"] == US) {
            match &additional {
                Some(additional) if self.random.percent(60) => {
                    unite(&mut entry["fieldsV1"], additional);
                }
                _ => entry["fieldsV1"]["f:metadata"]["f:labels"]["."] = json!({}),
            }
        }
        let patch = json!({"metadata": {"managedFields": entries,
            "resourceVersion": live["metadata"]["resourceVersion"]}});
        let answer = server.merge(&self.place.object, "migration", &patch).await;
        self.note("managedFields edited", &answer);
    }

    async fn delete(&mut self) {
        let server = self.world.server.clone();
        let answer = server
            .send(
                Method::DELETE,
                &self.place.object,
                "application/json",
                &Value::Null,
            )
            .await;
        self.note("deleted", &answer);
    }

    /// The next manifest: the same as before, an earlier one, or a changed one.
    pub(super) async fn revise(&mut self) {
        match self.random.below(20) {
            0..=8 => {}
            9 if !self.earlier.is_empty() => {
                self.manifest = self.random.pick(&self.earlier).clone();
            }
            10 => self.manifest = self.variant(),
            _ => {
                let live = self.list().await.unwrap_or(Value::Null);
                let variant = self.variant();
                let mut changed = self.manifest.clone();
                for _ in 0..=self.random.below(2) {
                    mutate(&mut self.random, &mut changed, &variant, &live);
                }
                self.manifest = changed;
            }
        }
    }

    /// The live object as a LIST has it.
    async fn list(&self) -> Option<Value> {
        let path = format!(
            "{}?fieldSelector=metadata.name={}",
            self.place.collection, self.name
        );
        let mut body = self.world.server.get(&path).await.body;
        body["items"].get_mut(0).map(Value::take)
    }

    /// Compares, sends, and sees who was right. False where the case cannot continue.
    async fn check(&mut self) -> bool {
        let Some(live) = self.list().await else {
            return false;
        };
        let definition = self.world.definition(&self.manifest);
        let verdict = compare(&self.manifest, &live, US, definition.as_ref());
        let blind = compare(&self.manifest, &live, US, None);
        let force = !self.random.percent(25);
        let answer = self
            .world
            .server
            .apply(&self.place.object, US, force, &self.manifest)
            .await;
        self.check_prediction(&live, force, &answer);
        let kept = answer.succeeded()
            && (answer.body["metadata"]["resourceVersion"] == live["metadata"]["resourceVersion"]
                || has_stored_its_phase(&self.manifest, &live, &answer.body)
                || self.has_stored_what_is_read(&live, &answer.body)
                || has_only_a_new_generation(&self.manifest, &live, &answer.body)
                || has_only_moved_an_entry(&live, &answer.body)
                || has_owned_the_label(&self.manifest, &live, &answer.body));
        let kind = self.manifest["kind"].as_str().unwrap().to_owned();
        for (verdict, label) in [(&verdict, ""), (&blind, " (no definition)")] {
            if definition.is_none() && !label.is_empty() {
                continue;
            }
            match verdict {
                Verdict::Unchanged if kept => self.tally.unchanged_said += 1,
                Verdict::Unchanged => {
                    if self.repeats_false(&kind).await {
                        self.fail(label, &live, &answer);
                    }
                }
                Verdict::Send(reason) if kept => {
                    let text = reason.to_string();
                    let (name, path) = text.split_once(": ").unwrap_or((&text, ""));
                    let entry = self
                        .tally
                        .needless
                        .entry(format!("{name}{label}"))
                        .or_insert_with(|| (0, format!("case {} {kind} {path}", self.number)));
                    entry.0 += 1;
                    if std::env::var_os("CHANGES_VERBOSE").is_some() && label.is_empty() {
                        eprintln!("NEEDLESS {kind} {reason}");
                    }
                }
                Verdict::Send(_) if live["metadata"].get("deletionTimestamp").is_some() => {
                    self.tally.terminating += 1;
                }
                Verdict::Send(_) if answer.succeeded() => self.tally.changed += 1,
                Verdict::Send(_) => self.tally.refused += 1,
            }
        }
        self.note(&format!("we apply (force={force}) {}", self.manifest), &answer);
        if answer.succeeded() {
            let manifest = self.manifest.clone();
            self.note_metadata(&manifest);
            self.earlier.push(manifest);
        } else if let Some(last) = self.earlier.last() {
            self.manifest = last.clone();
        }
        true
    }

    /// A prediction from the live object alone must not hide what the server's answer shows.
    fn check_prediction(&mut self, live: &Value, force: bool, answer: &Answer) {
        let definition = self.world.definition(&self.manifest);
        if let Some(what) = hidden_by_prediction(&self.manifest, live, definition, force, answer) {
            self.fail(&format!(" (the prediction hides {what})"), live, answer);
        }
    }

    /// Controllers of the server write the status of definitions in the meantime: there
    /// only a second false verdict counts.
    async fn repeats_false(&self, kind: &str) -> bool {
        if kind != "CustomResourceDefinition" {
            return true;
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
        let Some(live) = self.list().await else {
            return true;
        };
        if compare(&self.manifest, &live, US, None) != Verdict::Unchanged {
            return false;
        }
        let answer = self
            .world
            .server
            .apply(&self.place.object, US, true, &self.manifest)
            .await;
        answer.body["metadata"]["resourceVersion"] != live["metadata"]["resourceVersion"]
    }

    fn note_metadata(&mut self, body: &Value) {
        let metadata = &body["metadata"];
        let has_null = |field: &str| {
            let pairs = metadata[field].as_object();
            pairs.is_some_and(|pairs| pairs.values().any(Value::is_null))
        };
        self.may_hide_metadata |=
            metadata["finalizers"] == json!([]) || has_null("labels") || has_null("annotations");
    }

    /// Whether an apply did nothing but store metadata of a custom resource as every reading
    /// shows it: the second exception of change detection.
    fn has_stored_what_is_read(&self, live: &Value, written: &Value) -> bool {
        let version = self.manifest["apiVersion"].as_str().unwrap();
        let kind = self.manifest["kind"].as_str().unwrap();
        self.may_hide_metadata && !is_built_in(version, kind) && contents(live) == contents(written)
    }

    fn fail(&mut self, label: &str, live: &Value, answer: &Answer) {
        let failure = format!(
            "CHANGES_CASE={}{label}\nmanifest {}\nlive {}\nanswer {} {}\nstory:\n  {}",
            self.number,
            self.manifest,
            live,
            answer.status,
            answer.body,
            self.story.join("\n  ")
        );
        self.tally.failures.push(failure);
    }

    pub(super) fn note(&mut self, what: &str, answer: &Answer) {
        self.story.push(format!("{} {what}", answer.status));
    }
}

/// Whether an apply did nothing but store the phase `Pending`, which every reading of a claim
/// fills in: the first exception of change detection.
fn has_stored_its_phase(manifest: &Value, live: &Value, written: &Value) -> bool {
    let is_pending = live["status"]["phase"] == "Pending" && written["status"]["phase"] == "Pending";
    manifest["kind"] == "PersistentVolumeClaim" && is_pending && contents(live) == contents(written)
}

/// Whether an apply did nothing but count a new generation, because of an empty value that every reading drops: the
/// third exception of change detection.
fn has_only_a_new_generation(manifest: &Value, live: &Value, written: &Value) -> bool {
    let [live, written] = [live, written].map(|object| without_generation(manifest, contents(object)));
    live == written
}

/// An object without its generation, if it is of a kind whose generation counts empty values.
fn without_generation(manifest: &Value, mut object: Value) -> Value {
    let kind = manifest["kind"].as_str().unwrap();
    if kind.ends_with("WebhookConfiguration") || kind == "NetworkPolicy" {
        object["metadata"]["generation"].take();
    }
    object
}

/// Whether an apply did nothing but move our entry behind that of another manager which has applied, because it has a
/// new time.
fn has_only_moved_an_entry(live: &Value, written: &Value) -> bool {
    let managers = |object: &Value| {
        let entries = object["metadata"]["managedFields"].as_array();
        let entries = entries.into_iter().flatten();
        entries.map(|entry| entry["manager"].clone()).collect::<Vec<_>>()
    };
    managers(live) != managers(written) && contents(live) == contents(written)
}

/// Whether an apply did nothing but add the part-of label, which we had written by a patch, to
/// what we have applied: the fourth exception of change detection.
fn has_owned_the_label(manifest: &Value, live: &Value, written: &Value) -> bool {
    let entries = live["metadata"]["managedFields"].as_array();
    let is_written = entries.into_iter().flatten().any(|entry| {
        let labels = &entry["fieldsV1"]["f:metadata"]["f:labels"];
        entry["manager"] == US && entry["operation"] == "Update" && labels.get(label()).is_some()
    });
    is_written
        && without_generation(manifest, without_label(live))
            == without_generation(manifest, without_label(written))
}

fn label() -> String {
    format!("f:{PART_OF}")
}

/// The contents of an object, with the label in none of our `Apply` entries.
fn without_label(object: &Value) -> Value {
    let mut object = contents(object);
    let entries = object["metadata"]["managedFields"].as_array_mut().unwrap();
    for entry in entries.iter_mut() {
        if entry["manager"] == US && entry["operation"] == "Apply" {
            let fields = &mut entry["fieldsV1"];
            if let Some(Value::Object(labels)) = fields.pointer_mut("/f:metadata/f:labels") {
                labels.remove(&label());
            }
            prune(fields, &["f:metadata", "f:labels"]);
        }
    }
    entries.retain(|entry| entry["fieldsV1"] != json!({}));
    entries.sort_by_key(Value::to_string);
    object
}

/// Takes out what is empty along the path.
fn prune(fields: &mut Value, path: &[&str]) {
    let Some((first, rest)) = path.split_first() else {
        return;
    };
    let Some(fields) = fields.as_object_mut() else {
        return;
    };
    if let Some(below) = fields.get_mut(*first) {
        prune(below, rest);
        if *below == json!({}) {
            fields.remove(*first);
        }
    }
}

/// An object as it is seen beside its version. A LIST does not repeat the kind of its items, and the order of the
/// entries follows from their times.
pub(super) fn contents(object: &Value) -> Value {
    let mut object = object.clone();
    for field in ["apiVersion", "kind"] {
        object.as_object_mut().unwrap().remove(field);
    }
    let metadata = object["metadata"].as_object_mut().unwrap();
    metadata.remove("resourceVersion");
    if let Some(Value::Array(entries)) = metadata.get_mut("managedFields") {
        for entry in entries.iter_mut() {
            entry.as_object_mut().unwrap().remove("time");
        }
        entries.sort_by_key(Value::to_string);
    }
    object
}

/// The union of two field sets.
fn unite(into: &mut Value, from: &Value) {
    if let (Value::Object(into), Value::Object(from)) = (into, from) {
        for (key, below) in from {
            unite(into.entry(key.clone()).or_insert_with(|| json!({})), below);
        }
    }
}
