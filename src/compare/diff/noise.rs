//! Fields that change with every write, or that only the server gives: no manifest asks
//! for them, so they are no differences.

use serde_json::{Map, Value};

/// Counters and the accounts of field managers.
const NEVER_SHOWN: [&str; 4] = ["managedFields", "resourceVersion", "generation", "selfLink"];

/// What a dry run makes up for an object that is not there yet.
const MADE_UP: [&str; 2] = ["creationTimestamp", "uid"];

/// Takes them out of both states.
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

fn metadata(object: &mut Value) -> Option<&mut Map<String, Value>> {
    object.get_mut("metadata")?.as_object_mut()
}
