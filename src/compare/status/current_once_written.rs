//! The kinds whose objects are Current as soon as they are written, so that a wait need not read them.

use super::built_in_kinds::{KindRule, is_built_in_group, rule_of_kind};
use super::{BuiltInRules, RuleSet, StatusRules};
use crate::model::identity::GroupKind;
use crate::model::resource::Subresource;

/// What a write did with an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteOutcome {
    /// The object did not exist before.
    Created,
    /// The object existed.
    Changed,
}

impl StatusRules {
    /// Returns whether objects of a kind are Current as soon as they are written, so that a wait need not read them: no
    /// rule judges the kind, and its objects have no status.
    ///
    /// A custom kind without the subresource `status` may have a status nevertheless. A new object has none yet, but an
    /// object that is changed may, so it is read.
    pub fn are_current_once_written(
        &self,
        group_kind: &GroupKind,
        status_subresource: Subresource,
        outcome: WriteOutcome,
    ) -> bool {
        let has_rule_of_user = self.own.as_ref().is_some_and(|own| own.covers(group_kind));
        if status_subresource == Subresource::Listed || has_rule_of_user {
            return false;
        }
        if is_built_in_group(&group_kind.group) {
            return matches!(rule_of_kind(group_kind), None | Some(KindRule::HoldsData));
        }
        // The rules that come with the program are about custom kinds.
        let has_built_in_rule = self.built_in == BuiltInRules::Used && RuleSet::built_in().covers(group_kind);
        outcome == WriteOutcome::Created && !has_built_in_rule
    }
}

#[cfg(test)]
mod tests {
    use super::super::JobGoal;
    use super::*;

    #[test]
    fn objects_are_current_once_written_if_nothing_can_report_on_them() {
        use Subresource::{Listed, Unlisted};
        use WriteOutcome::{Changed, Created};
        let table = [
            ("", "ConfigMap", Unlisted, Changed, true),
            ("", "Secret", Unlisted, Created, true),
            ("", "ServiceAccount", Unlisted, Changed, true),
            ("rbac.authorization.k8s.io", "Role", Unlisted, Changed, true),
            ("apps", "Deployment", Listed, Created, false),
            // Discovery was not asked.
            ("apps", "Deployment", Unlisted, Created, false),
            ("batch", "Job", Unlisted, Created, false),
            ("networking.k8s.io", "Ingress", Listed, Changed, false),
            ("example.com", "Widget", Unlisted, Created, true),
            // A controller may have reported on the object before this write.
            ("example.com", "Widget", Unlisted, Changed, false),
            ("example.com", "Widget", Listed, Created, false),
        ];
        for (group, kind, subresource, outcome, expected) in table {
            let is_current = StatusRules::default().are_current_once_written(
                &GroupKind::new(group, kind),
                subresource,
                outcome,
            );
            assert_eq!(is_current, expected, "{kind} {subresource:?} {outcome:?}");
        }
        let own = "- apiVersion: example.com/v1\n  kind: Widget\n  current: object.spec.size > 1\n";
        let own = RuleSet::read(own, "rules.yaml").expect("rules");
        let rules = StatusRules {
            own: Some(std::sync::Arc::new(own)),
            built_in: BuiltInRules::Used,
            jobs: JobGoal::Started,
        };
        assert!(!rules.are_current_once_written(&GroupKind::new("example.com", "Widget"), Unlisted, Created));
    }
}
