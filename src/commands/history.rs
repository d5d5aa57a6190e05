//! `history`: the last runs that changed a set.

use crate::cli::{GlobalFlags, SetArgument};
use crate::error::Error;
use crate::exit::Exit;
use crate::model::applyset::parent::Reading;
use crate::model::history_annotation::History;
use crate::report::{self, HistoryDocument};
use crate::session::set_to_show::{ExistingSet, SetAndPlace, read_existing_set};
use crate::session::signals::{listen, run_unless_interrupted};
use crate::settings::{self, SetReference};

/// Runs `history`.
pub(super) async fn run(set: &SetArgument, shared: &GlobalFlags) -> Result<Exit, Error> {
    let style = settings::read_style(shared);
    let reference = SetReference::new(set)?;
    let mut known = SetAndPlace::from_name(&reference.name);
    let found = run_unless_interrupted(&listen(), read_history(&reference, shared, &mut known)).await;
    let document = match found {
        // A usage error has no document.
        Err(error) if error.exit() != Exit::Usage => {
            report::print_if_json_or_yaml(
                &HistoryDocument::from_error(known.set, &error),
                &known.place,
                style,
            );
            return Err(error);
        }
        found => found?,
    };
    if document.runs.is_empty() {
        report::print_note(
            &format!(
                "{}: no run is recorded; runs without changes are not recorded",
                document.set.reference()
            ),
            style,
        );
    }
    report::print_listing(&document, &known.place, style);
    Ok(Exit::Done)
}

/// Reads the history. `known` gets the set and its cluster as soon as they are known, so that the document has them
/// even if a later step fails.
async fn read_history(
    reference: &SetReference,
    shared: &GlobalFlags,
    known: &mut SetAndPlace,
) -> Result<HistoryDocument, Error> {
    let ExistingSet { parent, cluster, .. } = read_existing_set(reference, shared, known).await?;
    if let Reading::Parent(record) = &parent.reading {
        known.set.tooling = Some(record.tooling.to_string());
    }
    Ok(HistoryDocument::new(
        known.set.clone(),
        History::from_annotations(&parent.annotations).into_runs(),
        cluster.server.now(),
    ))
}
