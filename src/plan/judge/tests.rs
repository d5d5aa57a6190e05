//! Table: every rule of the judgement, when a plan is made and right before the write.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde_json::json;

use super::*;
use crate::manifest::desired::DesiredObject;
use crate::manifest::{Hook, HookKind, Naming};
use crate::model::containers::HeldObject;
use crate::model::identity::GroupKind;
use crate::model::live::{OwnerReference, Presence};
use crate::model::object::Object;
use crate::model::write_settings::Hooks;
use crate::plan::fixtures::{desired, live, policy, set};
use crate::plan::{Observed, Risk, plan};

const CRD: &str = "CustomResourceDefinition.apiextensions.k8s.io";
const API_SERVICE: &str = "APIService.apiregistration.k8s.io";

fn owned_by(owner: &Live) -> OwnerReference {
    OwnerReference {
        api_version: owner.resource.api_version(),
        kind: owner.resource.kind.clone(),
        name: owner.key.name.clone(),
        uid: owner.uid.clone(),
    }
}

fn hook(live: &Live, kind: HookKind) -> HookManifest {
    HookManifest {
        key: live.key.clone(),
        naming: Naming::Given,
        hook: Hook {
            kind,
            annotation: "helm.sh/hook: x".to_owned(),
        },
        position: desired("ConfigMap", None, "a").position,
    }
}

fn kept(mut live: Live) -> Live {
    live.keep_annotation = Some("helm.sh/resource-policy: keep".to_owned());
    live
}

/// Surroundings of the object that is judged.
#[derive(Default)]
struct Around {
    members: Vec<Live>,
    desired: Vec<DesiredObject>,
    hooks: Vec<HookManifest>,
    contents: Option<Contents>,
    parent_owner: Option<OwnerReference>,
}

/// A case for a rule: the object before the rule applies, the change to it, and its surroundings.
struct Case {
    rule: &'static str,
    live: Live,
    change: fn(&mut Live),
    around: fn(&Live) -> Around,
}

impl Case {
    /// The object after the change, and its surroundings.
    fn changed(&self) -> (Live, Around) {
        let mut changed = self.live.clone();
        (self.change)(&mut changed);
        (changed, (self.around)(&self.live))
    }
}

fn unchanged(_: &mut Live) {}

fn nothing(_: &Live) -> Around {
    Around::default()
}

fn cases() -> Vec<Case> {
    let mut cases = cases_by_itself();
    cases.extend(cases_of_owners());
    cases.extend(cases_of_surroundings());
    cases.extend(cases_of_api_services());
    cases
}

/// The rules that depend on the object alone.
fn cases_by_itself() -> Vec<Case> {
    let config_map = || live("ConfigMap", Some("shop"), "a");
    let alone = |rule, change| Case {
        rule,
        live: config_map(),
        change,
        around: nothing,
    };
    vec![
        alone("pruned", unchanged),
        alone("ignored", |live| live.part_of = None),
        alone("ignored", |live| live.part_of = Some("other".to_owned())),
        alone("terminating", |live| live.presence = Presence::Terminating),
        alone("owned", |live| {
            live.owners
                .push(owned_by(&self::live("Service", Some("shop"), "web")));
        }),
        alone("protected", |live| {
            live.keep_annotation = kept(live.clone()).keep_annotation;
        }),
        alone("copied", |live| live.part_of_writers.clear()),
        alone("parent", |live| live.parent_of = Some("other".to_owned())),
    ]
}

/// A case in which the object does not change between the plan and its delete.
fn within(rule: &'static str, live: Live, around: fn(&Live) -> Around) -> Case {
    Case {
        rule,
        live,
        change: unchanged,
        around,
    }
}

/// The rules that depend on what the object owns.
fn cases_of_owners() -> Vec<Case> {
    let config_map = || live("ConfigMap", Some("shop"), "a");
    vec![
        within("owns", config_map(), |live| Around {
            members: vec![Live {
                owners: vec![owned_by(live)],
                ..self::live("ConfigMap", Some("shop"), "b")
            }],
            desired: vec![desired("ConfigMap", Some("shop"), "b")],
            ..Around::default()
        }),
        within("owns", config_map(), |live| Around {
            members: vec![Live {
                owners: vec![owned_by(live)],
                ..kept(self::live("ConfigMap", Some("shop"), "b"))
            }],
            ..Around::default()
        }),
        within("owns", config_map(), |live| {
            let owned = Live {
                owners: vec![owned_by(live)],
                ..self::live("ConfigMap", Some("shop"), "b")
            };
            Around {
                hooks: vec![hook(&owned, HookKind::Lifecycle)],
                members: vec![owned],
                ..Around::default()
            }
        }),
        within("owns", config_map(), |live| Around {
            parent_owner: Some(owned_by(live)),
            ..Around::default()
        }),
        within("bound", config_map(), |live| Around {
            desired: vec![DesiredObject {
                object: Object::from(&json!({"metadata": {
                    "name": "b", "ownerReferences": [{"uid": live.uid}],
                }})),
                ..desired("ConfigMap", Some("shop"), "b")
            }],
            ..Around::default()
        }),
    ]
}

