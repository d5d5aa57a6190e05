//! Everything that is read of the cluster before a plan is made, in the order in which
//! one answer says where to look for the next.
//!
//! It puts `observe` and the pure parts of `plan` together; it decides nothing itself.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use futures_util::future::join;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::Value;

use super::kinds;
use super::opening::{self, Cluster, OpenedSet};
use super::unrecorded::{self, Scope, Search, Start, Widened, WithoutRecord};
use crate::cluster::apiserver::ApiServer;
use crate::compare::changes::{self, Definition, Reason, Verdict};
use crate::compare::ownership;
use crate::error::{Error, MissingNamespace};
use crate::manifest::desired::{Desired, DesiredObject};
use crate::model::applyset::{ApplySetId, ID_LABEL, PART_OF_LABEL, ParentIdentity, Tooling};
use crate::model::holders::{Holders, Owners};
use crate::model::identity::{GroupKind, ObjectKey};
use crate::model::live::{Live, Presence};
use crate::model::parent_object::ParentObject;
use crate::model::resource::Resource;
use crate::plan::{
    self, Dependant, Observed, OtherParents, ParentPolicy, Policy, Refusal, Standing, Unowned,
};
use crate::read::{self, Looking, NamespaceState, Places, Selector};

/// What the user allows, as far as it says what has to be read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules<'a> {
    pub(super) policy: &'a Policy,
    pub(super) parent_policy: ParentPolicy,
    /// As whom members are applied.
    pub(super) field_manager: &'a str,
    /// Requests under way at once.
    pub(super) concurrency: usize,
}

impl<'a> Rules<'a> {
    pub(super) fn search(self) -> Search<'a> {
        Search {
            appliers: &self.policy.appliers,
            concurrency: self.concurrency,
        }
    }
}

/// What the cluster has.
pub(super) struct Situation {
    pub(super) parent: Option<ParentObject>,
    /// Under which rule the parent was found to be writable.
    pub(super) parent_policy: ParentPolicy,
    /// Where members were looked for.
    pub(super) places: Places,
    pub(super) observed: Observed,
    pub(super) warnings: Vec<String>,
    /// The namespaces of the manifests and of the parent that exist.
    pub(super) namespaces: BTreeMap<String, NamespaceState>,
    /// Who managed the set until now, where this run takes it over.
    pub(super) former_tooling: Option<Tooling>,
}

/// Reads it. Refused where the parent may not be written.
pub(super) async fn read(
    cluster: &mut Cluster,
    opened: &mut OpenedSet,
    desired: &mut Desired,
    rules: Rules<'_>,
) -> Result<Situation, Error> {
    let server = &cluster.server.clone();
    let (parent, namespaces) = join(
        opening::read_parent(server, opened),
        read_namespaces(server, opened, desired),
    )
    .await;
    let parent = parent?;
    let namespaces = namespaces?;
    opened.set.parent_uid = parent.as_ref().map(|parent| parent.uid.clone());
    let opened = &*opened;
    let standing = plan::judge(&opened.set, parent.as_ref(), rules.parent_policy)?;
    check_custom_parent(opened, parent.as_ref(), desired)?;
    check_namespaces(opened, desired, &namespaces)?;
    let start = Start {
        standing,
        desired,
        namespaces: &namespaces,
        // A parent that exists may have had a record before. Nearly every run without a parent
        // is the first of its set.
        without_record: match parent {
            Some(_) => WithoutRecord::LookEverywhere,
            None => WithoutRecord::TakeForNew,
        },
        search: rules.search(),
    };
    let Scope {
        standing,
        mut survey,
        widened,
    } = unrecorded::scope(cluster, opened, start).await?;
    // A kind that was only promised may be listed by now.
    desired.renew(&cluster.discovery);
    let desired = &*desired;
    let (mut members, mut comparisons) = read_members(server, opened, desired, &survey.places, rules).await?;

    let mut warnings = survey.warnings();
    warnings.extend(unrecorded::warnings(opened, parent.as_ref(), widened));
    if parent.is_none() && !members.is_empty() {
        let Widened { hidden, left_out, .. } =
            unrecorded::widen_to_everything(cluster, opened, &mut survey, rules.search()).await?;
        (members, comparisons) = read_members(server, opened, desired, &survey.places, rules).await?;
        warnings.push(unrecorded::orphans_found(opened, members.len(), &hidden));
        warnings.extend(left_out.warnings);
    }
    let others = read_others(server, opened, desired, &members, rules.concurrency).await?;
    let existing = read_existing(server, desired, &members, &survey.places, &namespaces, rules).await?;
    let other_parents = find_parents(
        cluster,
        opened,
        desired,
        &others,
        rules.concurrency,
        &mut warnings,
    )
    .await;
    let mut observed = Observed {
        recorded: survey.recorded,
        unlisted: survey.unlisted,
        members,
        others,
        other_parents,
        existing,
        comparisons,
        terminating_namespaces: namespaces
            .iter()
            .filter(|(_, state)| state.presence == Presence::Terminating)
            .map(|(name, _)| name.clone())
            .collect(),
        contents: BTreeMap::new(),
        parent_annotations: parent
            .as_ref()
            .map(|parent| parent.annotations.clone())
            .unwrap_or_default(),
        parent: parent.as_ref().and_then(|parent| dependant(opened, parent)),
        holder_owners: BTreeMap::new(),
    };
    let resource = Some(&opened.resource);
    let holders = plan::holders(&opened.set, resource, desired, &observed, rules.policy);
    observed.holder_owners = read_owners(server, holders, &namespaces).await?;
    let containers = plan::containers(&opened.set, desired, &observed, rules.policy);
    observed.contents = cluster.contents(&containers, rules.concurrency).await?;
    Ok(Situation {
        former_tooling: former_tooling(opened, &standing),
        parent,
        parent_policy: rules.parent_policy,
        places: survey.places,
        observed,
        warnings,
        namespaces,
    })
}

