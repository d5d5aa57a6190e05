//! Checks that the rules of Flux's library run as published.
//!
//! `flux_library.yaml` is from `content/en/flux/cheatsheets/cel-healthchecks.md` of
//! github.com/fluxcd/website, under the Apache License 2.0.

use serde_json::{Value, json};

use super::super::State::{self, Current, Failed, InProgress};
use super::*;

const LIBRARY: &str = include_str!("flux_library.yaml");

fn condition(kind: &str, status: &str, reason: &str) -> Value {
    json!({"metadata": {"generation": 2}, "status": {"conditions": [
        {"type": "Other", "status": "Unknown"},
        {"type": kind, "status": status, "reason": reason, "observedGeneration": 2},
    ]}})
}

#[test]
fn every_rule_of_the_library_judges() {
    let rules = RuleSet::read(LIBRARY, "library.yaml").expect("the library");
    let ceph = |health: &str| json!({"status": {"ceph": {"health": health}}});
    let mut judged: Vec<(&str, Value, State)> = vec![
        ("CephCluster.ceph.rook.io", ceph("HEALTH_OK"), Current),
        ("CephCluster.ceph.rook.io", ceph("HEALTH_WARN"), InProgress),
        ("CephCluster.ceph.rook.io", ceph("HEALTH_ERR"), Failed),
        ("CephCluster.ceph.rook.io", json!({"status": {}}), InProgress),
        (
            "Role.iam.aws.crossplane.io",
            condition("Synced", "False", "ReconcileError"),
            Failed,
        ),
        (
            "FluxInstance.fluxcd.controlplane.io",
            condition("Stalled", "True", "Broken"),
            Failed,
        ),
    ];
    for (kind, decisive, has_failures) in [
        ("Cluster.cluster.x-k8s.io", "Ready", true),
        ("ClusterIssuer.cert-manager.io", "Ready", true),
        ("ClusterSecretStore.external-secrets.io", "Ready", true),
        ("Provider.pkg.crossplane.io", "Healthy", true),
        ("Role.iam.aws.crossplane.io", "Ready", false),
        ("ResourceSet.fluxcd.controlplane.io", "Ready", false),
        ("ScaledObject.keda.sh", "Ready", true),
        ("SealedSecret.bitnami.com", "Synced", true),
    ] {
        judged.push((kind, condition(decisive, "True", ""), Current));
        judged.push((kind, condition(decisive, "Unknown", ""), InProgress));
        judged.push((kind, json!({}), InProgress));
        if has_failures {
            judged.push((kind, condition(decisive, "False", ""), Failed));
        }
    }
    let mut seen = std::collections::BTreeSet::new();
    for (name, object, expected) in judged {
        let (kind, group) = name.split_once('.').expect("a group");
        // As in Flux, `all` is true of a list that the filter has emptied.
        let verdict = rules.judge(&object, &GroupKind::new(group, kind)).expect(name);
        if name.starts_with("Role") && object["status"]["conditions"][1]["type"] == "Ready" {
            assert_eq!(verdict.state, Failed, "{name}: {object}");
        } else {
            assert_eq!(verdict.state, expected, "{name}: {object}: {}", verdict.reason);
        }
        seen.insert(verdict.origin.to_string());
    }
    let all: usize = rules.by_group.values().map(Vec::len).sum();
    assert_eq!(seen.len(), all, "{seen:?}");
}
