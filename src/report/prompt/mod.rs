//! The prompt: the consequences, and the answer that confirms.

mod screen;

use std::io;
use std::sync::Mutex;

use super::documents::{ContextAndServer, SetDocument};
use super::output::{print_message, write_stderr};
use super::plan_view::Effect;
use super::progress;
use super::style::{Colors, Device};
use super::text_lines::Label;
use crate::model::identity::ObjectKey;
use crate::plan::{Refusal, SkipReason};
use screen::AnswerWanted;

/// Everything that a prompt shows.
#[derive(Debug, Clone)]
pub struct Question {
    /// The set; `None` if the command is about several.
    pub set: Option<SetDocument>,
    /// The cluster.
    pub place: ContextAndServer,
    /// The refusals that need consent.
    pub refusals: Vec<Refusal>,
    /// The plan, if there is one.
    pub outline: Option<PlanOutline>,
    /// What the command has written before.
    pub written: WrittenBefore,
    /// The terminal.
    pub device: Device,
    pub colors: Colors,
}

/// What a command has written before it asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WrittenBefore {
    Nothing,
    /// What was confirmed by an earlier answer.
    Confirmed,
}

/// The question that waits for its answer, as far as an interrupt reports it.
static OPEN: Mutex<Option<WrittenBefore>> = Mutex::new(None);

/// Returns what was written before the question that waits for its answer; `None` if there is none.
pub(super) fn open() -> Option<WrittenBefore> {
    OPEN.lock().ok().and_then(|open| *open)
}

fn set_open(written: Option<WrittenBefore>) {
    if let Ok(mut open) = OPEN.lock() {
        *open = written;
    }
}

/// The part of a plan that a prompt shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlanOutline {
    /// Objects that it may create.
    pub created: Vec<ObjectKey>,
    /// Members that it changes.
    pub changed: Vec<ObjectKey>,
    /// Those of them that it deletes and creates again if the server refuses the change.
    pub recreatable: Vec<ObjectKey>,
    /// Members that it deletes and creates again.
    pub recreated: Vec<ObjectKey>,
    /// Members that it deletes.
    pub removed: Vec<ObjectKey>,
    /// Members that it leaves as they are.
    pub unchanged: usize,
    /// Objects with the set's label that it keeps although the manifests do not hold them, each with the reason.
    pub kept: Vec<(ObjectKey, SkipReason)>,
    /// Objects that join or leave the set, if the command changes nothing else.
    pub relabeled: Option<Vec<ObjectKey>>,
}

impl Question {
    /// The objects with this effect.
    pub(super) fn with(&self, effect: Effect) -> &[ObjectKey] {
        match (effect, &self.outline) {
            (Effect::Created, Some(outline)) => &outline.created,
            (Effect::Changed, Some(outline)) => &outline.changed,
            (Effect::Recreated, Some(outline)) => &outline.recreated,
            (Effect::Pruned, Some(outline)) => &outline.removed,
            _ => &[],
        }
    }
}

impl PlanOutline {
    /// Returns the same, if it is known that these objects, and no others, are deleted and created again.
    #[must_use]
    pub fn with_recreated(mut self, recreated: Vec<ObjectKey>) -> Self {
        self.created.retain(|key| !recreated.contains(key));
        self.changed.retain(|key| !recreated.contains(key));
        self.recreatable.clear();
        self.recreated = recreated;
        self
    }
}

/// Shows the question, and returns whether the answer confirms.
pub fn confirm(question: &Question) -> bool {
    let wanted = screen::wanted_answer(question);
    let mut text = String::from("\n");
    for line in screen::lines(question) {
        text.extend([&line.text(question.colors), "\n"]);
    }
    text.extend(["\n", &screen::prompt(question).text(question.colors), " "]);
    progress::clear();
    discard_typed();
    set_open(Some(question.written));
    write_stderr(&text);
    let (answer, is_ended) = read(&mut io::stdin().lock(), &wanted);
    set_open(None);
    // The next message would be on the line of the prompt.
    if !is_ended {
        write_stderr("\n");
    }
    if answer == Answer::Other {
        print_message(Label::Note, &wanted.expected().into(), question.colors);
    }
    answer == Answer::Confirmed
}

/// What an answer means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Confirmed,
    /// No answer, or a no.
    Declined,
    /// Anything else, which stops the run as well.
    Other,
}

/// Discards what was typed before the question was shown, which does not answer it.
#[cfg(unix)]
fn discard_typed() {
    use rustix::termios::{QueueSelector, tcflush};
    // Fails only if standard input is not a terminal, and then nothing is typed.
    let _ = tcflush(io::stdin(), QueueSelector::IFlush);
}

#[cfg(not(unix))]
fn discard_typed() {}

/// Reads the answer. Returns what it means, and whether its line has ended.
///
/// Standard error is not locked: warnings may be printed while the prompt is open.
fn read(answers: &mut impl io::BufRead, wanted: &AnswerWanted) -> (Answer, bool) {
    let mut typed = String::new();
    let is_read = answers.read_line(&mut typed).is_ok();
    let answer = match typed.trim() {
        typed if is_read && wanted.is(typed) => Answer::Confirmed,
        "" => Answer::Declined,
        typed if ["n", "no"].contains(&typed.to_ascii_lowercase().as_str()) => Answer::Declined,
        _ => Answer::Other,
    };
    (answer, typed.ends_with('\n'))
}

#[cfg(test)]
mod tests;
