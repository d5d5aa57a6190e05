//! Lists the members, and compares each with its manifest while its page of the list is in memory.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use serde_json::Value;

use super::definitions_to_compare::read_definitions_to_compare;
use super::read_autoscalers::{DroppedReplicas, ScaledMembers};
use super::{ReadSettings, WithLiveFields, dependencies};
use crate::cluster::apiserver::ApiServer;
use crate::compare::changes::{self, CrdVersion, Reason, Verdict};
use crate::compare::ignore::{self, BodyPurpose};
use crate::compare::ownership::{self, LastAppliedTreatment, OwnershipMigration, ReplicasPath};
use crate::compare::status::OthersOfKind;
use crate::error::Error;
use crate::manifest::desired::{Desired, DesiredObject};
use crate::model::identity::ObjectKey;
use crate::model::list_targets::ListTargets;
use crate::model::live::Live;
use crate::model::object::Object;
use crate::model::resource::{Resource, Subresource};
use crate::plan::Seen;
use crate::read::list::{Selector, WHOLE_OBJECTS};
use crate::read::list_collections::list_collections;
use crate::read::{Definitions, NamedSet, unique_by_uid};

/// The members, and what was found out about them while their pages were in memory.
#[derive(Debug, Default)]
pub(super) struct Compared {
    pub(super) members: Vec<Live>,
    /// The result of comparing each member with its manifest, by the index of the manifest in `Desired::members`.
    pub(super) comparisons: BTreeMap<usize, Verdict>,
    /// The bodies to send for members that changed and have ignored fields.
    pub(super) with_live_fields: BTreeMap<ObjectKey, WithLiveFields>,
    /// Numbers of replicas that an apply would remove.
    pub(super) scaled: ScaledMembers,
    /// Members that are Current and that objects of the manifests depend on.
    pub(super) current_dependencies: BTreeSet<ObjectKey>,
}

/// What members are compared with, and the settings of the comparison.
#[derive(Clone, Copy)]
pub(super) struct ComparisonInputs<'a> {
    pub(super) desired: &'a Desired,
    pub(super) settings: ReadSettings<'a>,
    /// The field manager of the tool that managed the set until now, if this run takes the set over.
    pub(super) former_field_manager: Option<&'a str>,
}

/// What was found out about one member. Fields that only a few members have are boxed, since a set may have many
/// members.
struct Listed {
    live: Live,
    /// The index of the manifest in `Desired::members`, and how the member compares with it.
    compared: Option<(usize, Verdict)>,
    /// The body to send if the member changed and has ignored fields.
    with_live_fields: Option<Box<WithLiveFields>>,
    /// Whether the member is Current and an object of the manifests depends on it.
    is_current_dependency: bool,
    scaled: Option<Box<DroppedReplicas>>,
}

/// What each member is compared with.
struct Comparing<'a> {
    server: &'a ApiServer,
    settings: ReadSettings<'a>,
    /// The objects of the manifests, each with its index.
    wanted: HashMap<&'a ObjectKey, (usize, &'a DesiredObject)>,
    definitions: Definitions,
    former: OwnershipMigration<'a>,
    depended_on: HashSet<&'a ObjectKey>,
}

/// Lists the members, and compares each with its manifest while its page of the list is in memory.
pub(super) async fn list_and_compare_members(
    server: &ApiServer,
    named: &NamedSet,
    places: &ListTargets,
    inputs: ComparisonInputs<'_>,
) -> Result<Compared, Error> {
    let ComparisonInputs {
        desired, settings, ..
    } = inputs;
    let selector = Selector::for_members(&named.set.id, WHOLE_OBJECTS);
    let numbered = desired.members.iter().enumerate();
    let wanted = numbered.map(|(index, member)| (&member.key, (index, member)));
    let named_dependencies = desired.members.iter().flat_map(|member| &member.depends_on);
    let comparing = Comparing {
        server,
        settings,
        wanted: wanted.collect(),
        definitions: read_definitions_to_compare(server, &selector, places, desired, settings.concurrency)
            .await?,
        former: former_owners(named, inputs),
        depended_on: named_dependencies.collect(),
    };
    let mut listed = list_collections(
        server,
        places,
        &selector,
        settings.concurrency,
        |item, resource| comparing.reduce_and_compare_member(item, resource),
    )
    .await?;
    unique_by_uid(
        &mut listed,
        |listed| &listed.live,
        |key| comparing.wanted.contains_key(key),
    );
    Ok(Compared::new(listed, named))
}