/// The rules that depend on the kind of the object or on its other surroundings.
fn cases_of_surroundings() -> Vec<Case> {
    let config_map = || live("ConfigMap", Some("shop"), "a");
    let namespace = || live("Namespace", None, "old");
    vec![
        within(
            "storage",
            live("PersistentVolumeClaim", Some("shop"), "data"),
            nothing,
        ),
        within("storage", live("PersistentVolume", None, "disk"), nothing),
        within("home", live("Namespace", None, "shop"), nothing),
        within("hook", config_map(), |live| Around {
            hooks: vec![hook(live, HookKind::Lifecycle)],
            ..Around::default()
        }),
        within("hook", config_map(), |live| Around {
            hooks: vec![hook(live, HookKind::Test)],
            ..Around::default()
        }),
        within("holds kept", namespace(), |_| {
            let held = live("ConfigMap", Some("old"), "hook");
            Around {
                hooks: vec![hook(&held, HookKind::Lifecycle)],
                members: vec![held],
                ..Around::default()
            }
        }),
        within("holds kept", namespace(), |_| Around {
            members: vec![kept(live("ConfigMap", Some("old"), "kept"))],
            ..Around::default()
        }),
        // The object that is needed is in no set.
        within("holds kept", namespace(), |_| Around {
            desired: vec![DesiredObject {
                depends_on: vec![live("ConfigMap", Some("old"), "needed").key],
                ..desired("ConfigMap", Some("shop"), "b")
            }],
            ..Around::default()
        }),
        within("holds desired", namespace(), |_| Around {
            desired: vec![desired("ConfigMap", Some("old"), "b")],
            ..Around::default()
        }),
        within("holds others", namespace(), |_| Around {
            contents: Some(Contents {
                objects: vec![HeldObject {
                    key: live("ConfigMap", Some("old"), "stranger").key,
                    uid: "stranger".to_owned(),
                    owners: Vec::new(),
                    keep_annotation: None,
                }],
                unknown: Vec::new(),
                unanswering: BTreeMap::new(),
            }),
            ..Around::default()
        }),
        within("ignored", config_map(), |live| Around {
            members: vec![Live {
                uid: live.uid.clone(),
                ..self::live("ConfigMap.example.com", Some("shop"), "a")
            }],
            desired: vec![desired("ConfigMap.example.com", Some("shop"), "a")],
            ..Around::default()
        }),
    ]
}

/// The rules for an `APIService`, which serves the objects of its group.
fn cases_of_api_services() -> Vec<Case> {
    let api_service = || live(API_SERVICE, None, "v1.wardle.example");
    vec![
        within("holds kept", api_service(), |_| Around {
            members: vec![kept(live("Flunder.wardle.example", Some("old"), "kept"))],
            ..Around::default()
        }),
        within("holds desired", api_service(), |_| Around {
            desired: vec![desired("Flunder.wardle.example", Some("old"), "b")],
            ..Around::default()
        }),
        // The objects of another group, and those that another version serves.
        within("pruned", api_service(), |_| Around {
            members: vec![kept(live("Flunder.example", Some("old"), "kept"))],
            desired: vec![desired("Flunder.v1.wardle.example", Some("old"), "b")],
            ..Around::default()
        }),
        within("pruned", api_service(), |_| Around {
            members: vec![kept(live("Flunder.wardle.example", Some("old"), "kept"))],
            desired: vec![
                desired("Flunder.wardle.example", Some("old"), "b"),
                desired(API_SERVICE, None, "v2.wardle.example"),
            ],
            ..Around::default()
        }),
    ]
}

