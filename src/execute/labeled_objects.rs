//! Lists the objects with the set's label.

use crate::cluster::apiserver::ApiServer;
use crate::model::applyset::PART_OF_LABEL;
use crate::model::live::Live;
use crate::model::set::Set;
use crate::read::{self, ListError, ListTarget, ListTargets, Selector};

/// Lists the objects with the label of the set in `scope`, each once. The parent is left out: it is never a member.
/// `accept` is the media type that the lists are requested in.
pub async fn list_labeled_objects(
    server: &ApiServer,
    set: &Set,
    scope: &ListTargets,
    concurrency: usize,
    accept: &'static str,
) -> Result<Vec<Live>, (ListTarget, ListError)> {
    let selector = Selector {
        labels: format!("{PART_OF_LABEL}={}", set.id),
        accept,
    };
    let mut found = read::members(server, scope, &selector, concurrency, Live::from_object).await?;
    found.retain(|live| !set.is_parent(live));
    read::unique_by_uid(&mut found, |live| live, |_| false);
    Ok(found)
}
