//! Avoids repetition: a hint is printed once, below the first message that has it. Of similar messages only the first
//! are printed, and the others are counted; equal warnings are one line.

use std::collections::{BTreeMap, BTreeSet};

use crate::event::ObjectOutcome;
use crate::model::identity::ObjectKey;
use crate::model::message::Message;
use crate::model::text::{counted, first_lines_and_more, first_names_and_more};
use crate::report::output::print_message;
use crate::report::style::Colors;
use crate::report::text_lines::Label;

/// The number of messages of one group that are printed in full.
const SHOWN_PER_GROUP: usize = 3;

/// The hints, messages and warnings of a run so far.
#[derive(Debug, Default)]
pub(super) struct MessagesSoFar {
    /// The hints that were printed.
    printed: BTreeSet<String>,
    /// The subjects of all messages of each group, whether the message was printed or only counted.
    groups: BTreeMap<String, Vec<String>>,
    /// The warnings that were printed.
    warnings: BTreeSet<String>,
    /// The objects of each warning; these warnings are printed at the end.
    warned_objects: BTreeMap<String, Vec<String>>,
}

impl MessagesSoFar {
    /// Returns the message without the hints that were printed before. Returns `None` if enough messages of its group
    /// were printed; [`MessagesSoFar::print_held_back`] then prints the number of the others.
    pub(super) fn hold_back_repeats(&mut self, message: &Message) -> Option<Message> {
        if let Some(group) = &message.group {
            let subjects = self.groups.entry(group.to_string()).or_default();
            subjects.push(message.subject().to_owned());
            if subjects.len() > SHOWN_PER_GROUP {
                return None;
            }
        }
        let mut shown = message.clone();
        shown.hints.retain(|hint| self.printed.insert(hint.clone()));
        Some(shown)
    }

    /// Returns whether the warning is the first with this text.
    pub(super) fn is_new_warning(&mut self, warning: &str) -> bool {
        self.warnings.insert(warning.to_owned())
    }

    /// Collects a warning about an object.
    pub(super) fn add_warning(&mut self, object: String, text: String) {
        self.warned_objects.entry(text).or_default().push(object);
    }

    /// Prints the warnings about objects, equal ones as one line.
    pub(super) fn print_warnings(&self, colors: Colors) {
        for line in self.warnings_of_objects() {
            print_message(Label::Warning, &line.into(), colors);
        }
    }

    fn warnings_of_objects(&self) -> impl Iterator<Item = String> {
        self.warned_objects
            .iter()
            .map(|(text, objects)| match &objects[..] {
                [object] => format!("{object}: {text}"),
                objects => format!("{text} ({})", counted(objects.len(), "object")),
            })
    }

    /// Prints the messages that were only counted.
    pub(super) fn print_held_back(&self, colors: Colors) {
        for message in self.held_back_messages() {
            print_message(Label::Error, &message, colors);
        }
    }

    fn held_back_messages(&self) -> Vec<Message> {
        let messages = self.groups.iter().filter_map(|(group, subjects)| {
            let more = subjects.get(SHOWN_PER_GROUP..).filter(|more| !more.is_empty())?;
            let count = counted(more.len(), "more object");
            Some(Message::new(format!("{count}: {group}")).with_details(first_lines_and_more(more)))
        });
        messages.collect()
    }
}

/// Leaves a hint that several messages have only on the last of these.
pub(in crate::report) fn keep_shared_hints_on_last(mut messages: Vec<Message>) -> Vec<Message> {
    let mut seen = BTreeSet::new();
    for message in messages.iter_mut().rev() {
        message.hints.retain(|hint| seen.insert(hint.clone()));
    }
    messages
}

/// The objects that have joined the set so far, by reason.
#[derive(Debug, Default)]
pub(in crate::report) struct TakenIn(BTreeMap<String, Vec<ObjectKey>>);

impl TakenIn {
    /// Adds the object of an outcome if it has joined the set.
    pub(super) fn add_if_joined_set(&mut self, outcome: &ObjectOutcome) {
        if outcome.has_joined_set() {
            self.add(outcome.subject.key(), &outcome.reason);
        }
    }

