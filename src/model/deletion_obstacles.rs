//! What the deletion of an object waits for, and the words for it.

use serde_json::Value;

use super::live::Live;
use super::text::first_names_and_more;

/// Lists what the deletion of an object waits for: its finalizers and, for a namespace, the conditions in which the
/// namespace controller reports what is left. The list of an object that is not being deleted is empty.
pub fn list_deletion_obstacles(object: &Value) -> Vec<String> {
    let metadata = &object["metadata"];
    if metadata["deletionTimestamp"].is_null() {
        return Vec::new();
    }
    let mut obstacles = Vec::new();
    for finalizer in metadata["finalizers"].as_array().into_iter().flatten() {
        obstacles.extend(finalizer.as_str().map(|name| format!("finalizer {name}")));
    }
    for condition in object["status"]["conditions"].as_array().into_iter().flatten() {
        let kind = condition["type"].as_str().unwrap_or_default();
        if condition["status"] == "True" && kind.starts_with("Namespace") {
            obstacles.extend(condition["message"].as_str().map(str::to_owned));
        }
    }
    obstacles
}

/// Joins the obstacles of a deletion and puts a separator before them; empty if there are none.
pub fn join_obstacles_after(separator: &str, obstacles: &[String]) -> String {
    if obstacles.is_empty() {
        return String::new();
    }
    format!("{separator}{}", obstacles.join("; "))
}

/// Returns the key of an object, followed by the reasons why it still exists, such as its finalizers.
pub fn describe_why_it_still_exists(live: &Live) -> String {
    match &*live.waits_for {
        [] => live.key.to_string(),
        obstacles => format!("{} ({})", live.key, obstacles.join("; ")),
    }
}

/// Returns the text of a note about a wait until these objects are gone.
pub fn waiting_note<'l>(objects: impl IntoIterator<Item = &'l Live>) -> String {
    let objects = first_names_and_more(objects.into_iter().map(describe_why_it_still_exists));
    format!("waiting for {objects} to be deleted")
}
