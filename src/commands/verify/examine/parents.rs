//! Reads the parents of sets, and objects that may be parents.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::{Inspection, selector};
use crate::error::Error;
use crate::model::applyset::{ApplySetId, ID_LABEL};
use crate::model::resource::Resource;
use crate::read::{self, ListOptions, ListResults, ListTargets, ParentCandidate, ParentKind};
use crate::verify::{Examined, Extent};

/// The parents that were found.
pub(super) struct Parents {
    pub(super) sets: Vec<Examined>,
    /// The kinds that may be parents.
    pub(super) kinds: Vec<Arc<Resource>>,
    /// The visibility of the objects that may be parents.
    pub(super) extent: Extent,
}

impl Inspection<'_> {
    /// Reads the other sets of the cluster, as far as the user may list their parents. Which kinds and
    /// namespaces cannot be listed is not reported: it concerns none of `sets`.
    pub(super) async fn other_sets(&self, sets: &[Examined]) -> Vec<Examined> {
        let custom = read::custom_parent_kinds(&self.cluster.server).await;
        let kinds = read::parent_kinds(self.cluster, custom, &mut Vec::new()).await;
        let selector = selector(ID_LABEL);
        let looking = ListOptions {
            selector: &selector,
            concurrency: self.concurrency,
            seen: &|| {},
        };
        let own = BTreeSet::from([self.cluster.namespace.clone()]);
        let server = &self.cluster.server;
        let listing = read::list_all(server, &kinds, &own, looking, |item, resource| {
            ParentCandidate::from_object(item, resource, server.now())
        });
        let look = listing.await;
        let found = look.found.into_iter();
        let others = found.filter(|parent| sets.iter().all(|set| set.parent.identity != parent.identity));
        others
            .map(|parent| Examined::new(parent, ParentKind::Permitted))
            .collect()
    }

    /// Finds the parents of a namespace or of the cluster: those of the permitted kinds, and in the
    /// cluster all other objects with the id of a set.
    pub(super) async fn parents(&mut self, namespace: Option<&str>) -> Result<Parents, Error> {
        let custom = read::custom_parent_kinds(&self.cluster.server).await;
        let kinds = read::parent_kinds(self.cluster, custom, &mut self.warnings).await;
        let now = self.cluster.server.now();
        let has_applyset_metadata = |item: &Value, resource: &Arc<Resource>| {
            ParentCandidate::from_object(item, resource, now).filter(ParentCandidate::has_applyset_metadata)
        };
        let mut look = self
            .candidates(&kinds, namespace, "", has_applyset_metadata)
            .await;
        // As `list`: no findings would mean that all sets are consistent.
        if look.found.is_empty()
            && let Some(position) = read::built_in_parents_unread(&look.unread)
        {
            return Err(look.unread.swap_remove(position).into());
        }
        let mut is_whole = self.warnings.is_empty() && look.unread.is_empty();
        let unread = read::unread_reasons(look.unread);
        self.warnings.extend(read::unread_warnings(&unread));
        let mut sets: Vec<Examined> = look
            .found
            .into_iter()
            .map(|parent| Examined::new(parent, ParentKind::Permitted))
            .collect();
        if namespace.is_none() {
            let known: BTreeSet<_> = kinds.iter().map(|kind| kind.group_kind()).collect();
            let mut others = self.resources.clone();
            others.retain(|resource| !known.contains(&resource.group_kind()));
            let looking = self.candidates(&others, None, ID_LABEL, |item, resource| {
                ParentCandidate::from_object(item, resource, now)
            });
            let look = looking.await;
            is_whole &= look.unread.is_empty() && self.cluster.discovery.failures().is_empty();
            for parent in look.found {
                let kind = self.kind_of(&parent).await;
                sets.push(Examined::new(parent, kind));
            }
        }
        sets.sort_by(|one, other| {
            let order = |set: &Examined| {
                (
                    set.found.identity.namespace.clone(),
                    set.found.identity.name.clone(),
                )
            };
            order(one).cmp(&order(other))
        });
        Ok(Parents {
            sets,
            kinds,
            extent: if is_whole { Extent::Whole } else { Extent::Part },
        })
    }

    /// Returns whether an object with the id of a set is a parent of a kind that lacks its label, or
    /// an object with a copy of another's.
    async fn kind_of(&self, parent: &ParentCandidate) -> ParentKind {
        let id = ApplySetId::for_parent(&parent.identity);
        if parent.labels.get(ID_LABEL).map(String::as_str) != Some(id.as_str()) {
            return ParentKind::Forbidden;
        }
        let kind = read::parent_kind(self.cluster, &parent.resource).await;
        kind.unwrap_or(ParentKind::Unknown)
    }

    pub(super) async fn candidates(
        &self,
        kinds: &[Arc<Resource>],
        namespace: Option<&str>,
        labels: &str,
        reduce: impl Fn(&Value, &Arc<Resource>) -> Option<ParentCandidate>,
    ) -> ListResults<ParentCandidate> {
        let selector = selector(labels);
        let looking = ListOptions {
            selector: &selector,
            concurrency: self.concurrency,
            seen: &|| {},
        };
        let server = &self.cluster.server;
        match namespace {
            None => read::list_all(server, kinds, &BTreeSet::new(), looking, reduce).await,
            Some(namespace) => {
                let places = ListTargets {
                    resources: kinds.to_vec(),
                    namespaces: BTreeSet::from([namespace.to_owned()]),
                };
                read::list_visible(server, &places, looking, reduce).await
            }
        }
    }
}
