//! The namespaces that may hold dependents of pruned objects.

use std::collections::BTreeSet;

use super::super::Plan;

/// The namespaces that may hold dependents of deleted objects. For the garbage collector, an owner in
/// another namespace is absent, and cluster-scoped objects have no namespaced owners.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DependentNamespaces<'p> {
    /// All namespaces, and cluster-scoped objects: an owner is cluster-scoped.
    Everywhere,
    /// These namespaces.
    In(BTreeSet<&'p str>),
}

impl<'p> DependentNamespaces<'p> {
    /// The namespaces that may hold dependents of a plan's prunes.
    pub fn prunes_of(plan: &'p Plan) -> Self {
        plan.all_prunes()
            .map(|live| live.key.namespace.as_deref())
            .collect::<Option<_>>()
            .map_or(Self::Everywhere, Self::In)
    }

    /// Returns whether an object in this namespace, or a cluster-scoped one, may be a dependent.
    pub fn holds(&self, namespace: Option<&str>) -> bool {
        match self {
            Self::Everywhere => true,
            Self::In(namespaces) => namespace.is_some_and(|namespace| namespaces.contains(namespace)),
        }
    }
}
