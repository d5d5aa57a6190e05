//! Reads the autoscalers of members whose manifests no longer set the number of replicas.
//!
//! A run with such members sends one LIST of each kind of autoscaler per namespace with such a member. Other runs send
//! none.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use serde_json::Value;

use super::NotesAndWarnings;
use super::comparison::Compared;
use crate::cluster::apiserver::ApiServer;
use crate::cluster::discovery::KindLookup;
use crate::compare::changes::Verdict;
use crate::compare::ownership::{self, OwnershipMigration, ReplicasPath};
use crate::error::Error;
use crate::manifest::desired::{Desired, DesiredObject};
use crate::model::built_in_kinds::is_built_in;
use crate::model::identity::ObjectKey;
use crate::model::list_targets::ListTarget;
use crate::model::live::Live;
use crate::model::resource::Subresource;
use crate::plan;
use crate::read::list::{Selector, WHOLE_OBJECTS, list};
use crate::read::{self, Cluster, Definitions, WithLiveFields, read_crds_by_kind};

/// The members whose number of replicas an apply would remove, by key.
pub(super) type ScaledMembers = BTreeMap<ObjectKey, DroppedReplicas>;

/// The number of replicas that an apply of a member would remove.
#[derive(Debug)]
pub(super) struct DroppedReplicas {
    pub(super) path: ReplicasPath,
    value: Value,
    /// The index of the manifest, how the member compares with the manifest if the number is ignored, and what to send
    /// then; `None` if the member is not compared.
    pub(super) if_ignored: Option<(usize, Verdict, Option<WithLiveFields>)>,
}

/// The autoscalers by their targets, and the reasons why the autoscalers of some namespaces are unknown.
#[derive(Default)]
struct Autoscalers {
    by_target: BTreeMap<ObjectKey, ObjectKey>,
    unknown: BTreeMap<Option<String>, String>,
}

impl DroppedReplicas {
    fn without_comparison(&self) -> Self {
        Self {
            path: self.path.clone(),
            value: self.value.clone(),
            if_ignored: None,
        }
    }

    /// Returns the number that an apply of a member over the live object would remove; `None` if there is none, or
    /// if it is ignored already.
    pub(super) fn find(
        member: &DesiredObject,
        live: &Value,
        path: ReplicasPath,
        former: &OwnershipMigration<'_>,
    ) -> Option<Self> {
        let pointer = path.pointer();
        let mut ignored = member.ignored.iter();
        if ignored.any(|field| pointer.segments().starts_with(field.segments())) {
            return None;
        }
        let value = ownership::dropped_replicas(&member.object.value(), live, &path, former)?;
        Some(Self {
            path,
            value,
            if_ignored: None,
        })
    }
}

/// Reads autoscalers, and removes from `scaled` the members that none of them scales. A member stays if the autoscalers
/// of its namespace cannot be read. Adds one note about the members that are scaled, and a warning about each other
/// member. Autoscalers that are gone after the run (`leaving`) do not count.
pub(super) async fn retain_autoscaled(
    cluster: &Cluster,
    desired: &Desired,
    leaving: &BTreeSet<ObjectKey>,
    scaled: &mut ScaledMembers,
    reports: &mut NotesAndWarnings,
) -> Result<(), Error> {
    let mut autoscalers = Autoscalers {
        by_target: plan::desired_autoscalers_by_target(desired),
        ..Autoscalers::default()
    };
    autoscalers.read(cluster, leaving, scaled).await?;
    scaled.retain(|key, DroppedReplicas { path, value, .. }| {
        if autoscalers.by_target.contains_key(key) {
            return true;
        }
        let position = describe_position(desired, key);
        let unknown = autoscalers.unknown.get(&key.namespace);
        match unknown {
            Some(reason) => reports.warnings.push(plan::unlisted_autoscalers_warning(
                &position, key, path, value, reason,
            )),
            None => reports
                .warnings
                .extend(plan::removed_replicas_warning(&position, key, path, value)),
        }
        unknown.is_some()
    });
    let left = scaled
        .keys()
        .filter_map(|key| Some((key, autoscalers.by_target.get(key)?)));
    reports
        .notes
        .extend(plan::left_to_autoscalers_note(&left.collect()));
    Ok(())
}

