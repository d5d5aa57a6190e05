//! Fields that only the server sets: they are not differences, since no manifest has them.

use serde_json::{Map, Value};

/// Fields that every write changes.
const NEVER_SHOWN: [&str; 4] = ["managedFields", "resourceVersion", "generation", "selfLink"];

/// Fields that a dry run invents for an object that does not exist yet.
const MADE_UP: [&str; 2] = ["creationTimestamp", "uid"];

/// Removes these fields from both states.
pub(super) fn leave_out(live: &mut Option<Value>, predicted: &mut Option<Value>) {
    let is_new = live.is_none();
    for object in [live, predicted] {
        let Some(metadata) = object.as_mut().and_then(metadata) else {
            continue;
        };
        for field in NEVER_SHOWN {
            metadata.remove(field);
        }
        if is_new {
            for field in MADE_UP {
                metadata.remove(field);
            }
        }
        metadata.retain(|_, value| !value.is_null());
    }
}

/// Removes the fields that each object has for itself.
pub(super) fn leave_out_made_up(object: &mut Option<Value>) {
    if let Some(metadata) = object.as_mut().and_then(metadata) {
        metadata.retain(|field, _| !MADE_UP.contains(&field.as_str()));
    }
}

fn metadata(object: &mut Value) -> Option<&mut Map<String, Value>> {
    object.get_mut("metadata")?.as_object_mut()
}
