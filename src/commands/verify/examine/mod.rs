//! Reads and judges everything for `verify`: parents, objects of any kind with a part-of label, and
//! objects that have lost theirs.
//!
//! Collections that cannot be read are reported and remembered, and do not hide others.

mod parents;

use std::collections::BTreeSet;
use std::sync::Arc;

use parents::Parents;

use k8s_openapi::jiff::Timestamp;

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
    self, Cluster, ListError, ListOptions, ListResults, ListTarget, ParentCandidate, ParentKind, Selector,
};
use crate::report::{self, SearchBar, SetListing, Style, Verbosity};
use crate::settings::{SetReference, VerifyOptions, VerifyScope};
use crate::verify::{self, Examined, Extent, Finding, Repair, Surroundings};

/// The result of one inspection of the cluster.
#[derive(Default)]
pub(super) struct Looked {
    /// The sets, as `list` shows them.
    pub(super) listings: Vec<SetListing>,
    pub(super) findings: Vec<Finding>,
    /// The writes of `--fix`.
    pub(super) repairs: Vec<Repair>,
    /// The runs under way that no repair ends, in words.
    pub(super) runs_under_way: Vec<String>,
    /// Names of what could not be listed in the whole cluster.
    pub(super) unread: BTreeSet<String>,
    pub(super) warnings: Vec<String>,
}

/// Reads and judges. It waits until discovery lists every defined kind: otherwise absence would prove
/// nothing.
pub(super) async fn look(
    cluster: &mut Cluster,
    options: &VerifyOptions,
    shared: &GlobalFlags,
    style: Style,
) -> Result<Looked, Error> {
    let hidden_kinds = cluster.await_everything().await?;
    let mut looking = Inspection {
        options,
        concurrency: usize::from(shared.concurrency),
        style,
        resources: listable(cluster),
        cluster,
        unread: hidden_kinds.names().into_iter().collect(),
        unread_places: Vec::new(),
        warnings: Vec::new(),
    };
    match &options.scope {
        VerifyScope::Set(reference) => looking.one(reference).await,
        VerifyScope::Namespace => {
            let namespace = looking.cluster.namespace.clone();
            looking.all(Some(&namespace)).await
        }
        VerifyScope::Cluster => looking.all(None).await,
    }
}

/// Names the runs under way that no repair ends.
fn runs_under_way(sets: &[Examined], repairs: &[Repair], now: Timestamp) -> Vec<String> {
    sets.iter()
        .flat_map(|set| {
            let running = set.parent.object.running.iter();
            running.map(|run| (&set.parent.identity, run))
        })
        .filter(|(_, run)| !repairs.iter().any(|repair| repair.ended.contains(&run.id)))
        .map(|(parent, run)| format!("{parent}: {run} began {} and has not ended", run.began(now)))
        .collect()
}

/// An inspection in progress.
struct Inspection<'a> {
    cluster: &'a mut Cluster,
    options: &'a VerifyOptions,
    concurrency: usize,
    style: Style,
    /// Every kind whose objects can be listed.
    resources: Vec<Arc<Resource>>,
    /// Names of what could not be listed in all namespaces, and of groups that could not
    /// be discovered.
    unread: BTreeSet<String>,
    /// Each collection that could not be read, with the error.
    unread_places: Vec<(ListTarget, ListError)>,
    warnings: Vec<String>,
}

