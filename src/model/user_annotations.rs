//! Annotations and labels, mostly of other tools, by which users ask that one object is kept, pruned last, or
//! recreated.
//!
//! `plan` decides what that means for a run. An object that is kept remains in its set.

use std::collections::BTreeMap;

/// Argo CD's annotation for options of one object: a comma-separated list.
const SYNC_OPTIONS: &str = "argocd.argoproj.io/sync-options";

/// The annotations that keep objects, each with its values in lower case. Each entry of a comma-separated list is
/// compared, without regard to case and blanks: Argo CD has lists, and Helm and Flux ignore case. Where a tool reads
/// its value more strictly, this errs towards keeping the object.
const KEEP_ANNOTATIONS: [(&str, &[&str]); 12] = [
    ("helm.sh/resource-policy", &["keep"]),
    ("werf.io/resource-policy", &["keep", "skip-delete"]),
    ("werf.io/ownership", &["anyone"]),
    (
        SYNC_OPTIONS,
        &["prune=false", "delete=false", "prune=confirm", "delete=confirm"],
    ),
    ("kustomize.toolkit.fluxcd.io/prune", &["disabled"]),
    ("helm.toolkit.fluxcd.io/prune", &["disabled"]),
    ("fluxcd.controlplane.io/prune", &["disabled"]),
    ("action.timoni.sh/prune", &["disabled"]),
    ("cli-utils.sigs.k8s.io/on-remove", &["keep"]),
    ("client.lifecycle.config.k8s.io/deletion", &["detach"]),
    ("kapp.k14s.io/delete-strategy", &["orphan"]),
    ("kluctl.io/skip-delete", &["true"]),
];

/// The end of the keys that are read from labels, too: Flux, its operator and Timoni do so (`fluxcd/pkg/ssa`,
/// `AnyInMetadata`).
const SUFFIX_ALSO_READ_FROM_LABELS: &str = "/prune";

/// The entry of Argo CD's options that asks to prune the object last.
const PRUNE_LAST: &str = "PruneLast=true";

/// Flux's key for recreation, of a label or an annotation (`fluxcd/pkg/ssa`, `AnyInMetadata`).
const FLUX_FORCE: &str = "kustomize.toolkit.fluxcd.io/force";
/// The value of [`FLUX_FORCE`], which Flux compares without regard to case.
const FLUX_FORCE_ENABLED: &str = "enabled";

/// The two options that together make Argo CD recreate an object. With `Replace=true` alone, Argo CD updates by PUT;
/// `Force=true` alone has no effect.
const ARGO_CD_RECREATE: [&str; 2] = ["Force=true", "Replace=true"];

/// kapp's annotation for the strategy of updates.
const KAPP_STRATEGY: &str = "kapp.k14s.io/update-strategy";
/// The values of [`KAPP_STRATEGY`] that recreate an object.
const KAPP_RECREATE: [&str; 2] = ["fallback-on-replace", "always-replace"];

/// Returns the label or annotation by which the user asks not to delete an object, as `key: value`.
pub fn keep_annotation(labels: &BTreeMap<&str, &str>, annotations: &BTreeMap<&str, &str>) -> Option<String> {
    for (key, keep_values) in KEEP_ANNOTATIONS {
        let label = if key.ends_with(SUFFIX_ALSO_READ_FROM_LABELS) {
            labels.get(key)
        } else {
            None
        };
        for value in annotations.get(key).into_iter().chain(label) {
            if list_entries(value).any(|entry| keep_values.contains(&&*entry.to_lowercase())) {
                return Some(format!("{key}: {value}"));
            }
        }
    }
    None
}

/// The time at which a run prunes an object, relative to other prunes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PruneOrder {
    /// In the wave of the object's kind.
    #[default]
    Regular,
    /// After all other objects, and if the run waits for readiness, once the members are ready.
    Last,
}

impl PruneOrder {
    /// Reads the order from the annotations of an object. Entries of the list are compared without regard to case and
    /// blanks, as in [`keep_annotation`].
    pub fn from_annotations(annotations: &BTreeMap<&str, &str>) -> Self {
        let options = annotations.get(SYNC_OPTIONS).copied().unwrap_or_default();
        if list_entries(options).any(|option| option.eq_ignore_ascii_case(PRUNE_LAST)) {
            Self::Last
        } else {
            Self::Regular
        }
    }
}

/// Returns the label or annotation by which a manifest asks to delete and create an object that cannot be updated, as
/// `key: value`. Values are compared exactly as their tools compare them. [`keep_annotation`] may be lenient, because
/// it prevents a delete; this one allows a delete.
pub fn recreate_annotation(
    labels: &BTreeMap<&str, &str>,
    annotations: &BTreeMap<&str, &str>,
) -> Option<String> {
    for pairs in [annotations, labels] {
        if let Some(value) = pairs.get(FLUX_FORCE)
            && value.eq_ignore_ascii_case(FLUX_FORCE_ENABLED)
        {
            return Some(format!("{FLUX_FORCE}: {value}"));
        }
    }
    if let Some(options) = annotations.get(SYNC_OPTIONS)
        && ARGO_CD_RECREATE
            .iter()
            .all(|option| list_entries(options).any(|entry| entry == *option))
    {
        return Some(format!("{SYNC_OPTIONS}: {options}"));
    }
    let strategy = annotations.get(KAPP_STRATEGY)?;
    KAPP_RECREATE
        .contains(strategy)
        .then(|| format!("{KAPP_STRATEGY}: {strategy}"))
}

