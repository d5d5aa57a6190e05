//! Reads the sets of `adopt`, `disband` and `move` before members join or leave.

use std::collections::BTreeSet;

use crate::cli::GlobalFlags;
use crate::error::Error;
use crate::event::Interrupt;
use crate::execute::ParentWriting;
use crate::manifest::{Manifest, Manifests, Recursion, Source};
use crate::model::applyset::Record;
use crate::model::applyset::parent::Pairs;
use crate::model::identity::ObjectKey;
use crate::model::live::Live;
use crate::model::set::ParentObject;
use crate::plan::{self, Refusal};
use crate::read::{
    Cluster, ClusterState, Goal, METADATA_LIST, NamedSet, ReadSettings, Selector, Wanted, failed_selection,
    list_collections, read_cluster_state, unique_by_uid,
};
use crate::session::command_run::CommandRun;
use crate::session::connect::{discover, discover_and_read_manifests};
use crate::settings::MembershipOptions;

/// A set as it was read, with what writing its parent needs.
pub struct SetRead {
    pub named: NamedSet,
    /// The state of the set without members: [`SetRead::list_members`] lists those.
    pub state: ClusterState,
}

/// Connects, discovers the server, and reads the manifests that name the objects of the command; `None` if no flag
/// names manifests. `divide` separates the manifests that count from hooks. After an outdated plan, only the server is
/// discovered again.
pub async fn discover_and_read_manifests_once(
    run: &mut CommandRun,
    shared: &GlobalFlags,
    manifests: Option<(&[Source], Recursion)>,
    divide: impl FnOnce(Vec<Manifest>) -> Manifests,
    outdated: Option<(Cluster, Manifests)>,
) -> Result<(Cluster, Manifests), Error> {
    if let Some((mut cluster, manifests)) = outdated {
        cluster.discover_again().await?;
        return Ok((cluster, manifests));
    }
    let connection = run.connect(shared).await?;
    let waits = run.kind_waits();
    let Some((sources, recursion)) = manifests else {
        let cluster = discover(connection, waits, Wanted::Nothing).await?;
        return Ok((cluster, Manifests::default()));
    };
    discover_and_read_manifests(connection, sources.to_vec(), recursion, waits, divide, None).await
}

/// Reads a set, without its members, for this goal.
pub async fn read_set(
    cluster: &mut Cluster,
    mut named: NamedSet,
    goal: Goal<'_>,
    options: &MembershipOptions,
) -> Result<SetRead, Error> {
    let rules = ReadSettings {
        status: None,
        take_over: options.take_over,
        appliers: &options.appliers,
        field_manager: &options.writing.field_manager,
        concurrency: options.writing.concurrency,
    };
    let state = read_cluster_state(cluster, &mut named, goal, rules).await?;
    Ok(SetRead { named, state })
}

impl SetRead {
    /// The parent, if it exists.
    pub fn parent(&self) -> Option<&ParentObject> {
        self.state.parent_object()
    }

    /// Lists the metadata of the objects that carry the set's label and match the label selector `label_selector`, sorted
    /// by key. If an object is listed in several API groups, it has the key that is in `preferred_keys`.
    pub async fn list_members(
        &self,
        cluster: &Cluster,
        label_selector: Option<&str>,
        preferred_keys: &BTreeSet<ObjectKey>,
        concurrency: usize,
    ) -> Result<Vec<Live>, Error> {
        let set = &self.named.set;
        let mut selector = Selector::for_members(&set.id, METADATA_LIST);
        if let Some(label_selector) = label_selector {
            selector.labels = format!("{},{label_selector}", selector.labels);
        }
        let places = &self.state.places;
        let mut found = list_collections(&cluster.server, places, &selector, concurrency, Live::from_object)
            .await
            .map_err(|failure| failed_selection(failure, label_selector))?;
        found.retain(|live| !set.is_parent(live));
        unique_by_uid(&mut found, |live| live, |key| preferred_keys.contains(key));
        found.sort_by(|one, other| one.key.cmp(&other.key));
        Ok(found)
    }

    /// Returns the record of the set with these kinds and namespaces added. Also returns a refusal if the record makes
    /// the parent's annotations larger than the server allows.
    pub fn widened_record_and_refusal(&self, added: &Record) -> (Record, Option<Refusal>) {
        let record = self.state.observed.recorded.union(added);
        let nothing = Pairs::new();
        let annotations = self.parent().map_or(&nothing, |parent| &parent.annotations);
        let refusal = plan::refuse_large_annotations(&record, &self.named.set, annotations);
        (record, refusal)
    }

    /// Returns what writing the parent needs.
    pub fn parent_writing<'a>(
        &'a self,
        cluster: &'a Cluster,
        options: &'a MembershipOptions,
        interrupt: &'a Interrupt,
    ) -> ParentWriting<'a> {
        ParentWriting {
            server: &cluster.server,
            set: &self.named.set,
            resource: &self.named.resource,
            accepted_take_over: self.state.take_over.as_slice(),
            manifest: None,
            writing: &options.writing,
            interrupt,
        }
    }
}
