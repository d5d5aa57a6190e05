//! Sets that have members and no record: somebody deleted the parent, or a first run was
//! interrupted. Where their members may be, and what people should know of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::opening::{Cluster, OpenedSet};
use super::situation::read_namespaces;
use crate::applyset::parent::Reading;
use crate::applyset::{PART_OF_LABEL, Record};
use crate::desired::Desired;
use crate::discovery::Resource;
use crate::error::Error;
use crate::identity::GroupKind;
use crate::observe::{self, ListError, Live, Look, Looking, NamespaceState, ParentObject, Place, Selector};
use crate::plan::{self, Standing, Survey};
use crate::wording::counted;

/// What a look at everything has found of a set that nothing records.
pub(super) struct Widened {
    /// How many members.
    pub(super) members: usize,
    /// The resources that could not be looked at everywhere, by their plural.
    pub(super) hidden: Vec<String>,
    /// Those of them that this is not because of the user's rights.
    pub(super) unanswered: Vec<String>,
}

/// Members whose parent is gone may be of any kind and in any namespace: the record that
/// told of them is gone, too. Extends the places by all where some are. Where the user may
/// not look everywhere, the places' own namespaces are looked into.
pub(super) async fn widen_to_everything(
    cluster: &Cluster,
    opened: &OpenedSet,
    survey: &mut Survey,
    concurrency: usize,
) -> Widened {
    let resources: Vec<Arc<Resource>> = cluster.discovery.listable().cloned().map(Arc::new).collect();
    let selector = Selector {
        labels: format!("{PART_OF_LABEL}={}", opened.set.id),
        accept: observe::METADATA_LIST,
    };
    let looking = Looking {
        selector: &selector,
        concurrency,
        seen: &|| {},
    };
    let mut namespaces = survey.places.namespaces.clone();
    namespaces.insert(cluster.namespace.clone());
    let Look { mut found, unread } =
        observe::crawl(&cluster.server, &resources, &namespaces, looking, Live::of).await;
    found.retain(|live| live.key != opened.set.parent);
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
    Widened {
        members: found.len(),
        hidden: plurals(&mut unread.iter()),
        unanswered: plurals(&mut unread.iter().filter(|(_, error)| !error.is_forbidden())),
    }
}

/// Finds out where members of a set may be that has no record: nowhere, or wherever those
/// are that lost their parent, or that an interrupted first run has left behind.
pub(super) async fn survey(
    cluster: &Cluster,
    opened: &OpenedSet,
    concurrency: usize,
) -> Result<(Survey, Widened), Error> {
    let nothing = Desired::default();
    let namespaces = read_namespaces(&cluster.server, opened, &nothing).await?;
    let standing = self::standing(opened, &namespaces);
    let mut survey = plan::survey(&opened.set, &standing, &nothing, &cluster.discovery)?;
    let widened = widen_to_everything(cluster, opened, &mut survey, concurrency).await;
    Ok((survey, widened))
}

/// A set without a record, in the light of what its parent lives in.
pub(super) fn standing(opened: &OpenedSet, namespaces: &BTreeMap<String, NamespaceState>) -> Standing {
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

/// What people should know of a set without a record, and of what may be in it; `None` where
/// it is a new one. That most people may not look everywhere is not told of every new set.
pub(super) fn found(opened: &OpenedSet, parent: Option<&ParentObject>, widened: &Widened) -> Option<String> {
    let Widened {
        members,
        hidden,
        unanswered,
    } = widened;
    let is_unfinished = matches!(parent.map(|parent| &parent.reading), Some(Reading::Unfinished(_)));
    let doubts = if is_unfinished { hidden } else { unanswered };
    match members {
        0 if doubts.is_empty() => None,
        0 => Some(format!(
            "nothing records this set's members, and there may be some among what could not be listed everywhere: {}",
            doubts.join(", ")
        )),
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
    let hidden = hidden.join(", ");
    format!("; there may be more among what could not be listed everywhere: {hidden}")
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
