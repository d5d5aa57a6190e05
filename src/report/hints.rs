//! Hints that several messages share, each printed once.

use std::collections::BTreeSet;

use super::output::print_message;
use super::{Colors, human};
use crate::model::message::Message;

/// The hints of messages that were printed without them, in the order of their first occurrence.
#[derive(Debug, Default)]
pub(super) struct Hints(Vec<String>);

impl Hints {
    /// Adds a hint unless it is there already.
    pub(super) fn add(&mut self, hint: String) {
        if !self.0.contains(&hint) {
            self.0.push(hint);
        }
    }

    /// Returns the message without its hints, which are added.
    pub(super) fn keep(&mut self, message: &Message) -> Message {
        message.hints.iter().for_each(|hint| self.add(hint.clone()));
        Message {
            hints: Vec::new(),
            ..message.clone()
        }
    }

    /// Prints all hints.
    pub(super) fn print(&self, colors: Colors) {
        for hint in &self.0 {
            print_message(human::Label::Hint, &hint.as_str().into(), colors);
        }
    }
}

/// Moves a hint that several messages of one error share to the last of these.
pub(super) fn shared_hints_last(mut messages: Vec<Message>) -> Vec<Message> {
    let mut seen = BTreeSet::new();
    for message in messages.iter_mut().rev() {
        message.hints.retain(|hint| seen.insert(hint.clone()));
    }
    messages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_hint_is_kept_once() {
        let mut hints = Hints::default();
        let failed = Message::new("failed");
        for message in [
            failed.clone().with_hint("try"),
            failed.clone().with_hint("wait").with_hint("try"),
            failed.clone(),
        ] {
            assert_eq!(hints.keep(&message), failed);
        }
        assert_eq!(hints.0, ["try", "wait"]);
    }

    #[test]
    fn a_shared_hint_stands_below_the_last_message_that_it_belongs_to() {
        let message = |text: &str, hint: &str| Message::new(text).with_hint(hint);
        let messages = vec![
            message("a", "try"),
            message("b", "wait"),
            message("c", "try"),
            Message::new("d"),
        ];
        let expected = [
            Message::new("a"),
            message("b", "wait"),
            message("c", "try"),
            Message::new("d"),
        ];
        assert_eq!(shared_hints_last(messages), expected);
    }
}
