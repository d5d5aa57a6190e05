//! Ignored fields: whatever others do, and whatever else our manifest changes, the body that is sent
//! leaves them as they are, also by force.

use kubectl_applyset::internals::{
    BodyPurpose, Object, Pointer, Verdict, body_with_live_values, compare, may_be_ignored,
};
use serde_json::{Map, Value, json};

use super::case::Case;
use super::generate::place_in;
use super::{Tally, US};

const ROUNDS: usize = 6;

impl Case<'_> {
    /// Tries random pointers after each part of a random history.
    pub(crate) async fn run_ignoring(mut self) -> Tally {
        self.begin().await;
        for _ in 0..ROUNDS {
            for _ in 0..self.random.below(3) {
                self.happen().await;
            }
            self.revise().await;
            self.check_ignored().await;
        }
        if !self.place.collection.contains("/namespaces/") {
            let release = json!({"metadata": {"finalizers": null}});
            let server = self.world.server.clone();
            server.merge(&self.place.object, "editor", &release).await;
            let content = "application/json";
            server
                .send(http::Method::DELETE, &self.place.object, content, &Value::Null)
                .await;
        }
        self.tally
    }

    async fn check_ignored(&mut self) {
        let server = self.world.server.clone();
        let before = server.get(&self.place.object).await;
        let live = before.body.clone();
        if !before.succeeded() || live["metadata"]["deletionTimestamp"].is_string() {
            self.tally.terminating += 1;
            return;
        }
        // The server adds an item without its key again with each apply, so no body can keep the list as it is.
        if has_item_without_key(&live) {
            self.tally.refused += 1;
            return;
        }
        let pointers = self.pointers();
        let manifest = Object::from(&self.manifest);
        let body = |purpose, live: &Value| body_with_live_values(&manifest, &pointers, live, US, purpose);
        let sent = body(BodyPurpose::Send, &live);
        let mut metadata = sent.metadata();
        for field in ["uid", "resourceVersion"] {
            metadata.insert(field.to_owned(), live["metadata"][field].clone());
        }
        let sent = sent.with_metadata(&metadata).value();
        let answer = server.apply(&self.place.object, US, true, &sent).await;
        let names: Vec<String> = pointers.iter().map(ToString::to_string).collect();
        self.note(
            &format!("we apply {} ignoring {names:?} as {sent}", self.manifest),
            &answer,
        );
        if !answer.succeeded() {
            self.tally.refused += 1;
            return;
        }
        let now = server.get(&self.place.object).await.body;
        if now["metadata"]["deletionTimestamp"].is_string() {
            return;
        }
        self.tally.changed += 1;
        // Only owned fields show whether the items of a list have keys, and the apply may be the first to own them.
        let known = [field_sets(&live), field_sets(&now)].concat();
        for pointer in &pointers {
            let Some(was) = found(&self.manifest, &live, &known, pointer.segments()) else {
                continue;
            };
            let is = found(&self.manifest, &now, &known, pointer.segments()).unwrap_or_default();
            let [was, is] = [was, is].map(without_own_metadata);
            if was != is {
                self.tally.failures.push(format!(
                    "{}{pointer} was {} and is {}\nlive: {live}\nhistory:\n{}",
                    self.place.object,
                    json!(was),
                    json!(is),
                    self.story.join("\n")
                ));
            }
        }
        // The next run has nothing to do.
        let compared = body(BodyPurpose::Compare, &now).value();
        match compare(
            &compared,
            &now,
            US,
            self.world.definition(&self.manifest).as_ref(),
        ) {
            Verdict::Unchanged => self.tally.unchanged_said += 1,
            Verdict::Send(reason) => {
                let example = format!("{} {names:?}: {reason}", self.place.object);
                let name = reason.to_string().split(": ").next().map(str::to_owned);
                let entry = self.tally.needless.entry(name.unwrap_or_default());
                entry.or_insert((0, example)).0 += 1;
            }
        }
    }

    fn pointers(&mut self) -> Vec<Pointer> {
        let count = 1 + self.random.below(3);
        let places = (0..count).filter_map(|_| place_in(&mut self.random, &self.manifest));
        let pointers = places.filter_map(|place| Pointer::parse(&place).ok());
        // A controller writes the status of a definition while the test looks at it.
        let is_definition = self.manifest["kind"] == "CustomResourceDefinition";
        pointers
            .filter(|pointer| {
                may_be_ignored(pointer) && !(is_definition && pointer.segments()[0] == "status")
            })
            .collect()
    }
}

