//! The cluster that a command reads: its server, its discovery, and the waits for kinds that are not
//! served yet.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use serde_json::Value;
use tokio::time::Instant;

use super::beside_discovery::ReadBesideDiscovery;
use super::found_set::FoundSet;
use super::kinds_missing_from_discovery::{self as missing_kinds, KindWait};
use super::{UnsettledError, unseen_kinds};
use crate::cluster::apiserver::ApiServer;
use crate::cluster::connection::Endpoint;
use crate::cluster::discovery::{self, Discovery, DiscoveryError, KindLookup};
use crate::error::Error;
use crate::manifest::Manifest;
use crate::manifest::desired;
use crate::model::applyset::parent::RecordedKinds;
use crate::model::containers::Contents;
use crate::model::identity::{GroupKind, GroupVersionKind, ObjectKey};
use crate::model::live::Live;
use crate::plan::recorded_kinds;

/// A cluster whose server has listed what it serves.
pub struct Cluster {
    pub server: ApiServer,
    /// The kinds that it serves.
    pub discovery: Discovery,
    /// The namespace of objects without one.
    pub namespace: String,
    /// The URL and the certificate authorities of the server.
    pub endpoint: Endpoint,
    /// The waits for kinds that it does not serve yet.
    pub kind_waits: KindWaits,
    /// What was read beside discovery.
    pub read_beside_discovery: ReadBesideDiscovery,
}

/// The waits of a run for kinds that are not served yet.
#[derive(Clone)]
pub struct KindWaits {
    end_of_run: Rc<dyn Fn() -> Option<Instant>>,
    on_wait: Rc<dyn Fn(&str)>,
}

impl KindWaits {
    /// Returns the waits of a run. `end_of_run` returns its deadline, if there is one now; `on_wait` is called
    /// with what is waited for.
    pub fn new(end_of_run: impl Fn() -> Option<Instant> + 'static, on_wait: impl Fn(&str) + 'static) -> Self {
        Self {
            end_of_run: Rc::new(end_of_run),
            on_wait: Rc::new(on_wait),
        }
    }

    /// No waits at all.
    pub fn none() -> Self {
        Self::new(|| Some(Instant::now()), |_| {})
    }

    fn begin(&self) -> KindWait<'_> {
        KindWait::new((self.end_of_run)(), &*self.on_wait)
    }
}

/// Names of the kinds that a search of all kinds cannot list.
pub struct UnlistableKinds {
    /// The kinds that only a missing permission would show.
    without_permission: Option<String>,
    /// Definitions that serve nothing, and APIs that do not answer.
    pub unserved: Vec<String>,
}

impl UnlistableKinds {
    /// Names all of it.
    pub fn names(&self) -> Vec<String> {
        let permission = self.without_permission.iter();
        permission.chain(&self.unserved).cloned().collect()
    }
}

impl Cluster {
    /// Repeats discovery after a pause, such as an open prompt, in which the server may have got new
    /// kinds.
    pub async fn discover_again(&mut self) -> Result<(), DiscoveryError> {
        let fresh = discovery::fetch(&self.server).await?;
        self.discovery = fresh.with_not_yet_served_of(&self.discovery);
        Ok(())
    }

    /// Adds the kinds that the definitions among the manifests will make the server serve. It waits for
    /// kinds of the manifests that are defined already: discovery lags behind definitions.
    pub async fn add_definitions(&mut self, manifests: &[Manifest]) -> Result<(), UnsettledError> {
        let definitions: Vec<Value> = manifests
            .iter()
            .filter(|manifest| manifest.gvk.kind == GroupKind::custom_resource_definition().kind)
            .map(|manifest| manifest.object.value())
            .collect();
        if !definitions.is_empty() {
            self.discovery = self.discovery.with_custom_resources(definitions.iter());
        }
        let kinds: BTreeSet<GroupKind> = manifests
            .iter()
            .map(|manifest| manifest.gvk.group_kind())
            .collect();
        let unlisted = |discovery: &Discovery| {
            kinds
                .iter()
                .filter(|kind| kind.group.contains('.') && discovery.preferred(kind) == KindLookup::Absent)
                .cloned()
                .chain(discovery.not_yet_served_kinds())
                .collect()
        };
        let wait = self.kind_waits.begin();
        missing_kinds::await_defined(&self.server, &mut self.discovery, unlisted, &wait).await?;
        let doubtful = manifests
            .iter()
            .map(|manifest| &manifest.gvk)
            .filter(|gvk| gvk.group.contains('.') && !desired::is_applicable(gvk, &self.discovery))
            .map(GroupVersionKind::group_kind)
            .collect();
        let states = missing_kinds::definition_states(&self.server, &doubtful).await?;
        self.discovery.set_missing_kinds(states);
        Ok(())
    }

