//! Reads the autoscalers of members whose number of replicas leaves the manifest.
//!
//! One LIST of each kind of autoscaler per namespace with such a member; none in any other run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::cluster::apiserver::ApiServer;
use crate::cluster::discovery::KindLookup;
use crate::compare::ownership::{self, Former, Replicas, ReplicasPath};
use crate::manifest::desired::{Desired, DesiredObject};
use crate::model::identity::ObjectKey;
use crate::model::list_targets::ListTarget;
use crate::model::live::Live;
use crate::model::resource::ScaleSubresource;
use crate::plan::{self, HandoverCause, ReplicasHandover};
use crate::read::list::{Selector, WHOLE_OBJECTS, list};
use crate::read::{self, Cluster, ReadError};

/// The members whose number of replicas is of interest, with its place.
pub(super) type Scaled = BTreeMap<ObjectKey, (ReplicasPath, Replicas)>;

/// The autoscalers by their targets, and why those of a namespace are not known.
#[derive(Default)]
struct Autoscalers {
    by_target: BTreeMap<ObjectKey, ObjectKey>,
    unknown: BTreeMap<Option<String>, String>,
}

/// Returns what the run does about the numbers of replicas, and adds warnings about those that are not
/// handed over for certain.
pub(super) async fn handovers(
    cluster: &Cluster,
    desired: &Desired,
    scaled: Scaled,
    warnings: &mut Vec<String>,
) -> Result<BTreeMap<ObjectKey, ReplicasHandover>, ReadError> {
    let mut autoscalers = Autoscalers::default();
    if scaled
        .values()
        .any(|(_, replicas)| matches!(replicas, Replicas::Dropped(_)))
    {
        autoscalers.by_target = plan::autoscalers_by_target(desired);
        autoscalers.read(cluster, &scaled).await?;
    }
    let mut handovers = BTreeMap::new();
    for (key, (path, replicas)) in scaled {
        let cause = match replicas {
            Replicas::Returned => HandoverCause::Returned,
            Replicas::HandedOver(_) => HandoverCause::Begun,
            Replicas::Dropped(value) => {
                let position = position(desired, &key);
                match (
                    autoscalers.by_target.get(&key),
                    autoscalers.unknown.get(&key.namespace),
                ) {
                    (Some(autoscaler), _) => HandoverCause::ScaledBy(autoscaler.clone()),
                    (None, Some(reason)) => {
                        warnings.push(plan::kept_unsure(&position, &key, &path, &value, reason));
                        HandoverCause::Unknown
                    }
                    (None, None) => {
                        warnings.extend(plan::not_handed_over(&position, &key, &path, &value));
                        continue;
                    }
                }
            }
        };
        handovers.insert(key, ReplicasHandover { path, cause });
    }
    Ok(handovers)
}

/// Adds the numbers of replicas of objects that the run takes from other sets. They are read one by one:
/// the LIST that found them has their metadata alone.
pub(super) async fn add_taken(
    server: &ApiServer,
    desired: &Desired,
    others: &[Live],
    former: &Former<'_>,
    scaled: &mut Scaled,
) -> Result<(), ReadError> {
    let path = ReplicasPath::default();
    for live in others {
        let is_it = |member: &&DesiredObject| {
            member.key == live.key && member.resource.scale == ScaleSubresource::Listed
        };
        let Some(member) = desired.members.iter().find(is_it) else {
            continue;
        };
        let manifest = member.object.value();
        if path.value_in(&manifest).is_some() {
            continue;
        }
        let object = read::object(server, &member.resource, &live.key).await;
        let object = object.map_err(|error| ReadError::Object {
            what: live.key.to_string(),
            error,
        })?;
        if let Some(found) = object.and_then(|object| ownership::replicas(&manifest, &object, &path, former))
        {
            scaled.insert(live.key.clone(), (path.clone(), found));
        }
    }
    Ok(())
}

fn position(desired: &Desired, key: &ObjectKey) -> String {
    let is_it = |member: &&DesiredObject| member.key == *key;
    let found = desired.members.iter().find(is_it);
    found
        .map(|member| member.position.to_string())
        .unwrap_or_default()
}

impl Autoscalers {
    /// Reads the autoscalers of each kind in the namespaces of dropped numbers, as long as one of them is
    /// without an autoscaler.
    async fn read(&mut self, cluster: &Cluster, scaled: &Scaled) -> Result<(), ReadError> {
        for kind in plan::autoscaler_kinds() {
            let namespaces: BTreeSet<&Option<String>> = scaled
                .iter()
                .filter(|(key, (_, replicas))| {
                    matches!(replicas, Replicas::Dropped(_)) && !self.by_target.contains_key(key)
                })
                .map(|(key, _)| &key.namespace)
                .collect();
            let resource = match cluster.discovery.preferred(&kind) {
                KindLookup::Found(resource) if resource.supports("list") => Arc::new(resource.clone()),
                KindLookup::Found(_) | KindLookup::Absent => continue,
                KindLookup::GroupFailed(failure) => {
                    let unknown = namespaces
                        .into_iter()
                        .map(|name| (name.clone(), failure.to_string()));
                    self.unknown.extend(unknown);
                    continue;
                }
            };
            let selector = Selector {
                labels: String::new(),
                accept: WHOLE_OBJECTS,
            };
            for namespace in namespaces {
                let targets = list(
                    &cluster.server,
                    &resource,
                    namespace.as_deref(),
                    &selector,
                    |item| {
                        let text = |field: &str| item["metadata"][field].as_str().map(str::to_owned);
                        let autoscaler = ObjectKey {
                            group_kind: kind.clone(),
                            namespace: text("namespace"),
                            name: text("name")?,
                        };
                        let target = plan::target_of(&kind, item, autoscaler.namespace.as_deref())?;
                        Some((target, autoscaler))
                    },
                );
                match targets.await {
                    Ok(targets) => {
                        for (target, autoscaler) in targets {
                            self.by_target.entry(target).or_insert(autoscaler);
                        }
                    }
                    Err(error) if error.is_forbidden() => {
                        self.unknown.insert(namespace.clone(), error.to_string());
                    }
                    Err(error) => {
                        let place = ListTarget {
                            resource: Arc::clone(&resource),
                            namespace: namespace.clone(),
                        };
                        return Err((place, error).into());
                    }
                }
            }
        }
        Ok(())
    }
}