    /// Adds an object that joins the set, with the reason as a clause whose subject is the object.
    pub(in crate::report) fn add(&mut self, key: ObjectKey, reason: &str) {
        self.0.entry(reason.to_owned()).or_default().push(key);
    }

    /// Returns a line for each reason.
    pub(in crate::report) fn lines(&self) -> Vec<String> {
        let lines = self.0.iter().map(|(reason, keys)| match keys.as_slice() {
            [key] => format!("{key} {reason}"),
            keys => format!(
                "each of these {} objects {reason}: {}",
                keys.len(),
                first_names_and_more(keys)
            ),
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

    #[test]
    fn each_hint_is_printed_once() {
        let mut hints = MessagesSoFar::default();
        let failed = Message::new("failed");
        for (message, shown) in [
            (failed.clone().with_hint("try"), failed.clone().with_hint("try")),
            (
                failed.clone().with_hint("wait").with_hint("try"),
                failed.clone().with_hint("wait"),
            ),
            (failed.clone(), failed.clone()),
        ] {
            assert_eq!(hints.hold_back_repeats(&message), Some(shown));
        }
        assert_eq!(hints.held_back_messages(), []);
    }

    #[test]
    fn equal_warnings_of_objects_are_one_line() {
        let mut hints = MessagesSoFar::default();
        for (object, text) in [
            ("a.yaml:1: a", "old"),
            ("a.yaml:9: b", "odd"),
            ("b.yaml:1: c", "old"),
        ] {
            hints.add_warning(object.to_owned(), text.to_owned());
        }
        let lines: Vec<String> = hints.warnings_of_objects().collect();
        assert_eq!(lines, ["a.yaml:9: b: odd", "old (2 objects)"]);
    }

    #[test]
    fn the_fourth_message_of_a_group_and_all_later_ones_are_counted() {
        let mut hints = MessagesSoFar::default();
        for number in 0..15 {
            let message = Message::new("conflict")
                .in_group("conflict with \"helm\"")
                .with_subject_prefix(format_args!("configmap/{number}: "));
            assert_eq!(
                hints.hold_back_repeats(&message).is_some(),
                number < 3,
                "{number}"
            );
        }
        let rest = hints.held_back_messages();
        assert_eq!(rest.len(), 1);
        assert_eq!(rest[0].text, "12 more objects: conflict with \"helm\"");
        assert_eq!(rest[0].details.len(), 11);
        assert_eq!(rest[0].details[0], "configmap/3");
        assert_eq!(rest[0].details[10], "and 2 more");
    }

    #[test]
    fn a_shared_hint_is_below_the_last_of_the_messages_that_share_it() {
        let message = |text: &str, hint: &str| Message::new(text).with_hint(hint);
        let messages = vec![message("a", "try"), message("b", "wait"), message("c", "try")];
        let expected = [Message::new("a"), message("b", "wait"), message("c", "try")];
        assert_eq!(keep_shared_hints_on_last(messages), expected);
    }

    fn outcome(number: usize, reason: &str) -> ObjectOutcome {
        let key = ObjectKey {
            group_kind: GroupKind::new("", "ConfigMap"),
            namespace: Some("shop".to_owned()),
            name: format!("map-{number}"),
        };
        let resource = Arc::new(Resource::with_regular_names(
            "",
            "v1",
            "ConfigMap",
            Scope::Namespaced,
        ));
        ObjectOutcome {
            taken_in: true,
            ..ObjectOutcome::new_with_reason(Subject::new(&key, &resource, None), Action::Configured, reason)
        }
    }

    #[test]
    fn many_objects_take_one_line() {
        let mut found = TakenIn::default();
        found.add_if_joined_set(&ObjectOutcome {
            taken_in: false,
            ..outcome(0, "changed")
        });
        found.add_if_joined_set(&ObjectOutcome {
            action: Action::Failed,
            ..outcome(0, "existed before; pruned")
        });
        assert_eq!(found.lines(), [""; 0]);
        found.add_if_joined_set(&outcome(0, "existed before; kept"));
        assert_eq!(
            found.lines(),
            ["configmap/map-0 in namespace shop existed before; kept"]
        );
        (1..=300).for_each(|number| found.add_if_joined_set(&outcome(number, "existed before; pruned")));
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
