//! The page of `apply`, for the summary of a job.

use super::page::{Counted, Item, Page, Part};
use super::text::code;
use super::{
    end_messages, end_word, failures_part, headline, in_words, kept_part, line, losses_part, taken_in_part,
    warnings_part, with_errors,
};
use crate::error::ErrorKind;
use crate::model::message::Message;
use crate::model::write_settings::DryRun;
use crate::report::documents::report::Collected;
use crate::report::documents::{ContextAndServer, RunEnd, SetDocument};
use crate::report::plan_view::{Effect, Entry, PlanView};
use crate::report::text_lines;

/// Returns the page.
pub(in crate::report) fn render_run(
    (set, place): (&SetDocument, &ContextAndServer),
    collected: &Collected,
    end: RunEnd,
    taken: Vec<String>,
) -> Page {
    let view = PlanView::from_outcomes(&collected.results);
    let (failing, changed): (Vec<&Entry>, Vec<&Entry>) = view
        .entries
        .iter()
        .partition(|entry| entry.effect == Effect::Failed);
    let late = collected.waiting.iter().flatten().map(text_lines::awaited);
    let late: Vec<Message> = late.map(Message::new).collect();
    let lost = match collected.dry_run {
        DryRun::None => "Data was lost",
        DryRun::Client | DryRun::Server => "Data would be lost",
    };
    let errors = match end {
        RunEnd::Failed(error) if error.kind == ErrorKind::Refused => "Refused: nothing was written",
        _ => "Errors",
    };
    let counts = view.counts("skipped");
    let ended = end_word(end).or(with_errors(&collected.failures));
    let mut words = in_words(&counts, Effect::done, ended, view.no_changes());
    if !late.is_empty() {
        words.push(format!("{} not ready", late.len()));
    }
    if let Some(last) = words.last_mut() {
        last.push_str(text_lines::suffix(collected.dry_run));
    }
    let mut parts = vec![
        Part::messages(errors, end_messages(end, &collected.failures)),
        losses_part(lost, &changed, |effect, key, _| {
            format!("{key} {}", effect.done())
        }),
        failures_part("Failed", &failing),
        Part::messages("Not ready", late),
        warnings_part(&collected.warnings),
        taken_in_part(taken),
    ];
    parts.extend(
        changed
            .chunk_by(|one, other| one.effect == other.effect)
            .map(list),
    );
    parts.push(kept_part(&view, "skipped"));
    Page {
        headline: headline((set, place), &words, &counts.others),
        parts,
        advice: "",
    }
}

/// The objects with one effect.
fn list(entries: &[&Entry]) -> Part {
    let effect = entries[0].effect;
    let (count, word) = (entries.len(), effect.done());
    let more = match effect {
        Effect::Renamed => ": pruned, and created under another name",
        _ => "",
    };
    let items = entries.iter().filter_map(|entry| item(entry)).collect();
    Part::collapsed(&format!("{count} {word}{more}"), items)
}

fn item(entry: &Entry) -> Option<Item> {
    let (outcome, word) = (entry.outcome?, entry.effect.done());
    Some(match entry.effect {
        Effect::Renamed => {
            let [old, new] = [&entry.key, &outcome.subject.key()].map(|key| code(&key.to_string()));
            Item::line(&format!("{old} as {new}"), Counted::Object(word))
        }
        Effect::Recreated | Effect::Pruned => line(&entry.key, &outcome.reason, word),
        // The reasons of the others are why they were sent.
        _ => line(&entry.key, "", word),
    })
}
