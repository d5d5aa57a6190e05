//! The Markdown of `diff` and `apply`, for pull requests and job summaries.
//!
//! The most dangerous comes first. All text from the cluster and from manifests is in code spans, so that it cannot be
//! a link, HTML or a mention of a user.

mod apply_page;
mod diff_page;
mod page;
mod text;

pub(super) use apply_page::run_page;
pub(super) use diff_page::diff_page;
pub(super) use page::Page;

use std::collections::BTreeSet;

use page::{Item, Part};
use text::{code, short_code};

use super::documents::{ContextAndServer, INTERRUPTED, RunEnd, SetDocument};
use super::plan_view::{Effect, EffectCounts, Entry};
use super::text_lines::{self, set_title};
use crate::event::ObjectOutcome;
use crate::exit::Exit;
use crate::model::identity::ObjectKey;
use crate::model::message::Message;

/// The most bytes of a page for a comment. GitHub accepts 65,536 characters; the rest is left for lines that the user's
/// pipeline adds.
pub const BYTES_OF_COMMENT: usize = 64_512;

/// The most bytes of the set's name in the headline.
const MAX_SET_BYTES: usize = 250;
/// The most bytes of the context below the headline.
const MAX_CONTEXT_BYTES: usize = 100;

/// Returns how the headline names the end of a run; `None` if the run is complete.
fn end_word(end: RunEnd) -> Option<&'static str> {
    match end {
        RunEnd::Failed(error) => Some(match error.exit() {
            Exit::Refused => "refused",
            Exit::Usage => "wrong manifests",
            _ => "stopped by an error",
        }),
        RunEnd::Interrupted(..) => Some("interrupted"),
        RunEnd::Complete => None,
    }
}

/// Returns the messages of the error or the interrupt that ended the run, and the failures.
fn end_messages(end: RunEnd, failures: &[Message]) -> Vec<Message> {
    let mut messages = match end {
        RunEnd::Failed(error) => error.messages.clone(),
        RunEnd::Interrupted(resume, _) => vec![Message::new(INTERRUPTED).with_hint(resume.to_string())],
        RunEnd::Complete => Vec::new(),
    };
    messages.extend(failures.iter().cloned());
    messages
}

/// Returns how the headline mentions failures that are not about an object; `None` without any.
fn failures_word(failures: &[Message]) -> Option<&'static str> {
    (!failures.is_empty()).then_some("with errors")
}

/// Returns the phrases of the headline: the counts of effects, each with its `word`, and the end. If there are none,
/// returns `nothing`.
fn headline_phrases(
    counts: &EffectCounts,
    word: fn(Effect) -> &'static str,
    end: Option<&'static str>,
    nothing: &str,
) -> Vec<String> {
    let effects = counts.effects.iter();
    let mut counts: Vec<String> = effects
        .map(|(count, effect)| format!("{count} {}", word(*effect)))
        .collect();
    match end {
        Some(end) => counts.push(end.to_owned()),
        None if counts.is_empty() => counts.push(nothing.to_owned()),
        None => {}
    }
    counts
}

/// Returns the beginning of a page: the headline, and a line below it. The phrases are not escaped, so they must be text
/// of this program.
fn beginning_of_page(
    (set, place): (&SetDocument, &ContextAndServer),
    phrases: &[String],
    mut below: Vec<String>,
) -> String {
    let title = short_code(&set_title(set), MAX_SET_BYTES);
    let mut line = format!("### ApplySet {title}: {}\n", phrases.join(", "));
    if let Some(context) = &place.context {
        below.push(format!("context {}", short_code(context, MAX_CONTEXT_BYTES)));
    }
    if !below.is_empty() {
        line = format!("{line}\n{}\n", below.join(" · "));
    }
    line
}

/// Returns the part with the warnings of a run, each once.
fn warnings_part(warnings: &[String]) -> Part {
    let mut seen = BTreeSet::new();
    let new = warnings.iter().filter(|warning| seen.insert(*warning));
    Part::messages(
        "Warnings",
        new.map(|warning| Message::new(warning.as_str())).collect(),
    )
}

/// Returns the part with the objects that were in no set and have joined this one.
fn taken_in_part(lines: Vec<String>) -> Part {
    Part::messages(
        "Taken into the set",
        lines.into_iter().map(Message::new).collect(),
    )
}

/// Returns the part with the objects whose data is lost. `text` makes a line from the effect, the object as code, and
/// the loss.
fn losses_part(title: &str, entries: &[&Entry], text: fn(Effect, &str, &str) -> String) -> Part {
    let losses = entries.iter().filter_map(|entry| {
        let text = text(entry.effect, &code(&entry.key.to_string()), entry.loss.as_ref()?);
        Some(Item::line(&text))
    });
    Part::list(title, losses.collect())
}

/// Returns the part with the messages of objects that fail.
fn failures_part(title: &str, entries: &[&Entry]) -> Part {
    let outcomes = entries.iter().filter_map(|entry| entry.outcome);
    Part::messages(
        title,
        outcomes.filter_map(text_lines::reason_or_error_message).collect(),
    )
}

/// Returns the part with objects that are kept or skipped, as `word` says.
fn collapsed_part(outcomes: &[&ObjectOutcome], word: &str) -> Part {
    let items = outcomes.iter();
    let items = items.map(|outcome| object_line(&outcome.subject.key(), &outcome.reason));
    Part::collapsed(&format!("{} {word}", outcomes.len()), items.collect())
}

/// `- configmap/web in namespace shop: reason`
fn object_line(key: &ObjectKey, reason: &str) -> Item {
    let mut line = code(&key.to_string());
    if !reason.is_empty() {
        line = format!("{line}: {}", code(reason));
    }
    Item::line(&line)
}

#[cfg(test)]
mod tests;
