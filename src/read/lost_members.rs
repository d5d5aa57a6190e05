//! Lost members: objects that were applied as members of a set, and are in none.
//!
//! What distinguishes them from others, and what follows, is in docs/decisions/record.md.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::list::{ListError, METADATA_LIST, Selector};
use super::list_collections::{list_collections, unique_by_uid};
use super::list_visible::{ListOptions, ListResults, list_visible};
use crate::cluster::apiserver::ApiServer;
use crate::model::applyset::parent::is_applyset_key;
use crate::model::applyset::{ID_LABEL, PART_OF_LABEL};
use crate::model::list_targets::{ListTarget, ListTargets};
use crate::model::live::{Live, Presence};
use crate::model::resource::Resource;
use crate::model::text::first_names_and_more;

/// Finds the objects in this scope whose part-of label the server has removed, whichever field manager applied them.
///
/// # Errors
///
/// Something could not be listed.
pub async fn list_objects_with_lost_label(
    server: &ApiServer,
    places: &ListTargets,
    concurrency: usize,
) -> Result<Vec<Live>, (ListTarget, ListError)> {
    let selector = unlabeled_selector();
    let mut found = list_collections(server, places, &selector, concurrency, |item, resource| {
        reduce_present(item, resource).filter(Live::has_lost_part_of_label)
    })
    .await?;
    unique_by_uid(&mut found, |live| live, |_| false);
    Ok(found)
}

/// Lists objects that are in no set and were probably members: those whose part-of label the server has removed, and
/// those that the field manager has applied, because people have unlabeled them or `disband` has released them. The
/// result names the collections that could not be listed.
pub async fn list_lost_members(
    server: &ApiServer,
    places: &ListTargets,
    manager: &str,
    concurrency: usize,
) -> ListResults<Live> {
    let selector = unlabeled_selector();
    let options = ListOptions::new(&selector, concurrency);
    let mut look = list_visible(server, places, options, |item, resource| {
        reduce_present(item, resource)
            .filter(|live| live.has_lost_part_of_label() || is_applied_without_a_set(item, manager))
    })
    .await;
    unique_by_uid(&mut look.found, |live| live, |_| false);
    look
}

/// Returns the warning that the server removed the label from these objects, with the `consequence` for the set.
pub fn warning_of_unlabeled(unlabeled: &[Live], consequence: &str) -> String {
    format!(
        "the server removed the label {PART_OF_LABEL} from {}: {consequence}",
        first_names_and_more(unlabeled.iter().map(|live| &live.key))
    )
}

/// Selects the metadata of objects without the part-of label.
fn unlabeled_selector() -> Selector {
    Selector::new(format!("!{PART_OF_LABEL}"), METADATA_LIST)
}

/// Reduces an item of a list; `None` if the object is being deleted.
fn reduce_present(item: &Value, resource: &Arc<Resource>) -> Option<Live> {
    Live::from_object(item, resource).filter(|live| live.presence == Presence::Present)
}

/// Returns whether this field manager has applied the object, and the object is neither a member of a set nor a parent.
fn is_applied_without_a_set(object: &Value, manager: &str) -> bool {
    let metadata = &object["metadata"];
    let labels = &metadata["labels"];
    let mut annotations = metadata["annotations"]
        .as_object()
        .into_iter()
        .flat_map(Map::keys);
    if labels.get(PART_OF_LABEL).is_some()
        || labels.get(ID_LABEL).is_some()
        || annotations.any(|key| is_applyset_key(key))
    {
        return false;
    }
    let mut entries = metadata["managedFields"].as_array().into_iter().flatten();
    entries.any(|entry| entry["manager"] == manager && entry["operation"] == "Apply")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::applyset::TOOLING_ANNOTATION;

    #[test]
    fn what_was_applied_and_is_in_no_set_is_reported_from_the_rest() {
        let entry = |manager: &str, operation: &str| json!({"manager": manager, "operation": operation});
        let object = |labels: Value, annotations: Value, entry: Value| json!({"metadata": {"labels": labels, "annotations": annotations, "managedFields": [entry]}});
        let ours = || entry("ours", "Apply");
        let table = [
            (object(json!({"app": "x"}), json!({}), ours()), true),
            (object(json!(null), json!(null), ours()), true),
            (object(json!({PART_OF_LABEL: "any"}), json!({}), ours()), false),
            (object(json!({ID_LABEL: "any"}), json!({}), ours()), false),
            (
                object(json!({}), json!({TOOLING_ANNOTATION: "any"}), ours()),
                false,
            ),
            (object(json!({}), json!({}), entry("ours", "Update")), false),
            (object(json!({}), json!({}), entry("theirs", "Apply")), false),
            (json!({}), false),
        ];
        for (object, expected) in table {
            assert_eq!(is_applied_without_a_set(&object, "ours"), expected, "{object}");
        }
    }
}
