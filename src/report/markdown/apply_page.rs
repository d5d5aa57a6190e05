//! The page of `apply`, for the summary of a job.

use super::page::{Counted, Item, Page, Part};
use super::text::code;
use super::{End, failed, headline, in_words, kept, line, losses, taken_in, warnings, with_errors};
use crate::error::ErrorKind;
use crate::model::message::Message;
use crate::model::write_settings::DryRun;
use crate::report::document::Collected;
use crate::report::plan_view::{Effect, Entry, PlanView};
use crate::report::{ContextAndServer, SetDocument, text_lines};

/// Returns the page.
pub(in crate::report) fn of_run(
    (set, place): (&SetDocument, &ContextAndServer),
    collected: &Collected,
    end: End<'_>,
    taken: Vec<String>,
) -> Page {
    let view = PlanView::of_run(&collected.results);
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
    let errors = match end.error {
        Some(error) if error.kind == ErrorKind::Refused => "Refused: nothing was written",
        _ => "Errors",
    };
    let counts = view.counts("skipped");
    let ended = end.word().or(with_errors(&collected.failures));
    let mut words = in_words(&counts, Effect::done, ended, view.no_changes());
    if !late.is_empty() {
        words.push(format!("{} not ready", late.len()));
    }
    if let Some(last) = words.last_mut() {
        last.push_str(text_lines::suffix(collected.dry_run));
    }
    let mut parts = vec![
        Part::messages(errors, end.messages(&collected.failures)),
        losses(lost, &changed, |effect, key, _| {
            format!("{key} {}", effect.done())
        }),
        failed("Failed", &failing),
        Part::messages("Not ready", late),
        warnings(&collected.warnings),
        taken_in(taken),
    ];
    parts.extend(
        changed
            .chunk_by(|one, other| one.effect == other.effect)
            .map(list),
    );
    parts.push(kept(&view, "skipped"));
    Page {
        headline: headline((set, place), &words, &counts.others),
        parts,
        advice: "",
    }
}

/// The objects with one effect.
fn list(entries: &[&Entry]) -> Part {
    let word = entries.first().map_or("", |entry| entry.effect.done());
    let more = match entries {
        [
            Entry {
                effect: Effect::Renamed,
                ..
            },
            ..,
        ] => ": pruned, and created under another name",
        _ => "",
    };
    let items = entries.iter().filter_map(|entry| item(entry)).collect();
    Part::folded(&format!("{} {word}{more}", entries.len()), items)
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
