//! The refusals of a plan, from all rules that stop a run before its first write.

use super::Refusal;
use crate::manifest::HookKind;
use crate::manifest::desired::Desired;
use crate::model::applyset::parent::{ANNOTATIONS_LIMIT, Pairs};
use crate::model::applyset::{
    ADDITIONAL_NAMESPACES_ANNOTATION, GROUP_KINDS_ANNOTATION, Record, TOOLING_ANNOTATION,
};
use crate::model::history_annotation::{HISTORY_ANNOTATION, PAST_RUNS_BYTES};
use crate::model::set::Set;
use crate::model::write_settings::Hooks;
use crate::plan::{Judge, Observed, Plan, Policy, Risk, Unowned, existing_objects, refuse_to_prune_all};

/// Finds the reasons for which the plan may not be carried out.
pub(in crate::plan) fn find_refusals(
    plan: &Plan,
    judge: &Judge<'_>,
    set: &Set,
    desired: &Desired,
    observed: &Observed,
    policy: &Policy,
) -> Vec<Refusal> {
    let mut refusals = Vec::new();
    refusals.extend(refuse_hooks(desired, policy.hooks));
    refusals.extend(refuse_to_prune_all::refuse_to_prune_all(
        plan, desired, observed, policy,
    ));
    if policy.take_ownership == Risk::Refused {
        refusals.extend(existing_objects::refuse_members_of_other_sets(
            set, desired, observed,
        ));
    }
    if policy.unowned == Unowned::Refused {
        refusals.extend(existing_objects::refuse_objects_in_no_set(desired, observed));
    }
    refusals.extend(plan.all_prunes().flat_map(|live| judge.refuse_to_delete(live)));
    if let Some(limit) = policy.max_prune
        && plan.count_prunes() > limit
    {
        refusals.push(Refusal::TooManyPrunes {
            objects: plan.all_prunes().map(|live| live.key.clone()).collect(),
            limit,
        });
    }
    refusals.extend(refuse_large_annotations(
        &plan.record_during,
        set,
        &observed.parent_annotations,
    ));
    refusals
}

/// Refuses hooks among the manifests, unless the user has chosen a treatment with `--hooks`. Only
/// hooks that Helm or Argo CD run during a release are refused, not tests, and not objects that Argo CD never creates.
pub fn refuse_hooks(desired: &Desired, hooks: Hooks) -> Option<Refusal> {
    if hooks != Hooks::Refused {
        return None;
    }
    let refused: Vec<String> = desired
        .hooks
        .iter()
        .filter(|manifest| manifest.hook.kind == HookKind::Lifecycle)
        .map(|manifest| format!("{}: {manifest}", manifest.position))
        .collect();
    (!refused.is_empty()).then_some(Refusal::HoldsHooks { hooks: refused })
}

/// Refuses a record that is too large for the parent, together with the parent's other annotations. `record` is the
/// widest record that the run writes, and `annotations` are the annotations that the parent has before the run.
pub fn refuse_large_annotations(record: &Record, set: &Set, annotations: &Pairs) -> Option<Refusal> {
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
    // The run adds itself to the history, so at least that much room is needed.
    let history_size = HISTORY_ANNOTATION.len() + history.max(PAST_RUNS_BYTES);
    let size = own_size + others_size + history_size;
    (size > ANNOTATIONS_LIMIT).then(|| Refusal::AnnotationsTooLarge {
        parent: set.parent.clone(),
        size,
        limit: ANNOTATIONS_LIMIT,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::desired::Desired;
    use crate::plan::fixtures::{policy, set};
    use crate::plan::{Observed, fixtures, plan};
    use std::collections::BTreeMap;

    #[test]
    fn an_object_with_several_refusals_counts_once() {
        let object = fixtures::live("PersistentVolumeClaim", Some("shop"), "data").key;
        let loses_data = Refusal::PrunesStorage {
            object: object.clone(),
        };
        let owns = Refusal::OwnsUndetachable {
            object: object.clone(),
            dependents: Vec::new(),
        };
        let refusals = [
            Refusal::NotAParent {
                parent: object.clone(),
            },
            owns,
            loses_data,
        ];
        let first = Refusal::first_by_object(&refusals);
        assert_eq!(first, BTreeMap::from([(&object, &refusals[1])]));
    }

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
