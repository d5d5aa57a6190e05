//! The plan of a run as a value: everything that will be written, left alone, pruned,
//! skipped and refused, and why.
//!
//! `plan` is pure: no client, no clock, no output. Each rule has a file of its own and
//! a table of cases. Carrying a plan out is the business of `execute`.

mod bookkeeping;
mod contents;
mod fate;
#[cfg(test)]
pub(crate) mod fixtures;
mod hint;
mod inside;
mod judge;
mod membership;
mod overlap;
mod owners;
mod parent;
pub mod permissions;
mod places;
mod prune;
mod refusal;
mod remains;
pub mod saved;
mod taken_in;
mod waves;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use bookkeeping::may_hold_record;
pub use contents::is_container;
pub use fate::{ParentFate, ParentStays, parent_fate};
pub use inside::Kept;
pub use judge::Judge;
pub use membership::{
    Bounds, Candidate, LeaveReason, Left, MembershipChange, MembershipPlan, Way, judge_adoption,
    judge_inventory, judge_move, judge_release, plan_adoption, plan_move, plan_release,
};
pub use overlap::{OtherParent, OtherParents, places_of_newcomers};
pub use owners::{Dependant, Dependants, Detachment, Near, holders_of_plan};
pub use parent::{Confirmation, ParentPolicy, Standing, annotations_too_large, judge, judge_for_deletion};
pub use places::{Survey, SurveyError, survey};
pub use prune::{Judgement, SkipReason, copied, is_home_of, is_owned_copy, label_written_by};
pub use refusal::{Refusal, with_marks};
pub use remains::Remains;
pub use taken_in::{newcomers, reason_of_taking_in};
pub use waves::Wave;

use crate::compare::changes::{Reason, Verdict};
use crate::manifest::desired::{Desired, DesiredObject};
use crate::model::applyset::Record;
use crate::model::applyset::parent::Pairs;
use crate::model::identity::{GroupKind, ObjectKey};
use crate::model::live::{Live, Presence};
use crate::model::resource::{Origin, Resource};
use crate::model::set::Set;
use crate::read::{Contents, Holders, Owners};

/// What the user allows and wants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Policy {
    /// Whether what left the manifests is deleted.
    pub pruning: Pruning,
    /// Whether a run without any manifest may prune everything.
    pub empty_manifests: EmptyManifests,
    /// Whether members that are as the manifests have them are applied all the same.
    pub unchanged: UnchangedMembers,
    /// Whether objects of other sets are taken.
    pub stealing: Stealing,
    /// What becomes of objects that exist and are in no set.
    #[serde(default)]
    pub unowned: Unowned,
    /// Whether what cannot be had back may be pruned.
    pub data_loss: DataLoss,
    /// The most objects that one run may prune.
    pub max_prune: Option<usize>,
    /// Managers whose part-of labels make an object ours to prune.
    pub appliers: BTreeSet<String>,
}

/// Whether what left the manifests is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Pruning {
    /// It is deleted.
    Enabled,
    /// It stays, and stays recorded.
    Disabled,
    /// It is deleted, and so are the parent and what it lives in: nothing is wanted any more.
    WholeSet,
}

/// What no manifests at all mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum EmptyManifests {
    /// Probably a mistake, such as a wrong path or an empty pipe.
    Refused,
    /// Everything is to be pruned.
    Allowed,
}

/// What becomes of members that are as the manifests have them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum UnchangedMembers {
    /// Nothing is sent for them.
    LeftAlone,
    /// They are sent like the others, and the server finds that nothing changes.
    Sent,
}

/// Whether objects of other sets are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Stealing {
    /// They stop the run.
    Refused,
    /// They become members of this set, and are members of the other no more.
    Allowed,
}

/// What becomes of objects of the manifests that exist and are in no set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Unowned {
    /// They become members.
    #[default]
    TakenIn,
    /// They stop the run.
    Refused,
}

/// Whether what cannot be had back may be pruned: storage, and containers with what
/// others put into them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DataLoss {
    /// It stops the run.
    Refused,
    /// The user knows.
    Allowed,
}

