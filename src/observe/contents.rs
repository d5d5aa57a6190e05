//! Looks up what a namespace or the definition of a kind holds, since deleting it
//! deletes all of that.
//!
//! What counts as a loss is decided in `plan::contents`.

use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream;

use super::list::{METADATA_LIST, Selector, list};
use super::{Live, Presence};
use crate::apiserver::ApiServer;
use crate::discovery::{Discovery, KindLookup, Resource, Scope};

/// What a namespace or the definition of a kind holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contents {
    /// Objects in it that are there to stay.
    pub objects: Vec<Live>,
    /// Resources that could not be listed.
    pub unknown: Vec<String>,
}

/// Lists everything inside of `container`, a namespace or a CRD.
///
/// Resources that cannot be listed, for whatever reason, are named in the answer: what
/// they hold would be lost unseen.
pub async fn contents(
    server: &ApiServer,
    discovery: &Discovery,
    container: &Live,
    concurrency: usize,
) -> Contents {
    let (resources, namespace) = match &container.defines {
        Some(kind) => match discovery.preferred(kind) {
            KindLookup::Found(resource) => (vec![Arc::new(resource.clone())], None),
            KindLookup::Absent => (Vec::new(), None),
            KindLookup::GroupFailed(failure) => {
                return Contents {
                    objects: Vec::new(),
                    unknown: vec![failure.to_string()],
                };
            }
        },
        None => (namespaced(discovery), Some(container.key.name.as_str())),
    };
    let everything = Selector {
        labels: String::new(),
        accept: METADATA_LIST,
    };
    let mut lists = stream::iter(&resources)
        .map(|resource| async {
            let listed = list(server, resource, namespace, &everything, |item| {
                Live::of(item, resource)
            })
            .await;
            listed.map_err(|_| resource.plural.clone())
        })
        .buffer_unordered(concurrency);
    let mut contents = Contents::default();
    while let Some(listed) = lists.next().await {
        match listed {
            Ok(objects) => contents.objects.extend(objects),
            Err(reason) => contents.unknown.push(reason),
        }
    }
    contents.objects.retain(|live| live.presence == Presence::Present);
    contents.objects.sort_by(|one, other| one.uid.cmp(&other.uid));
    contents.objects.dedup_by(|one, other| one.uid == other.uid);
    contents.objects.sort_by(|one, other| one.key.cmp(&other.key));
    contents.unknown.extend(match namespace {
        Some(_) => discovery.failures().iter().map(ToString::to_string).collect(),
        None => Vec::new(),
    });
    contents.unknown.sort();
    contents
}

fn namespaced(discovery: &Discovery) -> Vec<Arc<Resource>> {
    discovery
        .listable()
        .filter(|resource| resource.scope == Scope::Namespaced)
        .cloned()
        .map(Arc::new)
        .collect()
}
