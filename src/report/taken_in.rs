//! Notes about objects that existed outside of any set and become members: one line for each reason.

use std::collections::BTreeMap;

use crate::event::ObjectOutcome;
use crate::model::identity::ObjectKey;
use crate::model::text::listed;

/// The objects that were taken in so far, by reason.
#[derive(Debug, Default)]
pub(super) struct TakenIn(BTreeMap<String, Vec<ObjectKey>>);

impl TakenIn {
    /// Adds the object of this outcome if it was taken in.
    pub(super) fn note(&mut self, outcome: &ObjectOutcome) {
        if outcome.joined_set() {
            let objects = self.0.entry(outcome.reason.clone()).or_default();
            objects.push(outcome.subject.key());
        }
    }

    /// One line for each reason.
    pub(super) fn lines(&self) -> Vec<String> {
        let lines = self.0.iter().map(|(reason, keys)| match keys.as_slice() {
            [key] => format!("{key} {reason}"),
            keys => format!("each of these {} objects {reason}: {}", keys.len(), listed(keys)),
        });
        lines.collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::event::{Action, Subject};
    use crate::model::identity::GroupKind;
    use crate::model::resource::{Resource, Scope};

    fn outcome(number: usize, reason: &str) -> ObjectOutcome {
        let key = ObjectKey {
            group_kind: GroupKind::new("", "ConfigMap"),
            namespace: Some("shop".to_owned()),
            name: format!("map-{number}"),
        };
        let resource = Arc::new(Resource::regular("", "v1", "ConfigMap", Scope::Namespaced));
        ObjectOutcome {
            taken_in: true,
            ..ObjectOutcome::with_reason(Subject::new(&key, &resource, None), Action::Configured, reason)
        }
    }

    #[test]
    fn many_objects_take_one_line() {
        let mut found = TakenIn::default();
        found.note(&ObjectOutcome {
            taken_in: false,
            ..outcome(0, "changed")
        });
        found.note(&ObjectOutcome {
            action: Action::Failed,
            ..outcome(0, "existed before; pruned")
        });
        assert_eq!(found.lines(), [""; 0]);
        found.note(&outcome(0, "existed before; kept"));
        assert_eq!(
            found.lines(),
            ["configmap/map-0 in namespace shop existed before; kept"]
        );
        (1..=300).for_each(|number| found.note(&outcome(number, "existed before; pruned")));
        let lines = found.lines();
        assert_eq!(lines.len(), 2);
        let line = &lines[1];
        assert!(line.starts_with("each of these 300 objects existed before; pruned: configmap/map-1 in"));
        assert!(
            line.ends_with("configmap/map-10 in namespace shop and 290 more"),
            "{line}"
        );
    }
}
