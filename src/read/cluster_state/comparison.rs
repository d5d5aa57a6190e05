//! Lists the members and compares each with its manifest while its page is at hand.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::Value;

use super::autoscalers::Scaled;
use super::{OverLive, Rules, dependencies};
use crate::cluster::apiserver::ApiServer;
use crate::compare::changes::{self, CrdVersion, Reason, Verdict};
use crate::compare::ignore::{self, Purpose};
use crate::compare::ownership::{self, Former, LastApplied, Replicas, ReplicasPath};
use crate::compare::status::{self, Others};
use crate::manifest::desired::{Desired, DesiredObject};
use crate::model::applyset::PART_OF_LABEL;
use crate::model::identity::{GroupKind, ObjectKey};
use crate::model::list_targets::ListTargets;
use crate::model::live::Live;
use crate::model::object::Object;
use crate::model::resource::{Resource, ScaleSubresource};
use crate::plan::Seen;
use crate::read::list::{Selector, WHOLE_OBJECTS};
use crate::read::members::members;
use crate::read::{NamedSet, ReadError, definition};

/// The members, and what was found out while their pages were at hand.
#[derive(Debug, Default)]
pub(super) struct Compared {
    /// The members.
    pub(super) members: Vec<Live>,
    /// How each compares with its manifest.
    pub(super) comparisons: BTreeMap<ObjectKey, Verdict>,
    /// What to send of those that changed and have ignored fields.
    pub(super) over_live: BTreeMap<ObjectKey, OverLive>,
    /// Numbers of replicas that have left the manifest, or returned to it.
    pub(super) scaled: Scaled,
    /// Those that objects of the manifests depend on, and that are Current.
    pub(super) current: BTreeSet<ObjectKey>,
}

/// What the status of a member says.
struct Signs {
    /// Whether it is Current, if others depend on it.
    currentness: Option<dependencies::Currentness>,
    /// Whether it has a status, if others depend on an object of its kind.
    reports: bool,
}

/// Lists the members, and compares each with its manifest while its page is at hand.
pub(super) async fn read_members(
    server: &ApiServer,
    named: &NamedSet,
    desired: &Desired,
    places: &ListTargets,
    rules: Rules<'_>,
    former_manager: Option<&str>,
) -> Result<Compared, ReadError> {
    let former = former(named, rules, former_manager);
    let selector = Selector {
        labels: format!("{PART_OF_LABEL}={}", named.set.id),
        accept: WHOLE_OBJECTS,
    };
    let wanted: HashMap<&ObjectKey, &DesiredObject> = desired
        .members
        .iter()
        .map(|member| (&member.key, member))
        .collect();
    let named_dependencies = desired.members.iter().flat_map(|member| &member.depends_on);
    let depended_on: HashSet<&ObjectKey> = named_dependencies.collect();
    let depended_on_kinds: HashSet<&GroupKind> = depended_on.iter().map(|key| &key.group_kind).collect();
    let definitions = read_definitions(server, places, desired, rules.concurrency).await?;
    let reduce = |item: &Value, resource: &Arc<Resource>| {
        let mut live = Live::of(item, resource)?;
        let member = wanted.get(&live.key);
        if member.is_some_and(|member| member.is_secret()) {
            live.client_side_apply |= ownership::has_string_data(&item["metadata"], rules.field_manager);
        }
        let compared = member.map(|member| {
            if member.resource.version != resource.version {
                return (Verdict::Send(Reason::OtherVersion), None);
            }
            let definition = definitions.get(&live.key.group_kind);
            let definition = definition.and_then(|definition| CrdVersion::of(definition, &resource.version));
            let body = |purpose| body_over(member, item, rules.field_manager, purpose);
            let verdict = changes::compare(
                &body(Purpose::Compare).value(),
                item,
                rules.field_manager,
                definition.as_ref(),
            );
            let is_sent = verdict != Verdict::Unchanged && !member.ignored.is_empty();
            let over_live = is_sent.then(|| OverLive {
                object: body(Purpose::Send),
                seen: Seen::version(item),
            });
            (verdict, over_live)
        });
        let scaled = member.and_then(|member| {
            let definition = definitions.get(&live.key.group_kind);
            replicas(member, item, resource, definition, &former)
        });
        // The object is as its manifest, but an interrupted run has left its hand-over behind.
        let compared = match (&scaled, compared) {
            (Some((path, Replicas::Returned)), Some((Verdict::Unchanged, over_live))) => {
                Some((Verdict::Send(Reason::FieldAdded(path.to_string())), over_live))
            }
            (_, compared) => compared,
        };
        let current = depended_on.contains(&live.key);
        let current = current.then(|| dependencies::currentness(item, resource, server.now(), rules));
        let reports = depended_on_kinds.contains(&live.key.group_kind) && status::reports(item);
        let signs = Signs {
            currentness: current.flatten(),
            reports,
        };
        Some((live, compared, signs, scaled))
    };
    let listed = members(server, places, &selector, rules.concurrency, reduce).await?;
    let mut all = Compared::default();
    // Only a complete list shows whether another object of a kind reports.
    let reporting = listed.iter().filter(|(_, _, signs, _)| signs.reports);
    let reporting: HashSet<GroupKind> = reporting.map(|(live, ..)| live.key.group_kind.clone()).collect();
    for (live, compared, signs, scaled) in listed {
        if named.set.is_parent(&live) {
            continue;
        }
        if let Some((verdict, over_live)) = compared {
            all.comparisons.insert(live.key.clone(), verdict);
            all.over_live
                .extend(over_live.map(|over_live| (live.key.clone(), over_live)));
        }
        if let Some(scaled) = scaled {
            all.scaled.insert(live.key.clone(), scaled);
        }
        let others = if reporting.contains(&live.key.group_kind) {
            Others::Report
        } else {
            Others::Silent
        };
        if signs.currentness.is_some_and(|current| current.settled(others)) {
            all.current.insert(live.key.clone());
        }
        all.members.push(live);
    }
    Ok(all)
}

