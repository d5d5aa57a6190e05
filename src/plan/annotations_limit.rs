//! The limit of a parent's annotations, which the server sets for all annotations of an object together.

use super::Refusal;
use crate::model::applyset::parent::{ANNOTATIONS_LIMIT, Pairs};
use crate::model::applyset::{
    ADDITIONAL_NAMESPACES_ANNOTATION, GROUP_KINDS_ANNOTATION, Record, TOOLING_ANNOTATION,
};
use crate::model::history_annotation::{HISTORY_ANNOTATION, ROOM_FOR_RUNS};
use crate::model::set::Set;

/// Refuses a record that does not fit beside the parent's other annotations. `record` is the widest that
/// the run writes, and `annotations` are all those that the parent has now.
pub fn annotations_too_large(record: &Record, set: &Set, annotations: &Pairs) -> Option<Refusal> {
    let own = [
        (TOOLING_ANNOTATION, set.tooling.to_string()),
        (GROUP_KINDS_ANNOTATION, record.group_kinds_value()),
        (ADDITIONAL_NAMESPACES_ANNOTATION, record.namespaces_value()),
    ];
    let own_size: usize = own.iter().map(|(key, value)| key.len() + value.len()).sum();
    let others = annotations.iter().filter(|(key, _)| *key != HISTORY_ANNOTATION);
    let others_size: usize = others
        .filter(|(key, _)| own.iter().all(|(own, _)| own != key))
        .map(|(key, value)| key.len() + value.len())
        .sum();
    let history = annotations.get(HISTORY_ANNOTATION).map_or(0, String::len);
    let history_size = HISTORY_ANNOTATION.len() + history.max(ROOM_FOR_RUNS);
    let size = own_size + others_size + history_size;
    (size > ANNOTATIONS_LIMIT).then(|| Refusal::AnnotationsTooLarge {
        parent: set.parent.clone(),
        size,
        limit: ANNOTATIONS_LIMIT,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::fixtures::{policy, set};
    use super::super::{Observed, fixtures, plan};
    use super::*;
    use crate::manifest::desired::Desired;

    #[test]
    fn a_record_that_does_not_fit_is_refused() {
        let manifests = Desired {
            members: vec![fixtures::desired("ConfigMap", Some("shop"), "a")],
            ..Desired::default()
        };
        let with_note = |length: usize| Observed {
            parent_annotations: BTreeMap::from([("note".to_owned(), "x".repeat(length))]),
            ..Observed::default()
        };
        let refusals = |length| plan(&set(), &manifests, &with_note(length), &policy()).refusals;
        assert_eq!(refusals(1000), []);
        assert!(matches!(
            refusals(ANNOTATIONS_LIMIT - 10)[..],
            [Refusal::AnnotationsTooLarge { .. }]
        ));
    }
}