fn former_tooling(opened: &OpenedSet, standing: &Standing) -> Option<Tooling> {
    match standing {
        Standing::Recorded(bookkeeping) if !bookkeeping.tooling.is_same_program(&opened.set.tooling) => {
            Some(bookkeeping.tooling.clone())
        }
        Standing::Recorded(_) | Standing::New => None,
    }
}

/// The parent as an object that others own; `None` if it has no owners.
pub(super) fn dependant(opened: &OpenedSet, parent: &ParentObject) -> Option<Dependant> {
    let dependant = Dependant::of_parent(&opened.set.parent, &opened.resource, parent);
    (!dependant.owners.is_empty()).then_some(dependant)
}

/// Reads the namespace of the parent. Refuses a parent whose namespace is not there, or is on its
/// way out.
pub(super) async fn check_home(
    server: &ApiServer,
    opened: &OpenedSet,
) -> Result<BTreeMap<String, NamespaceState>, Error> {
    let nothing = Desired::default();
    let namespaces = read_namespaces(server, opened, &nothing).await?;
    check_namespaces(opened, &nothing, &namespaces)?;
    Ok(namespaces)
}

/// Reads the namespace of the parent, where a first run may have ended; nothing for a set that
/// is recorded.
pub(super) async fn read_home(
    server: &ApiServer,
    opened: &OpenedSet,
    standing: &Standing,
) -> Result<BTreeMap<String, NamespaceState>, Error> {
    match standing {
        Standing::New => read_namespaces(server, opened, &Desired::default()).await,
        Standing::Recorded(_) => Ok(BTreeMap::new()),
    }
}

/// Reads the namespaces of the manifests and of the parent.
async fn read_namespaces(
    server: &ApiServer,
    opened: &OpenedSet,
    desired: &Desired,
) -> Result<BTreeMap<String, NamespaceState>, Error> {
    let wanted = desired
        .members
        .iter()
        .filter_map(|member| member.key.namespace.as_deref());
    let names = wanted.chain(opened.set.parent.namespace.as_deref()).collect();
    let found = read::namespaces(server, &names).await;
    found.map_err(|(place, error)| Error::List { place, error })
}

/// Reads the owners of what holds objects that stay, but for namespaces that were read before.
pub(super) async fn read_owners(
    server: &ApiServer,
    mut holders: Holders,
    namespaces: &BTreeMap<String, NamespaceState>,
) -> Result<BTreeMap<ObjectKey, Owners>, Error> {
    let (known, unread) = holders
        .namespaces
        .into_iter()
        .partition(|name| namespaces.contains_key(name));
    holders.namespaces = unread;
    let read = read::owners_of_holders(server, &holders).await;
    let mut owners = read.map_err(|(place, error)| Error::List { place, error })?;
    let known: BTreeSet<String> = known;
    let known = known.iter().filter_map(|name| {
        let state = namespaces.get(name)?;
        Some((Holders::namespace_key(name), Owners::of(state)))
    });
    owners.extend(known);
    Ok(owners)
}