impl Comparing<'_> {
    /// Reduces a member, which is an item of a list, and compares it with its manifest. Returns `None` if the item is
    /// not an object.
    fn reduce_and_compare_member(&self, item: &Value, resource: &Arc<Resource>) -> Option<Listed> {
        let mut live = Live::from_object(item, resource)?;
        let wanted = self.wanted.get(&live.key).copied();
        let member = wanted.map(|(_, member)| member);
        if member.is_some_and(DesiredObject::is_secret) {
            live.client_side_apply |=
                ownership::has_applied_string_data(&item["metadata"], self.settings.field_manager);
        }
        let mut with_live_fields = None;
        let compared = wanted.map(|(index, member)| {
            let (verdict, over) = self.compare(member, item, resource);
            with_live_fields = over.map(Box::new);
            (index, verdict)
        });
        let scaled = wanted.and_then(|wanted| self.find_dropped_replicas(wanted, item, resource));
        Some(Listed {
            compared,
            with_live_fields,
            is_current_dependency: self.is_current_dependency(&live.key, item, resource),
            scaled: scaled.map(Box::new),
            live,
        })
    }

    fn compare(
        &self,
        member: &DesiredObject,
        item: &Value,
        resource: &Resource,
    ) -> (Verdict, Option<WithLiveFields>) {
        if member.resource.version != resource.version {
            return (Verdict::Send(Reason::OtherVersion), None);
        }
        let field_manager = self.settings.field_manager;
        let definition = self.definitions.get(&member.key.group_kind);
        let version =
            definition.and_then(|definition| CrdVersion::from_definition(definition, &resource.version));
        let body = |purpose| build_body_over_live(member, item, field_manager, purpose);
        let manifest = body(BodyPurpose::Compare).value();
        let verdict = changes::compare(&manifest, item, field_manager, version.as_ref());
        let is_sent = verdict != Verdict::Unchanged && !member.ignored.is_empty();
        let with_live_fields = is_sent.then(|| WithLiveFields {
            object: body(BodyPurpose::Send),
            seen: Seen::from_uid_and_version(item),
        });
        (verdict, with_live_fields)
    }

    /// Returns the number of replicas that an apply of a member would remove, and how the member compares if that
    /// number is ignored; `None` if the apply would remove none.
    fn find_dropped_replicas(
        &self,
        (index, member): (usize, &DesiredObject),
        item: &Value,
        resource: &Resource,
    ) -> Option<DroppedReplicas> {
        if resource.scale == Subresource::Unlisted {
            return None;
        }
        let definition = self.definitions.get(&member.key.group_kind);
        let path = ReplicasPath::from_definition(definition, &resource.version);
        let mut dropped = DroppedReplicas::find(member, item, path, &self.former)?;
        let mut ignoring = member.clone();
        ignoring.ignored.push(dropped.path.pointer());
        let (verdict, with_live_fields) = self.compare(&ignoring, item, resource);
        dropped.if_ignored = Some((index, verdict, with_live_fields));
        Some(dropped)
    }

    /// Returns whether an object of the manifests depends on this member, and it is Current. Whether others of its kind
    /// report a status is not known before the list is complete. So one without a status does not count as Current, and
    /// the wait for it decides.
    fn is_current_dependency(&self, key: &ObjectKey, item: &Value, resource: &Resource) -> bool {
        let now = self.server.now();
        self.depended_on.contains(key)
            && dependencies::is_current(item, resource, OthersOfKind::Report, now, self.settings)
    }
}

impl Compared {
    /// Collects what was found out about all members.
    fn new(listed: Vec<Listed>, named: &NamedSet) -> Self {
        let mut all = Self::default();
        // Collects in place, without a second copy in memory.
        let mut members: Vec<Live> = listed
            .into_iter()
            .filter(|listed| !named.set.is_parent(&listed.live))
            .map(|listed| all.add(listed))
            .collect();
        members.shrink_to_fit();
        all.members = members;
        all
    }

    /// Notes what was found out about a member, and returns the member.
    fn add(&mut self, listed: Listed) -> Live {
        let key = &listed.live.key;
        self.comparisons.extend(listed.compared);
        if let Some(sent) = listed.with_live_fields {
            self.with_live_fields.insert(key.clone(), *sent);
        }
        if let Some(scaled) = listed.scaled {
            self.scaled.insert(key.clone(), *scaled);
        }
        if listed.is_current_dependency {
            self.current_dependencies.insert(key.clone());
        }
        listed.live
    }

    /// For each member whose number of replicas is left to an autoscaler, replaces the comparison by the one that
    /// ignores the number.
    pub(super) fn use_comparisons_that_ignore_replicas(&mut self) {
        for (key, dropped) in &mut self.scaled {
            if let Some((index, verdict, with_live_fields)) = dropped.if_ignored.take() {
                self.comparisons.insert(index, verdict);
                self.with_live_fields
                    .extend(with_live_fields.map(|sent| (key.clone(), sent)));
            }
        }
    }
}

/// Returns the body of an object that is compared with the live one, or sent over it.
fn build_body_over_live(member: &DesiredObject, live: &Value, manager: &str, purpose: BodyPurpose) -> Object {
    let settled = ignore::desired_body_with_live_values(member, live, manager, purpose);
    ownership::add_live_applyset_metadata(&settled, &live["metadata"], manager).unwrap_or(settled)
}

/// Returns the former owners whose fields this run takes over.
pub(super) fn former_owners<'a>(named: &NamedSet, inputs: ComparisonInputs<'a>) -> OwnershipMigration<'a> {
    OwnershipMigration {
        manager: inputs.settings.field_manager,
        tool: inputs.former_field_manager,
        writers: &[],
        last_applied: LastAppliedTreatment::for_tooling(&named.set.tooling),
    }
}
