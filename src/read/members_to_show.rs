//! Reads the members of sets for `list`, `view` and `rbac`, which only show them, and judges their state for `view`.

use std::collections::{BTreeMap, BTreeSet};
use std::slice;
use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

use super::cluster::Cluster;
use super::found_set::{self, FoundSet};
use super::list::{ListError, METADATA_LIST, Selector, WHOLE_OBJECTS};
use super::list_collections::list_collections;
use super::list_visible::{ListOptions, list_visible};
use crate::compare::ownership;
use crate::compare::status::{self, OthersOfKind, Readiness, StatusRules, Surroundings};
use crate::error::Error;
use crate::model::applyset::PART_OF_LABEL;
use crate::model::identity::GroupKind;
use crate::model::list_targets::ListTarget;
use crate::model::live::Live;
use crate::model::resource::Resource;
use crate::model::text::first_names_and_more;

/// Finds the members of all these sets, with one LIST for each kind and namespace.
pub async fn add_members_to_sets(
    cluster: &Cluster,
    sets: &mut [FoundSet],
    concurrency: usize,
) -> Result<(), Error> {
    let places = found_set::determine_places_of_sets(sets, &cluster.discovery);
    let selector = Selector::new(PART_OF_LABEL, METADATA_LIST);
    let ids = collect_ids(sets);
    let found = list_collections(
        &cluster.server,
        &places,
        &selector,
        concurrency,
        |item, resource| keep_if_member_of(Live::from_object(item, resource)?, &ids),
    )
    .await?;
    found_set::assign_members(sets, found, &[], &cluster.discovery);
    Ok(())
}

/// Finds the members that the user may list. Warns of collections that cannot be listed, and notes them in the sets;
/// the other collections are read all the same.
pub async fn add_visible_members_to_sets(
    cluster: &Cluster,
    sets: &mut [FoundSet],
    concurrency: usize,
    warnings: &mut Vec<String>,
) {
    let selector = Selector::new(PART_OF_LABEL, METADATA_LIST);
    add_visible_members_with(
        cluster,
        sets,
        (&selector, &Live::from_object),
        concurrency,
        warnings,
    )
    .await;
}

/// The selector of members, and the function that picks what is kept of each.
type Look<'a> = (&'a Selector, &'a dyn Fn(&Value, &Arc<Resource>) -> Option<Live>);

/// Finds the members of one set that the user may list, like [`add_visible_members_to_sets`], but as whole objects.
/// Calls `see` with each object before the object is dropped.
pub async fn add_members_and_visit_each(
    cluster: &Cluster,
    set: &mut FoundSet,
    concurrency: usize,
    warnings: &mut Vec<String>,
    see: impl Fn(&Value, &Live),
) {
    let selector = Selector::for_members(&set.id, WHOLE_OBJECTS);
    let pick = |item: &Value, resource: &Arc<Resource>| {
        let live = Live::from_object(item, resource)?;
        see(item, &live);
        Some(live)
    };
    let sets = slice::from_mut(set);
    add_visible_members_with(cluster, sets, (&selector, &pick), concurrency, warnings).await;
}

async fn add_visible_members_with(
    cluster: &Cluster,
    sets: &mut [FoundSet],
    (selector, pick): Look<'_>,
    concurrency: usize,
    warnings: &mut Vec<String>,
) {
    let places = found_set::determine_places_of_sets(sets, &cluster.discovery);
    let options = ListOptions::new(selector, concurrency);
    let ids = collect_ids(sets);
    let look = list_visible(&cluster.server, &places, options, |item, resource| {
        keep_if_member_of(pick(item, resource)?, &ids)
    })
    .await;
    let unread: Vec<ListTarget> = look.unread.iter().map(|(place, _)| place.clone()).collect();
    found_set::assign_members(sets, look.found, &unread, &cluster.discovery);
    let appliers = ownership::APPLIERS.into_iter().map(str::to_owned).collect();
    for set in sets.iter_mut() {
        let parent_uid = Some(&*set.parent_uid);
        set.members
            .retain(|live| !live.is_copy_with_foreign_owner(parent_uid, &appliers));
    }
    let mut unread = unread_reasons(look.unread);
    unread.retain(|(place, _)| sets.iter().any(|set| set.unread.contains(place)));
    warnings.extend(unread_warnings(&unread));
}

