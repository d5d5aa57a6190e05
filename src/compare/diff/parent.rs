//! The difference of the parent of a set before and after a run, with its record.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::Difference;
use crate::manifest::desired::DesiredObject;
use crate::model::applyset::parent::{Reading, annotations, is_applyset_key, labels};
use crate::model::applyset::{ID_LABEL, Record};
use crate::model::resource::Resource;
use crate::model::set::{ParentObject, Set};

/// Compares the parent before and after a run.
///
/// `found` is the parent as it was read, and `record` its record after the run. If the parent has a manifest,
/// `desired_live_and_predicted` holds the desired object, the live object and the prediction of the server. Otherwise
/// only the ApplySet metadata is compared.
pub fn compare_parent(
    set: &Set,
    resource: &Resource,
    found: Option<&ParentObject>,
    record: &Record,
    desired_live_and_predicted: Option<(&DesiredObject, Option<Value>, Option<Value>)>,
) -> Difference {
    let (live, mut predicted) = match desired_live_and_predicted {
        Some((object, live, predicted)) => (live, predicted.unwrap_or_else(|| object.object.value())),
        None => (
            found.map(|found| parent_with_live_record(set, resource, found)),
            found.map_or_else(
                || bare_parent(set, resource),
                |found| parent_with_live_record(set, resource, found),
            ),
        ),
    };
    add_labels_or_annotations(&mut predicted, "labels", &labels(&set.id));
    add_labels_or_annotations(&mut predicted, "annotations", &annotations(&set.tooling, record));
    Difference::new(resource, &set.parent, live.as_ref(), Some(&predicted))
}

fn bare_parent(set: &Set, resource: &Resource) -> Value {
    let mut metadata = json!({"name": set.parent.name});
    if let Some(namespace) = &set.parent.namespace {
        metadata["namespace"] = json!(namespace);
    }
    json!({"apiVersion": resource.api_version(), "kind": resource.kind, "metadata": metadata})
}

/// Returns the live parent with its ApplySet metadata alone.
fn parent_with_live_record(set: &Set, resource: &Resource, found: &ParentObject) -> Value {
    let mut object = bare_parent(set, resource);
    let applyset_record: BTreeMap<_, _> = found
        .annotations
        .iter()
        .filter(|(key, _)| is_applyset_key(key))
        .collect();
    if !applyset_record.is_empty() {
        object["metadata"]["annotations"] = json!(applyset_record);
    }
    if matches!(found.reading, Reading::Parent(_)) {
        object["metadata"]["labels"] = json!({ID_LABEL: set.id.to_string()});
    }
    object
}

fn add_labels_or_annotations(object: &mut Value, field: &str, pairs: &Value) {
    let present = &mut object["metadata"][field];
    if !present.is_object() {
        *present = json!({});
    }
    for (key, value) in pairs.as_object().into_iter().flatten() {
        present[key] = value.clone();
    }
}
