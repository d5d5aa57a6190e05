//! `adopt`: takes live objects into a set without another change to them, found by their
//! manifests, by a label selector, or in another tool's inventory.

mod former_tool;

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::membership::{self, SetRead, unlisted};
use super::opening::{self, Cluster, Waits};
use super::run::Run;
use super::situation;
use crate::cli::{Adopt, Shared};
use crate::cluster::connection::Connection;
use crate::cluster::discovery::KindLookup;
use crate::compare::ownership::{self, Maker};
use crate::error::{Error, Exit};
use crate::event::{Ending, Event, Operation};
use crate::execute::Adopting;
use crate::import::{self, Tool, Unmarked};
use crate::manifest::Manifest;
use crate::manifest::desired::{self, VERBS_OF_MEMBERS};
use crate::model::applyset::{PART_OF_LABEL, Record};
use crate::model::identity::{GroupKind, ObjectKey};
use crate::model::live::{Live, Tracking};
use crate::model::resource::{Origin, Resource};
use crate::model::set::Set;
use crate::plan::permissions;
use crate::plan::{self, Candidate, Left, MembershipPlan, SkipReason, Way};
use crate::read::{self, Places, Selector};
use crate::report::SetDocument;
use crate::settings::{self, AdoptOptions, Choice, Namespaces};

/// The kinds that `kubectl apply --prune` deletes where it is given no others (kubectl 1.36,
/// `pkg/util/prune/prune.go`). It looks for the cluster-scoped ones whatever the namespace.
const PRUNED_BY_DEFAULT: [(&str, &str); 16] = [
    ("", "ConfigMap"),
    ("", "Endpoints"),
    ("", "PersistentVolumeClaim"),
    ("", "Pod"),
    ("", "ReplicationController"),
    ("", "Secret"),
    ("", "Service"),
    ("batch", "Job"),
    ("batch", "CronJob"),
    ("networking.k8s.io", "Ingress"),
    ("apps", "DaemonSet"),
    ("apps", "Deployment"),
    ("apps", "ReplicaSet"),
    ("apps", "StatefulSet"),
    ("", "Namespace"),
    ("", "PersistentVolume"),
];

/// Says what a look by labels leaves out.
const DEFAULT_KINDS: &str = "only kinds that `kubectl apply --prune` deletes by default were looked at, which leaves \
     out ServiceAccounts, RBAC and custom resources, for example; name other kinds with --kinds";

/// Runs `adopt`.
pub(super) async fn run(arguments: &Adopt, shared: &Shared) -> Result<Exit, Error> {
    let options = AdoptOptions::new(arguments, shared)?;
    let sources = match &options.choice {
        Choice::Manifests(sources, _) => sources.as_slice(),
        Choice::Labels { .. } | Choice::Inventory(..) => &[],
    };
    let mut run = Run::begin(
        Operation::Adopt,
        opening::unopened(&options.membership.set),
        settings::style(shared),
        options.membership.writing.dry_run,
        membership::questions(&options.membership, sources),
    );
    let outcome = adopt(&mut run, shared, &options).await;
    run.finish(outcome)
}

/// Everything that was read and decided, before anything is written.
struct Prepared {
    cluster: Cluster,
    read: SetRead,
    plan: MembershipPlan,
    record: Record,
    /// What people have to do elsewhere once all is done.
    advice: Vec<String>,
    search: Search,
}

/// How the objects are found: what has changed by the time that it is written must still be found
/// in the same way.
#[derive(Default)]
enum Search {
    /// By their names in manifests.
    #[default]
    Named,
    /// By labels that match this selector, with the field managers of appliers.
    Selected(String, BTreeSet<String>),
    /// In the inventory of a tool, and by a selector where that is how the tool finds them.
    Tracked(Box<Tracked>),
}

/// The inventory of a tool, and how it is read.
struct Tracked {
    tool: Tool,
    inventory: import::Found,
    unmarked: Unmarked,
    selector: Option<String>,
}

impl Search {
    /// How an object of this key and these metadata was found.
    fn way(&self, key: &ObjectKey, metadata: &Value) -> Way {
        match self {
            Self::Named => Way::Named,
            Self::Selected(_, appliers) => Way::Selected(ownership::maker(metadata, appliers)),
            Self::Tracked(tracked) => Way::Tracked(tracked.tool.mark(
                &tracked.inventory,
                key,
                metadata,
                tracked.unmarked,
            )),
        }
    }

