//! Which namespaces exist, and which set each is a member of.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use http::StatusCode;

use super::list::{ListError, METADATA_LIST, Selector, list};
use super::members::Place;
use super::parent::metadata;
use crate::apiserver::ApiServer;
use crate::applyset::PART_OF_LABEL;
use crate::discovery::{Origin, Resource, Scope};

/// From this many namespaces on, one LIST of all is cheaper than a GET for each.
const NAMESPACES_WORTH_A_LIST: usize = 4;

/// The part-of label of each of `names` that exists.
///
/// A user who may not read namespaces is told that they all exist: the server checks
/// that again for each object, and most users in a namespace may not read namespaces.
pub async fn namespaces(
    server: &ApiServer,
    names: &BTreeSet<&str>,
) -> Result<BTreeMap<String, Option<String>>, (Place, ListError)> {
    let found = if names.len() < NAMESPACES_WORTH_A_LIST {
        get_each(server, names).await
    } else {
        list_all(server, names).await
    };
    match found {
        Err(error) if error.is_forbidden() => {
            Ok(names.iter().map(|name| ((*name).to_owned(), None)).collect())
        }
        found => found.map_err(|error| {
            let place = Place {
                resource: Arc::new(resource()),
                namespace: None,
            };
            (place, error)
        }),
    }
}

async fn get_each(
    server: &ApiServer,
    names: &BTreeSet<&str>,
) -> Result<BTreeMap<String, Option<String>>, ListError> {
    let mut found = BTreeMap::new();
    for name in names {
        match metadata(server, &resource().path(None, Some(name))).await {
            Ok(Some(mut fields)) => {
                found.insert((*name).to_owned(), fields.labels.remove(PART_OF_LABEL));
            }
            Ok(None) => {}
            Err(error) if error.is(StatusCode::FORBIDDEN) => {
                found.insert((*name).to_owned(), None);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(found)
}

async fn list_all(
    server: &ApiServer,
    names: &BTreeSet<&str>,
) -> Result<BTreeMap<String, Option<String>>, ListError> {
    let everything = Selector {
        labels: String::new(),
        accept: METADATA_LIST,
    };
    let namespaces = resource();
    let all = list(server, &namespaces, None, &everything, |item| {
        let metadata = item.get("metadata")?;
        let name = metadata.get("name")?.as_str()?.to_owned();
        let part_of = metadata
            .get("labels")
            .and_then(|labels| labels.get(PART_OF_LABEL)?.as_str().map(str::to_owned));
        Some((name, part_of))
    });
    Ok(all
        .await?
        .into_iter()
        .filter(|(name, _)| names.contains(name.as_str()))
        .collect())
}

fn resource() -> Resource {
    Resource {
        group: String::new(),
        version: "v1".to_owned(),
        kind: "Namespace".to_owned(),
        plural: "namespaces".to_owned(),
        singular: "namespace".to_owned(),
        short_names: Vec::new(),
        scope: Scope::Cluster,
        verbs: Vec::new(),
        origin: Origin::Served,
    }
}
