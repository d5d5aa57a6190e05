//! The annotation by which users ask for an object to be pruned last: Argo CD's `PruneLast=true`.
//!
//! Pure. `plan` decides what that means for the other prunes of a run.

use std::collections::BTreeMap;

/// Argo CD's annotation for options of one object, a list.
const SYNC_OPTIONS: &str = "argocd.argoproj.io/sync-options";
const PRUNE_LAST: &str = "prunelast=true";

/// The place of an object among the prunes of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PruneOrder {
    /// In the wave of its kind.
    #[default]
    Regular,
    /// After all others, and after the members are ready if the run waits for that.
    Last,
}

impl PruneOrder {
    /// Reads the place from the annotations of an object. Entries of the list are compared without
    /// regard to case and blanks, like the annotations that keep objects.
    pub fn from_annotations(annotations: &BTreeMap<&str, &str>) -> Self {
        let options = annotations.get(SYNC_OPTIONS).copied().unwrap_or_default();
        let mut words = options.split(',');
        if words.any(|option| option.trim().eq_ignore_ascii_case(PRUNE_LAST)) {
            Self::Last
        } else {
            Self::Regular
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