/// Returns whether any `imagePullSecrets` of an object has an item without a name.
fn has_item_without_key(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.iter().any(|(name, value)| {
            (name == "imagePullSecrets" && value.as_array().is_some_and(|items| items.contains(&json!({}))))
                || has_item_without_key(value)
        }),
        Value::Array(items) => items.iter().any(has_item_without_key),
        _ => false,
    }
}

/// Removes the labels and annotations of the ApplySet, which are never ignored, and takes an empty mapping
/// for an absent one.
fn without_own_metadata(mut value: Value) -> Value {
    if let Some(fields) = value.as_object_mut() {
        let had_any = !fields.is_empty();
        fields.retain(|key, _| !key.starts_with("applyset.kubernetes.io/"));
        if had_any && fields.is_empty() {
            return Value::Null;
        }
    }
    value
}

/// Returns the fields of each manager.
fn field_sets(live: &Value) -> Vec<&Map<String, Value>> {
    let entries = live["metadata"]["managedFields"].as_array().into_iter().flatten();
    entries
        .filter_map(|entry| entry["fieldsV1"].as_object())
        .collect()
}

/// Returns the live value of a field of a manifest, found without the code under test; null if
/// the live object lacks it. `None` if it lacks what holds the field: the field may be created with
/// it.
fn found(
    manifest: &Value,
    live: &Value,
    known: &[&Map<String, Value>],
    segments: &[String],
) -> Option<Value> {
    let mut trees = known.to_vec();
    let (mut mine, mut there) = (Some(manifest), live);
    for (place, segment) in segments.iter().enumerate() {
        let is_last = place + 1 == segments.len();
        let (next, key) = match there {
            Value::Object(fields) => (fields.get(segment), format!("f:{segment}")),
            Value::Array(items) => {
                let index: usize = segment.parse().ok()?;
                let keys = trees.iter().flat_map(|tree| tree.keys());
                let keys: Vec<String> = keys
                    .filter(|key| key.starts_with("k:") || key.starts_with("v:"))
                    .cloned()
                    .collect();
                if keys.is_empty() {
                    // A position in a list that is one value.
                    (Some(items.get(index)?), String::new())
                } else {
                    let wanted = mine?.get(index)?;
                    let key = keys.into_iter().find(|key| selects(key, wanted))?;
                    let item = items.iter().find(|item| selects(&key, item))?;
                    (Some(item), key)
                }
            }
            _ => return None,
        };
        mine = mine.and_then(|mine| match mine {
            Value::Array(items) => items.get(segment.parse::<usize>().ok()?),
            other => other.get(segment),
        });
        trees = trees
            .iter()
            .filter_map(|tree| tree.get(&key)?.as_object())
            .collect();
        match next {
            _ if is_last => return Some(next.cloned().unwrap_or_default()),
            Some(next) => there = next,
            None => return None,
        }
    }
    None
}

/// Returns whether a key of a field set selects this item: keys that the item lacks have defaults.
fn selects(key: &str, item: &Value) -> bool {
    let wanted: Value = serde_json::from_str(&key[2..]).unwrap_or_default();
    match (&key[..2], &wanted) {
        ("k:", Value::Object(keys)) => keys
            .iter()
            .all(|(name, value)| item.get(name).is_none_or(|known| known == value)),
        _ => wanted == *item,
    }
}
