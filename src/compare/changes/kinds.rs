//! The built-in kinds that change detection knows, and which names of their
//! fields are atomic or granular.
//!
//! The tables say what the `OpenAPI` of Kubernetes 1.36 says of these kinds
//! (`x-kubernetes-map-type`, `x-kubernetes-list-type`). Names that are one thing
//! here and another there are left out.

use super::shape::Relation;

/// The kind that a field belongs to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) api_version: &'a str,
    pub(super) kind: &'a str,
}

impl Place<'_> {
    /// Whether the tables below were made for this kind.
    pub(super) fn is_built_in(self) -> bool {
        BUILT_IN.binary_search(&(self.api_version, self.kind)).is_ok()
    }

    /// Whether a main-resource write of this built-in kind ignores the status.
    pub(super) fn ignores_status(self) -> bool {
        self.is_built_in() && WITH_STATUS.contains(&self.kind)
    }
}

/// Whether objects of this kind are compared by the tables below rather than by the
/// definition of a custom resource.
pub fn is_built_in(api_version: &str, kind: &str) -> bool {
    Place { api_version, kind }.is_built_in()
}

/// How maps of this name are owned.
pub(super) fn map_named(name: &str) -> Relation {
    named(name, ATOMIC_MAPS, GRANULAR_MAPS)
}

/// How lists of this name are owned.
pub(super) fn list_named(name: &str) -> Relation {
    named(name, ATOMIC_LISTS, GRANULAR_LISTS)
}

fn named(name: &str, atomic: &[&str], granular: &[&str]) -> Relation {
    if atomic.binary_search(&name).is_ok() {
        Relation::Atomic
    } else if granular.binary_search(&name).is_ok() {
        Relation::Granular
    } else {
        Relation::Unknown
    }
}

/// The kinds whose fields the tables of names are right for, sorted.
const BUILT_IN: &[(&str, &str)] = &[
    ("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"),
    ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy"),
    (
        "admissionregistration.k8s.io/v1",
        "ValidatingAdmissionPolicyBinding",
    ),
    (
        "admissionregistration.k8s.io/v1",
        "ValidatingWebhookConfiguration",
    ),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    ("apps/v1", "DaemonSet"),
    ("apps/v1", "Deployment"),
    ("apps/v1", "ReplicaSet"),
    ("apps/v1", "StatefulSet"),
    ("autoscaling/v1", "HorizontalPodAutoscaler"),
    ("autoscaling/v2", "HorizontalPodAutoscaler"),
    ("batch/v1", "CronJob"),
    ("batch/v1", "Job"),
    ("coordination.k8s.io/v1", "Lease"),
    ("discovery.k8s.io/v1", "EndpointSlice"),
    ("networking.k8s.io/v1", "Ingress"),
    ("networking.k8s.io/v1", "IngressClass"),
    ("networking.k8s.io/v1", "NetworkPolicy"),
    ("node.k8s.io/v1", "RuntimeClass"),
    ("policy/v1", "PodDisruptionBudget"),
    ("rbac.authorization.k8s.io/v1", "ClusterRole"),
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"),
    ("rbac.authorization.k8s.io/v1", "Role"),
    ("rbac.authorization.k8s.io/v1", "RoleBinding"),
    ("scheduling.k8s.io/v1", "PriorityClass"),
    ("storage.k8s.io/v1", "CSIDriver"),
    ("storage.k8s.io/v1", "StorageClass"),
    ("v1", "ConfigMap"),
    ("v1", "LimitRange"),
    ("v1", "Namespace"),
    ("v1", "PersistentVolume"),
    ("v1", "PersistentVolumeClaim"),
    ("v1", "Pod"),
    ("v1", "PodTemplate"),
    ("v1", "ReplicationController"),
    ("v1", "ResourceQuota"),
    ("v1", "Secret"),
    ("v1", "Service"),
    ("v1", "ServiceAccount"),
];

/// Built-in kinds whose status a write of the object itself resets
/// (`GetResetFields` of their strategies).
const WITH_STATUS: &[&str] = &[
    "CronJob",
    "CustomResourceDefinition",
    "DaemonSet",
    "Deployment",
    "HorizontalPodAutoscaler",
    "Ingress",
    "Job",
    "Namespace",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Pod",
    "PodDisruptionBudget",
    "ReplicaSet",
    "ReplicationController",
    "ResourceQuota",
    "Service",
    "StatefulSet",
    "ValidatingAdmissionPolicy",
];

