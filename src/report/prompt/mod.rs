//! The prompt: shows the consequences of a plan, and reads the answer that confirms it.

mod screen;

use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use super::documents::{ContextAndServer, SetDocument};
use super::output::write_stderr;
use super::plan_view::Effect;
use super::progress;
use super::style::{Colors, Device};
use crate::model::identity::ObjectKey;
use crate::plan::{ReasonToKeep, Refusal};
use screen::AnswerWanted;

/// A question to the user, with everything that the prompt shows.
#[derive(Debug, Clone)]
pub struct Question {
    /// The set; `None` if the command is about several sets.
    pub set: Option<SetDocument>,
    pub place: ContextAndServer,
    /// The refusals that need consent.
    pub refusals: Vec<Refusal>,
    /// The plan; `None` if the command does not plan objects.
    pub outline: Option<PlanOutline>,
    /// The terminal on which the question is shown.
    pub device: Device,
    pub colors: Colors,
}

/// True while a question waits for its answer. The thread that handles signals reads it, to report what an interrupt
/// leaves.
static IS_OPEN: AtomicBool = AtomicBool::new(false);

/// Returns whether a question waits for its answer.
pub(super) fn is_question_open() -> bool {
    IS_OPEN.load(Ordering::SeqCst)
}

/// The part of a plan that a prompt shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlanOutline {
    /// Objects that the plan may create.
    pub created: Vec<ObjectKey>,
    /// Members that the plan changes.
    pub changed: Vec<ObjectKey>,
    /// The changed members that the plan deletes and creates again if the server refuses the change.
    pub recreatable: Vec<ObjectKey>,
    /// Members whose data is lost if they are recreated.
    pub with_data: BTreeSet<ObjectKey>,
    /// Members that the plan deletes.
    pub removed: Vec<ObjectKey>,
    /// The losses of data that a flag allows.
    pub losses: Vec<Refusal>,
    /// The number of members that the plan does not change.
    pub unchanged: usize,
    /// Objects with the set's label that are not in the manifests and that the plan keeps, each with the reason.
    pub kept: Vec<(ObjectKey, ReasonToKeep)>,
    /// Objects that exist, are not members, and become members: each with what becomes of it, as a clause.
    pub joining: Vec<(ObjectKey, String)>,
    /// Objects that join or leave the set; `None` if the command also applies or deletes objects.
    pub relabeled: Option<Vec<ObjectKey>>,
}

impl Question {
    /// Returns what needs consent, and the losses of data that a flag allows.
    pub(super) fn consequences(&self) -> impl Iterator<Item = &Refusal> {
        let outline = self.outline.iter();
        self.refusals
            .iter()
            .chain(outline.flat_map(|outline| &outline.losses))
    }

    /// Returns the objects on which the plan has this effect.
    pub(super) fn objects_with(&self, effect: Effect) -> &[ObjectKey] {
        match (effect, &self.outline) {
            (Effect::Created, Some(outline)) => &outline.created,
            (Effect::Changed, Some(outline)) => &outline.changed,
            (Effect::Pruned, Some(outline)) => &outline.removed,
            _ => &[],
        }
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
    progress::clear_progress();
    discard_earlier_input();
    IS_OPEN.store(true, Ordering::SeqCst);
    write_stderr(&text);
    let (is_confirmed, is_line_ended) = read_answer_and_line_end(&mut io::stdin().lock(), &wanted);
    IS_OPEN.store(false, Ordering::SeqCst);
    // Without a line break in the input, the next message would be on the line of the prompt.
    if !is_line_ended {
        write_stderr("\n");
    }
    is_confirmed
}

/// Discards what the user typed before the question was shown: it does not answer the question.
#[cfg(unix)]
fn discard_earlier_input() {
    use rustix::termios::{QueueSelector, tcflush};
    // Fails only if standard input is not a terminal, and then nothing is typed.
    let _ = tcflush(io::stdin(), QueueSelector::IFlush);
}

#[cfg(not(unix))]
fn discard_earlier_input() {}

/// Reads the answer. Returns whether it confirms, and whether its line has ended.
///
/// Does not lock standard error, because warnings may be printed while the prompt is open.
fn read_answer_and_line_end(answers: &mut impl io::BufRead, wanted: &AnswerWanted) -> (bool, bool) {
    let mut typed = String::new();
    let is_read = answers.read_line(&mut typed).is_ok();
    (is_read && wanted.accepts(typed.trim()), typed.ends_with('\n'))
}

#[cfg(test)]
mod tests;