/// What is known of the cluster when a plan is made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Observed {
    /// What the parent records; empty where there is no parent yet.
    pub recorded: Record,
    /// What stays recorded for kinds whose objects cannot be listed.
    pub unlisted: Record,
    /// Objects that carry the set's part-of label.
    pub members: Vec<Live>,
    /// Objects of the manifests' places that are members of other sets.
    pub others: Vec<Live>,
    /// The parents of those sets.
    pub other_parents: OtherParents,
    /// Objects of the manifests that exist and are no members of this set; empty unless the policy
    /// refuses those in no set.
    pub existing: Vec<Live>,
    /// What the live members that the manifests ask for are in comparison with them.
    pub comparisons: BTreeMap<ObjectKey, Verdict>,
    /// Namespaces that are being deleted, with everything in them.
    pub terminating_namespaces: BTreeSet<String>,
    /// What the namespaces and kinds hold that are to be pruned; see `containers`.
    pub contents: BTreeMap<ObjectKey, Contents>,
    /// The annotations of the parent as it stands; those of the convention excepted.
    pub parent_annotations: Pairs,
    /// The parent, if it exists and has owners.
    pub parent: Option<Dependant>,
    /// The owners of the namespaces, and of the definitions of the kinds, of what stays; see
    /// `holders`.
    pub holder_owners: BTreeMap<ObjectKey, Owners>,
}

/// Everything that one run does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// What the parent records before the first member is written: old and new places.
    pub record_during: Record,
    /// What the parent records when everything has succeeded.
    pub record_after: Record,
    /// Members that the parent needs to exist: its namespace, its CRD.
    pub prerequisites: Vec<Apply>,
    /// The other members, one wave after the other.
    pub waves: Vec<Vec<Apply>>,
    /// Members that are as the manifests have them, in the order of the manifests.
    pub unchanged: Vec<Live>,
    /// What is deleted, one wave after the other.
    pub prunes: Vec<Vec<Live>>,
    /// What left the manifests and is not deleted.
    pub skips: Vec<Skip>,
    /// What the prunes would do to objects that are desired or kept, by owner references.
    pub dependants: Dependants,
    /// Refusals that a person has read and confirmed.
    pub accepted: Vec<Refusal>,
    /// Why nothing of all this may be done; empty for a plan that may.
    pub refusals: Vec<Refusal>,
}

/// One member to apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Apply {
    /// Its place in `Desired::members`.
    pub index: usize,
    /// What the cluster has of it.
    pub standing: MemberStanding,
}

/// What the cluster has of a member that the manifests ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemberStanding {
    /// No member; whether the object exists all the same is not known.
    NotAMember,
    /// A member of another set, to be taken over.
    OfAnotherSet,
    /// A member, with this resourceVersion.
    Member {
        /// `metadata.uid`.
        uid: String,
        /// `metadata.resourceVersion`; the same after applying means unchanged.
        resource_version: String,
        /// Why it is not taken for unchanged.
        reason: Option<Reason>,
        /// Whether client-side apply owns fields that have to be taken from it first, or an
        /// earlier run has applied `stringData`.
        client_side_apply: bool,
        /// Whether it has the id of a set, whose parent it is then.
        is_parent: bool,
    },
    /// A member that is being deleted, or whose namespace is; applying it would be answered with success
    /// and be undone a moment later.
    Terminating,
}

/// A member that left the manifests and stays in the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skip {
    /// The object.
    pub live: Live,
    /// Why it stays.
    pub reason: SkipReason,
}

impl Skip {
    /// Whether it is there to stay: not on its way out already, not left alone only because
    /// nothing is pruned, and not a copy that goes with its owner.
    pub fn is_kept(&self) -> bool {
        !matches!(
            self.reason,
            SkipReason::Terminating { .. } | SkipReason::PruningDisabled | SkipReason::OwnedCopy(_)
        )
    }
}

impl Plan {
    /// How many members are applied.
    pub fn applies(&self) -> usize {
        self.prerequisites.len() + self.waves.iter().map(Vec::len).sum::<usize>()
    }

    /// How many objects a run tells about.
    pub fn objects(&self) -> usize {
        let is_told = |skip: &&Skip| skip.reason != SkipReason::PruningDisabled;
        self.applies() + self.unchanged.len() + self.deletions() + self.skips.iter().filter(is_told).count()
    }

    /// How many objects are deleted.
    pub fn deletions(&self) -> usize {
        self.prunes.iter().map(Vec::len).sum()
    }
}

