//! The page of `diff`, for a pull request.

use std::collections::BTreeSet;

use super::page::{Counted, Item, Page, Part, opening, title};
use super::text::{code, fenced};
use super::{End, headline, line, taken_in, warnings};
use crate::compare::diff::Difference;
use crate::event::Action;
use crate::model::identity::ObjectKey;
use crate::plan::Refusal;
use crate::report::diff::{Comparison, Differences};
use crate::report::plan_screen::{loses_data_by_recreation, loss};
use crate::report::renames::Renames;
use crate::report::taken_in::TakenIn;
use crate::report::{ContextAndServer, SetDocument, object_name, text_lines};

const ADVICE: &str = " `kubectl applyset diff` without `-o markdown` prints everything.";

/// Returns the page.
pub(in crate::report) fn of_diff(
    (set, place): (&SetDocument, &ContextAndServer),
    found: &Differences,
    end: End<'_>,
    warned: &[String],
) -> Page {
    let refused: BTreeSet<&ObjectKey> = found.refusals.iter().filter_map(Refusal::object).collect();
    let (refused, failed): (Vec<&Comparison>, Vec<&Comparison>) = found
        .objects
        .iter()
        .filter(|object| object.outcome.action == Action::Failed)
        .partition(|object| refused.contains(&object.outcome.subject.key()));
    let mut failures = end.messages();
    failures.extend(found.failures.iter().cloned());
    let failing = failed
        .iter()
        .filter_map(|object| text_lines::detail(&object.outcome));
    let mut taken = TakenIn::default();
    found
        .objects
        .iter()
        .for_each(|object| taken.note(&object.outcome));
    let parts = vec![
        Part::messages(
            "Refused: apply would write nothing",
            Refusal::messages(&found.refusals),
        ),
        Part::list("Data would be lost", losses(found)),
        Part::messages("Errors", failures),
        Part::messages("Would fail", failing.collect()),
        warnings(warned),
        taken_in(taken.lines()),
        Part::objects(objects(found)),
        kept(found),
    ];
    let (counts, others) = counts(found, refused.len(), failed.len(), end);
    Page {
        headline: headline(set, place, &counts, &others),
        parts,
        advice: ADVICE,
    }
}

/// The counts of the headline, and of what does not change.
fn counts(found: &Differences, refused: usize, failing: usize, end: End<'_>) -> (Vec<String>, Vec<String>) {
    let with = |action| {
        let objects = found.objects.iter();
        objects.filter(|object| object.outcome.action == action).count()
    };
    let texts = |counts: &[(usize, &str)]| -> Vec<String> {
        let counts = counts.iter().filter(|(count, _)| *count > 0);
        counts.map(|(count, word)| format!("{count} {word}")).collect()
    };
    let mut counts = texts(&[
        (with(Action::Created), "to create"),
        (with(Action::Configured), "to change"),
        (with(Action::Recreated), "to recreate"),
        (with(Action::Pruned), "to prune"),
        (refused, "refused"),
        (failing, "would fail"),
    ]);
    let parent = found.parent.as_ref().is_some_and(|parent| !parent.is_empty());
    let is_refused = !found.refusals.is_empty() && refused == 0;
    match end.word() {
        Some("refused") if refused > 0 => {}
        Some(word) => counts.push(word.to_owned()),
        None if is_refused => counts.push("refused".to_owned()),
        None if counts.is_empty() && !found.failures.is_empty() => counts.push("would fail".to_owned()),
        None if counts.is_empty() && parent => counts.push("only the set's parent changes".to_owned()),
        None if counts.is_empty() => counts.push("no changes".to_owned()),
        None => {}
    }
    let others = texts(&[
        (with(Action::Unchanged), "unchanged"),
        (with(Action::Skipped), "kept"),
    ]);
    (counts, others)
}