    fn selector(&self) -> Option<&str> {
        match self {
            Self::Named => None,
            Self::Selected(selector, _) => Some(selector),
            Self::Tracked(tracked) => tracked.selector.as_deref(),
        }
    }
}

/// The objects that were asked for.
#[derive(Default)]
struct Found {
    candidates: Vec<Candidate>,
    missing: Vec<Left>,
    warnings: Vec<String>,
    /// What people have to do elsewhere, once these objects are in the set.
    advice: Option<String>,
    search: Search,
}

async fn adopt(run: &mut Run, shared: &Shared, options: &AdoptOptions) -> Result<Ending, Error> {
    let interrupt = run.interrupt.clone();
    let prepared = tokio::select! {
        prepared = prepare(run, shared, options) => prepared?,
        // Nothing is written yet, so there is nothing to wait for.
        () = interrupt.requested() => return Ok(Ending::Interrupted),
    };
    let adopting = Adopting {
        parent: prepared
            .read
            .parent_writing(&prepared.cluster, &options.membership, &run.interrupt),
        current: prepared.read.parent.as_ref(),
        plan: &prepared.plan,
        record: &prepared.record,
        stealing: options.stealing,
        selector: prepared.search.selector(),
        way: &|key, metadata| prepared.search.way(key, metadata),
    };
    let reporter = &mut run.reporter;
    let mut sink = |event| reporter.event(event);
    let ending = Run::until_insisted(&run.interrupt, adopting.run(&mut sink)).await?;
    // Until all is done, the tool's own record is the only one of what is left.
    if ending == Ending::Done {
        run.warn(&prepared.advice);
    }
    Ok(ending)
}

async fn prepare(run: &mut Run, shared: &Shared, options: &AdoptOptions) -> Result<Prepared, Error> {
    let membership = &options.membership;
    let connection = opening::connect(shared).await?;
    run.server = Some(connection.server.clone());
    let (mut cluster, manifests) = discover(connection, &options.choice, run.waits()).await?;
    let opened = opening::open(&mut cluster, &membership.set, membership.tooling.clone(), &[]).await?;
    run.set = SetDocument::from(&opened.set);
    let read =
        membership::read_target(run, &mut cluster, &membership.set, membership, Operation::Adopt).await?;
    let found = find(&cluster, &read, manifests, options).await?;
    run.warn(&read.warnings);
    run.warn(&found.warnings);
    let set = &read.opened.set;
    let ids: BTreeSet<&str> = found
        .candidates
        .iter()
        .filter_map(|candidate| candidate.live.part_of.as_deref())
        .filter(|id| *id != set.id.as_str())
        .collect();
    let mut warnings = Vec::new();
    let namespaces = found.candidates.iter();
    let namespaces = namespaces.filter_map(|candidate| candidate.live.key.namespace.clone());
    let namespaces = namespaces.chain(set.parent.namespace.clone()).collect();
    let concurrency = usize::from(shared.concurrency);
    let parents = situation::parents_of(&cluster, &ids, namespaces, concurrency, &mut warnings).await;
    run.warn(&warnings);
    let mut plan = plan::plan_adoption(set, &found.candidates, found.missing, &parents, options.stealing);
    let record = read.survey.recorded.union(&plan.record(set));
    let annotations = read.parent.as_ref().map(|parent| &parent.annotations);
    let nothing = crate::model::applyset::parent::Pairs::new();
    plan.refusals.extend(plan::annotations_too_large(
        &record,
        set,
        annotations.unwrap_or(&nothing),
    ));
    former_tool::check_bounds(run, options, &found.search, set, &mut plan).await?;
    if plan.objects() == 0 {
        return Err(nothing_found(&options.choice));
    }
    if matches!(&options.choice, Choice::Labels { kinds, .. } if kinds.is_empty()) {
        run.reporter.event(Event::Note(DEFAULT_KINDS.to_owned()));
    }
    run.warn(&never_pruned(&found.candidates, set, &membership.appliers));
    let mut rights = permissions::to_relabel(&plan.changes);
    if plan.takes_any() {
        rights.extend(permissions::to_record(
            set,
            &read.opened.resource,
            read.parent.as_ref(),
            &record,
        ));
    }
    membership::check_rights(&cluster, rights, membership).await?;
    let is_left = plan.left.iter().any(|left| left.uid.is_some()) || !found.warnings.is_empty();
    let advice = found.advice.map(|advice| {
        if is_left {
            format!("{advice}; see to what was left out first, which nothing tells of any more then")
        } else {
            advice
        }
    });
    Ok(Prepared {
        cluster,
        read,
        plan,
        record,
        advice: advice.into_iter().collect(),
        search: found.search,
    })
}