fn name(judgement: &Judgement) -> &'static str {
    match judgement {
        Judgement::Prune => "pruned",
        Judgement::Ignore => "ignored",
        Judgement::Skip(ReasonToKeep::Terminating { .. }) => "terminating",
        Judgement::Skip(ReasonToKeep::Owned { .. }) => "owned",
        Judgement::Skip(ReasonToKeep::Protected { .. }) => "protected",
        Judgement::Skip(ReasonToKeep::CopiedLabel { .. }) => "copied",
        Judgement::Skip(ReasonToKeep::Hook { .. }) => "hook",
        Judgement::Skip(ReasonToKeep::HoldsParent) => "home",
        Judgement::Skip(ReasonToKeep::HoldsKept { .. }) => "holds kept",
        Judgement::Refuse(Refusal::PrunesParent { .. }) => "parent",
        Judgement::Refuse(Refusal::PrunesStorage { .. }) => "storage",
        Judgement::Refuse(Refusal::HoldsDesired { .. }) => "holds desired",
        Judgement::Refuse(Refusal::HoldsOthers { .. }) => "holds others",
        Judgement::Refuse(Refusal::OwnsDependents { .. }) => "owns",
        Judgement::Refuse(Refusal::OwnsUndetachable { .. }) => "bound",
        Judgement::Skip(_) | Judgement::Refuse(_) => "something else",
    }
}

fn observed(live: &Live, around: &Around) -> Observed {
    let contents = around.contents.clone();
    let contents = contents.map(|contents| (live.key.clone(), contents));
    let parent = around.parent_owner.as_ref().map(|owner| {
        let parent = Live {
            owners: vec![owner.clone()],
            ..self::live("Secret", Some("shop"), "web")
        };
        super::super::Dependent::from_live(&parent)
    });
    Observed {
        members: around.members.iter().chain([live]).cloned().collect(),
        contents: contents.into_iter().collect(),
        parent,
        ..Observed::default()
    }
}

fn manifests(around: &Around) -> Desired {
    let always = desired("ConfigMap", Some("shop"), "always");
    Desired {
        members: around.desired.iter().cloned().chain([always]).collect(),
        hooks: around.hooks.clone(),
        ..Desired::default()
    }
}

/// The judgement of the object in a plan.
fn planned(live: &Live, around: &Around, policy: &Policy) -> Judgement {
    let plan = plan(&set(), &manifests(around), &observed(live, around), policy);
    if let Some(refusal) = plan
        .refusals
        .iter()
        .find(|refusal| refusal.object() == Some(&live.key))
    {
        return Judgement::Refuse(refusal.clone());
    }
    if let Some(skip) = plan.skips.iter().find(|skip| skip.live.key == live.key) {
        return Judgement::Skip(skip.reason.clone());
    }
    if plan.all_prunes().any(|prune| prune.key == live.key) {
        Judgement::Prune
    } else {
        Judgement::Ignore
    }
}

/// The judgement of the object right before it is deleted, as `now`.
fn at_last(
    planned: &Live,
    now: &Live,
    around: &Around,
    policy: &Policy,
    accepted: Vec<Refusal>,
) -> Judgement {
    let (set, manifests, observed) = (set(), manifests(around), observed(planned, around));
    let mut plan = plan(&set, &manifests, &observed, policy);
    plan.accepted = accepted;
    let keys: BTreeSet<&ObjectKey> = around.desired.iter().map(|object| &object.key).collect();
    let uids = around.members.iter().filter(|live| keys.contains(&live.key));
    let uids = uids.map(|live| live.uid.clone()).collect();
    Judge::for_plan(&set, policy, &manifests, &observed.contents, &plan, uids).judge(now)
}

#[test]
fn every_rule_holds_when_a_plan_is_made_and_right_before_the_write() {
    for case in cases() {
        let (rule, live) = (case.rule, &case.live);
        let (changed, around) = case.changed();
        assert_eq!(name(&planned(&changed, &around, &policy())), rule, "plan: {rule}");
        let now = at_last(live, &changed, &around, &policy(), Vec::new());
        assert_eq!(name(&now), rule, "write: {rule}");
    }
}

