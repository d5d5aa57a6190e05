//! Kinds that discovery may not list although they are defined: they are waited for, and what
//! cannot be listed all the same is named.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::opening::Cluster;
use crate::cluster::discovery::{Discovery, KindLookup};
use crate::error::Error;
use crate::model::identity::GroupKind;
use crate::model::resource::{Origin, Resource};
use crate::read::{self, KindWait};
use crate::settings::SetReference;

/// What a look through all kinds cannot see, by name.
pub(super) struct Unseen {
    /// The kinds that only a missing permission would show.
    without_permission: Option<String>,
    /// Definitions that serve nothing, and APIs that do not answer.
    pub(super) unserved: Vec<String>,
}

impl Unseen {
    /// Names all of it.
    pub(super) fn names(&self) -> Vec<String> {
        let permission = self.without_permission.iter();
        permission.chain(&self.unserved).cloned().collect()
    }
}

impl Cluster {
    /// Waits until discovery lists every kind that is defined, so that a look through all kinds
    /// misses none. Names what cannot be listed all the same.
    pub(super) async fn await_everything(&mut self) -> Result<Unseen, Error> {
        let waits = self.waits;
        let note = |text: &str| waits.note(text);
        let wait = KindWait::new(waits.end_of_run, &note);
        let settled = read::await_everything(&self.server, &mut self.discovery, &wait);
        let unlistable = Box::pin(settled).await?;
        let failures = self.discovery.failures().iter().map(ToString::to_string);
        Ok(Unseen {
            without_permission: unlistable.missing_permission.map(read::unseen_kinds),
            unserved: unlistable.definitions.into_iter().chain(failures).collect(),
        })
    }
}

/// Finds the resource of a parent. A kind that is defined and that discovery does not list is
/// waited for.
pub(super) async fn parent_resource(
    cluster: &mut Cluster,
    reference: &SetReference,
) -> Result<Arc<Resource>, Error> {
    let text = reference.resource.as_deref().unwrap_or("secrets");
    let waits = cluster.waits;
    let note = |text: &str| waits.note(text);
    let wait = KindWait::new(waits.end_of_run, &note);
    let named = read::await_named(&cluster.server, &mut cluster.discovery, text, &wait);
    if let Some(kept) = Box::pin(named).await? {
        let kind = kept.kind.map_or_else(|| text.to_owned(), |kind| kind.to_string());
        let reason = kept.reason;
        return Err(Error::KindNotServed(format!(
            "kind {kind} is not served: {reason}"
        )));
    }
    match cluster.discovery.resource_argument(text) {
        KindLookup::Found(resource) => Ok(Arc::new(resource.clone())),
        KindLookup::GroupFailed(failure) => Err(Error::KindUnknowable(format!(
            "resource {text:?}: cannot tell whether the server has it: {failure}"
        ))),
        KindLookup::Absent => Err(Error::Usage {
            message: format!("the server has no resource {text:?} that could be the parent of a set"),
            hint: "write secret/NAME, configmap/NAME, or the custom resource as RESOURCE.GROUP/NAME"
                .to_owned(),
        }),
    }
}

/// Returns the kinds that may be parents: Secrets, ConfigMaps, and custom resources whose CRD says
/// so. Warns of those that may have objects and cannot be listed: their sets are not gone.
pub(super) async fn parent_kinds(cluster: &Cluster, warnings: &mut Vec<String>) -> Vec<Arc<Resource>> {
    let mut kinds = vec![GroupKind::new("", "Secret"), GroupKind::new("", "ConfigMap")];
    match read::custom_parent_kinds(&cluster.server).await {
        Ok(custom) => kinds.extend(custom),
        Err(error) => warnings.push(format!(
            "sets whose parent is a custom resource are not shown, because CustomResourceDefinitions could not be listed: {error}"
        )),
    }
    let unlisted = |discovery: &Discovery| -> BTreeSet<GroupKind> {
        let unlisted = kinds.iter().filter(|kind| is_unlisted(discovery, kind));
        unlisted.cloned().collect()
    };
    let mut discovery = Cow::Borrowed(&cluster.discovery);
    let mut unsettled = None;
    if !unlisted(&discovery).is_empty() {
        let waits = cluster.waits;
        let note = |text: &str| waits.note(text);
        let wait = KindWait::new(waits.end_of_run, &note);
        let settled = read::settle(&cluster.server, discovery.to_mut(), unlisted, &wait);
        unsettled = Box::pin(settled).await.err();
    }
    let mut resources = Vec::new();
    for kind in &kinds {
        let hidden = match discovery.preferred(kind) {
            KindLookup::Found(resource) if resource.origin == Origin::Served => {
                resources.push(Arc::new(resource.clone()));
                None
            }
            KindLookup::GroupFailed(failure) => Some(failure.to_string()),
            KindLookup::Found(_) | KindLookup::Absent => match (discovery.unserved(kind), &unsettled) {
                (Some(unserved), _) => unserved.hidden_reason(),
                (None, Some(error)) => Some(error.to_string()),
                (None, None) => None,
            },
        };
        warnings.extend(
            hidden.map(|reason| {
                format!("sets whose parent is of kind {kind} could not be looked at: {reason}")
            }),
        );
    }
    resources
}

/// Whether the server may serve a kind that this discovery does not show.
fn is_unlisted(discovery: &Discovery, kind: &GroupKind) -> bool {
    match discovery.preferred(kind) {
        KindLookup::Found(resource) => resource.origin == Origin::Promised,
        KindLookup::Absent => true,
        KindLookup::GroupFailed(_) => false,
    }
}
