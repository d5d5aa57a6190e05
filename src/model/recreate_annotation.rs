//! Annotations and labels by which manifests of other tools ask to delete and create an object that
//! cannot be updated.
//!
//! Pure. Unlike keep annotations, these allow a delete, so nothing that only resembles one counts.

use std::collections::BTreeMap;

/// Flux reads labels and annotations alike, without regard to case (`fluxcd/pkg/ssa`, `AnyInMetadata`).
const FLUX: (&str, &str) = ("kustomize.toolkit.fluxcd.io/force", "enabled");

/// Argo CD's list of options. `Replace=true` alone updates by PUT, and `Force=true` alone means nothing.
const ARGO_CD: (&str, [&str; 2]) = ("argocd.argoproj.io/sync-options", ["Force=true", "Replace=true"]);

/// kapp's strategies that replace an object, and its name for the strategy.
const KAPP: (&str, [&str; 2]) = (
    "kapp.k14s.io/update-strategy",
    ["fallback-on-replace", "always-replace"],
);

/// Returns the label or annotation of a manifest with these labels and annotations, as `key: value`.
pub fn recreate_annotation(
    labels: &BTreeMap<&str, &str>,
    annotations: &BTreeMap<&str, &str>,
) -> Option<String> {
    let both = [annotations, labels];
    let mut of_flux = both.iter().filter_map(|pairs| pairs.get(FLUX.0));
    if let Some(value) = of_flux.find(|value| value.eq_ignore_ascii_case(FLUX.1)) {
        return Some(format!("{}: {value}", FLUX.0));
    }
    if let Some(options) = annotations.get(ARGO_CD.0) {
        let entries: Vec<&str> = options.split(',').map(str::trim).collect();
        if ARGO_CD.1.iter().all(|option| entries.contains(option)) {
            return Some(format!("{}: {options}", ARGO_CD.0));
        }
    }
    let strategy = annotations.get(KAPP.0)?;
    KAPP.1
        .contains(strategy)
        .then(|| format!("{}: {strategy}", KAPP.0))
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let found = recreate_annotation(&BTreeMap::new(), &BTreeMap::from([(key, value)]));
            assert_eq!(found.is_some(), expected, "{key}: {value}");
            if let Some(entry) = found {
                assert_eq!(entry, format!("{key}: {value}"));
            }
        }
    }

    #[test]
    fn only_flux_marks_objects_by_label() {
        for (key, value, expected) in [
            ("kustomize.toolkit.fluxcd.io/force", "enabled", true),
            ("kapp.k14s.io/update-strategy", "always-replace", false),
        ] {
            let found = recreate_annotation(&BTreeMap::from([(key, value)]), &BTreeMap::new());
            assert_eq!(found.is_some(), expected, "{key}");
        }
    }
}