/// Finds objects of the manifests that are members of other sets. Nothing is asked where
/// all of them are members of this one already.
async fn read_others(
    server: &ApiServer,
    opened: &OpenedSet,
    desired: &Desired,
    members: &[Live],
    concurrency: usize,
) -> Result<Vec<Live>, Error> {
    let places = plan::places_of_newcomers(desired, members);
    let selector = Selector {
        labels: format!("{PART_OF_LABEL},{PART_OF_LABEL}!={}", opened.set.id),
        accept: read::METADATA_LIST,
    };
    let others = read::members(server, &places, &selector, concurrency, Live::of).await;
    others.map_err(|(place, error)| Error::List { place, error })
}

/// Reads the objects of the manifests that exist and are no members yet. Nothing is asked unless
/// the policy refuses those that are in no set.
async fn read_existing(
    server: &ApiServer,
    desired: &Desired,
    members: &[Live],
    places: &Places,
    namespaces: &BTreeMap<String, NamespaceState>,
    rules: Rules<'_>,
) -> Result<Vec<Live>, Error> {
    if rules.policy.unowned == Unowned::TakenIn {
        return Ok(Vec::new());
    }
    let newcomers = plan::newcomers(desired, members, &places.resources, namespaces);
    let existing = read::existing(server, &newcomers, rules.concurrency).await;
    existing.map_err(|(place, error)| Error::List { place, error })
}

/// The parents of the sets that hold objects of the manifests, for the refusal to name.
async fn find_parents(
    cluster: &Cluster,
    opened: &OpenedSet,
    desired: &Desired,
    others: &[Live],
    concurrency: usize,
    warnings: &mut Vec<String>,
) -> OtherParents {
    let wanted: BTreeSet<_> = desired.members.iter().map(|member| &member.key).collect();
    let ids = others
        .iter()
        .filter(|live| wanted.contains(&live.key))
        .filter_map(|live| live.part_of.as_deref())
        .collect();
    let namespaces = wanted.iter().filter_map(|key| key.namespace.clone());
    let namespaces = namespaces.chain(opened.set.parent.namespace.clone()).collect();
    parents_of(cluster, &ids, namespaces, concurrency, warnings).await
}

/// The parents of the sets with these ids. Whoever may not look into all namespaces sees
/// those in `namespaces` and in that of the connection, where the other set most likely is.
pub(super) async fn parents_of(
    cluster: &Cluster,
    ids: &BTreeSet<&str>,
    mut namespaces: BTreeSet<String>,
    concurrency: usize,
    warnings: &mut Vec<String>,
) -> OtherParents {
    if ids.is_empty() {
        return OtherParents::default();
    }
    namespaces.insert(cluster.namespace.clone());
    let mut doubts = Vec::new();
    let kinds = kinds::parent_kinds(cluster, &mut doubts).await;
    let selector = Selector {
        labels: ID_LABEL.to_owned(),
        accept: read::METADATA_LIST,
    };
    let looking = Looking {
        selector: &selector,
        concurrency,
        seen: &|| (),
    };
    let look = read::crawl(&cluster.server, &kinds, &namespaces, looking, Live::of).await;
    let parents = look.found.into_iter();
    let found: BTreeMap<String, ParentIdentity> = parents
        .map(|parent| (ApplySetId::of(&parent.key).to_string(), parent.key))
        .filter(|(id, _)| ids.contains(id.as_str()))
        .collect();
    if found.len() < ids.len() {
        warnings.extend(doubts.iter().cloned());
    }
    OtherParents {
        found,
        some_unseen: !doubts.is_empty() || !look.unread.is_empty(),
    }
}

/// A custom resource cannot be made up: it must be there, or come with the manifests.
pub(super) fn check_custom_parent(
    opened: &OpenedSet,
    parent: Option<&ParentObject>,
    desired: &Desired,
) -> Result<(), Error> {
    let is_plain = opened.resource.group.is_empty();
    if is_plain || parent.is_some() || desired.parent.is_some() {
        return Ok(());
    }
    Err(Error::Usage {
        message: format!("the set's parent {} does not exist", opened.set.parent),
        hint: format!(
            "put the {} {} among the manifests, or create it first",
            opened.resource.kind, opened.set.parent.name
        ),
    })
}

