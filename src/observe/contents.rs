//! Looks up what a namespace or the definition of a kind holds, since deleting it
//! deletes all of that.
//!
//! What counts as a loss is decided in `plan::contents`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream;
use tokio::time::Instant;

use super::list::{ListError, METADATA_LIST, Selector};
use super::members::{Place, Places, everywhere, members};
use super::unserved::{UnsettledError, await_everything};
use super::{Live, Presence};
use crate::apiserver::ApiServer;
use crate::discovery::{Discovery, KindLookup, Resource, Scope};
use crate::identity::ObjectKey;

/// What a namespace or the definition of a kind holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contents {
    /// Objects in it that are there to stay.
    pub objects: Vec<Live>,
    /// Resources that could not be listed.
    pub unknown: Vec<String>,
}

/// Lists everything inside of the `containers`, namespaces and CRDs: one LIST for each
/// resource and namespace, or one over all namespaces where that is fewer requests.
///
/// Resources that cannot be listed are named in the answer: what they hold would be lost
/// unseen. It is an error where the cluster cannot be reached, or wants to know nothing of the
/// user any more.
///
/// A namespace may hold objects of a kind that discovery does not list yet, so such kinds are
/// waited for until `deadline`.
pub async fn contents(
    server: &ApiServer,
    discovery: &mut Discovery,
    containers: &[Live],
    concurrency: usize,
    deadline: Instant,
) -> Result<BTreeMap<ObjectKey, Contents>, ContentsError> {
    let has_namespace = containers.iter().any(|live| live.defines.is_none());
    let missing_permission = if has_namespace {
        await_everything(server, discovery, deadline).await?
    } else {
        None
    };
    let listed = list_contents(server, discovery, containers, concurrency).await;
    let mut contents = listed.map_err(|(place, error)| ContentsError::List { place, error })?;
    let namespaces = contents
        .iter_mut()
        .filter(|(key, _)| key.group_kind.kind == "Namespace");
    for (_, held) in namespaces {
        let kinds =
            missing_permission.map(|permission| format!("kinds that only those see who may {permission}"));
        held.unknown.extend(kinds);
    }
    Ok(contents)
}

/// Why it is not known what a namespace or the definition of a kind holds.
#[derive(Debug, thiserror::Error)]
pub enum ContentsError {
    /// Which kinds there are is not known.
    #[error(transparent)]
    Unsettled(#[from] UnsettledError),
    /// The cluster did not answer, or not this user.
    #[error("{error}")]
    List {
        /// The collection.
        place: Place,
        /// What the server said.
        error: ListError,
    },
}

async fn list_contents(
    server: &ApiServer,
    discovery: &Discovery,
    containers: &[Live],
    concurrency: usize,
) -> Result<BTreeMap<ObjectKey, Contents>, (Place, ListError)> {
    let mut contents: BTreeMap<ObjectKey, Contents> = BTreeMap::new();
    let (definitions, namespaces): (Vec<&Live>, Vec<&Live>) =
        containers.iter().partition(|live| live.defines.is_some());
    for live in definitions {
        let held = contents.entry(live.key.clone()).or_default();
        let Some(kind) = &live.defines else { continue };
        match discovery.preferred(kind) {
            KindLookup::Found(resource) => {
                let resource = Arc::new(resource.clone());
                (held.objects, held.unknown) =
                    everywhere(server, &[resource], &EVERYTHING, concurrency).await;
            }
            KindLookup::GroupFailed(failure) => held.unknown.push(failure.to_string()),
            // Its definition is there, and so may be its objects.
            KindLookup::Absent => held
                .unknown
                .push(format!("{kind}, which the server does not serve")),
        }
    }
    let names: BTreeSet<String> = namespaces.iter().map(|live| live.key.name.clone()).collect();
    let resources = if names.is_empty() {
        Vec::new()
    } else {
        namespaced(discovery)
    };
    let mut lists = stream::iter(resources)
        .map(|resource| {
            let places = Places {
                resources: vec![Arc::clone(&resource)],
                namespaces: names.clone(),
            };
            async move {
                (
                    resource,
                    members(server, &places, &EVERYTHING, concurrency, Live::of).await,
                )
            }
        })
        .buffer_unordered(concurrency);
    while let Some((resource, listed)) = lists.next().await {
        let listed = match listed {
            Err((place, error)) if error.is_of_the_cluster() => return Err((place, error)),
            listed => listed,
        };
        for live in &namespaces {
            let held = contents.entry(live.key.clone()).or_default();
            match &listed {
                Ok(objects) => {
                    let is_inside = |object: &&Live| object.key.namespace.as_ref() == Some(&live.key.name);
                    held.objects.extend(objects.iter().filter(is_inside).cloned());
                }
                Err(_) => held.unknown.push(resource.plural.clone()),
            }
        }
    }
    for (key, held) in &mut contents {
        if key.group_kind.kind == "Namespace" {
            held.unknown
                .extend(discovery.failures().iter().map(ToString::to_string));
        }
        held.settle();
    }
    Ok(contents)
}

const EVERYTHING: Selector = Selector {
    labels: String::new(),
    accept: METADATA_LIST,
};

impl Contents {
    /// Each object once, under whichever group it was seen first, in a settled order.
    fn settle(&mut self) {
        self.objects.retain(|live| live.presence == Presence::Present);
        self.objects.sort_by(|one, other| one.uid.cmp(&other.uid));
        self.objects.dedup_by(|one, other| one.uid == other.uid);
        self.objects.sort_by(|one, other| one.key.cmp(&other.key));
        self.unknown.sort();
    }
}

fn namespaced(discovery: &Discovery) -> Vec<Arc<Resource>> {
    discovery
        .listable()
        .filter(|resource| resource.scope == Scope::Namespaced)
        .cloned()
        .map(Arc::new)
        .collect()
}
