//! The page of `diff`, for a pull request.

use super::page::{Item, Page, Part, collapsed_item, item_title_as_html};
use super::text::{code, fence};
use super::{
    beginning_of_page, collapsed_part, end_messages, end_word, failures_part, failures_word,
    headline_phrases, losses_part, object_line, taken_in_part, warnings_part,
};
use crate::event::ObjectOutcome;
use crate::model::text::counted;
use crate::model::write_settings::DryRun;
use crate::plan::Refusal;
use crate::report::diff::Differences;
use crate::report::diff::drift::{DRIFT, describe_drift};
use crate::report::documents::{ContextAndServer, RunEnd, SetDocument};
use crate::report::plan_view::{Effect, Entry, PlanView};

/// The advice on how to see what was left out.
const ADVICE: &str = " `kubectl applyset diff` without `-o markdown` prints everything.";

/// Returns the page of a plan.
pub(in crate::report) fn diff_page(
    (set, place): (&SetDocument, &ContextAndServer),
    found: &Differences,
    end: RunEnd,
    warnings: &[String],
    taken_in: Vec<String>,
) -> Page {
    let view = PlanView::from_differences(found);
    let (failing, changing): (Vec<&Entry>, Vec<&Entry>) = view
        .entries
        .iter()
        .filter(|entry| entry.refusal.is_none())
        .partition(|entry| entry.effect == Effect::Failed);
    let failing_with_fields = failing.iter().filter(|entry| !entry.difference.is_empty());
    let shown = changing
        .iter()
        .chain(failing_with_fields)
        .copied()
        .chain(&view.parent);
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
        warnings_part(warnings),
        taken_in_part(taken_in),
        Part::untitled(shown.map(to_item).collect()),
        collapsed_part(&view.skipped, "skipped"),
        collapsed_part(&view.kept, "kept"),
        drift_part(found.drift.as_deref().unwrap_or_default()),
    ];
    let refused = (!found.refusals.is_empty()).then_some("refused");
    let ended = end_word(end).or(refused).or(failures_word(&found.failures));
    let counts = view.counts();
    let phrases = headline_phrases(&counts, Effect::plan_words, ended, view.describe_no_changes());
    let beginning = beginning_of_page((set, place), &phrases, counts.beside_effects);
    Page {
        beginning: match found.dry_run {
            DryRun::Client => {
                format!("{beginning}\n**Not validated by the server**: predicted from the live objects.\n")
            }
            DryRun::None | DryRun::Server => beginning,
        },
        parts,
        advice: ADVICE,
    }
}

/// Returns the part with the objects that differ from the base.
fn drift_part(drift: &[ObjectOutcome]) -> Part {
    let items = drift
        .iter()
        .map(|outcome| object_line(&outcome.subject.key(), &describe_drift(outcome)));
    let objects = counted(drift.len(), "object");
    Part::collapsed(&format!("{objects} with {DRIFT}"), items.collect())
}

/// Returns the item of an object that would change, with its diff below.
fn to_item(entry: &Entry) -> Item {
    let verb = entry.effect.verb();
    let diff = fence("diff", &entry.difference.hunks());
    let Some(outcome) = entry.outcome else {
        let title = format!(
            "{}, the set's parent",
            item_title_as_html(verb, &entry.key.object_name(), "")
        );
        return collapsed_item(&title, &diff);
    };
    let key = entry.key.to_string();
    if let Some(change) = entry.ownership_change_text() {
        return Item {
            text: format!("\n<p>{}</p>\n", item_title_as_html(verb, &key, &change)),
            brief: None,
        };
    }
    let (reason, comment) = match entry.effect {
        Effect::Recreated | Effect::Pruned => (outcome.reason.clone(), None),
        Effect::Renamed => (format!("pruned, and created as {}", outcome.subject.name), None),
        _ if outcome.taken_in => (String::new(), Some(format!("{key} {}", outcome.reason))),
        _ => (String::new(), None),
    };
    let mut below = String::new();
    if let Some(position) = &outcome.source {
        below.extend(["From ", &code(&position.to_string()), "\n\n"]);
    }
    if let Some(comment) = comment {
        below.extend([&code(&comment), "\n\n"]);
    }
    collapsed_item(&item_title_as_html(verb, &key, &reason), &(below + &diff))
}