/// Tells of members that have the label already, and not from anybody who applies. What no
/// person has applied may well be a copy, of which nothing is to be said.
fn never_pruned(candidates: &[Candidate], set: &Set, appliers: &BTreeSet<String>) -> Vec<String> {
    let is_settled = |candidate: &&Candidate| {
        let live = &candidate.live;
        !matches!(candidate.way, Way::Selected(Maker::Others(_)))
            && live.part_of.as_deref() == Some(set.id.as_str())
            && live.tracking == Tracking::On
    };
    let told = candidates.iter().filter(is_settled).filter_map(|candidate| {
        let live = &candidate.live;
        match plan::copied(live, set.parent_uid.as_deref(), appliers)? {
            SkipReason::CopiedLabel { writers } => Some(format!(
                "{} is in the set, and no run prunes it: {}; `kubectl label` takes {PART_OF_LABEL} off, and then it can be adopted",
                live.key,
                plan::label_written_by(&writers)
            )),
            _ => None,
        }
    });
    told.collect()
}

async fn discover(
    connection: Connection,
    choice: &Choice,
    waits: Waits,
) -> Result<(Cluster, Vec<Manifest>), Error> {
    match choice {
        Choice::Manifests(sources, recursion) => {
            opening::discover_with(connection, sources.clone(), *recursion, waits).await
        }
        Choice::Labels { .. } | Choice::Inventory(..) => {
            Ok((opening::discover(connection, waits).await?, Vec::new()))
        }
    }
}

async fn find(
    cluster: &Cluster,
    read: &SetRead,
    manifests: Vec<Manifest>,
    options: &AdoptOptions,
) -> Result<Found, Error> {
    let concurrency = options.membership.writing.concurrency;
    match &options.choice {
        Choice::Manifests(..) => {
            let desired = desired::resolve(manifests, read.opened.target(cluster))?;
            let wanted = desired.members.into_iter().chain(desired.parent);
            let wanted: Vec<_> = wanted.map(|member| (member.key, member.resource)).collect();
            find_named(cluster, wanted, Search::Named, concurrency).await
        }
        Choice::Labels {
            selector,
            kinds,
            reach,
        } => {
            let resources = resources(cluster, kinds)?;
            let namespace = match reach {
                Namespaces::Own => Some(cluster.namespace.clone()),
                Namespaces::All => None,
            };
            let search = Search::Selected(selector.clone(), options.membership.appliers.clone());
            find_labelled(cluster, resources, namespace, selector, search, concurrency).await
        }
        Choice::Inventory(reference, unmarked) => {
            former_tool::find(cluster, reference, *unmarked, concurrency).await
        }
    }
}

async fn find_named(
    cluster: &Cluster,
    wanted: Vec<(ObjectKey, Arc<Resource>)>,
    search: Search,
    concurrency: usize,
) -> Result<Found, Error> {
    let reduce = |object: &Value, resource: &Arc<Resource>| {
        let live = Live::of(object, resource)?;
        let way = search.way(&live.key, &object["metadata"]);
        Some(Candidate { live, way })
    };
    let read = read::objects(&cluster.server, &wanted, concurrency, reduce).await;
    let read = read.map_err(|(key, error)| Error::Read {
        what: key.to_string(),
        error,
    })?;
    let mut found = Found::default();
    for ((key, resource), candidate) in wanted.into_iter().zip(read) {
        match candidate {
            Some(candidate) => found.candidates.push(candidate),
            None => found.missing.push(Left::missing(key, resource)),
        }
    }
    found.search = search;
    Ok(found)
}