/// Names of maps that are atomic wherever these kinds have them, sorted.
const ATOMIC_MAPS: &[&str] = &[
    "configMapKeyRef",
    "controllerExpandSecretRef",
    "controllerPublishSecretRef",
    "dataSource",
    "fieldRef",
    "fileKeyRef",
    "labelSelector",
    "matchConstraints",
    "matchResources",
    "namespaceSelector",
    "nodeExpandSecretRef",
    "nodePublishSecretRef",
    "nodeSelector",
    "nodeStageSecretRef",
    "objectSelector",
    "paramKind",
    "paramRef",
    "podSelector",
    "port",
    "required",
    "requiredDuringSchedulingIgnoredDuringExecution",
    "resource",
    "resourceFieldRef",
    "roleRef",
    "scopeSelector",
    "secretKeyRef",
    "secretRef",
    "selector",
];

/// Names of maps that are granular wherever these kinds have them, sorted.
const GRANULAR_MAPS: &[&str] = &[
    "affinity",
    "aggregationRule",
    "annotations",
    "appArmorProfile",
    "behavior",
    "binaryData",
    "capabilities",
    "capacity",
    "claimRef",
    "clientConfig",
    "configMap",
    "csi",
    "data",
    "dnsConfig",
    "emptyDir",
    "ephemeral",
    "hard",
    "hostPath",
    "httpGet",
    "jobTemplate",
    "labels",
    "lifecycle",
    "limits",
    "livenessProbe",
    "metadata",
    "nodeAffinity",
    "parameters",
    "persistentVolumeClaim",
    "persistentVolumeClaimRetentionPolicy",
    "podAffinity",
    "podAntiAffinity",
    "projected",
    "readinessProbe",
    "requests",
    "resources",
    "rollingUpdate",
    "scaleDown",
    "scaleUp",
    "seLinuxOptions",
    "seccompProfile",
    "secret",
    "securityContext",
    "spec",
    "startupProbe",
    "strategy",
    "template",
    "updateStrategy",
    "valueFrom",
    "volumeClaimTemplate",
];

/// Names of lists that are atomic wherever these kinds have them, sorted.
const ATOMIC_LISTS: &[&str] = &[
    "accessModes",
    "add",
    "admissionReviewVersions",
    "allowedTopologies",
    "args",
    "auditAnnotations",
    "categories",
    "clusterIPs",
    "clusterRoleSelectors",
    "command",
    "conversionReviewVersions",
    "drop",
    "egress",
    "endpoints",
    "envFrom",
    "externalIPs",
    "hostnames",
    "httpHeaders",
    "ingress",
    "ipFamilies",
    "items",
    "limits",
    "loadBalancerSourceRanges",
    "matchLabelKeys",
    "metrics",
    "mountOptions",
    "nameservers",
    "options",
    "policies",
    "policyTypes",
    "preferredDuringSchedulingIgnoredDuringExecution",
    "readinessGates",
    "requiredDuringSchedulingIgnoredDuringExecution",
    "resizePolicy",
    "rules",
    "scopes",
    "searches",
    "shortNames",
    "sources",
    "subjects",
    "supplementalGroups",
    "sysctls",
    "tls",
    "tokenRequests",
    "tolerations",
    "validations",
    "versions",
    "volumeClaimTemplates",
];

/// Names of lists that are associative wherever these kinds have them, sorted.
const GRANULAR_LISTS: &[&str] = &[
    "claims",
    "containers",
    "env",
    "ephemeralContainers",
    "hostAliases",
    "initContainers",
    "matchConditions",
    "ownerReferences",
    "ports",
    "resourceClaims",
    "schedulingGates",
    "secrets",
    "topologySpreadConstraints",
    "validationActions",
    "variables",
    "volumeDevices",
    "volumeMounts",
    "volumes",
    "webhooks",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_sorted_so_that_they_can_be_searched() {
        for table in [ATOMIC_MAPS, GRANULAR_MAPS, ATOMIC_LISTS, GRANULAR_LISTS] {
            assert!(table.is_sorted(), "{table:?}");
        }
        assert!(BUILT_IN.is_sorted(), "{BUILT_IN:?}");
    }

    #[test]
    fn no_name_is_both_atomic_and_granular() {
        assert!(ATOMIC_MAPS.iter().all(|name| !GRANULAR_MAPS.contains(name)));
        assert!(ATOMIC_LISTS.iter().all(|name| !GRANULAR_LISTS.contains(name)));
    }
}