/// Returns the numbers of replicas that an apply of the base would remove. Members of which the desired object removes
/// the number, too, are `compared` already. Only those whose manifests differ are read.
pub(super) async fn find_replicas_dropped_by_base(
    server: &ApiServer,
    (desired, base): (&Desired, &Desired),
    compared: &Compared,
    former: &OwnershipMigration<'_>,
) -> Result<ScaledMembers, Error> {
    let desired: HashMap<&ObjectKey, &DesiredObject> =
        desired.members.iter().map(|new| (&new.key, new)).collect();
    let old: HashMap<&ObjectKey, &DesiredObject> = base.members.iter().map(|old| (&old.key, old)).collect();
    let mut scaled = ScaledMembers::new();
    let mut to_read = Vec::new();
    for live in &compared.members {
        let (Some(old), Some(new)) = (old.get(&live.key), desired.get(&live.key)) else {
            continue;
        };
        match compared.scaled.get(&live.key) {
            Some(dropped) if dropped.path.value_in(&old.object.value()).is_none() => {
                scaled.insert(live.key.clone(), dropped.without_comparison());
            }
            None if old.object != new.object => to_read.push(live.clone()),
            _ => {}
        }
    }
    add_replicas_of_objects(server, base, &to_read, former, &mut scaled).await?;
    Ok(scaled)
}

/// Adds the numbers of replicas that an apply of these objects would remove. Reads the objects one by one: of those
/// that the run takes from other sets, the LIST returned only metadata.
pub(super) async fn add_replicas_of_objects(
    server: &ApiServer,
    desired: &Desired,
    objects: &[Live],
    former: &OwnershipMigration<'_>,
    scaled: &mut ScaledMembers,
) -> Result<(), Error> {
    let mut definitions = Definitions::new();
    for live in objects {
        let Some(member) = desired_member(desired, &live.key) else {
            continue;
        };
        let (resource, kind) = (&member.resource, &live.key.group_kind);
        if resource.scale != Subresource::Listed {
            continue;
        }
        if !is_built_in(&resource.api_version(), &resource.kind) && !definitions.contains_key(kind) {
            definitions.extend(read_crds_by_kind(server, &[resource], 1).await?);
        }
        let path = ReplicasPath::from_definition(definitions.get(kind), &resource.version);
        if path.value_in(&member.object.value()).is_some() {
            continue;
        }
        let object = read::read_object(server, resource, &live.key)
            .await
            .map_err(|error| error.to_error_while_reading(&live.key))?;
        let dropped = object.and_then(|object| DroppedReplicas::find(member, &object, path, former));
        if let Some(dropped) = dropped {
            scaled.insert(live.key.clone(), dropped);
        }
    }
    Ok(())
}

fn desired_member<'d>(desired: &'d Desired, key: &ObjectKey) -> Option<&'d DesiredObject> {
    desired.members.iter().find(|member| member.key == *key)
}

/// Returns where the manifests hold this object, for messages.
fn describe_position(desired: &Desired, key: &ObjectKey) -> String {
    desired_member(desired, key)
        .map(|member| member.position.to_string())
        .unwrap_or_default()
}

impl Autoscalers {
    /// Reads the autoscalers of each kind, in the namespaces of those `scaled` members for which no autoscaler is known
    /// yet.
    async fn read(
        &mut self,
        cluster: &Cluster,
        leaving: &BTreeSet<ObjectKey>,
        scaled: &ScaledMembers,
    ) -> Result<(), Error> {
        for kind in plan::autoscalers() {
            let namespaces: BTreeSet<&Option<String>> = scaled
                .keys()
                .filter(|key| !self.by_target.contains_key(key))
                .map(|key| &key.namespace)
                .collect();
            let resource = match cluster.discovery.find_preferred(&kind) {
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
            let selector = Selector::new("", WHOLE_OBJECTS);
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
                        let target = plan::read_scale_target(&kind, item, autoscaler.namespace.as_deref())?;
                        Some((target, autoscaler))
                    },
                );
                match targets.await {
                    Ok(targets) => {
                        for (target, autoscaler) in targets {
                            if !leaving.contains(&autoscaler) {
                                self.by_target.entry(target).or_insert(autoscaler);
                            }
                        }
                    }
                    Err(error) if error.is_forbidden() => {
                        self.unknown.insert(namespace.clone(), error.to_string());
                    }
                    Err(error) => {
                        let place = ListTarget::new(&resource, namespace.as_deref());
                        return Err((place, error).into());
                    }
                }
            }
        }
        Ok(())
    }
}