impl Inspection<'_> {
    async fn one(&mut self, reference: &SetReference) -> Result<Looked, Error> {
        let resource = read::parent_resource(self.cluster, reference).await?;
        let kind = read::parent_kind(self.cluster, &resource).await?;
        if kind == ParentKind::Forbidden {
            return Err(read::forbidden_parent_kind(&resource.kind));
        }
        let identity = read::parent_identity(self.cluster, &resource, &reference.name);
        let read = read::parent_candidate(&self.cluster.server, &resource, &identity).await;
        let parent =
            read.map_err(|error| error.while_reading(format_args!("the set's parent {identity}")))?;
        let mut sets: Vec<Examined> = parent
            .into_iter()
            .map(|parent| Examined::new(parent, kind))
            .collect();
        self.settle(&sets).await?;
        let id = ApplySetId::for_parent(&identity).to_string();
        let mut members = self.members(&format!("{PART_OF_LABEL}={id}"), &sets).await;
        if sets.is_empty() && members.is_empty() {
            return Err(read::no_such_set(&identity));
        }
        let mut strays = Vec::new();
        if sets.is_empty() {
            let text = reference_text(reference, &identity);
            read::unique_by_uid(&mut members, |live| live, |_| false);
            strays = verify::check_orphans(&members, &BTreeSet::new(), &self.options.appliers, Some(&text));
        }
        self.assign(&mut sets, members);
        Ok(self.conclude(&sets, strays, Some(&identity)).await)
    }

    async fn all(&mut self, namespace: Option<&str>) -> Result<Looked, Error> {
        let mut parents = self.parents(namespace).await?;
        self.settle(&parents.sets).await?;
        let members = self.members(PART_OF_LABEL, &parents.sets).await;
        let mut strays = Vec::new();
        if namespace.is_none() {
            strays = self.strays(&mut parents, &members).await;
        }
        self.assign(&mut parents.sets, members);
        Ok(self.conclude(&parents.sets, strays, None).await)
    }

    /// Determines the state of recorded kinds that discovery does not list.
    async fn settle(&mut self, sets: &[Examined]) -> Result<(), Error> {
        let recorded = sets.iter().filter_map(|set| set.found.recorded());
        let kinds: Vec<&RecordedKinds> = recorded.map(|bookkeeping| &bookkeeping.kinds).collect();
        self.cluster.settle_recorded_kinds(&kinds).await?;
        self.resources = listable(self.cluster);
        Ok(())
    }

    /// Assigns members to each set, and warns of recorded collections that could not be read.
    fn assign(&mut self, sets: &mut [Examined], members: Vec<Live>) {
        let mut founds: Vec<FoundSet> = sets.iter().map(|set| set.found.clone()).collect();
        let unread: Vec<ListTarget> = self
            .unread_places
            .iter()
            .map(|(place, _)| place.clone())
            .collect();
        found_set::assign(&mut founds, members, &unread, &self.cluster.discovery);
        // Missing permissions are reported for each set, other failures here.
        let mut unread = std::mem::take(&mut self.unread_places);
        unread.retain(|(_, error)| !error.is_forbidden());
        unread.retain(|(place, _)| founds.iter().any(|found| found.unread.contains(place)));
        let unread = read::unread_reasons(unread);
        self.warnings.extend(read::unread_warnings(&unread));
        for (set, found) in sets.iter_mut().zip(founds) {
            set.found = found;
        }
    }

    /// Judges the findings, after a search for objects that have lost their label.
    async fn conclude(
        &mut self,
        sets: &[Examined],
        strays: Vec<Finding>,
        object: Option<&ObjectKey>,
    ) -> Looked {
        let lost = self.find_lost(sets).await;
        let others = match self.options.scope {
            VerifyScope::Set(_) | VerifyScope::Namespace if !lost.is_empty() => self.other_sets(sets).await,
            VerifyScope::Set(_) | VerifyScope::Namespace | VerifyScope::Cluster => Vec::new(),
        };
        let discovery = &self.cluster.discovery;
        self.unread
            .extend(discovery.failures().iter().map(ToString::to_string));
        let surroundings = Surroundings {
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
        let verdict = verify::check(sets, surroundings);
        let mut findings = verdict.findings;
        findings.extend(strays);
        findings.extend(verify::check_lost(sets, &others, surroundings));
        findings.extend(verify::check_extent(&self.unread, object));
        verify::sort(&mut findings);
        Looked {
            listings: sets
                .iter()
                .filter(|set| set.kind != ParentKind::Forbidden)
                .map(|set| SetListing::new(&set.as_listed(surroundings), discovery))
                .collect(),
            findings,
            runs_under_way: runs_under_way(sets, &verdict.repairs, self.cluster.server.now()),
            repairs: verdict.repairs,
            unread: std::mem::take(&mut self.unread),
            warnings: std::mem::take(&mut self.warnings),
        }
    }

    /// Finds the objects with these labels in every kind of the cluster. If the user may not list all
    /// namespaces, only known ones are searched.
    async fn members(&mut self, labels: &str, sets: &[Examined]) -> Vec<Live> {
        let founds: Vec<FoundSet> = sets.iter().map(|set| set.found.clone()).collect();
        let mut namespaces = found_set::places(&founds, &self.cluster.discovery).namespaces;
        namespaces.insert(self.cluster.namespace.clone());
        let selector = selector(labels);
        if self.style.verbosity == Verbosity::Verbose {
            let kinds = counted(self.resources.len(), "kind");
            report::note(&format!("searching {kinds} for members"), self.style);
        }
        let bar = SearchBar::begin(self.style.progress, self.resources.len());
        let looking = ListOptions {
            selector: &selector,
            concurrency: self.concurrency,
            seen: &|| bar.advance(),
        };
        let server = &self.cluster.server;
        let look = read::list_all(server, &self.resources, &namespaces, looking, Live::from_object).await;
        drop(bar);
        self.remember(look)
    }

    /// Takes the objects out of a result, and remembers what could not be listed.
    fn remember(&mut self, look: ListResults<Live>) -> Vec<Live> {
        let unread = look.unread.iter().map(|(place, _)| place);
        self.unread.extend(
            unread
                .filter(|place| place.namespace.is_none())
                .map(|place| place.resource.group_resource()),
        );
        self.unread_places.extend(look.unread);
        look.found
    }

    /// Members whose set has no parent. An object that has lost all ApplySet metadata may still be
    /// their parent, so all possible parents are searched.
    async fn strays(&mut self, parents: &mut Parents, members: &[Live]) -> Vec<Finding> {
        let known = ids(&parents.sets);
        let unowned = members.iter().filter(|live| is_stray(live, &known));
        let mut strays: Vec<Live> = unowned.cloned().collect();
        read::unique_by_uid(&mut strays, |live| live, |_| false);
        let wanted: BTreeSet<String> = strays.iter().filter_map(|live| live.part_of.clone()).collect();
        if wanted.is_empty() {
            return Vec::new();
        }
        let now = self.cluster.server.now();
        let looking = self.candidates(&parents.kinds, None, "", |item, resource| {
            ParentCandidate::from_object(item, resource, now).filter(|parent| {
                !parent.has_applyset_metadata()
                    && wanted.contains(ApplySetId::for_parent(&parent.identity).as_str())
            })
        });
        let look = looking.await;
        let bare = look.found.into_iter();
        parents
            .sets
            .extend(bare.map(|parent| Examined::new(parent, ParentKind::Permitted)));
        let known = ids(&parents.sets);
        if parents.extent == Extent::Part {
            let count = strays.iter().filter(|live| is_stray(live, &known)).count();
            if count > 0 {
                self.warnings.push(format!(
                    "{} may belong to sets without a parent: not all parents could be listed",
                    counted(count, "object")
                ));
            }
            return Vec::new();
        }
        verify::check_orphans(&strays, &known, &self.options.appliers, None)
    }

    /// Finds objects in the scope of the sets that were applied as members, and are not in a set.
    async fn find_lost(&mut self, sets: &[Examined]) -> Vec<Live> {
        let founds: Vec<FoundSet> = sets.iter().map(|set| set.found.clone()).collect();
        let places = found_set::places(&founds, &self.cluster.discovery);
        let manager = &self.options.field_manager;
        let look = read::lost_members(&self.cluster.server, &places, manager, self.concurrency).await;
        // Where the members were listed, and this was not, absence proves nothing.
        let unread = look.unread.iter();
        self.unread
            .extend(unread.map(|(place, _)| place.resource.group_resource()));
        look.found
    }
}

/// Every kind whose objects can be listed.
fn listable(cluster: &Cluster) -> Vec<Arc<Resource>> {
    cluster.discovery.listable().cloned().map(Arc::new).collect()
}

/// Returns whether the object is a member of a set whose id is not `known`.
fn is_stray(live: &Live, known: &BTreeSet<String>) -> bool {
    live.part_of.as_ref().is_some_and(|id| !known.contains(id))
}

/// Returns the ids of the sets of these parents.
fn ids(sets: &[Examined]) -> BTreeSet<String> {
    let parents = sets.iter().filter(|set| set.kind != ParentKind::Forbidden);
    parents.map(|set| set.found.id.to_string()).collect()
}

fn selector(labels: &str) -> Selector {
    Selector {
        labels: labels.to_owned(),
        accept: read::METADATA_LIST,
    }
}

/// Returns the set as the command line names it: `configmap/web -n shop`.
fn reference_text(reference: &SetReference, identity: &ObjectKey) -> String {
    let resource = reference.resource.as_ref();
    let name = resource.map_or_else(
        || reference.name.clone(),
        |resource| format!("{resource}/{}", reference.name),
    );
    match &identity.namespace {
        Some(namespace) => format!("{name} -n {namespace}"),
        None => name,
    }
}
