//! The line that counts what a plan does.

use crate::model::text::counted;
use crate::plan::Refusal;
use crate::report::paint::{Color, Line};
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
    let counts = [
        (Color::Plain, '+', outline.created.len(), "create"),
        (Color::Plain, '~', outline.changed.len(), "change"),
        (Color::Danger, '±', outline.recreated.len(), "RECREATE"),
        (Color::Danger, '-', outline.removed.len(), verb),
    ];
    let counts: Vec<_> = counts.into_iter().filter(|(_, _, count, _)| *count > 0).collect();
    let mut line = Line::new(Color::Plain, "Plan: ");
    for (place, (color, sign, count, verb)) in counts.iter().enumerate() {
        let separator = if place == 0 { "" } else { "  " };
        line = line
            .with(Color::Plain, separator)
            .with(*color, format!("{sign}{count} {verb}"));
    }
    // A kept object keeps the parent, which records it.
    let ends_set = deletes_set && outline.kept.is_empty();
    line = match (counts.last(), members(outline)) {
        (None, _) if ends_set => line.with(Color::Danger, "DELETE the set"),
        (None, _) => line.with(Color::Plain, "no changes"),
        (Some(_), 0) => line,
        (Some((Color::Danger, ..)), members) => {
            line.with(Color::Danger, format!(" of {}", counted(members, "member")))
        }
        (Some(_), _) => line,
    };
    if ends_set && !counts.is_empty() {
        line = line.with(Color::Plain, ", and the set");
    }
    Some(line.with(Color::Plain, others(outline)))
}

/// Counts the members that there are before the run.
fn members(outline: &PlanOutline) -> usize {
    let kept = outline.kept.iter().filter(|(_, reason)| reason.is_of_member());
    outline.changed.len() + outline.recreated.len() + outline.removed.len() + outline.unchanged + kept.count()
}

/// `  (24 unchanged, 2 kept)`
fn others(outline: &PlanOutline) -> String {
    let others = [(outline.unchanged, "unchanged"), (outline.kept.len(), "kept")];
    let others: Vec<String> = others
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    if others.is_empty() {
        String::new()
    } else {
        format!("  ({})", others.join(", "))
    }
}

/// `Plan: 3 objects join the set`; nothing for objects that leave it, since a danger counts them.
fn joins(question: &Question, count: usize) -> Option<Line> {
    let mut refusals = question.refusals.iter();
    let leave = refusals.any(|refusal| matches!(refusal, Refusal::ForgetsSet { .. }));
    let join = if count == 1 { "joins" } else { "join" };
    let text = format!("Plan: {} {join} the set", counted(count, "object"));
    (!leave).then(|| Line::new(Color::Plain, text))
}
