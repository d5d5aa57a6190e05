//! `list`: the sets of a namespace or of the cluster.

use std::sync::Arc;

use super::opening::{self, Cluster};
use crate::cli::{List, Shared};
use crate::discovery::{KindLookup, Origin, Resource};
use crate::error::{Error, Exit};
use crate::identity::GroupKind;
use crate::inspect::FoundSet;
use crate::observe;
use crate::options;
use crate::report::{self, ListDocument, SetListing};

/// Runs `list`.
pub(super) async fn run(arguments: &List, shared: &Shared) -> Result<Exit, Error> {
    let style = options::style(shared);
    let cluster = opening::discover(opening::connect(shared).await?, &[]).await?;
    let mut warnings = Vec::new();
    let kinds = parent_kinds(&cluster, &mut warnings).await;
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

/// Exactly the kinds that may be parents: Secrets, ConfigMaps, and custom resources
/// whose CRD says so.
async fn parent_kinds(cluster: &Cluster, warnings: &mut Vec<String>) -> Vec<Arc<Resource>> {
    let mut kinds = vec![GroupKind::new("", "Secret"), GroupKind::new("", "ConfigMap")];
    match observe::custom_parent_kinds(&cluster.server).await {
        Ok(custom) => kinds.extend(custom),
        Err(error) => warnings.push(format!(
            "sets whose parent is a custom resource are not shown, because CustomResourceDefinitions could not be listed: {error}"
        )),
    }
    kinds
        .iter()
        .filter_map(|kind| match cluster.discovery.preferred(kind) {
            KindLookup::Found(resource) if resource.origin == Origin::Served => {
                Some(Arc::new(resource.clone()))
            }
            _ => None,
        })
        .collect()
}