/// Decides what a run does.
pub fn plan(set: &Set, desired: &Desired, observed: &Observed, policy: &Policy) -> Plan {
    let parent_namespace = set.parent.namespace.as_deref();
    let members: BTreeMap<&ObjectKey, &Live> =
        observed.members.iter().map(|live| (&live.key, live)).collect();
    let others: BTreeSet<&ObjectKey> = observed.others.iter().map(|live| &live.key).collect();
    let wanted = desired.record(&set.parent);
    let mut judge = judge_of(set, desired, observed, policy);
    let (prunes, skips) = judge.divide(&observed.members);
    let dependants = Dependants::find(desired, observed, &prunes, &skips);
    judge.let_go(prunes.iter(), &dependants);
    // The run detaches them before it deletes anything.
    for detachment in &dependants.detachments {
        if judge.may_detach(detachment) {
            judge.detach(detachment);
        }
    }

    let mut record_after = wanted.union(&observed.unlisted);
    for skip in &skips {
        let key = &skip.live.key;
        record_after.add_place(&key.group_kind, key.namespace.as_deref(), parent_namespace);
    }
    let redefined = redefined_kinds(desired, observed);
    let mut applies = vec![Vec::new(); Wave::ALL.len()];
    let mut prerequisites = Vec::new();
    let mut unchanged = Vec::new();
    for (index, object) in desired.members.iter().enumerate() {
        let is_doomed = object
            .key
            .namespace
            .as_ref()
            .is_some_and(|namespace| observed.terminating_namespaces.contains(namespace));
        if let Some(live) = members.get(&object.key)
            && !is_doomed
            && !redefined.contains(&object.key.group_kind)
            && is_unchanged(live, observed, policy)
        {
            unchanged.push((*live).clone());
            continue;
        }
        let apply = Apply {
            index,
            standing: match members.get(&object.key) {
                _ if is_doomed => MemberStanding::Terminating,
                None if others.contains(&object.key) => MemberStanding::OfAnotherSet,
                live => standing(live.copied(), observed),
            },
        };
        if is_prerequisite(object, set) {
            prerequisites.push(apply);
        } else {
            applies[Wave::of(&object.key.group_kind) as usize].push(apply);
        }
    }
    let mut plan = Plan {
        record_during: observed.recorded.union(&wanted),
        record_after,
        prerequisites,
        waves: applies.into_iter().filter(|wave| !wave.is_empty()).collect(),
        unchanged,
        prunes: in_reverse_waves(prunes),
        skips,
        dependants,
        accepted: Vec::new(),
        refusals: Vec::new(),
    };
    plan.refusals = refusals(&plan, &judge, set, desired, observed, policy);
    plan
}

/// The namespaces and definitions of kinds that a run would prune, and what else would
/// go with them has to be looked up before it is planned.
pub fn containers(set: &Set, desired: &Desired, observed: &Observed, policy: &Policy) -> Vec<Live> {
    let (prunes, _) = judge_of(set, desired, observed, policy).divide(&observed.members);
    prunes.into_iter().filter(contents::is_container).collect()
}

/// The namespaces and definitions of kinds that hold what stays, and whose owners have to be read
/// before a run is planned: it may delete these owners. `parent` is the resource of the parent, if
/// there is a parent.
pub fn holders(
    set: &Set,
    parent: Option<&Arc<Resource>>,
    desired: &Desired,
    observed: &Observed,
    policy: &Policy,
) -> Holders {
    let (prunes, skips) = judge_of(set, desired, observed, policy).divide(&observed.members);
    let division = owners::Division {
        prunes: &prunes,
        skips: &skips,
    };
    owners::holders(set, parent, desired, division)
}

fn judge_of<'a>(set: &'a Set, desired: &'a Desired, observed: &'a Observed, policy: &'a Policy) -> Judge<'a> {
    let keys: BTreeSet<&ObjectKey> = desired.members.iter().map(|object| &object.key).collect();
    let desired_uids = observed.members.iter().filter(|live| keys.contains(&live.key));
    let desired_uids = desired_uids.map(|live| live.uid.clone()).collect();
    Judge::new(set, policy, desired, &observed.contents, desired_uids)
}