fn collect_ids(sets: &[FoundSet]) -> BTreeSet<String> {
    sets.iter().map(|set| set.id.to_string()).collect()
}

/// Returns the object if it is a member of one of these sets; others are not kept in memory.
fn keep_if_member_of(live: Live, set_ids: &BTreeSet<String>) -> Option<Live> {
    let is_member = live.part_of.as_ref().is_some_and(|id| set_ids.contains(id));
    is_member.then_some(live)
}

/// Pairs each collection that could not be read with the reason, in words that do not name the collection again.
pub fn unread_reasons(unread: Vec<(ListTarget, ListError)>) -> Vec<(ListTarget, String)> {
    let mut reasons = Vec::new();
    for (place, error) in unread {
        if error.is_forbidden() {
            reasons.push((place, "forbidden".to_owned()));
        } else {
            reasons.push((place, error.to_string()));
        }
    }
    reasons
}

/// Returns a warning for each resource and reason, with all namespaces in which the list failed.
pub fn unread_warnings(unread: &[(ListTarget, String)]) -> Vec<String> {
    let mut namespaces: BTreeMap<(String, &str), BTreeSet<&str>> = BTreeMap::new();
    for (place, reason) in unread {
        let name = place.resource.group_resource();
        let of_resource = namespaces.entry((name, reason)).or_default();
        of_resource.extend(place.namespace.as_deref());
    }
    namespaces
        .into_iter()
        .map(|((name, reason), namespaces)| {
            let namespaces: Vec<&str> = namespaces.into_iter().collect();
            let place = match namespaces.as_slice() {
                [] => String::new(),
                [namespace] => format!(" in namespace {namespace}"),
                _ => format!(" in the namespaces {}", first_names_and_more(namespaces)),
            };
            format!("{name}: cannot be listed{place}: {reason}")
        })
        .collect()
}

/// The state of one member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberState {
    /// The status of the member.
    pub readiness: Readiness,
    /// `metadata.creationTimestamp`.
    pub created: Option<String>,
    /// If the object reports no status: its status in case another object of its kind reports one.
    if_others_report: Option<Readiness>,
    group_kind: GroupKind,
}

impl MemberState {
    /// Judges a member by the whole object alone; `now` is the time by the server's clock. Once all members are judged,
    /// [`Self::correct_by_others_of_kind`] takes the others into account.
    pub fn new(object: &Value, live: &Live, rules: &StatusRules, now: Timestamp) -> Self {
        let judge = |others| {
            let around = Surroundings {
                others,
                subresource: live.resource.status,
                now,
            };
            rules.judge(object, &live.key.group_kind, around)
        };
        let created = object.pointer("/metadata/creationTimestamp");
        Self {
            readiness: judge(OthersOfKind::Silent),
            created: created.and_then(Value::as_str).map(str::to_owned),
            if_others_report: (!status::has_status(object)).then(|| judge(OthersOfKind::Report)),
            group_kind: live.key.group_kind.clone(),
        }
    }

    /// Corrects the status of members that report none, if another member of their kind reports one.
    pub fn correct_by_others_of_kind(states: &mut BTreeMap<String, Self>) {
        let reporting = states.values().filter(|state| state.if_others_report.is_none());
        let reporting: BTreeSet<GroupKind> = reporting.map(|state| state.group_kind.clone()).collect();
        for state in states.values_mut() {
            if reporting.contains(&state.group_kind)
                && let Some(readiness) = state.if_others_report.take()
            {
                state.readiness = readiness;
            }
        }
    }
}
