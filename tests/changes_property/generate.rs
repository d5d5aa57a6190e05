//! Random manifests from templates, and random changes to them.

use serde_json::{Map, Value, json};

use crate::support::Random;

/// One manifest of the many that a template stands for.
pub(crate) fn expand(random: &mut Random, template: &Value) -> Value {
    match template {
        Value::Object(fields) => {
            if let Some(Value::Array(choices)) = fields.get("$any") {
                let chosen = random.pick(choices).clone();
                return expand(random, &chosen);
            }
            if let Some(Value::Array(choices)) = fields.get("$some") {
                let mut items: Vec<Value> = choices.iter().filter(|_| random.percent(60)).cloned().collect();
                if items.is_empty() {
                    items.push(choices[0].clone());
                }
                random.shuffle(&mut items);
                return items.iter().map(|item| expand(random, item)).collect();
            }
            let mut expanded = Map::new();
            for (name, value) in fields {
                if let (Some(choices), "$one") = (value.as_array(), name.as_str()) {
                    let chosen = random.pick(choices).clone();
                    if let Value::Object(chosen) = expand(random, &chosen) {
                        expanded.extend(chosen);
                    }
                } else if let Some(optional) = name.strip_suffix('~') {
                    if random.percent(35) {
                        expanded.insert(optional.to_owned(), expand(random, value));
                    }
                } else {
                    expanded.insert(name.clone(), expand(random, value));
                }
            }
            Value::Object(expanded)
        }
        Value::Array(items) => items.iter().map(|item| expand(random, item)).collect(),
        scalar => scalar.clone(),
    }
}

const PROTECTED: [&str; 5] = [
    "/apiVersion",
    "/kind",
    "/metadata",
    "/metadata/name",
    "/metadata/namespace",
];

/// Everything in a manifest that may be changed.
fn places(value: &Value, prefix: &str, found: &mut Vec<String>) {
    let mut visit = |key: &str, below: &Value| {
        let place = format!("{prefix}/{}", key.replace('~', "~0").replace('/', "~1"));
        if !PROTECTED.contains(&place.as_str()) {
            found.push(place.clone());
        }
        places(below, &place, found);
    };
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, below)| visit(name, below)),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .for_each(|(position, below)| visit(&position.to_string(), below)),
        _ => {}
    }
}

pub(crate) fn place_in(random: &mut Random, manifest: &Value) -> Option<String> {
    let mut found = Vec::new();
    places(manifest, "", &mut found);
    (!found.is_empty()).then(|| random.pick(&found).clone())
}

fn remove(manifest: &mut Value, place: &str) {
    let (parent, key) = place.rsplit_once('/').unwrap();
    let key = key.replace("~1", "/").replace("~0", "~");
    match manifest.pointer_mut(parent) {
        Some(Value::Object(fields)) => {
            fields.remove(&key);
        }
        Some(Value::Array(items)) => {
            items.remove(key.parse().unwrap());
        }
        _ => {}
    }
}

/// A manifest with less in it, as another manager may apply.
pub(crate) fn thin(random: &mut Random, manifest: &Value) -> Value {
    let mut thinned = manifest.clone();
    for _ in 0..random.below(6) {
        if let Some(place) = place_in(random, &thinned) {
            remove(&mut thinned, &place);
        }
    }
    thinned
}

/// One change of the sort that people make. `variant` is another manifest from
/// the same template, `live` the object as the server has it.
pub(crate) fn mutate(random: &mut Random, manifest: &mut Value, variant: &Value, live: &Value) {
    let Some(place) = place_in(random, manifest) else {
        return;
    };
    match random.below(10) {
        0 => remove(manifest, &place),
        1 | 2 => graft(random, manifest, variant),
        3 | 4 => graft(random, manifest, live),
        5 => reorder(random, manifest),
        6 => {
            let target = manifest.pointer_mut(&place).unwrap();
            *target = match target {
                Value::Object(_) => json!({}),
                Value::Array(_) => json!([]),
                Value::String(_) => json!(""),
                Value::Number(_) => json!(0),
                Value::Bool(_) | Value::Null => json!(false),
            };
        }
        7 => *manifest.pointer_mut(&place).unwrap() = Value::Null,
        8 => {
            let target = manifest.pointer_mut(&place).unwrap();
            let changed = match &*target {
                Value::Number(number) if random.percent(50) => json!(number.to_string()),
                Value::Number(number) => json!(number.as_f64()),
                Value::String(text) => text.parse::<i64>().map_or(json!("other"), |it| json!(it)),
                Value::Bool(value) => json!(!value),
                Value::Null => json!({}),
                same => same.clone(),
            };
            *target = changed;
        }
        _ => duplicate(random, manifest),
    }
}

/// Copies something from a similar object to the same place; a field that is
/// missing here, most of the time.
fn graft(random: &mut Random, manifest: &mut Value, from: &Value) {
    for _ in 0..20 {
        let Some(place) = place_in(random, from) else {
            return;
        };
        let ours = place.starts_with("/metadata/labels")
            || place.starts_with("/metadata/annotations")
            || !place.starts_with("/metadata") && !place.starts_with("/status");
        if !ours || manifest.pointer(&place).is_some() && random.percent(70) {
            continue;
        }
        let (parent, key) = place.rsplit_once('/').unwrap();
        if let Some(Value::Object(fields)) = manifest.pointer_mut(parent) {
            let key = key.replace("~1", "/").replace("~0", "~");
            fields.insert(key, from.pointer(&place).unwrap().clone());
            return;
        }
    }
}

fn list_in(random: &mut Random, manifest: &Value) -> Option<String> {
    let mut found = Vec::new();
    places(manifest, "", &mut found);
    found.retain(|place| {
        manifest
            .pointer(place)
            .and_then(Value::as_array)
            .is_some_and(|items| !items.is_empty())
    });
    (!found.is_empty()).then(|| random.pick(&found).clone())
}

fn reorder(random: &mut Random, manifest: &mut Value) {
    if let Some(place) = list_in(random, manifest)
        && let Some(Value::Array(items)) = manifest.pointer_mut(&place)
    {
        random.shuffle(items);
    }
}

fn duplicate(random: &mut Random, manifest: &mut Value) {
    if let Some(place) = list_in(random, manifest)
        && let Some(Value::Array(items)) = manifest.pointer_mut(&place)
    {
        let copy = random.pick(items).clone();
        items.push(copy);
    }
}
