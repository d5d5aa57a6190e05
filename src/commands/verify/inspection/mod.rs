//! Inspects the cluster for `verify`: reads the parents, the objects of all kinds with a part-of label, and the objects
//! that have lost the label, and checks them.
//!
//! If a collection cannot be read, the others are still inspected. The unread collection is reported, and nothing is
//! concluded from the absence of objects that may be in it.

mod parents;

use std::collections::BTreeSet;
use std::sync::Arc;

use parents::Parents;

use crate::cli::GlobalFlags;
use crate::error::Error;
use crate::model::applyset::parent::RecordedKinds;
use crate::model::applyset::{ApplySetId, PART_OF_LABEL};
use crate::model::identity::ObjectKey;
use crate::model::live::Live;
use crate::model::resource::Resource;
use crate::model::text::counted;
use crate::read::found_set::{self, FoundSet};
use crate::read::{
    self, Cluster, ListError, ListOptions, ListResults, ListTarget, LiveParent, ParentEligibility, Selector,
};
use crate::report::{self, SetListing, Style, Verbosity};
use crate::settings::{SetReference, VerifyOptions, VerifyScope};
use crate::verify::{self, CheckContext, ExaminedSet, Extent, Finding, Repair};

/// The result of one inspection of the cluster.
#[derive(Default)]
pub(super) struct Inspected {
    /// The sets, as `list` shows them.
    pub(super) listings: Vec<SetListing>,
    pub(super) findings: Vec<Finding>,
    /// The writes of `--fix`.
    pub(super) repairs: Vec<Repair>,
    /// The names of resources and API groups that could not be listed in the whole cluster.
    pub(super) unread: BTreeSet<String>,
    pub(super) warnings: Vec<String>,
}

/// Inspects the sets in the scope. First waits until discovery lists every kind that a CRD defines: if a kind were
/// missing, its members would be missing, too, and the sets would look consistent.
pub(super) async fn inspect(
    cluster: &mut Cluster,
    options: &VerifyOptions,
    shared: &GlobalFlags,
    style: Style,
) -> Result<Inspected, Error> {
    let hidden_kinds = cluster.await_all_kinds().await?;
    let mut inspection = Inspection {
        options,
        concurrency: usize::from(shared.concurrency),
        style,
        resources: find_listable_resources(cluster),
        cluster,
        unread: hidden_kinds.names().into_iter().collect(),
        unread_targets: Vec::new(),
        warnings: Vec::new(),
    };
    match &options.scope {
        VerifyScope::Set(reference) => inspection.inspect_set(reference).await,
        VerifyScope::Namespace => {
            let namespace = inspection.cluster.namespace.clone();
            inspection.inspect_all(Some(&namespace)).await
        }
        VerifyScope::Cluster => inspection.inspect_all(None).await,
    }
}

/// An inspection in progress.
struct Inspection<'a> {
    cluster: &'a mut Cluster,
    options: &'a VerifyOptions,
    concurrency: usize,
    style: Style,
    /// Every kind whose objects can be listed.
    resources: Vec<Arc<Resource>>,
    /// The names of resources that could not be listed in all namespaces, and of API groups that could not be
    /// discovered.
    unread: BTreeSet<String>,
    /// Each collection that could not be read, with the error.
    unread_targets: Vec<(ListTarget, ListError)>,
    warnings: Vec<String>,
}

