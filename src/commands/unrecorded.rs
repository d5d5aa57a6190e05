//! Sets that have members and no record: somebody deleted the parent, or a first run was
//! interrupted. Where their members may be, and what people should know of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::labelled_elsewhere::{self, Credible, LeftOut};
use super::opening::{Cluster, OpenedSet};
use crate::error::Error;
use crate::manifest::desired::{Desired, VERBS_OF_MEMBERS};
use crate::model::applyset::{PART_OF_LABEL, Record};
use crate::model::identity::GroupKind;
use crate::model::live::Live;
use crate::model::parent_object::ParentObject;
use crate::model::resource::Resource;
use crate::model::text::{counted, members_missed};
use crate::plan::{self, Standing, Survey};
use crate::read::{self, ListError, Look, Looking, NamespaceState, Place, Selector};
use crate::settings::MembershipOptions;

/// What a look at everything has found of a set that nothing records.
pub(super) struct Widened {
    /// How many members.
    pub(super) members: usize,
    /// What could not be listed in all namespaces: resources by their plural, kinds that
    /// definitions do not serve, APIs that do not answer.
    pub(super) hidden: Vec<String>,
    /// Those of them that this is not because of the user's rights.
    pub(super) unanswered: Vec<String>,
    /// What carries the label and was not taken for a member.
    pub(super) left_out: LeftOut,
}

/// How members are searched for.
#[derive(Clone, Copy)]
pub(super) struct Search<'a> {
    /// Field managers whose part-of labels make members.
    pub(super) appliers: &'a BTreeSet<String>,
    /// Requests under way at once.
    pub(super) concurrency: usize,
}

impl<'a> Search<'a> {
    /// The search of a command with these options.
    pub(super) fn of(options: &'a MembershipOptions) -> Self {
        Self {
            appliers: &options.appliers,
            concurrency: options.writing.concurrency,
        }
    }
}

/// Members whose parent is gone may be of any kind and in any namespace: the record that
/// told of them is gone, too. Extends the places by all where credible ones are. Where the user
/// may not look everywhere, the places' own namespaces are looked into.
///
/// # Errors
///
/// A kind that exists and is not served: it may have members that nobody sees.
pub(super) async fn widen_to_everything(
    cluster: &mut Cluster,
    opened: &OpenedSet,
    survey: &mut Survey,
    search: Search<'_>,
) -> Result<Widened, Error> {
    let unlistable = cluster.await_everything().await?;
    // What cannot be applied and deleted is in no set, such as the metrics of pods.
    let can_be_member = |resource: &&Resource| VERBS_OF_MEMBERS.iter().all(|verb| resource.supports(verb));
    let resources = cluster.discovery.listable().filter(can_be_member);
    let resources: Vec<Arc<Resource>> = resources.cloned().map(Arc::new).collect();
    let selector = Selector {
        labels: format!("{PART_OF_LABEL}={}", opened.set.id),
        accept: read::METADATA_LIST,
    };
    let looking = Looking {
        selector: &selector,
        concurrency: search.concurrency,
        seen: &|| {},
    };
    let mut namespaces = survey.places.namespaces.clone();
    namespaces.insert(cluster.namespace.clone());
    let Look { mut found, unread } =
        read::crawl(&cluster.server, &resources, &namespaces, looking, Live::of).await;
    found.retain(|live| !opened.set.is_parent(live));
    let Credible { found, left_out } =
        labelled_elsewhere::credible(&cluster.server, found, &namespaces, search).await;
    let places = &mut survey.places;
    let namespaces = found.iter().filter_map(|live| live.key.namespace.clone());
    places.namespaces.extend(namespaces);
    places.add_resources(found.iter().map(|live| Arc::clone(&live.resource)));
    let places = Record::of(found.iter().map(|live| &live.key), &opened.set.parent);
    survey.recorded = survey.recorded.union(&places);
    let plurals = |unread: &mut dyn Iterator<Item = &(Place, ListError)>| -> Vec<String> {
        let plurals: BTreeSet<&String> = unread.map(|(place, _)| &place.resource.plural).collect();
        plurals.into_iter().cloned().collect()
    };
    let named =
        |plurals: Vec<String>, unlistable: Vec<String>| plurals.into_iter().chain(unlistable).collect();
    let unanswered = plurals(&mut unread.iter().filter(|(_, error)| !error.is_forbidden()));
    Ok(Widened {
        members: found.len(),
        hidden: named(plurals(&mut unread.iter()), unlistable.names()),
        unanswered: named(unanswered, unlistable.unserved),
        left_out,
    })
}

/// What a search for the members of a set starts from.
pub(super) struct Start<'a> {
    /// The parent as it was judged.
    pub(super) standing: Standing,
    /// The objects that are to be applied.
    pub(super) desired: &'a Desired,
    /// The namespaces of these objects and of the parent that exist.
    pub(super) namespaces: &'a BTreeMap<String, NamespaceState>,
    /// When to look at everything.
    pub(super) without_record: WithoutRecord,
    pub(super) search: Search<'a>,
}

/// What is done about members that no record may have to name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WithoutRecord {
    /// They are looked for everywhere.
    LookEverywhere,
    /// Only the places of the manifests are looked at: the set is most likely new.
    TakeForNew,
}