/// Returns the entries of a comma-separated list, without the blanks around them.
fn list_entries(value: &str) -> impl Iterator<Item = &str> {
    value.split(',').map(str::trim)
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
            ("fluxcd.controlplane.io/prune", "disabled", true),
            ("action.timoni.sh/prune", "disabled", true),
            ("werf.io/resource-policy", "skip-update, skip-delete", true),
            ("werf.io/resource-policy", "skip-create", false),
            ("werf.io/ownership", "anyone", true),
            ("werf.io/ownership", "release", false),
            ("cli-utils.sigs.k8s.io/on-remove", "keep", true),
            ("client.lifecycle.config.k8s.io/deletion", "detach", true),
            ("kapp.k14s.io/delete-strategy", "orphan", true),
            ("kluctl.io/skip-delete", "true", true),
            ("kluctl.io/skip-delete", "True", true),
            ("kluctl.io/skip-delete", "false", false),
        ];
        for (key, value, keeps) in table {
            let annotation = keep_annotation(&BTreeMap::new(), &BTreeMap::from([(key, value)]));
            assert_eq!(annotation.is_some(), keeps, "{key}: {value}");
        }
    }

    #[test]
    fn only_flux_marks_objects_by_label() {
        for (key, value, keeps) in [
            ("kustomize.toolkit.fluxcd.io/prune", "disabled", true),
            ("action.timoni.sh/prune", "disabled", true),
            ("helm.sh/resource-policy", "keep", false),
        ] {
            let annotation = keep_annotation(&BTreeMap::from([(key, value)]), &BTreeMap::new());
            assert_eq!(annotation.is_some(), keeps, "{key}");
        }
    }

    #[test]
    fn a_long_list_is_read_to_its_end() {
        let value = format!("{},Prune=false", "Validate=false,".repeat(1000));
        let annotations = BTreeMap::from([("argocd.argoproj.io/sync-options", value.as_str())]);
        assert!(keep_annotation(&BTreeMap::new(), &annotations).is_some());
    }

    #[test]
    fn only_the_option_of_argo_cd_says_last() {
        let table = [
            (SYNC_OPTIONS, "PruneLast=true", PruneOrder::Last),
            (SYNC_OPTIONS, "Validate=false, prunelast=True", PruneOrder::Last),
            (SYNC_OPTIONS, "PruneLast=false", PruneOrder::Regular),
            (SYNC_OPTIONS, "Prune=true", PruneOrder::Regular),
            (SYNC_OPTIONS, "", PruneOrder::Regular),
            ("example.com/sync-options", "PruneLast=true", PruneOrder::Regular),
        ];
        for (key, value, order) in table {
            let annotations = BTreeMap::from([(key, value)]);
            assert_eq!(
                PruneOrder::from_annotations(&annotations),
                order,
                "{key}: {value}"
            );
        }
    }

    #[test]
    fn annotations_are_read_as_their_tools_read_them() {
        let argo_cd = "argocd.argoproj.io/sync-options";
        let table = [
            ("kustomize.toolkit.fluxcd.io/force", "enabled", true),
            ("kustomize.toolkit.fluxcd.io/force", "Enabled", true),
            ("kustomize.toolkit.fluxcd.io/force", "disabled", false),
            ("kustomize.toolkit.fluxcd.io/force", "true", false),
            ("kustomize.toolkit.fluxcd.io/force", "", false),
            (argo_cd, "Force=true,Replace=true", true),
            (argo_cd, "Validate=false, Replace=true, Force=true", true),
            (argo_cd, "Replace=true", false),
            (argo_cd, "Force=true", false),
            (argo_cd, "Force=true,Replace=false", false),
            (argo_cd, "Force=trueReplace=true", false),
            ("kapp.k14s.io/update-strategy", "fallback-on-replace", true),
            ("kapp.k14s.io/update-strategy", "always-replace", true),
            ("kapp.k14s.io/update-strategy", "skip", false),
            ("kapp.k14s.io/update-strategy", "", false),
        ];
        for (key, value, expected) in table {
            let annotation = recreate_annotation(&BTreeMap::new(), &BTreeMap::from([(key, value)]));
            assert_eq!(annotation.is_some(), expected, "{key}: {value}");
            if let Some(entry) = annotation {
                assert_eq!(entry, format!("{key}: {value}"));
            }
        }
    }

    #[test]
    fn only_flux_recreates_objects_by_label() {
        for (key, value, expected) in [
            ("kustomize.toolkit.fluxcd.io/force", "enabled", true),
            ("kapp.k14s.io/update-strategy", "always-replace", false),
        ] {
            let annotation = recreate_annotation(&BTreeMap::from([(key, value)]), &BTreeMap::new());
            assert_eq!(annotation.is_some(), expected, "{key}");
        }
    }
}