/// Kinds whose definitions this run may change: what was compared under the old definition
/// says nothing under the new one.
fn redefined_kinds(desired: &Desired, observed: &Observed) -> BTreeSet<GroupKind> {
    let is_changing =
        |member: &&DesiredObject| observed.comparisons.get(&member.key) != Some(&Verdict::Unchanged);
    let changing = desired.members.iter().filter(is_changing);
    changing.filter_map(defined_kind).collect()
}

/// The kind that a CRD defines; `None` for any other object.
pub fn defined_kind(object: &DesiredObject) -> Option<GroupKind> {
    if object.key.group_kind.kind != "CustomResourceDefinition" {
        return None;
    }
    let value = object.object.value();
    let text = |pointer| value.pointer(pointer).and_then(Value::as_str);
    Some(GroupKind::new(text("/spec/group")?, text("/spec/names/kind")?))
}

/// Client-side apply may own fields that the manifest has lost since, and would keep
/// them: such an object is sent in any case.
fn is_unchanged(live: &Live, observed: &Observed, policy: &Policy) -> bool {
    policy.unchanged == UnchangedMembers::LeftAlone
        && live.presence == Presence::Present
        && !live.client_side_apply
        && observed.comparisons.get(&live.key) == Some(&Verdict::Unchanged)
}

fn standing(live: Option<&Live>, observed: &Observed) -> MemberStanding {
    match live {
        None => MemberStanding::NotAMember,
        Some(live) if live.presence == Presence::Terminating => MemberStanding::Terminating,
        Some(live) => MemberStanding::Member {
            uid: live.uid.clone(),
            resource_version: live.resource_version.clone(),
            reason: match observed.comparisons.get(&live.key) {
                Some(Verdict::Send(reason)) => Some(reason.clone()),
                Some(Verdict::Unchanged) | None => None,
            },
            client_side_apply: live.client_side_apply,
            is_parent: live.parent_of.is_some(),
        },
    }
}

/// The parent's own namespace must exist before the parent, and the CRD of a custom
/// resource before its objects. Both may be members of the set that they carry.
fn is_prerequisite(object: &DesiredObject, set: &Set) -> bool {
    let key = &object.key;
    let is_home =
        key.group_kind == GroupKind::new("", "Namespace") && Some(&key.name) == set.parent.namespace.as_ref();
    is_home || defined_kind(object).as_ref() == Some(&set.parent.group_kind)
}

fn in_reverse_waves(prunes: Vec<Live>) -> Vec<Vec<Live>> {
    let mut waves = vec![Vec::new(); Wave::ALL.len()];
    for live in prunes {
        waves[Wave::of(&live.key.group_kind) as usize].push(live);
    }
    for wave in &mut waves {
        wave.sort_by(|one, other| one.key.cmp(&other.key));
    }
    waves.into_iter().rev().filter(|wave| !wave.is_empty()).collect()
}

fn refusals(
    plan: &Plan,
    judge: &Judge<'_>,
    set: &Set,
    desired: &Desired,
    observed: &Observed,
    policy: &Policy,
) -> Vec<Refusal> {
    let mut refusals = Vec::new();
    // The parent's own manifest asks for no member: alone it is as good as none.
    let is_empty = desired.members.is_empty() && (desired.parent.is_none() || plan.deletions() > 0);
    if is_empty && policy.empty_manifests == EmptyManifests::Refused {
        refusals.push(Refusal::EmptyManifests);
    }
    if policy.stealing == Stealing::Refused {
        refusals.extend(overlap::refusals(desired, observed));
    }
    if policy.unowned == Unowned::Refused {
        refusals.extend(taken_in::refusals(desired, observed));
    }
    refusals.extend(plan.prunes.iter().flatten().flat_map(|live| judge.refusals(live)));
    if let Some(limit) = policy.max_prune
        && plan.deletions() > limit
    {
        refusals.push(Refusal::TooManyPrunes {
            objects: plan
                .prunes
                .iter()
                .flatten()
                .map(|live| live.key.clone())
                .collect(),
            limit,
        });
    }
    refusals.extend(annotations_too_large(
        &plan.record_during,
        set,
        &observed.parent_annotations,
    ));
    refusals
}

/// Whether the server does not serve the kind of this object yet.
pub fn is_promised(object: &DesiredObject) -> bool {
    object.resource.origin == Origin::Promised
}