/// Where the members of a set may be.
pub(super) struct Scope {
    /// The parent, in the light of what it lives in.
    pub(super) standing: Standing,
    pub(super) survey: Survey,
    /// What a look at everything has found; `None` if there was none.
    pub(super) widened: Option<Widened>,
}

/// Finds where the members of a set may be: the recorded places and those of the manifests
/// and, for a set without a record, wherever a look at everything finds some. All commands
/// that write get from the parent to the members through this function.
///
/// # Errors
///
/// A record that cannot be trusted, or a kind that exists and is not served.
pub(super) async fn scope(
    cluster: &mut Cluster,
    opened: &OpenedSet,
    start: Start<'_>,
) -> Result<Scope, Error> {
    let looks_everywhere =
        start.standing == Standing::New && start.without_record == WithoutRecord::LookEverywhere;
    let standing = match start.standing {
        Standing::New => self::standing(opened, start.namespaces),
        recorded @ Standing::Recorded(_) => recorded,
    };
    if let Standing::Recorded(bookkeeping) = &standing {
        cluster.settle(&bookkeeping.kinds).await?;
    }
    let mut survey = plan::survey(&opened.set, &standing, start.desired, &cluster.discovery)?;
    let widened = if looks_everywhere {
        Some(widen_to_everything(cluster, opened, &mut survey, start.search).await?)
    } else {
        None
    };
    Ok(Scope {
        standing,
        survey,
        widened,
    })
}

/// Finds where the members of a set may be for a command that applies nothing. Without a record
/// they are looked for everywhere: once there is a record, no run looks anywhere else. `home` is
/// the namespace that the parent lives in.
///
/// # Errors
///
/// As [`scope`].
pub(super) async fn scope_of_members(
    cluster: &mut Cluster,
    opened: &OpenedSet,
    standing: Standing,
    home: &BTreeMap<String, NamespaceState>,
    search: Search<'_>,
) -> Result<Scope, Error> {
    let start = Start {
        standing,
        desired: &Desired::default(),
        namespaces: home,
        without_record: WithoutRecord::LookEverywhere,
        search,
    };
    scope(cluster, opened, start).await
}

/// A set without a record, in the light of what its parent lives in.
fn standing(opened: &OpenedSet, namespaces: &BTreeMap<String, NamespaceState>) -> Standing {
    let left_behind = left_behind(opened, namespaces);
    if left_behind.is_empty() {
        Standing::New
    } else {
        Standing::resumed(&opened.set, left_behind)
    }
}

pub(super) fn orphans_found(opened: &OpenedSet, count: usize, hidden: &[String]) -> String {
    let objects = counted(count, "object");
    let mut text = format!(
        "{objects} of this set found, whose parent {} is gone; the set goes on with them",
        opened.set.parent
    );
    text.push_str(&perhaps_more(hidden));
    text
}

/// The warnings about a set without a record: what was found of it, what may have been missed,
/// and what was left out; none about a set that has a record or is new.
pub(super) fn warnings(
    opened: &OpenedSet,
    parent: Option<&ParentObject>,
    widened: Option<Widened>,
) -> Vec<String> {
    let Some(widened) = widened else {
        return Vec::new();
    };
    let found = found(opened, parent, &widened);
    found.into_iter().chain(widened.left_out.warnings).collect()
}

/// Most users may not look everywhere. That is no warning about every new set, but about one
/// whose parent exists: that may have had a record.
fn found(opened: &OpenedSet, parent: Option<&ParentObject>, widened: &Widened) -> Option<String> {
    let Widened {
        members,
        hidden,
        unanswered,
        ..
    } = widened;
    let doubts = if parent.is_some() { hidden } else { unanswered };
    match members {
        0 if doubts.is_empty() => None,
        0 => Some(no_record(doubts)),
        count if parent.is_none() => Some(orphans_found(opened, *count, hidden)),
        count => Some(format!(
            "{} of this set found, which its parent {} does not record{}",
            counted(*count, "object"),
            opened.set.parent,
            perhaps_more(hidden)
        )),
    }
}

fn perhaps_more(hidden: &[String]) -> String {
    if hidden.is_empty() {
        return String::new();
    }
    format!("; {}", members_missed(hidden))
}

/// The warning that members of a set without a record may be missed.
pub(super) fn no_record(hidden: &[String]) -> String {
    format!("the set has no record, and {}", members_missed(hidden))
}

/// The kinds of what the parent lives in, where that is a member of the set: an interrupted
/// run may have made it, and been stopped before it could record that on the parent.
fn left_behind(opened: &OpenedSet, namespaces: &BTreeMap<String, NamespaceState>) -> BTreeSet<GroupKind> {
    let is_ours = |part_of: &Option<String>| part_of.as_deref() == Some(opened.set.id.as_str());
    let home = opened
        .set
        .parent
        .namespace
        .as_ref()
        .and_then(|name| namespaces.get(name));
    let mut kinds = BTreeSet::new();
    if home.is_some_and(|state| is_ours(&state.part_of)) {
        kinds.insert(GroupKind::new("", "Namespace"));
    }
    if is_ours(&opened.definition_part_of) {
        kinds.insert(GroupKind::new("apiextensions.k8s.io", "CustomResourceDefinition"));
    }
    kinds
}