/// Reads the CRDs of the custom resources that are going to be compared: only they tell
/// which of their maps and lists are one value.
async fn read_definitions(
    server: &ApiServer,
    places: &Places,
    desired: &Desired,
    concurrency: usize,
) -> Result<HashMap<GroupKind, Value>, Error> {
    let compared: BTreeSet<&GroupKind> = desired
        .members
        .iter()
        .map(|member| &member.key.group_kind)
        .collect();
    let is_custom = |resource: &&Arc<Resource>| {
        compared.contains(&resource.group_kind())
            && !changes::is_built_in(&resource.api_version(), &resource.kind)
    };
    let reads = places.resources.iter().filter(is_custom).map(async |resource| {
        let read = read::definition(server, resource).await;
        let definition = read.map_err(|error| Error::Read {
            what: format!("the definition of {}", resource.group_kind()),
            error,
        })?;
        Ok::<_, Error>(definition.map(|definition| {
            let schema = Definition::relevant(definition, &resource.version);
            (resource.group_kind(), schema)
        }))
    });
    let definitions: Vec<_> = stream::iter(reads)
        .buffer_unordered(concurrency)
        .try_collect()
        .await?;
    Ok(definitions.into_iter().flatten().collect())
}

/// Lists the members, and compares each with its manifest while its page is at hand.
pub(super) async fn read_members(
    server: &ApiServer,
    opened: &OpenedSet,
    desired: &Desired,
    places: &Places,
    rules: Rules<'_>,
) -> Result<(Vec<Live>, BTreeMap<ObjectKey, Verdict>), Error> {
    let selector = Selector {
        labels: format!("{PART_OF_LABEL}={}", opened.set.id),
        accept: read::WHOLE_OBJECTS,
    };
    let wanted: HashMap<&ObjectKey, &DesiredObject> = desired
        .members
        .iter()
        .map(|member| (&member.key, member))
        .collect();
    let definitions = read_definitions(server, places, desired, rules.concurrency).await?;
    let reduce = |item: &Value, resource: &Arc<Resource>| {
        let mut live = Live::of(item, resource)?;
        let member = wanted.get(&live.key);
        if member.is_some_and(|member| member.is_secret()) {
            live.client_side_apply |= ownership::has_string_data(&item["metadata"], rules.field_manager);
        }
        let verdict = member.map(|member| {
            if member.resource.version != resource.version {
                return Verdict::Send(Reason::OtherVersion);
            }
            let definition = definitions.get(&live.key.group_kind);
            let definition = definition.and_then(|definition| Definition::of(definition, &resource.version));
            let carrying =
                ownership::with_bookkeeping(&member.object, &item["metadata"], rules.field_manager);
            changes::compare(
                &carrying.as_ref().unwrap_or(&member.object).value(),
                item,
                rules.field_manager,
                definition.as_ref(),
            )
        });
        Some((live, verdict))
    };
    let listed = read::members(server, places, &selector, rules.concurrency, reduce).await;
    let listed = listed.map_err(|(place, error)| Error::List { place, error })?;
    let mut members = Vec::new();
    let mut comparisons = BTreeMap::new();
    for (live, verdict) in listed {
        if opened.set.is_parent(&live) {
            continue;
        }
        if let Some(verdict) = verdict {
            comparisons.insert(live.key.clone(), verdict);
        }
        members.push(live);
    }
    Ok((members, comparisons))
}

/// Refuses namespaces that neither exist nor come with the manifests, and a parent in a
/// namespace that is on its way out.
fn check_namespaces(
    opened: &OpenedSet,
    desired: &Desired,
    namespaces: &BTreeMap<String, NamespaceState>,
) -> Result<(), Error> {
    let home = opened.set.parent.namespace.as_deref();
    if let Some(home) = home
        && namespaces
            .get(home)
            .is_some_and(|state| state.presence == Presence::Terminating)
    {
        let namespace = home.to_owned();
        return Err(Error::Refused(vec![Refusal::HomeTerminating { namespace }]));
    }
    let coming: BTreeSet<&str> = desired.namespaces().collect();
    let is_missing = |namespace: &&str| !namespaces.contains_key(*namespace) && !coming.contains(namespace);
    let mut wanted: BTreeMap<&str, _> = BTreeMap::new();
    for member in &desired.members {
        if let Some(namespace) = member.key.namespace.as_deref().filter(is_missing) {
            wanted
                .entry(namespace)
                .or_insert_with(|| Some((member.position.clone(), member.key.clone())));
        }
    }
    if let Some(home) = home.filter(is_missing) {
        wanted.insert(home, None);
    }
    let missing: Vec<MissingNamespace> = wanted
        .into_iter()
        .map(|(namespace, wanted_by)| MissingNamespace {
            namespace: namespace.to_owned(),
            wanted_by,
        })
        .collect();
    if missing.is_empty() {
        Ok(())
    } else {
        Err(Error::MissingNamespaces(missing))
    }
}