    /// Determines the state of recorded kinds that discovery does not list, by a discovery that is
    /// younger than the records. Sends nothing if all are listed.
    pub async fn settle(&mut self, records: &[&RecordedKinds]) -> Result<(), UnsettledError> {
        let Self {
            server,
            discovery,
            kind_waits,
            ..
        } = self;
        let wait = kind_waits.begin();
        missing_kinds::settle(server, discovery, |fresh| unlisted(records, fresh), &wait).await
    }

    /// Determines the same for sets that are only shown: it does not wait, and a state that cannot be
    /// determined stays unknown.
    pub async fn look_up(&mut self, sets: &[FoundSet]) {
        let records = sets.iter().filter_map(FoundSet::recorded);
        let records: Vec<&RecordedKinds> = records.map(|recorded| &recorded.kinds).collect();
        let Self {
            server, discovery, ..
        } = self;
        let wait = KindWait::never();
        // Which kinds are unknown is reported of each set.
        let _ = missing_kinds::settle(server, discovery, |fresh| unlisted(&records, fresh), &wait).await;
    }

    /// Settles kinds for one search, in a copy of the discovery.
    pub(super) async fn settle_kinds(
        &self,
        discovery: &mut Discovery,
        unlisted: impl Fn(&Discovery) -> BTreeSet<GroupKind>,
    ) -> Result<(), UnsettledError> {
        let wait = self.kind_waits.begin();
        missing_kinds::settle(&self.server, discovery, unlisted, &wait).await
    }

    /// Waits until discovery lists every kind that is defined, so that a search of all kinds is
    /// complete. Returns the names of those that still cannot be listed.
    pub async fn await_everything(&mut self) -> Result<UnlistableKinds, UnsettledError> {
        let wait = self.kind_waits.begin();
        let unlistable = missing_kinds::await_everything(&self.server, &mut self.discovery, &wait).await?;
        let failures = self.discovery.failures().iter().map(ToString::to_string);
        Ok(UnlistableKinds {
            without_permission: unlistable.missing_permission.map(unseen_kinds),
            unserved: unlistable.definitions.into_iter().chain(failures).collect(),
        })
    }

    /// Waits until the server serves the resource that the command line names; see
    /// [`missing_kinds::await_named`].
    pub(super) async fn await_named(
        &mut self,
        argument: &str,
    ) -> Result<Option<discovery::KeptKind>, UnsettledError> {
        let wait = self.kind_waits.begin();
        missing_kinds::await_named(&self.server, &mut self.discovery, argument, &wait).await
    }

    /// Lists the contents of these namespaces and definitions of kinds.
    pub(super) async fn contents(
        &mut self,
        containers: &[Live],
        concurrency: usize,
    ) -> Result<BTreeMap<ObjectKey, Contents>, Error> {
        let wait = self.kind_waits.begin();
        let discovery = &mut self.discovery;
        Ok(super::contents(&self.server, discovery, containers, concurrency, &wait).await?)
    }
}

/// The recorded kinds of all these sets that discovery does not list.
fn unlisted(records: &[&RecordedKinds], discovery: &Discovery) -> BTreeSet<GroupKind> {
    records
        .iter()
        .flat_map(|kinds| recorded_kinds::find_undiscovered(kinds, discovery))
        .collect()
}
