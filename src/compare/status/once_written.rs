//! Kinds whose objects are Current as soon as they are written.

use serde_json::Value;

use super::built_in_kinds::{is_built_in_group, readiness};
use super::object::Object;
use super::{BuiltInRules, RuleSet, StatusRules};
use crate::model::identity::GroupKind;
use crate::model::resource::Subresource;

/// What a write did with an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// It did not exist before.
    Created,
    /// It existed.
    Changed,
}

impl StatusRules {
    /// Returns whether objects of a kind are Current as soon as they are written, whatever else happens:
    /// no rule judges them, and they have no status. An object that is changed may carry signs that no
    /// subresource holds, so this is known of custom kinds only for new objects.
    pub fn need_no_look(&self, group_kind: &GroupKind, subresource: Subresource, written: Written) -> bool {
        if subresource == Subresource::Listed || self.own.as_ref().is_some_and(|own| own.covers(group_kind)) {
            return false;
        }
        if is_built_in_group(&group_kind.group) {
            return readiness(Object(&Value::Null), group_kind, self.jobs)
                .is_none_or(|_| has_only_content(group_kind));
        }
        let is_ruled = self.built_in == BuiltInRules::Used && RuleSet::built_in().covers(group_kind);
        written == Written::Created && !is_ruled
    }
}

/// Returns whether objects of a kind of Kubernetes are read by others, and have no state of their own.
pub(super) fn has_only_content(group_kind: &GroupKind) -> bool {
    let (group, kind) = (group_kind.group.as_str(), group_kind.kind.as_str());
    matches!((group, kind), ("", "ConfigMap" | "Secret"))
}

#[cfg(test)]
mod tests {
    use super::super::{Jobs, RuleSet};
    use super::*;

    #[test]
    fn only_what_nothing_reports_on_needs_no_look() {
        use Subresource::{Listed, Unlisted};
        use Written::{Changed, Created};
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
            // What wrote it before may have left signs.
            ("example.com", "Widget", Unlisted, Changed, false),
            ("example.com", "Widget", Listed, Created, false),
        ];
        for (group, kind, subresource, written, expected) in table {
            let needs_none =
                StatusRules::default().need_no_look(&GroupKind::new(group, kind), subresource, written);
            assert_eq!(needs_none, expected, "{kind} {subresource:?} {written:?}");
        }
        let own = "- apiVersion: example.com/v1\n  kind: Widget\n  current: object.spec.size > 1\n";
        let own = RuleSet::read(own, "rules.yaml").expect("rules");
        let rules = StatusRules {
            own: Some(std::sync::Arc::new(own)),
            built_in: BuiltInRules::Used,
            jobs: Jobs::Started,
        };
        assert!(!rules.need_no_look(&GroupKind::new("example.com", "Widget"), Unlisted, Created));
    }
}