/// The objects whose data would be lost although a flag or an annotation allows it.
fn losses(found: &Differences) -> Vec<Item> {
    let loss = |object: &Comparison| {
        let key = object.outcome.subject.key();
        match object.outcome.action {
            Action::Pruned => loss(&key).map(|loss| format!("prune {}: {loss}", code(&key.to_string()))),
            Action::Recreated if loses_data_by_recreation(&object.outcome) => Some(format!(
                "recreate {}: its data will be lost",
                code(&key.to_string())
            )),
            _ => None,
        }
    };
    let losses = found.objects.iter().filter_map(loss);
    losses.map(|text| Item::line(&text, Counted::Message)).collect()
}

/// The objects that would change, what is deleted first.
fn objects(found: &Differences) -> Vec<Item> {
    let with = |action| {
        let objects = found.objects.iter();
        objects.filter(move |object| object.outcome.action == action)
    };
    let Renames {
        pairs,
        pruned,
        created,
    } = Renames::of(&found.objects);
    let recreated = with(Action::Recreated);
    let mut items: Vec<Item> = recreated
        .map(|object| item("recreate", object, Counted::Object("to recreate")))
        .collect();
    items.extend(
        pruned
            .into_iter()
            .map(|object| item("prune", object, Counted::Object("to prune"))),
    );
    items.extend(with(Action::Configured).map(|object| item("change", object, Counted::Object("to change"))));
    items.extend(pairs.into_iter().map(|(old, new)| renamed(old, new)));
    items.extend(
        created
            .into_iter()
            .map(|object| item("create", object, Counted::Object("to create"))),
    );
    items.extend(found.parent.as_ref().and_then(parent));
    items
}

fn item(action: &str, object: &Comparison, counted: Counted) -> Item {
    let key = object.outcome.subject.key().to_string();
    if let Some(change) = &object.ownership {
        let title = format!(
            "<p>{}</p>",
            title(action, &key, &format!("ownership only: {change}"))
        );
        return Item {
            text: format!("\n{title}\n"),
            brief: None,
            counted,
        };
    }
    let reason = match object.outcome.action {
        Action::Recreated | Action::Pruned => object.outcome.reason.as_str(),
        _ => "",
    };
    let mark = match object.outcome.action {
        Action::Recreated => None,
        _ => object.mark(),
    };
    opening(
        &title(action, &key, reason),
        &below(object, mark.as_deref(), &object.difference),
        counted,
    )
}

/// A pruned object, and the created one that replaces it.
fn renamed(old: &Comparison, new: &Comparison) -> Item {
    let (before, after) = (old.outcome.subject.key(), &new.outcome.subject.name);
    let difference = old.difference.replaced_by(&new.difference);
    opening(
        &title(
            "rename",
            &before.to_string(),
            &format!("pruned, and created as {after}"),
        ),
        &below(new, None, &difference),
        Counted::Object("to rename"),
    )
}

/// The parent, which the counts leave out.
fn parent(difference: &Difference) -> Option<Item> {
    if difference.is_empty() {
        return None;
    }
    let name = difference.predicted.as_ref().and_then(object_name)?;
    let action = match difference.live {
        None => "create",
        Some(_) => "change",
    };
    let title = format!("{}, the set's parent", title(action, &name, ""));
    Some(opening(
        &title,
        &fenced("diff", &difference.hunks()),
        Counted::Object("parent"),
    ))
}

/// The position in the manifests, a fact about the object, and the diff.
fn below(object: &Comparison, mark: Option<&str>, difference: &Difference) -> String {
    let position = object.outcome.source.as_ref();
    let position = position.map(|position| format!("From {}\n\n", code(&position.to_string())));
    let mark = mark.map(|mark| format!("{}\n\n", code(mark)));
    format!(
        "{}{}{}",
        position.unwrap_or_default(),
        mark.unwrap_or_default(),
        fenced("diff", &difference.hunks())
    )
}

fn kept(found: &Differences) -> Part {
    let kept = found
        .objects
        .iter()
        .filter(|object| object.outcome.action == Action::Skipped);
    let items: Vec<Item> = kept
        .map(|object| {
            let key = object.outcome.subject.key().to_string();
            line(&key, &object.outcome.reason, Counted::Object("kept"))
        })
        .collect();
    Part::folded(&format!("{} kept", items.len()), items)
}