/// `namespace` is that of the namespaced kinds; `None` for all.
async fn find_labelled(
    cluster: &Cluster,
    resources: Vec<Arc<Resource>>,
    namespace: Option<String>,
    labels: &str,
    search: Search,
    concurrency: usize,
) -> Result<Found, Error> {
    let selector = Selector {
        labels: labels.to_owned(),
        accept: read::METADATA_LIST,
    };
    let reduce = |object: &Value, resource: &Arc<Resource>| {
        let live = Live::of(object, resource)?;
        let way = search.way(&live.key, &object["metadata"]);
        Some(Candidate { live, way })
    };
    let server = &cluster.server;
    let listed = if namespace.is_some() {
        let places = Places {
            resources,
            namespaces: namespace.into_iter().collect(),
        };
        read::members(server, &places, &selector, concurrency, reduce).await
    } else {
        read::throughout(server, resources, &selector, concurrency, reduce).await
    };
    let mut candidates = listed.map_err(|failure| unlisted(failure, Some(labels)))?;
    candidates.sort_by(|one, other| one.live.key.cmp(&other.live.key));
    Ok(Found {
        candidates,
        search,
        ..Found::default()
    })
}

/// The kinds that were typed, or those of `kubectl apply --prune` as far as they are served.
fn resources(cluster: &Cluster, kinds: &[String]) -> Result<Vec<Arc<Resource>>, Error> {
    let mut resources: Vec<Arc<Resource>> = Vec::new();
    if kinds.is_empty() {
        for (group, kind) in PRUNED_BY_DEFAULT {
            resources.extend(served(cluster, &GroupKind::new(group, kind))?);
        }
        return Ok(resources);
    }
    for kind in kinds {
        let resource = match cluster.discovery.resource_argument(kind) {
            KindLookup::Found(resource) => resource,
            KindLookup::GroupFailed(failure) => {
                return Err(Error::KindUnknowable(format!(
                    "whether the server has a resource {kind:?} could not be found out: {failure}"
                )));
            }
            KindLookup::Absent => {
                return Err(Error::Usage {
                    message: format!("the server has no resource {kind:?}"),
                    hint: "`kubectl api-resources` shows all; --kinds takes them as deployments, deploy, Deployment or deployments.apps"
                        .to_owned(),
                });
            }
        };
        if let Some(verb) = missing_verb(resource) {
            return Err(Error::Usage {
                message: format!(
                    "{} cannot be a member of a set: the server offers no {verb} for it",
                    resource.group_kind()
                ),
                hint: "leave it out of --kinds".to_owned(),
            });
        }
        if !resources
            .iter()
            .any(|known| known.group_kind() == resource.group_kind())
        {
            resources.push(Arc::new(resource.clone()));
        }
    }
    Ok(resources)
}

/// `None` where the server does not have the kind.
fn served(cluster: &Cluster, kind: &GroupKind) -> Result<Option<Arc<Resource>>, Error> {
    match cluster.discovery.preferred(kind) {
        KindLookup::Found(resource) if resource.origin == Origin::Served => {
            Ok(Some(Arc::new(resource.clone())))
        }
        KindLookup::Found(_) | KindLookup::Absent => Ok(None),
        KindLookup::GroupFailed(failure) => Err(Error::KindUnknowable(format!(
            "whether the server has the kind {kind} could not be found out: {failure}"
        ))),
    }
}

fn missing_verb(resource: &Resource) -> Option<&'static str> {
    VERBS_OF_MEMBERS.into_iter().find(|verb| !resource.supports(verb))
}

fn nothing_found(choice: &Choice) -> Error {
    let (message, hint) = match choice {
        Choice::Manifests(..) => (
            "the manifests hold no object".to_owned(),
            "check what is given to -f",
        ),
        Choice::Labels { selector, reach, .. } => (
            format!("no object has the labels {selector:?}"),
            match reach {
                Namespaces::Own => {
                    "-n says in which namespace to look, -A looks into all, and --kinds for other kinds"
                }
                Namespaces::All => "--kinds looks for other kinds",
            },
        ),
        Choice::Inventory(reference, _) => (
            format!("the inventory {} holds no object", reference.name),
            "there is nothing to adopt",
        ),
    };
    Error::Usage {
        message,
        hint: hint.to_owned(),
    }
}
