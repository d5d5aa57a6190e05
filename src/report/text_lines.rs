//! The text of lines for people, in the style of kubectl.

use super::documents::report::RequestsAndSeconds;
use super::documents::{ContextAndServer, SetDocument};
use super::layout::paint::{Color, Line, fit};
use super::plan_view::Effect;
use super::style::Colors;
use crate::event::{Action, Awaited, ObjectOutcome, Phase, WaitStatus};
use crate::model::identity::ObjectKey;
use crate::model::message::Message;
use crate::model::text::{counted, first_names_and_more};
use crate::model::write_settings::DryRun;

/// The label at the beginning of a message on standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Label {
    Error,
    Warning,
    Hint,
    Note,
    Plain,
}

impl Label {
    pub(super) fn text(self, colors: Colors) -> String {
        let (word, color) = match self {
            Self::Error => ("error: ", Color::Danger),
            Self::Warning => ("warning: ", Color::BoldYellow),
            Self::Hint => ("hint: ", Color::Cyan),
            Self::Note => ("note: ", Color::Dim),
            Self::Plain => ("", Color::Plain),
        };
        color.paint(word, colors)
    }
}

/// `deployment.apps/web configured in namespace shop (server dry run)`
pub(super) fn outcome_line(outcome: &ObjectOutcome, dry_run: DryRun) -> Line {
    let mut rest = String::new();
    if let Some(namespace) = &outcome.subject.namespace {
        rest.push_str(" in namespace ");
        rest.push_str(namespace);
    }
    rest.push_str(dry_run_suffix(dry_run));
    let color = Effect::from_action(outcome.action).map_or(Color::Dim, |effect| effect.sign_and_color().1);
    Line::new(Color::Plain, format!("{} ", outcome.subject.key().object_name()))
        .with(color, outcome.action.to_string())
        .with(Color::Plain, rest)
}

/// Returns the message with the reason or the error of an outcome, which [`outcome_line`] leaves out; `None` if the
/// outcome has neither.
pub(super) fn reason_or_error_message(outcome: &ObjectOutcome) -> Option<Message> {
    let key = outcome.subject.key();
    match (&outcome.error, outcome.reason.as_str()) {
        (Some(error), _) => Some(match &outcome.source {
            Some(position) => error
                .clone()
                .with_subject_prefix(format_args!("{position}: {key}: ")),
            None => error.clone().with_subject_prefix(format_args!("{key}: ")),
        }),
        (None, "") => None,
        (None, reason) => Some(Message::new(format!("{key} {}: {reason}", outcome.action))),
    }
}

/// `created parent secret/web in namespace shop`
pub(super) fn parent_line(key: &ObjectKey, action: Action, dry_run: DryRun) -> String {
    format!("{action} parent {key}{}", dry_run_suffix(dry_run))
}

/// `deployment.apps/web in namespace shop: InProgress: 1 of 2 replicas are ready`
pub(super) fn awaited_line(awaited: &Awaited) -> String {
    let key = awaited.subject.key();
    let Awaited { status, reason, .. } = awaited;
    match awaited.wait_status {
        WaitStatus::Arrived | WaitStatus::Unseen => format!("{key}: {reason}"),
        WaitStatus::Changed | WaitStatus::NewReason | WaitStatus::Explained | WaitStatus::Missed => {
            format!("{key}: {status}: {reason}")
        }
        WaitStatus::Slow => format!("waiting for {key}: {reason}"),
    }
}

/// `applying 5 objects`
pub(super) fn phase_line(phase: Phase, total: usize) -> String {
    let objects = counted(total, "object");
    match phase {
        Phase::Waiting => format!("{phase} for {objects}"),
        _ => format!("{phase} {objects}"),
    }
}

/// `still being deleted: configmap/web in namespace shop; wait with --wait`
pub(super) fn still_being_deleted_line(keys: &[ObjectKey]) -> String {
    let names = first_names_and_more(keys);
    format!("still being deleted: {names}; wait with --wait")
}

/// `3 created, 1 pruned (12 requests, 0.2 s)`
pub(super) fn summary_line(counts: &str, dry_run: DryRun, cost: RequestsAndSeconds) -> String {
    let requests = usize::try_from(cost.requests).unwrap_or(usize::MAX);
    format!(
        "{counts}{} ({}, {:.1} s)",
        dry_run_suffix(dry_run),
        counted(requests, "request"),
        cost.seconds
    )
}

/// Returns the words that mark a dry run; empty for a real run.
pub(super) fn dry_run_suffix(dry_run: DryRun) -> &'static str {
    match dry_run {
        DryRun::None => "",
        DryRun::Client => " (dry run)",
        DryRun::Server => " (server dry run)",
    }
}

/// `secret/shop in platform`
pub(super) fn set_title(set: &SetDocument) -> String {
    match (&set.kind, &set.namespace) {
        (Some(_), Some(namespace)) => format!("{} in {namespace}", set.reference()),
        (Some(_), None) => set.reference(),
        (None, _) => set.name.clone(),
    }
}

/// `secret/shop in platform   context prod-eu   https://10.0.0.1:6443`
///
/// On a narrow terminal, the URL is cut.
pub(super) fn header(title: &str, place: &ContextAndServer, columns: usize) -> Line {
    let context = match &place.context {
        Some(context) => format!("   context {context}"),
        None => String::new(),
    };
    let server = match place.server.trim_end_matches('/') {
        "" => String::new(),
        server => format!("   {server}"),
    };
    let room = columns.saturating_sub(title.chars().count() + context.chars().count());
    Line::new(Color::Bold, title)
        .with(Color::Plain, context)
        .with(Color::Dim, fit(&server, room))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_set_and_the_context_are_always_named() {
        let set = SetDocument {
            kind: Some("Secret".to_owned()),
            group: Some(String::new()),
            namespace: Some("platform".to_owned()),
            ..SetDocument::from_name("shop")
        };
        let place = ContextAndServer {
            context: Some("prod-eu".to_owned()),
            server: "https://10.0.0.1:6443/".to_owned(),
            ..ContextAndServer::default()
        };
        let text = |columns| header(&set_title(&set), &place, columns).text(Colors::Off);
        assert_eq!(
            text(80),
            "secret/shop in platform   context prod-eu   https://10.0.0.1:6443"
        );
        assert_eq!(text(50), "secret/shop in platform   context prod-eu   https…");
    }
}
