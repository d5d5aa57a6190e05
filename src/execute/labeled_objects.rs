//! Lists the objects with the set's label.

use crate::cluster::apiserver::ApiServer;
use crate::model::applyset::PART_OF_LABEL;
use crate::model::live::Live;
use crate::model::set::Set;
use crate::read::{self, ListError, ListTarget, ListTargets, Selector};

/// Lists the objects with the label of the set in this scope, without its parent, in the form that
/// `accept` names.
pub async fn list_labeled_objects(
    server: &ApiServer,
    set: &Set,
    places: &ListTargets,
    concurrency: usize,
    accept: &'static str,
) -> Result<Vec<Live>, (ListTarget, ListError)> {
    let selector = Selector {
        labels: format!("{PART_OF_LABEL}={}", set.id),
        accept,
    };
    let mut found = read::members(server, places, &selector, concurrency, Live::from_object).await?;
    found.retain(|live| !set.is_parent(live));
    read::unique_by_uid(&mut found, |live| live, |_| false);
    Ok(found)
}
