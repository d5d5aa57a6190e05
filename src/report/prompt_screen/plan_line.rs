//! The line that counts what a plan does.

use crate::model::text::counted;
use crate::plan::Refusal;
use crate::report::paint::{Color, Line};
use crate::report::prompt::{PlanOutline, Question};

/// `Plan: +0 create  ~0 change  -9 PRUNE of 33 members  (24 unchanged)`
pub(super) fn line(question: &Question) -> Option<Line> {
    let outline = question.outline.as_ref()?;
    if let Some(relabeled) = &outline.relabeled {
        return joins(question, relabeled.len());
    }
    let PlanOutline {
        created,
        changed,
        removed,
        unchanged,
        kept,
        recreated,
        ..
    } = outline;
    let count = removed.len();
    let of_all = |verb: &str| {
        let members = counted(
            changed.len() + recreated.len() + count + unchanged + kept,
            "member",
        );
        format!("-{count} {verb} of {members}")
    };
    let mut refusals = question.refusals.iter();
    let deletes_set = refusals.any(|refusal| matches!(refusal, Refusal::DeletesSet { .. }));
    let line = Line::new(Color::Plain, "Plan: ");
    let line = if deletes_set {
        line.with(Color::Danger, of_all("DELETE"))
            .with(Color::Plain, ", and the set")
    } else {
        let harmless = format!("+{} create  ~{} change  ", created.len(), changed.len());
        let recreate = match recreated.len() {
            0 => String::new(),
            count => format!("±{count} RECREATE  "),
        };
        line.with(Color::Plain, harmless)
            .with(Color::Danger, recreate + &of_all("PRUNE"))
    };
    let others = [(unchanged, "unchanged"), (kept, "kept")];
    let others: Vec<String> = others
        .into_iter()
        .filter(|(count, _)| **count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    Some(if others.is_empty() {
        line
    } else {
        line.with(Color::Plain, format!("  ({})", others.join(", ")))
    })
}

/// `Plan: 3 objects join the set`; nothing for objects that leave it, since a danger counts them.
fn joins(question: &Question, count: usize) -> Option<Line> {
    let mut refusals = question.refusals.iter();
    let leave = refusals.any(|refusal| matches!(refusal, Refusal::ForgetsSet { .. }));
    let join = if count == 1 { "joins" } else { "join" };
    let text = format!("Plan: {} {join} the set", counted(count, "object"));
    (!leave).then(|| Line::new(Color::Plain, text))
}
