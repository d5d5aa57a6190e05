//! Reads the parents of sets, and objects that may be parents.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::{Inspection, metadata_selector};
use crate::error::Error;
use crate::model::applyset::{ApplySetId, ID_LABEL};
use crate::model::resource::Resource;
use crate::read::{self, ListOptions, ListResults, ListTargets, LiveParent, ParentEligibility};
use crate::verify::{ExaminedSet, Extent};

/// The parents that were found.
pub(super) struct Parents {
    pub(super) sets: Vec<ExaminedSet>,
    /// The kinds whose objects may be parents: those that KEP-3659 permits, and those of Config Sync.
    pub(super) kinds: Vec<Arc<Resource>>,
    /// Whether all objects that may be parents were listed.
    pub(super) extent: Extent,
}

impl Inspection<'_> {
    /// Reads the other sets of the cluster, as far as the user may list their parents. Kinds and namespaces that cannot
    /// be listed are not reported, since the findings are about `sets` only.
    pub(super) async fn find_other_sets(&self, sets: &[ExaminedSet]) -> Vec<ExaminedSet> {
        let custom = read::list_custom_parent_kinds(&self.cluster.server).await;
        let kinds = read::find_served_parent_kinds(self.cluster, custom, &mut Vec::new()).await;
        let selector = metadata_selector(ID_LABEL);
        let options = ListOptions::new(&selector, self.concurrency);
        let own_namespace = BTreeSet::from([self.cluster.namespace.clone()]);
        let server = &self.cluster.server;
        let listed =
            read::list_visible_everywhere(server, &kinds, &own_namespace, options, |item, resource| {
                LiveParent::from_object(item, resource, server.now()).ok()
            })
            .await;
        listed
            .found
            .into_iter()
            .filter(|parent| sets.iter().all(|set| set.parent.live.key != parent.live.key))
            .map(|parent| ExaminedSet::new(parent, ParentEligibility::Permitted))
            .collect()
    }

    /// Finds the parents of a namespace, or of the cluster if there is none. In a namespace, only the kinds whose objects
    /// may be parents are listed; in the cluster, also all other objects with the id label.
    pub(super) async fn find_parents(&mut self, namespace: Option<&str>) -> Result<Parents, Error> {
        let custom = read::list_custom_parent_kinds(&self.cluster.server).await;
        let mut kinds = read::find_served_parent_kinds(self.cluster, custom, &mut self.warnings).await;
        read::add_kinds_of_config_sync(&mut kinds, &self.cluster.discovery);
        let now = self.cluster.server.now();
        let read_parent = |item: &Value, resource: &Arc<Resource>| {
            LiveParent::from_object(item, resource, now)
                .ok()
                .filter(LiveParent::has_applyset_metadata)
        };
        let mut results = self.list_candidates(&kinds, namespace, "", read_parent).await;
        // A report without findings would mean that all sets are consistent, although none was read. `list` fails in
        // the same way.
        if results.found.is_empty()
            && let Some(position) = read::position_of_unread_built_in_kind(&results.unread)
        {
            return Err(results.unread.swap_remove(position).into());
        }
        let mut is_complete = self.warnings.is_empty() && results.unread.is_empty();
        let unread = read::unread_reasons(results.unread);
        self.warnings.extend(read::unread_warnings(&unread));
        let mut sets: Vec<ExaminedSet> = results
            .found
            .into_iter()
            .map(|parent| ExaminedSet::new(parent, ParentEligibility::Permitted))
            .collect();
        if namespace.is_none() {
            let permitted: BTreeSet<_> = kinds.iter().map(|kind| kind.group_kind()).collect();
            let mut others = self.resources.clone();
            others.retain(|resource| !permitted.contains(&resource.group_kind()));
            let results = self
                .list_candidates(&others, None, ID_LABEL, |item, resource| {
                    LiveParent::from_object(item, resource, now).ok()
                })
                .await;
            is_complete &= results.unread.is_empty() && self.cluster.discovery.failures().is_empty();
            for parent in results.found {
                let kind = self.determine_parent_eligibility(&parent).await;
                sets.push(ExaminedSet::new(parent, kind));
            }
        }
        sets.sort_by(|one, other| {
            let [one, other] = [one, other].map(|set| &set.found.identity);
            (&one.namespace, &one.name).cmp(&(&other.namespace, &other.name))
        });
        Ok(Parents {
            sets,
            kinds,
            extent: if is_complete { Extent::Whole } else { Extent::Part },
        })
    }

    /// Determines whether an object with the id label is a parent, although its kind does not seem permitted for
    /// parents. It is not a parent if the id is not that of its own identity: its labels are then copied from another
    /// parent. Otherwise the CRD of its kind decides, which may have lost the label that permits parents.
    async fn determine_parent_eligibility(&self, parent: &LiveParent) -> ParentEligibility {
        let id = ApplySetId::for_parent(&parent.live.key);
        if parent.labels.get(ID_LABEL).map(String::as_str) != Some(id.as_str()) {
            return ParentEligibility::Forbidden;
        }
        let kind = read::determine_parent_eligibility(self.cluster, &parent.live.resource).await;
        // If the CRD cannot be read, the other sets can still be verified.
        kind.unwrap_or(ParentEligibility::Unknown)
    }

    /// Lists the objects of these kinds that may be parents: in a namespace, or in the cluster if there is none.
    pub(super) async fn list_candidates(
        &self,
        kinds: &[Arc<Resource>],
        namespace: Option<&str>,
        selector: &str,
        pick: impl Fn(&Value, &Arc<Resource>) -> Option<LiveParent>,
    ) -> ListResults<LiveParent> {
        let selector = metadata_selector(selector);
        let options = ListOptions::new(&selector, self.concurrency);
        let server = &self.cluster.server;
        match namespace {
            None => read::list_visible_everywhere(server, kinds, &BTreeSet::new(), options, pick).await,
            Some(namespace) => {
                let targets = ListTargets {
                    resources: kinds.to_vec(),
                    namespaces: BTreeSet::from([namespace.to_owned()]),
                };
                read::list_visible(server, &targets, options, pick).await
            }
        }
    }
}
