//! `list`: the sets of a namespace or of the cluster.

use super::opening;
use crate::cli::{List, Shared};
use crate::error::{Error, Exit};
use crate::inspect::FoundSet;
use crate::observe;
use crate::options;
use crate::report::{self, ListDocument, SetListing};

/// Runs `list`.
pub(super) async fn run(arguments: &List, shared: &Shared) -> Result<Exit, Error> {
    let style = options::style(shared);
    let cluster = opening::discover(opening::connect(shared).await?).await?;
    let mut warnings = Vec::new();
    let kinds = opening::parent_kinds(&cluster, &mut warnings).await;
    let namespace = (!arguments.all_namespaces).then_some(cluster.namespace.as_str());
    let parents = observe::parents(&cluster.server, &kinds, namespace).await;
    let parents = parents.map_err(|(place, error)| Error::List { place, error })?;
    let mut sets: Vec<FoundSet> = parents
        .into_iter()
        .map(|(identity, parent)| FoundSet::new(identity, &parent))
        .collect();
    opening::find_members(&cluster, &mut sets, usize::from(shared.concurrency)).await?;
    let document = ListDocument {
        api_version: report::API_VERSION,
        sets: sets
            .iter()
            .map(|set| SetListing::new(set, &cluster.discovery))
            .collect(),
        warnings,
    };
    for warning in &document.warnings {
        report::note(warning, style);
    }
    if document.sets.is_empty() {
        let place = namespace.map_or_else(String::new, |namespace| {
            format!(" in namespace {namespace}; -A looks into all")
        });
        report::note(&format!("there are no sets{place}"), style);
    }
    report::data(&document, style, report::list_table, |document| {
        document.sets.iter().map(SetListing::reference).collect()
    });
    Ok(Exit::Done)
}
