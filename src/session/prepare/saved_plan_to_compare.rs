//! Makes the plan of `diff --plan`: from the manifests of a saved plan, to compare the cluster with it. No other source
//! of manifests is read.

use std::collections::BTreeSet;

use futures_util::stream;
use futures_util::{StreamExt as _, TryStreamExt as _};
use serde_json::Value;

use super::saved_plan::{identify_cluster, namespace_uids, plan_from_saved};
use super::{Input, Prepared};
use crate::cli::GlobalFlags;
use crate::cluster::discovery::KindLookup;
use crate::error::Error;
use crate::manifest::{Manifest, desired};
use crate::model::history_annotation::History;
use crate::model::identity::ObjectKey;
use crate::plan::saved::{self, SavedPlan};
use crate::read::{self, Cluster};
use crate::session::command_run::CommandRun;
use crate::settings::ApplyOptions;

/// Plans from the manifests of a saved plan. Warns if another run has changed the set since with other manifests.
///
/// # Errors
///
/// The saved plan was made for another cluster, or no plan can be made there any more.
pub async fn plan_to_compare(
    run: &mut CommandRun,
    shared: &GlobalFlags,
    options: &ApplyOptions,
    plan: &SavedPlan,
) -> Result<Prepared, Error> {
    let connection = run.connect(shared).await?;
    let input = Input::SavedToCompare(Box::new(plan.clone()));
    let prepared = plan_from_saved(run, connection, options, input).await?;
    let cluster = identify_cluster(&prepared.cluster.server, &prepared.cluster.endpoint).await?;
    let parent = prepared.state.parent_object();
    if let Some(other) = saved::find_other_cluster(
        plan,
        &cluster,
        &namespace_uids(&prepared.state.namespaces),
        parent,
    ) {
        return Err(saved::stale_plan_error(vec![other]));
    }
    let runs = parent
        .into_iter()
        .flat_map(|parent| History::from_annotations(&parent.annotations).into_runs());
    let last_change = runs
        .into_iter()
        .find(|run| !run.is_running() && !run.manifests.is_empty());
    if last_change
        .is_some_and(|run| run.manifests != desired::digest_without_secret_values(&prepared.desired))
    {
        let text = "the last run that changed the set used other manifests than this plan";
        run.report_new_warnings(&[text.to_owned()]);
    }
    Ok(prepared)
}

/// Returns the manifests of a saved plan, whose values of Secrets are filled in from the live Secrets if the digests
/// match. Also returns the Secrets with a value that does not match.
pub(super) async fn fill_in_secret_values(
    cluster: &Cluster,
    plan: &SavedPlan,
    concurrency: usize,
) -> Result<(Vec<Manifest>, BTreeSet<ObjectKey>), Error> {
    let reads = plan.manifests.iter().map(async |manifest| {
        let key = manifest.object_key_if_secret(&plan.set.namespace);
        let secret = key.filter(|_| !manifest.hidden.is_empty());
        let live = match &secret {
            Some(key) => read_secret(cluster, key).await?,
            None => None,
        };
        let compared = saved::fill_in_secret_values_for_comparison(manifest, live.as_ref(), &plan.salt);
        Ok::<_, Error>(compared.map(|compared| (compared, secret)))
    });
    let compared: Vec<Option<_>> = stream::iter(reads).buffered(concurrency).try_collect().await?;
    let mut manifests = Vec::new();
    let mut incomplete = BTreeSet::new();
    for ((manifest, is_complete), secret) in compared.into_iter().flatten() {
        manifests.push(manifest);
        incomplete.extend(secret.filter(|_| !is_complete));
    }
    Ok((manifests, incomplete))
}

/// Reads a live Secret; `None` if it does not exist, or if discovery does not show Secrets.
async fn read_secret(cluster: &Cluster, key: &ObjectKey) -> Result<Option<Value>, Error> {
    let KindLookup::Found(resource) = cluster.discovery.find_preferred(&key.group_kind) else {
        return Ok(None);
    };
    let object = read::read_object(&cluster.server, resource, key).await;
    object.map_err(|error| error.to_error_while_reading(key))
}
