//! Reads the CRDs of custom resources that are compared with their manifests: only a CRD shows which maps and lists are
//! atomic.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use futures_util::TryFutureExt as _;
use futures_util::future::try_join;
use serde_json::Value;

use crate::cluster::apiserver::ApiServer;
use crate::compare::changes::CrdVersion;
use crate::error::Error;
use crate::manifest::desired::Desired;
use crate::model::built_in_kinds::is_built_in;
use crate::model::identity::GroupKind;
use crate::model::list_targets::ListTargets;
use crate::model::resource::Resource;
use crate::read::definitions::{Definitions, read_crds_by_kind};
use crate::read::list::Selector;
use crate::read::list_collections::list_collections;

/// The custom kinds that are compared, whose CRDs are needed.
pub(super) struct NeededCrds<'a> {
    places: &'a ListTargets,
    /// Kinds whose CRDs are among the manifests. These CRDs are probably members, so the LIST of members returns them
    /// all.
    of_manifests: Vec<&'a Arc<Resource>>,
    /// Kinds whose CRDs are not among the manifests. Their CRDs are read one by one, because a cluster may have
    /// hundreds of CRDs that are not needed.
    others: Vec<&'a Arc<Resource>>,
}

impl<'a> NeededCrds<'a> {
    /// Returns the definitions that are needed to compare the objects of the manifests.
    pub(super) fn new(places: &'a ListTargets, desired: &Desired) -> Self {
        let keys = desired.members.iter().map(|member| &member.key);
        let compared: BTreeSet<&GroupKind> = keys.clone().map(|key| &key.group_kind).collect();
        let kind = GroupKind::custom_resource_definition();
        let in_manifests = keys.filter(|key| key.group_kind == kind);
        let in_manifests: BTreeSet<&str> = in_manifests.map(|key| &*key.name).collect();
        let (of_manifests, others) = places
            .resources
            .iter()
            .filter(|resource| compared.contains(&resource.group_kind()))
            .filter(|resource| !is_built_in(&resource.api_version(), &resource.kind))
            .partition(|resource| in_manifests.contains(&*resource.crd_name()));
        Self {
            places,
            of_manifests,
            others,
        }
    }

    /// Reads the definitions. If the manifests contain some of them, lists the members that are CRDs, and returns these
    /// members, too, reduced by `reduce`.
    pub(super) async fn read_and_list_member_crds<T>(
        &self,
        server: &ApiServer,
        selector: &Selector,
        concurrency: usize,
        reduce: impl Fn(&Value, &Arc<Resource>) -> Option<T>,
    ) -> Result<(Definitions, Vec<T>), Error> {
        let one_by_one = read_crds_by_kind(server, &self.others, reduce_crd_for_comparison, concurrency);
        if self.of_manifests.is_empty() {
            return Ok((one_by_one.await?, Vec::new()));
        }
        let kinds: HashMap<String, &Arc<Resource>> = self
            .of_manifests
            .iter()
            .map(|resource| (resource.crd_name(), *resource))
            .collect();
        let places = self.crd_places();
        let listed = list_collections(server, &places, selector, concurrency, |item, resource| {
            let defined = item["metadata"]["name"].as_str().and_then(|name| kinds.get(name));
            let definition = defined.map(|defined| {
                (
                    defined.group_kind(),
                    reduce_crd_for_comparison(defined, item.clone()),
                )
            });
            Some((reduce(item, resource)?, definition))
        });
        let (mut definitions, listed) = try_join(one_by_one, listed.err_into()).await?;
        let (found, listed_definitions): (Vec<T>, Vec<_>) = listed.into_iter().unzip();
        definitions.extend(listed_definitions.into_iter().flatten());
        // A definition may exist without being a member, for example before the first apply of this set.
        let mut missing = self.of_manifests.clone();
        missing.retain(|resource| !definitions.contains_key(&resource.group_kind()));
        definitions
            .extend(read_crds_by_kind(server, &missing, reduce_crd_for_comparison, concurrency).await?);
        Ok((definitions, found))
    }

    /// Returns the places where members have not been listed by [`Self::read_and_list_member_crds`].
    pub(super) fn member_places_left_to_list(&self) -> ListTargets {
        if self.of_manifests.is_empty() {
            self.places.clone()
        } else {
            self.filter_places(|resource| !is_crd(resource))
        }
    }

    fn crd_places(&self) -> ListTargets {
        self.filter_places(is_crd)
    }

    fn filter_places(&self, is_wanted: fn(&Resource) -> bool) -> ListTargets {
        let mut places = self.places.clone();
        places.resources.retain(|resource| is_wanted(resource));
        places
    }
}

fn is_crd(resource: &Resource) -> bool {
    resource.group_kind() == GroupKind::custom_resource_definition()
}

/// Reduces a definition to what comparisons need.
fn reduce_crd_for_comparison(resource: &Resource, definition: Value) -> Value {
    CrdVersion::reduce_definition(definition, &resource.version)
}
