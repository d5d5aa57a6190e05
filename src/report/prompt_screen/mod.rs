//! The lines of a prompt: the plan, the losses, and the other members that would be deleted, by
//! namespace and kind.
//!
//! Pure.

mod folded;
mod plan_line;
mod recreation;

use std::collections::BTreeSet;

use self::folded::fold;
use super::paint::{Color, Line};
use super::plan_view::{Effect, consequence, loses_data, loss_row};
use super::prompt::Question;
use super::rows::{self, PlanRow};
use super::set_summary::reference;
use crate::model::identity::ObjectKey;
use crate::model::text::counted;
use crate::plan::Refusal;

/// Limit of kept objects that are named.
const KEPT: usize = 5;

/// The answer that confirms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AnswerWanted {
    /// `yes`
    Yes,
    /// One of these names of the set.
    SetName(Vec<String>),
}

impl AnswerWanted {
    pub(super) fn is(&self, answer: &str) -> bool {
        match self {
            Self::Yes => answer == "yes",
            Self::SetName(names) => names.iter().any(|name| name == answer),
        }
    }

    /// Returns the message for another answer.
    pub(super) fn expected(&self) -> String {
        match self {
            Self::Yes => "only `yes` confirms".to_owned(),
            Self::SetName(names) => {
                let name = names.first().map_or("", String::as_str);
                format!("only the set's name confirms: {name}")
            }
        }
    }
}

/// The subject of the first line.
pub(super) fn title(question: &Question) -> String {
    match &question.set {
        Some(set) => super::context_header::title(set),
        None => "records to repair".to_owned(),
    }
}

/// The lines below the header, and the expected answer.
pub(super) fn lines(question: &Question) -> (Vec<Line>, AnswerWanted) {
    let columns = question.device.columns();
    let mut lines: Vec<Line> = plan_line::line(question).into_iter().collect();
    lines.push(Line::default());
    let dangers = dangers(question);
    let mut others = others(question, &dangers);
    let room = question.device.rows().saturating_sub(10).max(6);
    let hidden = others.len().saturating_sub(room);
    others.truncate(room);
    let mut rows = dangers;
    rows.extend(others);
    if hidden > 0 {
        let more = counted(hidden, "more kind");
        rows.push(PlanRow::for_run(' ', format!("… and objects of {more}")));
    }
    rows.extend(kept(question));
    lines.extend(rows::lines(&rows, columns));
    if let Some(outline) = &question.outline {
        lines.extend(recreation::lines(&outline.recreatable, columns));
    }
    (lines, wanted_answer(question))
}

/// The objects that no danger names, by effect, namespace and kind.
fn others(question: &Question, dangers: &[PlanRow]) -> Vec<PlanRow> {
    let effects = [
        Effect::Pruned,
        Effect::Recreated,
        Effect::Changed,
        Effect::Created,
    ];
    let (named, mut rows) = (named(dangers), Vec::new());
    for effect in effects {
        let keys = question.with(effect).iter();
        rows.extend(fold(effect, keys.filter(|key| !named.contains(key))));
    }
    // Of an inventory, the objects that need consent are listed as a danger.
    let mut refusals = question.refusals.iter();
    if !refusals.any(|refusal| matches!(refusal, Refusal::ReachesOutside { .. })) {
        let outline = question.outline.iter();
        let relabeled = outline.flat_map(|outline| outline.relabeled.iter().flatten());
        rows.extend(fold(Effect::Changed, relabeled));
    }
    rows
}

fn named(rows: &[PlanRow]) -> BTreeSet<&ObjectKey> {
    rows.iter().filter_map(|row| row.object.as_ref()).collect()
}

/// The first of the kept objects, and the number of the others. Objects that a run does not concern are
/// only counted, in the line of the plan.
fn kept(question: &Question) -> Vec<PlanRow> {
    let kept = question.outline.iter().flat_map(|outline| &outline.kept);
    let named = kept.filter(|(_, reason)| reason.is_reported());
    let mut rows: Vec<PlanRow> = named
        .map(|(key, reason)| PlanRow::for_run('=', format!("{key}: {}", reason.cause())))
        .collect();
    let more = rows.len().saturating_sub(KEPT);
    rows.truncate(KEPT);
    if more > 0 {
        rows.push(PlanRow::for_run(' ', format!("… and {more} more kept")));
    }
    rows
}

/// Returns the question, and the answer that confirms.
pub(super) fn prompt(question: &Question) -> Line {
    let lossy = data_losses(question);
    let of_these = match lossy {
        0 => String::new(),
        1 => "1 of these loses data. ".to_owned(),
        lossy => format!("{lossy} of these lose data. "),
    };
    match wanted_answer(question) {
        AnswerWanted::Yes => Line::new(Color::Bold, "Continue? Only 'yes' is accepted:"),
        AnswerWanted::SetName(_) => Line::new(Color::Danger, of_these)
            .with(Color::Bold, "Type the set's name to continue, Enter to stop:"),
    }
}

fn data_losses(question: &Question) -> usize {
    let refused = question.refusals.iter().filter(|refusal| refusal.is_data_loss());
    let refused: BTreeSet<&ObjectKey> = refused.filter_map(Refusal::object).collect();
    let mut losses = refused.len();
    for effect in [Effect::Pruned, Effect::Recreated] {
        let lost = question.with(effect).iter().filter(|key| loses_data(effect, key));
        losses += lost.filter(|key| !refused.contains(key)).count();
    }
    losses
}

/// A loss of data or the deletion of a whole set must not be confirmed by reflex.
fn wanted_answer(question: &Question) -> AnswerWanted {
    let is_grave = question.refusals.iter().any(|refusal| {
        refusal.is_data_loss() || refusal.is_prune_all() || matches!(refusal, Refusal::DeletesSet { .. })
    });
    match &question.set {
        Some(set) if is_grave || data_losses(question) > 0 => {
            let full = set.kind.as_ref().map(|_| reference(set));
            AnswerWanted::SetName(std::iter::once(set.name.clone()).chain(full).collect())
        }
        _ => AnswerWanted::Yes,
    }
}

/// What needs consent, losses of data first.
fn dangers(question: &Question) -> Vec<PlanRow> {
    let mut dangers: Vec<PlanRow> = question.refusals.iter().filter_map(consequence).collect();
    let named = named(&dangers);
    let planned = question.with(Effect::Pruned).iter();
    let pruned = planned.filter(|key| !named.contains(key));
    let mut losses: Vec<PlanRow> = pruned.filter_map(|key| loss_row(Effect::Pruned, key)).collect();
    let recreated = question.with(Effect::Recreated).iter();
    losses.extend(recreated.filter_map(|key| loss_row(Effect::Recreated, key)));
    dangers.extend(losses);
    dangers.sort_by_key(|danger| match &danger.object {
        Some(object) => !loses_data(Effect::Pruned, object),
        None => true,
    });
    dangers
}

#[cfg(test)]
mod tests;
