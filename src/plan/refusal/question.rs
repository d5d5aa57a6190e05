//! The question that asks the user to confirm a refusal.

use std::collections::BTreeMap;

use super::Refusal;
use super::text::outside;
use crate::model::identity::ObjectKey;
use crate::model::message::Message;
use crate::model::text::counted;

impl Refusal {
    /// Returns the question. Many objects are counted by kind and namespace.
    pub fn question(&self) -> Message {
        if let Self::ReachesOutside {
            inventory,
            home,
            objects,
        } = self
        {
            return Message::new(format!(
                "inventory {inventory} names {}:",
                outside(home.as_deref(), objects)
            ))
            .with_details(objects.iter().map(ToString::to_string));
        }
        if let Self::ChangesSet {
            parent,
            applies,
            prunes,
            unchanged,
        } = self
        {
            let lines = |verb: &'static str, keys: &'_ [ObjectKey]| -> Vec<String> {
                keys.iter().map(|key| format!("{verb} {key}")).collect()
            };
            let mut details = shortened(lines("apply", applies));
            details.extend(lines("prune", prunes));
            let text = format!(
                "the set of {parent} would change: {} to apply, {} to prune, {unchanged} unchanged",
                applies.len(),
                prunes.len(),
            );
            return Message::new(text).with_details(details);
        }
        let Self::DeletesSet { parent, objects } = self else {
            return self.to_string().into();
        };
        let mut counts: BTreeMap<(Option<&String>, String), usize> = BTreeMap::new();
        for key in objects {
            *counts
                .entry((key.namespace.as_ref(), key.group_kind.to_string()))
                .or_default() += 1;
        }
        let lines = counts.into_iter().map(|((namespace, kind), count)| {
            let place = namespace.map_or_else(String::new, |name| format!(" in namespace {name}"));
            format!("{count} {kind}{place}")
        });
        Message::new(format!(
            "the set of {parent} would be deleted with {}{}",
            counted(objects.len(), "object"),
            if objects.is_empty() { "" } else { ":" }
        ))
        .with_details(lines)
    }
}

/// The most applies that a question lists. It lists every prune.
const SHOWN: usize = 50;

fn shortened(mut lines: Vec<String>) -> Vec<String> {
    let more = lines.len().saturating_sub(SHOWN);
    if more > 0 {
        lines.truncate(SHOWN);
        lines.push(format!("apply {more} more"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::identity::GroupKind;

    #[test]
    fn a_question_about_an_inventory_shows_every_object() {
        let objects = (0..12).map(|number| ObjectKey {
            group_kind: GroupKind::new("", "ConfigMap"),
            namespace: Some("away".to_owned()),
            name: number.to_string(),
        });
        let refusal = Refusal::ReachesOutside {
            inventory: "helm/web".to_owned(),
            home: Some("shop".to_owned()),
            objects: objects.collect(),
        };
        let question = refusal.question();
        assert_eq!(
            question.text,
            "inventory helm/web names 12 objects outside of namespace shop:"
        );
        assert_eq!(question.details.len(), 12);
        assert_eq!(question.details[11], "configmap/11 in namespace away");
    }
}
