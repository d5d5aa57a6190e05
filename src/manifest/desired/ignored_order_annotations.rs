//! Annotations of other tools that order objects, such as sync waves of Argo CD, weights of Helm's hooks, and rules of
//! kapp. They are ignored, with a warning.

use std::collections::BTreeMap;

use serde_json::Value;

use super::DesiredObject;
use crate::model::text::counted;

/// Annotations of other tools whose value is a number. Zero is the default, and asks for no order.
const ORDER_WEIGHTS: [&str; 2] = ["argocd.argoproj.io/sync-wave", "helm.sh/hook-weight"];
/// Annotations of kapp. With a suffix after a dot, one object can have several of them.
const ORDER_RULES: [&str; 2] = ["kapp.k14s.io/change-group", "kapp.k14s.io/change-rule"];

/// Returns one warning about all objects with annotations of other tools that ask for an order, which we ignore; `None`
/// if there are none.
pub(super) fn order_annotations_warning(members: &[DesiredObject]) -> Option<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for member in members {
        for annotation in order_annotations(member) {
            *counts.entry(annotation).or_default() += 1;
        }
    }
    if counts.is_empty() {
        return None;
    }
    let counts: Vec<String> = counts
        .into_iter()
        .map(|(annotation, count)| format!("{annotation} ({})", counted(count, "object")))
        .collect();
    Some(format!(
        "annotations that order objects are ignored: {}; objects are applied in the order of their kinds, \
         and config.kubernetes.io/depends-on is honored",
        counts.join(", ")
    ))
}

/// Returns the annotations of other tools with which this object asks for an order, each once.
fn order_annotations(member: &DesiredObject) -> Vec<&'static str> {
    if !ORDER_WEIGHTS
        .into_iter()
        .chain(ORDER_RULES)
        .any(|key| member.object.may_mention_key(key))
    {
        return Vec::new();
    }
    let metadata = member.object.metadata();
    let Some(annotations) = metadata.get("annotations").and_then(Value::as_object) else {
        return Vec::new();
    };
    let weights = ORDER_WEIGHTS.into_iter().filter(|key| {
        annotations
            .get(*key)
            .and_then(Value::as_str)
            .is_some_and(|value| value.trim() != "0")
    });
    let rules = ORDER_RULES.into_iter().filter(|rule| {
        annotations.keys().any(|key| {
            key.strip_prefix(rule)
                .is_some_and(|suffix| suffix.is_empty() || suffix.starts_with('.'))
        })
    });
    weights.chain(rules).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::object::Object;
    use crate::plan::fixtures::desired;

    fn with(annotations: &Value) -> DesiredObject {
        DesiredObject {
            object: Object::from(&json!({"metadata": {"name": "a", "annotations": annotations}})),
            ..desired("ConfigMap", Some("shop"), "a")
        }
    }

    #[test]
    fn annotations_that_ask_for_an_order_are_found() {
        for (annotations, expected) in [
            (
                json!({"argocd.argoproj.io/sync-wave": "-1"}),
                &["argocd.argoproj.io/sync-wave"][..],
            ),
            (json!({"argocd.argoproj.io/sync-wave": "0"}), &[]),
            (json!({"helm.sh/hook-weight": "5"}), &["helm.sh/hook-weight"]),
            (json!({"helm.sh/hook-weight": " 0 "}), &[]),
            (
                json!({"kapp.k14s.io/change-rule.db": "upsert after upserting db", "kapp.k14s.io/change-rule": "x"}),
                &["kapp.k14s.io/change-rule"],
            ),
            (
                json!({"kapp.k14s.io/change-group": "db"}),
                &["kapp.k14s.io/change-group"],
            ),
            (json!({"kapp.k14s.io/change-rules": "x"}), &[]),
            (json!({"config.kubernetes.io/depends-on": "/Secret/a"}), &[]),
        ] {
            assert_eq!(order_annotations(&with(&annotations)), expected, "{annotations}");
        }
    }

    #[test]
    fn one_warning_counts_all_of_them() {
        assert_eq!(order_annotations_warning(&[with(&json!({}))]), None);
        let members = [
            with(&json!({"argocd.argoproj.io/sync-wave": "1", "kapp.k14s.io/change-group": "db"})),
            with(&json!({"argocd.argoproj.io/sync-wave": "2"})),
        ];
        let warning = order_annotations_warning(&members).expect("a warning");
        let counts = "argocd.argoproj.io/sync-wave (2 objects), kapp.k14s.io/change-group (1 object);";
        assert!(warning.contains(counts), "{warning}");
    }
}
