//! `history`: the last runs that changed a set.

use crate::cli::{GlobalFlags, History};
use crate::error::{Error, Exit};
use crate::model::applyset::parent::Reading;
use crate::model::history;
use crate::report::{self, HistoryDocument, SetDocument};
use crate::session::existing_set::{ExistingSet, existing_set};
use crate::session::signals::{listen, unless_stopped};
use crate::settings::{self, SetReference};

/// Runs `history`.
pub(super) async fn run(arguments: &History, shared: &GlobalFlags) -> Result<Exit, Error> {
    let style = settings::style(shared);
    let reference = SetReference::new(&arguments.set)?;
    let mut set = SetDocument::named(&reference.name);
    let found = unless_stopped(&listen(), history(&reference, shared, &mut set)).await;
    let document = match found {
        Err(error) if error.exit() != Exit::Usage => {
            report::document(&HistoryDocument::failed(set, &error), style);
            return Err(error);
        }
        found => found?,
    };
    if document.runs.is_empty() {
        report::note(
            &format!(
                "{}: no run of apply is recorded; runs without changes never are",
                document.reference()
            ),
            style,
        );
    }
    report::data(&document, style, report::history_table, |document| {
        vec![document.reference()]
    });
    Ok(Exit::Done)
}

/// Reads the history; `known` gets what is known of the set, in case of an error later.
async fn history(
    reference: &SetReference,
    shared: &GlobalFlags,
    known: &mut SetDocument,
) -> Result<HistoryDocument, Error> {
    let ExistingSet { parent, .. } = existing_set(reference, shared, known).await?;
    if let Reading::Parent(record) = &parent.reading {
        known.tooling = Some(record.tooling.to_string());
    }
    Ok(HistoryDocument::new(
        known.clone(),
        history::read(&parent.annotations),
    ))
}
