//! The order in which kinds are applied, as waves. Prunes use the reverse order.
//!
//! The API server accepts the objects of one wave in any order, so they are sent at the same time.

use crate::model::identity::{GroupKind, ObjectKey};

/// A wave of the order; `as usize` is its index, from first to last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Wave {
    /// Containers of other objects: namespaces and CRDs.
    Containers,
    /// Objects that limit which other objects the server admits: quotas, limits, address ranges of Services. They have
    /// a wave of their own because a limit takes effect late: only once a controller has written it into the status.
    Limits,
    /// Objects that have to exist before the Pods: those that other objects refer to (identities, permissions,
    /// configuration, storage, Services), and those that protect Pods from their start (`NetworkPolicy`,
    /// `PodDisruptionBudget`).
    Prerequisites,
    /// Everything else.
    Rest,
    /// Objects that can prevent other objects from being written: webhooks, admission policies, aggregated APIs. They
    /// come last, so that they cannot block the rest of the run.
    Admission,
}

impl Wave {
    /// All waves in the order of applying.
    pub(super) const ALL: [Self; 5] = [
        Self::Containers,
        Self::Limits,
        Self::Prerequisites,
        Self::Rest,
        Self::Admission,
    ];

    /// Returns the wave of a kind.
    pub(super) fn for_kind(group_kind: &GroupKind) -> Self {
        match (group_kind.group.as_str(), group_kind.kind.as_str()) {
            ("", "Namespace") | ("apiextensions.k8s.io", "CustomResourceDefinition") => Self::Containers,
            ("", "ResourceQuota" | "LimitRange") | ("networking.k8s.io", "ServiceCIDR") => Self::Limits,
            (
                "",
                "ServiceAccount"
                | "ConfigMap"
                | "Secret"
                | "PersistentVolume"
                | "PersistentVolumeClaim"
                // A Pod gets environment variables only of Services that exist when it starts.
                | "Service",
            )
            | ("storage.k8s.io" | "rbac.authorization.k8s.io" | "scheduling.k8s.io" | "node.k8s.io", _)
            // A NetworkPolicy or PodDisruptionBudget has to exist before the Pods, so that no Pod runs without it.
            | ("networking.k8s.io", "NetworkPolicy" | "IngressClass")
            | ("policy", "PodDisruptionBudget")
            | ("gateway.networking.k8s.io", "GatewayClass") => Self::Prerequisites,
            ("admissionregistration.k8s.io" | "apiregistration.k8s.io", _) => Self::Admission,
            _ => Self::Rest,
        }
    }
}

/// Returns the sort key for the order of applying: by wave, then by namespace, kind and name.
pub fn apply_sort_key(key: &ObjectKey) -> impl Ord + use<'_> {
    (
        Wave::for_kind(&key.group_kind),
        &key.namespace,
        &key.group_kind,
        &key.name,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_fall_into_their_waves() {
        let table = [
            ("", "Namespace", Wave::Containers),
            (
                "apiextensions.k8s.io",
                "CustomResourceDefinition",
                Wave::Containers,
            ),
            ("", "ResourceQuota", Wave::Limits),
            ("networking.k8s.io", "ServiceCIDR", Wave::Limits),
            ("networking.k8s.io", "IngressClass", Wave::Prerequisites),
            ("networking.k8s.io", "Ingress", Wave::Rest),
            ("networking.k8s.io", "NetworkPolicy", Wave::Prerequisites),
            ("policy", "PodDisruptionBudget", Wave::Prerequisites),
            ("", "ServiceAccount", Wave::Prerequisites),
            (
                "rbac.authorization.k8s.io",
                "ClusterRoleBinding",
                Wave::Prerequisites,
            ),
            ("", "Service", Wave::Prerequisites),
            ("apps", "Deployment", Wave::Rest),
            ("serving.knative.dev", "Service", Wave::Rest),
            ("example.com", "Secret", Wave::Rest),
            (
                "admissionregistration.k8s.io",
                "ValidatingWebhookConfiguration",
                Wave::Admission,
            ),
            ("apiregistration.k8s.io", "APIService", Wave::Admission),
        ];
        for (group, kind, wave) in table {
            assert_eq!(
                Wave::for_kind(&GroupKind::new(group, kind)),
                wave,
                "{kind}.{group}"
            );
        }
    }

    #[test]
    fn places_of_waves_follow_their_order() {
        for (place, wave) in Wave::ALL.into_iter().enumerate() {
            assert_eq!(wave as usize, place);
        }
    }
}
