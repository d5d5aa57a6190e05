//! The page of `apply`, for the summary of a job.

use super::page::{Item, Page, Part};
use super::text::code;
use super::{
    beginning_of_page, collapsed_part, end_messages, end_word, failures_part, failures_word,
    headline_phrases, losses_part, object_line, taken_in_part, warnings_part,
};
use crate::error::ErrorKind;
use crate::model::message::Message;
use crate::model::write_settings::DryRun;
use crate::report::documents::report::Collected;
use crate::report::documents::{ContextAndServer, RunEnd, SetDocument};
use crate::report::plan_view::{Effect, Entry, PlanView};
use crate::report::text_lines;

/// Returns the page of a run.
pub(in crate::report) fn run_page(
    (set, place): (&SetDocument, &ContextAndServer),
    collected: &Collected,
    end: RunEnd,
    taken_in: Vec<String>,
) -> Page {
    let view = PlanView::from_outcomes(&collected.results, &collected.losses);
    let (failing, changed): (Vec<&Entry>, Vec<&Entry>) = view
        .entries
        .iter()
        .partition(|entry| entry.effect == Effect::Failed);
    let not_ready = collected.waiting.iter().flatten().map(text_lines::awaited_line);
    let not_ready: Vec<Message> = not_ready.map(Message::new).collect();
    let lost = match collected.dry_run {
        DryRun::None => "Data was lost",
        DryRun::Client | DryRun::Server => "Data would be lost",
    };
    let errors = match end {
        RunEnd::Failed(error) if error.kind == ErrorKind::Refused => "Refused: nothing was written",
        _ => "Errors",
    };
    let counts = view.counts();
    let ended = end_word(end).or(failures_word(&collected.failures));
    let mut words = headline_phrases(&counts, Effect::run_words, ended, view.describe_no_changes());
    if !not_ready.is_empty() {
        words.push(format!("{} not ready", not_ready.len()));
    }
    if let Some(last) = words.last_mut() {
        last.push_str(text_lines::dry_run_suffix(collected.dry_run));
    }
    let mut parts = vec![
        Part::messages(errors, end_messages(end, &collected.failures)),
        losses_part(lost, &changed, |effect, key, _| {
            format!("{key} {}", effect.run_words())
        }),
        failures_part("Failed", &failing),
        Part::messages("Not ready", not_ready),
        warnings_part(&collected.warnings),
        taken_in_part(taken_in),
    ];
    parts.extend(
        changed
            .chunk_by(|one, other| one.effect == other.effect)
            .map(effect_part),
    );
    parts.push(collapsed_part(&view.skipped, "skipped"));
    Page {
        beginning: beginning_of_page((set, place), &words, counts.beside_effects),
        parts,
        advice: "",
    }
}

/// Returns the part with the objects of one effect.
fn effect_part(entries: &[&Entry]) -> Part {
    let effect = entries[0].effect;
    let (count, word) = (entries.len(), effect.run_words());
    let explanation = match effect {
        Effect::Renamed => ": pruned, and created under another name",
        _ => "",
    };
    let items = entries.iter().filter_map(|entry| to_item(entry)).collect();
    Part::collapsed(&format!("{count} {word}{explanation}"), items)
}

/// Returns the line of an object; `None` for the parent, which has no outcome.
fn to_item(entry: &Entry) -> Option<Item> {
    let outcome = entry.outcome?;
    Some(match entry.effect {
        Effect::Renamed => {
            let [old, new] = [&entry.key, &outcome.subject.key()].map(|key| code(&key.to_string()));
            Item::line(&format!("{old} as {new}"))
        }
        Effect::Recreated | Effect::Pruned => object_line(&entry.key, &outcome.reason),
        // The reason of any other outcome only says why the request was sent.
        _ => object_line(&entry.key, ""),
    })
}