#[test]
fn losses_are_allowed_by_a_flag_or_by_consent_and_the_rest_is_not() {
    let careless = Policy {
        data_loss: Risk::Allowed,
        ..policy()
    };
    let lifted = ["parent", "storage", "holds others"];
    for case in cases() {
        let (rule, live) = (case.rule, &case.live);
        let (changed, around) = case.changed();
        let expected = if lifted.contains(&rule) { "pruned" } else { rule };
        let now = at_last(live, &changed, &around, &careless, Vec::new());
        assert_eq!(name(&now), expected, "write: {rule}");
        // A run removes the owner references first, and notes that in the judge.
        let expected = if rule == "owns" { "pruned" } else { expected };
        assert_eq!(
            name(&planned(&changed, &around, &careless)),
            expected,
            "plan: {rule}"
        );
        let Judgement::Refuse(refusal) = planned(&changed, &around, &policy()) else {
            continue;
        };
        let now = at_last(live, &changed, &around, &policy(), vec![refusal]);
        let expected = if lifted.contains(&rule) { "pruned" } else { rule };
        assert_eq!(name(&now), expected, "accepted: {rule}");
    }
}

#[test]
fn an_owner_is_pruned_once_everything_is_detached_from_it() {
    let owner = live("ConfigMap", Some("shop"), "a");
    let around = Around {
        members: vec![Live {
            owners: vec![owned_by(&owner)],
            ..live("ConfigMap", Some("shop"), "b")
        }],
        desired: vec![desired("ConfigMap", Some("shop"), "b")],
        ..Around::default()
    };
    let (set, manifests, observed) = (set(), manifests(&around), observed(&owner, &around));
    let policy = policy();
    let plan = plan(&set, &manifests, &observed, &policy);
    let mut judge = Judge::for_plan(
        &set,
        &policy,
        &manifests,
        &observed.contents,
        &plan,
        HashSet::new(),
    );
    let [detachment] = &plan.dependents.detachments[..] else {
        panic!("{:?}", plan.dependents);
    };
    assert!(!judge.may_detach(detachment));
    assert_eq!(name(&judge.judge(&owner)), "owns");
    judge.note_owner_reference_removed(detachment);
    assert_eq!(judge.judge(&owner), Judgement::Prune);
}

#[test]
fn a_parent_that_is_deleted_with_its_set_is_detached_from_members() {
    let owner = live("ConfigMap", Some("shop"), "a");
    let mut parent = live("Secret", Some("shop"), "web");
    parent.uid = set().parent_uid.expect("a parent");
    parent.owners = vec![owned_by(&owner)];
    let observed = Observed {
        members: vec![owner],
        parent: Some(Dependent::from_live(&parent)),
        ..Observed::default()
    };
    let refused = |pruning| {
        let policy = Policy {
            pruning,
            prune_all: Risk::Allowed,
            ..policy()
        };
        let plan = plan(&set(), &Desired::default(), &observed, &policy);
        assert_eq!(plan.dependents.detachments.len(), 1);
        plan.refusals.len()
    };
    assert_eq!(refused(Pruning::WholeSet), 0);
    assert_eq!(refused(Pruning::Enabled), 1);
}

#[test]
fn what_came_into_a_container_keeps_it() {
    let namespace = live("Namespace", None, "old");
    let (set, manifests, contents) = (set(), Desired::default(), BTreeMap::new());
    let observed = observed(&namespace, &Around::default());
    let policy = policy();
    let plan = plan(&set, &manifests, &observed, &policy);
    let judge = Judge::for_plan(&set, &policy, &manifests, &contents, &plan, HashSet::new());
    assert_eq!(
        judge.reason_to_keep_container_with_contents(&namespace, &Contents::default()),
        None
    );
    let now = Contents {
        objects: vec![HeldObject {
            key: live("ConfigMap", Some("old"), "new").key,
            uid: "new".to_owned(),
            owners: Vec::new(),
            keep_annotation: None,
        }],
        unknown: Vec::new(),
        unanswering: BTreeMap::new(),
    };
    assert!(
        judge
            .reason_to_keep_container_with_contents(&namespace, &now)
            .is_some()
    );
    let allowed = Policy {
        data_loss: Risk::Allowed,
        ..self::policy()
    };
    let judge = Judge::for_plan(&set, &allowed, &manifests, &contents, &plan, HashSet::new());
    assert_eq!(
        judge.reason_to_keep_container_with_contents(&namespace, &now),
        None
    );
    let mut annotated = now;
    annotated.objects[0].keep_annotation = Some("helm.sh/resource-policy: keep".to_owned());
    let reason = judge.reason_to_keep_container_with_contents(&namespace, &annotated);
    assert!(
        matches!(reason, Some(ReasonToKeep::HoldsAnnotated { .. })),
        "{reason:?}"
    );
}

