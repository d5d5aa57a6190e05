//! The page of `apply`, for the summary of a job.

use super::page::{Counted, Item, Page, Part};
use super::text::code;
use super::{End, headline, line, taken_in, warnings};
use crate::error::Error;
use crate::event::{Action, ObjectOutcome};
use crate::model::message::Message;
use crate::model::write_settings::DryRun;
use crate::plan::loses_data;
use crate::report::document::Collected;
use crate::report::plan_screen::loss;
use crate::report::renames::Renames;
use crate::report::{ContextAndServer, SetDocument, text_lines};

/// Returns the page.
pub(in crate::report) fn of_run(
    (set, place): (&SetDocument, &ContextAndServer),
    collected: &Collected,
    end: End<'_>,
    taken: Vec<String>,
) -> Page {
    let mut failures = end.messages();
    failures.extend(collected.failures.iter().cloned());
    let failed = with(collected, Action::Failed).filter_map(text_lines::detail);
    let late = collected.waiting.iter().flatten().map(text_lines::awaited);
    let loss = match collected.dry_run {
        DryRun::None => "Data was lost",
        DryRun::Client | DryRun::Server => "Data would be lost",
    };
    let errors = match end.error {
        Some(Error::Refused(_)) => "Refused: nothing was written",
        _ => "Errors",
    };
    let mut parts = vec![
        Part::messages(errors, failures),
        Part::list(loss, losses(collected)),
        Part::messages("Failed", failed.collect()),
        Part::messages("Not ready", late.map(Message::new).collect()),
        warnings(&collected.warnings),
        taken_in(taken),
    ];
    parts.extend(lists(collected));
    let (counts, others) = counts(collected, end);
    Page {
        headline: headline(set, place, &counts, &others),
        parts,
        advice: "",
    }
}

fn with(collected: &Collected, action: Action) -> impl Iterator<Item = &ObjectOutcome> {
    let results = collected.results.iter();
    results.filter(move |outcome| outcome.action == action)
}

/// The counts of the headline, and of what did not change.
fn counts(collected: &Collected, end: End<'_>) -> (Vec<String>, Vec<String>) {
    let count = |action: Action| {
        let count = with(collected, action).count();
        (count > 0).then(|| format!("{count} {action}"))
    };
    let actions = collected.operation.actions().into_iter();
    let is_change = |action: &Action| !matches!(action, Action::Unchanged | Action::Skipped);
    let mut counts: Vec<String> = actions.filter(is_change).filter_map(count).collect();
    match end.word() {
        Some(word) => counts.push(word.to_owned()),
        None if !collected.failures.is_empty() => counts.push("with errors".to_owned()),
        None if counts.is_empty() => counts.push("no changes".to_owned()),
        None => {}
    }
    let late = collected.waiting.iter().flatten().count();
    if late > 0 {
        counts.push(format!("{late} not ready"));
    }
    if let Some(last) = counts.last_mut() {
        last.push_str(text_lines::suffix(collected.dry_run));
    }
    let others = [Action::Unchanged, Action::Skipped];
    (counts, others.into_iter().filter_map(count).collect())
}

fn losses(collected: &Collected) -> Vec<Item> {
    let loss = |outcome: &ObjectOutcome| {
        let key = outcome.subject.key();
        match outcome.action {
            Action::Pruned if loss(&key).is_some() => Some(format!("{} pruned", code(&key.to_string()))),
            Action::Recreated if loses_data(&key.group_kind) => {
                Some(format!("{} recreated", code(&key.to_string())))
            }
            _ => None,
        }
    };
    let losses = collected.results.iter().filter_map(loss);
    losses.map(|text| Item::line(&text, Counted::Message)).collect()
}

/// The objects by action, what was deleted first.
fn lists(collected: &Collected) -> Vec<Part> {
    let Renames {
        pairs,
        pruned,
        created,
    } = Renames::of_outcomes(&collected.results);
    let renamed: Vec<Item> = pairs
        .into_iter()
        .map(|(old, new)| {
            let [old, new] = [old, new].map(|outcome| outcome.subject.key().to_string());
            Item::line(
                &format!("{} as {}", code(&old), code(&new)),
                Counted::Object("renamed"),
            )
        })
        .collect();
    let list = |word: &'static str, outcomes: Vec<&ObjectOutcome>| {
        let items: Vec<Item> = outcomes.into_iter().map(|outcome| item(outcome, word)).collect();
        Part::folded(&format!("{} {word}", items.len()), items)
    };
    vec![
        list("recreated", with(collected, Action::Recreated).collect()),
        list("pruned", pruned),
        list("configured", with(collected, Action::Configured).collect()),
        Part::folded(
            &format!(
                "{} renamed: pruned, and created under another name",
                renamed.len()
            ),
            renamed,
        ),
        list("created", created),
        list("skipped", with(collected, Action::Skipped).collect()),
    ]
}

fn item(outcome: &ObjectOutcome, word: &'static str) -> Item {
    // The reasons of the others are why they were sent.
    let reason = match outcome.action {
        Action::Recreated | Action::Pruned | Action::Skipped => outcome.reason.as_str(),
        _ => "",
    };
    line(&outcome.subject.key().to_string(), reason, Counted::Object(word))
}