impl Inspection<'_> {
    /// Inspects one set.
    async fn inspect_set(&mut self, reference: &SetReference) -> Result<Inspected, Error> {
        let resource = read::find_or_await_parent_resource(self.cluster, reference).await?;
        let kind = read::determine_parent_eligibility(self.cluster, &resource).await?;
        if kind == ParentEligibility::Forbidden {
            return Err(read::forbidden_parent_kind(&resource.kind));
        }
        let identity = read::parent_identity(self.cluster, &resource, &reference.name);
        let parent = read::read_live_parent(&self.cluster.server, &resource, &identity)
            .await
            .map_err(|error| error.to_error_while_reading(format_args!("the set's parent {identity}")))?;
        let mut sets: Vec<ExaminedSet> = parent
            .into_iter()
            .map(|parent| ExaminedSet::new(parent, kind))
            .collect();
        self.judge_kinds_and_refresh_resources(&sets).await?;
        let id = ApplySetId::for_parent(&identity).to_string();
        let mut members = self.find_members(&format!("{PART_OF_LABEL}={id}"), &sets).await;
        if sets.is_empty() && members.is_empty() {
            return Err(read::no_such_set(&identity));
        }
        let mut orphans = Vec::new();
        // The set has members, but no parent.
        if sets.is_empty() {
            let text = identity.shell_arguments();
            read::unique_by_uid(&mut members, |live| live, |_| false);
            orphans = verify::check_orphans(&members, &BTreeSet::new(), &self.options.appliers, Some(&text));
        }
        self.assign_members(&mut sets, members);
        Ok(self
            .find_lost_members_and_check_sets(&sets, orphans, Some(&identity))
            .await)
    }

    /// Inspects all sets of a namespace, or of the cluster if there is none.
    async fn inspect_all(&mut self, namespace: Option<&str>) -> Result<Inspected, Error> {
        let mut parents = self.find_parents(namespace).await?;
        self.judge_kinds_and_refresh_resources(&parents.sets).await?;
        let members = self.find_members(PART_OF_LABEL, &parents.sets).await;
        let mut orphans = Vec::new();
        if namespace.is_none() {
            orphans = self
                .find_orphans_and_add_bare_parents(&mut parents, &members)
                .await;
        }
        self.assign_members(&mut parents.sets, members);
        Ok(self
            .find_lost_members_and_check_sets(&parents.sets, orphans, None)
            .await)
    }

    /// Determines the state of recorded kinds that discovery does not list.
    async fn judge_kinds_and_refresh_resources(&mut self, sets: &[ExaminedSet]) -> Result<(), Error> {
        let recorded = sets.iter().filter_map(|set| set.found.recorded());
        let kinds: Vec<&RecordedKinds> = recorded.map(|record| &record.kinds).collect();
        self.cluster.await_or_judge_recorded_kinds(&kinds).await?;
        self.resources = find_listable_resources(self.cluster);
        Ok(())
    }

    /// Assigns the members to their sets, and warns of recorded collections that could not be read.
    fn assign_members(&mut self, sets: &mut [ExaminedSet], members: Vec<Live>) {
        let mut founds: Vec<FoundSet> = sets.iter().map(|set| set.found.clone()).collect();
        let unread: Vec<ListTarget> = self
            .unread_targets
            .iter()
            .map(|(target, _)| target.clone())
            .collect();
        found_set::assign_members(&mut founds, members, &unread, &self.cluster.discovery);
        // A missing permission is a finding of each set that it concerns, so only other failures are reported here.
        let mut unread = std::mem::take(&mut self.unread_targets);
        unread.retain(|(_, error)| !error.is_forbidden());
        unread.retain(|(target, _)| founds.iter().any(|found| found.unread.contains(target)));
        let unread = read::unread_reasons(unread);
        self.warnings.extend(read::unread_warnings(&unread));
        for (set, found) in sets.iter_mut().zip(founds) {
            set.found = found;
        }
    }

    /// Searches for objects that have lost their label, and checks everything that was read. `object` is the parent, if
    /// a single set is inspected.
    async fn find_lost_members_and_check_sets(
        &mut self,
        sets: &[ExaminedSet],
        orphans: Vec<Finding>,
        object: Option<&ObjectKey>,
    ) -> Inspected {
        let lost = self.find_members_that_lost_label(sets).await;
        let others = match self.options.scope {
            // Only then is it needed to know whether these objects are in the scope of another set.
            VerifyScope::Set(_) | VerifyScope::Namespace if !lost.is_empty() => {
                self.find_other_sets(sets).await
            }
            VerifyScope::Set(_) | VerifyScope::Namespace | VerifyScope::Cluster => Vec::new(),
        };
        let discovery = &self.cluster.discovery;
        self.unread
            .extend(discovery.failures().iter().map(ToString::to_string));
        let context = CheckContext {
            discovery,
            appliers: &self.options.appliers,
            extent: if self.unread.is_empty() {
                Extent::Whole
            } else {
                Extent::Part
            },
            new_namespaces: self.options.new_namespaces,
            lost: &lost,
            runs_under_way: self.options.runs_under_way,
        };
        let found = verify::check(sets, context);
        let mut findings = found.findings;
        findings.extend(orphans);
        findings.extend(verify::lost_member_findings(sets, &others, context));
        findings.extend(verify::unlisted_resources_finding(&self.unread, object));
        verify::sort(&mut findings);
        Inspected {
            listings: sets
                .iter()
                .filter(|set| set.eligibility != ParentEligibility::Forbidden)
                .map(|set| SetListing::new(&set.as_shown_by_list(context), discovery))
                .collect(),
            findings,
            repairs: found.repairs,
            unread: std::mem::take(&mut self.unread),
            warnings: std::mem::take(&mut self.warnings),
        }
    }

    /// Finds the objects of all kinds with these labels. If the user may not list a kind in all namespaces, it is
    /// listed in the recorded namespaces and in that of the run.
    async fn find_members(&mut self, labels: &str, sets: &[ExaminedSet]) -> Vec<Live> {
        let founds: Vec<FoundSet> = sets.iter().map(|set| set.found.clone()).collect();
        let mut namespaces = found_set::determine_places_of_sets(&founds, &self.cluster.discovery).namespaces;
        namespaces.insert(self.cluster.namespace.clone());
        let selector = metadata_selector(labels);
        if self.style.verbosity == Verbosity::Verbose {
            let kinds = counted(self.resources.len(), "kind");
            report::print_note(&format!("searching {kinds} for members"), self.style);
        }
        let options = ListOptions::new(&selector, self.concurrency);
        let server = &self.cluster.server;
        let results =
            read::list_visible_everywhere(server, &self.resources, &namespaces, options, Live::from_object)
                .await;
        self.keep_unread(results)
    }

    /// Returns the objects that were found, and keeps what could not be listed.
    fn keep_unread(&mut self, results: ListResults<Live>) -> Vec<Live> {
        let unread = results.unread.iter().map(|(target, _)| target);
        self.unread.extend(
            unread
                .filter(|target| target.namespace.is_none())
                .map(|target| target.resource.group_resource()),
        );
        self.unread_targets.extend(results.unread);
        results.found
    }

    /// Finds orphans: members whose set has no parent. Their parent may still exist, but have lost all ApplySet labels
    /// and annotations, so all objects of the kinds of parents are read. A parent that is found in this way is added to
    /// `parents`.
    async fn find_orphans_and_add_bare_parents(
        &mut self,
        parents: &mut Parents,
        members: &[Live],
    ) -> Vec<Finding> {
        let known_ids = collect_ids_of_eligible_parents(&parents.sets);
        let orphans = members.iter().filter(|live| is_orphan(live, &known_ids));
        let mut orphans: Vec<Live> = orphans.cloned().collect();
        read::unique_by_uid(&mut orphans, |live| live, |_| false);
        let wanted_ids: BTreeSet<String> = orphans.iter().filter_map(|live| live.part_of.clone()).collect();
        if wanted_ids.is_empty() {
            return Vec::new();
        }
        let now = self.cluster.server.now();
        let candidates = self
            .list_candidates(&parents.kinds, None, "", |item, resource| {
                LiveParent::from_object(item, resource, now)
                    .ok()
                    .filter(|parent| {
                        !parent.has_applyset_metadata()
                            && wanted_ids.contains(ApplySetId::for_parent(&parent.live.key).as_str())
                    })
            })
            .await;
        // A parent without its metadata may be in a collection that was listed before, and cannot be listed now.
        let is_complete = parents.extent != Extent::Part && candidates.unread.is_empty();
        // A collection that the first list could not read either is reported already.
        if parents.extent == Extent::Whole {
            self.note_unread(&candidates.unread);
            let reasons = read::unread_reasons(candidates.unread);
            self.warnings.extend(read::unread_warnings(&reasons));
        }
        let bare_parents = candidates.found.into_iter();
        parents
            .sets
            .extend(bare_parents.map(|parent| ExaminedSet::new(parent, ParentEligibility::Permitted)));
        let known_ids = collect_ids_of_eligible_parents(&parents.sets);
        // Without a list of all parents, it is unknown whether these members are orphans.
        if !is_complete {
            let count = orphans.iter().filter(|live| is_orphan(live, &known_ids)).count();
            if count > 0 {
                self.warnings.push(format!(
                    "{} may belong to sets without a parent: not all parents could be listed",
                    counted(count, "object")
                ));
            }
            return Vec::new();
        }
        verify::check_orphans(&orphans, &known_ids, &self.options.appliers, None)
    }

    /// Finds objects in the scope of the sets that were applied as members, and have lost the label.
    async fn find_members_that_lost_label(&mut self, sets: &[ExaminedSet]) -> Vec<Live> {
        let founds: Vec<FoundSet> = sets.iter().map(|set| set.found.clone()).collect();
        let targets = found_set::determine_places_of_sets(&founds, &self.cluster.discovery);
        let manager = &self.options.field_manager;
        let results =
            read::list_lost_members(&self.cluster.server, &targets, manager, self.concurrency).await;
        // Lost members of these resources would not have been found, even if other members of them were.
        self.note_unread(&results.unread);
        results.found
    }

    /// Notes the resources of collections that could not be listed.
    fn note_unread(&mut self, unread: &[(ListTarget, ListError)]) {
        let resources = unread.iter().map(|(target, _)| target.resource.group_resource());
        self.unread.extend(resources);
    }
}

/// Returns the resources of all kinds whose objects can be listed.
fn find_listable_resources(cluster: &Cluster) -> Vec<Arc<Resource>> {
    cluster.discovery.listable().cloned().map(Arc::new).collect()
}

/// Returns whether the object is a member of a set whose id is not among `known_ids`.
fn is_orphan(live: &Live, known_ids: &BTreeSet<String>) -> bool {
    live.part_of.as_ref().is_some_and(|id| !known_ids.contains(id))
}

/// Returns the ids of these sets. An object with a copy of another set's id is not a parent.
fn collect_ids_of_eligible_parents(sets: &[ExaminedSet]) -> BTreeSet<String> {
    sets.iter()
        .filter(|set| set.eligibility != ParentEligibility::Forbidden)
        .map(|set| set.found.id.to_string())
        .collect()
}

/// Returns the selector for a list of the metadata of objects with these labels.
fn metadata_selector(labels: &str) -> Selector {
    Selector {
        labels: labels.to_owned(),
        accept: read::METADATA_LIST,
    }
}