/// Takes minutes if an algorithm compares each object with each other object.
#[test]
fn many_prunes_of_many_containers_beside_many_desired_and_kept_objects() {
    const COUNT: usize = 10_000;
    let mut members = Vec::new();
    let mut manifests = Desired::default();
    let mut contents = BTreeMap::new();
    for number in 0..COUNT {
        let namespace = live("Namespace", None, &format!("old-{number}"));
        let mut definition = live(CRD, None, &format!("k{number}.example.com"));
        definition.defines = Some(GroupKind::new("example.com", format!("K{number}")));
        let inside = live("ConfigMap", Some(&namespace.key.name), "inside");
        contents.insert(
            namespace.key.clone(),
            Contents {
                objects: vec![HeldObject {
                    key: inside.key.clone(),
                    uid: inside.uid.clone(),
                    owners: Vec::new(),
                    keep_annotation: None,
                }],
                unknown: Vec::new(),
                unanswering: BTreeMap::new(),
            },
        );
        members.extend([namespace, definition, inside]);
        let place = format!("other-{number}");
        members.push(kept(live("ConfigMap", Some(&place), "kept")));
        manifests
            .members
            .push(desired("ConfigMap", Some(&place), "desired"));
    }
    let observed = Observed {
        members,
        contents,
        ..Observed::default()
    };
    let policy = Policy {
        prune_all: Risk::Allowed,
        ..policy()
    };
    let set = set();
    let plan = plan(&set, &manifests, &observed, &policy);
    assert_eq!((plan.count_prunes(), plan.refusals.len()), (3 * COUNT, 0));
    let judge = Judge::for_plan(
        &set,
        &policy,
        &manifests,
        &observed.contents,
        &plan,
        HashSet::new(),
    );
    let pruned = plan.all_prunes();
    assert!(
        pruned
            .into_iter()
            .all(|live| judge.judge(live) == Judgement::Prune)
    );
}

#[test]
fn a_hook_stays_a_member_whose_place_is_recorded() {
    let job = live("Job.batch", Some("other"), "migrate");
    let around = Around {
        hooks: vec![hook(&job, HookKind::Lifecycle)],
        ..Around::default()
    };
    for pruning in [Pruning::Enabled, Pruning::Disabled] {
        let policy = Policy {
            hooks: Hooks::Skipped,
            pruning,
            ..policy()
        };
        let plan = plan(&set(), &manifests(&around), &observed(&job, &around), &policy);
        let reasons: Vec<String> = plan
            .reported_skips()
            .map(|skip| skip.reason.to_string())
            .collect();
        assert_eq!(reasons, ["a hook, left as it is (helm.sh/hook: x)"]);
        assert!(plan.refusals.is_empty(), "{:?}", plan.refusals);
        assert_eq!(plan.count_prunes(), 0);
        let place = (&job.key.group_kind, job.key.namespace.as_deref());
        let mut wider = plan.record_after.clone();
        wider.add_kind_and_namespace(place.0, place.1, Some("shop"));
        assert_eq!(wider, plan.record_after);
    }
}

#[test]
fn a_manifest_that_is_applied_counts_for_more_than_a_hook_of_the_same_object() {
    let always = live("ConfigMap", Some("shop"), "always");
    let around = Around {
        hooks: vec![hook(&always, HookKind::Test)],
        ..Around::default()
    };
    let plan = plan(
        &set(),
        &manifests(&around),
        &observed(&always, &around),
        &policy(),
    );
    assert_eq!((plan.skips.len(), plan.count_applies()), (0, 1));
}

#[test]
fn hooks_are_refused_unless_the_user_says_what_becomes_of_them() {
    let job = live("Job.batch", Some("shop"), "migrate");
    for (kind, hooks, is_refused) in [
        (HookKind::Lifecycle, Hooks::Refused, true),
        (HookKind::Lifecycle, Hooks::Skipped, false),
        (HookKind::Lifecycle, Hooks::Applied, false),
        (HookKind::Test, Hooks::Refused, false),
        (HookKind::Excluded, Hooks::Refused, false),
    ] {
        let around = Around {
            hooks: vec![hook(&job, kind)],
            ..Around::default()
        };
        let policy = Policy { hooks, ..policy() };
        let plan = plan(&set(), &manifests(&around), &Observed::default(), &policy);
        let refusals: Vec<String> = plan.refusals.iter().map(ToString::to_string).collect();
        let expected = "the manifests hold 1 hook, which a set does not run: \
                        manifests.yaml:1: job.batch/migrate in namespace shop (helm.sh/hook: x)";
        assert_eq!(
            refusals == [expected],
            is_refused,
            "{kind:?} {hooks:?} {refusals:?}"
        );
    }
}
