//! The Markdown of `diff` and `apply`, for pull requests and job summaries.
//!
//! Pure: values in, text out. The most dangerous comes first. All text of others is code, so that it
//! cannot be a link, HTML or a mention of a user.

mod apply_page;
mod diff_page;
mod page;
mod text;

pub(super) use apply_page::render_run;
pub(super) use diff_page::render_diff;
pub(super) use page::Page;

use std::collections::BTreeMap;

use page::{Counted, Item, Part};
use text::{code, short_code};

use super::documents::{ContextAndServer, INTERRUPTED, RunEnd, SetDocument};
use super::plan_view::{Effect, EffectCounts, Entry, PlanView};
use super::text_lines::{self, title};
use crate::error::Exit;
use crate::model::identity::ObjectKey;
use crate::model::message::Message;

/// The most bytes of a page for a comment. GitHub takes 65,536 characters; the rest is for lines around it.
pub const BYTES_OF_COMMENT: usize = 64_512;

/// The most bytes of the set and of the context in the headline.
const SET: usize = 250;
const CONTEXT: usize = 100;

/// The word of the headline, if the end is not an ordinary one.
fn end_word(end: RunEnd) -> Option<&'static str> {
    match end {
        RunEnd::Failed(error) => Some(match error.exit() {
            Exit::Refused => "refused",
            Exit::Usage => "wrong manifests",
            _ => "stopped by an error",
        }),
        RunEnd::Interrupted(_) => Some("interrupted"),
        RunEnd::Complete => None,
    }
}

/// The messages of the end, and these failures.
fn end_messages(end: RunEnd, failures: &[Message]) -> Vec<Message> {
    let mut messages = match end {
        RunEnd::Failed(error) => error.messages.clone(),
        RunEnd::Interrupted(resume) => vec![Message::new(INTERRUPTED).with_hint(resume.to_string())],
        RunEnd::Complete => Vec::new(),
    };
    messages.extend(failures.iter().cloned());
    messages
}

/// The word of the headline for failures that are not about an object.
fn with_errors(failures: &[Message]) -> Option<&'static str> {
    (!failures.is_empty()).then_some("with errors")
}

/// The counts of the headline in these words, and the end.
fn in_words(
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

/// The first lines. `counts` and `others` are text of this program.
fn headline((set, place): (&SetDocument, &ContextAndServer), counts: &[String], others: &[String]) -> String {
    let title = short_code(&title(set), SET);
    let mut line = format!("### ApplySet {title}: {}\n", counts.join(", "));
    let mut below = others.to_vec();
    if let Some(context) = &place.context {
        below.push(format!("context {}", short_code(context, CONTEXT)));
    }
    if !below.is_empty() {
        line = format!("{line}\n{}\n", below.join(" · "));
    }
    line
}

/// The warnings of a run; one that was repeated is shown once.
fn warnings_part(warnings: &[String]) -> Part {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut first = Vec::new();
    for warning in warnings {
        let count = counts.entry(warning).or_default();
        *count += 1;
        if *count == 1 {
            first.push(warning);
        }
    }
    let messages = first.into_iter().map(|warning| match counts[warning.as_str()] {
        count @ 2.. => Message::new(format!("{warning} ({count} times)")),
        _ => Message::new(warning.as_str()),
    });
    Part::messages("Warnings", messages.collect())
}

/// Objects that existed in no set.
fn taken_in_part(lines: Vec<String>) -> Part {
    Part::messages(
        "Taken into the set",
        lines.into_iter().map(Message::new).collect(),
    )
}

/// The objects whose data are lost; `text` is of the effect, the object as code, and the loss.
fn losses_part(title: &str, entries: &[&Entry], text: fn(Effect, &str, &str) -> String) -> Part {
    let losses = entries.iter().filter_map(|entry| {
        let text = text(entry.effect, &code(&entry.key.to_string()), entry.loss.as_ref()?);
        Some(Item::line(&text, Counted::Message))
    });
    Part::list(title, losses.collect())
}

/// The messages of objects that fail.
fn failures_part(title: &str, entries: &[&Entry]) -> Part {
    let outcomes = entries.iter().filter_map(|entry| entry.outcome);
    Part::messages(title, outcomes.filter_map(text_lines::detail).collect())
}

/// The objects that are kept, in this word.
fn kept_part(view: &PlanView, word: &'static str) -> Part {
    let kept = view.kept.iter();
    let items = kept.map(|outcome| line(&outcome.subject.key(), &outcome.reason, word));
    Part::collapsed(&format!("{} {word}", view.kept.len()), items.collect())
}

/// `- configmap/web in namespace shop: reason`
fn line(key: &ObjectKey, reason: &str, word: &'static str) -> Item {
    let mut line = code(&key.to_string());
    if !reason.is_empty() {
        line = format!("{line}: {}", code(reason));
    }
    Item::line(&line, Counted::Object(word))
}

#[cfg(test)]
mod tests;
