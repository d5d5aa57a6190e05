//! Lists namespaces and kinds of CRDs again right before they are deleted.
//!
//! A run may take minutes. Objects that are created in a namespace in that time would be deleted with the namespace,
//! although the plan has not judged them; the same holds for custom resources and their CRD. `plan::data_loss` decides
//! what counts as a loss, `plan::build_delete_graph` and `deletes` which containers of a run are listed.

use std::collections::BTreeMap;

use crate::cluster::discovery;
use crate::error::Error;
use crate::event::{ObjectOutcome, Subject};
use crate::execute::deletion::delete::{DeleteContext, skipped_outcome};
use crate::model::containers::Contents;
use crate::model::identity::ObjectKey;
use crate::model::live::Live;
use crate::plan::{ReasonToKeep, is_namespace_or_crd};
use crate::read::{self, KindWait};

impl DeleteContext<'_> {
    /// Lists what the containers among `objects` hold, and returns an outcome for each container that must not be
    /// deleted: it has gained objects, or its contents cannot be listed. An object in it that has gained a keep
    /// annotation counts even if the user has allowed all losses beforehand.
    pub async fn outcomes_of_containers_to_keep(
        &self,
        objects: impl Iterator<Item = &Live>,
    ) -> Vec<ObjectOutcome> {
        let containers: Vec<Live> = objects
            .filter(|live| is_namespace_or_crd(live))
            .cloned()
            .collect();
        if containers.is_empty() {
            return Vec::new();
        }
        let contents = match self.list_contents_of(&containers).await {
            Ok(contents) => contents,
            // Contents that are unknown may be a loss, so every container is kept.
            Err(error) => {
                let text = format!("its contents cannot be listed: {error}");
                return containers.iter().map(|live| failed(live, text.clone())).collect();
            }
        };
        let kept = containers.iter().filter_map(|live| {
            let reason = self
                .judge
                .reason_to_keep_container_with_contents(live, contents.get(&live.key)?)?;
            Some(match &reason {
                // No object is known to be lost, but some kinds cannot be listed any more: that is a failure.
                ReasonToKeep::FilledSincePlan { lost, .. } if lost.is_empty() => {
                    failed(live, reason.to_string())
                }
                _ => skipped_outcome(live, reason.to_string()),
            })
        });
        kept.collect()
    }

    async fn list_contents_of(&self, containers: &[Live]) -> Result<BTreeMap<ObjectKey, Contents>, Error> {
        // Discovery is fetched again: a namespace may hold objects of a kind that was created since the plan.
        let mut discovery = discovery::fetch(self.server).await?;
        let wait = KindWait::without_report();
        let contents = read::list_contents_of_namespaces_and_crds(
            self.server,
            &mut discovery,
            containers,
            self.writing.concurrency,
            &wait,
        );
        contents.await
    }
}

fn failed(live: &Live, error: String) -> ObjectOutcome {
    ObjectOutcome::from_error(Subject::from_live(live), error)
}