/// Returns the body of an object that is compared with the live one, or sent over it.
fn body_over(member: &DesiredObject, live: &Value, manager: &str, purpose: Purpose) -> Object {
    let settled = ignore::body_of(member, live, manager, purpose);
    ownership::with_applyset_metadata(&settled, &live["metadata"], manager).unwrap_or(settled)
}

/// Returns the owners whose fields a run takes.
pub(super) fn former<'a>(named: &NamedSet, rules: Rules<'a>, former_manager: Option<&'a str>) -> Former<'a> {
    Former {
        manager: rules.field_manager,
        tool: former_manager,
        writers: &[],
        last_applied: LastApplied::in_set_of(&named.set.tooling),
    }
}

/// Returns what a run does about the number of replicas of a member, with the place of that number;
/// `None` if nothing, or if its kind cannot be scaled.
fn replicas(
    member: &DesiredObject,
    live: &Value,
    resource: &Resource,
    definition: Option<&Value>,
    former: &Former<'_>,
) -> Option<(ReplicasPath, Replicas)> {
    if resource.scale == ScaleSubresource::Unlisted {
        return None;
    }
    let path = ReplicasPath::of(definition, &resource.version);
    let replicas = ownership::replicas(&member.object.value(), live, &path, former)?;
    Some((path, replicas))
}

/// Reads the CRDs of the custom resources that are going to be compared: only they show which maps and
/// lists are atomic.
async fn read_definitions(
    server: &ApiServer,
    places: &ListTargets,
    desired: &Desired,
    concurrency: usize,
) -> Result<HashMap<GroupKind, Value>, ReadError> {
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
        let read = definition(server, resource).await;
        let definition = read.map_err(|error| ReadError::Object {
            what: format!("the definition of {}", resource.group_kind()),
            error,
        })?;
        Ok::<_, ReadError>(definition.map(|definition| {
            let schema = CrdVersion::relevant(definition, &resource.version);
            (resource.group_kind(), schema)
        }))
    });
    let definitions: Vec<_> = stream::iter(reads)
        .buffer_unordered(concurrency)
        .try_collect()
        .await?;
    Ok(definitions.into_iter().flatten().collect())
}
