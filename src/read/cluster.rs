//! The cluster that a command reads: its server, its discovery, and the waits for kinds that are not
//! served yet.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use serde_json::Value;
use tokio::time::Instant;

use super::early_reads::EarlyReads;
use super::found_set::FoundSet;
use super::kinds_missing_from_discovery::{self as missing_kinds, HiddenKinds, KindWait};
use crate::cluster::apiserver::ApiServer;
use crate::cluster::connection::Endpoint;
use crate::cluster::discovery::{self, Discovery, KindLookup};
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
    /// The kinds that the server serves.
    pub discovery: Discovery,
    /// The namespace of namespaced objects that name none.
    pub namespace: String,
    /// The URL and the certificate authorities of the server.
    pub endpoint: Endpoint,
    /// The waits for kinds that the server does not serve yet.
    pub kind_waits: KindWaits,
    /// The answers to reads that were sent at the same time as discovery, until they are used.
    pub early_reads: EarlyReads,
}

/// The waits of a run for kinds that are not served yet.
#[derive(Clone)]
pub struct KindWaits {
    end_of_run: Rc<dyn Fn() -> Option<Instant>>,
    on_wait: Rc<dyn Fn(&str)>,
}

impl KindWaits {
    /// Returns the waits of a run. `end_of_run` returns the deadline of the run, if it has one at that moment;
    /// `on_wait` is called with a description of the awaited kind.
    pub fn new(end_of_run: impl Fn() -> Option<Instant> + 'static, on_wait: impl Fn(&str) + 'static) -> Self {
        Self {
            end_of_run: Rc::new(end_of_run),
            on_wait: Rc::new(on_wait),
        }
    }

    /// Returns the waits of a run that never waits.
    pub fn never() -> Self {
        Self::new(|| Some(Instant::now()), |_| {})
    }

    pub(super) fn start(&self) -> KindWait<'_> {
        KindWait::new((self.end_of_run)(), &*self.on_wait)
    }
}

impl Cluster {
    /// Repeats discovery after a pause, such as an open prompt, during which the server may have begun to serve new
    /// kinds.
    pub async fn discover_again(&mut self) -> Result<(), Error> {
        let fresh = discovery::fetch(&self.server).await?;
        self.discovery = fresh.with_not_yet_served_of(&self.discovery);
        Ok(())
    }

    /// Adds to discovery the kinds that the CRDs among the manifests will make the server serve. Waits for kinds of the
    /// manifests whose CRDs the cluster has already, because discovery lags behind new CRDs.
    pub async fn complete_discovery_for_manifests(&mut self, manifests: &[Manifest]) -> Result<(), Error> {
        let definitions: Vec<Value> = manifests
            .iter()
            .filter(|manifest| manifest.gvk.group_kind() == GroupKind::custom_resource_definition())
            .map(|manifest| manifest.object.value())
            .collect();
        if !definitions.is_empty() {
            self.discovery = self.discovery.with_custom_resources(definitions.iter());
        }
        let kinds: BTreeSet<GroupKind> = manifests
            .iter()
            .map(|manifest| manifest.gvk.group_kind())
            .collect();
        let find_missing = |discovery: &Discovery| {
            kinds
                .iter()
                .filter(|kind| may_be_custom(&kind.group))
                .filter(|kind| discovery.find_preferred(kind) == KindLookup::Absent)
                .cloned()
                .chain(discovery.not_yet_served_kinds())
                .collect()
        };
        let wait = self.kind_waits.start();
        missing_kinds::await_kinds_defined_by_crds(&self.server, &mut self.discovery, find_missing, &wait)
            .await?;
        let not_applicable = manifests
            .iter()
            .map(|manifest| &manifest.gvk)
            .filter(|gvk| {
                may_be_custom(&gvk.group) && !desired::is_served_with_member_verbs(gvk, &self.discovery)
            })
            .map(GroupVersionKind::group_kind)
            .collect();
        let states = missing_kinds::find_kinds_not_served_by_crds(&self.server, &not_applicable).await?;
        self.discovery.set_missing_kinds(states);
        Ok(())
    }

    /// Determines the state of recorded kinds that are missing from discovery, by a discovery that is younger than the
    /// records. Sends nothing if no recorded kind is missing.
    pub async fn await_or_judge_recorded_kinds(&mut self, records: &[&RecordedKinds]) -> Result<(), Error> {
        let wait = self.kind_waits.start();
        missing_kinds::await_or_judge_missing_kinds(
            &self.server,
            &mut self.discovery,
            |fresh| find_missing_kinds(records, fresh),
            &wait,
        )
        .await
    }

    /// Determines the state of recorded kinds that are missing from discovery, for sets that are only shown. Does not
    /// wait for kinds; a state that cannot be determined stays unknown.
    pub async fn judge_missing_kinds_without_waiting(&mut self, sets: &[FoundSet]) {
        let records = sets.iter().filter_map(FoundSet::recorded);
        let records: Vec<&RecordedKinds> = records.map(|recorded| &recorded.kinds).collect();
        // The error is dropped: the command reports for each set which kinds are unknown.
        let _ = missing_kinds::await_or_judge_missing_kinds(
            &self.server,
            &mut self.discovery,
            |fresh| find_missing_kinds(&records, fresh),
            &KindWait::never(),
        )
        .await;
    }

    /// Waits until discovery lists every kind that a CRD or an `APIService` defines, so that a search of all kinds is
    /// complete. Returns the names of the kinds that stay hidden from the search.
    pub async fn await_all_kinds(&mut self) -> Result<HiddenKinds, Error> {
        let wait = self.kind_waits.start();
        missing_kinds::await_all_kinds(&self.server, &mut self.discovery, &wait).await
    }

    /// Lists the objects in these namespaces, and the objects of the kinds that these CRDs define.
    pub(super) async fn list_contents_of_namespaces_and_crds(
        &mut self,
        containers: &[Live],
        concurrency: usize,
    ) -> Result<BTreeMap<ObjectKey, Contents>, Error> {
        let wait = self.kind_waits.start();
        super::list_contents_of_namespaces_and_crds(
            &self.server,
            &mut self.discovery,
            containers,
            concurrency,
            &wait,
        )
        .await
    }
}

/// Returns whether a CRD may define kinds of this group: the API server accepts only groups with a dot. Some built-in
/// groups have one, too, such as `networking.k8s.io`; a kind of theirs that is missing only costs a list of CRDs.
fn may_be_custom(group: &str) -> bool {
    group.contains('.')
}

/// Returns the recorded kinds of all these sets that are missing from discovery.
fn find_missing_kinds(records: &[&RecordedKinds], discovery: &Discovery) -> BTreeSet<GroupKind> {
    records
        .iter()
        .flat_map(|kinds| recorded_kinds::find_undiscovered(kinds, discovery))
        .collect()
}
