//! The page of `diff`, for a pull request.

use super::page::{Counted, Item, Page, Part, collapsed_item, title};
use super::text::{code, fence};
use super::{
    end_messages, end_word, failures_part, headline, in_words, kept_part, losses_part, taken_in_part,
    warnings_part, with_errors,
};
use crate::plan::Refusal;
use crate::report::diff::Differences;
use crate::report::documents::{ContextAndServer, RunEnd, SetDocument};
use crate::report::plan_view::{Effect, Entry, PlanView};

const ADVICE: &str = " `kubectl applyset diff` without `-o markdown` prints everything.";

/// Returns the page.
pub(in crate::report) fn render_diff(
    (set, place): (&SetDocument, &ContextAndServer),
    found: &Differences,
    end: RunEnd,
    warned: &[String],
    taken: Vec<String>,
) -> Page {
    let view = PlanView::from_differences(found);
    let (failing, changing): (Vec<&Entry>, Vec<&Entry>) = view
        .entries
        .iter()
        .filter(|entry| entry.refusal.is_none())
        .partition(|entry| entry.effect == Effect::Failed);
    let parts = vec![
        Part::messages(
            "Refused: apply would write nothing",
            Refusal::messages(&found.refusals),
        ),
        losses_part("Data would be lost", &changing, |effect, key, loss| {
            format!("{} {key}: {loss}", effect.verb())
        }),
        Part::messages("Errors", end_messages(end, &found.failures)),
        failures_part("Would fail", &failing),
        warnings_part(warned),
        taken_in_part(taken),
        Part::objects(changing.into_iter().chain(&view.parent).map(item).collect()),
        kept_part(&view, "kept"),
    ];
    let refused = (!found.refusals.is_empty()).then_some("refused");
    let ended = end_word(end).or(refused).or(with_errors(&found.failures));
    let counts = view.counts("kept");
    Page {
        headline: headline(
            (set, place),
            &in_words(&counts, Effect::intended, ended, view.no_changes()),
            &counts.others,
        ),
        parts,
        advice: ADVICE,
    }
}

/// An object that would change, with its diff.
fn item(entry: &Entry) -> Item {
    let verb = entry.effect.verb();
    let diff = fence("diff", &entry.difference.hunks());
    let Some(outcome) = entry.outcome else {
        let title = format!("{}, the set's parent", title(verb, &entry.key.object_name(), ""));
        return collapsed_item(&title, &diff, Counted::Object("parent"));
    };
    let key = entry.key.to_string();
    let counted = Counted::Object(entry.effect.intended());
    if let Some(change) = entry.ownership() {
        return Item {
            text: format!("\n<p>{}</p>\n", title(verb, &key, &change)),
            brief: None,
            counted,
        };
    }
    let (reason, mark) = match entry.effect {
        Effect::Recreated | Effect::Pruned => (outcome.reason.clone(), None),
        Effect::Renamed => (format!("pruned, and created as {}", outcome.subject.name), None),
        _ if outcome.taken_in => (String::new(), Some(format!("{key} {}", outcome.reason))),
        _ => (String::new(), None),
    };
    let mut below = String::new();
    if let Some(position) = &outcome.source {
        below.extend(["From ", &code(&position.to_string()), "\n\n"]);
    }
    if let Some(mark) = mark {
        below.extend([&code(&mark), "\n\n"]);
    }
    collapsed_item(&title(verb, &key, &reason), &(below + &diff), counted)
}
