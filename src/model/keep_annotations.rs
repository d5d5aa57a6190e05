//! Annotations and labels by which users keep objects from being deleted, those of other tools
//! included.
//!
//! Pure. `plan` decides that such an object is kept, and remains in its set.

use std::collections::BTreeMap;

/// Each key, and its values that mean "keep". Values are compared without regard to case and blanks, as Helm and Flux do;
/// they may be lists, as Argo CD's are.
const KEEPING: [(&str, &[&str]); 8] = [
    ("helm.sh/resource-policy", &["keep"]),
    (
        "argocd.argoproj.io/sync-options",
        &["prune=false", "delete=false", "prune=confirm", "delete=confirm"],
    ),
    (FLUX_PRUNE, &["disabled"]),
    (FLUX_HELM_PRUNE, &["disabled"]),
    ("cli-utils.sigs.k8s.io/on-remove", &["keep"]),
    ("client.lifecycle.config.k8s.io/deletion", &["detach"]),
    ("kapp.k14s.io/delete-strategy", &["orphan"]),
    ("kluctl.io/skip-delete", &["true"]),
];

/// Flux reads labels and annotations alike (`fluxcd/pkg/ssa`, `AnyInMetadata`).
const FLUX_PRUNE: &str = "kustomize.toolkit.fluxcd.io/prune";
const FLUX_HELM_PRUNE: &str = "helm.toolkit.fluxcd.io/prune";

/// The label or annotation that keeps an object with these labels and annotations, as `key: value`.
pub fn keep_annotation(labels: &BTreeMap<&str, &str>, annotations: &BTreeMap<&str, &str>) -> Option<String> {
    KEEPING.iter().find_map(|(key, values)| {
        let label = labels
            .get(key)
            .filter(|_| [FLUX_PRUNE, FLUX_HELM_PRUNE].contains(key));
        let mut found = annotations.get(key).into_iter().chain(label);
        let value = found.find(|value| {
            let mut entries = value.split(',');
            entries.any(|entry| values.contains(&entry.trim().to_lowercase().as_str()))
        })?;
        Some(format!("{key}: {value}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_the_whole_field_keep_objects() {
        let table = [
            ("helm.sh/resource-policy", "keep", true),
            ("helm.sh/resource-policy", " Keep ", true),
            ("helm.sh/resource-policy", "delete", false),
            ("argocd.argoproj.io/sync-options", "Prune=false", true),
            (
                "argocd.argoproj.io/sync-options",
                "Validate=false, Delete=false",
                true,
            ),
            ("argocd.argoproj.io/sync-options", "Prune=confirm", true),
            ("argocd.argoproj.io/sync-options", "Prune=true", false),
            ("kustomize.toolkit.fluxcd.io/prune", "disabled", true),
            ("kustomize.toolkit.fluxcd.io/prune", "DISABLED", true),
            ("kustomize.toolkit.fluxcd.io/prune", "enabled", false),
            ("cli-utils.sigs.k8s.io/on-remove", "keep", true),
            ("client.lifecycle.config.k8s.io/deletion", "detach", true),
            ("kapp.k14s.io/delete-strategy", "orphan", true),
            ("kluctl.io/skip-delete", "true", true),
            ("kluctl.io/skip-delete", "True", true),
            ("kluctl.io/skip-delete", "false", false),
        ];
        for (key, value, keeps) in table {
            let found = keep_annotation(&BTreeMap::new(), &BTreeMap::from([(key, value)]));
            assert_eq!(found.is_some(), keeps, "{key}: {value}");
        }
    }

    #[test]
    fn only_flux_marks_objects_by_label() {
        for (key, value, keeps) in [
            ("kustomize.toolkit.fluxcd.io/prune", "disabled", true),
            ("helm.sh/resource-policy", "keep", false),
        ] {
            let found = keep_annotation(&BTreeMap::from([(key, value)]), &BTreeMap::new());
            assert_eq!(found.is_some(), keeps, "{key}");
        }
    }

    #[test]
    fn a_long_list_is_read_to_its_end() {
        let value = format!("{},Prune=false", "Validate=false,".repeat(1000));
        let annotations = BTreeMap::from([("argocd.argoproj.io/sync-options", value.as_str())]);
        assert!(keep_annotation(&BTreeMap::new(), &annotations).is_some());
    }
}
