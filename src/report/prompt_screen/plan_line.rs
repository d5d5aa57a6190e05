//! The line that counts what a plan does.

use crate::model::text::counted;
use crate::plan::Refusal;
use crate::report::paint::{Color, Line};
use crate::report::plan_view::{Counts, Effect};
use crate::report::prompt::{PlanOutline, Question};

/// `Plan: +1 create  ~2 change  -9 PRUNE of 33 members  (22 unchanged)`, without zero counts.
pub(super) fn line(question: &Question) -> Option<Line> {
    let outline = question.outline.as_ref()?;
    if let Some(relabeled) = &outline.relabeled {
        return joins(question, relabeled.len());
    }
    let mut refusals = question.refusals.iter();
    let deletes_set = refusals.any(|refusal| matches!(refusal, Refusal::DeletesSet { .. }));
    let verb = if deletes_set { "DELETE" } else { "PRUNE" };
    let others = [(outline.unchanged, "unchanged"), (outline.kept.len(), "kept")];
    let counts = Counts::new(|effect| question.with(effect).len(), others);
    let mut line = counts.line(verb);
    // A kept object keeps the parent, which records it.
    let ends_set = deletes_set && outline.kept.is_empty();
    match (counts.effects.last(), members(outline)) {
        (None, _) if ends_set => line.push(Color::Danger, "DELETE the set"),
        (None, _) => line.push(Color::Plain, Counts::NOTHING),
        (Some((_, Effect::Recreated | Effect::Pruned)), members) => {
            line.push(Color::Danger, format!(" of {}", counted(members, "member")));
        }
        (Some(_), _) => {}
    }
    if ends_set && !counts.effects.is_empty() {
        line.push(Color::Plain, ", and the set");
    }
    Some(line.with(Color::Plain, counts.in_parentheses()))
}

/// Counts the members that there are before the run.
fn members(outline: &PlanOutline) -> usize {
    let kept = outline.kept.iter().filter(|(_, reason)| reason.is_of_member());
    outline.changed.len() + outline.recreated.len() + outline.removed.len() + outline.unchanged + kept.count()
}

/// `Plan: 3 objects join the set`; nothing for objects that leave it, since a danger counts them.
fn joins(question: &Question, count: usize) -> Option<Line> {
    let mut refusals = question.refusals.iter();
    let leave = refusals.any(|refusal| matches!(refusal, Refusal::ForgetsSet { .. }));
    let join = if count == 1 { "joins" } else { "join" };
    let text = format!("Plan: {} {join} the set", counted(count, "object"));
    (!leave).then(|| Line::new(Color::Plain, text))
}
