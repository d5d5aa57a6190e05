//! The collections that a run lists to find the members of a set: kinds × namespaces.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::applyset::Record;
use super::identity::GroupKind;
use super::resource::{Resource, Scope};

/// From this number of namespaces on, one LIST of the whole cluster is cheaper than one for each namespace.
const NAMESPACES_WORTH_A_CLUSTER_WIDE_LIST: usize = 4;

/// The collections to list: each resource in each of the namespaces, or once if it is cluster-scoped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListTargets {
    /// Resources that the server serves; one for each group-kind.
    pub resources: Vec<Arc<Resource>>,
    /// The namespaces in which to list the namespaced resources.
    pub namespaces: BTreeSet<String>,
}

/// One collection: the target of a LIST.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ListTarget {
    /// The resource of the objects in the collection.
    pub resource: Arc<Resource>,
    /// The namespace; `None` for a cluster-scoped resource or for all namespaces.
    pub namespace: Option<String>,
}

/// The reach of a LIST of a namespaced resource: one namespace, or the whole cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// One namespace.
    Namespace,
    /// All namespaces of the cluster.
    Cluster,
}

impl Reach {
    /// Returns the reach that costs least for this number of namespaces.
    pub fn cheapest(namespace_count: usize) -> Self {
        if namespace_count >= NAMESPACES_WORTH_A_CLUSTER_WIDE_LIST {
            Self::Cluster
        } else {
            Self::Namespace
        }
    }
}

impl ListTargets {
    /// Returns the reach that costs least for these namespaces.
    pub fn cheapest_reach(&self) -> Reach {
        Reach::cheapest(self.namespaces.len())
    }

    /// Adds the resources whose group-kinds are not among the targets yet.
    pub fn add_resources_of_new_kinds(&mut self, resources: impl IntoIterator<Item = Arc<Resource>>) {
        let mut group_kinds = self.group_kinds();
        self.resources.extend(
            resources
                .into_iter()
                .filter(|resource| group_kinds.insert(resource.group_kind())),
        );
    }

    fn group_kinds(&self) -> BTreeSet<GroupKind> {
        self.resources
            .iter()
            .map(|resource| resource.group_kind())
            .collect()
    }

    /// Returns whether every collection of `other` is among these targets.
    pub fn covers(&self, other: &Self) -> bool {
        self.group_kinds().is_superset(&other.group_kinds()) && self.namespaces.is_superset(&other.namespaces)
    }

    /// Returns the targets that a record does not cover, in two parts: first the kinds that the record does not name,
    /// in all namespaces of these targets; then the namespaced kinds that it names, in the namespaces that it does not
    /// name. The namespace of the parent counts as covered, since no record names it.
    pub fn outside_recorded_kinds_and_namespaces(
        &self,
        record: &Record,
        parent_namespace: Option<&str>,
    ) -> [Self; 2] {
        let (mut recorded, unrecorded): (Vec<_>, Vec<_>) = self
            .resources
            .iter()
            .cloned()
            .partition(|resource| record.group_kinds.contains(&resource.group_kind()));
        recorded.retain(|resource| resource.scope == Scope::Namespaced);
        let unrecorded_namespaces = self.namespaces.iter().filter(|namespace| {
            !record.additional_namespaces.contains(*namespace) && Some(namespace.as_str()) != parent_namespace
        });
        [
            Self {
                resources: unrecorded,
                namespaces: self.namespaces.clone(),
            },
            Self {
                resources: recorded,
                namespaces: unrecorded_namespaces.cloned().collect(),
            },
        ]
    }

    /// Returns the collections to list.
    pub fn each_collection(&self, reach: Reach) -> Vec<ListTarget> {
        self.resources
            .iter()
            .flat_map(|resource| self.each_collection_of(resource, reach))
            .collect()
    }

    /// Returns whether an item in a list of this resource is in one of the namespaces. A LIST of the whole cluster
    /// returns items of other namespaces, too. Items of cluster-scoped resources and items without `metadata.namespace`
    /// count as being in one of the namespaces.
    pub fn includes_namespace_of_item(&self, resource: &Resource, item: &Value) -> bool {
        let namespace = item["metadata"]["namespace"].as_str();
        resource.scope == Scope::Cluster
            || namespace.is_none_or(|namespace| self.namespaces.contains(namespace))
    }

    fn each_collection_of(&self, resource: &Arc<Resource>, reach: Reach) -> Vec<ListTarget> {
        let target = |namespace| ListTarget {
            resource: Arc::clone(resource),
            namespace,
        };
        match (resource.scope, reach) {
            (Scope::Cluster, _) | (Scope::Namespaced, Reach::Cluster) => vec![target(None)],
            (Scope::Namespaced, Reach::Namespace) => {
                self.namespaces.iter().cloned().map(Some).map(target).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_covers_kinds_in_its_namespaces_and_in_that_of_the_parent() {
        let kind = |name: &str, scope| Arc::new(Resource::with_regular_names("", "v1", name, scope));
        let set =
            |names: &[&str]| -> BTreeSet<String> { names.iter().map(|&name| name.to_owned()).collect() };
        let targets = ListTargets {
            resources: vec![
                kind("ConfigMap", Scope::Namespaced),
                kind("Secret", Scope::Namespaced),
                kind("Node", Scope::Cluster),
            ],
            namespaces: set(&["own", "kept", "left"]),
        };
        let lists = |record: &Record| -> Vec<String> {
            let outside = targets.outside_recorded_kinds_and_namespaces(record, Some("own"));
            let lists = outside
                .iter()
                .flat_map(|targets| targets.each_collection(Reach::Namespace));
            lists
                .map(|list| {
                    let namespace = list.namespace.unwrap_or_default();
                    format!("{}/{namespace}", list.resource.kind)
                })
                .collect()
        };
        let record = |kinds: &[&str], namespaces: &[&str]| Record {
            group_kinds: kinds.iter().map(|kind| GroupKind::new("", *kind)).collect(),
            additional_namespaces: set(namespaces),
        };
        let all = ["ConfigMap", "Secret", "Node"];
        assert_eq!(lists(&record(&all, &["kept", "left"])), [""; 0]);
        assert_eq!(lists(&record(&all, &["kept"])), ["ConfigMap/left", "Secret/left"]);
        assert_eq!(
            lists(&record(&["ConfigMap"], &["kept"])),
            [
                "Secret/kept",
                "Secret/left",
                "Secret/own",
                "Node/",
                "ConfigMap/left"
            ]
        );
    }
}
